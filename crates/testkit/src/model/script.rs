//! Scripts: what the model says, turn by turn, and how a prompt names one.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The marker that a prompt carries: `{{script NAME}}` or `{{script [[…],[…]]}}`.
const OPEN: &str = "{{script ";
const CLOSE: &str = "}}";

const PLAN_FILE: &str = "$PLAN_FILE";

/// One thing that the model does within a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Block {
    /// Says something.
    Text {
        /// The words.
        text: String,
    },
    /// Says something in exactly these pieces.
    Pieces {
        /// The words, piece by piece.
        pieces: Vec<String>,
    },
    /// Thinks aloud.
    Thinking {
        /// The thoughts.
        thinking: String,
    },
    /// Uses a tool.
    Tool {
        /// The tool's name.
        tool: String,
        /// The tool's input. The string `$PLAN_FILE` stands for the path that the CLI tells the model in plan mode.
        #[serde(default)]
        input: Value,
    },
    /// Stops streaming for a while.
    Pause {
        /// Milliseconds.
        pause: u64,
    },
    /// Stops streaming until the test calls [`Model::release`](super::Model::release) with this name.
    Hold {
        /// The name to release.
        hold: String,
    },
    /// Answers with an HTTP error instead; the rest of the turn is played once the error has been given `times` times.
    Error {
        /// The HTTP status.
        error: u16,
        /// How often; without it, always.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<usize>,
    },
    /// Breaks the stream off, as a lost connection does.
    Break {
        /// Always true.
        r#break: bool,
    },
}

/// Says `text`.
pub fn text(text: impl Into<String>) -> Block {
    Block::Text { text: text.into() }
}

/// Says something in exactly these pieces.
pub fn pieces(pieces: impl IntoIterator<Item = String>) -> Block {
    Block::Pieces { pieces: pieces.into_iter().collect() }
}

/// Thinks `thinking`.
pub fn thinking(thinking: impl Into<String>) -> Block {
    Block::Thinking { thinking: thinking.into() }
}

/// Uses the tool `tool` with `input`.
pub fn tool(tool: impl Into<String>, input: Value) -> Block {
    Block::Tool { tool: tool.into(), input }
}

/// Waits for [`Model::release`](super::Model::release) with the same name.
pub fn hold(name: impl Into<String>) -> Block {
    Block::Hold { hold: name.into() }
}

/// What the model does: one list of blocks for each API request that follows the prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script(Vec<Vec<Block>>);

impl Script {
    /// An empty script.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.0.push(blocks.into_iter().collect());
        self
    }

    /// The marker that carries the whole script inside a prompt, for programs that cannot reach the
    /// [`Model`](super::Model) which will play it.
    pub fn inline(&self) -> Result<String> {
        let script = serde_json::to_string(self).context("failed to write a script as JSON")?;
        // The marker ends at the first `}}`, so the script itself must not hold one: a blank goes between two
        // objects' ends, an escape into a string.
        let (mut safe, mut in_string, mut escaped) = (String::with_capacity(script.len()), false, false);
        for c in script.chars() {
            match c {
                '}' if safe.ends_with('}') => safe.push_str(if in_string { "\\u007d" } else { " }" }),
                _ => safe.push(c),
            }
            in_string ^= c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
        }
        Ok(format!("{OPEN}{safe}{CLOSE}"))
    }
}

/// The marker that names a registered script.
pub(super) fn marker(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// The text without its script markers: what a model would have read.
pub(super) fn strip(text: &str) -> Cow<'_, str> {
    let Some(start) = text.find(OPEN) else { return Cow::Borrowed(text) };
    let Some(length) = text[start..].find(CLOSE) else { return Cow::Borrowed(text) };
    let rest = strip(&text[start + length + CLOSE.len()..]);
    Cow::Owned(format!("{}{rest}", &text[..start]))
}

/// Where a conversation stands in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The script's name, or `inline`.
    pub script: String,
    /// The turn, from 0.
    pub number: usize,
}

/// Which turn of which script a request asks for, and its blocks.
pub(super) fn plan(body: &Value, scripts: &HashMap<String, Script>) -> (Option<Turn>, Vec<Block>) {
    // Titles, summaries and other side requests of the CLI come without tools.
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = messages.iter().enumerate().rev().find_map(|(index, message)| {
        (message["role"] == "user")
            .then(|| find(message, scripts))?
            .map(|(name, script)| (index, name, script))
    });
    let (Some((index, name, script)), true) = (found, has_tools) else {
        return (None, vec![text("ok")]);
    };
    let number = messages[index..].iter().filter(|message| message["role"] == "assistant").count();
    let mut blocks = script.0.get(number).cloned().unwrap_or_else(|| vec![text("done")]);
    for block in &mut blocks {
        if let Block::Tool { input: Value::Object(input), .. } = block {
            input.values_mut().filter(|value| *value == PLAN_FILE).for_each(|value| *value = plan_file(body));
        }
    }
    (Some(Turn { script: name, number }), blocks)
}

/// The last path of a plan file in the request; only the CLI knows it beforehand.
fn plan_file(body: &Value) -> Value {
    let text = body.to_string();
    let is_path = |c: char| c.is_alphanumeric() || "/.-_".contains(c);
    let found = text.rmatch_indices("/plans/").find_map(|(at, _)| {
        let start = text[..at].rfind(|c| !is_path(c)).map_or(0, |before| before + 1);
        let path = text[start..].split(|c| !is_path(c)).next()?;
        Some(&path[..path.find(".md")? + 3])
    });
    json!(found.unwrap_or("there is no plan file"))
}

fn find(message: &Value, scripts: &HashMap<String, Script>) -> Option<(String, Script)> {
    let texts: Vec<&str> = match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => vec![],
    };
    texts.into_iter().rev().find_map(|text| {
        let (_, rest) = text.rsplit_once(OPEN)?;
        let (inside, _) = rest.split_once(CLOSE)?;
        if inside.starts_with('[') {
            let broken = || Script::new().turn([self::text("this script is not valid JSON")]);
            return Some(("inline".to_owned(), serde_json::from_str(inside).unwrap_or_else(|_| broken())));
        }
        let unknown = || Script::new().turn([self::text(format!("there is no script {inside:?}"))]);
        Some((inside.to_owned(), scripts.get(inside).cloned().unwrap_or_else(unknown)))
    })
}

/// A complete, not streamed answer; also what the streamed events add up to.
pub(super) fn message(id: &str, model: &Value, blocks: &[Block]) -> Value {
    let content: Vec<Value> =
        blocks.iter().enumerate().filter_map(|(n, block)| content(id, n, block)).collect();
    json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason(blocks), "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20},
    })
}

pub(super) fn stop_reason(blocks: &[Block]) -> &'static str {
    if blocks.iter().any(|block| matches!(block, Block::Tool { .. })) { "tool_use" } else { "end_turn" }
}

/// The content block of the API that a script's block stands for; none for pauses and errors.
pub(super) fn content(message_id: &str, number: usize, block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Pieces { pieces } => json!({"type": "text", "text": pieces.concat()}),
        Block::Thinking { thinking } => {
            json!({"type": "thinking", "thinking": thinking, "signature": "c2lnbmF0dXJl"})
        }
        Block::Tool { tool, input } => {
            let input = if input.is_null() { json!({}) } else { input.clone() };
            json!({"type": "tool_use", "id": format!("toolu_{message_id}_{number}"), "name": tool, "input": input})
        }
        Block::Pause { .. } | Block::Hold { .. } | Block::Error { .. } | Block::Break { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Value) -> Value {
        json!({"messages": messages, "tools": [{"name": "Read"}]})
    }

    #[test]
    fn the_last_script_of_the_conversation_is_played_turn_by_turn() {
        let scripts = HashMap::from([
            ("old".to_owned(), Script::new().turn([text("old 0")])),
            ("new".to_owned(), Script::new().turn([text("new 0")]).turn([text("new 1")])),
        ]);
        let mut messages = vec![
            json!({"role": "user", "content": "first {{script old}}"}),
            json!({"role": "assistant", "content": "old 0"}),
            json!({"role": "user", "content": [{"type": "text", "text": "then {{script new}}"}]}),
        ];
        for (number, said) in ["new 0", "new 1", "done"].into_iter().enumerate() {
            let (turn, blocks) = plan(&request(json!(messages)), &scripts);
            assert_eq!(turn, Some(Turn { script: "new".to_owned(), number }));
            assert_eq!(blocks, [text(said)]);
            messages.push(json!({"role": "assistant", "content": said}));
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "content": "x"}]}));
        }
    }

    #[test]
    fn the_plan_file_is_taken_from_the_request() {
        let script = Script::new().turn([tool("Write", json!({"file_path": "$PLAN_FILE", "content": "c"}))]);
        let scripts = HashMap::from([("s".to_owned(), script)]);
        for (told, path) in [
            ("Make your plan at /h/.claude/plans/a-b.md. Then {{script s}}", "/h/.claude/plans/a-b.md"),
            ("{{script s}}", "there is no plan file"),
        ] {
            let (_, blocks) = plan(&request(json!([{"role": "user", "content": told}])), &scripts);
            assert_eq!(blocks, [tool("Write", json!({"file_path": path, "content": "c"}))]);
        }
    }

    #[test]
    fn a_request_without_tools_gets_a_plain_answer() {
        let scripts = HashMap::from([("s".to_owned(), Script::new().turn([text("no")]))]);
        let body = json!({"messages": [{"role": "user", "content": "title of {{script s}}"}]});
        assert_eq!(plan(&body, &scripts), (None, vec![text("ok")]));
    }

    #[test]
    fn an_inline_script_survives_the_prompt() {
        let script = Script::new()
            .turn([thinking("hm"), tool("Edit", json!({"a": {"b": {"c": "}}\"}}}"}}})), hold("gate")])
            .turn([Block::Error { error: 529, times: Some(1) }, text("end")]);
        let prompt = format!("do it {} now", script.inline().unwrap());
        let (name, found) = find(&json!({"content": prompt}), &HashMap::new()).unwrap();
        assert_eq!((name.as_str(), found), ("inline", script));
        assert_eq!(strip(&prompt), "do it  now");
    }

    #[test]
    fn an_unknown_script_says_so() {
        let (_, blocks) =
            plan(&request(json!([{"role": "user", "content": "{{script nope}}"}])), &HashMap::new());
        assert_eq!(blocks, [text("there is no script \"nope\"")]);
    }
}
