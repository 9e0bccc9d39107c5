//! One message of a transcript.

use std::time::SystemTime;

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use super::time;
use crate::stream::{
    self, BadLine, CompactBoundary, CompactMetadata, ContentBlock, Extra, Json, Message, System,
};

/// One message of a transcript, in the protocol's own types: what a live session says as it says it, a transcript says
/// once more.
///
/// It serialises to the fields that belong to the conversation, under the names that transcripts use.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Its name, for [`Fork::at`](super::Fork::at) and `--resume-session-at`.
    pub uuid: String,
    /// What it hangs on.
    pub parent: Option<String>,
    /// When it was written, as the CLI writes times.
    pub timestamp: Option<String>,
    /// Does it sum up what was said before a compaction?
    pub is_summary: bool,
    /// [`Message::User`], [`Message::Assistant`], or [`System::CompactBoundary`] where a compaction was.
    pub message: Message,
}

impl Record {
    /// Reads a record's line.
    ///
    /// # Errors
    /// When the line is no JSON object.
    pub fn decode(line: &[u8]) -> Result<Self, BadLine> {
        let mut message = stream::decode(line)?;
        let mut extra = Extra::default();
        let (uuid, timestamp) = match &mut message {
            Message::User(user) => {
                adopt(&mut user.extra, "sessionId", &mut user.session_id);
                if user.tool_use_result.is_none() {
                    user.tool_use_result = user.extra.remove("toolUseResult");
                }
                if let Some(beside) = user.extra.remove("mcpMeta") {
                    user.tool_use_result = Some(mcp_result(user.tool_use_result.take(), &beside));
                }
                std::mem::swap(&mut extra, &mut user.extra);
                (user.uuid.clone(), user.timestamp.clone())
            }
            Message::Assistant(assistant) => {
                adopt(&mut assistant.extra, "sessionId", &mut assistant.session_id);
                adopt(&mut assistant.extra, "requestId", &mut assistant.request_id);
                let is_error = assistant.extra.remove("isApiErrorMessage").and_then(|json| json.read().ok());
                assistant.is_api_error_message = assistant.is_api_error_message.or(is_error);
                std::mem::swap(&mut extra, &mut assistant.extra);
                (assistant.uuid.clone(), assistant.timestamp.clone())
            }
            Message::System(System::CompactBoundary(boundary)) => {
                adopt(&mut boundary.extra, "sessionId", &mut boundary.session_id);
                adopt(&mut boundary.extra, "logicalParentUuid", &mut boundary.logical_parent_uuid);
                if let Some(metadata) = boundary.extra.remove("compactMetadata") {
                    read_metadata(boundary, &metadata);
                }
                std::mem::swap(&mut extra, &mut boundary.extra);
                (boundary.uuid.clone(), word(&extra, "timestamp"))
            }
            _ => (None, None),
        };
        Ok(Self {
            uuid: uuid.unwrap_or_default(),
            parent: word(&extra, "parentUuid"),
            timestamp,
            is_summary: extra.get("isCompactSummary").is_some_and(|json| json.text() == "true"),
            message,
        })
    }

    /// When it was written.
    #[must_use]
    pub fn time(&self) -> Option<SystemTime> {
        time::parse(self.timestamp.as_deref()?)
    }

    /// The blocks of the message; none when it is plain text.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        match &self.message {
            Message::User(user) => user.message.content.blocks(),
            Message::Assistant(assistant) => &assistant.message.content,
            _ => &[],
        }
    }

    /// The text in it, without thinking, calls and results.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.message {
            Message::User(user) => user.message.content.text(),
            _ => self.blocks().iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Did a person or a program say it? (A tool's result and a summary are user messages too.)
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        matches!(self.message, Message::User(_))
            && !self.is_summary
            && !self.blocks().iter().any(|block| matches!(block, ContentBlock::ToolResult(_)))
    }
}

/// What an MCP tool answered, in the form that it has in a session: a transcript keeps `_meta` and structured content apart.
fn mcp_result(content: Option<Json>, beside: &Json) -> Json {
    let mut result = beside.value();
    if let (Value::Object(fields), Some(content)) = (&mut result, content) {
        fields.insert("content".into(), content.value());
    }
    result.into()
}

fn word(extra: &Extra, name: &str) -> Option<String> {
    extra.get(name)?.as_string()
}

/// A field of the protocol that transcripts write in another way.
fn adopt(extra: &mut Extra, name: &str, field: &mut Option<String>) {
    if let Some(text) = extra.remove(name).and_then(|json| json.as_string()) {
        field.get_or_insert(text);
    }
}

fn read_metadata(boundary: &mut CompactBoundary, metadata: &Json) {
    let value = metadata.value();
    boundary.compact_metadata = CompactMetadata {
        trigger: value["trigger"].as_str().unwrap_or_default().into(),
        pre_tokens: value["preTokens"].as_u64(),
        post_tokens: value["postTokens"].as_u64(),
        cumulative_dropped_tokens: value["cumulativeDroppedTokens"].as_u64(),
        ..CompactMetadata::default()
    };
}

impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.message.tag())?;
        map.serialize_entry("uuid", &self.uuid)?;
        map.serialize_entry("parentUuid", &self.parent)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        match &self.message {
            Message::User(user) => {
                if self.is_summary {
                    map.serialize_entry("isCompactSummary", &true)?;
                }
                map.serialize_entry("message", &user.message)?;
                if let Some(result) = &user.tool_use_result {
                    map.serialize_entry("toolUseResult", result)?;
                }
            }
            Message::Assistant(assistant) => map.serialize_entry("message", &assistant.message)?,
            Message::System(System::CompactBoundary(boundary)) => {
                map.serialize_entry("subtype", "compact_boundary")?;
                let metadata = &boundary.compact_metadata;
                map.serialize_entry(
                    "compactMetadata",
                    &serde_json::json!({ "trigger": metadata.trigger, "preTokens": metadata.pre_tokens }),
                )?;
            }
            _ => {}
        }
        map.end()
    }
}
