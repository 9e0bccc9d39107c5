//! What a hook may answer.

use serde_json::Number;

use crate::stream::macros::{record, tagged, word};
use crate::stream::reply::ElicitationAction;
use crate::stream::{Json, PermissionResult};

record! {
    /// What a hook answers. An empty answer is no opinion.
    ///
    /// ```
    /// use oarlock_proto::stream::hook::{HookOutput, HookSpecificOutput, PreToolUseOutput, HookDecision};
    ///
    /// let output = HookOutput::specific(HookSpecificOutput::PreToolUse(PreToolUseOutput {
    ///     permission_decision: Some(HookDecision::Deny),
    ///     permission_decision_reason: Some("no".into()),
    ///     ..Default::default()
    /// }));
    /// assert_eq!(
    ///     serde_json::to_string(&output).expect("plain data"),
    ///     concat!(
    ///         r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","#,
    ///         r#""permissionDecision":"deny","permissionDecisionReason":"no"}}"#
    ///     )
    /// );
    /// ```
    pub struct HookOutput {
        /// `false` ends the turn.
        proceed = "continue": Option<bool>,
        stop_reason = "stopReason": Option<String>,
        suppress_output = "suppressOutput": Option<bool>,
        /// `block` or `approve`.
        decision: Option<String>,
        reason: Option<String>,
        /// For the user, not for the model.
        system_message = "systemMessage": Option<String>,
        terminal_sequence = "terminalSequence": Option<String>,
        hook_specific_output = "hookSpecificOutput": Option<HookSpecificOutput>,
        /// The real answer comes later.
        is_async = "async": Option<bool>,
        /// Milliseconds.
        async_timeout = "asyncTimeout": Option<Number>,
    }
}

impl HookOutput {
    /// An answer of the event's own kind.
    #[must_use]
    pub fn specific(output: HookSpecificOutput) -> Self {
        Self { hook_specific_output: Some(output), ..Default::default() }
    }
}

tagged! {
    /// What only one event's hook may answer.
    pub enum HookSpecificOutput by "hookEventName" {
        /// May the tool run, and with what?
        "PreToolUse" => PreToolUse(PreToolUseOutput),
        /// What does the model read?
        "PostToolUse" => PostToolUse(PostToolUseOutput),
        /// More for the model.
        "PostToolUseFailure" => PostToolUseFailure(ContextOutput),
        /// More for the model.
        "PostToolBatch" => PostToolBatch(ContextOutput),
        /// The user's answer.
        "PermissionRequest" => PermissionRequest(PermissionRequestOutput),
        /// Try again?
        "PermissionDenied" => PermissionDenied(PermissionDeniedOutput),
        /// More for the model.
        "UserPromptSubmit" => UserPromptSubmit(PromptOutput),
        /// More for the model.
        "UserPromptExpansion" => UserPromptExpansion(PromptOutput),
        /// Another text.
        "MessageDisplay" => MessageDisplay(MessageDisplayOutput),
        /// More for the model.
        "Notification" => Notification(ContextOutput),
        /// More for the model.
        "Stop" => Stop(ContextOutput),
        /// More for the model.
        "SubagentStart" => SubagentStart(ContextOutput),
        /// More for the model.
        "SubagentStop" => SubagentStop(ContextOutput),
        /// May the model change?
        "PreModelSwitch" => PreModelSwitch(PreModelSwitchOutput),
        /// More for the model.
        "PostModelSwitch" => PostModelSwitch(ContextOutput),
        /// How the session begins.
        "SessionStart" => SessionStart(SessionStartOutput),
        /// More for the model.
        "Setup" => Setup(ContextOutput),
        /// The answer to an MCP server.
        "Elicitation" => Elicitation(ElicitationOutput),
        /// Another answer to an MCP server.
        "ElicitationResult" => ElicitationResult(ElicitationOutput),
        /// Where the worktree is.
        "WorktreeCreate" => WorktreeCreate(WorktreeCreateOutput),
        /// What to watch.
        "CwdChanged" => CwdChanged(WatchOutput),
        /// What to watch.
        "FileChanged" => FileChanged(WatchOutput),
    }
}

record! {
    /// More for the model to read.
    pub struct ContextOutput {
        additional_context = "additionalContext": Option<String>,
    }

    /// May the tool run, and with what?
    pub struct PreToolUseOutput {
        permission_decision = "permissionDecision": Option<HookDecision>,
        permission_decision_reason = "permissionDecisionReason": Option<String>,
        /// The whole input: it takes the place of the model's.
        updated_input = "updatedInput": Option<Json>,
        additional_context = "additionalContext": Option<String>,
    }

    /// What the model reads of the tool's result.
    pub struct PostToolUseOutput {
        additional_context = "additionalContext": Option<String>,
        classifier_context = "classifierContext": Option<String>,
        /// Must have the tool's own shape.
        updated_tool_output = "updatedToolOutput": Option<Json>,
        updated_mcp_tool_output = "updatedMCPToolOutput": Option<Json>,
    }

    /// The answer in the user's place.
    pub struct PermissionRequestOutput {
        decision: PermissionResult,
    }

    /// Try again?
    pub struct PermissionDeniedOutput {
        retry: Option<bool>,
    }

    /// More for the model, or less.
    pub struct PromptOutput {
        additional_context = "additionalContext": Option<String>,
        session_title = "sessionTitle": Option<String>,
        suppress_original_prompt = "suppressOriginalPrompt": Option<bool>,
    }

    /// Another text to show.
    pub struct MessageDisplayOutput {
        display_content = "displayContent": Option<String>,
    }

    /// May the model change?
    pub struct PreModelSwitchOutput {
        permission_decision = "permissionDecision": Option<HookDecision>,
        permission_decision_reason = "permissionDecisionReason": Option<String>,
    }

    /// How the session begins.
    pub struct SessionStartOutput {
        additional_context = "additionalContext": Option<String>,
        initial_user_message = "initialUserMessage": Option<String>,
        session_title = "sessionTitle": Option<String>,
        watch_paths = "watchPaths": Option<Vec<String>>,
        reload_skills = "reloadSkills": Option<bool>,
    }

    /// The answer to an MCP server.
    pub struct ElicitationOutput {
        action: Option<ElicitationAction>,
        content: Option<Json>,
    }

    /// Where the worktree is.
    pub struct WorktreeCreateOutput {
        worktree_path = "worktreePath": String,
    }

    /// What to watch.
    pub struct WatchOutput {
        watch_paths = "watchPaths": Option<Vec<String>>,
    }
}

word! {
    /// What a hook decides about a tool.
    pub enum HookDecision {
        /// It may run, without a question.
        Allow = "allow",
        /// It may not run.
        Deny = "deny",
        /// Somebody is asked.
        Ask = "ask",
        /// The turn ends here.
        Defer = "defer",
    }
}
