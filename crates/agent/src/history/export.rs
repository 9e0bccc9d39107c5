//! Sessions for other programs and other people.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::markdown::Markdown;
use super::{Messages, Record, Subagent, Transcript};
use crate::Error;
use crate::stream::{ContentBlock, Message};

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// For people: headings, tool calls with their results folded away, changes as diffs.
    #[default]
    Markdown,
    /// For programs: one object with `session`, `messages` and `subagents`.
    Json,
}

/// How to export a session.
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct Export {
    format: Format,
    thinking: bool,
    subagents: bool,
}

impl Export {
    /// In this format, without thinking and subagents.
    pub fn new(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// With what the model thought?
    pub fn thinking(mut self, with: bool) -> Self {
        self.thinking = with;
        self
    }

    /// With what subagents did?
    pub fn subagents(mut self, with: bool) -> Self {
        self.subagents = with;
        self
    }
}

impl Transcript {
    /// Writes the conversation. One message at a time is in memory.
    ///
    /// # Errors
    /// When the transcript cannot be read, or `out` cannot be written.
    pub fn export(&self, export: &Export, out: &mut dyn Write) -> Result<(), Error> {
        match export.format {
            Format::Markdown => self.export_markdown(export, out),
            Format::Json => self.export_json(export, out),
        }
    }

    fn export_markdown(&self, export: &Export, out: &mut dyn Write) -> Result<(), Error> {
        let messages = self.messages()?;
        let mut markdown = Markdown::new(out, export.thinking);
        markdown.title(self, messages.len()).map_err(cannot_write)?;
        // Each subagent is told of where it was called, and those that nobody called at the end.
        let mut subagents: HashMap<String, Vec<Subagent>> = HashMap::new();
        for subagent in self.wanted_subagents(export)? {
            let call = subagent.tool_use_id.clone().unwrap_or_default();
            subagents.entry(call).or_default().push(subagent);
        }
        for record in messages {
            let record = record?;
            markdown.record(&record).map_err(cannot_write)?;
            for subagent in answered(&record).into_iter().flat_map(|id| subagents.remove(id)).flatten() {
                self.tell(&subagent, &mut markdown)?;
            }
        }
        let mut left: Vec<Subagent> = subagents.into_values().flatten().collect();
        left.sort_by(|a, b| a.path.cmp(&b.path));
        for subagent in left {
            self.tell(&subagent, &mut markdown)?;
        }
        markdown.finish().map_err(cannot_write)
    }

    fn tell(&self, subagent: &Subagent, markdown: &mut Markdown<'_>) -> Result<(), Error> {
        markdown.begin_subagent(subagent).map_err(cannot_write)?;
        for record in subagent.messages()? {
            markdown.record(&record?).map_err(cannot_write)?;
        }
        markdown.end_subagent().map_err(cannot_write)
    }

    fn export_json(&self, export: &Export, out: &mut dyn Write) -> Result<(), Error> {
        let write = |out: &mut dyn Write, text: &str| out.write_all(text.as_bytes()).map_err(cannot_write);
        write(out, "{\"session\":")?;
        match self.summary() {
            Some(summary) => write_json(out, &summary)?,
            None => write_json(out, &json!({ "id": self.id(), "project": self.project() }))?,
        }
        write(out, ",\"messages\":")?;
        write_messages(out, self.messages()?, export.thinking)?;
        if export.subagents {
            write(out, ",\"subagents\":[")?;
            for (at, subagent) in self.subagents()?.iter().enumerate() {
                write(out, if at > 0 { ",\n" } else { "\n" })?;
                let about = json!({
                    "id": subagent.id, "agentType": subagent.agent_type, "description": subagent.description,
                    "toolUseId": subagent.tool_use_id, "parentAgentId": subagent.parent_agent,
                });
                write(out, about.to_string().trim_end_matches('}'))?;
                write(out, ",\"messages\":")?;
                write_messages(out, subagent.messages()?, export.thinking)?;
                write(out, "}")?;
            }
            write(out, "\n]")?;
        }
        write(out, "}\n")
    }

    fn wanted_subagents(&self, export: &Export) -> Result<Vec<Subagent>, Error> {
        if export.subagents { self.subagents() } else { Ok(Vec::new()) }
    }
}

/// The calls that a message answers.
fn answered(record: &Record) -> Vec<&str> {
    fn call(block: &ContentBlock) -> Option<&str> {
        match block {
            ContentBlock::ToolResult(result) => Some(&result.tool_use_id),
            _ => None,
        }
    }
    record.blocks().iter().filter_map(call).collect()
}

fn write_messages(out: &mut dyn Write, messages: Messages, thinking: bool) -> Result<(), Error> {
    out.write_all(b"[").map_err(cannot_write)?;
    let mut is_first = true;
    for record in messages {
        let mut record = record?;
        if !thinking && !forget_thinking(&mut record) {
            continue;
        }
        out.write_all(if is_first { b"\n" } else { b",\n" }).map_err(cannot_write)?;
        is_first = false;
        write_json(out, &record)?;
    }
    out.write_all(b"\n]").map_err(cannot_write)
}

/// `false` when nothing else was in it.
fn forget_thinking(record: &mut Record) -> bool {
    let Message::Assistant(assistant) = &mut record.message else { return true };
    let blocks = &mut assistant.message.content;
    let before = blocks.len();
    blocks.retain(|block| !matches!(block, ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_)));
    !blocks.is_empty() || before == 0
}

fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(out, value).map_err(|error| cannot_write(error.into()))
}

fn cannot_write(source: io::Error) -> Error {
    Error::Io { action: "write the export".into(), source }
}
