//! Tool calls and their results, in a few lines.

use oarlock_agent::reduce::view::{self, ToolKind};
use oarlock_agent::reduce::{ToolCall, ToolResult};
use oarlock_agent::stream::{AgentOutput, ContentBlock, ToolInput, ToolOutput};

use super::in_style;
use crate::output::{BAD, DIM, STRONG, fitting, visible};
use crate::review;

/// A result of more lines is cut in the middle.
const LINES: usize = 8;
/// A longer line is cut.
const COLUMNS: usize = 200;
/// A longer diff is cut.
const DIFF_LINES: usize = 60;

/// Calls that are shown in another way: as a question, a list, an answer.
pub(super) fn is_hidden(tool: &str) -> bool {
    matches!(
        tool,
        "TodoWrite"
            | "TaskCreate"
            | "TaskUpdate"
            | "TaskList"
            | "TaskGet"
            | "AskUserQuestion"
            | "ExitPlanMode"
            | "EnterPlanMode"
            | "StructuredOutput"
            | "ToolSearch"
    )
}

pub(super) fn changes_files(tool: &str) -> bool {
    view::kind(tool) == ToolKind::Edit
}

/// What a call does, in a line.
pub(super) fn title(call: &ToolCall, cwd: Option<&str>) -> String {
    let (title, about) = (plain_title(call, cwd), about(call));
    format!("{STRONG}● {title}{STRONG:#}{}", in_style(DIM, &about))
}

/// The same without styles.
pub(super) fn plain_title(call: &ToolCall, cwd: Option<&str>) -> String {
    let title = visible(&view::title(call, cwd));
    let title = if matches!(call.typed_input(), ToolInput::Bash(_)) { format!("$ {title}") } else { title };
    fitting(&title, COLUMNS)
}

/// What the model says about a command.
fn about(call: &ToolCall) -> String {
    match call.typed_input() {
        ToolInput::Bash(input) => {
            input.description.map(|about| format!("  {}", visible(&about))).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// What came of a call, in lines.
pub(super) fn result(call: &ToolCall, result: &ToolResult, is_full: bool) -> impl Iterator<Item = String> {
    let lines = if result.is_error() {
        let text = view::output_text(call, result);
        excerpt(if text.is_empty() { "failed" } else { &text }, is_full)
            .map(|line| in_style(BAD, &line))
            .collect()
    } else {
        good(call, result, is_full)
    };
    lines.into_iter().enumerate().map(|(index, line)| {
        let mark = if index == 0 { "  └ " } else { "    " };
        format!("{DIM}{mark}{DIM:#}{line}")
    })
}

/// Was a call stopped by the person? What the CLI says of it is for the model.
pub(super) fn was_stopped(result: &ToolResult) -> bool {
    result.is_error() && result.text().starts_with("The user doesn't want to proceed with this tool use")
}

/// Does a call go on in the background? What the CLI says of it is for the model.
pub(super) fn is_in_background(call: &ToolCall, result: &ToolResult) -> bool {
    match result.typed_output(&call.name) {
        Some(ToolOutput::Bash(output)) => output.background_task_id.is_some(),
        Some(ToolOutput::Agent(output)) => matches!(output, AgentOutput::AsyncLaunched(_)),
        _ => false,
    }
}

/// What a result says to people. A subagent's report comes to the model in a frame of instructions.
fn text_of(call: &ToolCall, result: &ToolResult) -> String {
    let Some(ToolOutput::Agent(AgentOutput::Completed(report))) = result.typed_output(&call.name) else {
        return view::output_text(call, result);
    };
    let texts = report.content.iter().filter_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn good(call: &ToolCall, result: &ToolResult, is_full: bool) -> Vec<String> {
    let changes = view::applied(call, result);
    if !changes.is_empty() {
        let max = if is_full { usize::MAX } else { DIFF_LINES };
        let diff = changes.iter().map(|change| {
            let old = change.old_text.as_deref().unwrap_or_default().as_bytes();
            let first = change.line.and_then(|line| usize::try_from(line).ok()).unwrap_or(1);
            review::render_from(first, old, &change.new_text, max, "")
        });
        return diff.collect::<String>().lines().map(str::to_owned).collect();
    }
    let text = text_of(call, result);
    let lines = text.lines().count();
    match view::kind(&call.name) {
        // Everybody can look into the file.
        ToolKind::Read if !is_full => vec![in_style(DIM, &number(lines, "line"))],
        ToolKind::Search if !is_full && lines > LINES => vec![in_style(DIM, &number(lines, "line"))],
        _ if text.trim().is_empty() => vec![in_style(DIM, "done")],
        _ => excerpt(&text, is_full).map(|line| in_style(DIM, &line)).collect(),
    }
}

fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The beginning and the end of a long text.
fn excerpt(text: &str, is_full: bool) -> impl Iterator<Item = String> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let cut = |line: &str| visible(&fitting(line, COLUMNS));
    let mut shown: Vec<String> = Vec::new();
    if is_full || lines.len() <= LINES {
        shown.extend(lines.iter().map(|line| if is_full { visible(line) } else { cut(line) }));
    } else {
        let (head, tail) = (LINES / 2, LINES - LINES / 2 - 1);
        shown.extend(lines[..head].iter().map(|line| cut(line)));
        shown.push(format!("… {}", number(lines.len() - head - tail, "line")));
        shown.extend(lines[lines.len() - tail..].iter().map(|line| cut(line)));
    }
    shown.into_iter()
}
