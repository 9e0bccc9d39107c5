//! One connection: reads, dispatches, writes, in one task.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use oarlock_proto::jsonrpc::{self, ErrorObject, Id, Message};
use serde_json::value::RawValue;

use crate::frame::{Close, Frames, ReadError};
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::responder::Responder;

/// After so many messages in a row a connection lets the others have a turn.
const TURN: usize = 64;
/// A message larger than this is worth a word.
const LARGE: usize = 1 << 20;
/// How long the work of a closed connection may take to clean up.
const GRACE: Duration = Duration::from_secs(2);

/// What one side does with the other's messages.
pub trait Service: Send {
    /// A request came. Answer it with `responder`, now or from work given to `tasks`.
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder, tasks: &mut Tasks);

    /// A notification came.
    fn notification(&mut self, method: &str, params: Option<&RawValue>, tasks: &mut Tasks);

    /// A message of more than a megabyte was handled, and its text is freed.
    fn large_message(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// The connection is over. Work in `tasks` gets a moment to end by itself, then it is dropped.
    fn closed(&mut self, ended: &Ended);
}

/// How a connection ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// The other side closed it.
    ByPeer,
    /// We closed it.
    ByUs(Close),
    /// It broke.
    Lost(ReadError),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByPeer => f.write_str("closed by the client"),
            Self::ByUs(close) => write!(f, "{}", close.reason),
            Self::Lost(error) => write!(f, "{error}"),
        }
    }
}

/// Bounds of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that may wait for an answer; one more is refused.
    pub pending: usize,
    /// Bytes that may wait for a slow reader; more, and it is closed.
    pub queued: usize,
    /// The code of the errors that say that a limit was reached. Protocols give the usual one other meanings.
    pub code: i32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pending: 1024, queued: 64 << 20, code: jsonrpc::LIMIT_REACHED }
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that belongs to a connection and runs inside its task: it ends with the connection, never later.
#[derive(Default)]
pub struct Tasks {
    /// Answers; they get a moment to settle when the connection is over.
    running: FuturesUnordered<Work>,
    fresh: Vec<Work>,
    /// Dropped when the connection is over.
    background: FuturesUnordered<Work>,
}

impl Tasks {
    /// Adds work. A panic in it ends only this piece of work; its responder then answers -32603.
    pub fn add(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.fresh.push(guarded(work));
    }

    /// Adds work that has no meaning without the connection, such as a keepalive.
    pub fn add_background(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.push(guarded(work));
    }

    /// Polls everything that is new or was woken; true when something ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        // Most work is done when it is first polled: such work never enters the set.
        while let Some(mut work) = self.fresh.pop() {
            match work.as_mut().poll(cx) {
                Poll::Ready(()) => progress = true,
                Poll::Pending => self.running.push(work),
            }
        }
        for set in [&mut self.running, &mut self.background] {
            if !set.is_empty() {
                while let Poll::Ready(Some(())) = set.poll_next_unpin(cx) {
                    progress = true;
                }
            }
        }
        progress
    }

    fn has_answers_to_come(&self) -> bool {
        !self.running.is_empty() || !self.fresh.is_empty()
    }
}

fn guarded(work: impl Future<Output = ()> + Send + 'static) -> Work {
    Box::pin(AssertUnwindSafe(work).catch_unwind().map(|outcome| {
        if outcome.is_err() {
            tracing::error!("a piece of work panicked");
        }
    }))
}

/// A connection before it runs.
pub struct Connection<F> {
    frames: F,
    outbox: Arc<Outbox>,
    limits: Limits,
}

impl<F: Frames> Connection<F> {
    /// A connection over `frames`.
    pub fn new(frames: F, limits: Limits) -> Self {
        Self { frames, outbox: Arc::new(Outbox::new(limits.queued)), limits }
    }

    /// A handle to the other side.
    #[must_use]
    pub fn peer(&self) -> Peer {
        Peer { outbox: self.outbox.clone() }
    }

    /// Runs until one side closes or the connection breaks.
    pub async fn run(mut self, mut service: impl Service) -> Ended {
        let mut tasks = Tasks::default();
        let ended = poll_fn(|cx| self.poll(cx, &mut service, &mut tasks)).await;
        service.closed(&ended);
        tasks.background.clear();
        // Views close and answers (a tool error for each open diff) go out before the goodbye, as far as they can.
        let settle = poll_fn(|cx| {
            tasks.poll(cx);
            let drained = self.poll_drain(cx).is_ready();
            if drained && !tasks.has_answers_to_come() { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = tokio::time::timeout(GRACE, settle).await;
        match &ended {
            Ended::ByUs(close) => self.frames.close(close.clone()).await,
            Ended::Lost(ReadError::TooLarge { .. }) => {
                self.frames.close(Close::new(1009, ended.to_string())).await;
            }
            Ended::Lost(ReadError::Protocol(_)) => {
                self.frames.close(Close::new(1002, ended.to_string())).await
            }
            Ended::ByPeer | Ended::Lost(_) => {}
        }
        self.outbox.finish();
        ended
    }

    fn poll(&mut self, cx: &mut Context<'_>, service: &mut impl Service, tasks: &mut Tasks) -> Poll<Ended> {
        self.outbox.register(cx.waker());
        for _ in 0..TURN {
            let mut progress = tasks.poll(cx);
            if let Some(close) = self.outbox.closing() {
                return Poll::Ready(Ended::ByUs(close));
            }
            if let Poll::Ready(Err(error)) = self.poll_write(cx) {
                return Poll::Ready(Ended::Lost(error.into()));
            }
            // A peer that does not read its answers is not given more of them.
            if !self.outbox.is_loaded()
                && let Poll::Ready(frame) = self.frames.poll_next(cx)
            {
                progress = true;
                match frame {
                    Some(Ok(text)) => {
                        let bytes = text.as_ref().len();
                        self.dispatch(text.as_ref(), service, tasks);
                        drop(text);
                        if bytes > LARGE {
                            service.large_message(bytes);
                        }
                    }
                    Some(Err(error @ ReadError::Skipped { .. })) => {
                        self.refuse(&Id::null(), &ErrorObject::new(self.limits.code, error.to_string()));
                    }
                    Some(Err(ReadError::NotText)) => self.refuse(&Id::null(), &not_text()),
                    Some(Err(error)) => return Poll::Ready(Ended::Lost(error)),
                    None => return Poll::Ready(Ended::ByPeer),
                }
            }
            self.outbox.set_heard(self.frames.heard());
            if !progress && self.outbox.is_empty() {
                return match self.frames.poll_flush(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Ended::Lost(error.into())),
                    _ => Poll::Pending,
                };
            }
            if !progress {
                // The socket is full; its waker is set.
                return Poll::Pending;
            }
        }
        // Fair to others: what was answered goes out, and we come back.
        if let Poll::Ready(Err(error)) = self.poll_drain(cx) {
            return Poll::Ready(Ended::Lost(error.into()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands queued messages to the framing, as far as it takes them.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.outbox.is_empty() {
            std::task::ready!(self.frames.poll_ready(cx))?;
            let Some(text) = self.outbox.pop() else { break };
            self.frames.start_send(text)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        std::task::ready!(self.poll_write(cx))?;
        self.frames.poll_flush(cx)
    }

    fn dispatch(&mut self, text: &str, service: &mut impl Service, tasks: &mut Tasks) {
        match jsonrpc::read(text) {
            Ok(Message::Request { id, method, params }) => {
                let pending = self.outbox.unanswered.load(Ordering::Relaxed);
                if pending >= self.limits.pending {
                    let why = format!("too many requests pending (limit {})", self.limits.pending);
                    return self.refuse(&id, &ErrorObject::new(self.limits.code, why));
                }
                let responder = Responder::new(self.outbox.clone(), id);
                // The responder is dropped while unwinding, and answers -32603.
                guard(|| service.request(&method, params, responder, tasks));
            }
            Ok(Message::Notification { method, params }) => {
                guard(|| service.notification(&method, params, tasks));
            }
            Ok(Message::Response { id, outcome }) => {
                // An answer to nothing we asked is late or lost, and of no use.
                let asked = id.as_u64().and_then(|id| self.outbox.answered(id));
                if let Some(asked) = asked {
                    let _ = asked.send(outcome.map(ToOwned::to_owned));
                }
            }
            Err(malformed) => self.refuse(&malformed.id, &malformed.error),
        }
    }

    fn refuse(&self, id: &Id, error: &ErrorObject) {
        self.outbox.push(jsonrpc::write_error(id, error));
    }
}

fn guard(work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("a message's handling panicked");
    }
}

fn not_text() -> ErrorObject {
    ErrorObject::new(jsonrpc::PARSE_ERROR, "not JSON: the message is not UTF-8 text")
}
