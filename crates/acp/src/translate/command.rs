//! Commands: terminals for clients that show them, text for those that do not, and output while it comes.
//!
//! A client with `_meta.terminal_output` shows a terminal that the agent writes to: `terminal_info` with the call,
//! `terminal_output` with updates, `terminal_exit` with the last one.

use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::ToolOutput;
use oarlock_proto::acp::{ClientCapabilities, Meta, Terminal, ToolCall, ToolCallContent};
use serde_json::json;

use super::Screen;
use super::call::{Call, End};
use super::result::{fenced, images, refusal, without_reminders};

/// What is kept of the output for clients without terminals: its end.
const KEPT: usize = 64 << 10;
/// The CLI's words for nothing.
const NOTHING: &str = "(Bash completed with no output)";

/// What a client has seen of a command's output.
#[derive(Debug)]
pub(super) struct Shown {
    /// How many bytes, and what tells them apart from others.
    length: usize,
    print: u64,
    /// For clients without terminals: the output so far, and how much of it was sent.
    text: String,
    sent: usize,
}

impl Default for Shown {
    fn default() -> Self {
        Self { length: 0, print: FNV, text: String::new(), sent: 0 }
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(print: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(print, |print, byte| (print ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Shown {
    fn add(&mut self, text: &str) {
        self.length += text.len();
        self.print = fnv(self.print, text.as_bytes());
    }

    /// What is left of the whole output. When it does not begin with what was shown (the CLI cuts long output), or was
    /// shown to its end, nothing is.
    fn rest<'a>(&self, whole: &'a str) -> &'a str {
        match whole.split_at_checked(self.length) {
            Some((begin, rest)) if fnv(FNV, begin.as_bytes()) == self.print => rest,
            _ => "",
        }
    }

    fn keep(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > KEPT {
            let cut = (self.text.len() - KEPT..).find(|at| self.text.is_char_boundary(*at));
            self.text.drain(..cut.unwrap_or_default());
        }
    }
}

pub(super) fn is_command(call: &reduce::ToolCall) -> bool {
    call.name == "Bash"
}

pub(super) fn has_terminals(client: &ClientCapabilities) -> bool {
    client.has_meta("terminal_output")
}

/// The terminal of a command, for clients that show them.
pub(super) fn terminal(client: &ClientCapabilities, call: &reduce::ToolCall) -> Option<ToolCallContent> {
    (is_command(call) && has_terminals(client))
        .then(|| ToolCallContent::Terminal(Terminal { terminal_id: call.id.clone() }))
}

/// What is read in a terminal, as text.
pub(super) fn console(text: &str) -> ToolCallContent {
    ToolCallContent::text(fenced("console", text))
}

impl Screen {
    /// A command has written something.
    pub(crate) fn output(&mut self, tool_use_id: &str, text: &str) {
        let is_heard = |call: &Call| is_command(&call.tool) && !text.is_empty();
        if !self.calls.get(tool_use_id).is_some_and(is_heard) {
            return;
        }
        self.allowed(tool_use_id);
        let Some(call) = self.calls.get_mut(tool_use_id) else { return };
        if has_terminals(&self.client) {
            call.shown.add(text);
            return self.write(tool_use_id, text);
        }
        call.shown.keep(text);
        // Content is replaced whole: it is sent when there is twice as much, so all of it together is not much more.
        let length = call.shown.text.len();
        if length >= 2 * call.shown.sent && length < KEPT {
            call.shown.sent = length;
            let content = Some(vec![console(&call.shown.text)]);
            let (meta, tool_call_id) = (call.meta(), tool_use_id.to_owned());
            self.queue.update(ToolCall { tool_call_id, content, meta, ..ToolCall::default() });
        }
    }

    /// Writes to the terminal of a call.
    fn write(&mut self, id: &str, data: &str) {
        let output = json!({ "terminal_id": id, "data": data });
        let meta = Some(Meta::from_iter([("terminal_output".to_owned(), output)]));
        self.queue.update(ToolCall { tool_call_id: id.into(), meta, ..ToolCall::default() });
    }

    /// A command goes on in the background, after it has written this.
    pub(super) fn went_on(&mut self, result: &reduce::ToolResult) {
        let Some(call) = self.calls.get(&result.id).filter(|call| is_command(&call.tool)) else { return };
        if let Some(ToolOutput::Bash(_)) = result.typed_output(&call.tool.name) {
            let whole = view::output_text(&call.tool, result);
            let rest = call.shown.rest(&whole).to_owned();
            self.output(&result.id, &rest);
        }
    }

    /// A command has its result.
    pub(super) fn command_ended(&mut self, call: Call, result: &reduce::ToolResult) {
        let Outcome { output, code, note } = outcome(&call.tool, result);
        let failed = result.is_error();
        let pictures = images(result);
        let content = Some(pictures).filter(|pictures| !pictures.is_empty());
        if has_terminals(&self.client) {
            let rest = if content.is_none() { call.shown.rest(&output) } else { "" };
            if !rest.is_empty() {
                self.write(&call.tool.id, rest);
            }
            return self.exit(&call, failed, code, content);
        }
        let text = match code {
            Some(code) if failed => format!("Exit code {code}\n{output}"),
            _ => output,
        };
        let text = (!text.trim().is_empty()).then(|| console(&text));
        let note = note.map(ToolCallContent::text);
        let content = content.or_else(|| text.or(note).map(|content| vec![content]));
        self.end(&call, End { failed, content, ..End::default() });
    }

    /// A command is over without a result of its own: it was in the background, or it was cancelled.
    pub(super) fn command_over(&mut self, call: &Call, failed: bool, code: Option<i64>) {
        if has_terminals(&self.client) {
            return self.exit(call, failed, code, None);
        }
        let text = Some(&call.shown.text).filter(|text| text.len() > call.shown.sent || text.len() == KEPT);
        let content = text.map(|text| vec![console(text)]);
        self.end(call, End { failed, content, ..End::default() });
    }

    fn exit(&mut self, call: &Call, failed: bool, code: Option<i64>, content: Option<Vec<ToolCallContent>>) {
        let exit = json!({ "terminal_id": call.tool.id, "exit_code": code, "signal": null });
        let meta = Some(Meta::from_iter([("terminal_exit".to_owned(), exit)]));
        self.end(call, End { failed, content, meta, ..End::default() });
    }
}

/// What came of a command.
struct Outcome {
    output: String,
    code: Option<i64>,
    /// Why it did not run.
    note: Option<String>,
}

fn outcome(call: &reduce::ToolCall, result: &reduce::ToolResult) -> Outcome {
    if !result.is_error() {
        let text = view::output_text(call, result);
        let text = without_reminders(&text);
        let output = if text.trim() == NOTHING { String::new() } else { text.into_owned() };
        return Outcome { output, code: Some(0), note: None };
    }
    let text = result.text();
    if let Some(note) = refusal(&text) {
        return Outcome { output: String::new(), code: None, note: Some(note) };
    }
    let text = view::output_text(&reduce::ToolCall::default(), result);
    let text = without_reminders(&text);
    let coded = text.strip_prefix("Exit code ").map(|rest| rest.split_once('\n').unwrap_or((rest, "")));
    match coded.and_then(|(code, output)| Some((code.trim().parse().ok()?, output.to_owned()))) {
        Some((code, output)) => Outcome { output, code: Some(code), note: None },
        None => Outcome { output: text.into_owned(), code: None, note: None },
    }
}

/// The exit code that a task's summary names.
pub(super) fn exit_code(summary: Option<&str>) -> Option<i64> {
    let (_, rest) = summary?.rsplit_once("exit code ")?;
    let digits: String =
        rest.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '-').collect();
    digits.parse().ok()
}
