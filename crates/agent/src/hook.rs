//! Hooks: the program is told what happens, and may step in.
//!
//! ```
//! use oarlock_agent::{Options, hook::Hook, stream::hook::{HookEvent, HookOutput}};
//!
//! let options = Options::new().hook(Hook::on("PreToolUse").matching("Bash"), |call| async move {
//!     match &call.event {
//!         HookEvent::PreToolUse(event) if event.tool_input.text().contains("rm -rf") => call.deny("not here"),
//!         _ => HookOutput::default(), // no opinion
//!     }
//! });
//! ```

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::stream::hook::{
    HookDecision, HookEvent, HookInput, HookOutput, HookSpecificOutput, PermissionRequestOutput,
    PreToolUseOutput,
};
use crate::stream::{Json, PermissionResult};

/// For which event, and which tools, a callback is called.
#[derive(Debug, Clone)]
pub struct Hook {
    pub(crate) event: String,
    pub(crate) matcher: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_failure: OnFailure,
}

/// What happens when a callback panics or takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// What it watches over does not happen: the tool is refused, the prompt is blocked. Events that only tell what has
    /// happened go on, and so does the end of a turn (`Stop`, `SubagentStop`): blocked again and again by a broken
    /// callback, it would never come.
    #[default]
    Block,
    /// As if it had no opinion.
    Continue,
}

impl Hook {
    /// A hook on an event, by its name: one of [`HookEvent::TAGS`], or one that a newer CLI knows.
    pub fn on(event: impl Into<String>) -> Self {
        Self { event: event.into(), matcher: None, timeout: None, on_failure: OnFailure::default() }
    }

    /// Only for tools with this name (or whatever else the event matches by): a name, `A|B`, or a regular expression.
    #[must_use]
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// How long the callback may take. The CLI's own limit is a minute.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Is a failing callback a no? Only where something is still to happen.
    pub(crate) fn blocks_on_failure(&self) -> bool {
        const GATES: [&str; 5] =
            ["ConfigChange", "Elicitation", "PermissionRequest", "UserPromptExpansion", "UserPromptSubmit"];
        let is_gate = self.event.starts_with("Pre") || GATES.contains(&self.event.as_str());
        self.on_failure == OnFailure::Block && is_gate
    }

    /// What happens when the callback panics or takes too long.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }
}

/// What a hook is told. Dereferences to the [`HookInput`].
#[derive(Debug, Clone)]
pub struct HookCall {
    pub(crate) input: HookInput,
    pub(crate) tool_use_id: Option<String>,
    pub(crate) withdrawn: CancellationToken,
}

impl Deref for HookCall {
    type Target = HookInput;

    fn deref(&self) -> &HookInput {
        &self.input
    }
}

impl HookCall {
    /// The tool call that it is about. For other events the CLI makes an id up.
    #[must_use]
    pub fn tool_use_id(&self) -> Option<&str> {
        self.tool_use_id.as_deref()
    }

    /// Fires when the CLI no longer wants an answer.
    #[must_use]
    pub fn withdrawn(&self) -> &CancellationToken {
        &self.withdrawn
    }

    /// No: in the form that the event understands. The tool is refused, the prompt is blocked, the end is put off.
    #[must_use]
    pub fn deny(&self, reason: impl Into<String>) -> HookOutput {
        deny(&self.input.event, reason.into())
    }

    /// Yes, without a question to the user (`PreToolUse`).
    #[must_use]
    pub fn allow(&self) -> HookOutput {
        HookOutput::specific(HookSpecificOutput::PreToolUse(PreToolUseOutput {
            permission_decision: Some(HookDecision::Allow),
            ..Default::default()
        }))
    }

    /// Yes, with this input in place of the model's (`PreToolUse`).
    #[must_use]
    pub fn allow_with(&self, input: impl Into<Json>) -> HookOutput {
        HookOutput::specific(HookSpecificOutput::PreToolUse(PreToolUseOutput {
            permission_decision: Some(HookDecision::Allow),
            updated_input: Some(input.into()),
            ..Default::default()
        }))
    }
}

/// A no in the form that the event understands.
pub(crate) fn deny(event: &HookEvent, reason: String) -> HookOutput {
    match event {
        HookEvent::PreToolUse(_) => HookOutput::specific(HookSpecificOutput::PreToolUse(PreToolUseOutput {
            permission_decision: Some(HookDecision::Deny),
            permission_decision_reason: Some(reason),
            ..Default::default()
        })),
        HookEvent::PermissionRequest(_) => {
            HookOutput::specific(HookSpecificOutput::PermissionRequest(PermissionRequestOutput {
                decision: PermissionResult::deny(reason),
                ..Default::default()
            }))
        }
        _ => HookOutput { decision: Some("block".into()), reason: Some(reason), ..Default::default() },
    }
}

/// A hook and its callback.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) hook: Hook,
    pub(crate) callback: Arc<dyn Fn(HookCall) -> crate::tool::BoxFuture<HookOutput> + Send + Sync>,
}

impl Options {
    /// Calls a function when something happens. Several hooks for one event are all called.
    ///
    /// `SessionStart` and `Setup` do not reach callbacks, and `SessionEnd` comes when the program can no longer answer;
    /// that is the CLI's doing.
    #[must_use]
    pub fn hook<F, R>(mut self, hook: Hook, callback: F) -> Self
    where
        F: Fn(HookCall) -> R + Send + Sync + 'static,
        R: Future<Output = HookOutput> + Send + 'static,
    {
        let callback =
            Arc::new(move |call| -> crate::tool::BoxFuture<HookOutput> { Box::pin(callback(call)) });
        self.callbacks.hooks.push(Registered { hook, callback });
        self
    }
}
