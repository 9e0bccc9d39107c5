//! What edits change.

use super::super::{ToolCall, ToolResult};
use crate::stream::{EditOutput, Hunk, NotebookEditOutput, ToolInput, ToolOutput, WriteOutput};

/// A change to a file, or to a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The file.
    pub path: String,
    /// What was there; `None` when the file is new, or when that is not known.
    pub old_text: Option<String>,
    /// What takes its place.
    pub new_text: String,
    /// The line where the new text begins, from 1, when it is known.
    pub line: Option<u64>,
}

/// What a call wants to change, as far as its input tells. A file that is written may exist already.
#[must_use]
pub fn proposed(call: &ToolCall) -> Vec<Diff> {
    let part = |path: &String, old: String, new: String| Diff {
        path: path.clone(),
        // An empty text is replaced where there is no file yet.
        old_text: Some(old).filter(|old| !old.is_empty()),
        new_text: new,
        line: None,
    };
    match call.typed_input() {
        ToolInput::Edit(input) => vec![part(&input.file_path, input.old_string, input.new_string)],
        ToolInput::MultiEdit(input) => {
            let edits = input.edits.into_iter();
            edits.map(|edit| part(&input.file_path, edit.old_string, edit.new_string)).collect()
        }
        ToolInput::Write(input) => vec![part(&input.file_path, String::new(), input.content)],
        ToolInput::NotebookEdit(input) => vec![part(&input.notebook_path, String::new(), input.new_source)],
        _ => Vec::new(),
    }
}

/// What a call has changed, one part for each place, with the lines around it. Nothing when it failed.
#[must_use]
pub fn applied(call: &ToolCall, result: &ToolResult) -> Vec<Diff> {
    if result.is_error() {
        return Vec::new();
    }
    match result.typed_output(&call.name) {
        Some(ToolOutput::Edit(output)) => {
            let EditOutput { file_path, structured_patch, .. } = *output;
            from_hunks(&file_path, structured_patch).unwrap_or_else(|| proposed(call))
        }
        Some(ToolOutput::Write(output)) => {
            let WriteOutput { kind, file_path, content, structured_patch, .. } = *output;
            match from_hunks(&file_path, structured_patch) {
                Some(parts) => parts,
                // What was written is what was there.
                None if kind == "update" => Vec::new(),
                None => vec![Diff { path: file_path, old_text: None, new_text: content, line: Some(1) }],
            }
        }
        Some(ToolOutput::NotebookEdit(output)) => notebook(*output),
        _ => proposed(call),
    }
}

/// What a call has done to its file, both texts whole, when the result has the old one.
#[must_use]
pub fn applied_whole(call: &ToolCall, result: &ToolResult) -> Option<Diff> {
    if result.is_error() {
        return None;
    }
    let (path, old_text, new_text) = match result.typed_output(&call.name)? {
        ToolOutput::Edit(output) => {
            let old = output.original_file?;
            let new = patched(&old, output.structured_patch.as_deref().unwrap_or_default());
            (output.file_path, Some(old), new)
        }
        ToolOutput::Write(output) => (output.file_path, output.original_file, output.content),
        ToolOutput::NotebookEdit(output) => {
            (output.notebook_path, Some(output.original_file?), output.updated_file?)
        }
        _ => return None,
    };
    Some(Diff { path, old_text, new_text, line: Some(1) })
}

fn notebook(output: NotebookEditOutput) -> Vec<Diff> {
    if output.error.is_some_and(|error| !error.is_empty()) {
        return Vec::new();
    }
    let deletes = output.edit_mode.as_deref() == Some("delete");
    let new_text = output.new_source.filter(|_| !deletes).unwrap_or_default();
    vec![Diff { path: output.notebook_path, old_text: output.old_source, new_text, line: None }]
}

/// A part for each hunk; `None` when there is none.
fn from_hunks(path: &str, hunks: Option<Vec<Hunk>>) -> Option<Vec<Diff>> {
    let hunks = hunks.filter(|hunks| !hunks.is_empty())?;
    let parts = hunks.into_iter().map(|hunk| {
        let (mut old, mut new) = (String::new(), String::new());
        for line in &hunk.lines {
            match line.split_at_checked(1) {
                Some((" ", text)) => {
                    push_line(&mut old, text);
                    push_line(&mut new, text);
                }
                Some(("-", text)) => push_line(&mut old, text),
                Some(("+", text)) => push_line(&mut new, text),
                // "\ No newline at end of file" is about the line before, and no line itself.
                _ => {}
            }
        }
        Diff { path: path.into(), old_text: Some(old), new_text: new, line: Some(hunk.new_start.max(1)) }
    });
    Some(parts.collect())
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A file after its hunks.
fn patched(old: &str, hunks: &[Hunk]) -> String {
    let mut lines = old.split_inclusive('\n');
    let (mut new, mut at) = (String::with_capacity(old.len()), 1);
    for hunk in hunks {
        while at < hunk.old_start {
            let Some(line) = lines.next() else { break };
            new.push_str(line);
            at += 1;
        }
        let mut is_new = false;
        for line in &hunk.lines {
            match line.split_at_checked(1) {
                Some((" ", text)) => {
                    // The file's own line has the file's own line end.
                    match lines.next() {
                        Some(line) => new.push_str(line),
                        None => push_line(&mut new, text),
                    }
                    (at, is_new) = (at + 1, false);
                }
                Some(("-", _)) => {
                    lines.next();
                    (at, is_new) = (at + 1, false);
                }
                Some(("+", text)) => {
                    push_line(&mut new, text);
                    is_new = true;
                }
                Some(("\\", _)) if is_new => {
                    new.pop();
                }
                _ => {}
            }
        }
    }
    new.extend(lines);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::stream::{ContentBlock, Json, ToolResultBlock};

    fn call(name: &str, input: Value) -> ToolCall {
        ToolCall { name: name.into(), input: Json::from(input), ..ToolCall::default() }
    }

    fn result(output: Value, is_error: bool) -> ToolResult {
        let block = ToolResultBlock { is_error: Some(is_error), ..ToolResultBlock::default() };
        ToolResult {
            block: ContentBlock::ToolResult(block),
            output: Some(Json::from(output)),
            ..ToolResult::default()
        }
    }

    fn edit() -> (ToolCall, Value) {
        let call = call("Edit", json!({"file_path": "/w/a", "old_string": "two", "new_string": "TWO"}));
        let output = json!({
            "filePath": "/w/a", "oldString": "two", "newString": "TWO", "originalFile": "one\ntwo\nthree\n",
            "structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3,
                "lines": [" one", "-two", "+TWO", " three"]}]});
        (call, output)
    }

    #[test]
    fn an_edit_is_shown_by_its_input_and_then_by_its_hunks() {
        let (call, output) = edit();
        assert_eq!(proposed(&call)[0].old_text.as_deref(), Some("two"));
        let done = result(output, false);
        let [part] = &applied(&call, &done)[..] else { panic!("one hunk") };
        assert_eq!(part.old_text.as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!((part.new_text.as_str(), part.line), ("one\nTWO\nthree\n", Some(1)));
        assert_eq!(applied_whole(&call, &done).expect("whole").new_text, "one\nTWO\nthree\n");
    }

    #[test]
    fn an_edit_that_failed_has_changed_nothing() {
        let (call, output) = edit();
        assert_eq!(applied(&call, &result(output, true)), []);
        assert_eq!(applied_whole(&call, &result(json!("Error: no"), true)), None);
    }

    #[test]
    fn a_new_file_has_no_old_text_and_an_overwritten_one_has() {
        let write = call("Write", json!({"file_path": "/w/n", "content": "x\n"}));
        assert_eq!(proposed(&write)[0].old_text, None);
        let made = result(
            json!({"type": "create", "filePath": "/w/n", "content": "x\n", "structuredPatch": [], "originalFile": null}),
            false,
        );
        assert_eq!(applied(&write, &made)[0].old_text, None);
        assert_eq!(applied(&write, &made)[0].new_text, "x\n");
        let updated = result(
            json!({"type": "update", "filePath": "/w/n", "content": "x\n", "originalFile": "y\n",
                "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-y", "+x"]}]}),
            false,
        );
        assert_eq!(applied(&write, &updated)[0].old_text.as_deref(), Some("y\n"));
        assert_eq!(applied_whole(&write, &updated).expect("whole").old_text.as_deref(), Some("y\n"));
        let same = result(
            json!({"type": "update", "filePath": "/w/n", "content": "x\n", "originalFile": "x\n", "structuredPatch": []}),
            false,
        );
        assert_eq!(applied(&write, &same), []);
    }

    #[test]
    fn a_cell_is_shown_with_what_was_in_it() {
        let input = json!({"notebook_path": "/w/n.ipynb", "cell_id": "c", "new_source": "2"});
        let output = json!({"notebook_path": "/w/n.ipynb", "new_source": "2", "old_source": "1", "error": "",
            "edit_mode": "replace", "original_file": "A", "updated_file": "B"});
        let (call, done) = (call("NotebookEdit", input), result(output, false));
        assert_eq!(applied(&call, &done)[0].old_text.as_deref(), Some("1"));
        assert_eq!(applied_whole(&call, &done).expect("whole").new_text, "B");
    }

    #[test]
    fn hunks_make_the_new_file_from_the_old_one() {
        let hunk = |old_start, lines: &[&str]| Hunk {
            old_start,
            lines: lines.iter().map(|line| (*line).to_string()).collect(),
            ..Hunk::default()
        };
        let old = "a\r\nb\nc\nd\ne\nf";
        let hunks = [
            hunk(1, &[" a", "-b", "+B", "+BB"]),
            hunk(5, &[" e", "-f", "\\ No newline at end of file", "+F", "\\ No newline at end of file"]),
        ];
        assert_eq!(patched(old, &hunks), "a\r\nB\nBB\nc\nd\ne\nF");
        assert_eq!(patched("", &[hunk(0, &["+new"])]), "new\n");
        assert_eq!(patched("x\n", &[]), "x\n");
        assert_eq!(
            patched("x\n", &[hunk(99, &["-y", "+z"])]),
            "x\nz\n",
            "a hunk that does not fit does no harm"
        );
    }
}
