//! How long and how much this side waits and keeps.

use std::time::Duration;

use super::Options;

/// The options of this file.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the session obeys them")]
pub(crate) struct Limits {
    /// How long the CLI may take to start and to answer `initialize`.
    pub(crate) initialize: Duration,
    /// How long it may take to answer any other question.
    pub(crate) control: Duration,
    /// How long it may take to end by itself, and again after SIGTERM.
    pub(crate) close: Duration,
    /// The longest line, in bytes.
    pub(crate) line: usize,
    /// How much of the stream is kept for a reader that is slow, in bytes.
    pub(crate) buffer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The official SDKs wait as long; a loaded machine needed 13 s.
            initialize: Duration::from_secs(60),
            control: Duration::from_secs(60),
            close: Duration::from_secs(5),
            line: 64 << 20,
            buffer: 8 << 20,
        }
    }
}

impl Options {
    /// How long the CLI may take to start; 60 seconds if this does not say otherwise.
    #[must_use]
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.limits.initialize = timeout;
        self
    }

    /// How long the CLI may take to answer a control request; 60 seconds if this does not say otherwise.
    #[must_use]
    pub fn control_timeout(mut self, timeout: Duration) -> Self {
        self.limits.control = timeout;
        self
    }

    /// How long the CLI may take to end by itself when the session is closed, and again after it was told to
    /// terminate, before it is killed; 5 seconds if this does not say otherwise.
    #[must_use]
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.limits.close = timeout;
        self
    }

    /// The longest line, in bytes, that is read; 64 MiB if this does not say otherwise. A longer one is an error on the
    /// stream, which goes on after it.
    #[must_use]
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.limits.line = bytes;
        self
    }

    /// How many bytes of the stream are kept for a reader that is slow; 8 MiB if this does not say otherwise. Then the
    /// CLI has to wait.
    #[must_use]
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.limits.buffer = bytes;
        self
    }
}
