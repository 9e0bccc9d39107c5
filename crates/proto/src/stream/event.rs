//! Stream events: a message while it is being written.

use super::macros::{record, tagged};
use super::{Citation, ContentBlock, Json, Role, StopReason, Usage};

record! {
    /// An API message: whole in an `assistant` frame (but with one block each), empty in `message_start`.
    pub struct ApiMessage {
        id: String,
        kind = "type": Option<String>,
        role: Role,
        /// `<synthetic>` when the CLI wrote it itself.
        model: String,
        content: Vec<ContentBlock>,
        /// `None` on real output: the final one is in `message_delta` and in the result.
        stop_reason: Option<StopReason>,
        stop_sequence: Option<String>,
        stop_details: Option<Json>,
        /// Not final on real output.
        usage: Option<Usage>,
        context_management: Option<Json>,
        container: Option<Json>,
    }

    /// A message begins.
    pub struct MessageStart {
        message: ApiMessage,
    }

    /// A block begins.
    pub struct ContentBlockStart {
        index: u64,
        /// Empty, to be filled by deltas.
        content_block: ContentBlock,
    }

    /// A block grows.
    pub struct ContentBlockDelta {
        index: u64,
        delta: Delta,
    }

    /// A block is done.
    pub struct ContentBlockStop {
        index: u64,
    }

    /// The message's end is known: why, and what it took.
    pub struct MessageDelta {
        delta: MessageDeltaBody,
        usage: Option<Usage>,
        context_management: Option<Json>,
    }

    /// What `message_delta` changes.
    pub struct MessageDeltaBody {
        stop_reason: Option<StopReason>,
        stop_sequence: Option<String>,
        stop_details: Option<Json>,
        container: Option<Json>,
    }

    /// A message is done.
    pub struct MessageStop {}

    /// Nothing, to keep the line open.
    pub struct Ping {}

    /// The API reports an error in mid-stream.
    pub struct ErrorEvent {
        error: ApiError,
    }

    /// An error of the API.
    pub struct ApiError {
        kind = "type": String,
        message: String,
    }

    /// More text.
    pub struct TextDelta {
        text: String,
    }

    /// More thinking.
    pub struct ThinkingDelta {
        thinking: String,
        estimated_tokens: Option<u64>,
    }

    /// The thinking's signature.
    pub struct SignatureDelta {
        signature: String,
    }

    /// More of a tool's input: a piece of JSON text, to be joined with the others.
    pub struct InputJsonDelta {
        partial_json: String,
    }

    /// One more citation.
    pub struct CitationsDelta {
        citation: Citation,
    }

    /// A summary that replaces earlier content, as the API compacts it.
    pub struct CompactionDelta {
        content: Option<String>,
    }
}

tagged! {
    /// One event of the API's stream.
    pub enum Event by "type" {
        /// More of a block.
        "content_block_delta" => ContentBlockDelta(ContentBlockDelta),
        /// A block begins.
        "content_block_start" => ContentBlockStart(ContentBlockStart),
        /// A block is done.
        "content_block_stop" => ContentBlockStop(ContentBlockStop),
        /// A message begins.
        "message_start" => MessageStart(Box<MessageStart>),
        /// The message's end is known.
        "message_delta" => MessageDelta(Box<MessageDelta>),
        /// A message is done.
        "message_stop" => MessageStop(MessageStop),
        /// Nothing.
        "ping" => Ping(Ping),
        /// The API reports an error.
        "error" => Error(ErrorEvent),
    }
}

impl Event {
    /// The delta, when a block grows.
    #[must_use]
    pub fn delta(&self) -> Option<&Delta> {
        match self {
            Self::ContentBlockDelta(event) => Some(&event.delta),
            _ => None,
        }
    }
}

tagged! {
    /// What a block grows by.
    pub enum Delta by "type" {
        /// Text.
        "text_delta" => Text(TextDelta),
        /// Thinking.
        "thinking_delta" => Thinking(ThinkingDelta),
        /// Its signature.
        "signature_delta" => Signature(SignatureDelta),
        /// A tool's input.
        "input_json_delta" => InputJson(InputJsonDelta),
        /// A citation.
        "citations_delta" => Citations(CitationsDelta),
        /// A summary.
        "compaction_delta" => Compaction(CompactionDelta),
    }
}
