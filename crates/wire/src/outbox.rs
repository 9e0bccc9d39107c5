//! What waits to be written to one peer, bounded in bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};

use crate::frame::Close;

pub(crate) type Answer = Result<Box<RawValue>, ErrorObject>;

/// With more than this waiting, those who can wait should.
const BUSY: usize = 256 << 10;

/// Shared by a connection's task (which drains it) and everyone who writes to the peer.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    waker: AtomicWaker,
    /// Told when so much has been taken that more may come.
    relieved: Notify,
    max_bytes: usize,
    heard: AtomicU64,
    /// Requests of the other side that are not answered yet.
    pub(crate) unanswered: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<String>,
    bytes: usize,
    /// Set once: the connection is to end. What is answered until it has ended still goes out.
    close: Option<Close>,
    /// Nothing more is taken: the connection is over, or its reader is too slow.
    sealed: bool,
    /// Our own requests that wait for an answer.
    asked: HashMap<u64, oneshot::Sender<Answer>>,
    next_id: u64,
}

impl Queue {
    fn seal(&mut self) {
        self.sealed = true;
        self.frames = VecDeque::new();
        self.bytes = 0;
    }
}

impl Outbox {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            queue: Mutex::default(),
            waker: AtomicWaker::new(),
            relieved: Notify::new(),
            max_bytes,
            heard: AtomicU64::new(0),
            unanswered: AtomicUsize::new(0),
        }
    }

    /// No code that holds the lock can panic half-way, so a poisoned one is as good as a whole one.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message. When more than the limit already waits, the reader is too slow: the connection is closed,
    /// because dropping single messages would leave the peer with a hole it cannot see.
    pub(crate) fn push(&self, text: String) -> bool {
        let mut queue = self.queue();
        if queue.sealed {
            return false;
        }
        if queue.bytes > self.max_bytes {
            let reason = format!("reads too slowly: more than {} bytes wait for it", self.max_bytes);
            queue.close.get_or_insert(Close::new(1008, reason));
            queue.seal();
        } else {
            queue.bytes += text.len();
            queue.frames.push_back(text);
        }
        let open = !queue.sealed;
        drop(queue);
        self.waker.wake();
        open
    }

    pub(crate) fn pop(&self) -> Option<String> {
        let mut queue = self.queue();
        let text = queue.frames.pop_front()?;
        let was_busy = queue.bytes > BUSY;
        queue.bytes -= text.len();
        if was_busy && queue.bytes <= BUSY {
            self.relieved.notify_waiters();
        }
        if queue.frames.is_empty() && queue.frames.capacity() > 256 {
            queue.frames = VecDeque::new();
        }
        Some(text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue().frames.is_empty()
    }

    /// So much waits that no more work should be taken from this peer: it must read first.
    pub(crate) fn is_loaded(&self) -> bool {
        self.queue().bytes > self.max_bytes / 4
    }

    /// Waits until only little waits for the other side, or nothing is taken any more.
    pub(crate) async fn ready(&self) {
        loop {
            let relieved = self.relieved.notified();
            {
                let queue = self.queue();
                if queue.bytes <= BUSY || queue.sealed {
                    return;
                }
            }
            relieved.await;
        }
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    pub(crate) fn close(&self, close: Close) {
        self.queue().close.get_or_insert(close);
        self.waker.wake();
    }

    pub(crate) fn closing(&self) -> Option<Close> {
        self.queue().close.clone()
    }

    /// The connection is over: forget what waits, and fail what was asked.
    pub(crate) fn finish(&self) {
        let mut queue = self.queue();
        queue.close.get_or_insert(Close::new(1006, "connection lost"));
        queue.seal();
        queue.asked = HashMap::new();
        drop(queue);
        self.relieved.notify_waiters();
    }

    /// Registers a request of ours; the receiver fails when the connection ends first.
    pub(crate) fn ask(&self) -> (u64, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let mut queue = self.queue();
        let id = queue.next_id;
        queue.next_id += 1;
        if queue.close.is_none() {
            queue.asked.insert(id, sender);
        }
        (id, receiver)
    }

    pub(crate) fn answered(&self, id: u64) -> Option<oneshot::Sender<Answer>> {
        self.queue().asked.remove(&id)
    }

    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(crate) fn set_heard(&self, bytes: u64) {
        self.heard.store(bytes, Ordering::Relaxed);
    }
}
