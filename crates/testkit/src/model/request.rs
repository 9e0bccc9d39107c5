//! What the model was asked: a recorded API request, and ways to read it.

use serde::Serialize;
use serde_json::Value;

use super::script::{Turn, strip};

/// One recorded API request.
#[derive(Clone, Serialize)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body; null when it is not JSON.
    pub body: Value,
    /// The turn of a script that this request asked for; none for side requests.
    pub turn: Option<Turn>,
}

/// The result of a tool, as the model was given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The use that it answers.
    pub tool_use_id: String,
    /// All its texts, joined by line feeds.
    pub text: String,
    /// Whether it is marked as an error.
    pub is_error: bool,
}

impl Request {
    /// All that the model was told in words: system prompt, user and system messages and tool results of the
    /// whole conversation, without script markers. What the model itself said is left out.
    #[must_use]
    pub fn told(&self) -> String {
        let mut texts = Vec::new();
        collect(&self.body["system"], &mut texts);
        for message in self.messages().iter().filter(|message| message["role"] != "assistant") {
            collect(&message["content"], &mut texts);
        }
        texts.join("\n")
    }

    /// What the model was told after it last spoke: the newest prompt or tool results, and context with them.
    #[must_use]
    pub fn told_last(&self) -> String {
        let messages = self.messages();
        let start = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |n| n + 1);
        let mut texts = Vec::new();
        for message in &messages[start..] {
            collect(&message["content"], &mut texts);
        }
        texts.join("\n")
    }

    /// The tool results of the conversation, oldest first.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let blocks = self.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                let mut texts = Vec::new();
                collect(&block["content"], &mut texts);
                ToolResult {
                    tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                    text: texts.join("\n"),
                    is_error: block["is_error"] == true,
                }
            })
            .collect()
    }

    /// The newest tool result.
    #[must_use]
    pub fn last_tool_result(&self) -> Option<ToolResult> {
        self.tool_results().pop()
    }

    /// The names of the tools that the model was offered.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// Whether this is turn `number` of the script `script`.
    #[must_use]
    pub fn is_turn(&self, script: &str, number: usize) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.script == script && turn.number == number)
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

/// Failure messages want the newest words, not the CLI's whole system prompt.
impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if let Some(turn) = &self.turn {
            write!(f, " [{} {}]", turn.script, turn.number)?;
        }
        let told = self.told_last();
        let start = told.char_indices().rev().nth(199).map_or(0, |(index, _)| index);
        write!(f, " …{:?}", &told[start..])
    }
}

fn collect(content: &Value, texts: &mut Vec<String>) {
    match content {
        Value::String(text) => texts.push(strip(text).into_owned()),
        Value::Array(blocks) => {
            for block in blocks {
                match &block["text"] {
                    Value::String(text) => texts.push(strip(text).into_owned()),
                    _ => collect(&block["content"], texts),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_model_was_told_is_read_from_every_shape_of_content() {
        let request = Request {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: vec![],
            turn: None,
            body: json!({
                "system": [{"type": "text", "text": "be kind"}],
                "tools": [{"name": "Read"}],
                "messages": [
                    {"role": "user", "content": "one {{script x}}"},
                    {"role": "assistant", "content": [{"type": "text", "text": "not told"}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t", "is_error": true,
                         "content": [{"type": "text", "text": "two"}]},
                        {"type": "text", "text": "three"},
                    ]},
                    {"role": "system", "content": "four"},
                ],
            }),
        };
        assert_eq!(request.told(), "be kind\none \ntwo\nthree\nfour");
        assert_eq!(request.told_last(), "two\nthree\nfour");
        let result = ToolResult { tool_use_id: "t".to_owned(), text: "two".to_owned(), is_error: true };
        assert_eq!(request.last_tool_result(), Some(result));
        assert_eq!(request.tools(), ["Read"]);
    }
}
