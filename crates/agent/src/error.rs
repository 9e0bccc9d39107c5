//! What can go wrong, and what to do about it.

use std::path::PathBuf;
use std::time::Duration;

use crate::Exit;
use crate::stream::{AssistantError, BadLine, Failure, TurnResult};

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
    /// The program could not be started.
    #[error("failed to start {}: {source}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The CLI would not begin the session: there is no conversation to resume, say.
    #[error("claude did not begin the session: {reason}")]
    NotStarted {
        /// Why, in the CLI's words.
        reason: String,
        /// How it ended.
        exit: Exit,
    },
    /// The CLI is too old for an option.
    #[error(
        "this claude is too old for the option {option} ({flag}); update it (`claude update`), or leave the option out"
    )]
    TooOld {
        /// The method of [`Options`](crate::Options) behind it.
        option: &'static str,
        /// The flag that it became.
        flag: String,
    },
    /// The CLI has ended, and not because it was asked to.
    #[error("claude has ended: {0}")]
    Exited(Exit),
    /// The session is over.
    #[error("the session is over")]
    Closed,
    /// A control request was not answered.
    #[error("claude has not answered {subtype} within {after:?}{}", wedge(*.silent))]
    NoAnswer {
        /// What was asked.
        subtype: String,
        /// How long it was waited for.
        after: Duration,
        /// Nothing else was heard either: the CLI hangs.
        silent: bool,
    },
    /// A control request was refused.
    #[error("claude refused {subtype}: {reason}")]
    Refused {
        /// What was asked.
        subtype: String,
        /// Why, in the CLI's words.
        reason: String,
        /// The kind of refusal, which newer CLIs give.
        code: Option<String>,
    },
    /// This CLI does not know a control request.
    #[error("this claude does not know {subtype}; a newer one may (`claude update`)")]
    Unsupported {
        /// What was asked.
        subtype: String,
    },
    /// A line was larger than the limit and was passed over. The stream goes on after it.
    #[error(
        "claude wrote a line of more than {limit} bytes, which was passed over; see the option line_limit"
    )]
    LineTooLong {
        /// The limit.
        limit: usize,
    },
    /// The CLI is not logged in, or its key is not accepted.
    #[error("claude is not logged in: {message}; run `claude` and log in, or set ANTHROPIC_API_KEY")]
    Login {
        /// The API's words.
        message: String,
    },
    /// The API failed.
    #[error("the API failed{}: {message}", .status.map(|status| format!(" with status {status}")).unwrap_or_default())]
    Api {
        /// The HTTP status, when there was an answer.
        status: Option<u64>,
        /// What kind of failure.
        kind: Option<AssistantError>,
        /// The API's words.
        message: String,
    },
    /// The turn did not come to its end.
    #[error("the turn ended early: {}", turn(.0))]
    Turn(Box<TurnResult>),
    /// The answer does not have the type that was asked for.
    #[error("the answer is not what the schema asks for: {reason}")]
    Output {
        /// What is wrong.
        reason: String,
        /// The answer.
        text: String,
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

impl Error {
    /// Is this the end of a stream? A line that cannot be read is not.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Line(_) | Self::LineTooLong { .. })
    }

    pub(crate) fn refused(subtype: String, failure: Failure) -> Self {
        let unsupported = failure.error_code.as_deref() == Some("unsupported_request")
            || failure.error.starts_with("Unsupported control request subtype");
        if unsupported {
            return Self::Unsupported { subtype };
        }
        Self::Refused { subtype, reason: failure.error, code: failure.error_code }
    }
}

fn wedge(silent: bool) -> &'static str {
    if silent { "; it has said nothing else either, so it hangs: close the session" } else { "" }
}

fn turn(result: &TurnResult) -> String {
    let errors = result.errors.as_deref().unwrap_or_default().join("; ");
    match errors.as_str() {
        // Diagnostics of an interrupt say nothing to people.
        "" => result.subtype.to_string(),
        errors if errors.starts_with("[ede_diagnostic]") => "it was interrupted".to_owned(),
        errors => errors.to_owned(),
    }
}
