//! Updates that wait to be sent. What belongs together is joined while it waits.

use std::sync::Arc;

use oarlock_agent::reduce::MessageHead;
use oarlock_proto::acp::{ContentBlock, ContentChunk, Meta, SessionUpdate, ToolCall};
use serde_json::{Value, json};

/// How far back the last update of a call is looked for.
const REACH: usize = 32;

/// What a model does with words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Speaks,
    Thinks,
}

/// Updates that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Queue {
    updates: Vec<SessionUpdate>,
    /// Who said the last of them, when it is a model's text.
    speaker: Option<(Voice, Arc<MessageHead>)>,
}

impl Queue {
    /// Takes what waits.
    pub(super) fn take(&mut self) -> Vec<SessionUpdate> {
        self.speaker = None;
        std::mem::take(&mut self.updates)
    }

    pub(super) fn push(&mut self, update: SessionUpdate) {
        self.speaker = None;
        self.updates.push(update);
    }

    /// The model says something. This is what nearly all events are.
    pub(super) fn say(&mut self, voice: Voice, message: &Arc<MessageHead>, text: String) {
        if let Some((last, head)) = &self.speaker
            && *last == voice
            && (Arc::ptr_eq(head, message) || head == message)
            && let Some(SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk)) =
                self.updates.last_mut()
            && let ContentBlock::Text(content) = &mut chunk.content
        {
            content.text.push_str(&text);
            return;
        }
        let parent = message.parent_tool_use_id.as_deref();
        let id = Some(message.id.clone()).filter(|id| !id.is_empty());
        let chunk = ContentChunk {
            content: ContentBlock::text(text),
            message_id: id,
            meta: parent.map(|parent| claude_code(json!({ "parentToolUseId": parent }))),
        };
        self.push(match voice {
            Voice::Speaks => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thinks => SessionUpdate::AgentThoughtChunk(chunk),
        });
        self.speaker = Some((voice, message.clone()));
    }

    /// The agent says something that is no model's.
    pub(super) fn tell(&mut self, text: String, message_id: Option<String>) {
        self.push(SessionUpdate::AgentMessageChunk(ContentChunk {
            content: ContentBlock::text(text),
            message_id,
            meta: None,
        }));
    }

    /// A tool is called.
    pub(super) fn call(&mut self, call: ToolCall) {
        self.push(SessionUpdate::ToolCall(Box::new(call)));
    }

    /// Something is new about a call.
    pub(super) fn update(&mut self, update: ToolCall) {
        match self.last_of(&update.tool_call_id) {
            Some(waiting) if !streams(waiting) && !streams(&update) => overlay(waiting, update),
            Some(waiting) if is_output(waiting) && is_output(&update) => append(waiting, &update),
            _ => self.push(SessionUpdate::ToolCallUpdate(Box::new(update))),
        }
    }

    /// The last update of a call, if it waits.
    fn last_of(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.updates.iter_mut().rev().take(REACH).find_map(|update| match update {
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call)
                if call.tool_call_id == id =>
            {
                Some(&mut **call)
            }
            _ => None,
        })
    }

    /// A plan replaces the one that waits.
    pub(super) fn plan(&mut self, update: SessionUpdate) {
        if let Some(waiting @ SessionUpdate::Plan(_)) = self.updates.last_mut() {
            *waiting = update;
        } else {
            self.push(update);
        }
    }
}

/// `_meta` with what the reference adapter's clients know under `claudeCode`.
pub(super) fn claude_code(value: Value) -> Meta {
    Meta::from_iter([("claudeCode".to_owned(), value)])
}

/// A terminal's output and exit are told one by one: clients look for them in updates only.
fn streams(call: &ToolCall) -> bool {
    let has = |key| call.meta.as_ref().is_some_and(|meta| meta.contains_key(key));
    has("terminal_output") || has("terminal_exit")
}

fn is_output(call: &ToolCall) -> bool {
    call.status.is_none() && call.meta.as_ref().is_some_and(|meta| meta.contains_key("terminal_output"))
}

fn append(waiting: &mut ToolCall, update: &ToolCall) {
    let data = |call: &ToolCall| {
        call.meta.as_ref()?.get("terminal_output")?.get("data")?.as_str().map(str::to_owned)
    };
    let more = data(update).unwrap_or_default();
    let data = waiting.meta.as_mut().and_then(|meta| meta.get_mut("terminal_output")?.get_mut("data"));
    if let Some(Value::String(data)) = data {
        data.push_str(&more);
    }
}

/// What is new takes the place of what was.
fn overlay(call: &mut ToolCall, new: ToolCall) {
    let ToolCall {
        tool_call_id: _,
        title,
        name,
        kind,
        status,
        content,
        locations,
        raw_input,
        raw_output,
        meta,
    } = new;
    call.title = title.or(call.title.take());
    call.name = name.or(call.name.take());
    call.kind = kind.or(call.kind);
    call.status = status.or(call.status);
    call.content = content.or(call.content.take());
    call.locations = locations.or(call.locations.take());
    call.raw_input = raw_input.or(call.raw_input.take());
    call.raw_output = raw_output.or(call.raw_output.take());
    for (key, value) in meta.into_iter().flatten() {
        let all = call.meta.get_or_insert_default();
        match (all.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
            (_, value) => drop(all.insert(key, value)),
        }
    }
}
