//! Listing and finding sessions.

use std::fs;
use std::time::{Duration, SystemTime};

use oarlock_agent::Error;
use oarlock_agent::history::{Filter, Library, Summary};
use serde_json::{Value, json};

use crate::desk::{Desk, assistant, id, lines, user, with};

fn list(desk: &Desk) -> Vec<Summary> {
    desk.library.list(&Filter::project(desk.cwd())).unwrap().collect()
}

fn only(desk: &Desk) -> Summary {
    let mut all = list(desk);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn set_age(path: &std::path::Path, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn a_session_tells_what_the_cli_wrote_down() {
    let desk = Desk::new();
    let path = desk.write(
        1,
        &[
            json!({ "type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-15T01:03:38.000Z", "content": "hi" }),
            user("the first\nprompt", None),
            assistant("yes", Some("the first\nprompt")),
            with(user("later", Some("yes")), json!({ "gitBranch": "feature" })),
            json!({ "type": "last-prompt", "lastPrompt": "later", "leafUuid": "later" }),
        ],
    );
    let summary = only(&desk);
    assert_eq!(summary.id, id(1));
    assert_eq!(summary.title, "later");
    assert_eq!(summary.first_prompt.as_deref(), Some("the first prompt"));
    assert_eq!(summary.last_prompt.as_deref(), Some("later"));
    assert_eq!(summary.custom_title, None);
    assert_eq!(summary.git_branch.as_deref(), Some("feature"));
    assert_eq!(summary.cwd.as_deref(), Some("/work"));
    assert_eq!(summary.size, path.metadata().unwrap().len());
    assert_eq!(summary.messages, None, "nobody asked");
    assert_eq!(summary.path, path);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["created"], "2026-11-15T01:03:38.000Z");
}

#[test]
fn the_best_title_wins() {
    let title = |records: &[Value]| {
        let desk = Desk::new();
        let mut all = vec![user("prompt", None)];
        all.extend_from_slice(records);
        desk.write(1, &all);
        only(&desk).title
    };
    let custom = |title: &str| json!({ "type": "custom-title", "customTitle": title });
    let ai = json!({ "type": "ai-title", "aiTitle": "model's" });
    let last = json!({ "type": "last-prompt", "lastPrompt": "last" });
    let old = json!({ "type": "summary", "summary": "old", "leafUuid": "x" });
    assert_eq!(title(&[]), "prompt");
    assert_eq!(title(std::slice::from_ref(&old)), "old");
    assert_eq!(title(&[last.clone(), old.clone()]), "last");
    assert_eq!(title(&[ai.clone(), last.clone(), old]), "model's");
    assert_eq!(title(&[custom("a"), custom("b"), ai, last]), "b");
    // Only records give titles, not what a tool was given or has found.
    let found = with(assistant("x", Some("prompt")), json!({ "toolUseResult": { "customTitle": "no" } }));
    assert_eq!(title(&[found]), "prompt");
}

#[test]
fn a_tag_can_be_taken_away() {
    let desk = Desk::new();
    let tag = |tag: &str| json!({ "type": "tag", "tag": tag });
    desk.write(1, &[user("a", None), tag("x"), tag("y")]);
    desk.write(2, &[user("b", None), tag("x"), tag("")]);
    let tags: Vec<_> = list(&desk).into_iter().map(|one| (one.title, one.tag)).collect();
    assert!(tags.contains(&("a".into(), Some("y".into()))) && tags.contains(&("b".into(), None)), "{tags:?}");
    let tagged = desk.library.list(&Filter::project(desk.cwd()).tag("y")).unwrap();
    assert_eq!(tagged.map(|one| one.title).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_nobody_said_is_no_first_prompt() {
    let desk = Desk::new();
    let meta = with(user("meta", None), json!({ "isMeta": true }));
    let summary = with(user("summary", None), json!({ "isCompactSummary": true }));
    desk.write(
        1,
        &[
            meta,
            summary,
            user("<local-command-stdout>out</local-command-stdout>", None),
            user("[Request interrupted by user]", None),
            user("<ide_selection>x</ide_selection>", None),
            user("<command-name>/init</command-name>", None),
            crate::desk::result("r", "p", "t", "a result"),
            user("at last", None),
        ],
    );
    assert_eq!(only(&desk).first_prompt.as_deref(), Some("at last"));
    desk.write(1, &[user("<command-name>/init</command-name>", None)]);
    assert_eq!(only(&desk).first_prompt.as_deref(), Some("/init"), "a command is better than nothing");
    desk.write(1, &[user(&"é".repeat(300), None)]);
    assert_eq!(only(&desk).first_prompt, Some(format!("{}…", "é".repeat(200))));
}

#[test]
fn what_is_no_conversation_is_not_listed() {
    let desk = Desk::new();
    let folder = desk.folder(&desk.cwd());
    desk.write(1, &[with(user("subagent's", None), json!({ "isSidechain": true }))]);
    desk.write(2, &[json!({ "type": "mode", "mode": "normal" })]);
    desk.write_text(3, "");
    desk.write_text(4, "no JSON at all\n");
    desk.write_text(5, "{\"type\":\"user\",\"uuid\":\"cut");
    fs::write(folder.join("notes.jsonl"), lines(&[user("no session's name", None)])).unwrap();
    fs::create_dir(folder.join(format!("{}.jsonl", id(6)))).unwrap();
    assert_eq!(list(&desk).len(), 0);
    assert_eq!(Library::at(desk.at("nowhere")).list(&Filter::default()).unwrap().count(), 0);
}

#[test]
fn a_prompt_longer_than_what_is_read_is_shown_by_its_beginning() {
    let desk = Desk::new();
    let prompt = format!("please read \"this\"\\ {}", "long text \u{1f600} ".repeat(40_000));
    // The order of the fields is the CLI's.
    let line = format!(
        r#"{{"parentUuid":null,"type":"user","message":{{"role":"user","content":{}}},"uuid":"u"}}"#,
        json!(prompt)
    );
    desk.write_text(1, &format!("{line}\n"));
    let shown = only(&desk).first_prompt.unwrap();
    assert!(
        shown.starts_with("please read \"this\"\\ long text \u{1f600} long") && shown.ends_with('…'),
        "{shown}"
    );
    assert!(shown.chars().count() <= 201);
}

#[test]
fn the_end_of_a_large_file_is_read_too() {
    let desk = Desk::new();
    let filler = user(&"x".repeat(1000), Some("first"));
    let mut records =
        vec![user("first", None), json!({ "type": "custom-title", "customTitle": "at the start" })];
    records.extend(std::iter::repeat_n(filler, 300));
    desk.write(1, &records);
    assert_eq!(only(&desk).title, "at the start");
    records.push(json!({ "type": "custom-title", "customTitle": "at the end" }));
    desk.write(1, &records);
    assert_eq!(only(&desk).title, "at the end");
    assert_eq!(only(&desk).first_prompt.as_deref(), Some("first"));
}

#[test]
fn the_last_written_comes_first_and_messages_are_counted_when_asked() {
    let desk = Desk::new();
    for (number, age) in [(1, 30), (2, 10), (3, 20)] {
        let path = desk.write(number, &[user("a", None), assistant("b", Some("a"))]);
        set_age(&path, age);
    }
    let ids: Vec<_> = list(&desk).into_iter().map(|one| one.id).collect();
    assert_eq!(ids, [id(2), id(3), id(1)]);
    assert_eq!(desk.library.latest(&desk.cwd()).unwrap().unwrap().id, id(2));
    let counted = desk.library.list(&Filter::project(desk.cwd()).count(true)).unwrap().next().unwrap();
    assert_eq!(counted.messages, Some(2));
}

#[test]
fn projects_are_apart_and_a_session_in_two_folders_is_one() {
    let desk = Desk::new();
    let other = desk.at("other");
    fs::create_dir(&other).unwrap();
    desk.write(1, &[user("here", None)]);
    let twin = desk.folder(&other).join(format!("{}.jsonl", id(1)));
    fs::write(&twin, lines(&[user("there", None)])).unwrap();
    set_age(&twin, 60);
    fs::write(desk.folder(&other).join(format!("{}.jsonl", id(2))), lines(&[user("two", None)])).unwrap();
    assert_eq!(only(&desk).title, "here");
    let mut all: Vec<_> = desk.library.list(&Filter::default()).unwrap().map(|one| one.title).collect();
    all.sort();
    assert_eq!(all, ["here", "two"]);
    assert!(desk.library.exists(&id(1), &desk.cwd()) && !desk.library.exists(&id(2), &desk.cwd()));
    assert!(desk.library.open(&id(2), None).is_ok(), "in any project");
}

#[test]
fn sessions_are_found_by_id_beginning_and_title() {
    let desk = Desk::new();
    desk.write(0xabc, &[user("a", None), json!({ "type": "custom-title", "customTitle": "My Title" })]);
    let path = desk.folder(&desk.cwd()).join("12345678-0000-4000-8000-000000000001.jsonl");
    fs::write(path, lines(&[user("b", None)])).unwrap();
    let find = |name: &str| desk.library.resolve(name, Some(&desk.cwd())).map(|found| found.id().to_owned());
    assert_eq!(find(&id(0xabc)).unwrap(), id(0xabc));
    assert_eq!(find("12345678").unwrap(), "12345678-0000-4000-8000-000000000001");
    assert_eq!(find("1234").unwrap(), "12345678-0000-4000-8000-000000000001");
    assert_eq!(find(" my title ").unwrap(), id(0xabc));
    assert!(matches!(find("123"), Err(Error::NoSession { .. })), "too short to be meant");
    assert!(matches!(find("b"), Err(Error::NoSession { .. })), "a prompt is no title");
    desk.write(0xabd, &[user("c", None), json!({ "type": "custom-title", "customTitle": "my title" })]);
    let Err(Error::SeveralSessions { ids, .. }) = find("My Title") else { panic!("two") };
    assert_eq!(ids.len(), 2);
    assert!(matches!(find("00000000-0000"), Err(Error::SeveralSessions { .. })));
}

#[test]
fn an_id_is_no_path() {
    let desk = Desk::new();
    desk.write(1, &[user("a", None)]);
    fs::write(desk.library.projects_dir().join("secret.jsonl"), "{}").unwrap();
    for id in [
        "../secret",
        "..",
        "",
        "a/b",
        "00000000-0000-4000-8000-00000000000g",
        "{00000000-0000-4000-8000-000000000001}",
    ] {
        assert!(matches!(desk.library.find(id, None), Err(Error::NoSessionId { .. })), "{id}");
        assert!(!desk.library.exists(id, &desk.cwd()));
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_projects_directory_are_not_followed() {
    use std::os::unix::fs::symlink;

    let desk = Desk::new();
    let folder = desk.folder(&desk.cwd());
    let outside = desk.at("outside");
    fs::create_dir(&outside).unwrap();
    let stolen = outside.join(format!("{}.jsonl", id(1)));
    fs::write(&stolen, lines(&[user("outside", None)])).unwrap();
    symlink(&stolen, folder.join(format!("{}.jsonl", id(1)))).unwrap();
    symlink(&outside, desk.library.projects_dir().join("-linked")).unwrap();
    assert_eq!(desk.library.list(&Filter::default()).unwrap().count(), 0);
    assert!(desk.library.find(&id(1), None).unwrap().is_none());
    // One that stays inside is fine: people share sessions between work trees in that way.
    desk.write(2, &[user("inside", None)]);
    let shared = desk.library.projects_dir().join("-shared");
    fs::create_dir(&shared).unwrap();
    symlink(folder.join(format!("{}.jsonl", id(2))), shared.join(format!("{}.jsonl", id(2)))).unwrap();
    assert_eq!(desk.library.list(&Filter::default()).unwrap().count(), 1);
}

#[test]
fn half_a_surrogate_and_broken_bytes_do_no_harm() {
    let desk = Desk::new();
    let mut text =
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"half \ud83d"}}"#
            .as_bytes()
            .to_vec();
    text.extend(b"\n{\"type\":\"user\",\"uuid\":\"b\",\"parentUuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"bad \xff\"}}\n");
    let path = desk.write_text(1, "");
    fs::write(path, text).unwrap();
    assert_eq!(only(&desk).first_prompt.as_deref(), Some("half \u{fffd}"));
    assert_eq!(desk.texts(1), ["half \u{fffd}", "bad \u{fffd}"]);
}

#[test]
fn the_rest_of_a_list_begins_after_the_one_that_is_named() {
    let desk = Desk::new();
    for (number, age) in [(1, 30), (2, 20), (3, 20), (4, 10)] {
        let path = desk.write(number, &[user("prompt", None)]);
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
    }
    let all = list(&desk);
    assert_eq!(all.iter().map(|session| session.id.clone()).collect::<Vec<_>>(), [4, 2, 3, 1].map(id));
    for (at, session) in all.iter().enumerate() {
        let filter = Filter::project(desk.cwd()).after(session.modified, &session.id);
        let rest: Vec<_> = desk.library.list(&filter).unwrap().map(|session| session.id).collect();
        let expected: Vec<_> = all[at + 1..].iter().map(|session| session.id.clone()).collect();
        assert_eq!(rest, expected);
    }
}
