//! `system` messages: news about the session.

use serde_json::Number;

use super::control::{PermissionMode, SlashCommand};
use super::macros::{record, tagged, word};
use super::{AssistantError, Json, ResourceLink, TaskUsage};

/// `System` and the fields that all its kinds share.
macro_rules! system {
    ($( $(#[$meta:meta])* $kind:literal => $variant:ident($ty:ty) ),* $(,)?) => {
        tagged! {
            /// News about the session.
            pub enum System by "subtype" {
                $( $(#[$meta])* $kind => $variant($ty), )*
            }
        }

        impl System {
            /// The session it belongs to, when it says so.
            #[must_use]
            pub fn session_id(&self) -> Option<&str> {
                match self {
                    $( Self::$variant(message) => message.session_id.as_deref(), )*
                    Self::Unknown(_) => None,
                }
            }
        }
    };
}

system! {
    /// A turn begins: all there is to know about the session.
    "init" => Init(Box<Init>),
    /// What the CLI is doing, or a changed permission mode.
    "status" => Status(Status),
    /// How much has been thought, as an estimate.
    "thinking_tokens" => ThinkingTokens(ThinkingTokens),
    /// An API call failed and will be tried again.
    "api_retry" => ApiRetry(ApiRetry),
    /// Another model takes over, because the first has too much to do.
    "model_fallback" => ModelFallback(ModelFallback),
    /// Another model takes over, because the first refused.
    "model_refusal_fallback" => ModelRefusalFallback(Box<ModelRefusalFallback>),
    /// The model refused, and no other takes over.
    "model_refusal_no_fallback" => ModelRefusalNoFallback(ModelRefusalNoFallback),
    /// The conversation so far was replaced by a summary.
    "compact_boundary" => CompactBoundary(Box<CompactBoundary>),
    /// A hook starts.
    "hook_started" => HookStarted(HookStarted),
    /// A hook has written something.
    "hook_progress" => HookProgress(HookProgress),
    /// A hook has ended.
    "hook_response" => HookResponse(HookResponse),
    /// A task starts: a subagent, a shell command.
    "task_started" => TaskStarted(Box<TaskStarted>),
    /// A task goes on.
    "task_progress" => TaskProgress(TaskProgress),
    /// A task's state has changed.
    "task_updated" => TaskUpdated(TaskUpdated),
    /// A task has ended.
    "task_notification" => TaskNotification(Box<TaskNotification>),
    /// All background tasks there are.
    "background_tasks_changed" => BackgroundTasksChanged(BackgroundTasksChanged),
    /// At work, waiting for an answer, or idle.
    "session_state_changed" => SessionStateChanged(SessionStateChanged),
    /// The session has a new title.
    "session_title_changed" => SessionTitleChanged(SessionTitleChanged),
    /// Parts of the session could not be saved.
    "session_writes_lost" => SessionWritesLost(SessionWritesLost),
    /// A tool was refused without a question.
    "permission_denied" => PermissionDenied(PermissionDenied),
    /// Something the user should read.
    "informational" => Informational(Informational),
    /// A short notice.
    "notification" => Notification(Notification),
    /// All slash commands there are.
    "commands_changed" => CommandsChanged(CommandsChanged),
    /// A control request is at work.
    "control_request_progress" => ControlRequestProgress(ControlRequestProgress),
    /// What a local slash command wrote.
    "local_command_output" => LocalCommandOutput(LocalCommandOutput),
    /// A plugin is being installed.
    "plugin_install" => PluginInstall(PluginInstall),
    /// Memories that were read.
    "memory_recall" => MemoryRecall(MemoryRecall),
    /// The copy of the transcript could not be written.
    "mirror_error" => MirrorError(MirrorError),
    /// Files were saved elsewhere.
    "files_persisted" => FilesPersisted(FilesPersisted),
    /// An MCP server's question has been settled elsewhere.
    "elicitation_complete" => ElicitationComplete(ElicitationComplete),
    /// The process is about to end.
    "worker_shutting_down" => WorkerShuttingDown(WorkerShuttingDown),
}

record! {
    /// A turn begins. Sent every turn, so it also tells a changed mode, model or session id.
    pub struct Init {
        cwd: String,
        session_id: Option<String>,
        tools: Vec<String>,
        mcp_servers: Vec<McpServer>,
        model: String,
        permission_mode = "permissionMode": PermissionMode,
        slash_commands: Vec<String>,
        terminal_slash_commands: Option<Vec<String>>,
        api_key_source = "apiKeySource": Option<String>,
        betas: Option<Vec<String>>,
        claude_code_version: String,
        output_style: Option<String>,
        agents: Option<Vec<String>>,
        skills: Option<Vec<String>>,
        plugins: Option<Vec<Plugin>>,
        plugin_errors: Option<Vec<Json>>,
        /// What this CLI can do. Ask this, not the version.
        capabilities: Option<Vec<String>>,
        analytics_disabled: Option<bool>,
        product_feedback_disabled: Option<bool>,
        uuid: Option<String>,
        memory_paths: Option<MemoryPaths>,
        original_cwd: Option<String>,
        additional_directories: Option<Vec<String>>,
        messaging_socket_path: Option<String>,
        fast_mode_state: Option<String>,
        fast_mode_disabled_reason: Option<String>,
        effort: Option<String>,
        per_turn_effort_active: Option<bool>,
        ultrathink_available: Option<bool>,
        ultrathink_typed_raises: Option<bool>,
        view_mode: Option<String>,
        user_message_uuids: Option<Vec<String>>,
    }

    /// An MCP server and how it is.
    pub struct McpServer {
        name: String,
        status: McpServerState,
        source: Option<String>,
    }

    /// A plugin.
    pub struct Plugin {
        name: String,
        path: Option<String>,
        source: Option<String>,
        version: Option<String>,
    }

    /// Where memories are kept.
    pub struct MemoryPaths {
        auto: Option<String>,
    }

    /// What the CLI is doing, or a changed permission mode.
    pub struct Status {
        status: Option<Activity>,
        permission_mode = "permissionMode": Option<PermissionMode>,
        compact_result: Option<String>,
        compact_error: Option<String>,
        user_message_uuids: Option<Vec<String>>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// How much has been thought, as an estimate; comes before each piece of thinking.
    pub struct ThinkingTokens {
        estimated_tokens: u64,
        estimated_tokens_delta: u64,
        user_message_uuid: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// An API call failed and will be tried again.
    pub struct ApiRetry {
        attempt: u64,
        max_retries: u64,
        retry_delay_ms: Option<Number>,
        /// None when there was no answer at all.
        error_status: Option<u64>,
        error: Option<AssistantError>,
        no_response: Option<Json>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Another model takes over, because the first has too much to do.
    pub struct ModelFallback {
        trigger: String,
        original_model: String,
        fallback_model: String,
        content: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Another model takes over, because the first refused.
    pub struct ModelRefusalFallback {
        trigger: Option<String>,
        direction: Option<String>,
        scope: Option<String>,
        original_model: String,
        fallback_model: String,
        request_id: Option<String>,
        api_refusal_category: Option<String>,
        api_refusal_explanation: Option<String>,
        retracted_message_uuids: Option<Vec<String>>,
        refused_user_message_uuid: Option<String>,
        content: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The model refused, and no other takes over.
    pub struct ModelRefusalNoFallback {
        original_model: String,
        request_id: Option<String>,
        api_refusal_category: Option<String>,
        api_refusal_explanation: Option<String>,
        refused_user_message_uuid: Option<String>,
        content: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The conversation so far was replaced by a summary.
    pub struct CompactBoundary {
        compact_metadata: CompactMetadata,
        logical_parent_uuid: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// What was replaced.
    pub struct CompactMetadata {
        /// `manual` or `auto`.
        trigger: String,
        pre_tokens: Option<u64>,
        post_tokens: Option<u64>,
        cumulative_dropped_tokens: Option<u64>,
        duration_ms: Option<Number>,
        preserved_segment: Option<PreservedSegment>,
        preserved_messages: Option<PreservedMessages>,
    }

    /// The part that stays, by its ends.
    pub struct PreservedSegment {
        head_uuid: String,
        anchor_uuid: String,
        tail_uuid: String,
    }

    /// The part that stays, message by message.
    pub struct PreservedMessages {
        anchor_uuid: String,
        uuids: Vec<String>,
        all_uuids: Option<Vec<String>>,
    }

    /// A hook starts.
    pub struct HookStarted {
        hook_id: String,
        hook_name: String,
        hook_event: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A hook has written something.
    pub struct HookProgress {
        hook_id: String,
        hook_name: String,
        hook_event: String,
        stdout: Option<String>,
        stderr: Option<String>,
        output: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A hook has ended.
    pub struct HookResponse {
        hook_id: String,
        hook_name: String,
        hook_event: String,
        output: Option<String>,
        stdout: Option<String>,
        stderr: Option<String>,
        exit_code: Option<i64>,
        outcome: HookOutcome,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A task starts.
    pub struct TaskStarted {
        task_id: String,
        run_id: Option<String>,
        tool_use_id: Option<String>,
        description: String,
        task_type: Option<TaskType>,
        subagent_type: Option<String>,
        prompt: Option<String>,
        is_backgrounded: Option<bool>,
        spawn_depth: Option<u64>,
        parent_task_id: Option<String>,
        workflow_name: Option<String>,
        skip_transcript: Option<bool>,
        ambient: Option<bool>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A task goes on.
    pub struct TaskProgress {
        task_id: String,
        run_id: Option<String>,
        tool_use_id: Option<String>,
        description: Option<String>,
        subagent_type: Option<String>,
        usage: Option<TaskUsage>,
        last_tool_name: Option<String>,
        summary: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A task's state has changed.
    pub struct TaskUpdated {
        task_id: String,
        run_id: Option<String>,
        patch: TaskPatch,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// What has changed.
    pub struct TaskPatch {
        status: Option<TaskStatus>,
        description: Option<String>,
        end_time: Option<Number>,
        total_paused_ms: Option<Number>,
        error: Option<String>,
        is_backgrounded: Option<bool>,
    }

    /// A task has ended.
    pub struct TaskNotification {
        task_id: String,
        run_id: Option<String>,
        tool_use_id: Option<String>,
        status: TaskStatus,
        reason: Option<String>,
        /// Empty when there is none.
        output_file: Option<String>,
        summary: Option<String>,
        usage: Option<TaskUsage>,
        resource_links: Option<Vec<ResourceLink>>,
        skip_transcript: Option<bool>,
        ambient: Option<bool>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// All background tasks there are.
    pub struct BackgroundTasksChanged {
        tasks: Vec<BackgroundTask>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A background task.
    pub struct BackgroundTask {
        task_id: String,
        run_id: Option<String>,
        task_type: TaskType,
        subagent_type: Option<String>,
        description: Option<String>,
        parent_task_id: Option<String>,
        ambient: Option<bool>,
    }

    /// At work, waiting for an answer, or idle.
    pub struct SessionStateChanged {
        state: SessionState,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The session has a new title.
    pub struct SessionTitleChanged {
        title: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Parts of the session could not be saved: the disk is full.
    pub struct SessionWritesLost {
        error_code: String,
        lost: Vec<String>,
        transcript_session_ids: Option<Vec<String>>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A tool was refused without a question.
    pub struct PermissionDenied {
        tool_name: String,
        tool_use_id: String,
        agent_id: Option<String>,
        decision_reason_type: Option<String>,
        decision_reason: Option<String>,
        message: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Something the user should read.
    pub struct Informational {
        content: String,
        level: Option<String>,
        tool_use_id: Option<String>,
        prevent_continuation: Option<bool>,
        tag: Option<String>,
        prompt_submit_outcome: Option<Json>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A short notice.
    pub struct Notification {
        key: String,
        text: String,
        priority: Option<String>,
        color: Option<String>,
        timeout_ms: Option<Number>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// All slash commands there are.
    pub struct CommandsChanged {
        commands: Vec<SlashCommand>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A control request is at work.
    pub struct ControlRequestProgress {
        request_id: String,
        status: String,
        attempt: Option<u64>,
        max_retries: Option<u64>,
        retry_delay_ms: Option<Number>,
        error_status: Option<u64>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// What a local slash command wrote.
    pub struct LocalCommandOutput {
        content: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A plugin is being installed.
    pub struct PluginInstall {
        status: String,
        name: Option<String>,
        error: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Memories that were read.
    pub struct MemoryRecall {
        mode: Option<String>,
        memories: Vec<Memory>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A memory.
    pub struct Memory {
        path: String,
        scope: Option<String>,
        content: Option<String>,
    }

    /// The copy of the transcript could not be written.
    pub struct MirrorError {
        error: String,
        key: Option<Json>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// Files were saved elsewhere.
    pub struct FilesPersisted {
        files: Vec<Json>,
        failed: Vec<Json>,
        processed_at: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// An MCP server's question has been settled elsewhere.
    pub struct ElicitationComplete {
        mcp_server_name: String,
        elicitation_id: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The process is about to end.
    pub struct WorkerShuttingDown {
        reason: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }
}

word! {
    /// What the CLI is doing.
    pub enum Activity {
        /// Calling the API.
        Requesting = "requesting",
        /// Writing a summary.
        Compacting = "compacting",
    }

    /// How an MCP server is.
    pub enum McpServerState {
        /// Ready.
        Connected = "connected",
        /// Not to be had.
        Failed = "failed",
        /// On its way.
        Pending = "pending",
        /// Switched off.
        Disabled = "disabled",
        /// Wants a login.
        NeedsAuth = "needs-auth",
    }

    /// How a hook ended.
    pub enum HookOutcome {
        /// Well.
        Success = "success",
        /// Badly.
        Error = "error",
        /// Too late.
        Cancelled = "cancelled",
    }

    /// What kind of task it is.
    pub enum TaskType {
        /// A subagent.
        LocalAgent = "local_agent",
        /// A shell command.
        LocalBash = "local_bash",
        /// A workflow.
        LocalWorkflow = "local_workflow",
        /// A subagent elsewhere.
        RemoteAgent = "remote_agent",
    }

    /// How a task is.
    pub enum TaskStatus {
        /// Not started.
        Pending = "pending",
        /// At work.
        Running = "running",
        /// Held.
        Paused = "paused",
        /// Done.
        Completed = "completed",
        /// Ended badly.
        Failed = "failed",
        /// Ended by force.
        Killed = "killed",
        /// Ended on request.
        Stopped = "stopped",
    }

    /// What a session is doing.
    pub enum SessionState {
        /// At work.
        Running = "running",
        /// Waiting for the host's answer.
        RequiresAction = "requires_action",
        /// Nothing.
        Idle = "idle",
    }
}
