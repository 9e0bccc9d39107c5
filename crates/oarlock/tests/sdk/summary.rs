//! What a session delivered to its user, in the form that all drivers share, and how our driver makes it.
//!
//! | field | what |
//! | --- | --- |
//! | `types` | the types of messages in order, repetitions left out; `system/SUBTYPE` for system messages |
//! | `deltas`, `thinking_deltas` | all text and thinking deltas, joined |
//! | `blocks` | the model's blocks: `{text}`, `{thinking, signature}`, `{tool, input}` |
//! | `tool_results` | `{text, is_error}` |
//! | `subagent` | blocks of subagents, and their tool results as `{tool_result}` |
//! | `asks`, `withdrawn` | permission requests `{tool, input, suggestions, in_subagent}`, and how many were withdrawn |
//! | `hooks`, `calls`, `elicitations` | what the callbacks were called with |
//! | `results` | the ends of turns |
//! | `systems` | some fields of each system message |
//! | `session` | the id of the last result |
//! | `error` | `{kind, message}` of what the SDK raised |
//! | `stuck` | the step at which the driver gave up |

use std::collections::HashMap;

use oarlock_agent::stream::{ContentBlock, Delta, Message, System, TurnResult, User};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Fields of system messages that are compared.
const SYSTEM_FIELDS: [&str; 8] = [
    "subtype",
    "status",
    "permissionMode",
    "task_type",
    "compact_result",
    "error_status",
    "error",
    "attempt",
];

#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) types: Vec<String>,
    pub(crate) deltas: String,
    pub(crate) thinking_deltas: String,
    pub(crate) blocks: Vec<Value>,
    pub(crate) subagent: Vec<Value>,
    pub(crate) tool_results: Vec<Value>,
    pub(crate) asks: Vec<Value>,
    pub(crate) withdrawn: usize,
    pub(crate) hooks: Vec<Value>,
    pub(crate) calls: Vec<Value>,
    pub(crate) elicitations: Vec<Value>,
    pub(crate) results: Vec<Value>,
    pub(crate) systems: Vec<Value>,
    pub(crate) session: Option<String>,
    pub(crate) error: Option<Value>,
    pub(crate) stuck: Option<String>,
    /// How often each thing has happened; see [`Step::Wait`](crate::plan::Step::Wait).
    #[serde(skip)]
    pub(crate) marks: HashMap<String, usize>,
}

impl Summary {
    pub(crate) fn mark(&mut self, name: &str) {
        *self.marks.entry(name.to_owned()).or_default() += 1;
    }

    /// Takes one message in.
    pub(crate) fn take(&mut self, message: &Message) {
        if is_ours_alone(message) {
            return;
        }
        let kind = match message {
            Message::System(system) => format!("system/{}", system.tag()),
            other => other.tag().to_owned(),
        };
        if self.types.last() != Some(&kind) {
            self.types.push(kind.clone());
        }
        match message {
            Message::Assistant(assistant) => {
                let blocks = assistant.message.content.iter().filter_map(block);
                match assistant.parent_tool_use_id {
                    Some(_) => self.subagent.extend(blocks),
                    None => self.blocks.extend(blocks),
                }
            }
            Message::User(user) => self.take_user(user),
            Message::StreamEvent(event) => match event.event.delta() {
                Some(Delta::Text(delta)) => {
                    self.deltas.push_str(&delta.text);
                    self.mark("delta");
                }
                Some(Delta::Thinking(delta)) => self.thinking_deltas.push_str(&delta.thinking),
                _ => {}
            },
            Message::Result(result) => self.take_result(result),
            Message::System(system) => self.systems.push(system_fields(system)),
            _ => {}
        }
        self.mark(&kind);
    }

    fn take_user(&mut self, user: &User) {
        for block in user.message.content.blocks() {
            let ContentBlock::ToolResult(block) = block else { continue };
            let text = block.content.as_ref().map(|content| content.text()).unwrap_or_default();
            let result = json!({"text": text, "is_error": block.is_error.unwrap_or_default()});
            match user.parent_tool_use_id {
                Some(_) => self.subagent.push(json!({"tool_result": result})),
                None => self.tool_results.push(result),
            }
        }
    }

    fn take_result(&mut self, result: &TurnResult) {
        let denials = result.permission_denials.iter().flatten();
        self.session.clone_from(&result.session_id);
        self.results.push(json!({
            "subtype": result.subtype,
            "is_error": result.is_error,
            "num_turns": result.num_turns,
            "text": result.result,
            "structured_output": result.structured_output,
            "api_error_status": result.api_error_status,
            "terminal_reason": result.terminal_reason,
            "errors": result.errors,
            "denials": denials.map(|denial| &denial.tool_name).collect::<Vec<_>>(),
            "origin": result.origin.as_ref().map(|origin| &origin.kind),
        }));
    }
}

/// What only our SDK delivers, because it asks for it or hides nothing: session states, the fate of messages, and where
/// in the stream a question was asked.
fn is_ours_alone(message: &Message) -> bool {
    match message {
        Message::System(System::SessionStateChanged(_))
        | Message::CommandLifecycle(_)
        | Message::ControlRequest(_)
        | Message::ControlCancelRequest(_) => true,
        Message::User(user) => user.is_replay == Some(true),
        _ => false,
    }
}

fn block(block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text(block) => Some(json!({"text": block.text})),
        ContentBlock::Thinking(block) => {
            Some(json!({"thinking": block.thinking, "signature": block.signature}))
        }
        ContentBlock::ToolUse(block) => Some(json!({"tool": block.name, "input": block.input})),
        _ => None,
    }
}

fn system_fields(system: &System) -> Value {
    let all = serde_json::to_value(Message::System(system.clone())).unwrap_or_default();
    let fields = SYSTEM_FIELDS.iter().map(|name| ((*name).to_owned(), all[*name].clone()));
    Value::Object(fields.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}
