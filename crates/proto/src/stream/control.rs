//! Control requests and responses, both ways.
//!
//! [`Request`] is what is asked (one enum for both directions: a host and a scripted CLI read and write the same words),
//! [`Response`] the envelope of an answer; [`reply`](super::reply) types the bodies.

use super::macros::{record, tagged, word};
use super::request::*;
use super::{Json, hook};

record! {
    /// A question to the other side. It must be answered, also when it is not understood.
    pub struct ControlRequest {
        request_id: String,
        request: Request,
    }

    /// The answer to a question.
    pub struct ControlResponse {
        response: Response,
    }

    /// A question is withdrawn; an answer would be ignored.
    pub struct ControlCancelRequest {
        request_id: String,
    }

    /// The question was answered.
    pub struct Success {
        request_id: String,
        /// Not there for many requests. [`reply`](super::reply) has the types.
        response: Option<Json>,
        pending_permission_requests: Option<Vec<Json>>,
        pending_user_dialog_requests: Option<Vec<Json>>,
        pending_elicitation_requests: Option<Vec<Json>>,
    }

    /// The question was refused, or failed.
    pub struct Failure {
        request_id: String,
        error: String,
        error_code: Option<String>,
        model: Option<String>,
        pending_permission_requests: Option<Vec<Json>>,
        pending_user_dialog_requests: Option<Vec<Json>>,
        pending_elicitation_requests: Option<Vec<Json>>,
    }

    /// A slash command.
    pub struct SlashCommand {
        name: String,
        description: Option<String>,
        argument_hint = "argumentHint": Option<String>,
        aliases: Option<Vec<String>>,
        builtin: Option<bool>,
    }
}

impl ControlRequest {
    /// A question with its id.
    #[must_use]
    pub fn new(request_id: impl Into<String>, request: Request) -> Self {
        Self { request_id: request_id.into(), request, ..Default::default() }
    }
}

impl ControlResponse {
    /// A good answer. Without a body none is written.
    #[must_use]
    pub fn success(request_id: impl Into<String>, response: Option<Json>) -> Self {
        let response =
            Response::Success(Success { request_id: request_id.into(), response, ..Default::default() });
        Self { response, ..Default::default() }
    }

    /// A refusal, or a failure.
    #[must_use]
    pub fn error(request_id: impl Into<String>, error: impl Into<String>) -> Self {
        let failure = Failure { request_id: request_id.into(), error: error.into(), ..Default::default() };
        Self { response: Response::Error(failure), ..Default::default() }
    }

    /// The id of the question it answers.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        match &self.response {
            Response::Success(success) => Some(&success.request_id),
            Response::Error(failure) => Some(&failure.request_id),
            Response::Unknown(_) => None,
        }
    }
}

tagged! {
    /// How a question was answered.
    pub enum Response by "subtype" {
        /// Well.
        "success" => Success(Success),
        /// Not at all.
        "error" => Error(Failure),
    }
}

tagged! {
    /// What is asked. The CLI asks the first six (and `mcp_message`), a host all the others.
    ///
    /// ```
    /// use oarlock_proto::stream::{ControlRequest, Message, Request, SetModel};
    ///
    /// let request = Request::SetModel(SetModel { model: Some("opus".into()), ..Default::default() });
    /// let line = serde_json::to_string(&Message::ControlRequest(ControlRequest::new("1", request))).expect("plain data");
    /// assert_eq!(
    ///     line,
    ///     r#"{"type":"control_request","request_id":"1","request":{"subtype":"set_model","model":"opus"}}"#
    /// );
    /// ```
    pub enum Request by "subtype" {
        /// May this tool run?
        "can_use_tool" => CanUseTool(Box<CanUseTool>),
        /// What does this hook say?
        "hook_callback" => HookCallback(Box<hook::HookCallback>),
        /// An MCP server asks the user.
        "elicitation" => Elicitation(Box<Elicitation>),
        /// The CLI asks the user.
        "request_user_dialog" => RequestUserDialog(RequestUserDialog),
        /// A new login token, please.
        "oauth_token_refresh" => OauthTokenRefresh(NoParams),
        /// A new token of the host's, please.
        "host_auth_token_refresh" => HostAuthTokenRefresh(NoParams),
        /// A message to or from an MCP server that the host runs.
        "mcp_message" => McpMessage(McpMessage),
        /// Hello.
        "initialize" => Initialize(Box<Initialize>),
        /// Stop the turn.
        "interrupt" => Interrupt(Interrupt),
        /// Another permission mode.
        "set_permission_mode" => SetPermissionMode(SetPermissionMode),
        /// Another model.
        "set_model" => SetModel(SetModel),
        /// More or less thinking.
        "set_max_thinking_tokens" => SetMaxThinkingTokens(SetMaxThinkingTokens),
        /// Settings for this session.
        "apply_flag_settings" => ApplyFlagSettings(ApplyFlagSettings),
        /// Settings to keep.
        "update_settings" => UpdateSettings(UpdateSettings),
        /// The settings in force.
        "get_settings" => GetSettings(NoParams),
        /// What fills the context.
        "get_context_usage" => GetContextUsage(GetContextUsage),
        /// The cost, in words.
        "get_session_cost" => GetSessionCost(NoParams),
        /// The cost and the limits.
        "get_usage" => GetUsage(GetUsage),
        /// The CLI's version.
        "get_binary_version" => GetBinaryVersion(NoParams),
        /// The CLI's state.
        "get_status" => GetStatus(NoParams),
        /// The plan.
        "get_plan" => GetPlan(NoParams),
        /// What has changed in the workspace.
        "get_workspace_diff" => GetWorkspaceDiff(NoParams),
        /// The hooks there are.
        "get_hooks_listing" => GetHooksListing(NoParams),
        /// What a task has written.
        "get_task_output" => GetTaskOutput(TaskRef),
        /// The models there are.
        "list_models" => ListModels(NoParams),
        /// The permission rules there are.
        "list_permission_rules" => ListPermissionRules(NoParams),
        /// The MCP servers and how they are.
        "mcp_status" => McpStatus(McpStatus),
        /// Other MCP servers.
        "mcp_set_servers" => McpSetServers(McpSetServers),
        /// Connect an MCP server again.
        "mcp_reconnect" => McpReconnect(ServerRef),
        /// Switch an MCP server on or off.
        "mcp_toggle" => McpToggle(McpToggle),
        /// Call an MCP tool.
        "mcp_call" => McpCall(Box<McpCall>),
        /// Read an MCP resource.
        "mcp_read_resource" => McpReadResource(McpReadResource),
        /// Log in to an MCP server.
        "mcp_authenticate" => McpAuthenticate(ServerRef),
        /// Log out of an MCP server.
        "mcp_clear_auth" => McpClearAuth(ServerRef),
        /// Where an MCP server's login came back to.
        "mcp_oauth_callback_url" => McpOauthCallbackUrl(ServerRef),
        /// Switch a channel on.
        "channel_enable" => ChannelEnable(ServerRef),
        /// Another permission mode for an MCP server.
        "set_mcp_permission_mode_override" => SetMcpPermissionModeOverride(ServerRef),
        /// Put files back.
        "rewind_files" => RewindFiles(RewindFiles),
        /// Go back in the conversation.
        "rewind_conversation" => RewindConversation(RewindConversation),
        /// End a task.
        "stop_task" => StopTask(TaskRef),
        /// Go on in the background.
        "background_tasks" => BackgroundTasks(BackgroundTasks),
        /// Forget a queued message.
        "cancel_async_message" => CancelAsyncMessage(CancelAsyncMessage),
        /// Read a file of the workspace.
        "read_file" => ReadFile(ReadFile),
        /// Files that begin like this.
        "file_suggestions" => FileSuggestions(FileSuggestions),
        /// The model has seen this file.
        "seed_read_state" => SeedReadState(SeedReadState),
        /// One more repository.
        "register_repo_root" => RegisterRepoRoot(RegisterRepoRoot),
        /// One more directory.
        "add_directory" => AddDirectory(NoParams),
        /// Another working directory.
        "set_cwd" => SetCwd(SetCwd),
        /// Read the plugins again.
        "reload_plugins" => ReloadPlugins(ReloadPlugins),
        /// Read the skills again.
        "reload_skills" => ReloadSkills(NoParams),
        /// Read the output styles again.
        "reload_output_styles" => ReloadOutputStyles(NoParams),
        /// Another title.
        "rename_session" => RenameSession(RenameSession),
        /// Make up a title.
        "generate_session_title" => GenerateSessionTitle(GenerateSessionTitle),
        /// A question beside the conversation.
        "side_question" => SideQuestion(SideQuestion),
        /// A message was good or bad.
        "message_rated" => MessageRated(NoParams),
        /// A word to the makers.
        "submit_feedback" => SubmitFeedback(NoParams),
        /// Another colour.
        "set_color" => SetColor(SetColor),
        /// Somebody reads along, or nobody.
        "set_has_subscribers" => SetHasSubscribers(SetHasSubscribers),
        /// How much to do unasked.
        "set_proactivity_level" => SetProactivityLevel(NoParams),
        /// Suggest prompts, or do not.
        "set_prompt_suggestions_paused" => SetPromptSuggestionsPaused(NoParams),
        /// The conversation as a text.
        "export_conversation" => ExportConversation(NoParams),
        /// Goodbye.
        "end_session" => EndSession(NoParams),
    }
}

word! {
    /// Who decides about tools.
    pub enum PermissionMode {
        /// Ask, where it is needed (`manual` is the same).
        Default = "default",
        /// Edits need no question.
        AcceptEdits = "acceptEdits",
        /// Nothing needs a question.
        BypassPermissions = "bypassPermissions",
        /// Nothing is changed before a plan is accepted.
        Plan = "plan",
        /// What would ask is refused.
        DontAsk = "dontAsk",
        /// A model decides.
        Auto = "auto",
    }
}
