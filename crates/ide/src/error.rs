//! What can go wrong in this crate.

use std::{io, path::PathBuf};

use crate::{consent::Origin, paths::Refusal};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the IDE side. No variant ever holds a token or a file's contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system said no.
    #[error("failed to {action} {}: {source}", path.display())]
    File {
        /// What was tried, as words that fit after "failed to".
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
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
}

impl Error {
    /// Says what was tried on which path when an I/O call failed.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
