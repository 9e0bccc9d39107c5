//! Sessions: how they begin, what is asked of them, how they end.

use serde::{Deserialize, Serialize};

use super::{ConfigOption, ContentBlock, Meta, ModeState};
use crate::stream::Json;

/// `session/new`, `session/load`, `session/resume` and `session/fork`, from the client. All but the first name a session.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupRequest {
    /// The session, when there is one already.
    pub session_id: Option<String>,
    /// The directory it works in.
    pub cwd: String,
    /// More directories.
    #[serde(default)]
    pub additional_directories: Vec<String>,
    /// MCP servers of the client's.
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

/// An MCP server. Without a `type` it is a program to start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct McpServer {
    /// `http`, `sse`, `stdio`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
    /// Its program.
    #[serde(default)]
    pub command: String,
    /// The program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The program's environment.
    #[serde(default)]
    pub env: Vec<Pair>,
    /// Its address.
    #[serde(default)]
    pub url: String,
    /// What goes with every request.
    #[serde(default)]
    pub headers: Vec<Pair>,
}

/// A name and a value: of a variable, of a header.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// The value: often a secret.
    pub value: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

/// The answer to all of those. `sessionId` is there when the session is new.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupResponse {
    /// The new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its modes.
    pub modes: ModeState,
    /// Its options.
    pub config_options: Vec<ConfigOption>,
}

/// What names a session and nothing else: `session/close`, `session/delete`, `session/cancel`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRef {
    /// The session.
    pub session_id: String,
}

/// `session/list`, from the client.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ListSessionsRequest {
    /// Only sessions of this directory.
    pub cwd: Option<String>,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// The answer to `session/list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResponse {
    /// The sessions of this page.
    pub sessions: Vec<SessionInfo>,
    /// Where this page ends, when more are to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One of the sessions there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id.
    pub session_id: String,
    /// The directory it works in.
    pub cwd: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was last written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// `session/prompt`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// The session.
    pub session_id: String,
    /// What is said.
    pub prompt: Vec<ContentBlock>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

/// The answer to `session/prompt`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptResponse {
    /// Why the turn is over.
    pub stop_reason: StopReason,
    /// What it took (unstable; old clients pass it over).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model has said all.
    EndTurn,
    /// Its answer was cut off.
    MaxTokens,
    /// It has called the API too often, or spent too much.
    MaxTurnRequests,
    /// It refuses.
    Refusal,
    /// The user has cancelled.
    Cancelled,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All together.
    pub total_tokens: u64,
    /// Read, besides the cache's.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Read from the cache.
    pub cached_read_tokens: u64,
    /// Put into the cache.
    pub cached_write_tokens: u64,
}

/// `session/set_mode`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModeRequest {
    /// The session.
    pub session_id: String,
    /// The mode.
    pub mode_id: String,
}

/// `session/set_config_option`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOptionRequest {
    /// The session.
    pub session_id: String,
    /// The option.
    pub config_id: String,
    /// A string, or a boolean for a switch.
    pub value: Json,
}

/// The answer to `session/set_config_option`: all options, since one may change others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOptionResponse {
    /// All options.
    pub config_options: Vec<ConfigOption>,
}

/// `session/set_title` (unstable) and `_session/rename`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTitleRequest {
    /// The session.
    pub session_id: String,
    /// The title.
    pub title: String,
}

/// The answer to `session/set_title`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetTitleResponse {
    /// The title it has now.
    pub title: String,
}

/// `_session/rewind`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindRequest {
    /// The session.
    pub session_id: String,
    /// The prompt to go back to: it and all that follows are forgotten.
    pub message_id: String,
}

/// The answer to `_session/rewind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindResponse {
    /// It was done.
    pub rewound: bool,
    /// What the prompt said, to be changed and sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_text: Option<String>,
}

/// `$/cancel_request`, from either side.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// The request's id, as it was written.
    pub request_id: Json,
}
