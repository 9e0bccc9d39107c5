//! What can go wrong, and what to do about it.

use std::path::PathBuf;

use crate::stream::BadLine;

/// A failure of the SDK, the CLI or the API behind it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `claude` to start.
    #[error("no `claude` found; looked in {}; {INSTALL}", .looked.join(", "))]
    ProgramNotFound {
        /// Where it was looked for.
        looked: Vec<String>,
    },
    /// The program that was named cannot be started.
    #[error("{who} says {}, which is no program that can be started; correct or unset it", .path.display())]
    NoProgram {
        /// Who named it: an option, a variable.
        who: String,
        /// What was named.
        path: PathBuf,
    },
    /// The directory to work in is not there.
    #[error("the working directory {} is not there; make it, or name another one", .path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// An option has a value that the CLI cannot be given.
    #[error("the option {option} cannot be used: {reason}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The CLI does not know an option.
    #[error(
        "this `claude` is too old for the option {option} (it does not know {flag}); update it, or leave the option out"
    )]
    TooOld {
        /// The method of [`Options`](crate::Options) behind it.
        option: &'static str,
        /// The flag that it became.
        flag: String,
    },
    /// A line that is no message. The stream goes on after it.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// Input or output failed.
    #[error("failed to {action}: {source}")]
    Io {
        /// What was tried, after "failed to".
        action: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

pub(crate) const INSTALL: &str = "install it (`npm install -g @anthropic-ai/claude-code`, or see \
                                  https://claude.com/claude-code), or name its path";
