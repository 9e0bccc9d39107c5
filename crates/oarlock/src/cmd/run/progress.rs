//! The spinner's line: what is going on, for how long, and how many tokens it has taken.

use std::time::{Duration, Instant};

use oarlock_agent::reduce::{Compaction, Event, view};
use oarlock_agent::stream::Activity;

use crate::output::{fitting, visible};

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Roughly, to have a figure while a message is being written.
const CHARACTERS_A_TOKEN: usize = 4;

/// How the running turn stands.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Since when the turn runs.
    since: Option<Instant>,
    label: String,
    /// Tokens of finished messages.
    tokens: u64,
    /// Characters of the message that is being written.
    characters: usize,
    /// Tokens thought in it, as the CLI estimates.
    thought: u64,
    is_interrupted: bool,
    frame: usize,
}

impl Progress {
    /// A prompt is on its way.
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Self { since: Some(now), label: "starting".to_owned(), ..Self::default() };
    }

    /// The turn is over, but not what it has left behind.
    pub(super) fn wait(&mut self, now: Instant) {
        self.begin(now);
        self.say("waiting for what runs in the background");
    }

    /// The turn has been interrupted, and has not ended yet.
    pub(super) fn interrupt(&mut self, is_interrupted: bool) {
        self.is_interrupted = is_interrupted;
    }

    /// Nothing is going on any more.
    pub(super) fn end(&mut self) {
        self.since = None;
    }

    /// Is something going on?
    pub(super) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Follows the session.
    pub(super) fn follow(&mut self, event: &Event, cwd: Option<&str>, now: Instant) {
        if event.parent_tool_use_id().is_some() {
            return;
        }
        match event {
            Event::TurnStarted if self.since.is_none() => self.begin(now),
            Event::TurnEnded(_) => self.end(),
            Event::Activity(Some(Activity::Requesting)) => self.say("waiting for the model"),
            Event::Compaction(Compaction::Started) => self.say("summarising the conversation"),
            Event::Thinking { text, .. } => {
                self.characters += text.chars().count();
                self.say("thinking");
            }
            Event::ThinkingTokens(tokens) => {
                self.thought = *tokens;
                self.say("thinking");
            }
            Event::Text { text, .. } => {
                self.characters += text.chars().count();
                self.say("writing");
            }
            Event::ToolAnnounced(call) => self.say(&format!("preparing {}", call.name)),
            Event::ToolInput { json, .. } => self.characters += json.chars().count(),
            Event::ToolCall(call) => self.say(&view::title(call, cwd)),
            Event::ToolResult { .. } => self.say("working"),
            Event::MessageFinished(end) => {
                self.tokens += end.usage.output_tokens.unwrap_or_default();
                (self.characters, self.thought) = (0, 0);
            }
            Event::Retry(retry) => {
                self.say(&format!("waiting to try again ({} of {})", retry.attempt, retry.max_retries));
            }
            _ => {}
        }
    }

    fn say(&mut self, label: &str) {
        let line = label.lines().next().unwrap_or_default();
        if self.label != line {
            self.label = line.to_owned();
        }
    }

    /// The next line to draw, no wider than the terminal; none when nothing is going on.
    pub(super) fn line(&mut self, now: Instant, width: usize) -> Option<String> {
        let elapsed = now.saturating_duration_since(self.since?);
        self.frame = (self.frame + 1) % FRAMES.len();
        let estimate = self.thought.max((self.characters / CHARACTERS_A_TOKEN) as u64);
        let tokens = match (self.tokens + estimate, estimate) {
            (0, _) => String::new(),
            (tokens, 0) => format!(" · {} tokens", count(tokens)),
            (tokens, _) => format!(" · ~{} tokens", count(tokens)),
        };
        let hint =
            if self.is_interrupted { "interrupting; Ctrl-C again leaves" } else { "Ctrl-C interrupts" };
        let end = format!(" {}{tokens} · {hint}", seconds(elapsed));
        // One column stays free, so that no terminal wraps the line.
        let room = width.saturating_sub(end.chars().count() + 3);
        let label = fitting(&visible(&self.label), room);
        Some(fitting(&format!("{} {label}{end}", FRAMES[self.frame]), width.saturating_sub(1)))
    }
}

/// `1234` as `1.2k`.
pub(super) fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// `75 s` as `1 min 15 s`.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_how_long_and_how_much_and_fits() {
        let (mut progress, now) = (Progress::default(), Instant::now());
        assert_eq!(progress.line(now, 80), None);
        progress.begin(now);
        progress.say("running a very long command\nwith two lines \u{1b}[2J");
        progress.tokens = 1234;
        let later = now + Duration::from_secs(75);
        let line = progress.line(later, 100).unwrap();
        assert!(
            line.ends_with("running a very long command 1 min 15 s · 1.2k tokens · Ctrl-C interrupts"),
            "{line}"
        );
        progress.characters = 400;
        assert!(progress.line(later, 100).unwrap().contains("~1.3k tokens"));
        for width in 0..90 {
            assert!(
                progress.line(later, width).unwrap().chars().count() <= width.saturating_sub(1),
                "{width}"
            );
        }
        progress.end();
        assert_eq!(progress.line(later, 80), None);
    }
}
