//! A conversation as Markdown that reads well on a code forge.

use std::io::{self, Write};

use super::view::{Call, Outcome, Piece, View};
use super::{Record, Subagent, Transcript, time};
use crate::stream::{Hunk, Message, ToolInput};

/// More lines than this of a result are folded away.
const SHORT: usize = 12;

/// Writes pieces one after the other, with a heading whenever somebody else speaks.
pub(super) struct Markdown<'a> {
    out: &'a mut dyn Write,
    thinking: bool,
    speaker: Option<Speaker>,
    /// The main conversation's view is put aside while a subagent is told of.
    view: View,
    outer: Option<(View, Option<Speaker>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
}

impl<'a> Markdown<'a> {
    pub(super) fn new(out: &'a mut dyn Write, thinking: bool) -> Self {
        Self { out, thinking, speaker: None, view: View::default(), outer: None }
    }

    pub(super) fn title(&mut self, transcript: &Transcript, messages: usize) -> io::Result<()> {
        let summary = transcript.summary();
        let title = summary.as_ref().map_or("A session", |summary| &summary.title);
        writeln!(self.out, "# {}\n", one_line(title))?;
        writeln!(self.out, "- Session: `{}`", transcript.id())?;
        let Some(summary) = summary else { return Ok(()) };
        if let Some(cwd) = &summary.cwd {
            let branch = summary.git_branch.as_ref().filter(|branch| *branch != "HEAD");
            let branch = branch.map(|branch| format!(", branch {}", code(branch))).unwrap_or_default();
            writeln!(self.out, "- Directory: {}{branch}", code(cwd))?;
        }
        let to = minute(&time::format(summary.modified));
        let from = summary.created.map(|created| minute(&time::format(created)));
        let from = from.map(|from| format!("{from} to ")).unwrap_or_default();
        writeln!(self.out, "- Time: {from}{to} UTC")?;
        writeln!(self.out, "- Messages: {messages}")?;
        if let Some(tag) = &summary.tag {
            writeln!(self.out, "- Tag: {}", code(tag))?;
        }
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Record) -> io::Result<()> {
        let model = match &record.message {
            Message::Assistant(assistant) => Some(assistant.message.model.as_str()),
            _ => None,
        };
        for piece in self.view.pieces(record) {
            match piece {
                Piece::Prompt(text) => {
                    self.heading(Speaker::User, record, None)?;
                    self.paragraph(&text)?;
                }
                Piece::Command(text) => {
                    self.heading(Speaker::User, record, None)?;
                    self.paragraph(&code(&text))?;
                }
                Piece::Text(text) => {
                    self.heading(Speaker::Model, record, model)?;
                    self.paragraph(&text)?;
                }
                Piece::Thinking(text) if self.thinking => {
                    self.heading(Speaker::Model, record, model)?;
                    self.folded("Thinking", &text)?;
                }
                Piece::Thinking(_) => {}
                Piece::Call(call) => {
                    self.heading(Speaker::Model, record, model)?;
                    self.call(&call)?;
                }
                Piece::Outcome(outcome) => self.outcome(&outcome)?,
                Piece::Media(what) => self.paragraph(&format!("*[{what}]*"))?,
                Piece::Notice(text) => self.paragraph(&quote(&text))?,
                Piece::Compaction { tokens, .. } => {
                    let tokens =
                        tokens.map(|tokens| format!(" ({tokens} tokens before)")).unwrap_or_default();
                    self.paragraph(&format!("---\n\n*The conversation was compacted here{tokens}.*"))?;
                    self.speaker = None;
                }
                Piece::Summary(text) => self.folded("Summary of what was said before", &text)?,
            }
        }
        Ok(())
    }

    pub(super) fn begin_subagent(&mut self, subagent: &Subagent) -> io::Result<()> {
        let what = subagent.description.as_deref().unwrap_or(&subagent.id);
        let kind = subagent.agent_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        let summary = html(&format!("Subagent{kind}: {}", one_line(what)));
        writeln!(self.out, "\n<details>\n<summary><b>{summary}</b></summary>")?;
        let view = std::mem::take(&mut self.view);
        self.outer = Some((view, self.speaker.take()));
        Ok(())
    }

    pub(super) fn end_subagent(&mut self) -> io::Result<()> {
        if let Some((view, speaker)) = self.outer.take() {
            self.view = view;
            self.speaker = speaker;
        }
        writeln!(self.out, "\n</details>")
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn heading(&mut self, speaker: Speaker, record: &Record, model: Option<&str>) -> io::Result<()> {
        if self.speaker == Some(speaker) && speaker == Speaker::Model {
            return Ok(());
        }
        self.speaker = Some(speaker);
        let level = if self.outer.is_some() { "###" } else { "##" };
        let who = match speaker {
            Speaker::User => "User",
            Speaker::Model => "Claude",
        };
        let when = record.timestamp.as_deref().map(minute).unwrap_or_default();
        let about = [model.unwrap_or_default(), &when].into_iter().filter(|text| !text.is_empty());
        let about = about.map(html).collect::<Vec<_>>().join(" · ");
        let about = if about.is_empty() { about } else { format!(" <sub>{about}</sub>") };
        writeln!(self.out, "\n{level} {who}{about}")
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n{}", text.trim_end())
    }

    fn folded(&mut self, title: &str, text: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "\n<details>\n<summary>{}</summary>\n\n{}\n\n</details>",
            html(title),
            text.trim_end()
        )
    }

    fn call(&mut self, call: &Call) -> io::Result<()> {
        let headline =
            if call.headline.is_empty() { String::new() } else { format!(" {}", code(&call.headline)) };
        writeln!(self.out, "\n**{}**{headline}", html(&call.tool))?;
        match ToolInput::of(&call.tool, &call.input) {
            // The headline says it all, or the outcome shows it better.
            ToolInput::Read(_) | ToolInput::Edit(_) | ToolInput::MultiEdit(_) | ToolInput::Write(_) => Ok(()),
            ToolInput::Grep(_) | ToolInput::Glob(_) | ToolInput::WebFetch(_) | ToolInput::WebSearch(_) => {
                Ok(())
            }
            ToolInput::Bash(input) if input.command.lines().count() > 1 => self.block("sh", &input.command),
            ToolInput::Bash(_) => Ok(()),
            ToolInput::Agent(input) => self.folded("Prompt", &input.prompt),
            ToolInput::TodoWrite(input) => {
                writeln!(self.out)?;
                for todo in &input.todos {
                    let mark = if todo.status.as_str() == "completed" { "x" } else { " " };
                    writeln!(self.out, "- [{mark}] {}", one_line(&todo.content))?;
                }
                Ok(())
            }
            ToolInput::ExitPlanMode(input) => self.paragraph(&quote(&input.plan.unwrap_or_default())),
            _ if call.headline.is_empty() => {
                let pretty = serde_json::to_string_pretty(&call.input.value()).unwrap_or_default();
                self.block("json", &pretty)
            }
            _ => Ok(()),
        }
    }

    fn outcome(&mut self, outcome: &Outcome) -> io::Result<()> {
        if !outcome.patch.is_empty() {
            return self.block("diff", &patch(&outcome.patch));
        }
        let text = outcome.text.trim_end();
        let title = if outcome.is_error { "Failed" } else { "Result" };
        if text.is_empty() {
            return Ok(());
        }
        let lines = text.lines().count();
        if lines <= SHORT && text.len() < 2000 {
            if outcome.is_error {
                writeln!(self.out, "\n*{title}:*")?;
            }
            return self.block("", text);
        }
        let about = if lines > 1 { format!("{title}, {lines} lines") } else { title.into() };
        writeln!(self.out, "\n<details>\n<summary>{about}</summary>")?;
        self.block("", text)?;
        writeln!(self.out, "\n</details>")
    }

    fn block(&mut self, language: &str, text: &str) -> io::Result<()> {
        let fence = "`".repeat(longest_run(text).max(2) + 1);
        writeln!(self.out, "\n{fence}{language}\n{}\n{fence}", text.trim_end())
    }
}

/// Hunks as a unified diff.
fn patch(hunks: &[Hunk]) -> String {
    let mut text = String::new();
    for hunk in hunks {
        let (old, new) = ((hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines));
        text.push_str(&format!("@@ -{},{} +{},{} @@\n", old.0, old.1, new.0, new.1));
        for line in &hunk.lines {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The longest run of backticks: a fence must be longer.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

/// Inline code, whatever is in it.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(if text.contains('`') { longest_run(&text) + 1 } else { 1 });
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn quote(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}\n")).collect()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `2026-11-15 01:03`.
fn minute(timestamp: &str) -> String {
    timestamp.get(..16).unwrap_or(timestamp).replace('T', " ")
}
