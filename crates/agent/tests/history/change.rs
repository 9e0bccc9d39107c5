//! Renaming, tagging, forking and deleting.

use std::collections::HashSet;
use std::fs;

use oarlock_agent::Error;
use oarlock_agent::history::{Filter, Fork, Reading};
use serde_json::{Value, json};

use crate::desk::{Desk, assistant, call, id, lines, record, result, texts, user, with};

fn records(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_name_given_last_is_the_title() {
    let desk = Desk::new();
    let path = desk.write(1, &[user("a", None)]);
    desk.library.rename(&desk.open(1), "  First  ").unwrap();
    desk.library.rename(&desk.open(1), "Zwölf \"Boxkämpfer\"").unwrap();
    assert_eq!(desk.open(1).summary().unwrap().title, "Zwölf \"Boxkämpfer\"");
    let last = records(&path).pop().unwrap();
    assert_eq!(
        last,
        json!({ "type": "custom-title", "customTitle": "Zwölf \"Boxkämpfer\"", "sessionId": id(1) })
    );
    assert!(matches!(desk.library.rename(&desk.open(1), " \u{200b}\n"), Err(Error::Blank { what: "title" })));
    assert_eq!(desk.texts(1), ["a"], "the conversation is what it was");
}

#[test]
fn a_tag_begins_its_line_as_readers_expect() {
    let desk = Desk::new();
    let path = desk.write(1, &[user("a", None)]);
    desk.library.tag(&desk.open(1), Some("release")).unwrap();
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .lines()
            .last()
            .unwrap()
            .starts_with(r#"{"type":"tag","tag":"release""#)
    );
    assert_eq!(desk.open(1).summary().unwrap().tag.as_deref(), Some("release"));
    desk.library.tag(&desk.open(1), None).unwrap();
    assert_eq!(desk.open(1).summary().unwrap().tag, None);
    assert!(matches!(desk.library.tag(&desk.open(1), Some("")), Err(Error::Blank { what: "tag" })));
}

/// A conversation with all that a fork must take care of.
fn rich() -> Vec<Value> {
    let uuid = |number: u64| id(0x1000 + number);
    let uuids: Vec<String> = (0..12).map(uuid).collect();
    let named = |mut record: Value, at: usize| {
        record["uuid"] = json!(uuids[at]);
        record
    };
    let source = json!({ "sourceToolAssistantUUID": uuids[2], "slug": "s", "teamName": null });
    vec![
        json!({ "type": "queue-operation", "operation": "enqueue", "content": "a" }),
        named(user("a", None), 0),
        named(record("progress", "p", Some(&uuids[0]), json!(null)), 1),
        json!({ "type": "api-request-blob", "hash": "h", "message": { "content": "the system prompt" } }),
        named(call("c", &uuids[1], "m", "Bash", "t", json!({ "command": "x", "n": 1.50 })), 2),
        named(with(result("r", &uuids[2], "t", "out"), source), 3),
        named(with(user("side", Some(&uuids[3])), json!({ "isSidechain": true })), 4),
        named(assistant("b", Some(&uuids[3])), 5),
        json!({ "type": "content-replacement", "sessionId": id(1), "replacements": [{ "kind": "tool", "id": "t" }] }),
        json!({ "type": "system", "subtype": "compact_boundary", "uuid": uuids[6], "parentUuid": null,
            "logicalParentUuid": uuids[5], "isSidechain": false, "timestamp": "2026-11-15T01:03:38.855Z",
            "compactMetadata": { "trigger": "auto", "preservedMessages": { "anchorUuid": uuids[7], "uuids": [uuids[5]] } } }),
        named(with(user("summary", Some(&uuids[6])), json!({ "isCompactSummary": true })), 7),
        named(user("c", Some(&uuids[7])), 8),
        named(assistant("d", Some(&uuids[8])), 9),
        json!({ "type": "custom-title", "customTitle": "Original" }),
        json!({ "type": "file-history-snapshot", "messageId": uuids[9], "snapshot": {} }),
    ]
}

#[test]
fn a_fork_says_the_same_under_other_names() {
    let desk = Desk::new();
    let path = desk.write_text(1, &lines(&rich()).replace(r#""n":1.5"#, r#""n":1.50"#));
    let before = fs::read(&path).unwrap();
    let fork = desk.library.fork(&desk.open(1), &Fork::new()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before, "the original is left alone");
    assert_eq!(fork.path().parent(), path.parent());
    let texts_of = |reading| (texts(desk.open(1).read(reading).unwrap()), texts(fork.read(reading).unwrap()));
    let (old, new) = texts_of(Reading::Whole);
    assert_eq!(old, new);
    assert_eq!(new, ["a", "", "", "b", "", "summary", "c", "d"]);
    let (old, new) = texts_of(Reading::SinceCompaction);
    assert_eq!(old, new);

    let text = fs::read_to_string(fork.path()).unwrap();
    let forked = records(fork.path());
    let names: HashSet<&str> = forked.iter().filter_map(|record| record["uuid"].as_str()).collect();
    for old in rich().iter().filter_map(|record| record["uuid"].as_str()) {
        assert!(!names.contains(old), "no name is kept");
    }
    for record in &forked {
        assert_eq!(record["sessionId"], fork.id(), "{record}");
        for field in ["parentUuid", "logicalParentUuid", "sourceToolAssistantUUID"] {
            assert!(record[field].as_str().is_none_or(|name| names.contains(name)), "{field} of {record}");
        }
        assert!(record.get("slug").is_none() && record["isSidechain"] != true);
    }
    let boundary = forked.iter().find(|record| record["type"] == "system").unwrap();
    let kept = boundary["compactMetadata"]["preservedMessages"]["uuids"][0].as_str().unwrap();
    assert!(names.contains(kept), "what the compaction kept is found in the fork");
    assert!(!text.contains("system prompt") && !text.contains("progress") && !text.contains("\"side\""));
    assert!(text.contains("\"n\":1.50"), "what is not changed keeps its text");
    let first = &forked[0];
    assert_eq!(first["forkedFrom"], json!({ "sessionId": id(1), "messageUuid": id(0x1000) }));
    let replaced = forked.iter().find(|record| record["type"] == "content-replacement").unwrap();
    assert_eq!(replaced["replacements"], json!([{ "kind": "tool", "id": "t" }]));
    assert_eq!(fork.summary().unwrap().title, "Original (fork)");
    let last = forked.iter().rfind(|record| record["type"] == "assistant").unwrap();
    assert!(
        last["timestamp"].as_str().unwrap() > "2026-11-15T01:03:38.855Z",
        "the CLI goes on at the newest"
    );
}

#[test]
fn a_fork_can_end_at_any_message() {
    let desk = Desk::new();
    desk.write(1, &rich());
    let at = |message: u64| Fork::new().at(id(0x1000 + message)).title("Short");
    let fork = desk.library.fork(&desk.open(1), &at(3)).unwrap();
    assert_eq!(texts(fork.messages().unwrap()), ["a", "", ""]);
    assert_eq!(fork.summary().unwrap().title, "Short");
    let fork = desk.library.fork(&desk.open(1), &at(8)).unwrap();
    assert_eq!(texts(fork.read(Reading::SinceCompaction).unwrap()), ["summary", "c"]);
    for none in [at(0x99), Fork::new().at("../x"), at(4)] {
        let error = desk.library.fork(&desk.open(1), &none).unwrap_err();
        assert!(matches!(error, Error::NoMessage { .. }), "{error}");
    }
    let names = fs::read_dir(desk.folder(&desk.cwd())).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 3, "a fork that failed leaves nothing behind");
}

#[test]
fn a_fork_can_be_given_an_id_that_is_free() {
    let desk = Desk::new();
    desk.write(1, &[user("a", None)]);
    let taken = desk.write(2, &[user("b", None)]);
    let fork = desk.library.fork(&desk.open(1), &Fork::new().id(id(3))).unwrap();
    assert_eq!((fork.id(), desk.texts(3)), (id(3).as_str(), vec!["a".to_owned()]));
    let before = fs::read(&taken).unwrap();
    assert!(matches!(desk.library.fork(&desk.open(1), &Fork::new().id(id(2))), Err(Error::Io { .. })));
    assert_eq!(fs::read(&taken).unwrap(), before, "a session that is there is left alone");
    let error = desk.library.fork(&desk.open(1), &Fork::new().id("../x")).unwrap_err();
    assert!(matches!(error, Error::NoSessionId { .. }), "{error}");
}

#[test]
fn a_session_without_messages_is_not_forked() {
    let desk = Desk::new();
    desk.write(1, &[json!({ "type": "custom-title", "customTitle": "Empty" })]);
    assert!(matches!(desk.library.fork(&desk.open(1), &Fork::new()), Err(Error::NoMessages { .. })));
}

#[test]
fn a_deleted_session_is_gone_with_all_of_it() {
    let desk = Desk::new();
    let path = desk.write(1, &[user("a", None)]);
    desk.write(2, &[user("b", None)]);
    let folder = path.with_extension("");
    fs::create_dir_all(folder.join("subagents")).unwrap();
    fs::create_dir_all(folder.join("tool-results")).unwrap();
    fs::write(folder.join("subagents/agent-1.jsonl"), lines(&[user("x", None)])).unwrap();
    let session = desk.open(1);
    desk.library.delete(&session, false).unwrap();
    assert!(!path.exists() && !folder.exists());
    assert!(desk.library.delete(&session, false).is_err(), "there is nothing left to delete");
    let left: Vec<_> = desk.library.list(&Filter::default()).unwrap().map(|one| one.title).collect();
    assert_eq!(left, ["b"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_is_open_is_deleted_only_by_force() {
    let desk = Desk::new();
    let path = desk.write(1, &[user("a", None)]);
    let notes = desk.library.config_dir().join("sessions");
    fs::create_dir_all(&notes).unwrap();
    let me = std::process::id();
    fs::write(notes.join(format!("{me}.json")), format!(r#"{{"pid":{me},"sessionId":"{}"}}"#, id(1)))
        .unwrap();
    let error = desk.library.delete(&desk.open(1), false).unwrap_err();
    assert!(matches!(error, Error::SessionOpen { pid, .. } if pid == me), "{error}");
    desk.library.rename(&desk.open(1), "still possible").unwrap();
    assert!(path.exists());
    desk.library.delete(&desk.open(1), true).unwrap();
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_that_leads_out() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let desk = Desk::new();
    let path = desk.write(1, &[user("a", None)]);
    let session = desk.open(1);
    let outside = desk.at("outside.jsonl");
    fs::write(&outside, lines(&[user("a", None)])).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&outside, &path).unwrap();
    assert!(matches!(desk.library.rename(&session, "x"), Err(Error::Outside { .. })));
    assert!(matches!(desk.library.tag(&session, None), Err(Error::Outside { .. })));
    assert!(matches!(desk.library.fork(&session, &Fork::new()), Err(Error::Outside { .. })));
    assert!(matches!(desk.library.delete(&session, true), Err(Error::Outside { .. })));
    assert_eq!(fs::read_to_string(&outside).unwrap(), lines(&[user("a", None)]));
    // A folder of the session's that is a link loses the link, not what it leads to.
    fs::remove_file(&path).unwrap();
    let path = desk.write(1, &[user("a", None)]);
    let elsewhere = desk.at("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("keep"), "").unwrap();
    symlink(&elsewhere, path.with_extension("")).unwrap();
    assert_eq!(session.subagents().unwrap(), []);
    let fork = desk.library.fork(&session, &Fork::new()).unwrap();
    assert_eq!(fork.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    desk.library.delete(&session, false).unwrap();
    assert!(elsewhere.join("keep").exists() && !path.with_extension("").is_symlink());
}
