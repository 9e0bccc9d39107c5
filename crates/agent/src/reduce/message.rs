//! What the model says, block by block: while it is being written, and whole.

use std::sync::Arc;

use super::{Event, MessageEnd, MessageHead, OpenCall, Reducer, ToolCall, ToolResult};
use crate::stream::{
    AbandonedBlocks, ApiMessage, Assistant, AssistantError, ContentBlock, ContentBlockDelta, Delta,
    Event as ApiEvent, Json, Message, MessageDelta, StreamEvent, TextBlock, ThinkingBlock, ToolUseBlock,
    ToolUseMeta, Usage,
};

/// The message that one speaker is writing. It stays until the next one begins, because its last block may come late.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    head: Arc<MessageHead>,
    blocks: Vec<Block>,
    usage: Option<Usage>,
    /// Where the next block goes that was not streamed.
    next: u32,
    stopped: bool,
}

/// A block that was streamed.
#[derive(Debug, Clone)]
struct Block {
    index: u32,
    kind: Kind,
    /// What was said of it so far; of a tool's call, the input.
    said: String,
    call: Option<Arc<ToolCall>>,
    stopped: bool,
    finished: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Tool,
    Other,
}

impl Kind {
    fn of(content: &ContentBlock) -> Self {
        match content {
            ContentBlock::Text(_) => Self::Text,
            ContentBlock::Thinking(_) => Self::Thinking,
            ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_) | ContentBlock::McpToolUse(_) => {
                Self::Tool
            }
            _ => Self::Other,
        }
    }
}

impl Thread {
    fn new(head: MessageHead) -> Self {
        Self { head: Arc::new(head), blocks: Vec::new(), usage: None, next: 0, stopped: false }
    }

    fn open(&mut self, index: u64, kind: Kind) -> &mut Block {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.next = self.next.max(index.saturating_add(1));
        self.blocks.push(Block {
            index,
            kind,
            said: String::new(),
            call: None,
            stopped: false,
            finished: false,
        });
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    #[inline]
    fn find(&mut self, index: u64) -> Option<&mut Block> {
        // The one that grows is the last one.
        self.blocks.iter_mut().rev().find(|block| u64::from(block.index) == index)
    }

    /// The place of a whole block, and what was said of it already. One that was streamed comes whole in the same order.
    fn finish(&mut self, content: &ContentBlock) -> (u32, String) {
        let kind = Kind::of(content);
        let id = content.as_tool_use().map(|call| call.id.as_str());
        let streamed = self.blocks.iter_mut().find(|block| {
            !block.finished && block.kind == kind && block.call.as_ref().map(|call| call.id.as_str()) == id
        });
        if let Some(block) = streamed {
            block.finished = true;
            return (block.index, std::mem::take(&mut block.said));
        }
        let index = self.next;
        self.next += 1;
        (index, String::new())
    }
}

impl Reducer {
    fn thread(&mut self, parent: Option<&str>) -> Option<&mut Thread> {
        match parent {
            None => self.main.as_mut(),
            Some(parent) => self.subagents.get_mut(parent),
        }
    }

    fn put_thread(&mut self, thread: Thread) {
        match &thread.head.parent_tool_use_id {
            None => self.main = Some(thread),
            Some(parent) => {
                self.subagents.insert(parent.clone(), thread);
            }
        }
    }

    fn take_thread(&mut self, parent: Option<&str>) -> Option<Thread> {
        match parent {
            None => self.main.take(),
            Some(parent) => self.subagents.remove(parent),
        }
    }

    pub(super) fn on_stream_event(&mut self, mut stream: Box<StreamEvent>) {
        let parent = stream.parent_tool_use_id.as_deref();
        let grows = matches!(stream.event, ApiEvent::ContentBlockDelta(_) | ApiEvent::ContentBlockStart(_));
        if grows && self.thread(parent).is_none() {
            // Whoever joins in the middle of a message sees it from there on.
            self.begin_message(&stream, None);
        }
        match &mut stream.event {
            ApiEvent::ContentBlockDelta(event) => {
                if !self.on_delta(parent, event) {
                    self.other(Message::StreamEvent(stream));
                }
            }
            ApiEvent::ContentBlockStart(start) => {
                let content = std::mem::take(&mut start.content_block);
                self.begin_block(parent, start.index, content);
            }
            ApiEvent::ContentBlockStop(stop) => {
                if let Some(block) = self.thread(parent).and_then(|thread| thread.find(stop.index)) {
                    block.stopped = true;
                }
            }
            ApiEvent::MessageStart(start) => {
                let message = std::mem::take(&mut start.message);
                self.begin_message(&stream, Some(message));
            }
            ApiEvent::MessageDelta(delta) => {
                let Some(thread) = self.thread(parent) else {
                    return self.other(Message::StreamEvent(stream));
                };
                let MessageDelta { delta, usage, .. } = std::mem::take(&mut **delta);
                let end = MessageEnd {
                    message: thread.head.clone(),
                    stop_reason: delta.stop_reason,
                    usage: joined(thread.usage.take(), usage),
                };
                self.events.push(Event::MessageFinished(Box::new(end)));
            }
            ApiEvent::MessageStop(_) => self.end_message(parent, stream.abandoned_blocks.as_ref()),
            _ => self.other(Message::StreamEvent(stream)),
        }
    }

    /// More of a block. This is what nearly all messages are, so it copies nothing. `false`: it is of no known kind.
    fn on_delta(&mut self, parent: Option<&str>, event: &mut ContentBlockDelta) -> bool {
        let Some(thread) = self.thread(parent) else { return false };
        let (kind, text, tokens) = match &mut event.delta {
            Delta::Text(delta) => (Kind::Text, &mut delta.text, None),
            Delta::Thinking(delta) => (Kind::Thinking, &mut delta.thinking, delta.estimated_tokens),
            Delta::InputJson(delta) => (Kind::Tool, &mut delta.partial_json, None),
            // It is in the whole block.
            Delta::Signature(_) => return true,
            _ => return false,
        };
        let (message, text) = (thread.head.clone(), std::mem::take(text));
        let block = match thread.find(event.index) {
            Some(block) => block,
            None => thread.open(event.index, kind),
        };
        block.said.push_str(&text);
        let (call, block) = (block.call.clone(), block.index);
        match kind {
            _ if text.is_empty() => {}
            Kind::Text => {
                self.turn.spoke |= parent.is_none();
                self.events.push(Event::Text { message, block, text });
            }
            Kind::Thinking => self.events.push(Event::Thinking { message, block, text }),
            _ => self.events.extend(call.map(|call| Event::ToolInput { call, json: text })),
        }
        self.events.extend(tokens.map(Event::ThinkingTokens));
        true
    }

    fn end_message(&mut self, parent: Option<&str>, abandoned: Option<&AbandonedBlocks>) {
        let Some(mut thread) = self.take_thread(parent) else { return };
        thread.stopped = true;
        if let Some(abandoned) = abandoned.filter(|abandoned| abandoned.api_message_id == thread.head.id) {
            for block in &mut thread.blocks {
                if u64::from(block.index) >= abandoned.from_block_index && !block.finished {
                    block.finished = true;
                    self.abandon(&thread.head, block);
                }
            }
        }
        self.put_thread(thread);
    }

    fn begin_message(&mut self, stream: &StreamEvent, message: Option<ApiMessage>) {
        let parent = stream.parent_tool_use_id.as_deref();
        if parent.is_none() {
            self.start_turn();
        }
        self.settle_thread(parent);
        let message = message.unwrap_or_else(|| ApiMessage {
            id: stream.api_message_id.clone().unwrap_or_default(),
            ..ApiMessage::default()
        });
        let mut thread = Thread::new(MessageHead {
            id: message.id,
            model: message.model,
            parent_tool_use_id: stream.parent_tool_use_id.clone(),
            ..MessageHead::default()
        });
        thread.usage = message.usage;
        self.put_thread(thread);
    }

    fn begin_block(&mut self, parent: Option<&str>, index: u64, content: ContentBlock) {
        let Some(thread) = self.thread(parent) else { return };
        let message = thread.head.clone();
        let block = thread.open(index, Kind::of(&content));
        let place = block.index;
        match content {
            ContentBlock::Text(TextBlock { text, .. }) if !text.is_empty() => {
                block.said.push_str(&text);
                self.turn.spoke |= parent.is_none();
                self.events.push(Event::Text { message, block: place, text });
            }
            ContentBlock::Thinking(ThinkingBlock { thinking: text, .. }) if !text.is_empty() => {
                block.said.push_str(&text);
                self.events.push(Event::Thinking { message, block: place, text });
            }
            ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_) | ContentBlock::McpToolUse(_) => {
                let is_server_tool = !matches!(content, ContentBlock::ToolUse(_));
                let Some(ToolUseBlock { id, name, .. }) = content.as_tool_use() else { return };
                let call = Arc::new(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    parent_tool_use_id: message.parent_tool_use_id.clone(),
                    message: Some(message),
                    block: Some(place),
                    is_server_tool,
                    ..ToolCall::default()
                });
                block.call = Some(call.clone());
                // A question may have named it before.
                if !self.state.calls.contains_key(&call.id) && !self.early.contains(&call.id) {
                    let open = OpenCall { call: call.clone(), complete: false };
                    self.state.calls.insert(call.id.clone(), open);
                    self.events.push(Event::ToolAnnounced(call));
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_assistant(&mut self, assistant: Assistant) {
        let Assistant { message, parent_tool_use_id, uuid, error, tool_use_meta, supersedes, .. } = assistant;
        if parent_tool_use_id.is_none() {
            self.start_turn();
            for uuid in assistant.user_message_uuids.iter().flatten() {
                self.turn_answers(uuid);
            }
        }
        if let Some(uuids) = supersedes {
            self.events.push(Event::Retracted(uuids));
        }
        if error.is_some() || assistant.is_api_error_message == Some(true) {
            self.turn.spoke |= parent_tool_use_id.is_none();
            let failure = super::ApiFailure {
                error: error.unwrap_or(AssistantError::Unspecified),
                text: text_of(&message.content),
                status: assistant.api_error_status,
                api_error_type: assistant.api_error_type,
                parent_tool_use_id,
                uuid,
            };
            return self.events.push(Event::ApiFailed(Box::new(failure)));
        }
        if message.model == SYNTHETIC {
            return self.command_output(text_of(&message.content));
        }
        let parent = parent_tool_use_id.as_deref();
        if self.thread(parent).is_none_or(|thread| thread.head.id != message.id) {
            self.settle_thread(parent);
            self.put_thread(Thread::new(MessageHead {
                id: message.id,
                model: message.model,
                parent_tool_use_id: parent_tool_use_id.clone(),
                agent_id: assistant.agent_id,
                subagent_type: assistant.subagent_type,
            }));
        }
        let mut meta = tool_use_meta.unwrap_or_default();
        for content in message.content {
            self.finish_block(parent, content, uuid.clone(), &mut meta);
        }
    }

    fn finish_block(
        &mut self,
        parent: Option<&str>,
        content: ContentBlock,
        uuid: Option<String>,
        meta: &mut Vec<ToolUseMeta>,
    ) {
        let Some(thread) = self.thread(parent) else { return };
        let (block, said) = thread.finish(&content);
        let message = thread.head.clone();
        match content {
            ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_) | ContentBlock::McpToolUse(_) => {
                let is_server_tool = !matches!(content, ContentBlock::ToolUse(_));
                let (ContentBlock::ToolUse(tool)
                | ContentBlock::ServerToolUse(tool)
                | ContentBlock::McpToolUse(tool)) = content
                else {
                    return;
                };
                let meta = meta.iter().position(|meta| meta.id == tool.id).map(|at| meta.swap_remove(at));
                self.open_call(ToolCall {
                    id: tool.id,
                    name: tool.name,
                    input: tool.input,
                    parent_tool_use_id: message.parent_tool_use_id.clone(),
                    message: Some(message),
                    block: Some(block),
                    uuid,
                    meta,
                    is_server_tool,
                });
            }
            ContentBlock::WebSearchToolResult(_)
            | ContentBlock::WebFetchToolResult(_)
            | ContentBlock::CodeExecutionToolResult(_)
            | ContentBlock::BashCodeExecutionToolResult(_)
            | ContentBlock::TextEditorCodeExecutionToolResult(_)
            | ContentBlock::ToolSearchToolResult(_)
            | ContentBlock::McpToolResult(_)
            | ContentBlock::ToolResult(_) => self.on_tool_result(ToolResult {
                id: result_id(&content).into(),
                block: content,
                parent_tool_use_id: message.parent_tool_use_id.clone(),
                uuid,
                ..ToolResult::default()
            }),
            content => {
                // A block that reads otherwise than it was streamed has been seen all the same.
                let rest = match &content {
                    ContentBlock::Text(text) => text.text.strip_prefix(&said),
                    ContentBlock::Thinking(thinking) => thinking.thinking.strip_prefix(&said),
                    _ => None,
                };
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    let (message, text) = (message.clone(), rest.into());
                    self.events.push(match &content {
                        ContentBlock::Text(_) => Event::Text { message, block, text },
                        _ => Event::Thinking { message, block, text },
                    });
                }
                self.turn.spoke |= parent.is_none() && matches!(content, ContentBlock::Text(_));
                self.events.push(Event::BlockFinished { message, block, content: Box::new(content), uuid });
            }
        }
    }

    /// A speaker's message is over: what did not come whole was lost, unless its stream says that it was all.
    pub(super) fn settle_thread(&mut self, parent: Option<&str>) {
        let Some(thread) = self.take_thread(parent) else { return };
        for mut block in thread.blocks {
            if block.finished {
                continue;
            }
            let (message, place) = (thread.head.clone(), block.index);
            let whole = thread.stopped && block.stopped && !block.said.is_empty();
            match block.kind {
                Kind::Text if whole => {
                    let content = ContentBlock::Text(TextBlock { text: block.said, ..TextBlock::default() });
                    let (content, uuid) = (Box::new(content), None);
                    self.events.push(Event::BlockFinished { message, block: place, content, uuid });
                }
                Kind::Thinking if whole => {
                    let thinking = ThinkingBlock { thinking: block.said, ..ThinkingBlock::default() };
                    let content = Box::new(ContentBlock::Thinking(thinking));
                    self.events.push(Event::BlockFinished { message, block: place, content, uuid: None });
                }
                Kind::Tool if whole && let Ok(input) = serde_json::from_str::<Json>(&block.said) => {
                    if let Some(call) = block.call {
                        self.open_call(ToolCall { input, ..(*call).clone() });
                    }
                }
                _ => self.abandon(&thread.head, &mut block),
            }
        }
    }

    fn abandon(&mut self, head: &Arc<MessageHead>, block: &mut Block) {
        if let Some(call) = block.call.take() {
            // A call that a question knows is real, whatever became of the stream.
            if self.state.calls.get(&call.id).is_some_and(|open| !open.complete) {
                self.state.calls.remove(&call.id);
                self.events.push(Event::ToolCancelled(call));
            }
        } else if matches!(block.kind, Kind::Text | Kind::Thinking) && !block.said.is_empty() {
            self.events.push(Event::BlockAbandoned { message: head.clone(), block: block.index });
        }
    }

    pub(super) fn command_output(&mut self, text: String) {
        if !text.is_empty() && text != NO_CONTENT {
            self.turn.spoke = true;
            self.events.push(Event::CommandOutput(text));
        }
    }
}

/// The model of messages that the CLI writes itself.
const SYNTHETIC: &str = "<synthetic>";
/// The CLI's way to say nothing.
const NO_CONTENT: &str = "(no content)";

fn text_of(content: &[ContentBlock]) -> String {
    content.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
}

/// The call that a result belongs to.
pub(super) fn result_id(content: &ContentBlock) -> &str {
    match content {
        ContentBlock::ToolResult(block) | ContentBlock::McpToolResult(block) => &block.tool_use_id,
        ContentBlock::WebSearchToolResult(block)
        | ContentBlock::WebFetchToolResult(block)
        | ContentBlock::CodeExecutionToolResult(block)
        | ContentBlock::BashCodeExecutionToolResult(block)
        | ContentBlock::TextEditorCodeExecutionToolResult(block)
        | ContentBlock::ToolSearchToolResult(block) => &block.tool_use_id,
        _ => "",
    }
}

/// What is known at a message's start, and what its end says.
fn joined(start: Option<Usage>, end: Option<Usage>) -> Usage {
    let (Some(start), Some(mut end)) = (start.clone(), end.clone()) else {
        return end.or(start).unwrap_or_default();
    };
    end.input_tokens = end.input_tokens.or(start.input_tokens);
    end.output_tokens = end.output_tokens.or(start.output_tokens);
    end.cache_creation_input_tokens = end.cache_creation_input_tokens.or(start.cache_creation_input_tokens);
    end.cache_read_input_tokens = end.cache_read_input_tokens.or(start.cache_read_input_tokens);
    end.cache_creation = end.cache_creation.or(start.cache_creation);
    end.service_tier = end.service_tier.or(start.service_tier);
    end
}
