//! `result`: the end of a turn.

use std::collections::BTreeMap;

use serde_json::Number;

use super::macros::{record, word};
use super::{Json, ModelUsage, Origin, StopReason, Usage};

record! {
    /// The end of a turn. A failing API call is a [`ResultKind::Success`] with `is_error`.
    pub struct TurnResult {
        subtype: ResultKind,
        is_error: bool,
        /// The last message's text, or the API's error in words.
        result: Option<String>,
        /// What went wrong, for all kinds but success. Not for users to read.
        errors: Option<Vec<String>>,
        /// The answer, when a JSON schema was asked for.
        structured_output: Option<Json>,
        stop_reason: Option<StopReason>,
        terminal_reason: Option<TerminalReason>,
        api_error_status: Option<u64>,
        api_error_type: Option<String>,
        num_turns: u64,
        duration_ms: Option<Number>,
        /// Sum over the process.
        duration_api_ms: Option<Number>,
        /// Sum over the process (from 2.1.325 on: since `/clear`).
        total_cost_usd: Option<Number>,
        /// Of this turn.
        usage: Option<Usage>,
        /// Sums, as `total_cost_usd`.
        model_usage = "modelUsage": Option<BTreeMap<String, ModelUsage>>,
        /// Since the result before (from 2.1.325 on).
        model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
        permission_denials: Option<Vec<PermissionDenial>>,
        /// Set when the CLI started the turn by itself.
        origin: Option<Origin>,
        session_id: Option<String>,
        uuid: Option<String>,
        /// The last message that the turn answers.
        user_message_uuid: Option<String>,
        /// All of them.
        user_message_uuids: Option<Vec<String>>,
        result_index: Option<u64>,
        queued_turn_count: Option<u64>,
        subagent_stats: Option<SubagentStats>,
        safety_stops: Option<u64>,
        local_command: Option<String>,
        deferred_tool_use: Option<Json>,
        fast_mode_state: Option<String>,
        fast_mode_disabled_reason: Option<String>,
        startup_failure_reason: Option<String>,
        invalid_config_file: Option<Json>,
        resume_reason: Option<String>,
        credential_expires_at: Option<String>,
        ttft_ms: Option<Number>,
        ttft_stream_ms: Option<Number>,
        time_to_request_ms: Option<Number>,
        request_sent_wall_ms: Option<Number>,
        first_content_frame_ms: Option<Number>,
        first_request_input_tokens: Option<u64>,
        first_request_cache_read_input_tokens: Option<u64>,
    }

    /// A tool that was refused.
    pub struct PermissionDenial {
        tool_name: String,
        tool_use_id: String,
        tool_input: Json,
    }

    /// What the turn's subagents did.
    pub struct SubagentStats {
        spawned: u64,
        requested: Option<BTreeMap<String, u64>>,
        started_in_background: Option<u64>,
        max_depth: Option<u64>,
        spawned_by_subagents: Option<u64>,
        completed: Option<u64>,
        failed: Option<u64>,
        killed: Option<BTreeMap<String, u64>>,
        refused: Option<BTreeMap<String, u64>>,
        by_type: Option<BTreeMap<String, Json>>,
    }
}

word! {
    /// How a turn ended.
    pub enum ResultKind {
        /// By itself, or by an API error (then `is_error` is set).
        Success = "success",
        /// By an interrupt or a failure.
        ErrorDuringExecution = "error_during_execution",
        /// It took too many turns.
        ErrorMaxTurns = "error_max_turns",
        /// It cost too much.
        ErrorMaxBudgetUsd = "error_max_budget_usd",
        /// The model did not keep to the schema.
        ErrorMaxStructuredOutputRetries = "error_max_structured_output_retries",
    }

    /// Why a turn ended.
    pub enum TerminalReason {
        /// Done.
        Completed = "completed",
        /// Interrupted while the model wrote.
        AbortedStreaming = "aborted_streaming",
        /// Interrupted while a tool ran.
        AbortedTools = "aborted_tools",
        /// Too many turns.
        MaxTurns = "max_turns",
        /// The budget is used up.
        BudgetExhausted = "budget_exhausted",
        /// The API failed.
        ApiError = "api_error",
        /// The model failed.
        ModelError = "model_error",
        /// The prompt does not fit.
        PromptTooLong = "prompt_too_long",
        /// A picture cannot be used.
        ImageError = "image_error",
        /// Refused before it was sent.
        BlockingLimit = "blocking_limit",
        /// Summaries did not help.
        RapidRefillBreaker = "rapid_refill_breaker",
        /// The model's tool calls could not be read.
        MalformedToolUseExhausted = "malformed_tool_use_exhausted",
        /// A Stop hook said so.
        StopHookPrevented = "stop_hook_prevented",
        /// Another hook said so.
        HookStopped = "hook_stopped",
        /// A tool was put off.
        ToolDeferred = "tool_deferred",
        /// A tool that was put off is not there.
        ToolDeferredUnavailable = "tool_deferred_unavailable",
        /// The turn goes on in the background.
        BackgroundRequested = "background_requested",
        /// The model did not keep to the schema.
        StructuredOutputRetryExhausted = "structured_output_retry_exhausted",
        /// The turn could not begin.
        TurnSetupFailed = "turn_setup_failed",
    }
}
