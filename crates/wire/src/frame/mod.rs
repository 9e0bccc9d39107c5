//! Framings: how one message is told from the next.

use std::io;
use std::task::{Context, Poll};

mod lines;
mod memory;
mod stdio;
mod ws;

pub use lines::Lines;
pub use memory::{Memory, memory};
pub use stdio::{Input, Output, stdin, stdout};
pub use ws::{DialError, Ws, WsOptions};

/// A connection that carries whole messages.
///
/// The shape is that of `Stream` and `Sink`, joined, because one task owns both directions.
pub trait Frames: Send + Unpin {
    /// A received message's text.
    type Text: AsRef<str> + Send;

    /// The next message; `None` when the other side is done.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Self::Text, ReadError>>>;

    /// Whether a message can be taken for sending without buffering more than a little.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Takes a message for sending. Call only after `poll_ready` said so.
    ///
    /// # Errors
    /// When the connection is gone.
    fn start_send(&mut self, text: String) -> io::Result<()>;

    /// Pushes what was taken towards the other side.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Says goodbye; the other side's last messages can still be read. Nothing can be sent after it.
    fn start_close(&mut self, close: &Close);

    /// Says goodbye, and waits a moment for the other side to do the same.
    fn close(&mut self, close: Close) -> impl Future<Output = ()> + Send;

    /// How many bytes have come in so far: any byte is a sign of life.
    fn heard(&self) -> u64;
}

/// Why and how a connection is ended by us: a WebSocket close code and a reason for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// A code of RFC 6455.
    pub code: u16,
    /// At most 123 bytes are sent.
    pub reason: String,
}

impl Close {
    /// A close with a code and a reason.
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// 1001: the server stops.
    #[must_use]
    pub fn going_away() -> Self {
        Self::new(1001, "the server is shutting down")
    }
}

/// What can go wrong with one inbound message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The message is not text; the connection goes on.
    #[error("not UTF-8 text")]
    NotText,
    /// The message is larger than allowed and was passed over; the connection goes on.
    #[error("message larger than the limit of {limit} bytes; it was passed over")]
    Skipped {
        /// What was allowed.
        limit: usize,
    },
    /// The message is larger than allowed; the connection must end.
    #[error("message larger than the limit of {limit} bytes")]
    TooLarge {
        /// What was allowed.
        limit: usize,
    },
    /// The other side broke the framing; the connection must end.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The connection broke.
    #[error("connection lost: {0}")]
    Io(#[from] io::Error),
}
