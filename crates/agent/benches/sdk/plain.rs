//! What somebody would write in an afternoon: derived, owned serde types for the messages of the benchmark.
//!
//! They know no more than the traffic holds, lose what they do not know, and fail on anything new: a limit to compare
//! with, not a design.
#![allow(dead_code, reason = "the fields are there to be filled")]

use std::borrow::Cow;
use std::hint::black_box;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

/// Reads a line with an internally tagged enum. Is it the result?
pub(crate) fn read_tagged(line: &[u8]) -> Result<bool> {
    let message: Message = serde_json::from_slice(line)?;
    let is_last = matches!(message, Message::Result(_));
    black_box(message);
    Ok(is_last)
}

/// Reads the `type`, then the line as what it says. Is it the result?
pub(crate) fn peek_and_read(line: &[u8]) -> Result<bool> {
    let peek: Peek<'_> = serde_json::from_slice(line)?;
    match &*peek.kind {
        "stream_event" => drop(black_box(serde_json::from_slice::<StreamEvent>(line)?)),
        "assistant" => drop(black_box(serde_json::from_slice::<Assistant>(line)?)),
        "user" => drop(black_box(serde_json::from_slice::<User>(line)?)),
        "system" => drop(black_box(serde_json::from_slice::<System>(line)?)),
        "result" => {
            black_box(serde_json::from_slice::<TurnResult>(line)?);
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

#[derive(Deserialize)]
struct Peek<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    StreamEvent(StreamEvent),
    Assistant(Assistant),
    User(User),
    System(System),
    Result(TurnResult),
}

#[derive(Deserialize)]
struct StreamEvent {
    event: Event,
    session_id: String,
    parent_tool_use_id: Option<String>,
    uuid: String,
    ttft_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Assistant {
    message: ApiMessage,
    parent_tool_use_id: Option<String>,
    session_id: String,
    uuid: String,
}

#[derive(Deserialize)]
struct User {
    message: UserMessage,
    parent_tool_use_id: Option<String>,
    session_id: String,
    uuid: String,
    timestamp: Option<String>,
    tool_use_result: Option<Value>,
}

#[derive(Deserialize)]
struct System {
    subtype: String,
    session_id: String,
    uuid: String,
}

#[derive(Deserialize)]
struct TurnResult {
    subtype: String,
    is_error: bool,
    num_turns: u64,
    result: Option<String>,
    session_id: String,
    total_cost_usd: Option<f64>,
    usage: Option<Usage>,
    uuid: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart { message: ApiMessage },
    ContentBlockStart { index: u64, content_block: Block },
    ContentBlockDelta { index: u64, delta: Delta },
    ContentBlockStop { index: u64 },
    MessageDelta { delta: Value, usage: Option<Usage> },
    MessageStop,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the protocol's own names")]
enum Delta {
    TextDelta { text: String },
    ThinkingDelta { thinking: String },
    SignatureDelta { signature: String },
    InputJsonDelta { partial_json: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    Thinking { thinking: String, signature: Option<String> },
    ToolUse { id: String, name: String, input: Value },
    ToolResult { tool_use_id: String, content: Option<Content>, is_error: Option<bool> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
struct ApiMessage {
    id: String,
    role: String,
    model: String,
    content: Vec<Block>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct UserMessage {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    service_tier: Option<String>,
}
