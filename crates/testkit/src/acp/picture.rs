//! What a user sees of a session: its updates, folded together.

use serde_json::{Map, Value, json};

use super::Line;

/// One thing in the conversation, in the order of appearance.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Words: of the user, the agent, or its thoughts.
    Said {
        /// `user`, `agent` or `thought`.
        who: &'static str,
        /// The message's id.
        id: Option<String>,
        /// All chunks joined; a block that is no text is its type in brackets.
        text: String,
    },
    /// A tool call: the number of it in [`Picture::calls`].
    Call(usize),
}

/// A tool call as it stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// All fields, each as the newest update has it.
    pub fields: Map<String, Value>,
    /// Every status that it had, in order, equal ones in a row once.
    pub statuses: Vec<String>,
    /// What a terminal in `_meta` was given.
    pub output: String,
    /// How it ended there.
    pub exit: Option<Value>,
}

impl Call {
    /// A field; null if there is none.
    #[must_use]
    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// The newest status.
    #[must_use]
    pub fn status(&self) -> &str {
        self.statuses.last().map(String::as_str).unwrap_or_default()
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.status(), "completed" | "failed")
    }

    /// The title.
    #[must_use]
    pub fn title(&self) -> &str {
        self.field("title").as_str().unwrap_or_default()
    }

    /// Its diffs: path, old text (null for a new file), new text.
    #[must_use]
    pub fn diffs(&self) -> Vec<(&Value, &Value, &Value)> {
        let content = self.field("content").as_array().map(Vec::as_slice).unwrap_or_default();
        let diffs = content.iter().filter(|block| block["type"] == "diff");
        diffs.map(|diff| (&diff["path"], &diff["oldText"], &diff["newText"])).collect()
    }

    /// All text of its content, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let content = self.field("content").as_array().map(Vec::as_slice).unwrap_or_default();
        let texts = content.iter().filter_map(|block| block["content"]["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// What it was called for, by the agent's `_meta`.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.field("_meta")["claudeCode"]["parentToolUseId"].as_str()
    }
}

/// A session as its client sees it.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// What was said and called.
    pub items: Vec<Item>,
    /// The tool calls.
    pub calls: Vec<Call>,
    /// Every plan, oldest first.
    pub plans: Vec<Value>,
    /// The newest mode.
    pub mode: Option<String>,
    /// The newest options.
    pub options: Option<Value>,
    /// The newest commands.
    pub commands: Option<Value>,
    /// Every usage update.
    pub usage: Vec<Value>,
    /// The newest title.
    pub title: Option<String>,
    /// Every notice.
    pub notices: Vec<Value>,
    /// Updates of other kinds.
    pub others: Vec<Value>,
}

impl Picture {
    /// Folds what was received of a session.
    #[must_use]
    pub fn of(lines: &[Line], session: &str) -> Self {
        let mut picture = Self::default();
        let updates = lines.iter().filter(|line| !line.sent && line.message["method"] == "session/update");
        for line in updates.filter(|line| line.message["params"]["sessionId"] == session) {
            picture.take(&line.message["params"]["update"]);
        }
        picture
    }

    /// Takes one update.
    pub fn take(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "user_message_chunk" => self.say("user", update),
            "agent_message_chunk" => self.say("agent", update),
            "agent_thought_chunk" => self.say("thought", update),
            "tool_call" | "tool_call_update" => self.change(update),
            "plan" => self.plans.push(update["entries"].clone()),
            "available_commands_update" => self.commands = Some(update["availableCommands"].clone()),
            "current_mode_update" => self.mode = update["currentModeId"].as_str().map(str::to_owned),
            "config_option_update" => self.options = Some(update["configOptions"].clone()),
            "usage_update" => self.usage.push(update.clone()),
            "session_info_update" => {
                if let Some(title) = update["title"].as_str() {
                    self.title = Some(title.to_owned());
                }
            }
            "notice" => self.notices.push(update.clone()),
            _ => self.others.push(update.clone()),
        }
    }

    fn say(&mut self, speaker: &'static str, update: &Value) {
        let content = &update["content"];
        let kind = content["type"].as_str().unwrap_or_default();
        let words = content["text"].as_str().map_or_else(|| format!("[{kind}]"), str::to_owned);
        let message = update["messageId"].as_str().map(str::to_owned);
        if let Some(Item::Said { who, id, text }) = self.items.last_mut()
            && *who == speaker
            && *id == message
        {
            text.push_str(&words);
            return;
        }
        self.items.push(Item::Said { who: speaker, id: message, text: words });
    }

    fn change(&mut self, update: &Value) {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let number = self.calls.iter().position(|call| call.id == id).unwrap_or_else(|| {
            self.calls.push(Call { id: id.to_owned(), ..Call::default() });
            self.items.push(Item::Call(self.calls.len() - 1));
            self.calls.len() - 1
        });
        let call = &mut self.calls[number];
        for (name, value) in update.as_object().into_iter().flatten() {
            match name.as_str() {
                "sessionUpdate" | "toolCallId" => {}
                "_meta" => {
                    let had = call.fields.entry("_meta").or_insert_with(|| json!({}));
                    merge(had, value);
                }
                _ => drop(call.fields.insert(name.clone(), value.clone())),
            }
        }
        if let Some(status) = update["status"].as_str()
            && call.status() != status
        {
            call.statuses.push(status.to_owned());
        }
        if let Some(data) = update["_meta"]["terminal_output"]["data"].as_str() {
            call.output.push_str(data);
        }
        if let Some(exit) = update["_meta"].get("terminal_exit") {
            call.exit = Some(exit.clone());
        }
    }

    /// Everything that the agent said, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.words("agent")
    }

    /// Everything that one speaker said, joined.
    #[must_use]
    pub fn words(&self, speaker: &str) -> String {
        let said = self.items.iter().filter_map(|item| match item {
            Item::Said { who, text, .. } if *who == speaker => Some(text.as_str()),
            _ => None,
        });
        said.collect()
    }

    /// The call whose title holds this text.
    #[must_use]
    pub fn call(&self, title: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.title().contains(title))
    }

    /// What remains when a session is seen again: all that was said, with ids, and every call as it ended.
    #[must_use]
    pub fn shown(&self) -> Vec<Value> {
        let show = |item: &Item| match item {
            Item::Said { who, id, text } => json!({"who": who, "id": id, "text": text}),
            Item::Call(number) => {
                let call = &self.calls[*number];
                let field = |name: &str| call.field(name).clone();
                json!({
                    "call": call.id, "title": field("title"), "kind": field("kind"), "status": call.status(),
                    "content": field("content"), "locations": field("locations"), "output": call.output,
                    "parent": call.parent(),
                })
            }
        };
        self.items.iter().map(show).collect()
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(updates: &[Value]) -> Picture {
        let mut picture = Picture::default();
        updates.iter().for_each(|update| picture.take(update));
        picture
    }

    #[test]
    fn chunks_of_one_message_are_joined_and_others_are_not() {
        let chunk = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
        let picture = folded(&[chunk("1", "a"), chunk("1", "b"), chunk("2", "c")]);
        assert_eq!(picture.items.len(), 2);
        assert_eq!(picture.text(), "abc");
    }

    #[test]
    fn a_call_keeps_what_later_updates_leave_out() {
        let picture = folded(&[
            json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read a", "status": "pending"}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress",
                   "_meta": {"terminal_output": {"data": "x"}}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
                   "_meta": {"terminal_output": {"data": "y"}}}),
        ]);
        let call = picture.call("Read").unwrap();
        assert_eq!(call.statuses, ["pending", "in_progress", "completed"]);
        assert_eq!(call.output, "xy");
        assert!(call.is_over());
        assert_eq!(picture.shown().len(), 1);
    }
}
