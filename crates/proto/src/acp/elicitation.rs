//! Questions to the user that are no permissions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stream::Json;

/// `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateElicitation {
    /// The session.
    pub session_id: String,
    /// The call it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What is asked.
    pub message: String,
    /// How.
    #[serde(flatten)]
    pub mode: ElicitationMode,
}

/// How a question is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ElicitationMode {
    /// By a form.
    Form {
        /// A flat JSON schema.
        requested_schema: Json,
    },
    /// By an address that the user opens.
    Url {
        /// The question's id, for `elicitation/complete`.
        elicitation_id: String,
        /// The address.
        url: String,
    },
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElicitationResponse {
    /// The user has answered.
    Accept {
        /// What, by the names of the form's fields.
        content: Option<BTreeMap<String, Value>>,
    },
    /// The user says no.
    Decline,
    /// The user says nothing.
    Cancel,
    /// A kind this version does not know: no answer.
    #[serde(other)]
    Unknown,
}

/// `elicitation/complete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteElicitation {
    /// The question's id.
    pub elicitation_id: String,
}
