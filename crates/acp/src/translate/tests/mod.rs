//! The screen, seen from the client: updates are folded into a picture, as an editor does it.

mod calls;
mod cost;
mod fold;
mod orders;
mod recordings;
mod talk;

use std::sync::Arc;

use oarlock_agent::reduce::{Event, Reducer};
use oarlock_agent::stream::decode;
use oarlock_proto::acp::{ClientCapabilities, SessionUpdate};
use serde_json::{Value, json};

use super::{Pass, Screen};
use fold::Picture;

fn capabilities(json: Value) -> Arc<ClientCapabilities> {
    Arc::new(serde_json::from_value(json).expect("capabilities"))
}

/// A client that shows terminals, as Zed does.
fn zed() -> Arc<ClientCapabilities> {
    capabilities(json!({ "_meta": { "terminal_output": true } }))
}

/// A client that shows nothing but the baseline.
fn bare() -> Arc<ClientCapabilities> {
    capabilities(json!({}))
}

/// A client that shows all there is.
fn full() -> Arc<ClientCapabilities> {
    capabilities(json!({
        "session": { "notices": {}, "compaction": {} }, "plan": {},
        "_meta": { "terminal_output": true, "subagent-transcript": true },
    }))
}

/// A session and the screen that shows it.
struct Stage {
    reducer: Reducer,
    screen: Screen,
}

impl Stage {
    fn new(client: Arc<ClientCapabilities>) -> Self {
        Self::at(client, "/w", Pass::Live)
    }

    fn at(client: Arc<ClientCapabilities>, cwd: &str, pass: Pass) -> Self {
        Self { reducer: Reducer::default(), screen: Screen::new(client, cwd.into(), pass) }
    }

    /// The CLI says this.
    fn hear(&mut self, message: &Value) -> &mut Self {
        let message = decode(message.to_string().as_bytes()).expect("a message");
        let events: Vec<Event> = self.reducer.apply(message).collect();
        events.into_iter().for_each(|event| self.screen.show(event));
        self
    }

    fn hear_all(&mut self, messages: &[Value]) {
        for message in messages {
            self.hear(message);
        }
    }

    /// The model calls a tool.
    fn call(&mut self, id: &str, tool: &str, input: &Value) -> &mut Self {
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        self.hear(&json!({ "type": "assistant", "message": { "id": "m1", "content": [block] } }))
    }

    /// A tool answers.
    fn answer(&mut self, id: &str, content: &Value, is_error: bool, output: &Value) -> &mut Self {
        let block =
            json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error });
        self.hear(&json!({
            "type": "user", "message": { "role": "user", "content": [block] }, "tool_use_result": output,
        }))
    }

    fn take(&mut self) -> Vec<Value> {
        values(&self.screen.take())
    }

    /// All that waits, as one call's picture.
    fn picture(&mut self) -> Picture {
        Picture::of(&self.take())
    }
}

fn values(updates: &[SessionUpdate]) -> Vec<Value> {
    updates.iter().map(|update| serde_json::to_value(update).expect("JSON")).collect()
}

fn text(content: &Value) -> &str {
    content["content"]["text"].as_str().expect("text")
}
