//! What the CLI says on the stream and beside it.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::Args;
use super::{Options, strings};
use crate::Error;
use crate::stream::Initialize;

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Output {
    partial_messages: bool,
    hook_events: bool,
    no_replays: bool,
    auth_status: bool,
    brief: bool,
    forward_subagent_text: Option<bool>,
    prompt_suggestions: Option<bool>,
    agent_progress_summaries: Option<bool>,
    per_task_stop: Option<bool>,
    dialog_kinds: Option<Vec<String>>,
    debug: Option<String>,
    debug_file: Option<PathBuf>,
    debug_to_stderr: bool,
}

/// Who is told each line of the CLI's stderr.
pub(crate) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

impl Options {
    /// Whether answers come in pieces while the model writes them, as `stream_event` messages
    /// (`--include-partial-messages`).
    #[must_use]
    pub fn include_partial_messages(mut self, include: bool) -> Self {
        self.output.partial_messages = include;
        self
    }

    /// Whether the stream tells of all hooks of the settings, not only of `SessionStart` (`--include-hook-events`).
    #[must_use]
    pub fn include_hook_events(mut self, include: bool) -> Self {
        self.output.hook_events = include;
        self
    }

    /// Whether user messages come back on the stream when the CLI takes them (`--replay-user-messages`). They do, unless
    /// this says no: by their uuids it is known which messages a turn answers, and when the session is done.
    #[must_use]
    pub fn replay_user_messages(mut self, replay: bool) -> Self {
        self.output.no_replays = !replay;
        self
    }

    /// Whether the stream tells how a login goes, as `auth_status` messages (`--enable-auth-status`).
    #[must_use]
    pub fn auth_status(mut self, on: bool) -> Self {
        self.output.auth_status = on;
        self
    }

    /// Whether the model gets a tool to send short messages to the user (`--brief`).
    #[must_use]
    pub fn brief(mut self, on: bool) -> Self {
        self.output.brief = on;
        self
    }

    /// Whether the stream carries the texts and thoughts of subagents, not only their tool calls
    /// (`initialize.forwardSubagentText`).
    #[must_use]
    pub fn forward_subagent_text(mut self, forward: bool) -> Self {
        self.output.forward_subagent_text = Some(forward);
        self
    }

    /// Whether a likely next prompt comes after a turn, as a `prompt_suggestion` message (`initialize.promptSuggestions`).
    #[must_use]
    pub fn prompt_suggestions(mut self, on: bool) -> Self {
        self.output.prompt_suggestions = Some(on);
        self
    }

    /// Whether a model sums up now and then what a subagent is doing (`initialize.agentProgressSummaries`).
    #[must_use]
    pub fn agent_progress_summaries(mut self, on: bool) -> Self {
        self.output.agent_progress_summaries = Some(on);
        self
    }

    /// Tells the CLI that the user can stop tasks one by one, so that an interrupt leaves background tasks alone
    /// (`initialize.perTaskStopAffordance`; older CLIs ignore it).
    #[must_use]
    pub fn per_task_stop(mut self, on: bool) -> Self {
        self.output.per_task_stop = Some(on);
        self
    }

    /// The kinds of dialogs that `on_dialog` can show (`initialize.supportedDialogKinds`); the CLI asks no others.
    #[must_use]
    pub fn supported_dialog_kinds(mut self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.output.dialog_kinds = Some(strings(kinds));
        self
    }

    /// Whether a short text sums up the tools of a turn, as a `tool_use_summary` message, for one more call of the API
    /// (variable `CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES`).
    #[must_use]
    pub fn tool_use_summaries(self, on: bool) -> Self {
        const NAME: &str = "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES";
        if on { self.env(NAME, "1") } else { self.env_remove(NAME) }
    }

    /// Whether prompts are delivered as they are written: `@path` is no mention and `/name` no command
    /// (`client_composed` in each user message; older CLIs ignore it). For prompts that a program puts together.
    #[must_use]
    pub fn verbatim_prompts(mut self, on: bool) -> Self {
        self.verbatim_prompts = on;
        self
    }

    /// Has the CLI write a log below its configuration directory (`--debug`); a filter such as `api,hooks` or `!mcp`
    /// chooses what is in it, the empty one is all.
    #[must_use]
    pub fn debug(mut self, filter: impl Into<String>) -> Self {
        self.output.debug = Some(filter.into());
        self
    }

    /// Has the CLI write its log into this file (`--debug-file`).
    #[must_use]
    pub fn debug_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.output.debug_file = Some(path.into());
        self
    }

    /// Has the CLI write its log to stderr (`--debug-to-stderr`), see [`on_stderr`](Self::on_stderr).
    #[must_use]
    pub fn debug_to_stderr(mut self, on: bool) -> Self {
        self.output.debug_to_stderr = on;
        self
    }

    /// Is told each line that the CLI writes to stderr. A failing hook may print program text there: it is for a log,
    /// not for the user's eyes.
    #[must_use]
    pub fn on_stderr(mut self, told: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(told));
        self
    }
}

impl Output {
    pub(super) fn replays(&self) -> bool {
        !self.no_replays
    }

    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        args.switch("--include-partial-messages", self.partial_messages);
        args.switch("--include-hook-events", self.hook_events);
        args.switch("--enable-auth-status", self.auth_status);
        args.switch("--brief", self.brief);
        match self.debug.as_deref() {
            None => {}
            Some("") => args.switch("--debug", true),
            Some(filter) => args.value("--debug", filter)?,
        }
        args.maybe("--debug-file", self.debug_file.as_ref())?;
        args.switch("--debug-to-stderr", self.debug_to_stderr);
        Ok(())
    }

    pub(super) fn initialize(&self, hello: &mut Initialize) {
        hello.forward_subagent_text = self.forward_subagent_text;
        hello.prompt_suggestions = self.prompt_suggestions;
        hello.agent_progress_summaries = self.agent_progress_summaries;
        hello.per_task_stop_affordance = self.per_task_stop;
        hello.supported_dialog_kinds = self.dialog_kinds.clone();
    }
}
