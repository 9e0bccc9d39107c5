//! Permissions: the program decides about tools in the user's place.
//!
//! The CLI asks about every tool that its mode and rules do not settle. The callback gets a [`PermissionRequest`] and
//! returns a [`Decision`]. Several requests may be open at once, and one may be withdrawn: then its future is dropped,
//! and [`PermissionRequest::withdrawn`] fires for those who have passed it on.
//!
//! ```
//! use oarlock_agent::{Options, permission::PermissionRequest};
//!
//! let options = Options::new().can_use_tool(|request: PermissionRequest| async move {
//!     match request.tool_name.as_str() {
//!         "Read" | "Grep" => request.allow(),
//!         _ => request.deny("only reading is allowed here"),
//!     }
//! });
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Options;
use crate::dialog::Question;
use crate::stream::{
    Allow, AskUserQuestionInput, CanUseTool, DecisionClassification, Deny, Json, ModeUpdate,
    PermissionDestination, PermissionMode, PermissionResult, PermissionUpdate, ToolInput,
};

/// Yes or no, and with what.
pub type Decision = PermissionResult;

/// May this tool run? All that the CLI says about it is in [`CanUseTool`], to which this dereferences.
pub type PermissionRequest = Question<CanUseTool>;

impl Question<CanUseTool> {
    /// The tool and its input, typed.
    #[must_use]
    pub fn tool(&self) -> ToolInput {
        ToolInput::of(&self.tool_name, &self.input)
    }

    /// Yes, as it is.
    #[must_use]
    pub fn allow(&self) -> Decision {
        self.allow_with(self.input.clone())
    }

    /// Yes, but with this input in place of the model's.
    #[must_use]
    pub fn allow_with(&self, input: impl Into<Json>) -> Decision {
        Decision::Allow(Allow {
            updated_input: Some(input.into()),
            decision_classification: Some(DecisionClassification::UserTemporary),
            ..Default::default()
        })
    }

    /// Yes, now and ever after: with the rules that the CLI itself suggests. Without a suggestion it is a plain yes.
    #[must_use]
    pub fn allow_always(&self) -> Decision {
        let suggestions = self.permission_suggestions.clone().unwrap_or_default();
        if suggestions.is_empty() { self.allow() } else { self.allow_and_update(suggestions) }
    }

    /// Yes, with these changes to the rules.
    #[must_use]
    pub fn allow_and_update(&self, updates: Vec<PermissionUpdate>) -> Decision {
        Decision::Allow(Allow {
            updated_input: Some(self.input.clone()),
            updated_permissions: Some(updates),
            decision_classification: Some(DecisionClassification::UserPermanent),
            ..Default::default()
        })
    }

    /// No; the model reads why and goes on.
    #[must_use]
    pub fn deny(&self, message: impl Into<String>) -> Decision {
        Decision::Deny(Deny {
            message: message.into(),
            decision_classification: Some(DecisionClassification::UserReject),
            ..Default::default()
        })
    }

    /// No, and the turn ends. The model does not read the message.
    #[must_use]
    pub fn deny_and_interrupt(&self, message: impl Into<String>) -> Decision {
        Decision::Deny(Deny {
            message: message.into(),
            interrupt: Some(true),
            decision_classification: Some(DecisionClassification::UserReject),
            ..Default::default()
        })
    }

    /// The questions, when the model asks the user (`AskUserQuestion`). Answer with [`answer`](Self::answer).
    #[must_use]
    pub fn questions(&self) -> Option<AskUserQuestionInput> {
        match self.tool() {
            ToolInput::AskUserQuestion(input) => Some(input),
            _ => None,
        }
    }

    /// The answers to the model's questions: for each question's text a label or free text.
    #[must_use]
    pub fn answer(&self, answers: &BTreeMap<String, String>) -> Decision {
        let mut input = self.input.value();
        if let Value::Object(fields) = &mut input {
            fields.insert(
                "answers".into(),
                answers.iter().map(|(q, a)| (q.clone(), Value::from(a.clone()))).collect(),
            );
        }
        self.allow_with(input)
    }

    /// The plan, when the model wants to leave plan mode (`ExitPlanMode`). Without a plan file it is empty.
    #[must_use]
    pub fn plan(&self) -> Option<String> {
        match self.tool() {
            ToolInput::ExitPlanMode(input) => Some(input.plan.unwrap_or_default()),
            _ => None,
        }
    }

    /// The plan is good: work goes on in this mode.
    #[must_use]
    pub fn approve_plan(&self, mode: PermissionMode) -> Decision {
        let update = ModeUpdate { mode, destination: PermissionDestination::Session, ..Default::default() };
        self.allow_and_update(vec![PermissionUpdate::SetMode(update)])
    }
}

impl Options {
    /// Decides about tools. Without it the CLI refuses what its mode and rules do not allow.
    ///
    /// A callback that panics, or takes longer than [`permission_timeout`](Self::permission_timeout), is a no.
    /// Tools that `allowed_tools` or the mode allow are never asked about.
    #[must_use]
    pub fn can_use_tool<F, R>(mut self, decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Decision> + Send + 'static,
    {
        self.ask_host();
        self.callbacks.can_use_tool = Some(std::sync::Arc::new(move |request| Box::pin(decide(request))));
        self
    }

    /// How long [`can_use_tool`](Self::can_use_tool) may take. There is no limit by default: people think.
    #[must_use]
    pub fn permission_timeout(mut self, limit: std::time::Duration) -> Self {
        self.callbacks.permission_timeout = Some(limit);
        self
    }
}
