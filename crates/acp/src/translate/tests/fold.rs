//! A client's picture of a session: what updates fold into. It holds the agent to the protocol's rules.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A client's picture of a session.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Picture {
    /// Messages and calls, in the order they came.
    pub(super) items: Vec<Item>,
    pub(super) calls: BTreeMap<String, Map<String, Value>>,
    /// What terminals show, and how they ended.
    pub(super) terminals: BTreeMap<String, (String, Option<Value>)>,
    pub(super) plans: Vec<Value>,
    pub(super) usages: Vec<Value>,
    pub(super) notices: Vec<Value>,
    pub(super) others: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Said { kind: String, message_id: Option<String>, text: String },
    Call(String),
}

impl Picture {
    pub(super) fn of(updates: &[Value]) -> Self {
        let mut picture = Self::default();
        updates.iter().for_each(|update| picture.apply(update));
        picture
    }

    pub(super) fn apply(&mut self, update: &Value) {
        let kind = update["sessionUpdate"].as_str().expect("a kind");
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => self.say(kind, update),
            "tool_call" => {
                let id = update["toolCallId"].as_str().expect("an id").to_owned();
                assert!(update["title"].as_str().is_some_and(|title| !title.is_empty()), "{update}");
                assert!(!self.calls.contains_key(&id), "a call is told once: {id}");
                self.items.push(Item::Call(id.clone()));
                self.calls.insert(id.clone(), Map::new());
                self.update(&id, update);
            }
            "tool_call_update" => self.update(update["toolCallId"].as_str().expect("an id"), update),
            "plan" => {
                assert_ne!(self.plans.last(), Some(&update["entries"]), "no plan twice in a row");
                self.plans.push(update["entries"].clone());
            }
            "usage_update" => {
                let is_new = update.get("cost").is_some() || self.usages.last() != Some(update);
                assert!(is_new, "told twice: {update}");
                self.usages.push(update.clone());
            }
            "notice" => self.notices.push(update.clone()),
            _ => self.others.push(update.clone()),
        }
    }

    fn say(&mut self, kind: &str, update: &Value) {
        let text = update["content"]["text"].as_str().unwrap_or("[no text]");
        let id = update["messageId"].as_str().map(str::to_owned);
        let is_child = !update["_meta"]["claudeCode"]["parentToolUseId"].is_null();
        let kind = if is_child { "subagent" } else { kind };
        if let Some(Item::Said { kind: last, message_id, text: said }) = self.items.last_mut()
            && last == kind
            && *message_id == id
        {
            return said.push_str(text);
        }
        self.items.push(Item::Said { kind: kind.into(), message_id: id, text: text.into() });
    }

    fn update(&mut self, id: &str, update: &Value) {
        let call = self.calls.get_mut(id).unwrap_or_else(|| panic!("an update before its call: {update}"));
        let rank = |status: Option<&Value>| match status.and_then(Value::as_str) {
            None => 0,
            Some("pending") => 1,
            Some("in_progress") => 2,
            Some("completed" | "failed") => 3,
            other => panic!("{other:?}"),
        };
        let (before, after) = (rank(call.get("status")), rank(update.get("status")));
        assert!(before < 3, "news of a call that is over: {update}");
        assert!(after == 0 || after >= before, "the status goes back: {update}");
        for (key, value) in update.as_object().expect("an object") {
            match key.as_str() {
                "sessionUpdate" | "toolCallId" => {}
                "_meta" => self.terminals_of(update["sessionUpdate"] == "tool_call", id, value),
                _ => drop(self.calls.get_mut(id).expect("a call").insert(key.clone(), value.clone())),
            }
        }
        for place in update["locations"].as_array().into_iter().flatten() {
            assert!(place["path"].as_str().is_some_and(|path| path.starts_with('/')), "{place}");
            assert!(place.get("line").is_none_or(|line| line.as_u64() >= Some(1)), "{place}");
        }
    }

    fn terminals_of(&mut self, is_call: bool, id: &str, meta: &Value) {
        if let Some(info) = meta.get("terminal_info") {
            assert!(is_call && info["terminal_id"] == id, "a terminal comes with its call");
            self.terminals.insert(id.into(), (String::new(), None));
        }
        for key in ["terminal_output", "terminal_exit"] {
            let Some(news) = meta.get(key) else { continue };
            assert!(!is_call && news["terminal_id"] == id, "a terminal is written to by updates");
            let (data, exit) = self.terminals.get_mut(id).expect("a terminal");
            assert!(exit.is_none(), "a terminal that is over is not written to");
            match key {
                "terminal_output" => data.push_str(news["data"].as_str().expect("data")),
                _ => *exit = Some(news["exit_code"].clone()),
            }
        }
        if let Some(parent) = meta.get("claudeCode").and_then(|meta| meta.get("parentToolUseId")) {
            self.calls.get_mut(id).expect("a call").insert("parent".into(), parent.clone());
        }
    }

    /// A call.
    pub(super) fn call(&self, id: &str) -> &Map<String, Value> {
        self.calls.get(id).unwrap_or_else(|| panic!("no call {id}"))
    }

    /// What a terminal shows, and how it ended.
    pub(super) fn terminal(&self, id: &str) -> (&str, Option<i64>) {
        let (data, exit) = &self.terminals[id];
        (data, exit.as_ref().and_then(Value::as_i64))
    }

    /// What the agent has said, joined.
    pub(super) fn said(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Said { kind, text, .. } if kind == "agent_message_chunk" => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Calls that are not over.
    pub(super) fn open(&self) -> Vec<&str> {
        let is_open = |call: &Map<String, Value>| {
            !matches!(call.get("status").and_then(Value::as_str), Some("completed" | "failed"))
        };
        self.calls.iter().filter(|(_, call)| is_open(call)).map(|(id, _)| id.as_str()).collect()
    }

    /// What a replay can show of it: what the model said, and all calls.
    pub(super) fn of_the_model(mut self) -> Self {
        self.items.retain(|item| match item {
            Item::Said { kind, message_id, .. } => {
                kind.starts_with("agent_") && message_id.as_ref().is_some_and(|id| id.starts_with("msg_"))
            }
            Item::Call(id) => id.starts_with("toolu_"),
        });
        self.calls.retain(|id, _| id.starts_with("toolu_"));
        self.plans = self.plans.pop().into_iter().collect();
        self.usages.clear();
        self.notices.clear();
        self.others.clear();
        self
    }
}
