//! What control requests carry.

use std::collections::BTreeMap;

use serde_json::Number;

use super::control::PermissionMode;
use super::hook::HookMatcher;
use super::macros::record;
use super::{Json, PermissionUpdate};

record! {
    /// Nothing, or nothing that is known.
    pub struct NoParams {}

    /// May this tool run? Answered by a [`PermissionResult`](super::PermissionResult). There is no time-out, several
    /// may be open at once, and the call may not have been announced yet.
    pub struct CanUseTool {
        tool_name: String,
        display_name: Option<String>,
        /// [`ToolInput::of`](super::ToolInput::of) types it.
        input: Json,
        tool_use_id: String,
        title: Option<String>,
        description: Option<String>,
        permission_suggestions: Option<Vec<PermissionUpdate>>,
        blocked_path: Option<String>,
        decision_reason: Option<String>,
        decision_reason_type: Option<String>,
        classifier_approvable: Option<bool>,
        /// The subagent that asks.
        agent_id: Option<String>,
        mcp_server: Option<McpServerProvenance>,
        server_policy_ask_only: Option<bool>,
        requires_user_interaction: Option<bool>,
        suppress_always_allow_rule: Option<bool>,
        default_to_no: Option<bool>,
        matched_ask_rule: Option<Json>,
    }

    /// An MCP server and who configured it.
    pub struct McpServerProvenance {
        name: String,
        source: Option<String>,
    }

    /// An MCP server asks the user. Answered by [`reply::Elicitation`](super::reply::Elicitation).
    pub struct Elicitation {
        mcp_server_name: String,
        message: String,
        /// `form` or `url`.
        mode: Option<String>,
        url: Option<String>,
        elicitation_id: Option<String>,
        requested_schema: Option<Json>,
        property_order: Option<Vec<String>>,
        title: Option<String>,
        display_name: Option<String>,
        description: Option<String>,
    }

    /// The CLI asks the user, in a form that the host has said it knows.
    pub struct RequestUserDialog {
        dialog_kind: String,
        payload: Json,
        tool_use_id: Option<String>,
    }

    /// A JSON-RPC message to or from an MCP server that the host runs. Answered by
    /// [`reply::McpMessage`](super::reply::McpMessage), notifications too.
    pub struct McpMessage {
        server_name: String,
        message: Json,
    }

    /// Hello. Answered by [`reply::Initialize`](super::reply::Initialize).
    pub struct Initialize {
        /// By event.
        hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
        sdk_mcp_servers = "sdkMcpServers": Option<Vec<String>>,
        sdk_mcp_server_configs = "sdkMcpServerConfigs": Option<Json>,
        sdk_mcp_server_manifests = "sdkMcpServerManifests": Option<Json>,
        sdk_mcp_server_manifests_origin = "sdkMcpServerManifestsOrigin": Option<String>,
        json_schema = "jsonSchema": Option<Json>,
        system_prompt = "systemPrompt": Option<Vec<String>>,
        append_system_prompt = "appendSystemPrompt": Option<String>,
        system_prompt_snapshot = "systemPromptSnapshot": Option<bool>,
        plan_mode_instructions = "planModeInstructions": Option<String>,
        tool_aliases = "toolAliases": Option<BTreeMap<String, String>>,
        exclude_dynamic_sections = "excludeDynamicSections": Option<bool>,
        agents: Option<BTreeMap<String, AgentDefinition>>,
        title: Option<String>,
        skills: Option<Vec<String>>,
        prompt_suggestions = "promptSuggestions": Option<bool>,
        agent_progress_summaries = "agentProgressSummaries": Option<bool>,
        forward_subagent_text = "forwardSubagentText": Option<bool>,
        supported_dialog_kinds = "supportedDialogKinds": Option<Vec<String>>,
        per_task_stop_affordance = "perTaskStopAffordance": Option<bool>,
        plugins: Option<Vec<Json>>,
    }

    /// A subagent that the host defines.
    pub struct AgentDefinition {
        description: String,
        prompt: String,
        tools: Option<Vec<String>>,
        disallowed_tools = "disallowedTools": Option<Vec<String>>,
        model: Option<String>,
        mcp_servers = "mcpServers": Option<Json>,
        skills: Option<Vec<String>>,
        initial_prompt = "initialPrompt": Option<String>,
        max_turns = "maxTurns": Option<u64>,
        auto_compact_window = "autoCompactWindow": Option<u64>,
        background: Option<bool>,
        omit_claude_md = "omitClaudeMd": Option<bool>,
        memory: Option<String>,
        /// A word or a number.
        effort: Option<Json>,
        permission_mode = "permissionMode": Option<PermissionMode>,
        critical_system_reminder = "criticalSystemReminder_EXPERIMENTAL": Option<String>,
        observer: Option<String>,
        observer_message = "observerMessage": Option<String>,
    }

    /// Stop the turn. Answered by [`reply::Interrupt`](super::reply::Interrupt).
    pub struct Interrupt {
        /// Forget the queued messages, too.
        cancel_queued: Option<bool>,
    }

    /// Another permission mode.
    pub struct SetPermissionMode {
        mode: PermissionMode,
    }

    /// Another model; none is the default.
    pub struct SetModel {
        model: Option<String>,
    }

    /// More or less thinking; none is the default.
    pub struct SetMaxThinkingTokens {
        max_thinking_tokens: Option<u64>,
        thinking_display: Option<String>,
    }

    /// Settings for this session.
    pub struct ApplyFlagSettings {
        settings: Json,
    }

    /// Settings to keep.
    pub struct UpdateSettings {
        source: String,
        settings: Json,
    }

    /// What fills the context.
    pub struct GetContextUsage {
        detail: Option<String>,
    }

    /// The cost and the limits.
    pub struct GetUsage {
        skip_behaviors: Option<bool>,
    }

    /// A task.
    pub struct TaskRef {
        task_id: String,
    }

    /// The MCP servers and how they are.
    pub struct McpStatus {
        live_reply = "liveReply": Option<bool>,
    }

    /// Other MCP servers: all that were set before give way.
    pub struct McpSetServers {
        servers: BTreeMap<String, Json>,
    }

    /// An MCP server.
    pub struct ServerRef {
        server_name = "serverName": String,
    }

    /// Switch an MCP server on or off.
    pub struct McpToggle {
        server_name = "serverName": String,
        enabled: bool,
    }

    /// Call an MCP tool.
    pub struct McpCall {
        /// `mcp__server__tool`
        tool: String,
        arguments: Option<Json>,
        expires_at: Option<String>,
        timeout_ms: Option<Number>,
        result_not_for_model: Option<bool>,
        check_permissions: Option<bool>,
        input_files: Option<Json>,
        output_files: Option<Json>,
    }

    /// Read an MCP resource.
    pub struct McpReadResource {
        server_name = "serverName": String,
        uri: String,
    }

    /// Put files back to where they were at a message.
    pub struct RewindFiles {
        user_message_id: String,
        dry_run: Option<bool>,
    }

    /// Go back in the conversation.
    pub struct RewindConversation {
        target_message_uuid: String,
    }

    /// Go on in the background, with one call or with all.
    pub struct BackgroundTasks {
        tool_use_id: Option<String>,
    }

    /// Forget a queued message.
    pub struct CancelAsyncMessage {
        message_uuid: String,
    }

    /// Read a file of the workspace.
    pub struct ReadFile {
        path: String,
        max_bytes: Option<u64>,
        encoding: Option<String>,
    }

    /// Files that begin like this.
    pub struct FileSuggestions {
        query: String,
    }

    /// The model has seen this file as it was then.
    pub struct SeedReadState {
        path: String,
        mtime: Option<Number>,
    }

    /// One more repository, below the working directory.
    pub struct RegisterRepoRoot {
        directory: String,
        reload_claude_md: Option<bool>,
        reload_plugins: Option<bool>,
        reload_skills: Option<bool>,
    }

    /// Another working directory.
    pub struct SetCwd {
        path: String,
    }

    /// Read the plugins again.
    pub struct ReloadPlugins {
        hold_on_cache_impact: Option<bool>,
        add_plugins: Option<Vec<Json>>,
        refuse_if_busy: Option<bool>,
    }

    /// Another title.
    pub struct RenameSession {
        title: String,
        source: Option<String>,
        session_id: Option<String>,
    }

    /// Make up a title.
    pub struct GenerateSessionTitle {
        description: String,
        persist: Option<bool>,
    }

    /// A question beside the conversation.
    pub struct SideQuestion {
        question: String,
    }

    /// Another colour.
    pub struct SetColor {
        color: String,
    }

    /// Somebody reads along, or nobody.
    pub struct SetHasSubscribers {
        has_subscribers: Option<bool>,
    }
}
