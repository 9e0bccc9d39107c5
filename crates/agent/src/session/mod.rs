//! A running session: the handle, and the stream of what the CLI says.

mod calls;
mod driver;
mod lines;
mod queue;
mod state;
mod tail;

use std::fmt;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use calls::Callbacks;
use driver::{Command, Driver, Outgoing};
pub use queue::Buffer;
use queue::{Item, Queue};
pub use state::{Phase, State, Task};

use crate::stream::{
    Content, ContentBlock, ControlRequest, Json, McpMessage, Message, Request, Response, User, decode, reply,
};
use crate::transport::Transport;
use crate::{Error, Options};

/// Limits of a session, all in one place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) line: usize,
    pub(crate) buffer: Buffer,
    /// For the answer to a control request.
    pub(crate) request: Duration,
    /// For the first answer.
    pub(crate) start: Duration,
    /// Between the end of the input, SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
    /// How long a background task may keep a finished session alive.
    pub(crate) background_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line: 64 << 20,
            buffer: Buffer::default(),
            request: Duration::from_secs(60),
            start: Duration::from_secs(60),
            grace: Duration::from_secs(5),
            background_wait: Duration::from_secs(600),
        }
    }
}

/// What the handles, the stream and the driver share.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    /// Are messages replayed, so that it is known when one has been taken up?
    pub(crate) replays: bool,
    verbatim_prompts: bool,
    pub(crate) state: watch::Sender<State>,
    pub(crate) end: watch::Sender<Option<End>>,
    /// Bytes read so far.
    pub(crate) heard: AtomicU64,
    /// A request got no answer, and nothing else was heard either.
    pub(crate) wedged: AtomicBool,
    pub(crate) on_stderr: Option<crate::options::OnStderr>,
    pub(crate) mirror: Option<crate::store::Mirror>,
    info: OnceLock<reply::Initialize>,
    pid: Option<u32>,
    requests: AtomicU64,
}

/// How it ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) exit: Exit,
    pub(crate) errors: Vec<String>,
}

/// How the CLI's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    status: Option<ExitStatus>,
    stderr: String,
}

impl Exit {
    fn new(status: Option<ExitStatus>, stderr: String) -> Self {
        Self { status, stderr }
    }

    /// The status. There is none without a process.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// The exit code, when it ended by itself.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status?.code()
    }

    /// Did it end well?
    #[must_use]
    pub fn success(&self) -> bool {
        self.status.is_none_or(|status| status.success())
    }

    /// The end of what it wrote to stderr: for logs. It may hold program text; people want
    /// [`explanation`](Self::explanation).
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// What stderr says about the end, in a line or two fit to be shown; `None` when it explains nothing.
    #[must_use]
    pub fn explanation(&self) -> Option<String> {
        // Program text comes in long lines, and stack traces in indented ones.
        let fit = |line: &&str| !line.trim().is_empty() && line.len() < 400 && !line.starts_with([' ', '\t']);
        // Node ends with its own version.
        let is_told = |line: &&str| fit(line) && !line.starts_with("Node.js v");
        let lines: Vec<&str> = self.stderr.lines().filter(is_told).collect();
        // `Error: …`, `error: …`, `TypeError: …`
        let is_error = |line: &&&str| {
            let name = line.split([':', ' ']).next().unwrap_or_default().to_lowercase();
            name.ends_with("error")
        };
        let error = lines.iter().rev().find(is_error);
        error.or(lines.last()).map(|line| line.trim().to_owned())
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("its output ended")?,
        }
        match self.explanation() {
            Some(explanation) => write!(f, "; it said: {explanation}"),
            None => Ok(()),
        }
    }
}

/// A message to the model: text, content blocks, or a whole [`User`] message with its own uuid and priority.
#[derive(Debug, Clone)]
pub struct Prompt(User);

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self(User::prompt(text))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self(User::prompt(text))
    }
}

impl From<Content> for Prompt {
    fn from(content: Content) -> Self {
        Self(User::prompt(content))
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self(User::prompt(Content::Blocks(blocks)))
    }
}

impl From<User> for Prompt {
    fn from(user: User) -> Self {
        Self(user)
    }
}

/// The handle of a session. Clones are cheap; when the last one is dropped the session ends as soon as what runs is done.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    messages: mpsc::Sender<Outgoing>,
}

/// Everything the CLI says, in order. One owner reads it; it may be put down and taken up again at any `await`.
///
/// A line that cannot be read is an `Err` and the stream goes on ([`Error::is_fatal`] tells). When the CLI dies, that is the
/// last item. Dropping the stream throws away what comes; dropping it and all handles ends the CLI.
#[must_use = "messages wait here to be read"]
pub struct Events {
    queue: Arc<Queue>,
    lines: Bytes,
}

impl Options {
    /// Starts the CLI and waits until it is ready.
    ///
    /// # Errors
    /// When there is no `claude`, it does not start, an option is wrong, or it does not answer in time.
    pub async fn connect(self) -> Result<(Session, Events), Error> {
        let launch = self.launch()?;
        self.check()?;
        self.bring_back().await?;
        let transport = match &self.spawn_with {
            Some(spawn) => spawn(launch)?,
            None => launch.start()?,
        };
        self.connect_over(transport).await
    }

    /// Begins a session with a CLI that runs already, or with something that speaks like one.
    ///
    /// Options that become arguments or variables are checked as ever, but they have no effect: whoever started the CLI has
    /// given it [its own](Self::launch).
    ///
    /// # Errors
    /// When an option is wrong, or it does not answer, or refuses.
    pub async fn connect_over(self, transport: Transport) -> Result<(Session, Events), Error> {
        self.check()?;
        let mut initialize = self.initialize();
        self.callbacks.announce(&mut initialize);
        let (session, events) = start(&self, transport);
        let answer =
            session.ask(Request::Initialize(Box::new(initialize)), session.shared.limits.start).await;
        match answer {
            Ok(answer) => {
                let info: reply::Initialize = answer.read().unwrap_or_default();
                session.shared.state.send_modify(|state| {
                    state.version = info.claude_code_version.clone();
                    state.permission_mode = info.current_permission_mode.clone();
                    state.capabilities.extend(info.capabilities.iter().flatten().cloned());
                });
                let _ = session.shared.info.set(info);
                Ok((session, events))
            }
            Err(error) => {
                let _ = session.commands.send(Command::Close).await;
                Err(session.why_not(error).await)
            }
        }
    }
}

fn start(options: &Options, transport: Transport) -> (Session, Events) {
    let shared = Arc::new(Shared {
        limits: options.limits,
        replays: options.replays_messages(),
        verbatim_prompts: options.verbatim_prompts,
        state: watch::Sender::new(State::default()),
        end: watch::Sender::new(None),
        heard: AtomicU64::new(0),
        wedged: AtomicBool::new(false),
        on_stderr: options.on_stderr.clone(),
        mirror: options.mirror(),
        info: OnceLock::new(),
        pid: transport.process.as_ref().and_then(|process| process.id()),
        requests: AtomicU64::new(0),
    });
    let queue = Queue::new(options.limits.buffer);
    // Small: a message is taken as soon as the one before is nearly written.
    let (commands, commands_received) = mpsc::channel(64);
    let (messages, messages_received) = mpsc::channel(1);
    let session = Session { shared: shared.clone(), commands, messages };
    // Weak, or the driver would keep the session alive by itself.
    let weak = (shared.clone(), session.commands.downgrade());
    let send = Arc::new(move |server_name, message| -> crate::tool::BoxFuture<Result<(), Error>> {
        let (shared, commands) = weak.clone();
        Box::pin(async move {
            let commands = commands.upgrade().ok_or(Error::Closed)?;
            let request = Request::McpMessage(McpMessage { server_name, message, ..Default::default() });
            ask(&shared, &commands, request, shared.limits.request).await.map(drop)
        })
    });
    let calls = calls::Calls::new(options.callbacks.clone(), send);
    let driver =
        Driver::new(transport, queue.clone(), shared.clone(), calls, commands_received, messages_received);
    let span = tracing::debug_span!("session", pid = shared.pid);
    tokio::spawn(tracing::Instrument::instrument(driver.run(), span));
    (session, Events { queue, lines: Bytes::new() })
}

/// Asks the CLI, and waits for the answer.
async fn ask(
    shared: &Shared,
    commands: &mpsc::Sender<Command>,
    request: Request,
    limit: Duration,
) -> Result<Json, Error> {
    let subtype = request.tag().to_owned();
    let id = format!("oarlock_{}", shared.requests.fetch_add(1, Ordering::Relaxed));
    let line = line(&Message::ControlRequest(ControlRequest::new(id.clone(), request)))?;
    let (answer, answered) = oneshot::channel();
    let heard = shared.heard.load(Ordering::Relaxed);
    let asked = async {
        commands.send(Command::Request { id, line, answer }).await.map_err(|_| ())?;
        answered.await.map_err(|_| ())
    };
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(Response::Success(success))) => Ok(success.response.unwrap_or_default()),
        Ok(Ok(Response::Error(failure))) => Err(Error::refused(subtype, failure)),
        Ok(Ok(other)) => Err(Error::Refused { subtype, reason: format!("{other:?}"), code: None }),
        Ok(Err(())) => Err(over(shared, limit).await),
        Err(_) => {
            let silent = shared.heard.load(Ordering::Relaxed) == heard;
            if silent {
                shared.wedged.store(true, Ordering::Relaxed);
            }
            Err(Error::NoAnswer { subtype, after: limit, silent })
        }
    }
}

/// Why nothing can be said any more: how the CLI ended, which is known soon, if it does.
async fn over(shared: &Shared, limit: Duration) -> Error {
    let mut end = shared.end.subscribe();
    let ended = tokio::time::timeout(limit, end.wait_for(Option::is_some)).await;
    match ended.as_ref().map(|end| end.as_deref()) {
        Ok(Ok(Some(end))) => Error::Exited(end.exit.clone()),
        _ => Error::Closed,
    }
}

fn line<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::Io { action: "write a message as JSON".into(), source: error.into() })
}

impl Session {
    /// Sends a message to the model and gives its uuid. A turn begins when none runs; else the message is queued, or read
    /// by the model in the running turn.
    ///
    /// It returns when the message is on its way. A CLI that does not read holds the sender back once some hundred kilobytes
    /// wait for it.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<String, Error> {
        let Prompt(mut user) = prompt.into();
        let uuid = user.uuid.get_or_insert_with(|| uuid::Uuid::new_v4().to_string()).clone();
        if self.shared.verbatim_prompts {
            user.client_composed = Some(true);
        }
        let line = line(&Message::User(Box::new(user)))?;
        let (taken, was_taken) = oneshot::channel();
        let message = Outgoing { line, uuid: Some(uuid.clone()), taken };
        let gone = self.messages.send(message).await.is_err() || was_taken.await.is_err();
        if gone { Err(over(&self.shared, self.shared.limits.request).await) } else { Ok(uuid) }
    }

    /// Asks the CLI anything, also what this crate does not know: [`Request::Unknown`] with the raw JSON.
    ///
    /// # Errors
    /// When the CLI refuses, does not answer in time, or is gone.
    pub async fn request(&self, request: Request) -> Result<Json, Error> {
        self.ask(request, self.shared.limits.request).await
    }

    /// [`request`](Self::request) with a time-out of its own.
    ///
    /// # Errors
    /// When the CLI refuses, does not answer in time, or is gone.
    pub async fn ask(&self, request: Request, limit: Duration) -> Result<Json, Error> {
        ask(&self.shared, &self.commands, request, limit).await
    }

    /// What the CLI said about itself at the start: commands, agents, models, account.
    #[must_use]
    pub fn info(&self) -> &reply::Initialize {
        static NONE: OnceLock<reply::Initialize> = OnceLock::new();
        self.shared.info.get().unwrap_or_else(|| NONE.get_or_init(reply::Initialize::default))
    }

    /// What is known about the session now.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// The state, as it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// Can this CLI do something? The names are the CLI's own (`interrupt_receipt_v1`).
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.shared.state.borrow().capabilities.contains(capability)
    }

    /// The CLI's process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.shared.pid
    }

    /// The program has no more to say. The input is closed when the session allows it: no turn, task or callback runs, and
    /// none is owed. The stream ends after that.
    pub async fn finish(&self) {
        let _ = self.commands.send(Command::Finish).await;
    }

    /// Ends the session: the input is closed, and a CLI that does not end within the grace is terminated, then killed. A turn
    /// that runs gets the grace to end; [`interrupt`](Self::interrupt) it first, or wait for its result.
    ///
    /// # Errors
    /// Never today.
    pub async fn close(&self) -> Result<Exit, Error> {
        let _ = self.commands.send(Command::Close).await;
        Ok(self.wait().await)
    }

    /// Kills the CLI and all that it has started, now.
    pub async fn kill(&self) -> Exit {
        let _ = self.commands.send(Command::Kill).await;
        self.wait().await
    }

    /// Waits for the CLI's end.
    pub async fn wait(&self) -> Exit {
        match self.shared.end.subscribe().wait_for(Option::is_some).await.as_deref() {
            Ok(Some(end)) => end.exit.clone(),
            // The sender lives as long as we do, so this does not happen.
            _ => Exit::new(None, String::new()),
        }
    }

    /// Is it over?
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.end.borrow().is_some()
    }

    /// Why the session could not begin, in the best words there are.
    async fn why_not(&self, error: Error) -> Error {
        if !matches!(error, Error::Exited(_)) {
            return error;
        }
        let end = self.shared.end.borrow().clone();
        match end {
            Some(End { exit, errors }) if !errors.is_empty() => {
                Error::NotStarted { reason: errors.join("; "), exit }
            }
            Some(End { exit, .. }) => {
                crate::options::explain_unknown_option(exit.stderr()).unwrap_or(Error::Exited(exit))
            }
            None => error,
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("pid", &self.shared.pid).field("state", &self.state()).finish()
    }
}

impl Stream for Events {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            while !self.lines.is_empty() {
                let end = memchr::memchr(b'\n', &self.lines).map_or(self.lines.len(), |at| at + 1);
                let decoded = decode(&self.lines[..end]);
                self.lines.advance(end);
                match decoded {
                    Err(bad) if bad.is_blank() => {}
                    decoded => return Poll::Ready(Some(decoded.map_err(Error::Line))),
                }
            }
            match std::task::ready!(self.queue.poll_take(cx)) {
                Some(Item::Lines(lines)) => self.lines = lines,
                Some(Item::Trouble(error)) => return Poll::Ready(Some(Err(*error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Events {
    /// The next message.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Reads to the next `result`, which ends a turn, and gives all that came before it to `each`. `None`: the stream ended.
    ///
    /// Lines that cannot be read are passed over. A result may answer several messages, or none (a turn that the CLI started
    /// by itself): see its `user_message_uuids` and `origin`.
    ///
    /// # Errors
    /// When the CLI died.
    pub async fn turn(
        &mut self,
        mut each: impl FnMut(Message),
    ) -> Result<Option<Box<crate::stream::TurnResult>>, Error> {
        while let Some(item) = self.next().await {
            match item {
                Ok(Message::Result(result)) => return Ok(Some(result)),
                Ok(message) => each(message),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => tracing::warn!(%error, "a line was passed over"),
            }
        }
        Ok(None)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
