//! Hooks: the 33 events, what a hook is told and what it may answer.
//!
//! [`HookInput`] is what every event tells plus the [`HookEvent`]; [`HookOutput`] is the answer.

use serde::ser::SerializeMap;
use serde_json::Number;

use super::control::PermissionMode;
use super::macros::{record, record_serde, tagged};
use super::record::{Fields, Record};
use super::request::McpServerProvenance;
use super::{AssistantError, Json, PermissionUpdate};

mod output;

pub use output::*;

record! {
    /// Which callbacks shall be called for an event: part of `initialize`.
    pub struct HookMatcher {
        /// A tool's name or a pattern; none is all.
        matcher: Option<String>,
        hook_callback_ids = "hookCallbackIds": Vec<String>,
        /// Seconds.
        timeout: Option<Number>,
        /// What a failing callback does: `block` or `continue` (from 2.1.325 on).
        on_failure = "onFailure": Option<String>,
    }

    /// What does this hook say? Answered by a [`HookOutput`].
    pub struct HookCallback {
        callback_id: String,
        input: HookInput,
        tool_use_id: Option<String>,
    }

    /// What every event tells.
    pub struct HookContext {
        session_id: String,
        transcript_path: String,
        cwd: String,
        prompt_id: Option<String>,
        permission_mode: Option<PermissionMode>,
        effort: Option<Effort>,
    }

    /// How hard the model shall think.
    pub struct Effort {
        level: String,
    }
}

/// What a hook is told: what every event tells, and the event.
///
/// ```
/// use oarlock_proto::stream::hook::{HookEvent, HookInput};
///
/// let input: HookInput = serde_json::from_str(
///     r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
/// ).expect("an object");
/// assert_eq!(input.context.cwd, "/w");
/// let HookEvent::PreToolUse(event) = input.event else { panic!("known") };
/// assert_eq!(event.tool_name, "Bash");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookInput {
    /// What every event tells. Unknown fields are with the event.
    pub context: HookContext,
    /// What has happened.
    pub event: HookEvent,
}

impl Record for HookInput {
    fn fill<'de, A: serde::de::MapAccess<'de>>(
        &mut self,
        before: Fields,
        map: &mut A,
    ) -> Result<(), A::Error> {
        *self = Self::from_fields(before.rest(map)?);
        Ok(())
    }

    /// The event's name is not the first field, so the context is picked out and the event made from what is left.
    fn from_fields(fields: Fields) -> Self {
        let mut context = HookContext::from_fields(fields);
        let event = HookEvent::from_fields(context.extra.take_fields());
        Self { context, event }
    }

    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.context.write_fields(map)?;
        self.event.write_fields(map)
    }
}

record_serde!(HookInput);

tagged! {
    /// What has happened.
    pub enum HookEvent by "hook_event_name" {
        /// A tool is about to run.
        "PreToolUse" => PreToolUse(PreToolUse),
        /// A tool has run.
        "PostToolUse" => PostToolUse(PostToolUse),
        /// A tool has failed.
        "PostToolUseFailure" => PostToolUseFailure(PostToolUseFailure),
        /// All tools of a message have run.
        "PostToolBatch" => PostToolBatch(PostToolBatch),
        /// The user would be asked.
        "PermissionRequest" => PermissionRequest(PermissionRequest),
        /// A tool was refused.
        "PermissionDenied" => PermissionDenied(PermissionDenied),
        /// The user has said something.
        "UserPromptSubmit" => UserPromptSubmit(UserPromptSubmit),
        /// A slash command became a prompt.
        "UserPromptExpansion" => UserPromptExpansion(UserPromptExpansion),
        /// Text is about to be shown.
        "MessageDisplay" => MessageDisplay(MessageDisplay),
        /// The CLI wants the user's attention.
        "Notification" => Notification(Notification),
        /// The model has finished.
        "Stop" => Stop(Stop),
        /// The turn ended with an API error.
        "StopFailure" => StopFailure(StopFailure),
        /// A subagent starts.
        "SubagentStart" => SubagentStart(SubagentStart),
        /// A subagent has finished.
        "SubagentStop" => SubagentStop(SubagentStop),
        /// A summary is about to be made.
        "PreCompact" => PreCompact(PreCompact),
        /// A summary was made.
        "PostCompact" => PostCompact(PostCompact),
        /// Another model is about to take over.
        "PreModelSwitch" => PreModelSwitch(ModelSwitch),
        /// Another model has taken over.
        "PostModelSwitch" => PostModelSwitch(ModelSwitch),
        /// A session starts.
        "SessionStart" => SessionStart(SessionStart),
        /// A session ends.
        "SessionEnd" => SessionEnd(SessionEnd),
        /// A project is set up.
        "Setup" => Setup(Setup),
        /// A teammate has nothing to do.
        "TeammateIdle" => TeammateIdle(TeammateIdle),
        /// A task is on the list.
        "TaskCreated" => TaskCreated(TaskChange),
        /// A task is off the list.
        "TaskCompleted" => TaskCompleted(TaskChange),
        /// An MCP server asks the user.
        "Elicitation" => Elicitation(Elicitation),
        /// The user has answered it.
        "ElicitationResult" => ElicitationResult(ElicitationResult),
        /// Settings have changed.
        "ConfigChange" => ConfigChange(ConfigChange),
        /// Instructions were read.
        "InstructionsLoaded" => InstructionsLoaded(InstructionsLoaded),
        /// A worktree is to be made.
        "WorktreeCreate" => WorktreeCreate(WorktreeCreate),
        /// A worktree is to go.
        "WorktreeRemove" => WorktreeRemove(WorktreeRemove),
        /// Another working directory.
        "CwdChanged" => CwdChanged(CwdChanged),
        /// A watched file has changed.
        "FileChanged" => FileChanged(FileChanged),
        /// One more directory.
        "DirectoryAdded" => DirectoryAdded(DirectoryAdded),
    }
}

record! {
    /// A tool is about to run.
    pub struct PreToolUse {
        tool_name: String,
        /// [`ToolInput::of`](super::ToolInput::of) types it.
        tool_input: Json,
        tool_use_id: Option<String>,
        agent_id: Option<String>,
        agent_type: Option<String>,
        mcp_server: Option<McpServerProvenance>,
    }

    /// A tool has run.
    pub struct PostToolUse {
        tool_name: String,
        /// As it ran, that is with what hooks have changed.
        tool_input: Json,
        /// [`ToolOutput::of`](super::ToolOutput::of) types it.
        tool_response: Json,
        tool_use_id: Option<String>,
        duration_ms: Option<Number>,
        agent_id: Option<String>,
        agent_type: Option<String>,
        mcp_server: Option<McpServerProvenance>,
    }

    /// A tool has failed.
    pub struct PostToolUseFailure {
        tool_name: String,
        tool_input: Json,
        tool_use_id: Option<String>,
        error: String,
        is_interrupt: Option<bool>,
        duration_ms: Option<Number>,
        agent_id: Option<String>,
        agent_type: Option<String>,
        mcp_server: Option<McpServerProvenance>,
    }

    /// All tools of a message have run.
    pub struct PostToolBatch {
        tool_calls: Vec<BatchedToolCall>,
        agent_id: Option<String>,
        agent_type: Option<String>,
    }

    /// One of them.
    pub struct BatchedToolCall {
        tool_name: String,
        tool_input: Json,
        tool_use_id: Option<String>,
        tool_response: Option<Json>,
    }

    /// The user would be asked. There is no `tool_use_id`.
    pub struct PermissionRequest {
        tool_name: String,
        tool_input: Json,
        permission_suggestions: Option<Vec<PermissionUpdate>>,
        agent_id: Option<String>,
        agent_type: Option<String>,
        mcp_server: Option<McpServerProvenance>,
    }

    /// A tool was refused.
    pub struct PermissionDenied {
        tool_name: String,
        tool_input: Json,
        tool_use_id: Option<String>,
        reason: String,
        agent_id: Option<String>,
        agent_type: Option<String>,
        mcp_server: Option<McpServerProvenance>,
    }

    /// The user has said something.
    pub struct UserPromptSubmit {
        prompt: String,
        source: Option<String>,
        session_title: Option<String>,
    }

    /// A slash command became a prompt.
    pub struct UserPromptExpansion {
        expansion_type: String,
        command_name: String,
        command_args: Option<String>,
        command_source: Option<String>,
        prompt: String,
    }

    /// Text is about to be shown.
    pub struct MessageDisplay {
        turn_id: String,
        message_id: String,
        index: u64,
        is_final = "final": bool,
        delta: String,
    }

    /// The CLI wants the user's attention.
    pub struct Notification {
        message: String,
        title: Option<String>,
        notification_type: Option<String>,
    }

    /// The model has finished.
    pub struct Stop {
        /// It goes on because of a hook already.
        stop_hook_active: bool,
        last_assistant_message: Option<String>,
        background_tasks: Option<Vec<BackgroundTaskSummary>>,
        session_crons: Option<Vec<SessionCron>>,
    }

    /// A background task.
    pub struct BackgroundTaskSummary {
        id: String,
        kind = "type": String,
        status: String,
        description: Option<String>,
        command: Option<String>,
        agent_type: Option<String>,
        server: Option<String>,
        tool: Option<String>,
        name: Option<String>,
    }

    /// A prompt that comes back at set times.
    pub struct SessionCron {
        id: String,
        schedule: String,
        recurring: Option<bool>,
        prompt: Option<String>,
    }

    /// The turn ended with an API error.
    pub struct StopFailure {
        error: AssistantError,
        error_details: Option<String>,
        last_assistant_message: Option<String>,
    }

    /// A subagent starts.
    pub struct SubagentStart {
        agent_id: String,
        agent_type: String,
    }

    /// A subagent has finished.
    pub struct SubagentStop {
        stop_hook_active: bool,
        agent_id: Option<String>,
        agent_type: Option<String>,
        agent_transcript_path: Option<String>,
        last_assistant_message: Option<String>,
        background_tasks: Option<Vec<BackgroundTaskSummary>>,
        session_crons: Option<Vec<SessionCron>>,
    }

    /// A summary is about to be made.
    pub struct PreCompact {
        /// `manual` or `auto`.
        trigger: String,
        custom_instructions: Option<String>,
    }

    /// A summary was made.
    pub struct PostCompact {
        trigger: String,
        compact_summary: String,
    }

    /// Another model.
    pub struct ModelSwitch {
        from_model: String,
        to_model: String,
        requested_model: Option<String>,
        source: Option<String>,
        context_tokens: Option<u64>,
        prompt_cache_warm: Option<bool>,
        cache_ttl: Option<String>,
        estimated_cache_write_usd: Option<Number>,
        pricing: Option<String>,
    }

    /// A session starts.
    pub struct SessionStart {
        /// `startup`, `resume`, `clear`, `compact` or `fork`.
        source: String,
        agent_type: Option<String>,
        model: Option<String>,
        session_title: Option<String>,
        seconds_since_last_response: Option<Number>,
        context_tokens: Option<u64>,
        prompt_cache_likely_expired: Option<bool>,
        estimated_cache_write_usd: Option<Number>,
    }

    /// A session ends.
    pub struct SessionEnd {
        reason: String,
    }

    /// A project is set up.
    pub struct Setup {
        /// `init` or `maintenance`.
        trigger: String,
    }

    /// A teammate has nothing to do.
    pub struct TeammateIdle {
        teammate_name: String,
        team_name: String,
    }

    /// A task is on the list, or off it.
    pub struct TaskChange {
        task_id: String,
        task_subject: String,
        task_description: Option<String>,
        teammate_name: Option<String>,
        team_name: Option<String>,
    }

    /// An MCP server asks the user.
    pub struct Elicitation {
        mcp_server_name: String,
        message: String,
        mode: Option<String>,
        url: Option<String>,
        elicitation_id: Option<String>,
        requested_schema: Option<Json>,
    }

    /// The user has answered it.
    pub struct ElicitationResult {
        mcp_server_name: String,
        elicitation_id: Option<String>,
        mode: Option<String>,
        action: super::reply::ElicitationAction,
        content: Option<Json>,
    }

    /// Settings have changed.
    pub struct ConfigChange {
        source: String,
        file_path: Option<String>,
    }

    /// Instructions were read.
    pub struct InstructionsLoaded {
        file_path: String,
        memory_type: String,
        load_reason: String,
        globs: Option<Vec<String>>,
        trigger_file_path: Option<String>,
        parent_file_path: Option<String>,
    }

    /// A worktree is to be made.
    pub struct WorktreeCreate {
        name: String,
    }

    /// A worktree is to go.
    pub struct WorktreeRemove {
        worktree_path: String,
    }

    /// Another working directory.
    pub struct CwdChanged {
        old_cwd: String,
        new_cwd: String,
    }

    /// A watched file has changed.
    pub struct FileChanged {
        file_path: String,
        /// `change`, `add` or `unlink`.
        event: String,
    }

    /// One more directory.
    pub struct DirectoryAdded {
        directory: String,
        source: Option<String>,
    }
}
