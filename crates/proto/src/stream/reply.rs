//! What control requests are answered with: the bodies of [`Success::response`](super::Success::response).
//!
//! ```
//! use oarlock_proto::stream::{decode, reply, Message, Response};
//!
//! let line = br#"{"type":"control_response","response":
//!     {"subtype":"success","request_id":"7","response":{"still_queued":["u1"]}}}"#;
//! let Ok(Message::ControlResponse(answer)) = decode(line) else { panic!("known") };
//! let Response::Success(success) = answer.response else { panic!("success") };
//! let receipt: reply::Interrupt = success.response.expect("body").read().expect("receipt");
//! assert_eq!(receipt.still_queued, ["u1"]);
//! ```

use std::collections::BTreeMap;

use serde_json::Number;

use super::control::{PermissionMode, SlashCommand};
use super::macros::{record, word};
use super::{Json, McpServerState, ModelUsage, Plugin, SessionState};

record! {
    /// To `initialize`.
    pub struct Initialize {
        commands: Vec<SlashCommand>,
        agents: Vec<AgentInfo>,
        output_style: Option<String>,
        available_output_styles: Option<Vec<String>>,
        models: Vec<ModelInfo>,
        account: Option<AccountInfo>,
        pid: Option<u64>,
        claude_code_version: Option<String>,
        current_permission_mode: Option<PermissionMode>,
        session_state: Option<SessionState>,
        capabilities: Option<Vec<String>>,
        hooks_applied: Option<bool>,
        /// Does this CLI obey `onFailure` of a hook?
        hook_on_failure_supported: Option<bool>,
        other_hook_ask_outranks_host: Option<bool>,
        plugins_applied: Option<bool>,
        sdk_mcp_manifests_parked: Option<BTreeMap<String, String>>,
        feedback_mode: Option<Json>,
        user_output_styles_dir: Option<String>,
        analytics_disabled: Option<bool>,
        fast_mode_state: Option<String>,
        fast_mode_disabled_reason: Option<String>,
    }

    /// A subagent there is.
    pub struct AgentInfo {
        name: String,
        description: Option<String>,
        model: Option<String>,
    }

    /// A model there is.
    pub struct ModelInfo {
        value: String,
        resolved_model = "resolvedModel": Option<String>,
        display_name = "displayName": Option<String>,
        description: Option<String>,
        supports_effort = "supportsEffort": Option<bool>,
        supported_effort_levels = "supportedEffortLevels": Option<Vec<String>>,
        supports_adaptive_thinking = "supportsAdaptiveThinking": Option<bool>,
        supports_fast_mode = "supportsFastMode": Option<bool>,
        supports_auto_mode = "supportsAutoMode": Option<bool>,
        supports_thinking_off = "supportsThinkingOff": Option<bool>,
    }

    /// Who is logged in.
    pub struct AccountInfo {
        email: Option<String>,
        organization: Option<String>,
        subscription_type = "subscriptionType": Option<String>,
        token_source = "tokenSource": Option<String>,
        api_key_source = "apiKeySource": Option<String>,
        api_provider = "apiProvider": Option<String>,
    }

    /// To `interrupt`, from 2.1.325 on.
    pub struct Interrupt {
        /// Messages that will run next.
        still_queued: Vec<String>,
        /// Messages that will never run.
        cancelled: Option<Vec<String>>,
    }

    /// To `set_permission_mode`.
    pub struct SetPermissionMode {
        mode: PermissionMode,
    }

    /// To `set_model`, from 2.1.325 on.
    pub struct SetModel {
        model: Option<String>,
    }

    /// To `get_settings`.
    pub struct GetSettings {
        effective: Json,
        sources: Vec<SettingsSource>,
        applied: Option<Json>,
    }

    /// A file of settings.
    pub struct SettingsSource {
        source: String,
        settings: Json,
    }

    /// To `get_context_usage`.
    pub struct GetContextUsage {
        categories: Vec<ContextCategory>,
        total_tokens = "totalTokens": u64,
        max_tokens = "maxTokens": u64,
        raw_max_tokens = "rawMaxTokens": Option<u64>,
        percentage: Option<Number>,
        autocompact_source = "autocompactSource": Option<String>,
        model: Option<String>,
        grid_rows = "gridRows": Option<Json>,
        memory_files = "memoryFiles": Option<Json>,
        mcp_tools = "mcpTools": Option<Json>,
        agents: Option<Json>,
        skills: Option<Json>,
    }

    /// A part of the context.
    pub struct ContextCategory {
        id: Option<String>,
        name: String,
        tokens: u64,
        color: Option<String>,
        kind: Option<String>,
        is_deferred = "isDeferred": Option<bool>,
    }

    /// To `get_session_cost`.
    pub struct GetSessionCost {
        text: String,
    }

    /// To `get_usage`.
    pub struct GetUsage {
        session: SessionUsage,
        subscription_type: Option<String>,
        rate_limits_available: Option<bool>,
        rate_limits: Option<Json>,
        behaviors: Option<Json>,
    }

    /// What the session has used.
    pub struct SessionUsage {
        total_cost_usd: Option<Number>,
        total_api_duration_ms: Option<Number>,
        total_duration_ms: Option<Number>,
        total_lines_added: Option<u64>,
        total_lines_removed: Option<u64>,
        model_usage: Option<BTreeMap<String, ModelUsage>>,
    }

    /// To `get_binary_version`.
    pub struct GetBinaryVersion {
        version: String,
        build_time = "buildTime": Option<String>,
    }

    /// To `mcp_status`.
    pub struct McpStatus {
        mcp_servers = "mcpServers": Vec<McpServerStatus>,
    }

    /// An MCP server and how it is.
    pub struct McpServerStatus {
        name: String,
        status: McpServerState,
        scope: Option<String>,
        source: Option<String>,
        transport: Option<String>,
        server_info = "serverInfo": Option<Json>,
        config: Option<Json>,
        error: Option<String>,
        tools: Option<Vec<McpTool>>,
    }

    /// A tool of an MCP server.
    pub struct McpTool {
        name: String,
        description: Option<String>,
        annotations: Option<Json>,
    }

    /// To `mcp_set_servers`.
    pub struct McpSetServers {
        added: Vec<String>,
        removed: Vec<String>,
        errors: BTreeMap<String, String>,
    }

    /// To `mcp_call`.
    pub struct McpCall {
        content: Json,
        structured_content = "structuredContent": Option<Json>,
    }

    /// To `mcp_read_resource`.
    pub struct McpReadResource {
        contents: Vec<Json>,
    }

    /// To `rewind_files`.
    pub struct RewindFiles {
        can_rewind = "canRewind": bool,
        error: Option<String>,
        files_changed = "filesChanged": Option<Vec<String>>,
        insertions: Option<u64>,
        deletions: Option<u64>,
        /// A number, or the links.
        skipped_links = "skippedLinks": Option<Json>,
    }

    /// To `rewind_conversation`.
    pub struct RewindConversation {
        rewound: bool,
        reason: Option<String>,
        target_message_uuid = "targetMessageUuid": Option<String>,
        prefill_text = "prefillText": Option<String>,
        preceding_assistant_uuid = "precedingAssistantUuid": Option<String>,
    }

    /// To `cancel_async_message`.
    pub struct CancelAsyncMessage {
        cancelled: bool,
    }

    /// To `read_file`.
    pub struct ReadFile {
        contents: String,
        abs_path = "absPath": String,
        requested_path: Option<String>,
        truncated: Option<bool>,
        encoding: Option<String>,
        lossy: Option<bool>,
    }

    /// To `file_suggestions`.
    pub struct FileSuggestions {
        suggestions: Vec<Json>,
    }

    /// To `get_task_output`.
    pub struct GetTaskOutput {
        output: String,
        total_bytes: Option<u64>,
        truncated: Option<bool>,
    }

    /// To `list_permission_rules`.
    pub struct ListPermissionRules {
        state: PermissionRules,
    }

    /// The permission rules there are.
    pub struct PermissionRules {
        rules: Vec<PermissionRuleEntry>,
        workspace_directories = "workspaceDirectories": Option<Vec<Json>>,
        original_cwd = "originalCwd": Option<String>,
        managed_only = "managedOnly": Option<bool>,
    }

    /// A permission rule and where it is from.
    pub struct PermissionRuleEntry {
        behavior: super::PermissionBehavior,
        source: String,
        rule: String,
        description: Option<Json>,
        editability: Option<String>,
        not_in_effect = "notInEffect": Option<bool>,
    }

    /// To `get_hooks_listing`.
    pub struct GetHooksListing {
        events: Vec<Json>,
        hooks: Option<Vec<Json>>,
    }

    /// To `reload_plugins`.
    pub struct ReloadPlugins {
        commands: Vec<SlashCommand>,
        agents: Option<Vec<AgentInfo>>,
        plugins: Option<Vec<Plugin>>,
        mcp_servers = "mcpServers": Option<Vec<McpServerStatus>>,
        error_count: Option<u64>,
        held: Option<bool>,
        cache_impact: Option<Json>,
    }

    /// To `reload_skills`.
    pub struct ReloadSkills {
        skills: Vec<SlashCommand>,
    }

    /// To `reload_output_styles`.
    pub struct ReloadOutputStyles {
        available_output_styles: Vec<String>,
    }

    /// To `generate_session_title`.
    pub struct GenerateSessionTitle {
        title: Option<String>,
    }

    /// To `side_question`.
    pub struct SideQuestion {
        response: Option<String>,
        synthetic: Option<bool>,
    }

    /// To `mcp_message`: the MCP server's JSON-RPC answer.
    pub struct McpMessage {
        mcp_response: Json,
    }

    /// To `elicitation`.
    pub struct Elicitation {
        action: ElicitationAction,
        content: Option<Json>,
    }
}

word! {
    /// What the user did with an MCP server's question.
    pub enum ElicitationAction {
        /// Answered.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Said nothing.
        Cancel = "cancel",
    }
}
