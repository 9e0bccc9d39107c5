//! A whole conversation as a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ApiFailure, Event, MessageHead, PlanEntry, Prompt, Task, ToolCall, ToolResult, TurnEnd};
use crate::stream::{ContentBlock, PermissionDenied, PermissionMode, TextBlock, ThinkingBlock};

/// A conversation: what was said and done, turn by turn. It grows with what it holds.
///
/// Messages that may come in one order or another, with or without partial messages, give the same conversation.
///
/// ```
/// use oarlock_agent::reduce::{Conversation, Reducer};
/// use oarlock_agent::stream::decode;
///
/// let (mut reducer, mut conversation) = (Reducer::default(), Conversation::default());
/// for line in [
///     r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Hello"}]}}"#,
///     r#"{"type":"result","subtype":"success","result":"Hello"}"#,
/// ] {
///     reducer.apply(decode(line.as_bytes()).expect("a message")).for_each(|event| conversation.apply(&event));
/// }
/// assert_eq!(conversation.turns[0].text(), "Hello");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
    /// All calls of tools, by id.
    pub calls: BTreeMap<String, Call>,
    /// The list of things to do.
    pub plan: Vec<PlanEntry>,
    /// The session's id.
    pub session_id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<PermissionMode>,
    /// The session's title.
    pub title: Option<String>,
}

/// One turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// What was said to the model.
    pub prompts: Vec<Prompt>,
    /// What was said and done.
    pub blocks: Vec<Block>,
    /// Has the user interrupted it?
    pub interrupted: bool,
    /// How it ended.
    pub end: Option<TurnEnd>,
}

impl Turn {
    /// All the model said, its blocks joined by a blank line.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match &block.body {
            Body::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

/// A piece of what was said or done.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The message it belongs to.
    pub message_id: String,
    /// Its place in the message.
    pub index: u32,
    /// The name of its record in the transcript.
    pub uuid: Option<String>,
    /// What it is.
    pub body: Body,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// Text.
    Text(TextBlock),
    /// Thinking.
    Thinking(ThinkingBlock),
    /// A call of a tool, by its id.
    ToolCall(String),
    /// What a slash command wrote.
    CommandOutput(String),
    /// The API failed.
    ApiFailed(ApiFailure),
    /// Something else.
    Other(ContentBlock),
}

/// A call of a tool, and what came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The call.
    pub call: Arc<ToolCall>,
    /// What the subagent that it started said and did.
    pub blocks: Vec<Block>,
    /// Why it was refused, when nobody was asked.
    pub denied: Option<PermissionDenied>,
    /// What the tool answered.
    pub result: Option<Arc<ToolResult>>,
    /// Did it end without an answer?
    pub cancelled: bool,
    /// The task that it is.
    pub task: Option<Arc<Task>>,
}

impl Conversation {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::TurnStarted => self.turns.push(Turn::default()),
            Event::TurnEnded(end) => self.turn().end = Some((**end).clone()),
            Event::SessionChanged { session_id, .. } => self.session_id = Some(session_id.clone()),
            Event::ModelChanged(model) => self.model = Some(model.clone()),
            Event::ModeChanged(mode) => self.mode = Some(mode.clone()),
            Event::TitleChanged(title) => self.title = Some(title.clone()),
            Event::Plan(plan) => self.plan.clone_from(plan),
            Event::Text { message, block, text } => {
                let body = &mut self.block(message, *block, || Body::Text(TextBlock::default())).body;
                if let Body::Text(so_far) = body {
                    so_far.text.push_str(text);
                }
            }
            Event::Thinking { message, block, text } => {
                let body = &mut self.block(message, *block, || Body::Thinking(ThinkingBlock::default())).body;
                if let Body::Thinking(so_far) = body {
                    so_far.thinking.push_str(text);
                }
            }
            Event::BlockFinished { message, block, content, uuid } => {
                let whole = match (**content).clone() {
                    ContentBlock::Text(text) => Body::Text(text),
                    ContentBlock::Thinking(thinking) => Body::Thinking(thinking),
                    other => Body::Other(other),
                };
                let block = self.block(message, *block, || whole.clone());
                block.uuid.clone_from(uuid);
                block.body = whole;
            }
            Event::BlockAbandoned { message, block } => {
                self.blocks(message.parent_tool_use_id.as_deref())
                    .retain(|it| it.message_id != message.id || it.index != *block);
            }
            Event::Retracted(uuids) => self.retract(uuids),
            Event::ToolAnnounced(call) | Event::ToolCall(call) => self.put_call(call),
            Event::PermissionDenied { denied, .. } => {
                self.call(&denied.tool_use_id).denied = Some((**denied).clone());
            }
            Event::ToolResult { result, .. } => self.call(&result.id).result = Some(result.clone()),
            Event::ToolCancelled(call) => {
                self.call(&call.id).cancelled = true;
                if call.input.is_null() {
                    // It was never made: its stream broke.
                    self.blocks(call.parent_tool_use_id.as_deref()).retain(|block| !block.calls(&call.id));
                    self.calls.remove(&call.id);
                }
            }
            Event::Task { task, .. } => {
                if let Some(id) = &task.tool_use_id {
                    self.call(id).task = Some(task.clone());
                }
            }
            Event::Prompt(prompt) if prompt.parent_tool_use_id.is_none() => {
                self.turn().prompts.push((**prompt).clone());
            }
            Event::Interrupted { parent_tool_use_id: None } => self.turn().interrupted = true,
            Event::CommandOutput(text) => self.say(None, None, Body::CommandOutput(text.clone())),
            Event::ApiFailed(failure) => {
                let parent = failure.parent_tool_use_id.as_deref();
                self.say(parent, failure.uuid.clone(), Body::ApiFailed((**failure).clone()));
            }
            _ => {}
        }
    }

    /// The turn that runs, or that ran last.
    fn turn(&mut self) -> &mut Turn {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn call(&mut self, id: &str) -> &mut Call {
        self.calls.entry(id.into()).or_default()
    }

    fn blocks(&mut self, parent: Option<&str>) -> &mut Vec<Block> {
        match parent {
            None => &mut self.turn().blocks,
            Some(id) => &mut self.call(id).blocks,
        }
    }

    fn block(&mut self, message: &MessageHead, index: u32, new: impl FnOnce() -> Body) -> &mut Block {
        let blocks = self.blocks(message.parent_tool_use_id.as_deref());
        let known = blocks.iter().rposition(|block| block.index == index && block.message_id == message.id);
        let at = known.unwrap_or_else(|| {
            blocks.push(Block { message_id: message.id.clone(), index, uuid: None, body: new() });
            blocks.len() - 1
        });
        &mut blocks[at]
    }

    /// The place of a call is where its message makes it, not where a question first names it.
    fn put_call(&mut self, call: &Arc<ToolCall>) {
        if let (Some(message), Some(index)) = (&call.message, call.block) {
            self.block(message, index, || Body::ToolCall(call.id.clone())).uuid.clone_from(&call.uuid);
        }
        let known = self.call(&call.id);
        if known.call.message.is_none() || call.message.is_some() {
            known.call = call.clone();
        }
    }

    fn say(&mut self, parent: Option<&str>, uuid: Option<String>, body: Body) {
        self.blocks(parent).push(Block { message_id: String::new(), index: 0, uuid, body });
    }

    fn retract(&mut self, uuids: &[String]) {
        let stays = |block: &Block| block.uuid.as_ref().is_none_or(|uuid| !uuids.contains(uuid));
        self.turns.iter_mut().for_each(|turn| turn.blocks.retain(stays));
        self.calls.values_mut().for_each(|call| call.blocks.retain(stays));
    }
}

impl Block {
    fn calls(&self, id: &str) -> bool {
        matches!(&self.body, Body::ToolCall(call) if call == id)
    }
}
