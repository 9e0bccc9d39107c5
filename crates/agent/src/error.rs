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
    /// What was given is no session id.
    #[error("`{id}` is no session id; one looks like 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b")]
    NoSessionId {
        /// What was given.
        id: String,
    },
    /// There is no such session.
    #[error("there is no session `{name}` {place}; list the sessions to see which there are")]
    NoSession {
        /// Its id, the beginning of it, or its title.
        name: String,
        /// Where it was looked for.
        place: String,
    },
    /// Several sessions are meant by the same words.
    #[error("`{name}` can be several sessions: {}; give more of the id", .ids.join(", "))]
    SeveralSessions {
        /// What was given.
        name: String,
        /// The ids of some that fit.
        ids: Vec<String>,
    },
    /// A running `claude` has the session open.
    #[error("session {id} is open in process {pid}; end that first, or force it")]
    SessionOpen {
        /// The session.
        id: String,
        /// The process.
        pid: u32,
    },
    /// A session has no such message.
    #[error("session {session} has no message {message}; read the session to see which it has")]
    NoMessage {
        /// The session.
        session: String,
        /// The message's uuid.
        message: String,
    },
    /// A session has nothing that could be continued.
    #[error("session {session} has no messages, so there is nothing to fork")]
    NoMessages {
        /// The session.
        session: String,
    },
    /// A name with nothing in it.
    #[error("the {what} is empty; give it at least one visible character")]
    Blank {
        /// What the name is for.
        what: &'static str,
    },
    /// A path leads out of the directory that it should be in.
    #[error("{} leads out of {}, so it is left alone; remove the link, or work in its target", .path.display(), .root.display())]
    Outside {
        /// The path.
        path: PathBuf,
        /// Where it should be.
        root: PathBuf,
    },
    /// A store of sessions failed.
    #[error("the session store failed to {action}: {source}")]
    Store {
        /// What was tried, after "failed to".
        action: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
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
