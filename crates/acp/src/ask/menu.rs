//! A question with a few answers (`session/request_permission`), and what each answer means.
//!
//! Only what was offered can be chosen: an answer that names anything else, or that is no answer, chooses nothing.

use oarlock_proto::acp::{
    PermissionOption, PermissionOptionKind, PermissionOutcome, PermissionResponse, RequestPermission,
    ToolCall,
};
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::CallError;

use crate::context::Asker;

/// The code of an answer that says that the request was cancelled.
const CANCELLED: i64 = -32800;

/// An answer that the user may give, and what it means.
#[derive(Debug, Clone)]
pub(super) struct Offer<T> {
    id: String,
    name: String,
    kind: PermissionOptionKind,
    meaning: T,
}

impl<T> Offer<T> {
    pub(super) fn new(
        kind: PermissionOptionKind,
        id: impl Into<String>,
        name: impl Into<String>,
        meaning: T,
    ) -> Self {
        Self { id: id.into(), name: name.into(), kind, meaning }
    }

    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.kind, PermissionOptionKind::RejectOnce | PermissionOptionKind::RejectAlways)
    }

    fn option(&self) -> PermissionOption {
        PermissionOption { option_id: self.id.clone(), name: self.name.clone(), kind: self.kind }
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice<T> {
    /// The user has chosen.
    Made(T),
    /// The user wants the turn to stop.
    Cancelled,
    /// The client could not be asked, or its answer was none.
    Failed(String),
}

/// Asks which of the offers it shall be.
pub(super) async fn ask<T>(asker: &Asker, tool_call: ToolCall, offers: Vec<Offer<T>>) -> Choice<T> {
    let request = RequestPermission {
        session_id: asker.session_id.to_string(),
        tool_call,
        options: offers.iter().map(Offer::option).collect(),
    };
    match asker.ask::<PermissionResponse>("session/request_permission", &request).await {
        Ok(response) => choose(offers, response.outcome),
        Err(error) => unanswered(&error),
    }
}

/// What an error in the place of an answer means.
pub(super) fn unanswered<T>(error: &CallError) -> Choice<T> {
    match error {
        CallError::Refused(ErrorObject { code: CANCELLED, .. }) => Choice::Cancelled,
        error => Choice::Failed(error.to_string()),
    }
}

/// What an outcome means.
pub(super) fn choose<T>(offers: Vec<Offer<T>>, outcome: PermissionOutcome) -> Choice<T> {
    match outcome {
        PermissionOutcome::Selected { option_id } => {
            match offers.into_iter().find(|offer| offer.id == option_id) {
                Some(offer) => Choice::Made(offer.meaning),
                None => Choice::Failed("the client chose an answer that it was not offered".into()),
            }
        }
        PermissionOutcome::Cancelled => Choice::Cancelled,
        _ => Choice::Failed("the client gave an answer of a kind that is not known".into()),
    }
}

#[cfg(test)]
impl<T> Offer<T> {
    pub(super) fn parts(&self) -> (&str, &str, PermissionOptionKind) {
        (&self.id, &self.name, self.kind)
    }

    pub(super) fn meaning(&self) -> &T {
        &self.meaning
    }
}
