//! The task behind a session: it alone touches the CLI's pipes and process.
//!
//! Reading, writing, stderr, callbacks and time-outs go on side by side in one `select`. What the CLI says to the program
//! goes into the [`Queue`]; control frames never do, so they do not wait for a program that does not read.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::calls::Calls;
use super::lines::{Lines, Piece};
use super::queue::Queue;
use super::state::{Closing, SETTLE, Tracker};
use super::tail::Tail;
use super::{End, Exit, Shared};
use crate::Error;
use crate::stream::{Message, Request, Response, decode};
use crate::transport::{Process, Reader, Transport, Writer};

/// A small thing to do, which never waits behind messages.
pub(crate) enum Command {
    /// Write a control request, and hand over its answer.
    Request { id: String, line: String, answer: oneshot::Sender<Response> },
    /// The program has no more to say: stdin is closed when the session allows it.
    Finish,
    /// Close stdin now, and see that the CLI ends.
    Close,
    /// End it now.
    Kill,
}

/// A message to the model.
pub(crate) struct Outgoing {
    pub(crate) line: String,
    pub(crate) uuid: Option<String>,
    pub(crate) taken: oneshot::Sender<()>,
}

/// Messages wait in the channel while more than this is unwritten.
const UNWRITTEN: usize = 256 << 10;
/// A reader that has taken nothing for so long, with a full queue, has stopped.
const STALLED: Duration = Duration::from_millis(100);
/// After the CLI's end its pipes are read for so long: a child of its may hold them open for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// More than this of one line on stderr is given in pieces.
const LONGEST_MURMUR: usize = 64 << 10;

pub(crate) struct Driver {
    stdout: Option<Reader>,
    stdin: Option<Writer>,
    stderr: Option<Reader>,
    process: Option<Box<dyn Process>>,
    /// Removed with the driver.
    _files: Vec<tempfile::TempPath>,
    lines: Lines,
    unwritten: BytesMut,
    /// Something was written and not yet pushed on.
    unflushed: bool,
    queue: Arc<Queue>,
    commands: mpsc::Receiver<Command>,
    messages: mpsc::Receiver<Outgoing>,
    /// All handles are gone.
    handles_gone: bool,
    asked: HashMap<String, oneshot::Sender<Response>>,
    calls: Calls,
    tracker: Tracker,
    shared: Arc<Shared>,
    tail: Tail,
    /// The beginning of a line on stderr, when somebody listens.
    murmur: BytesMut,
    full: Option<Full>,
    stage: Stage,
    /// The program wanted the end, so a turn that it cuts short is no accident.
    told_to_end: bool,
    heard_at: Instant,
    /// When it last took something of what we say.
    wrote_at: Instant,
    status: Option<ExitStatus>,
    /// When the pipes are no longer waited for.
    last_words: Option<Instant>,
    /// They were waited for, and nothing came.
    is_silent: bool,
}

/// The queue is full.
struct Full {
    taken: u64,
    since: Instant,
    stalled: bool,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Open,
    /// Stdin is closed as soon as the session allows it.
    Finishing,
    /// Stdin is closed; at the time given it is asked to end.
    Closing(Instant),
    /// It was asked to end; at the time given it is killed.
    Terminating(Instant),
    Killed,
}

impl Driver {
    pub(crate) fn new(
        transport: Transport,
        queue: Arc<Queue>,
        shared: Arc<Shared>,
        calls: Calls,
        commands: mpsc::Receiver<Command>,
        messages: mpsc::Receiver<Outgoing>,
    ) -> Self {
        Self {
            stdout: Some(transport.stdout),
            stdin: Some(transport.stdin),
            stderr: transport.stderr,
            process: transport.process,
            _files: transport.files,
            lines: Lines::new(shared.limits.line),
            unwritten: BytesMut::new(),
            unflushed: false,
            queue,
            commands,
            messages,
            handles_gone: false,
            asked: HashMap::new(),
            calls,
            tracker: Tracker::default(),
            shared,
            tail: Tail::default(),
            murmur: BytesMut::new(),
            full: None,
            stage: Stage::Open,
            told_to_end: false,
            heard_at: Instant::now(),
            wrote_at: Instant::now(),
            status: None,
            last_words: None,
            is_silent: false,
        }
    }

    /// Runs until the CLI has ended and all it said has been handed over.
    pub(crate) async fn run(mut self) {
        let mut words = [0; 8 << 10];
        while !self.is_over() {
            self.advance();
            let reading = self.stdout.is_some() && self.may_read();
            let writing = self.stdin.is_some() && (self.unflushed || !self.unwritten.is_empty());
            let deadline = self.deadline();
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.handles_gone => match command {
                    Some(command) => self.obey(command),
                    None => self.handles_gone = true,
                },
                answer = self.calls.next(), if self.calls.len() > 0 => {
                    if let Some(Some(line)) = answer {
                        self.write(&line);
                    }
                }
                status = wait(&mut self.process), if self.status.is_none() && self.process.is_some() => {
                    self.exited(status);
                }
                written = write(&mut self.stdin, &self.unwritten), if writing => self.written(written),
                message = self.messages.recv(), if self.unwritten.len() < UNWRITTEN && !self.messages.is_closed() => {
                    if let Some(message) = message {
                        self.send(message);
                    }
                }
                read = read_stdout(&mut self.stdout, &mut self.lines), if reading => self.heard(read),
                read = read_stderr(&mut self.stderr, &mut words), if self.stderr.is_some() => match read {
                    Ok(count @ 1..) => self.murmured(&words[..count]),
                    _ => self.stderr = None,
                },
                () = self.queue.moved.notified() => {}
                () = at(deadline) => self.waited(),
            }
        }
        if let Some(mirror) = &self.shared.mirror {
            mirror.flush().await;
        }
        self.finish();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Request { id, line, answer } => {
                if self.stdin.is_none() {
                    return; // The dropped sender says so.
                }
                // Whoever gave up waiting has dropped its end.
                self.asked.retain(|_, asker| !asker.is_closed());
                self.asked.insert(id, answer);
                self.write(&line);
            }
            Command::Finish if self.stage == Stage::Open => self.stage = Stage::Finishing,
            Command::Finish => {}
            Command::Close => {
                self.told_to_end = true;
                self.close();
            }
            Command::Kill => {
                self.told_to_end = true;
                self.kill();
            }
        }
    }

    fn send(&mut self, message: Outgoing) {
        if self.stdin.is_some() {
            if let Some(uuid) = &message.uuid {
                self.tracker.sent(uuid);
                self.wrote_at = Instant::now();
                self.lines.replays_wanted = self.shared.replays;
            }
            self.write(&message.line);
            let _ = message.taken.send(());
        }
    }

    fn write(&mut self, line: &str) {
        if self.stdin.is_some() {
            self.unwritten.extend_from_slice(line.as_bytes());
            self.unwritten.extend_from_slice(b"\n");
        }
    }

    fn written(&mut self, written: io::Result<usize>) {
        match written {
            Ok(count) => {
                self.unwritten.advance(count);
                self.unflushed = count > 0;
                self.wrote_at = Instant::now();
            }
            // It reads no more. Why, its exit will tell; what it does may still come to its end.
            Err(_) => {
                self.close_stdin();
                if self.stage == Stage::Open {
                    self.stage = Stage::Finishing;
                }
            }
        }
        if self.unwritten.is_empty() {
            self.unwritten = BytesMut::new();
        }
    }

    /// Does what has become due: the end of the input, a signal.
    fn advance(&mut self) {
        if self.handles_gone {
            if self.queue.is_abandoned() {
                self.kill();
            } else if self.stage == Stage::Open {
                self.stage = Stage::Finishing;
            }
        }
        let now = Instant::now();
        if self.status.is_some() && self.last_words.is_none() {
            self.last_words = Some(now + LAST_WORDS);
            self.close_stdin();
        }
        let is_due = self.stage == Stage::Finishing && self.closing_at().is_some_and(|at| at <= now);
        if is_due {
            self.close();
        }
        match self.stage {
            // What was still to be written is, before the end.
            Stage::Closing(at) if at > now && self.unwritten.is_empty() && !self.unflushed => {
                self.close_stdin()
            }
            Stage::Closing(at) if at <= now && self.is_at_work() => {
                self.close_stdin();
                self.stage = Stage::Closing(now + self.shared.limits.grace);
            }
            Stage::Closing(at) if at <= now => {
                tracing::debug!("the CLI does not end by itself; asking it to");
                self.close_stdin();
                self.stage = Stage::Terminating(now + self.shared.limits.grace);
                if let Some(process) = &mut self.process {
                    process.terminate();
                }
            }
            Stage::Terminating(at) if at <= now => self.kill(),
            _ => {}
        }
    }

    /// Does a turn run that nobody wanted to cut short?
    fn is_at_work(&self) -> bool {
        let running = self.tracker.closing(0) == Closing::NotYet;
        running && !self.told_to_end && self.stdout.is_some() && !self.is_wedged()
    }

    /// One that does not answer will not end by itself either.
    fn is_wedged(&self) -> bool {
        self.shared.wedged.load(Ordering::Relaxed)
    }

    /// When stdin may be closed, if nothing happens until then.
    fn closing_at(&self) -> Option<Instant> {
        let quiet_since = self.heard_at.max(self.wrote_at);
        match self.tracker.closing(self.calls.len()) {
            Closing::NotYet => None,
            Closing::Now => Some(self.heard_at),
            Closing::AfterSettling => Some(quiet_since + SETTLE),
            Closing::Unheard => Some(quiet_since + self.shared.limits.request),
            Closing::AfterTasks => Some(quiet_since + self.shared.limits.background_wait),
        }
    }

    fn close(&mut self) {
        if matches!(self.stage, Stage::Open | Stage::Finishing) {
            let grace = if self.is_wedged() { Duration::ZERO } else { self.shared.limits.grace };
            self.stage = Stage::Closing(Instant::now() + grace);
        }
    }

    fn close_stdin(&mut self) {
        self.stdin = None;
        self.unflushed = false;
        self.unwritten = BytesMut::new();
        self.messages.close();
        while self.messages.try_recv().is_ok() {}
    }

    fn kill(&mut self) {
        if self.stage != Stage::Killed {
            self.stage = Stage::Killed;
            match &mut self.process {
                Some(process) => process.kill(),
                None => self.stdout = None,
            }
            // After that: one that sees its input end may still do something about it.
            self.close_stdin();
        }
    }

    fn exited(&mut self, status: io::Result<ExitStatus>) {
        match status {
            Ok(status) => self.status = Some(status),
            // Nobody can tell how it ended.
            Err(error) => {
                tracing::warn!(%error, "failed to wait for the CLI");
                self.kill();
                self.process = None;
                self.last_words = Some(Instant::now() + LAST_WORDS);
            }
        }
    }

    /// May more be read? Always when there is room; into a file when the program has stopped reading, or when an answer is
    /// awaited which may stand behind what it does not read.
    fn may_read(&mut self) -> bool {
        // After its end there is little left to read, and it must not be lost.
        if self.queue.has_room() || self.status.is_some() {
            self.full = None;
            return true;
        }
        let (taken, now) = (self.queue.taken(), Instant::now());
        let full = self.full.get_or_insert(Full { taken, since: now, stalled: false });
        if full.taken != taken {
            *full = Full { taken, since: now, stalled: false };
        }
        full.stalled |= now - full.since >= STALLED;
        // Whoever gave up waiting has dropped its end.
        let awaited = full.stalled || self.asked.values().any(|asker| !asker.is_closed());
        awaited && self.queue.can_spill()
    }

    /// When something must be looked at again.
    fn deadline(&self) -> Option<Instant> {
        let stage = match self.stage {
            Stage::Finishing => self.closing_at(),
            Stage::Closing(at) | Stage::Terminating(at) => Some(at),
            _ => None,
        };
        let stall = self.full.as_ref().filter(|full| !full.stalled).map(|full| full.since + STALLED);
        [stage, stall, self.last_words].into_iter().flatten().min()
    }

    fn heard(&mut self, read: io::Result<usize>) {
        let count = read.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to read from the CLI");
            0
        });
        self.heard_at = Instant::now();
        self.shared.heard.fetch_add(count as u64, Ordering::Relaxed);
        if count > 0 {
            self.shared.wedged.store(false, Ordering::Relaxed);
        }
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        lines.split(count == 0, |piece| self.take(piece));
        lines.replays_wanted = self.shared.replays && self.tracker.awaits_replay();
        self.lines = lines;
        if count == 0 {
            self.stdout = None;
            // Nothing more will be heard, so there is no use in speaking.
            self.close();
        }
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Data(lines) => self.queue.put(lines),
            Piece::Other(line) => self.route(line),
            Piece::TooLarge => self.queue.trouble(Error::LineTooLong { limit: self.shared.limits.line }),
        }
    }

    /// Looks into a line that may be for us.
    fn route(&mut self, line: Bytes) {
        match decode(&line) {
            Ok(Message::ControlResponse(answer)) => {
                // One that we did not ask for is the echo of our own, which `--replay-user-messages` brings.
                let asker = answer.request_id().and_then(|id| self.asked.remove(id));
                if let Some(asker) = asker {
                    let _ = asker.send(answer.response);
                }
            }
            Ok(Message::ControlRequest(request)) => {
                tracing::trace!(subtype = request.request.tag(), "the CLI asks");
                let shown = !matches!(request.request, Request::HookCallback(_) | Request::McpMessage(_));
                if shown {
                    self.queue.put(line);
                }
                if let Some(answer) = self.calls.take(request) {
                    self.write(&answer);
                }
            }
            Ok(Message::ControlCancelRequest(cancel)) => {
                self.calls.withdraw(&cancel.request_id);
                self.queue.put(line);
            }
            Ok(message) => {
                if self.tracker.follow(&message) {
                    self.publish();
                }
                match (message, &self.shared.mirror) {
                    (Message::TranscriptMirror(frame), Some(mirror)) => return mirror.push(frame),
                    (Message::Result(_), Some(mirror)) => mirror.hand_on(),
                    _ => {}
                }
                self.queue.put(line);
            }
            Err(bad) if bad.is_blank() => {}
            // The program is told, and the stream goes on.
            Err(_) => self.queue.put(line),
        }
    }

    /// Tells what is known now. What the first answer told stays until something newer is heard.
    fn publish(&self) {
        let mut next = self.tracker.state.clone();
        self.shared.state.send_modify(|state| {
            next.version = next.version.take().or(state.version.take());
            next.permission_mode = next.permission_mode.take().or(state.permission_mode.take());
            next.capabilities.append(&mut state.capabilities);
            *state = next;
        });
    }

    fn murmured(&mut self, words: &[u8]) {
        self.tail.add(words);
        let Some(told) = &self.shared.on_stderr else { return };
        let listen = |line: &str| tell(told, line);
        self.murmur.extend_from_slice(words);
        while let Some(end) = memchr::memchr(b'\n', &self.murmur) {
            let line = self.murmur.split_to(end + 1);
            listen(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        }
        // A line without an end is not waited for for ever.
        if self.murmur.len() > LONGEST_MURMUR {
            listen(&String::from_utf8_lossy(&self.murmur.split()));
        }
    }

    /// Nothing happened until the time that was set.
    fn waited(&mut self) {
        self.is_silent |= self.last_words.is_some_and(|at| at <= Instant::now());
    }

    /// Has everything been heard?
    fn is_over(&self) -> bool {
        let ended = self.process.is_none() || self.status.is_some();
        let silent = self.stdout.is_none() && self.stderr.is_none();
        // What is there is read, but not for ever: a child of the CLI's may write on.
        let late = self.is_silent || self.last_words.is_some_and(|at| at + LAST_WORDS * 10 <= Instant::now());
        // Without a process there is nobody to signal: after the grace it is over.
        let gave_up = self.process.is_none() && matches!(self.stage, Stage::Terminating(_) | Stage::Killed);
        ended && (silent || late || gave_up)
    }

    fn finish(mut self) {
        let exit = Exit::new(self.status, self.tail.text());
        // Whatever was said last without a line end.
        let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
        lines.split(true, |piece| self.take(piece));
        self.calls.abort();
        if let Some(told) = self.shared.on_stderr.as_ref().filter(|_| !self.murmur.is_empty()) {
            tell(told, &String::from_utf8_lossy(&self.murmur));
        }
        let ours = matches!(self.stage, Stage::Terminating(_) | Stage::Killed);
        let idle = self.tracker.closing(0) != Closing::NotYet;
        let clean = exit.success() || (exit.code() == Some(1) && self.tracker.last_result_failed);
        if !((ours || clean) && (idle || self.told_to_end)) {
            self.queue.trouble(Error::Exited(exit.clone()));
        }
        tracing::debug!(code = exit.code(), "the CLI has ended");
        self.shared.end.send_replace(Some(End { exit, errors: std::mem::take(&mut self.tracker.errors) }));
        self.queue.end();
    }
}

/// A session must end also when its task does not come to its end: it panicked, or the runtime goes down.
impl Drop for Driver {
    fn drop(&mut self) {
        if self.shared.end.borrow().is_none() {
            self.kill();
            self.calls.abort();
            self.queue.trouble(Error::Closed);
            let exit = Exit::new(self.status, self.tail.text());
            self.shared.end.send_replace(Some(End { exit, errors: Vec::new() }));
            self.queue.end();
        }
    }
}

/// Whoever listens to stderr must not be able to end the session.
fn tell(told: &crate::options::OnStderr, line: &str) {
    if catch_unwind(AssertUnwindSafe(|| told(line))).is_err() {
        tracing::warn!("the program's on_stderr panicked");
    }
}

async fn wait(process: &mut Option<Box<dyn Process>>) -> io::Result<ExitStatus> {
    match process {
        Some(process) => process.wait().await,
        None => pending().await,
    }
}

/// Writes something; when all is written, pushes it on. Each is one step, so that a dropped future has lost nothing.
async fn write(stdin: &mut Option<Writer>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) if bytes.is_empty() => stdin.flush().await.map(|()| 0),
        Some(stdin) => match stdin.write(bytes).await? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        },
        None => pending().await,
    }
}

async fn read_stdout(stdout: &mut Option<Reader>, lines: &mut Lines) -> io::Result<usize> {
    match stdout {
        Some(stdout) => {
            lines.reserve();
            stdout.read_buf(&mut lines.buffer).await
        }
        None => pending().await,
    }
}

async fn read_stderr(stderr: &mut Option<Reader>, words: &mut [u8]) -> io::Result<usize> {
    match stderr {
        Some(stderr) => stderr.read(words).await,
        None => pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}
