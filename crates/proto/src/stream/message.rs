//! Messages: one for each line, either way.

use serde_json::Number;

use super::control::{ControlCancelRequest, ControlRequest, ControlResponse};
use super::macros::{record, tagged, word};
use super::record::{Fields, Record};
use super::{ApiMessage, Content, Event, Json, Role, System, TurnResult};

tagged! {
    /// One line of the protocol.
    ///
    /// Both sides write the same envelopes, so this is also what a host sends (`user`, `control_request`,
    /// `control_response`, `control_cancel_request`).
    ///
    /// ```
    /// use oarlock_proto::stream::{Message, User};
    ///
    /// let line = serde_json::to_string(&Message::User(Box::new(User::prompt("hello")))).expect("plain data");
    /// assert_eq!(
    ///     line,
    ///     r#"{"type":"user","message":{"role":"user","content":"hello"},"parent_tool_use_id":null}"#
    /// );
    /// ```
    pub enum Message by "type" {
        /// A piece of a message that is being written.
        "stream_event" => StreamEvent(Box<StreamEvent>),
        /// A block of the model's message.
        "assistant" => Assistant(Box<Assistant>),
        /// A prompt, a tool's result, a replay, a mark.
        "user" => User(Box<User>),
        /// News about the session.
        "system" => System(System),
        /// The end of a turn.
        "result" => Result(Box<TurnResult>),
        /// A question to the other side.
        "control_request" => ControlRequest(ControlRequest),
        /// The answer to one.
        "control_response" => ControlResponse(ControlResponse),
        /// Such a question is withdrawn.
        "control_cancel_request" => ControlCancelRequest(ControlCancelRequest),
        /// A tool is still at work.
        "tool_progress" => ToolProgress(ToolProgress),
        /// What became of a user message that has a uuid.
        "command_lifecycle" => CommandLifecycle(CommandLifecycle),
        /// The conversation starts afresh.
        "conversation_reset" => ConversationReset(ConversationReset),
        /// News about the account's limits.
        "rate_limit_event" => RateLimitEvent(Box<RateLimitEvent>),
        /// A summary of tool calls.
        "tool_use_summary" => ToolUseSummary(ToolUseSummary),
        /// A login goes on.
        "auth_status" => AuthStatus(AuthStatus),
        /// What the user might say next.
        "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
        /// The goal the session works towards.
        "active_goal" => ActiveGoal(ActiveGoal),
        /// Records that were added to a transcript.
        "transcript_mirror" => TranscriptMirror(TranscriptMirror),
        /// Nothing, to keep the line open.
        "keep_alive" => KeepAlive(KeepAlive),
        /// New environment variables for the CLI.
        "update_environment_variables" => UpdateEnvironmentVariables(UpdateEnvironmentVariables),
    }
}

impl Message {
    /// The session it belongs to, when it says so.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        match self {
            Self::StreamEvent(message) => message.session_id.as_deref(),
            Self::Assistant(message) => message.session_id.as_deref(),
            Self::User(message) => message.session_id.as_deref(),
            Self::System(message) => message.session_id(),
            Self::Result(message) => message.session_id.as_deref(),
            Self::ToolProgress(message) => message.session_id.as_deref(),
            Self::CommandLifecycle(message) => message.session_id.as_deref(),
            Self::ConversationReset(message) => message.session_id.as_deref(),
            Self::RateLimitEvent(message) => message.session_id.as_deref(),
            Self::ToolUseSummary(message) => message.session_id.as_deref(),
            Self::AuthStatus(message) => message.session_id.as_deref(),
            Self::PromptSuggestion(message) => message.session_id.as_deref(),
            Self::ActiveGoal(message) => message.session_id.as_deref(),
            _ => None,
        }
    }

    /// The tool call inside which it happened, for what a subagent does.
    #[must_use]
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        match self {
            Self::StreamEvent(message) => message.parent_tool_use_id.as_deref(),
            Self::Assistant(message) => message.parent_tool_use_id.as_deref(),
            Self::User(message) => message.parent_tool_use_id.as_deref(),
            Self::ToolProgress(message) => message.parent_tool_use_id.as_deref(),
            _ => None,
        }
    }
}

record! {
    /// A piece of a message that is being written; only with partial messages switched on.
    pub struct StreamEvent {
        event: Event,
        session_id: Option<String>,
        parent_tool_use_id: Option<String>,
        uuid: Option<String>,
        /// The message the event belongs to (from 2.1.325 on).
        api_message_id: Option<String>,
        /// Milliseconds to the first token, with `message_start`.
        ttft_ms: Option<Number>,
        thinking_display: Option<String>,
        /// Blocks that will not be finished, with the `message_stop` of a broken stream.
        abandoned_blocks: Option<AbandonedBlocks>,
        owed_rows: Option<Vec<Json>>,
        user_message_uuid: Option<String>,
        user_message_uuids: Option<Vec<String>>,
        resume_reason: Option<String>,
    }

    /// Blocks of a broken stream that will not be finished.
    pub struct AbandonedBlocks {
        api_message_id: String,
        from_block_index: u64,
    }

    /// One block of the model's message; all blocks of a message carry the same `message.id`.
    pub struct Assistant {
        message: ApiMessage,
        /// The tool call that started the subagent which speaks.
        parent_tool_use_id: Option<String>,
        session_id: Option<String>,
        uuid: Option<String>,
        /// Why the API failed, when the CLI wrote this itself.
        error: Option<AssistantError>,
        timestamp: Option<String>,
        tool_use_meta: Option<Vec<ToolUseMeta>>,
        agent_id: Option<String>,
        subagent_type: Option<String>,
        task_description: Option<String>,
        request_id: Option<String>,
        user_message_uuid: Option<String>,
        user_message_uuids: Option<Vec<String>>,
        thinking_duration_ms: Option<Number>,
        thinking_display: Option<String>,
        is_api_error_message: Option<bool>,
        api_error_status: Option<u64>,
        api_error_type: Option<String>,
        /// Messages that this one takes the place of.
        supersedes: Option<Vec<String>>,
        aborted: Option<bool>,
        resume_reason: Option<String>,
        resumed_from_incomplete_thinking: Option<bool>,
        context_usage: Option<Json>,
        usage_report: Option<Json>,
    }

    /// How to show a call of an MCP tool.
    pub struct ToolUseMeta {
        id: String,
        tool_name: Option<String>,
        display_name: Option<String>,
        server_display_name: Option<String>,
    }

    /// A prompt, a tool's result, a replay of what the host sent, a subagent's prompt, or a mark.
    pub struct User {
        message: UserMessage,
        parent_tool_use_id: Option<String>,
        session_id: Option<String>,
        /// The host's own uuid is kept: it names the message ever after.
        uuid: Option<String>,
        timestamp: Option<String>,
        /// What the tool answered, as data. [`ToolOutput::of`](super::ToolOutput::of) types it. A failure is a string.
        tool_use_result: Option<Json>,
        tool_result_meta: Option<Vec<ToolResultMeta>>,
        is_replay = "isReplay": Option<bool>,
        is_synthetic = "isSynthetic": Option<bool>,
        agent_id: Option<String>,
        subagent_type: Option<String>,
        task_description: Option<String>,
        /// When it shall be read: at once, next, or later.
        priority: Option<Priority>,
        /// `false` stores the message without a turn.
        should_query = "shouldQuery": Option<bool>,
        origin: Option<Origin>,
        client_composed: Option<bool>,
        pasted_content: Option<Json>,
        inline_pastes: Option<Vec<String>>,
        file_attachments: Option<Vec<Json>>,
        refused_message_id: Option<String>,
    }

    /// What the user, or a tool in the user's name, says.
    pub struct UserMessage {
        role: Role,
        content: Content,
    }

    /// How a tool's result came about.
    pub struct ToolResultMeta {
        id: String,
        permission_decision: Option<PermissionDecision>,
        non_execution_kind: Option<String>,
    }

    /// Who allowed or refused a tool.
    pub struct PermissionDecision {
        decision: String,
        source: Option<String>,
        reason_type: Option<String>,
    }

    /// A tool is still at work.
    pub struct ToolProgress {
        tool_use_id: String,
        tool_name: String,
        /// The call itself, when `tool_use_id` is a heartbeat's.
        parent_tool_use_id: Option<String>,
        elapsed_time_seconds: Option<Number>,
        task_id: Option<String>,
        heartbeat: Option<bool>,
        subagent_type: Option<String>,
        subagent_retry: Option<Json>,
        session_id: Option<String>,
        uuid: Option<String>,
    }

    /// What became of a user message that has a uuid.
    pub struct CommandLifecycle {
        command_uuid: String,
        state: CommandState,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The conversation starts afresh; the new session id is in the next `init`.
    pub struct ConversationReset {
        new_conversation_id: String,
        trigger: Option<String>,
        user_message_uuid: Option<String>,
        timestamp: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// News about the account's limits.
    pub struct RateLimitEvent {
        rate_limit_info: RateLimitInfo,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// How much of a limit is used.
    pub struct RateLimitInfo {
        status: RateLimitStatus,
        /// Seconds since 1970.
        resets_at = "resetsAt": Option<Number>,
        rate_limit_type = "rateLimitType": Option<String>,
        utilization: Option<Number>,
        overage_status = "overageStatus": Option<RateLimitStatus>,
        overage_resets_at = "overageResetsAt": Option<Number>,
        overage_disabled_reason = "overageDisabledReason": Option<String>,
        is_using_overage = "isUsingOverage": Option<bool>,
        overage_in_use = "overageInUse": Option<bool>,
        overage_enabled = "overageEnabled": Option<bool>,
        surpassed_threshold = "surpassedThreshold": Option<Number>,
        limit_scope = "limitScope": Option<String>,
        error_code = "errorCode": Option<String>,
        can_user_purchase_credits = "canUserPurchaseCredits": Option<bool>,
        has_chargeable_saved_payment_method = "hasChargeableSavedPaymentMethod": Option<bool>,
    }

    /// A summary of tool calls.
    pub struct ToolUseSummary {
        summary: String,
        preceding_tool_use_ids: Vec<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A login goes on.
    pub struct AuthStatus {
        is_authenticating = "isAuthenticating": bool,
        output: Vec<String>,
        error: Option<String>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// What the user might say next.
    pub struct PromptSuggestion {
        suggestion: String,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// The goal the session works towards; none when there is no value.
    pub struct ActiveGoal {
        value: Option<Goal>,
        uuid: Option<String>,
        session_id: Option<String>,
    }

    /// A goal and how far it is.
    pub struct Goal {
        condition: String,
        iterations: u64,
        set_at: Option<Number>,
        tokens_at_start: u64,
        last_reason: Option<String>,
    }

    /// Records that were added to a transcript, for a host that keeps a copy.
    pub struct TranscriptMirror {
        file_path = "filePath": String,
        entries: Vec<Json>,
    }

    /// Nothing, to keep the line open.
    pub struct KeepAlive {}

    /// New environment variables for the CLI.
    pub struct UpdateEnvironmentVariables {
        variables: Option<Json>,
    }

    /// Who or what wrote a message or started a turn.
    pub struct Origin {
        kind: OriginKind,
        subkind: Option<String>,
        producer: Option<String>,
        run_id = "runId": Option<String>,
        fire_reason = "fireReason": Option<String>,
        server: Option<String>,
        from: Option<String>,
        name: Option<String>,
        from_mode = "fromMode": Option<String>,
        from_session = "fromSession": Option<String>,
        sender_task_id = "senderTaskId": Option<String>,
        body: Option<String>,
        verified_peer_pid = "verifiedPeerPid": Option<u64>,
    }
}

impl User {
    /// A prompt to send.
    #[must_use]
    pub fn prompt(content: impl Into<Content>) -> Self {
        // The CLI's own clients say that a prompt has no parent, so `null` is written.
        let mut user = Self::from_fields(Fields(vec![("parent_tool_use_id".into(), Json::default())]));
        user.message = UserMessage { role: Role::User, content: content.into(), ..Default::default() };
        user
    }
}

word! {
    /// Why an API call failed.
    pub enum AssistantError {
        /// The key or the login is not accepted.
        AuthenticationFailed = "authentication_failed",
        /// The organisation does not allow this login.
        OauthOrgNotAllowed = "oauth_org_not_allowed",
        /// The account is on hold.
        AccountOnHold = "account_on_hold",
        /// The account has to be verified.
        VerificationRequired = "verification_required",
        /// Nobody pays.
        BillingError = "billing_error",
        /// Too much at once, or a limit is used up.
        RateLimit = "rate_limit",
        /// The API has too much to do.
        Overloaded = "overloaded",
        /// The request is wrong; too long a prompt is one.
        InvalidRequest = "invalid_request",
        /// There is no such model.
        ModelNotFound = "model_not_found",
        /// The API failed or could not be reached.
        ServerError = "server_error",
        /// The answer was too long.
        MaxOutputTokens = "max_output_tokens",
        /// A cloud provider's credentials are not accepted.
        CloudCredentialError = "cloud_credential_error",
        /// The CLI does not know either.
        Unspecified = "unknown",
    }

    /// When a message shall be read.
    pub enum Priority {
        /// At once: the running turn is ended.
        Now = "now",
        /// After what runs.
        Next = "next",
        /// When there is nothing else.
        Later = "later",
    }

    /// What became of a user message.
    pub enum CommandState {
        /// It waits.
        Queued = "queued",
        /// Its turn runs.
        Started = "started",
        /// Its turn is over.
        Completed = "completed",
        /// It never ran.
        Cancelled = "cancelled",
    }

    /// How a limit stands.
    pub enum RateLimitStatus {
        /// Room enough.
        Allowed = "allowed",
        /// Little left.
        AllowedWarning = "allowed_warning",
        /// Used up.
        Rejected = "rejected",
    }

    /// Who or what wrote a message.
    pub enum OriginKind {
        /// A person.
        Human = "human",
        /// A channel's server.
        Channel = "channel",
        /// Another session.
        Peer = "peer",
        /// A background task has ended.
        TaskNotification = "task-notification",
        /// The session that leads.
        Coordinator = "coordinator",
        /// An observer.
        Observer = "observer",
        /// An observer's doings.
        ObserverActivity = "observer-activity",
        /// The CLI itself, to go on.
        AutoContinuation = "auto-continuation",
        /// Not known.
        Unclassified = "unclassified",
    }
}
