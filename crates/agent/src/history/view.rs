//! A conversation in pieces that can be shown: what Markdown, a terminal and the search are made from.

use std::collections::HashMap;

use super::Record;
use crate::stream::{
    Content, ContentBlock, Hunk, Json, Message, Source, System, ToolInput, ToolOutput, ToolResultBlock,
    ToolUseBlock, mcp_tool_name,
};

/// Something that can be shown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// What the user said.
    Prompt(String),
    /// A slash command of the user's, with its arguments.
    Command(String),
    /// What the CLI said in the user's name: a command's output, an interruption.
    Notice(String),
    /// What the model said.
    Text(String),
    /// What the model thought.
    Thinking(String),
    /// A call of a tool.
    Call(Call),
    /// What became of it.
    Outcome(Outcome),
    /// A picture or a document, described.
    Media(String),
    /// What was said before was replaced by a summary here.
    Compaction {
        /// `manual` or `auto`.
        trigger: String,
        /// How much there was before.
        tokens: Option<u64>,
    },
    /// That summary.
    Summary(String),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Its id, which the outcome repeats.
    pub id: String,
    /// The tool's name; an MCP tool's with its server.
    pub tool: String,
    /// What matters most of the input, in one line: a command, a path, a pattern.
    pub headline: String,
    /// All of the input.
    pub input: Json,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The call.
    pub call: String,
    /// The tool, when the call was seen.
    pub tool: Option<String>,
    /// What the model was told.
    pub text: String,
    /// Did it fail?
    pub is_error: bool,
    /// What changed in a file.
    pub patch: Vec<Hunk>,
}

/// Takes records apart. It remembers the calls that are not answered yet, because a result names only its call.
#[derive(Debug, Default)]
pub struct View {
    calls: HashMap<String, String>,
}

impl View {
    /// The pieces of the next record.
    pub fn pieces(&mut self, record: &Record) -> Vec<Piece> {
        match &record.message {
            Message::User(user) if record.is_summary => vec![Piece::Summary(user.message.content.text())],
            Message::User(user) => self.user(&user.message.content, user.tool_use_result.as_ref()),
            Message::Assistant(assistant) => self.assistant(&assistant.message.content),
            Message::System(System::CompactBoundary(boundary)) => vec![Piece::Compaction {
                trigger: boundary.compact_metadata.trigger.clone(),
                tokens: boundary.compact_metadata.pre_tokens,
            }],
            _ => Vec::new(),
        }
    }

    fn user(&mut self, content: &Content, data: Option<&Json>) -> Vec<Piece> {
        if let Content::Text(text) = content {
            return said(text).into_iter().collect();
        }
        let blocks = content.blocks();
        // The data beside a message is about its one result.
        let results = blocks.iter().filter(|block| matches!(block, ContentBlock::ToolResult(_))).count();
        let data = data.filter(|_| results == 1);
        blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(block) => said(&block.text),
                ContentBlock::ToolResult(result) => Some(self.outcome(result, data)),
                other => media(other),
            })
            .collect()
    }

    fn assistant(&mut self, blocks: &[ContentBlock]) -> Vec<Piece> {
        let piece = |block: &ContentBlock| match block {
            ContentBlock::Text(block) if block.text.is_empty() => None,
            ContentBlock::Text(block) => Some(Piece::Text(block.text.clone())),
            ContentBlock::Thinking(block) if block.thinking.is_empty() => None,
            ContentBlock::Thinking(block) => Some(Piece::Thinking(block.thinking.clone())),
            ContentBlock::ToolUse(call)
            | ContentBlock::ServerToolUse(call)
            | ContentBlock::McpToolUse(call) => {
                self.calls.insert(call.id.clone(), call.name.clone());
                Some(Piece::Call(Call::of(call)))
            }
            ContentBlock::McpToolResult(result) => Some(self.outcome(result, None)),
            other => media(other),
        };
        blocks.iter().filter_map(piece).collect()
    }

    fn outcome(&mut self, result: &ToolResultBlock, data: Option<&Json>) -> Piece {
        let tool = self.calls.remove(&result.tool_use_id);
        let is_error = result.is_error.unwrap_or_default();
        let mut text = result.content.as_ref().map(Content::text).unwrap_or_default();
        for block in result.content.iter().flat_map(Content::blocks) {
            if let Some(Piece::Media(what)) = media(block) {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&format!("[{what}]"));
            }
        }
        let patch = match (&tool, data) {
            (Some(tool), Some(data)) if !is_error => patch(tool, data),
            _ => Vec::new(),
        };
        Piece::Outcome(Outcome { call: result.tool_use_id.clone(), tool, text, is_error, patch })
    }
}

impl Call {
    fn of(block: &ToolUseBlock) -> Self {
        let tool = match mcp_tool_name(&block.name) {
            Some((server, tool)) => format!("{server}: {tool}"),
            None => block.name.clone(),
        };
        let headline = headline(&block.name, &block.input);
        Self { id: block.id.clone(), tool, headline, input: block.input.clone() }
    }
}

/// What matters most of a tool's input, in one line; empty when nothing does more than the rest.
#[must_use]
pub fn headline(tool: &str, input: &Json) -> String {
    let text = match ToolInput::of(tool, input) {
        ToolInput::Read(input) => input.file_path,
        ToolInput::Edit(input) => input.file_path,
        ToolInput::MultiEdit(input) => input.file_path,
        ToolInput::Write(input) => input.file_path,
        ToolInput::NotebookEdit(input) => input.notebook_path,
        ToolInput::Bash(input) => input.command,
        ToolInput::Grep(input) => match input.path {
            Some(path) => format!("{} in {path}", input.pattern),
            None => input.pattern,
        },
        ToolInput::Glob(input) => input.pattern,
        ToolInput::Agent(input) => input.description,
        ToolInput::WebFetch(input) => input.url,
        ToolInput::WebSearch(input) => input.query,
        ToolInput::TaskCreate(input) => input.subject,
        ToolInput::TodoWrite(input) => format!("{} things to do", input.todos.len()),
        ToolInput::AskUserQuestion(input) => {
            input.questions.first().map(|question| question.question.clone()).unwrap_or_default()
        }
        // One argument speaks for itself.
        _ => match input.value() {
            serde_json::Value::Object(fields) if fields.len() == 1 => {
                fields.values().next().and_then(|value| value.as_str()).unwrap_or_default().into()
            }
            _ => String::new(),
        },
    };
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    if lines.next().is_some() { first + " …" } else { first }
}

/// What a tool changed in a file.
fn patch(tool: &str, data: &Json) -> Vec<Hunk> {
    let hunks = match ToolOutput::of(tool, data) {
        ToolOutput::Edit(output) => output.structured_patch,
        ToolOutput::Write(output) => {
            let hunks = output.structured_patch.filter(|hunks| !hunks.is_empty());
            hunks.or_else(|| (output.kind == "create").then(|| vec![whole_file(&output.content)]))
        }
        _ => None,
    };
    hunks.unwrap_or_default()
}

/// A new file is nothing but new lines.
fn whole_file(content: &str) -> Hunk {
    let lines: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
    Hunk { new_start: 1, new_lines: lines.len() as u64, lines, ..Hunk::default() }
}

/// What a user's text is.
fn said(text: &str) -> Option<Piece> {
    let tag = |name: &str| {
        let rest = text.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim())
    };
    if let Some(name) = tag("command-name") {
        let arguments = tag("command-args").unwrap_or_default();
        return Some(Piece::Command(format!("{name} {arguments}").trim().into()));
    }
    if let Some(output) = tag("local-command-stdout").or_else(|| tag("local-command-stderr")) {
        return (!output.is_empty()).then(|| Piece::Notice(output.into()));
    }
    if text.starts_with("[Request interrupted by user") {
        return Some(Piece::Notice(text.into()));
    }
    (!text.trim().is_empty()).then(|| Piece::Prompt(text.into()))
}

fn media(block: &ContentBlock) -> Option<Piece> {
    let (what, source) = match block {
        ContentBlock::Image(image) => ("image", &image.source),
        ContentBlock::Document(document) => ("document", &document.source),
        _ => return None,
    };
    Some(Piece::Media(match source {
        Source::Base64(data) => format!("{what}, {}, {} bytes", data.media_type, data.data.len() / 4 * 3),
        Source::Url(source) => format!("{what}, {}", source.url),
        _ => what.into(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pieces(records: &[Value]) -> Vec<Piece> {
        let mut view = View::default();
        let decode = |record: &Value| Record::decode(record.to_string().as_bytes()).unwrap();
        records.iter().flat_map(|record| view.pieces(&decode(record))).collect()
    }

    fn user(content: Value) -> Value {
        json!({ "type": "user", "uuid": "u", "message": { "role": "user", "content": content } })
    }

    #[test]
    fn what_the_cli_writes_in_the_user_s_name_is_no_prompt() {
        let command = "<command-name>/compact</command-name>\n <command-args> now </command-args>";
        assert_eq!(
            pieces(&[
                user(json!("hello")),
                user(json!(command)),
                user(json!("<local-command-stdout>done</local-command-stdout>")),
                user(json!("<local-command-stdout></local-command-stdout>")),
                user(json!([{ "type": "text", "text": "[Request interrupted by user]" }])),
            ]),
            [
                Piece::Prompt("hello".into()),
                Piece::Command("/compact now".into()),
                Piece::Notice("done".into()),
                Piece::Notice("[Request interrupted by user]".into()),
            ]
        );
    }

    #[test]
    fn a_result_knows_its_tool_and_what_changed() {
        let call = json!({ "type": "assistant", "uuid": "a", "message": { "id": "m", "content": [
            { "type": "tool_use", "id": "t1", "name": "Edit", "input": { "file_path": "/w/a", "old_string": "x", "new_string": "y" } }
        ] } });
        let hunk =
            json!({ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-x", "+y"] });
        let mut result = user(json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "done" }]));
        result["toolUseResult"] = json!({ "filePath": "/w/a", "structuredPatch": [hunk] });
        let pieces = pieces(&[call, result]);
        let [Piece::Call(call), Piece::Outcome(outcome)] = &pieces[..] else { panic!("{pieces:?}") };
        assert_eq!((call.tool.as_str(), call.headline.as_str()), ("Edit", "/w/a"));
        assert_eq!((outcome.tool.as_deref(), outcome.text.as_str()), (Some("Edit"), "done"));
        assert_eq!(outcome.patch[0].lines, ["-x", "+y"]);
    }

    #[test]
    fn headlines_are_one_line() {
        let of = |tool, input: Value| headline(tool, &input.into());
        assert_eq!(of("Bash", json!({ "command": "a\nb" })), "a …");
        assert_eq!(of("Grep", json!({ "pattern": "x", "path": "src" })), "x in src");
        assert_eq!(of("mcp__calc__add", json!({ "sum": "1+1" })), "1+1");
        assert_eq!(of("mcp__calc__add", json!({ "a": 1, "b": 2 })), "");
        assert_eq!(of("Tomorrow", json!(null)), "");
    }
}
