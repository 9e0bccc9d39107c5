//! From events to what a person reads. It prints nothing itself: the same events give the same pieces.

mod tool;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anstyle::Style;
use clap::ValueEnum;
use oarlock_agent::reduce::{
    Compaction, Event, Hook, Notice, NoticeLevel, PlanEntry, Task, TaskChange, ToolCall, ToolResult, TurnEnd,
};
use oarlock_agent::stream::{ContentBlock, HookOutcome, RateLimitStatus, TaskStatus, TodoStatus};

use super::markdown::Markdown;
use super::progress::{count, seconds};
use crate::output::{BAD, DIM, GOOD, WARN, visible};

/// How thinking is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ThinkingShown {
    /// As it comes, dimmed
    Show,
    /// One line: for how long
    #[default]
    Summary,
    /// Not at all
    Hide,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A part of the answer, styled.
    Answer(String),
    /// The answer for a program, as it is.
    Raw(String),
    /// A part of something beside the answer.
    Aside(String),
    /// A line beside the answer, without its end.
    Line(String),
    /// A line that is written also when nobody looks on.
    Warning(String),
    /// The end of what was begun.
    Break,
}

/// What is to be shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    pub(super) thinking: ThinkingShown,
    /// The answer is shown as it comes. Else it is written when the turn ends.
    pub(super) is_live: bool,
    /// The answer is the value that a schema asks for.
    pub(super) has_schema: bool,
    /// Results are shown whole.
    pub(super) is_full: bool,
    /// Somebody can be asked.
    pub(super) is_interactive: bool,
}

/// What has been shown.
#[derive(Default)]
pub(super) struct Show {
    look: Look,
    markdown: Markdown,
    /// Since when the model thinks.
    thinking_since: Option<Instant>,
    has_thought: bool,
    /// Calls whose line has been printed, with that line.
    shown: HashMap<String, String>,
    /// The call whose line was printed last.
    latest: Option<String>,
    /// Calls that somebody was asked about, so their changes have been seen.
    asked: HashSet<String>,
    /// Calls that somebody said no to.
    refused: HashSet<String>,
    /// Calls whose tasks were told of as going on in the background.
    in_background: HashSet<String>,
    /// A model and a mode have been told; from then on changes are worth a line.
    knows_model: bool,
    knows_mode: bool,
}

impl Show {
    pub(super) fn new(look: Look) -> Self {
        Self { look, ..Self::default() }
    }

    /// Somebody is asked about a call, and sees what it does.
    pub(super) fn asked(&mut self, tool_use_id: &str) {
        self.asked.insert(tool_use_id.to_owned());
    }

    /// Somebody has said no to a call.
    pub(super) fn refused(&mut self, tool_use_id: &str) {
        self.refused.insert(tool_use_id.to_owned());
    }

    /// What an event looks like.
    pub(super) fn event(&mut self, event: &Event, cwd: Option<&str>, now: Instant) -> Vec<Piece> {
        if event.parent_tool_use_id().is_some() {
            return self.subagent(event, cwd);
        }
        match event {
            Event::Text { text, .. } if self.look.is_live && !self.look.has_schema => {
                vec![Piece::Answer(self.markdown.push(text))]
            }
            Event::Thinking { text, .. } => self.think(text, now),
            Event::ThinkingTokens(_) => self.think("", now),
            Event::BlockFinished { content, .. } => match content.as_ref() {
                ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => self.end_thinking(now),
                _ => vec![Piece::Answer(self.markdown.finish()), Piece::Break],
            },
            Event::BlockAbandoned { .. } => {
                self.thinking_since = None;
                let note = "(it broke off here; the message is written again)";
                vec![Piece::Answer(self.markdown.finish()), line(DIM, note)]
            }
            Event::Retracted(_) => vec![line(DIM, "(what was said last is taken back)")],
            Event::ToolCall(call) => self.call(call, cwd, ""),
            Event::ToolResult { call, result } => self.result(call.as_deref(), result, cwd),
            Event::ToolCancelled(call) if self.shown.contains_key(&call.id) => {
                let mut pieces = self.again(call, cwd);
                pieces.push(line(DIM, "  └ cancelled"));
                pieces
            }
            Event::Plan(plan) => plan_lines(plan),
            Event::Task { change, task } if task.is_background => {
                self.in_background.extend(task.tool_use_id.clone());
                background(*change, task)
            }
            Event::Interrupted { .. } => vec![line(WARN, "interrupted")],
            Event::CommandOutput(text) if self.look.is_live => vec![Piece::Answer(Markdown::render(text))],
            Event::Retry(retry) => {
                let status =
                    retry.error_status.map(|status| format!(" with status {status}")).unwrap_or_default();
                let (attempt, of) = (retry.attempt, retry.max_retries);
                vec![line(DIM, &format!("the API failed{status}; trying again ({attempt} of {of})"))]
            }
            Event::Notice(notice) => vec![tell(notice)],
            Event::Compaction(Compaction::Boundary(_)) => {
                vec![line(DIM, "the conversation so far is replaced by a summary")]
            }
            Event::Compaction(Compaction::Ended { error: Some(error) }) => {
                vec![line(WARN, &format!("the conversation could not be summarised: {error}"))]
            }
            Event::Hook(hook) => match hook.as_ref() {
                Hook::Ended(end) if end.outcome == HookOutcome::Error => {
                    let said = end.stderr.as_deref().or(end.output.as_deref()).unwrap_or_default();
                    let said = said.lines().next().unwrap_or_default();
                    vec![line(WARN, &format!("the hook {} failed: {said}", end.hook_name))]
                }
                _ => vec![],
            },
            Event::RateLimit(limit) => match limit.status {
                RateLimitStatus::AllowedWarning => vec![line(WARN, "little is left of the account's limit")],
                RateLimitStatus::Rejected => vec![line(BAD, "the account's limit is used up")],
                _ => vec![],
            },
            Event::ModelChanged(model) if std::mem::replace(&mut self.knows_model, true) => {
                vec![line(DIM, &format!("the model is now {model}"))]
            }
            Event::ModeChanged(mode) if std::mem::replace(&mut self.knows_mode, true) => {
                vec![line(DIM, &format!("the permission mode is now {mode}"))]
            }
            Event::TurnEnded(end) => self.turn_ended(end),
            _ => vec![],
        }
    }

    /// Of subagents, only what they do is shown.
    fn subagent(&mut self, event: &Event, cwd: Option<&str>) -> Vec<Piece> {
        match event {
            Event::ToolCall(call) => self.call(call, cwd, "  "),
            Event::ToolResult { call, result } if result.is_error() => {
                let call = call.as_deref();
                tool::result(call.unwrap_or(&ToolCall::default()), result, false).map(Piece::Line).collect()
            }
            _ => vec![],
        }
    }

    fn think(&mut self, text: &str, now: Instant) -> Vec<Piece> {
        self.thinking_since.get_or_insert(now);
        self.has_thought |= !text.is_empty();
        if self.look.thinking != ThinkingShown::Show {
            return vec![];
        }
        let lines: Vec<String> = text.split('\n').map(|line| in_style(DIM, &visible(line))).collect();
        vec![Piece::Aside(lines.join("\n"))]
    }

    fn end_thinking(&mut self, now: Instant) -> Vec<Piece> {
        let time =
            self.thinking_since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let was_shown = std::mem::take(&mut self.has_thought) && self.look.thinking == ThinkingShown::Show;
        match self.look.thinking {
            ThinkingShown::Hide => vec![],
            _ if was_shown => vec![Piece::Break],
            _ => vec![line(DIM, &format!("thought for {}", seconds(time)))],
        }
    }

    fn call(&mut self, call: &ToolCall, cwd: Option<&str>, indent: &str) -> Vec<Piece> {
        if tool::is_hidden(&call.name) {
            return vec![];
        }
        let title = format!("{indent}{}", tool::title(call, cwd));
        if self.shown.get(&call.id) == Some(&title) {
            return vec![];
        }
        self.shown.insert(call.id.clone(), title.clone());
        self.latest = Some(call.id.clone());
        vec![Piece::Line(title)]
    }

    /// The line of a call once more, when others have come in between.
    fn again(&mut self, call: &ToolCall, cwd: Option<&str>) -> Vec<Piece> {
        if self.latest.as_ref() == Some(&call.id) || tool::is_hidden(&call.name) {
            return vec![];
        }
        self.latest = Some(call.id.clone());
        vec![Piece::Line(tool::title(call, cwd))]
    }

    fn result(&mut self, call: Option<&ToolCall>, result: &ToolResult, cwd: Option<&str>) -> Vec<Piece> {
        let unknown = ToolCall { id: result.id.clone(), name: "a tool".into(), ..ToolCall::default() };
        let call = call.unwrap_or(&unknown);
        self.shown.remove(&call.id);
        if tool::is_hidden(&call.name) && !result.is_error() {
            return vec![];
        }
        let mut pieces = self.again(call, cwd);
        if tool::is_hidden(&call.name) && !self.asked.contains(&call.id) {
            // Without its line nobody would know what failed.
            pieces.push(Piece::Line(tool::title(call, cwd)));
        }
        let was_asked = self.asked.remove(&call.id);
        if self.refused.remove(&call.id) && result.is_error() {
            // The rest of it is for the model.
            pieces.push(line(DIM, "  └ refused"));
        } else if tool::was_stopped(result) {
            pieces.push(line(DIM, "  └ cancelled"));
        } else if tool::is_in_background(call, result) {
            if !self.in_background.remove(&call.id) {
                pieces.push(line(DIM, "  └ goes on in the background"));
            }
        } else if was_asked && tool::changes_files(&call.name) && !result.is_error() {
            pieces.push(line(DIM, "  └ done"));
        } else {
            pieces.extend(tool::result(call, result, self.look.is_full).map(Piece::Line));
        }
        pieces
    }

    fn turn_ended(&mut self, end: &TurnEnd) -> Vec<Piece> {
        let mut pieces = vec![Piece::Answer(self.markdown.finish()), Piece::Break];
        self.thinking_since = None;
        self.shown.clear();
        let Some(result) = &end.result else { return pieces };
        if !result.is_error {
            let text = result.result.as_deref().unwrap_or_default();
            match &result.structured_output {
                Some(value) if self.look.has_schema => pieces.push(Piece::Raw(format!("{}\n", value.text()))),
                _ if !self.look.is_live => pieces.push(Piece::Raw(with_end(text))),
                _ if !end.spoke => pieces.push(Piece::Answer(Markdown::render(text))),
                _ => {}
            }
        }
        let denied: Vec<String> = result
            .permission_denials
            .iter()
            .flatten()
            .map(|denial| {
                let call = ToolCall {
                    name: denial.tool_name.clone(),
                    input: denial.tool_input.clone(),
                    ..ToolCall::default()
                };
                tool::plain_title(&call, None)
            })
            .collect();
        if !denied.is_empty() && !self.look.is_interactive {
            pieces.push(Piece::Warning(format!(
                "refused, because nobody could be asked: {}; see --allow and --permission-mode, or run it at a terminal",
                denied.join(", ")
            )));
        }
        pieces.push(Piece::Line(in_style(DIM, &summary(end))));
        pieces
    }
}

/// What a turn took.
fn summary(end: &TurnEnd) -> String {
    let Some(result) = &end.result else { return String::new() };
    let mut parts = Vec::new();
    if let Some(time) = result.duration_ms.as_ref().and_then(serde_json::Number::as_f64) {
        parts.push(format!("{:.1} s", time / 1000.0));
    }
    match result.num_turns {
        0 => {}
        1 => parts.push("1 turn".to_owned()),
        turns => parts.push(format!("{turns} turns")),
    }
    if let Some(usage) = &result.usage {
        let cached = usage.cache_read_input_tokens.unwrap_or_default();
        let fresh =
            usage.input_tokens.unwrap_or_default() + usage.cache_creation_input_tokens.unwrap_or_default();
        let of_cache = if cached > 0 { format!(" ({} cached)", count(cached)) } else { String::new() };
        parts.push(format!("{} tokens in{of_cache}", count(fresh + cached)));
        parts.push(format!("{} out", count(usage.output_tokens.unwrap_or_default())));
    }
    if end.cost_usd > 0.0 {
        parts.push(format!("${:.4}", end.cost_usd));
    }
    if let Some(session) = &result.session_id {
        parts.push(format!("session {}", visible(session)));
    }
    parts.join(" · ")
}

fn with_end(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn in_style(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}

/// A line in a style; its text may be anybody's.
fn line(style: Style, text: &str) -> Piece {
    Piece::Line(in_style(style, &visible(text)))
}

fn tell(notice: &Notice) -> Piece {
    let text = visible(notice.text.trim());
    match notice.level {
        NoticeLevel::Info => Piece::Line(in_style(DIM, &text)),
        NoticeLevel::Warning => Piece::Line(in_style(WARN, &text)),
        NoticeLevel::Error => Piece::Warning(text),
    }
}

fn plan_lines(plan: &[PlanEntry]) -> Vec<Piece> {
    let entry = |entry: &PlanEntry| match entry.status {
        TodoStatus::Completed => line(DIM, &format!("  ☑ {}", entry.content)),
        TodoStatus::InProgress => {
            let doing = entry.active_form.as_ref().unwrap_or(&entry.content);
            line(Style::new().bold(), &format!("  ▶ {doing}"))
        }
        _ => line(Style::new(), &format!("  ☐ {}", entry.content)),
    };
    let title = Piece::Line(if plan.is_empty() { "nothing left to do" } else { "to do:" }.to_owned());
    std::iter::once(title).chain(plan.iter().map(entry)).collect()
}

fn background(change: TaskChange, task: &Task) -> Vec<Piece> {
    let about = &task.description;
    match change {
        TaskChange::Started => vec![line(DIM, &format!("in the background: {about}"))],
        TaskChange::Ended => {
            let (style, how) = match task.status {
                TaskStatus::Completed => (GOOD, "done"),
                TaskStatus::Failed => (BAD, "failed"),
                _ => (WARN, "stopped"),
            };
            let summary = task.summary.as_deref().filter(|summary| !summary.is_empty());
            let summary = summary.map(|summary| format!(": {summary}")).unwrap_or_default();
            vec![line(style, &format!("in the background, {how}: {about}{summary}"))]
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests;
