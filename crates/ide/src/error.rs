//! What can go wrong in this crate.

use std::{io, path::PathBuf};

use crate::consent::{Origin, Withheld};
use crate::diffs::PendingDiff;
use crate::paths::Refusal;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the IDE side. No variant ever holds a token or a file's contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system said no.
    #[error("failed to {action} {}: {cause}", path.display())]
    File {
        /// What was tried, as words that fit after "failed to".
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system answered. Not called `source`, or it would be printed twice.
        cause: io::Error,
    },
    /// The system gave no random bytes, so there is no safe token.
    #[error(
        "failed to make a random token: {0}; the system's random source must work before anything starts"
    )]
    Random(String),
    /// A directory that depends on the home directory was asked for, and there is none.
    #[error("failed to find the {wanted}: no home directory is known; set {remedy}")]
    NoHome {
        /// Which directory was wanted.
        wanted: &'static str,
        /// What the user can set instead.
        remedy: &'static str,
    },
    /// A workspace needs at least one folder.
    #[error("failed to open the workspace: it has no folder; name at least one directory")]
    NoFolders,
    /// A workspace folder cannot be used.
    #[error("failed to use {} as a workspace folder: {why}", path.display())]
    Folder {
        /// The folder as it was given.
        path: PathBuf,
        /// Why not, and what to do.
        why: String,
    },
    /// The path guard refused a path.
    #[error("refused path {}: {reason}", path.display())]
    Refused {
        /// The path as the client gave it.
        path: PathBuf,
        /// Why it was refused.
        reason: Refusal,
    },
    /// An ignore rule cannot be used.
    #[error("failed to use ignore rule `{rule}` ({origin}): {why}")]
    Rule {
        /// The rule's text.
        rule: String,
        /// Where it came from.
        origin: Origin,
        /// Why not, and what to do.
        why: String,
    },
    /// The port cannot be listened on.
    #[error(
        "failed to listen on {address} port {port}: {cause}; take another --port, or none for any free one"
    )]
    Listen {
        /// The address that was wanted.
        address: std::net::IpAddr,
        /// The port that was wanted; 0 for any.
        port: u16,
        /// What the system answered.
        cause: io::Error,
    },
    /// The engine that a handle belongs to has stopped.
    #[error("the engine has stopped")]
    Stopped,
    /// A name fits no waiting diff, or more than one.
    #[error("{}", which_diff(name, *ambiguous, waiting))]
    WhichDiff {
        /// The name as it was given.
        name: String,
        /// Whether it fits several.
        ambiguous: bool,
        /// The diffs that wait.
        waiting: Vec<PendingDiff>,
    },
    /// So much waits for a decision that no more is taken.
    #[error("{waiting} diffs with {bytes} bytes wait for a decision already; decide some of them first")]
    TooManyDiffs {
        /// How many wait.
        waiting: usize,
        /// How large they are together.
        bytes: usize,
    },
    /// No client has this pid.
    #[error("no connected Claude Code session has pid {pid}; connected: {connected:?}")]
    NoSuchClient {
        /// The pid that was asked for.
        pid: u32,
        /// The pids that are connected.
        connected: Vec<u32>,
    },
    /// The consent rules keep a file back.
    #[error("not shared: {withheld}")]
    Withheld {
        /// The file.
        path: PathBuf,
        /// Why.
        withheld: Withheld,
    },
    /// An engine cannot be reached.
    #[error("failed to connect to the engine at {address}: {why}; see `oarlock ide list`")]
    Connect {
        /// Where it was tried.
        address: std::net::SocketAddr,
        /// What went wrong.
        why: String,
    },
    /// The engine answered with an error.
    #[error("{message}")]
    Answer {
        /// A JSON-RPC code; [`NOT_FOUND`](crate::client::NOT_FOUND) for things that are not there.
        code: i64,
        /// What it said.
        message: String,
    },
}

fn which_diff(name: &str, ambiguous: bool, waiting: &[PendingDiff]) -> String {
    let mut text = if ambiguous {
        format!("`{name}` fits more than one diff; use the number")
    } else {
        format!("no diff is called `{name}`")
    };
    if waiting.is_empty() {
        text.push_str("; none is waiting");
    }
    for diff in waiting {
        text.push_str(&format!("\n  {}  {}  {}", diff.diff, diff.path.display(), diff.tab));
    }
    text
}

impl Error {
    /// Says what was tried on which path when an I/O call failed.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { action, path, cause }
    }
}
