//! Limits of a session: time, bytes, and how it is started.

use std::sync::Arc;
use std::time::Duration;

use crate::process::Leftovers;
use crate::transport::{Launch, Transport};
use crate::{Buffer, Error, Options};

impl Options {
    /// How long a control request may take; a minute by default.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.limits.request = limit;
        self
    }

    /// How long the CLI may take to be ready; a minute by default. A busy machine needs more than ten seconds.
    #[must_use]
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.limits.start = limit;
        self
    }

    /// How long the CLI may take to end by itself, and again after SIGTERM; five seconds by default.
    #[must_use]
    pub fn close_grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// Shall everything that the CLI has started end with it (Linux), also when it ends by itself? By default what it leaves
    /// running then, such as a server that was started in the background, stays.
    #[must_use]
    pub fn end_leftovers(mut self, end: bool) -> Self {
        self.manner.leftovers = if end { Leftovers::End } else { Leftovers::Stay };
        self
    }

    /// How long to let deltas gather after one was read (Unix). The first after a silence is never held. Text then comes in
    /// larger pieces, and costs a fraction of the time. By default each is read as it comes.
    #[must_use]
    pub fn stream_pause(mut self, pause: Duration) -> Self {
        self.manner.pause = Some(pause);
        self
    }

    /// How long background tasks may keep a finished session alive without a sign of life; ten minutes by default.
    #[must_use]
    pub fn background_wait(mut self, limit: Duration) -> Self {
        self.limits.background_wait = limit;
        self
    }

    /// How much may wait to be read.
    #[must_use]
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.limits.buffer = buffer;
        self
    }

    /// The longest line that is read, in bytes; 64 MiB by default. A longer one is passed over and told.
    #[must_use]
    pub fn line_limit(mut self, bytes: usize) -> Self {
        self.limits.line = bytes;
        self
    }

    /// Starts the CLI in another way: by ssh, in a container. [`transport::spawn`](crate::transport::spawn) makes a transport
    /// of any command.
    #[must_use]
    pub fn spawn_with(
        mut self,
        spawn: impl Fn(Launch) -> Result<Transport, Error> + Send + Sync + 'static,
    ) -> Self {
        self.spawn_with = Some(Arc::new(spawn));
        self
    }
}
