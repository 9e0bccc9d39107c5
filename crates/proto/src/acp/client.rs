//! What the agent asks the client: permissions and files.

use serde::{Deserialize, Serialize};

use super::ToolCall;

/// `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermission {
    /// The session.
    pub session_id: String,
    /// The call, which was told before: its id is enough.
    pub tool_call: ToolCall,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
}

/// One of the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    /// Its name, for programs.
    pub option_id: String,
    /// Its name, for people.
    pub name: String,
    /// What it means.
    pub kind: PermissionOptionKind,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOptionKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
}

/// The answer to `session/request_permission`.
#[derive(Debug, Clone, Deserialize)]
pub struct PermissionResponse {
    /// What became of it.
    pub outcome: PermissionOutcome,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum PermissionOutcome {
    /// The turn was cancelled.
    Cancelled,
    /// The user has chosen.
    Selected {
        /// The answer's id.
        option_id: String,
    },
    /// A kind this version does not know: no permission.
    #[serde(other)]
    Unknown,
}

/// `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadTextFile {
    /// The session.
    pub session_id: String,
    /// The file, absolute.
    pub path: String,
}

/// The answer to `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadTextFileResponse {
    /// What it holds.
    pub content: String,
}

/// `fs/write_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteTextFile {
    /// The session.
    pub session_id: String,
    /// The file, absolute.
    pub path: String,
    /// What it shall hold.
    pub content: String,
}
