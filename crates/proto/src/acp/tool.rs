//! Tool calls.

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Meta};
use crate::stream::Json;

/// A tool call, whole (`tool_call`) or what is new of it (`tool_call_update`). A `tool_call` needs a title.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Its id.
    pub tool_call_id: String,
    /// A line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolCallStatus>,
    /// What it shows; replaced whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolCallContent>>,
    /// The files it is about; replaced whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<ToolCallLocation>>,
    /// What went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Json>,
    /// What came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Json>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// How far a call is. It only moves downwards in this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// It waits: for its input, or for a permission.
    Pending,
    /// It runs.
    InProgress,
    /// It is done.
    Completed,
    /// It failed, or was refused.
    Failed,
}

/// What a tool call shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCallContent {
    /// Any content.
    Content(Content),
    /// A change of a file.
    Diff(Diff),
    /// A terminal.
    Terminal(Terminal),
}

impl ToolCallContent {
    /// Text, as Markdown.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Content(Content { content: ContentBlock::text(text) })
    }
}

/// Any content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Content {
    /// The content.
    pub content: ContentBlock,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The file, absolute.
    pub path: String,
    /// What was there; nothing when the file is new.
    pub old_text: Option<String>,
    /// What is there afterwards.
    pub new_text: String,
}

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Terminal {
    /// Its id.
    pub terminal_id: String,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallLocation {
    /// The file, absolute.
    pub path: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}
