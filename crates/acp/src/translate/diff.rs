//! What edits change, as a client shows it: whole files, old and new, or the changed part of files that are too large.
//!
//! Live, the file is on the disk when the call is made, so the change can be shown before it happens. Afterwards the result
//! tells what it was. A transcript has only that.

use std::fs::File;
use std::io::Read as _;

use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::{EditStep, NotebookEditInput, ToolInput, ToolOutput};
use oarlock_proto::acp::{Diff, ToolCallContent};
use serde_json::Value;

use super::Pass;
use super::face::absolute;

/// More than this, both texts together, is not shown whole.
const LIMIT: usize = 256 << 10;
/// Larger files are not looked at.
const MAX_FILE: u64 = 8 << 20;
/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 3;

/// A change as it is shown.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) content: Vec<ToolCallContent>,
    /// The first line that it is about, from 1, when the whole file is known.
    pub(super) line: Option<u64>,
}

impl Change {
    fn whole(diff: Diff) -> Self {
        let line = diff.old_text.as_ref().map(|old| {
            let same = old.lines().zip(diff.new_text.lines()).take_while(|(old, new)| old == new).count();
            same as u64 + 1
        });
        Self { content: vec![ToolCallContent::Diff(fit(diff))], line }
    }

    fn part(diff: Diff) -> Self {
        Self { content: vec![ToolCallContent::Diff(diff)], line: None }
    }
}

/// What a call will change. A replay waits for the result.
pub(super) fn proposed(call: &reduce::ToolCall, cwd: &str, pass: Pass) -> Change {
    if pass == Pass::Replay {
        return Change::default();
    }
    let steps = |path: &str, steps: &[EditStep]| {
        let path = absolute(path, cwd);
        let old = read(&path)?;
        let new = edited(&old.clone().unwrap_or_default(), steps)?;
        Some(Change::whole(Diff { path, old_text: old, new_text: new }))
    };
    let change = match call.typed_input() {
        ToolInput::Edit(input) => {
            let step = EditStep {
                old_string: input.old_string,
                new_string: input.new_string,
                replace_all: input.replace_all,
                ..EditStep::default()
            };
            steps(&input.file_path, &[step])
        }
        ToolInput::MultiEdit(input) => steps(&input.file_path, &input.edits),
        ToolInput::Write(input) => {
            let path = absolute(&input.file_path, cwd);
            read(&path).map(|old_text| Change::whole(Diff { path, old_text, new_text: input.content }))
        }
        ToolInput::NotebookEdit(input) => cell(&input, cwd).map(Change::part),
        _ => return Change::default(),
    };
    change.unwrap_or_else(|| Change { content: snippets(call, cwd), line: None })
}

/// What a call has changed; nothing when the result does not tell and the client was shown it before.
pub(super) fn applied(
    call: &reduce::ToolCall,
    result: &reduce::ToolResult,
    cwd: &str,
    pass: Pass,
) -> Option<Change> {
    let output = result.typed_output(&call.name);
    let is_told =
        matches!(output, Some(ToolOutput::Edit(_) | ToolOutput::Write(_) | ToolOutput::NotebookEdit(_)));
    let is_notebook = matches!(output, Some(ToolOutput::NotebookEdit(_)));
    let whole = view::applied_whole(call, result).filter(|_| !is_notebook);
    match whole {
        Some(whole) => {
            let path = absolute(&whole.path, cwd);
            Some(Change::whole(Diff { path, old_text: whole.old_text, new_text: whole.new_text }))
        }
        None if is_told => Some(Change { content: shown(view::applied(call, result), cwd), line: None }),
        None => (pass == Pass::Replay).then(|| Change { content: snippets(call, cwd), line: None }),
    }
}

/// What the input alone tells.
pub(super) fn snippets(call: &reduce::ToolCall, cwd: &str) -> Vec<ToolCallContent> {
    shown(view::proposed(call), cwd)
}

fn shown(parts: Vec<view::Diff>, cwd: &str) -> Vec<ToolCallContent> {
    let parts = parts.into_iter().map(|part| Diff {
        path: absolute(&part.path, cwd),
        old_text: part.old_text,
        new_text: part.new_text,
    });
    parts.map(ToolCallContent::Diff).collect()
}

/// What a file holds: `Some(None)` when there is no such file, `None` when it cannot be shown.
fn read(path: &str) -> Option<Option<String>> {
    // A pipe must not be opened: that could take forever.
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_FILE => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
        _ => return None,
    }
    let file = File::open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).ok()?;
    // The CLI edits lines without their carriage returns, and puts these back.
    Some(Some(if text.contains("\r\n") { text.replace("\r\n", "\n") } else { text }))
}

/// A text after edits; `None` when one of them does not fit.
fn edited(text: &str, steps: &[EditStep]) -> Option<String> {
    let mut text = text.to_owned();
    for step in steps {
        let EditStep { old_string: old, new_string: new, .. } = step;
        text = match (old.is_empty(), step.replace_all == Some(true)) {
            (true, _) if text.is_empty() => new.clone(),
            (true, _) => return None,
            _ if !text.contains(old.as_str()) => return None,
            (_, true) => text.replace(old.as_str(), new),
            (_, false) => text.replacen(old.as_str(), new, 1),
        };
    }
    Some(text)
}

/// The change of a notebook's cell.
fn cell(input: &NotebookEditInput, cwd: &str) -> Option<Diff> {
    let path = absolute(&input.notebook_path, cwd);
    if input.edit_mode.as_deref() == Some("insert") {
        return Some(Diff { path, old_text: None, new_text: input.new_source.clone() });
    }
    let book: Value = serde_json::from_str(&read(&path)??).ok()?;
    let cells = book["cells"].as_array()?;
    let id = input.cell_id.as_deref()?;
    let cell = cells.iter().find(|cell| cell["id"] == id).or_else(|| {
        let number: usize = id.strip_prefix("cell-")?.parse().ok()?;
        cells.get(number)
    })?;
    let source = match &cell["source"] {
        Value::String(source) => source.clone(),
        lines => lines.as_array()?.iter().filter_map(Value::as_str).collect(),
    };
    let deletes = input.edit_mode.as_deref() == Some("delete");
    let new_text = if deletes { String::new() } else { input.new_source.clone() };
    Some(Diff { path, old_text: Some(source), new_text })
}

/// The change whole, or without the unchanged lines far from it when that is too much.
fn fit(diff: Diff) -> Diff {
    let Some(old) = &diff.old_text else { return diff };
    if old.len() + diff.new_text.len() <= LIMIT {
        return diff;
    }
    let (old_lines, new_lines): (Vec<_>, Vec<_>) =
        (old.split_inclusive('\n').collect(), diff.new_text.split_inclusive('\n').collect());
    let begin = old_lines.iter().zip(&new_lines).take_while(|(old, new)| old == new).count();
    let most = old_lines.len().min(new_lines.len()) - begin;
    let pairs = old_lines.iter().rev().zip(new_lines.iter().rev());
    let end = pairs.take(most).take_while(|(old, new)| old == new).count();
    let (from, keep) = (begin.saturating_sub(CONTEXT), end.saturating_sub(CONTEXT));
    let old_text = old_lines[from..old_lines.len() - keep].concat();
    let new_text = new_lines[from..new_lines.len() - keep].concat();
    Diff { path: diff.path, old_text: Some(old_text), new_text }
}
