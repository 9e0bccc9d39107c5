//! Messages between two ends in one process, for tests and for clients that live inside the engine's process.

use std::io;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use super::{Close, Frames, ReadError};

/// One end of an in-memory connection.
pub struct Memory {
    inbound: mpsc::Receiver<String>,
    outbound: Option<PollSender<String>>,
    heard: u64,
}

/// Two connected ends. Each direction holds at most `capacity` messages; a full one makes its sender wait.
#[must_use]
pub fn memory(capacity: usize) -> (Memory, Memory) {
    let (left, from_left) = mpsc::channel(capacity);
    let (right, from_right) = mpsc::channel(capacity);
    (Memory::new(from_right, left), Memory::new(from_left, right))
}

impl Memory {
    fn new(inbound: mpsc::Receiver<String>, outbound: mpsc::Sender<String>) -> Self {
        Self { inbound, outbound: Some(PollSender::new(outbound)), heard: 0 }
    }
}

impl Frames for Memory {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<String, ReadError>>> {
        self.inbound.poll_recv(cx).map(|text| {
            let text = text?;
            self.heard += text.len() as u64;
            Some(Ok(text))
        })
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.outbound {
            Some(outbound) => outbound.poll_reserve(cx).map_err(|_| io::ErrorKind::BrokenPipe.into()),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn start_send(&mut self, text: String) -> io::Result<()> {
        let outbound = self.outbound.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        outbound.send_item(text).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn start_close(&mut self, _close: &Close) {
        self.outbound = None;
    }

    async fn close(&mut self, close: Close) {
        self.start_close(&close);
    }

    fn heard(&self) -> u64 {
        self.heard
    }
}
