//! The queue between the driver, which reads what the CLI says, and the program, which takes it when it likes.
//!
//! It is bounded in bytes. A reader that is merely slow holds the CLI back, as a pipe does. A reader that has stopped must
//! not: a question of the CLI's, or the answer to one of ours, may stand behind what nobody reads. Then the queue goes
//! on in a file without a name, up to a limit, and memory stays as it is.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::Error;

/// How much may wait to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes in memory.
    pub memory: usize,
    /// Bytes in a file, for a reader that has stopped. With none the CLI is held back at once.
    pub file: u64,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { memory: 2 << 20, file: 1 << 30 }
    }
}

/// What the driver hands over.
#[derive(Debug)]
pub(crate) enum Item {
    /// Whole lines, each with its end, but perhaps the last.
    Lines(Bytes),
    /// Something that went wrong between two lines.
    Trouble(Box<Error>),
}

/// As much as is read from the file at once.
const PIECE: usize = 256 << 10;

struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    /// Lines that came after `items`.
    spill: Option<Spill>,
    /// No file takes more: the disk is full. Forgotten when there is room again.
    disk_failed: bool,
    limit: Buffer,
    /// The driver will put nothing more.
    ended: bool,
    /// Nobody will take anything more.
    abandoned: bool,
    taken: u64,
    reader: Option<Waker>,
    /// The driver found no room, and waits.
    room_wanted: bool,
}

/// What came after the items in memory, most of it in a file: written at its end, read from its beginning.
struct Spill {
    file: File,
    read: u64,
    written: u64,
    /// What is next, in order.
    parts: VecDeque<Part>,
}

/// A part of what came after the items in memory.
enum Part {
    /// So many bytes in the file.
    Lines(u64),
    /// No line, or one that the file did not take.
    Item(Item),
}

/// One end for each side.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    /// There is room again, or the reader is gone.
    pub(crate) moved: Notify,
}

impl Queue {
    pub(crate) fn new(limit: Buffer) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                items: VecDeque::new(),
                bytes: 0,
                spill: None,
                disk_failed: false,
                limit,
                ended: false,
                abandoned: false,
                taken: 0,
                reader: None,
                room_wanted: false,
            }),
            moved: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is there room in memory?
    pub(crate) fn has_room(&self) -> bool {
        let mut inner = self.lock();
        inner.room_wanted = !inner.abandoned && (inner.bytes >= inner.limit.memory || inner.spill.is_some());
        inner.disk_failed &= inner.room_wanted;
        !inner.room_wanted
    }

    /// Is there room anywhere?
    pub(crate) fn can_spill(&self) -> bool {
        let inner = self.lock();
        let used = inner.spill.as_ref().map_or(0, |spill| spill.written - spill.read);
        !inner.disk_failed && used < inner.limit.file
    }

    /// How often something was taken: the reader lives while this grows.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Has the reader gone?
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Adds lines. The caller asks for room first; what does not fit into memory goes to the file.
    pub(crate) fn put(&self, lines: Bytes) {
        let mut inner = self.lock();
        if inner.abandoned || lines.is_empty() {
            return;
        }
        if inner.spill.is_some() || inner.bytes >= inner.limit.memory {
            match inner.spill(&lines) {
                Ok(()) => return,
                // Without a file the queue grows; the driver stops reading then, because there is no room.
                Err(error) => tracing::warn!(%error, "failed to put unread messages into a file"),
            }
            inner.disk_failed = true;
            if let Some(spill) = &mut inner.spill {
                spill.parts.push_back(Part::Item(Item::Lines(lines)));
                return inner.wake();
            }
        }
        inner.bytes += lines.len();
        inner.items.push_back(Item::Lines(lines));
        inner.wake();
    }

    /// Adds something that is no line.
    pub(crate) fn trouble(&self, error: Error) {
        let mut inner = self.lock();
        if !inner.abandoned {
            let trouble = Item::Trouble(Box::new(error));
            match &mut inner.spill {
                Some(spill) => spill.parts.push_back(Part::Item(trouble)),
                None => inner.items.push_back(trouble),
            }
            inner.wake();
        }
    }

    /// Nothing more will be put.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        inner.wake();
    }

    /// Takes what is next; `None` at the end.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut inner = self.lock();
        if inner.items.is_empty() {
            inner.refill();
        }
        match inner.items.pop_front() {
            Some(item) => {
                if let Item::Lines(lines) = &item {
                    inner.bytes -= lines.len();
                }
                inner.taken += 1;
                // At half of it, or driver and reader would wake each other for every piece.
                if inner.room_wanted && inner.bytes <= inner.limit.memory / 2 && inner.spill.is_none() {
                    inner.room_wanted = false;
                    drop(inner);
                    self.moved.notify_one();
                }
                Poll::Ready(Some(item))
            }
            None if inner.ended => Poll::Ready(None),
            None => {
                inner.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Nobody reads any more: what waits is thrown away, and all that comes.
    pub(crate) fn abandon(&self) {
        let mut inner = self.lock();
        inner.abandoned = true;
        inner.items.clear();
        inner.bytes = 0;
        inner.spill = None;
        drop(inner);
        self.moved.notify_one();
    }
}

impl Inner {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Writes lines to the file.
    fn spill(&mut self, lines: &[u8]) -> std::io::Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill {
                file: tempfile::tempfile()?,
                read: 0,
                written: 0,
                parts: VecDeque::new(),
            }),
        };
        spill.file.seek(SeekFrom::Start(spill.written))?;
        spill.file.write_all(lines)?;
        let count = lines.len() as u64;
        spill.written += count;
        match spill.parts.back_mut() {
            Some(Part::Lines(bytes)) => *bytes += count,
            _ => spill.parts.push_back(Part::Lines(count)),
        }
        self.wake();
        Ok(())
    }

    /// Takes a piece back, from the file up to the last line end in it.
    fn refill(&mut self) {
        let Some(spill) = &mut self.spill else { return };
        let part = match spill.parts.pop_front() {
            Some(Part::Lines(bytes)) => bytes,
            Some(Part::Item(item)) => {
                if let Item::Lines(lines) = &item {
                    self.bytes += lines.len();
                }
                if spill.parts.is_empty() {
                    self.spill = None;
                }
                return self.items.push_back(item);
            }
            None => return self.spill = None,
        };
        let mut piece = BytesMut::new();
        let read = loop {
            let left = part - piece.len() as u64;
            if left == 0 {
                break Ok(());
            }
            let from = piece.len();
            piece.resize(from + PIECE.min(usize::try_from(left).unwrap_or(PIECE)), 0);
            let at = spill.read + from as u64;
            if let Err(error) =
                spill.file.seek(SeekFrom::Start(at)).and_then(|_| spill.file.read_exact(&mut piece[from..]))
            {
                break Err(error);
            }
            if let Some(end) = memchr::memrchr(b'\n', &piece) {
                piece.truncate(end + 1);
                break Ok(());
            }
        };
        if let Err(source) = read {
            self.spill = None;
            let action = "read back messages that had waited in a file; they are lost".to_owned();
            self.items.push_back(Item::Trouble(Box::new(Error::Io { action, source })));
            return;
        }
        let count = piece.len() as u64;
        spill.read += count;
        if count < part {
            spill.parts.push_front(Part::Lines(part - count));
        } else if spill.parts.is_empty() {
            self.spill = None;
        }
        self.bytes += piece.len();
        self.items.push_back(Item::Lines(piece.freeze()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::poll_fn;

    async fn take_all(queue: &Queue) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(item) = poll_fn(|cx| queue.poll_take(cx)).await {
            match item {
                Item::Lines(lines) => all.extend_from_slice(&lines),
                Item::Trouble(error) => all.extend_from_slice(format!("!{error}\n").as_bytes()),
            }
        }
        all
    }

    fn line(n: usize) -> Bytes {
        Bytes::from(format!("{n:0>100}\n"))
    }

    #[tokio::test]
    async fn what_does_not_fit_into_memory_waits_in_a_file_and_keeps_its_order() {
        let queue = Queue::new(Buffer { memory: 1000, file: 1 << 20 });
        let mut want = Vec::new();
        for n in 0..5000 {
            want.extend_from_slice(&line(n));
            queue.put(line(n));
            assert!(queue.lock().bytes <= 1101);
        }
        assert!(!queue.has_room() && queue.can_spill());
        for n in [5001, 5002] {
            queue.trouble(Error::Closed);
            want.extend_from_slice(format!("!{}\n", Error::Closed).as_bytes());
            queue.put(line(n));
            want.extend_from_slice(&line(n));
        }
        assert!(queue.lock().bytes <= 1101, "a trouble brings nothing back into memory");
        queue.end();
        assert!(take_all(&queue).await == want);
        assert!(queue.has_room());
    }

    #[tokio::test]
    async fn a_line_larger_than_a_piece_comes_back_whole() {
        let queue = Queue::new(Buffer { memory: 1, file: u64::MAX });
        let large = Bytes::from([vec![b'x'; 3 * PIECE], b"\nrest".to_vec()].concat());
        queue.put(line(0));
        queue.put(large.clone());
        queue.end();
        assert!(take_all(&queue).await == [&line(0)[..], &large].concat());
    }

    #[tokio::test]
    async fn room_is_told_when_half_of_it_is_free() {
        let queue = Queue::new(Buffer { memory: 1000, file: 0 });
        for n in 0..10 {
            assert!(queue.has_room());
            queue.put(line(n));
        }
        assert!(!queue.has_room());
        for left in (0..10).rev() {
            assert!(poll_fn(|cx| queue.poll_take(cx)).await.is_some());
            let told = queue.moved.notified().now_or_never().is_some();
            assert_eq!(told, left == 4, "with {left} lines of 101 bytes left");
        }
    }

    #[tokio::test]
    async fn a_disk_that_is_full_costs_no_line_and_no_order() {
        let queue = Queue::new(Buffer { memory: 1, file: 1 << 20 });
        queue.put(line(0));
        queue.put(line(1));
        // A file that takes nothing more, but still gives what it has.
        let mut held = tempfile::NamedTempFile::new().unwrap();
        held.write_all(&line(1)).unwrap();
        queue.lock().spill.as_mut().unwrap().file = File::open(held.path()).unwrap();
        queue.put(line(2));
        assert!(!queue.can_spill(), "the driver stops reading");
        queue.put(line(3));
        queue.end();
        assert!(take_all(&queue).await == [line(0), line(1), line(2), line(3)].concat());
        assert!(queue.has_room());
    }

    #[tokio::test]
    async fn a_full_file_says_so() {
        let queue = Queue::new(Buffer { memory: 1, file: 50 });
        queue.put(line(0));
        assert!(queue.can_spill());
        queue.put(line(1));
        assert!(!queue.can_spill());
    }

    #[tokio::test]
    async fn an_abandoned_queue_takes_everything_and_keeps_nothing() {
        let queue = Queue::new(Buffer { memory: 1, file: 0 });
        queue.put(line(0));
        assert!(!queue.has_room());
        queue.abandon();
        assert!(queue.has_room());
        queue.put(line(1));
        assert_eq!(queue.lock().items.len(), 0);
    }
}
