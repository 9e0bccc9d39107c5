//! What happens in the engine, for logs and for `oarlock serve --json`.

use std::path::Path;

use serde::Serialize;

/// Told about everything that happens. Called from the engine's tasks: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Something that happened. Its JSON is a line of `oarlock serve --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<'a> {
    /// A client came in; it has said nothing yet.
    ClientConnected {
        /// The number this engine gave it.
        client: u64,
    },
    /// A client said that it is a Claude Code session: `ide_connected`.
    ClientReady {
        /// The number this engine gave it.
        client: u64,
        /// Its process, when it is a CLI.
        pid: Option<u32>,
        /// Where that process runs.
        cwd: Option<&'a Path>,
        /// The client's own name.
        name: &'a str,
        /// The client's own version.
        version: &'a str,
    },
    /// A client is gone and its state is freed.
    ClientGone {
        /// The number this engine gave it.
        client: u64,
        /// How the connection ended.
        reason: &'a str,
    },
    /// A tool was called and has answered.
    ToolCall {
        /// The number this engine gave the client.
        client: u64,
        /// The tool's name.
        tool: &'a str,
        /// Whether it succeeded.
        ok: bool,
        /// Microseconds until the answer.
        us: u64,
    },
    /// A message of more than a megabyte was handled, and its memory is free again.
    LargeMessage {
        /// The number this engine gave the client.
        client: u64,
        /// Its size.
        bytes: usize,
    },
    /// A diff waits for a decision.
    DiffOpened {
        /// The short id that `oarlock ide accept` takes.
        diff: &'a str,
        /// The number this engine gave the client.
        client: u64,
        /// The file that is to be changed.
        path: &'a Path,
        /// The client's name for the diff.
        tab: &'a str,
    },
    /// A diff was decided.
    DiffDecided {
        /// The short id.
        diff: &'a str,
        /// `accepted`, `rejected`, `closed` or `failed`.
        decision: &'a str,
        /// Who or what decided.
        by: &'a str,
        /// Why nobody could decide, when it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'a str>,
    },
    /// Sharing was paused or resumed.
    Paused {
        /// Whether it is paused now.
        paused: bool,
    },
}
