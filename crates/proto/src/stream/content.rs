//! Content: what a message says, block by block.

use std::fmt;

use serde::de::{SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Json;
use super::macros::{record, tagged, word};
use super::record::Wire;

/// The content of a message or of a tool's result: plain text, or blocks.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// One text.
    Text(String),
    /// A list of blocks.
    Blocks(Vec<ContentBlock>),
    /// Neither.
    Unknown(Json),
}

impl Content {
    /// The blocks; none when it is plain text.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::Blocks(blocks) => blocks,
            _ => &[],
        }
    }

    /// All text in it, the text blocks joined by a line break.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
            }
            Self::Unknown(_) => String::new(),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<ContentBlock>> for Content {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self::Blocks(blocks)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.into()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Content::Blocks)
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Blocks(blocks) => blocks.serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
        }
    }
}

impl Wire for Content {
    fn salvage(raw: &Json) -> Option<Self> {
        Some(
            raw.as_string()
                .map(Self::Text)
                .or_else(|| Wire::salvage(raw).map(Self::Blocks))
                .unwrap_or_else(|| Self::Unknown(raw.clone())),
        )
    }
}

tagged! {
    /// One piece of a message.
    pub enum ContentBlock by "type" {
        /// Text.
        "text" => Text(TextBlock),
        /// What the model thought.
        "thinking" => Thinking(ThinkingBlock),
        /// Thinking that may not be shown.
        "redacted_thinking" => RedactedThinking(RedactedThinkingBlock),
        /// A call of a tool that the CLI runs.
        "tool_use" => ToolUse(ToolUseBlock),
        /// What a tool answered.
        "tool_result" => ToolResult(ToolResultBlock),
        /// A picture.
        "image" => Image(ImageBlock),
        /// A document.
        "document" => Document(DocumentBlock),
        /// A search result given as context.
        "search_result" => SearchResult(SearchResultBlock),
        /// A call of a tool that the API runs.
        "server_tool_use" => ServerToolUse(ToolUseBlock),
        /// The answer of the API's web search.
        "web_search_tool_result" => WebSearchToolResult(ServerToolResultBlock),
        /// The answer of the API's web fetch.
        "web_fetch_tool_result" => WebFetchToolResult(ServerToolResultBlock),
        /// The answer of the API's code execution.
        "code_execution_tool_result" => CodeExecutionToolResult(ServerToolResultBlock),
        /// The answer of the API's shell.
        "bash_code_execution_tool_result" => BashCodeExecutionToolResult(ServerToolResultBlock),
        /// The answer of the API's text editor.
        "text_editor_code_execution_tool_result" => TextEditorCodeExecutionToolResult(ServerToolResultBlock),
        /// The answer of the API's tool search.
        "tool_search_tool_result" => ToolSearchToolResult(ServerToolResultBlock),
        /// A call of a tool of an MCP server that the API talks to.
        "mcp_tool_use" => McpToolUse(ToolUseBlock),
        /// What such a tool answered.
        "mcp_tool_result" => McpToolResult(ToolResultBlock),
        /// A file put into the API's container.
        "container_upload" => ContainerUpload(ContainerUploadBlock),
        /// A tool that a tool search has found.
        "tool_reference" => ToolReference(ToolReferenceBlock),
        /// A link to an MCP resource.
        "resource_link" => ResourceLink(ResourceLink),
    }
}

impl ContentBlock {
    /// The text, when it is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call, when it calls a tool, whoever runs it.
    #[must_use]
    pub fn as_tool_use(&self) -> Option<&ToolUseBlock> {
        match self {
            Self::ToolUse(block) | Self::ServerToolUse(block) | Self::McpToolUse(block) => Some(block),
            _ => None,
        }
    }
}

record! {
    /// Text.
    pub struct TextBlock {
        text: String,
        /// Where it comes from.
        citations: Option<Vec<Citation>>,
        cache_control: Option<Json>,
    }

    /// What the model thought. While a message streams, `thinking` and `signature` begin empty.
    pub struct ThinkingBlock {
        thinking: String,
        /// Proves to the API that the thinking is the model's own; not there in every version.
        signature: Option<String>,
    }

    /// Thinking that may not be shown, encrypted.
    pub struct RedactedThinkingBlock {
        data: String,
    }

    /// A call of a tool. [`ToolInput::of`](super::ToolInput::of) types its input.
    pub struct ToolUseBlock {
        id: String,
        name: String,
        input: Json,
        /// The MCP server, for the API's MCP tools.
        server_name: Option<String>,
        /// Who called: the model, or code it runs.
        caller: Option<Json>,
        cache_control: Option<Json>,
    }

    /// What a tool answered, as the model reads it.
    pub struct ToolResultBlock {
        tool_use_id: String,
        content: Option<Content>,
        /// Not there means no.
        is_error: Option<bool>,
        cache_control: Option<Json>,
    }

    /// What a tool that the API runs answered.
    pub struct ServerToolResultBlock {
        tool_use_id: String,
        /// A list of hits, an object or an error, as the tool has it.
        content: Json,
        caller: Option<Json>,
        cache_control: Option<Json>,
    }

    /// A picture.
    pub struct ImageBlock {
        source: Source,
        cache_control: Option<Json>,
    }

    /// A document.
    pub struct DocumentBlock {
        source: Source,
        title: Option<String>,
        context: Option<String>,
        citations: Option<Json>,
        cache_control: Option<Json>,
    }

    /// A search result given as context.
    pub struct SearchResultBlock {
        title: String,
        source: String,
        content: Content,
        citations: Option<Json>,
        cache_control: Option<Json>,
    }

    /// A file put into the API's container.
    pub struct ContainerUploadBlock {
        file_id: String,
        cache_control: Option<Json>,
    }

    /// A tool that a tool search has found.
    pub struct ToolReferenceBlock {
        tool_name: String,
        cache_control: Option<Json>,
    }

    /// A link to an MCP resource.
    pub struct ResourceLink {
        uri: String,
        name: String,
        title: Option<String>,
        description: Option<String>,
        mime_type = "mimeType": Option<String>,
        size: Option<u64>,
        annotations: Option<Json>,
    }

    /// Bytes, inline.
    pub struct Base64Source {
        media_type: String,
        data: String,
    }

    /// Bytes, elsewhere.
    pub struct UrlSource {
        url: String,
    }

    /// A file given to the API before.
    pub struct FileSource {
        file_id: String,
    }

    /// A document's text.
    pub struct TextSource {
        media_type: String,
        data: String,
    }

    /// A document made of blocks.
    pub struct ContentSource {
        content: Content,
    }

    /// A place in a text document.
    pub struct CharLocation {
        cited_text: String,
        document_index: u64,
        document_title: Option<String>,
        file_id: Option<String>,
        start_char_index: u64,
        end_char_index: u64,
    }

    /// Pages of a document.
    pub struct PageLocation {
        cited_text: String,
        document_index: u64,
        document_title: Option<String>,
        file_id: Option<String>,
        start_page_number: u64,
        end_page_number: u64,
    }

    /// Blocks of a document made of blocks.
    pub struct ContentBlockLocation {
        cited_text: String,
        document_index: u64,
        document_title: Option<String>,
        file_id: Option<String>,
        start_block_index: u64,
        end_block_index: u64,
    }

    /// A page of the web.
    pub struct WebSearchResultLocation {
        cited_text: String,
        url: String,
        title: Option<String>,
        encrypted_index: Option<String>,
    }

    /// Blocks of a search result.
    pub struct SearchResultLocation {
        cited_text: String,
        search_result_index: u64,
        source: String,
        title: Option<String>,
        start_block_index: u64,
        end_block_index: u64,
    }
}

tagged! {
    /// Where a picture's or a document's bytes are.
    pub enum Source by "type" {
        /// Here.
        "base64" => Base64(Base64Source),
        /// On the web.
        "url" => Url(UrlSource),
        /// With the API.
        "file" => File(FileSource),
        /// Here, as text.
        "text" => Text(TextSource),
        /// Here, as blocks.
        "content" => Content(ContentSource),
    }
}

tagged! {
    /// Where a piece of text comes from.
    pub enum Citation by "type" {
        /// A place in a text.
        "char_location" => CharLocation(CharLocation),
        /// Pages.
        "page_location" => PageLocation(PageLocation),
        /// Blocks.
        "content_block_location" => ContentBlockLocation(ContentBlockLocation),
        /// A page of the web.
        "web_search_result_location" => WebSearchResultLocation(WebSearchResultLocation),
        /// A search result.
        "search_result_location" => SearchResultLocation(SearchResultLocation),
    }
}

word! {
    /// Whose message it is.
    pub enum Role {
        /// A person, a program, or a tool's result.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }

    /// Why the model stopped.
    pub enum StopReason {
        /// It was done.
        EndTurn = "end_turn",
        /// It wants a tool's result.
        ToolUse = "tool_use",
        /// It wrote as much as it may.
        MaxTokens = "max_tokens",
        /// It wrote a text that ends it.
        StopSequence = "stop_sequence",
        /// A long turn, to be continued.
        PauseTurn = "pause_turn",
        /// It will not answer.
        Refusal = "refusal",
        /// The context window is full.
        ModelContextWindowExceeded = "model_context_window_exceeded",
    }
}
