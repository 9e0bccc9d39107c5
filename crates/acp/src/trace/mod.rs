//! Recording: every message of both sides, a line each, with secrets taken out.
//!
//! ```json
//! {"t":0.0029,"dir":"client->agent","msg":{"jsonrpc":"2.0","id":1,"method":"initialize"}}
//! ```
//!
//! `t` is in seconds since the recording began. What is no JSON is a `raw` text instead of a `msg`. The work is done by a
//! thread, so that a slow disk does not slow down the connection.

mod redact;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use oarlock_wire::{Close, Frames, ReadError};
use serde::Serialize;
use serde_json::Value;

use redact::Redactor;

/// So many messages may wait for the disk.
const WAITING: usize = 4096;
/// And so many bytes of them. What does not fit is missing from the recording, which says so.
const WAITING_BYTES: usize = 64 << 20;
/// How long the end of a recording may take. A disk that hangs must not keep the program from ending.
const LAST: Duration = Duration::from_secs(2);

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Direction {
    #[serde(rename = "client->agent")]
    In,
    #[serde(rename = "agent->client")]
    Out,
}

/// A message on its way to the disk.
#[derive(Debug)]
struct Said {
    at: f64,
    direction: Direction,
    text: String,
}

#[derive(Serialize)]
struct Line<'a> {
    t: f64,
    dir: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    /// How many messages are missing before this one.
    #[serde(skip_serializing_if = "is_zero")]
    lost: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What the recorder and its thread share.
#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    lost: AtomicUsize,
    /// Nothing is recorded any more.
    stopped: AtomicBool,
}

/// A file that messages are recorded to.
#[derive(Debug)]
pub struct Recorder {
    begun: Instant,
    /// How many bytes may wait for the disk.
    room: usize,
    shared: Arc<Shared>,
    /// There until the recorder is dropped.
    sender: Option<SyncSender<Said>>,
    /// Hangs up when the thread is done.
    done: Mutex<Receiver<()>>,
}

impl Recorder {
    /// Begins a recording. The file is made anew, for the user alone.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = create_private(path)?;
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            out: BufWriter::with_capacity(64 << 10, file),
            path: path.to_owned(),
            redactor: Redactor::from_environment(),
            shared: shared.clone(),
        };
        Self::start(writer, shared, WAITING_BYTES)
    }

    fn start<W: io::Write + Send + 'static>(
        mut writer: Writer<W>,
        shared: Arc<Shared>,
        room: usize,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let (working, done) = sync_channel(0);
        std::thread::Builder::new().name("acp-trace".into()).spawn(move || {
            let _working = working;
            writer.run(&receiver);
        })?;
        let done = Mutex::new(done);
        Ok(Self { begun: Instant::now(), room, shared, sender: Some(sender), done })
    }

    /// Takes a message. This never waits: what the disk cannot keep up with is left out.
    fn record(&self, direction: Direction, text: &str) {
        if self.shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let size = text.len();
        let waiting = self.shared.waiting.fetch_add(size, Ordering::Relaxed);
        // A message that is larger than all the room is taken when nothing else waits.
        let has_room = waiting == 0 || waiting + size <= self.room;
        let at = self.begun.elapsed().as_secs_f64();
        let said = || Said { at, direction, text: text.to_owned() };
        let sender = self.sender.as_ref().filter(|_| has_room);
        if sender.is_none_or(|sender| sender.try_send(said()).is_err()) {
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The thread ends when it has written what it has.
        drop(self.sender.take());
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = done.recv_timeout(LAST);
    }
}

/// A new file that only its owner may read, in place of what is there.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let file = options.mode(0o600).open(path)?;
        // One that was there before keeps its mode. A pipe or a terminal is whoever's it is.
        if file.metadata()?.is_file() {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

/// The thread's part.
struct Writer<W: io::Write> {
    out: BufWriter<W>,
    path: PathBuf,
    redactor: Redactor,
    shared: Arc<Shared>,
}

impl<W: io::Write> Writer<W> {
    fn run(&mut self, messages: &Receiver<Said>) {
        if let Err(error) = self.write_all(messages) {
            self.shared.stopped.store(true, Ordering::Relaxed);
            let path = self.path.display();
            tracing::warn!(%path, %error, "the recording ends here; the session goes on");
        }
    }

    /// Writes what comes, and hands it to the system whenever there is a pause.
    fn write_all(&mut self, messages: &Receiver<Said>) -> io::Result<()> {
        while let Ok(said) = messages.recv() {
            self.write(said)?;
            while let Ok(said) = messages.try_recv() {
                self.write(said)?;
            }
            self.out.flush()?;
        }
        Ok(())
    }

    fn write(&mut self, said: Said) -> io::Result<()> {
        let Said { at, direction, mut text } = said;
        self.shared.waiting.fetch_sub(text.len(), Ordering::Relaxed);
        let mut message: Option<Value> = serde_json::from_str(&text).ok();
        match &mut message {
            Some(message) => self.redactor.redact(message),
            None => self.redactor.redact_text(&mut text),
        }
        let line = Line {
            t: (at * 1e4).round() / 1e4,
            dir: direction,
            raw: message.is_none().then_some(text),
            msg: message.as_ref(),
            lost: self.shared.lost.swap(0, Ordering::Relaxed),
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }
}

/// Framing that records what passes.
#[derive(Debug)]
pub struct Tap<F> {
    frames: F,
    recorder: Arc<Recorder>,
}

impl<F> Tap<F> {
    /// Records what passes through `frames`.
    pub fn new(frames: F, recorder: Arc<Recorder>) -> Self {
        Self { frames, recorder }
    }
}

impl<F: Frames> Frames for Tap<F> {
    type Text = F::Text;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Self::Text, ReadError>>> {
        let next = self.frames.poll_next(cx);
        match &next {
            Poll::Ready(Some(Ok(text))) => self.recorder.record(Direction::In, text.as_ref()),
            Poll::Ready(Some(Err(error))) => self.recorder.record(Direction::In, &format!("[{error}]")),
            _ => {}
        }
        next
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.frames.poll_ready(cx)
    }

    fn start_send(&mut self, text: String) -> io::Result<()> {
        self.recorder.record(Direction::Out, &text);
        self.frames.start_send(text)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.frames.poll_flush(cx)
    }

    fn start_close(&mut self, close: &Close) {
        self.frames.start_close(close);
    }

    async fn close(&mut self, close: Close) {
        self.frames.close(close).await;
    }

    fn heard(&self) -> u64 {
        self.frames.heard()
    }
}

#[cfg(test)]
mod tests {
    use oarlock_proto::jsonrpc::{self, Message};
    use oarlock_wire::frame::memory;

    use super::*;

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;

    fn read(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn what_was_recorded_can_be_read_as_messages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let (ours, mut theirs) = memory(8);
        let mut tap = Tap::new(ours, Arc::new(Recorder::create(&path).unwrap()));
        std::future::poll_fn(|cx| theirs.poll_ready(cx)).await.unwrap();
        theirs.start_send(HELLO.into()).unwrap();
        let heard = std::future::poll_fn(|cx| tap.poll_next(cx)).await.unwrap().unwrap();
        assert_eq!(AsRef::<str>::as_ref(&heard), HELLO, "what passes is as it was");
        std::future::poll_fn(|cx| tap.poll_ready(cx)).await.unwrap();
        tap.start_send(ANSWER.into()).unwrap();
        let heard = std::future::poll_fn(|cx| theirs.poll_next(cx)).await.unwrap().unwrap();
        assert_eq!(AsRef::<str>::as_ref(&heard), ANSWER);
        drop(tap);
        let lines = read(&path);
        let directions: Vec<_> = lines.iter().map(|line| line["dir"].as_str().unwrap()).collect();
        assert_eq!(directions, ["client->agent", "agent->client"]);
        assert!(lines[0]["t"].as_f64().unwrap() <= lines[1]["t"].as_f64().unwrap());
        let texts: Vec<_> = lines.iter().map(|line| line["msg"].to_string()).collect();
        assert!(
            matches!(jsonrpc::read(&texts[0]), Ok(Message::Request { method, .. }) if method == "initialize")
        );
        assert!(matches!(jsonrpc::read(&texts[1]), Ok(Message::Response { .. })));
    }

    #[test]
    fn what_is_no_json_is_recorded_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        recorder.record(Direction::In, "{half a \u{fc}");
        drop(recorder);
        let lines = read(&path);
        assert_eq!(lines[0]["raw"], "{half a \u{fc}");
        assert!(lines[0].get("msg").is_none());
    }

    #[test]
    fn a_pause_brings_everything_to_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        recorder.record(Direction::In, HELLO);
        let begun = Instant::now();
        while path.metadata().unwrap().len() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "nothing is written while the recorder lives");
            std::thread::yield_now();
        }
    }

    #[cfg(unix)]
    #[test]
    fn acp_sec_01_only_the_owner_may_read_a_recording() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(Recorder::create(&path).unwrap());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.metadata().unwrap().len(), 0, "it is made anew");
        assert!(Recorder::create(&dir.path().join("no/such/place")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_ends_the_recording_and_nothing_else() {
        let recorder = Recorder::create(Path::new("/dev/full")).unwrap();
        let begun = Instant::now();
        while !recorder.shared.stopped.load(Ordering::Relaxed) {
            recorder.record(Direction::In, HELLO);
            assert!(begun.elapsed() < Duration::from_secs(10), "it goes on");
        }
        recorder.record(Direction::In, HELLO);
        drop(recorder);
    }

    /// A disk that takes nothing until it is let go, and says when it is reached.
    struct Stuck {
        reached: SyncSender<()>,
        free: Receiver<()>,
    }

    impl io::Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.reached.try_send(());
            let _ = self.free.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_hangs_holds_nobody_and_what_is_missing_is_counted() {
        let (let_go, free) = sync_channel(0);
        let (reached, is_reached) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            out: BufWriter::with_capacity(16, Stuck { reached, free }),
            path: "stuck".into(),
            redactor: Redactor::default(),
            shared: shared.clone(),
        };
        let recorder = Recorder::start(writer, shared, 1000).unwrap();
        let part = "x".repeat(1000 / 8);
        recorder.record(Direction::Out, &part);
        is_reached.recv().unwrap();
        for _ in 0..20 {
            recorder.record(Direction::Out, &part);
        }
        let waiting = recorder.shared.waiting.load(Ordering::Relaxed);
        assert!(waiting <= 1000, "{waiting}");
        assert!(recorder.shared.lost.load(Ordering::Relaxed) >= 11);
        for _ in 0..2 * WAITING {
            recorder.record(Direction::Out, "");
        }
        assert!(recorder.shared.lost.load(Ordering::Relaxed) >= WAITING);
        let begun = Instant::now();
        drop(recorder);
        assert!(begun.elapsed() < 3 * LAST, "nor does it hold the end");
        drop(let_go);
    }
}
