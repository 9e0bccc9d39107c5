//! What was chosen in a session that is taken up again.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use oarlock_agent::stream::PermissionMode;
use serde::Deserialize;

/// How much of the end of a transcript is looked at.
const TAIL: u64 = 256 << 10;

/// A record, as far as it tells the mode.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(rename = "type")]
    kind: String,
    permission_mode: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
}

/// The mode of the last prompt in a transcript. One in which nothing is asked is not taken up: whoever wants that says so
/// again.
pub(crate) fn mode(transcript: &Path) -> Option<PermissionMode> {
    let mut file = File::open(transcript).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    // The first line may be cut off; it is no JSON then.
    let last = tail.rsplit(|byte| *byte == b'\n').find_map(mode_of)?;
    (last != PermissionMode::BypassPermissions).then_some(last)
}

fn mode_of(line: &[u8]) -> Option<PermissionMode> {
    let record: Record = serde_json::from_slice(line).ok()?;
    let mode = record.permission_mode.filter(|_| record.kind == "user" && !record.is_sidechain)?;
    Some(PermissionMode::from(mode.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_prompt_tells_the_mode_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        let mode_in = |lines: &[&str]| {
            std::fs::write(&path, lines.join("\n")).unwrap();
            mode(&path)
        };
        let user = |mode: &str| format!(r#"{{"type":"user","permissionMode":"{mode}","message":{{}}}}"#);
        assert_eq!(mode(&path), None, "there is no file");
        assert_eq!(mode_in(&[r#"{"type":"mode","mode":"normal"}"#]), None);
        assert_eq!(mode_in(&[&user("plan"), &user("acceptEdits"), ""]), Some(PermissionMode::AcceptEdits));
        // What a tool gave back must not choose a mode, nor must a subagent.
        let result =
            r#"{"type":"user","toolUseResult":{"type":"user","permissionMode":"bypassPermissions"}}"#;
        let subagent = r#"{"type":"user","isSidechain":true,"permissionMode":"bypassPermissions"}"#;
        let half = r#"{"type":"user","permissionMode":"bypassPerm"#;
        assert_eq!(mode_in(&[&user("plan"), result, subagent, half]), Some(PermissionMode::Plan));
        assert_eq!(mode_in(&[&user("plan"), &user("bypassPermissions")]), None, "nobody has said so here");
        let long = format!(r#"{{"type":"assistant","x":"{}"}}"#, "x".repeat(TAIL as usize));
        assert_eq!(mode_in(&[&user("plan"), &long]), None, "too far away");
    }
}
