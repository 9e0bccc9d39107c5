//! Which conversation it is, and where it is kept.

use std::path::PathBuf;

use super::args::Args;
use super::{Options, refuse};
use crate::Error;
use crate::stream::Initialize;

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Conversation {
    pub(super) resume: Option<String>,
    goes_on: bool,
    fork: bool,
    session_id: Option<String>,
    resume_at: Option<String>,
    drops_turn: Option<String>,
    not_kept: bool,
    mirror: bool,
    title: Option<String>,
    dirs: Vec<PathBuf>,
    worktree: Option<Option<String>>,
}

impl Options {
    /// Goes on with a conversation, by its session id or its title (`--resume`). Its history is not repeated on the
    /// stream.
    #[must_use]
    pub fn resume(mut self, session: impl Into<String>) -> Self {
        self.conversation.resume = Some(session.into());
        self
    }

    /// Goes on with the last conversation of the working directory (`--continue`).
    #[must_use]
    pub fn continue_conversation(mut self, on: bool) -> Self {
        self.conversation.goes_on = on;
        self
    }

    /// Goes on in a copy with a session id of its own, and leaves the original as it is (`--fork-session`).
    #[must_use]
    pub fn fork_session(mut self, fork: bool) -> Self {
        self.conversation.fork = fork;
        self
    }

    /// The id of the new session, a UUID that is not in use (`--session-id`).
    #[must_use]
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.conversation.session_id = Some(id.into());
        self
    }

    /// Forgets what comes after this message, by its uuid, when a conversation is resumed (`--resume-session-at`).
    #[must_use]
    pub fn resume_session_at(mut self, message: impl Into<String>) -> Self {
        self.conversation.resume_at = Some(message.into());
        self
    }

    /// The uuid of the prompt whose turn [`resume_session_at`](Self::resume_session_at) is meant to forget: the CLI
    /// refuses if something else would be lost with it (`--resume-drops-turn`; 2.1.197 does not know it).
    #[must_use]
    pub fn resume_drops_turn(mut self, prompt: impl Into<String>) -> Self {
        self.conversation.drops_turn = Some(prompt.into());
        self
    }

    /// Whether the conversation is written to a file, so that it can be resumed (`--no-session-persistence` if not). It
    /// is, unless this says otherwise.
    #[must_use]
    pub fn persist_session(mut self, persist: bool) -> Self {
        self.conversation.not_kept = !persist;
        self
    }

    /// Whether the stream also carries what is written to the conversation's file, as `transcript_mirror` messages
    /// (`--session-mirror`).
    #[must_use]
    pub fn session_mirror(mut self, mirror: bool) -> Self {
        self.conversation.mirror = mirror;
        self
    }

    /// The title of a new session (`initialize.title`). A resumed one keeps its own.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.conversation.title = Some(title.into());
        self
    }

    /// Whether files can be put back to how they were at a message (variable
    /// `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING`).
    #[must_use]
    pub fn file_checkpointing(self, on: bool) -> Self {
        const NAME: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
        if on { self.env(NAME, "true") } else { self.env_remove(NAME) }
    }

    /// One more directory that tools may use (`--add-dir`). It may be said more than once.
    #[must_use]
    pub fn add_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.conversation.dirs.push(path.into());
        self
    }

    /// Works in a new git worktree with this name, or with one that the CLI makes up (`--worktree`).
    #[must_use]
    pub fn worktree(mut self, name: Option<&str>) -> Self {
        self.conversation.worktree = Some(name.map(str::to_owned));
        self
    }
}

impl Conversation {
    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        self.check()?;
        args.maybe("--resume", self.resume.as_ref())?;
        args.switch("--continue", self.goes_on);
        args.switch("--fork-session", self.fork);
        args.maybe("--session-id", self.session_id.as_ref())?;
        args.maybe("--resume-session-at", self.resume_at.as_ref())?;
        args.maybe("--resume-drops-turn", self.drops_turn.as_ref())?;
        args.switch("--no-session-persistence", self.not_kept);
        args.switch("--session-mirror", self.mirror);
        args.each("--add-dir", &self.dirs)?;
        match &self.worktree {
            Some(Some(name)) => args.value("--worktree", name)?,
            Some(None) => args.switch("--worktree", true),
            None => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let older = self.resume.is_some() || self.goes_on;
        if self.resume.is_some() && self.goes_on {
            return refuse(
                "continue_conversation",
                "resume names a conversation already; keep one of the two",
            );
        }
        if self.fork && !older {
            return refuse(
                "fork_session",
                "there is nothing to copy; say resume or continue_conversation, too",
            );
        }
        if let Some(id) = &self.session_id {
            if id.len() != 36 || uuid::Uuid::try_parse(id).is_err() {
                return refuse("session_id", "it is no UUID like 01234567-89ab-cdef-0123-456789abcdef");
            }
            if older && !self.fork {
                return refuse(
                    "session_id",
                    "a conversation that goes on keeps its id; say fork_session, too",
                );
            }
        }
        if self.resume_at.is_some() && self.resume.is_none() {
            return refuse("resume_session_at", "it needs resume");
        }
        if self.drops_turn.is_some() && self.resume_at.is_none() {
            return refuse("resume_drops_turn", "it needs resume_session_at");
        }
        if self.mirror && self.not_kept {
            return refuse("session_mirror", "a conversation that is not kept has no file to mirror");
        }
        Ok(())
    }

    pub(super) fn initialize(&self, hello: &mut Initialize) {
        hello.title = self.title.clone();
    }
}
