//! `oarlock sessions show`.

use std::collections::HashMap;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use oarlock_agent::history::{Export, Format, Library, Messages, Outcome, Piece, Subagent, Transcript, View};

use super::pager::page;
use super::{WhichOrLast, age, one_line};
use crate::output::{BAD, DIM, GOOD, STRONG, note, visible};

const PROMPT: Style = AnsiColor::Cyan.on_default().bold();
const TOOL: Style = AnsiColor::Blue.on_default();
/// How many lines of a result are shown.
const LINES: usize = 8;
/// How many lines of a change are shown.
const CHANGED: usize = 60;

/// Show what was said and done in a session
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichOrLast,
    /// Also what subagents did
    #[arg(short, long)]
    subagents: bool,
    /// Also what the model thought
    #[arg(short, long)]
    thinking: bool,
    /// All of every result, however long
    #[arg(short, long)]
    full: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let transcript = self.which.find(&Library::new()?)?;
        if self.json {
            let export = Export::new(Format::Json).thinking(self.thinking).subagents(self.subagents);
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            transcript.export(&export, &mut out)?;
            return Ok(out.flush()?);
        }
        let messages = transcript.messages()?;
        let skipped = messages.skipped();
        page(|out| self.show(out, &transcript, messages))?;
        if skipped > 0 {
            note(&format!("{skipped} lines of the transcript are no records and were passed over"));
        }
        Ok(())
    }

    fn show(&self, out: &mut dyn Write, transcript: &Transcript, messages: Messages) -> anyhow::Result<()> {
        head(out, transcript, messages.len())?;
        let subagents = if self.subagents { transcript.subagents()? } else { Vec::new() };
        let mut waiting: HashMap<String, Vec<Subagent>> = HashMap::new();
        for subagent in subagents {
            waiting.entry(subagent.tool_use_id.clone().unwrap_or_default()).or_default().push(subagent);
        }
        self.conversation(out, messages, "", &mut |out, call| {
            for subagent in waiting.remove(call).unwrap_or_default() {
                self.subagent(out, &subagent)?;
            }
            Ok(())
        })?;
        for subagent in waiting.into_values().flatten() {
            self.subagent(out, &subagent)?;
        }
        Ok(())
    }

    fn subagent(&self, out: &mut dyn Write, subagent: &Subagent) -> anyhow::Result<()> {
        let kind = subagent.agent_type.as_deref().unwrap_or("subagent");
        let what = subagent.description.as_deref().unwrap_or(&subagent.id);
        writeln!(out, "\n  {TOOL}┌ {}{TOOL:#} {}", one_line(kind), one_line(what))?;
        self.conversation(out, subagent.messages()?, "  │ ", &mut |_, _| Ok(()))?;
        Ok(writeln!(out, "  {TOOL}└{TOOL:#}")?)
    }

    /// `after` is told of every call that is answered.
    fn conversation(
        &self,
        out: &mut dyn Write,
        messages: Messages,
        margin: &str,
        after: &mut dyn FnMut(&mut dyn Write, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut view = View::default();
        for record in messages {
            for piece in view.pieces(&record?) {
                match piece {
                    Piece::Prompt(text) => paragraph(out, margin, "❯ ", PROMPT, &text)?,
                    Piece::Command(text) => paragraph(out, margin, "❯ ", PROMPT, &text)?,
                    Piece::Text(text) => paragraph(out, margin, "", Style::new(), &text)?,
                    Piece::Thinking(text) if self.thinking => {
                        paragraph(out, margin, "✻ ", DIM.italic(), &text)?
                    }
                    Piece::Thinking(_) => {}
                    Piece::Call(call) => {
                        let tool = one_line(&call.tool);
                        writeln!(
                            out,
                            "{margin}\n{margin}{TOOL}● {tool}{TOOL:#} {}",
                            one_line(&call.headline)
                        )?;
                    }
                    Piece::Outcome(outcome) => {
                        self.outcome(out, margin, &outcome)?;
                        after(out, &outcome.call)?;
                    }
                    Piece::Media(what) => writeln!(out, "{margin}{DIM}[{}]{DIM:#}", one_line(&what))?,
                    Piece::Notice(text) => paragraph(out, margin, "  ", DIM, &text)?,
                    Piece::Compaction { tokens, .. } => {
                        let tokens = tokens.map(|tokens| format!(" at {tokens} tokens")).unwrap_or_default();
                        writeln!(out, "{margin}\n{margin}{DIM}── compacted{tokens} ──{DIM:#}")?;
                    }
                    Piece::Summary(text) => self.lines(out, margin, DIM, &text)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn outcome(&self, out: &mut dyn Write, margin: &str, outcome: &Outcome) -> anyhow::Result<()> {
        if outcome.patch.is_empty() {
            let style = if outcome.is_error { BAD } else { DIM };
            return self.lines(out, margin, style, &outcome.text);
        }
        let lines = outcome.patch.iter().flat_map(|hunk| &hunk.lines);
        let most = if self.full { usize::MAX } else { CHANGED };
        let count = lines.clone().count();
        for line in lines.take(most) {
            let style = match line.as_bytes().first() {
                Some(b'+') => GOOD,
                Some(b'-') => BAD,
                _ => DIM,
            };
            writeln!(out, "{margin}  {style}{}{style:#}", visible(line))?;
        }
        more(out, margin, count.saturating_sub(most))
    }

    /// Lines of a text that nobody reads in full.
    fn lines(&self, out: &mut dyn Write, margin: &str, style: Style, text: &str) -> anyhow::Result<()> {
        let text = text.trim_end();
        let most = if self.full { usize::MAX } else { LINES };
        for line in text.lines().take(most) {
            writeln!(out, "{margin}  {style}{}{style:#}", visible(line))?;
        }
        more(out, margin, text.lines().count().saturating_sub(most))
    }
}

fn more(out: &mut dyn Write, margin: &str, left: usize) -> anyhow::Result<()> {
    if left > 0 {
        writeln!(out, "{margin}  {DIM}… {left} more lines{DIM:#}")?;
    }
    Ok(())
}

fn head(out: &mut dyn Write, transcript: &Transcript, count: usize) -> anyhow::Result<()> {
    if let Some(summary) = transcript.summary() {
        writeln!(out, "{STRONG}{}{STRONG:#}", one_line(&summary.title))?;
        let mut about = vec![format!("{count} messages"), age(summary.modified)];
        about.extend(summary.cwd.as_deref().map(one_line));
        about.extend(summary.git_branch.as_deref().filter(|branch| *branch != "HEAD").map(one_line));
        about.extend(summary.tag.as_deref().map(|tag| format!("#{}", one_line(tag))));
        writeln!(out, "{DIM}{}{DIM:#}", about.join(" · "))?;
    }
    Ok(writeln!(out, "{DIM}{}{DIM:#}", transcript.id())?)
}

fn paragraph(out: &mut dyn Write, margin: &str, mark: &str, style: Style, text: &str) -> anyhow::Result<()> {
    writeln!(out, "{margin}")?;
    let indent = " ".repeat(mark.chars().count());
    for (at, line) in text.trim_end().lines().enumerate() {
        let mark = if at == 0 { mark } else { &indent };
        writeln!(out, "{margin}{style}{mark}{}{style:#}", visible(line))?;
    }
    Ok(())
}
