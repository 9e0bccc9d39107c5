//! What a call would change in a file, as the file is now.

use std::path::Path;

use oarlock_agent::stream::ToolInput;
use oarlock_ide::paths::read_regular;

use crate::review::{MAX_FILE, render};

/// One text for another.
struct Step<'a> {
    old: &'a str,
    new: &'a str,
    everywhere: bool,
}

/// The file, and a diff of what would become of it. None for a tool that changes no file.
pub(super) fn of(tool: &ToolInput) -> Option<(String, String)> {
    let (path, diff) = match tool {
        ToolInput::Write(input) => {
            let old = read_regular(Path::new(&input.file_path), MAX_FILE).unwrap_or_default();
            (&input.file_path, render(&old, &input.content))
        }
        ToolInput::Edit(input) => {
            let everywhere = input.replace_all == Some(true);
            let step = Step { old: &input.old_string, new: &input.new_string, everywhere };
            (&input.file_path, edited(&input.file_path, &[step]))
        }
        ToolInput::MultiEdit(input) => {
            let steps: Vec<Step<'_>> = input
                .edits
                .iter()
                .map(|edit| Step {
                    old: &edit.old_string,
                    new: &edit.new_string,
                    everywhere: edit.replace_all == Some(true),
                })
                .collect();
            (&input.file_path, edited(&input.file_path, &steps))
        }
        ToolInput::NotebookEdit(input) => (&input.notebook_path, render(b"", &input.new_source)),
        _ => return None,
    };
    Some((path.clone(), diff))
}

/// The change in its surroundings, or the bare texts when the file is not as the model thinks.
fn edited(path: &str, steps: &[Step<'_>]) -> String {
    let file = read_regular(Path::new(path), MAX_FILE).unwrap_or_default();
    let whole = String::from_utf8(file.clone()).ok().and_then(|text| {
        // The CLI works with `\n` whatever the file has.
        let start = text.replace("\r\n", "\n");
        steps.iter().try_fold(start, |text, step| match step.old {
            "" => text.is_empty().then(|| step.new.to_owned()),
            old if !text.contains(old) => None,
            old if step.everywhere => Some(text.replace(old, step.new)),
            old => Some(text.replacen(old, step.new, 1)),
        })
    });
    match whole {
        Some(new) => render(&file, &new),
        None => steps.iter().map(|step| render(step.old.as_bytes(), step.new)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use oarlock_agent::stream::Json;
    use serde_json::json;

    use super::*;

    fn shown(tool: &str, input: serde_json::Value) -> String {
        let (_, diff) = of(&ToolInput::of(tool, &Json::from(input))).unwrap();
        anstream::adapter::strip_str(&diff).to_string()
    }

    #[test]
    fn an_edit_is_shown_in_its_surroundings() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, "one\r\ntwo\r\nthree\r\ntwo\r\n").unwrap();
        let diff =
            shown("Edit", json!({"file_path": path, "old_string": "two\nthree", "new_string": "2\nthree"}));
        assert_eq!(diff, "@@ line 1 @@\n  one\n- two\n+ 2\n  three\n  two\n");
        let diff = shown(
            "Edit",
            json!({"file_path": path, "old_string": "two", "new_string": "2", "replace_all": true}),
        );
        assert_eq!(diff.matches("- two").count(), 2, "{diff}");
        let diff = shown("Edit", json!({"file_path": path, "old_string": "not there", "new_string": "x"}));
        assert!(diff.contains("- not there") && diff.contains("+ x"), "{diff}");
        let edits =
            json!([{"old_string": "one", "new_string": "1"}, {"old_string": "1\ntwo", "new_string": "12"}]);
        let diff = shown("MultiEdit", json!({"file_path": path, "edits": edits}));
        assert!(diff.contains("+ 12") && diff.contains("- one"), "{diff}");
    }

    #[test]
    fn a_file_that_is_written_is_compared_with_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        assert!(shown("Write", json!({"file_path": path, "content": "new\n"})).contains("+ new"));
        std::fs::write(&path, "old\n").unwrap();
        assert!(shown("Write", json!({"file_path": path, "content": "new\n"})).contains("- old"));
        assert!(of(&ToolInput::of("Bash", &Json::from(json!({"command": "ls"})))).is_none());
    }
}
