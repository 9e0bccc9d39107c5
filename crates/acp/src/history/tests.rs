use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use oarlock_agent::history::folder_name;
use oarlock_proto::acp::{ClientCapabilities, NOT_FOUND};
use oarlock_proto::jsonrpc::INVALID_PARAMS;
use serde_json::{Value, json};

use super::*;
use crate::translate::{Pass, Screen};

/// A configuration directory with transcripts to try things on.
struct Desk {
    dir: tempfile::TempDir,
    library: Library,
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// The name of a record.
fn uuid(name: &str) -> String {
    let mut hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(12);
    format!("00000000-0000-4000-9000-{hex:0>12}")
}

/// A record that hangs on another.
fn record(kind: &str, name: &str, parent: Option<&str>, message: Value) -> Value {
    json!({ "type": kind, "uuid": uuid(name), "parentUuid": parent.map(uuid), "isSidechain": false,
        "cwd": "/work", "timestamp": "2026-11-15T01:03:38.000Z", "sessionId": id(1), "message": message })
}

fn user(text: &str, parent: Option<&str>) -> Value {
    record("user", text, parent, json!({ "role": "user", "content": text }))
}

fn answer(name: &str, parent: &str, message_id: &str, block: Value) -> Value {
    let message = json!({ "id": message_id, "role": "assistant", "model": "m", "content": [block] });
    record("assistant", name, Some(parent), message)
}

fn says(name: &str, parent: &str) -> Value {
    answer(name, parent, &format!("msg_{name}"), json!({ "type": "text", "text": name }))
}

fn calls(name: &str, parent: &str, message_id: &str, tool: &str) -> Value {
    let block = json!({ "type": "tool_use", "id": name, "name": tool, "input": { "command": "ls" } });
    answer(name, parent, message_id, block)
}

fn result(name: &str, parent: &str, call: &str) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": call, "content": "done" });
    record("user", name, Some(parent), json!({ "role": "user", "content": [block] }))
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::at(dir.path());
        Self { dir, library }
    }

    fn write(&self, number: usize, cwd: &str, records: &[Value]) -> PathBuf {
        let folder = self.library.projects_dir().join(folder_name(cwd));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.jsonl", id(number)));
        fs::write(&path, lines(records)).unwrap();
        path
    }

    /// A fork of the first session: its id, which is the one that was asked for.
    fn fork(&self, at: Option<&str>) -> Result<String, ErrorObject> {
        let asked = uuid::Uuid::new_v4().to_string();
        let session = find(&self.library, &id(1), Some("/work")).unwrap();
        let copy = fork_of(&self.library, &session, at, &asked)?;
        assert_eq!(copy.id(), asked);
        Ok(asked)
    }

    fn write_many(&self, count: usize) {
        let begin = SystemTime::now() - Duration::from_secs(10_000);
        for number in 0..count {
            let path = self.write(number, "/work", &[user(&format!("prompt {number}"), None)]);
            // Some of them at the same time.
            let at = begin + Duration::from_secs(number as u64 / 3);
            fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
        }
    }

    fn list(&self, cwd: Option<&str>, cursor: Option<&str>) -> Result<ListSessionsResponse, ErrorObject> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        page::list(Some(&self.library), &ListSessionsRequest { cwd: owned(cwd), cursor: owned(cursor) })
    }

    fn replay(&self, number: usize) -> Replay {
        let client = Arc::new(ClientCapabilities::default());
        let transcript = self.library.open(&id(number), None).unwrap();
        Replay::new(&transcript, Screen::new(client, "/work".into(), Pass::Replay)).unwrap()
    }

    /// The order in which records are shown, and whose they are.
    fn order(&self, number: usize) -> Vec<(String, Option<String>)> {
        let mut replay = self.replay(number);
        std::iter::from_fn(|| replay.read()).map(|(record, call)| (record.uuid, call)).collect()
    }

    fn texts(&self, id: &str) -> Vec<String> {
        let messages = self.library.open(id, None).unwrap().messages().unwrap();
        messages.map(|record| record.unwrap()).map(|record| record.text()).collect()
    }
}

#[track_caller]
fn assert_code(error: &ErrorObject, code: i32) {
    assert_eq!(error.code, i64::from(code), "{error}");
}

#[test]
fn acp_load_03_a_list_is_paged_to_its_end_without_gaps_and_repeats() {
    let desk = Desk::new();
    desk.write_many(250);
    let (mut seen, mut cursor) = (Vec::new(), None);
    for size in [100, 100, 50] {
        let page = desk.list(Some("/work"), cursor.as_deref()).unwrap();
        assert_eq!(page.sessions.len(), size);
        seen.extend(page.sessions);
        cursor = page.next_cursor;
    }
    assert_eq!(cursor, None);
    let times: Vec<_> = seen.iter().map(|session| session.updated_at.clone().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "the newest first");
    let mut ids: Vec<_> = seen.iter().map(|session| session.session_id.clone()).collect();
    ids.sort();
    assert_eq!(ids, (0..250).map(id).collect::<Vec<_>>());
    assert_eq!(seen[0].title.as_deref(), Some("prompt 249"));
}

#[test]
fn acp_load_03_a_page_of_exactly_a_hundred_is_the_last() {
    let desk = Desk::new();
    desk.write_many(100);
    let page = desk.list(None, None).unwrap();
    assert_eq!((page.sessions.len(), page.next_cursor), (100, None));
}

#[test]
fn acp_load_03_what_is_new_since_the_first_page_is_not_on_the_second() {
    let desk = Desk::new();
    desk.write_many(150);
    let first = desk.list(None, None).unwrap();
    desk.write(999, "/work", &[user("new", None)]);
    let last = first.sessions.last().unwrap().session_id.clone();
    delete_in(&desk.library, &last).unwrap();
    let second = desk.list(None, first.next_cursor.as_deref()).unwrap();
    assert_eq!(second.sessions.len(), 50);
    assert!(second.sessions.iter().all(|session| session.session_id != id(999)));
}

#[test]
fn acp_load_03_an_empty_list_is_a_list() {
    let desk = Desk::new();
    assert_eq!(desk.list(None, None).unwrap().sessions, []);
    desk.write(1, "/work", &[user("x", None)]);
    desk.write(2, "/work", &[json!({ "type": "mode", "mode": "normal" })]);
    assert_eq!(desk.list(Some("/elsewhere"), None).unwrap().sessions, []);
    assert_eq!(desk.list(Some("/work"), None).unwrap().sessions.len(), 1, "one has nothing to tell");
    assert_eq!(page::list(None, &ListSessionsRequest::default()).unwrap().sessions, []);
}

#[test]
fn acp_load_03_a_bad_cursor_is_an_error() {
    let desk = Desk::new();
    desk.write_many(150);
    let good = desk.list(Some("/work"), None).unwrap().next_cursor.unwrap();
    assert!(desk.list(Some("/work"), Some(&good)).is_ok());
    for bad in [
        "".to_owned(),
        "offset:100".into(),
        good.clone() + ".1",
        good.replace('.', "!"),
        good.chars().rev().collect(),
        format!("-1.000000000.{}.all", id(1)),
        format!("1.99999999999.{}.all", id(1)),
        format!("{}.000000000.{}.all", u64::MAX, id(1)),
        "1.000000000.../../etc.all".into(),
    ] {
        assert_code(&desk.list(Some("/work"), Some(&bad)).unwrap_err(), INVALID_PARAMS);
        assert_code(&desk.list(None, Some(&bad)).unwrap_err(), INVALID_PARAMS);
    }
    assert_code(&desk.list(None, Some(&good)).unwrap_err(), INVALID_PARAMS);
    assert_code(&desk.list(Some("/other"), Some(&good)).unwrap_err(), INVALID_PARAMS);
    assert_code(&desk.list(Some("work"), None).unwrap_err(), INVALID_PARAMS);
}

#[test]
fn a_session_in_a_list_has_a_title_of_one_line_and_a_time() {
    let desk = Desk::new();
    let long = format!("a\n\n  title {}", "x".repeat(500));
    desk.write(1, "/work", &[user("p", None), json!({ "type": "last-prompt", "lastPrompt": long })]);
    let listed = desk.list(None, None).unwrap().sessions.remove(0);
    let title = listed.title.unwrap();
    assert!(title.starts_with("a title xxx") && title.ends_with('…'), "{title}");
    assert_eq!((title.chars().count(), listed.cwd.as_str()), (121, "/work"));
    let at = listed.updated_at.unwrap();
    assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
    let at: SystemTime = at.parse::<jiff::Timestamp>().unwrap().into();
    assert!(at.elapsed().unwrap() < Duration::from_secs(60));
}

#[test]
fn acp_prompt_04_an_id_that_is_no_session_is_not_found() {
    let desk = Desk::new();
    for id in [id(1).as_str(), "nonsense", "", "../../etc/passwd"] {
        let error = find(&desk.library, id, Some("/work")).map_err(|error| fault::cli(&error)).unwrap_err();
        assert_code(&error, NOT_FOUND);
        let request = SetTitleRequest { session_id: id.into(), title: "t".into() };
        assert_code(&rename_in(&desk.library, &request).unwrap_err(), NOT_FOUND);
    }
}

#[test]
fn zed_54411_a_session_of_another_directory_is_found_too() {
    let desk = Desk::new();
    desk.write(1, "/elsewhere", &[user("x", None)]);
    assert!(find(&desk.library, &id(1), Some("/work")).is_ok());
    let here = desk.write(1, "/work", &[user("y", None)]);
    assert_eq!(find(&desk.library, &id(1), Some("/work")).unwrap().path(), here);
}

#[test]
fn acp_load_03_deleting_what_is_not_there_succeeds() {
    let desk = Desk::new();
    for id in [id(1).as_str(), "nonsense", ""] {
        delete_in(&desk.library, id).unwrap();
    }
    desk.write(1, "/work", &[user("x", None)]);
    desk.write(1, "/copy", &[user("x", None)]);
    delete_in(&desk.library, &id(1)).unwrap();
    assert_eq!(desk.list(None, None).unwrap().sessions, [], "all copies are gone");
}

#[test]
fn a_session_that_somebody_has_open_is_not_deleted() {
    let desk = Desk::new();
    let path = desk.write(1, "/work", &[user("x", None)]);
    let notes = desk.dir.path().join("sessions");
    fs::create_dir(&notes).unwrap();
    let note = json!({ "pid": std::process::id(), "sessionId": id(1) });
    fs::write(notes.join("1.json"), note.to_string()).unwrap();
    let error = delete_in(&desk.library, &id(1)).unwrap_err();
    assert!(error.message.contains(&std::process::id().to_string()), "{error}");
    assert!(path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_of_our_own_process_that_is_just_going_is_deleted() {
    let desk = Desk::new();
    let path = desk.write(1, "/work", &[user("x", None)]);
    let notes = desk.dir.path().join("sessions");
    fs::create_dir(&notes).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let note = json!({ "pid": child.id(), "sessionId": id(1) });
    fs::write(notes.join("1.json"), note.to_string()).unwrap();
    let deleted = delete_in(&desk.library, &id(1));
    child.kill().unwrap();
    child.wait().unwrap();
    deleted.unwrap();
    assert!(!path.exists());
    assert!(!is_ours(1) && !is_ours(u32::MAX));
}

#[test]
fn a_title_is_the_one_that_the_cli_reads() {
    let desk = Desk::new();
    desk.write(1, "/work", &[user("x", None)]);
    let rename =
        |title: &str| rename_in(&desk.library, &SetTitleRequest { session_id: id(1), title: title.into() });
    assert_eq!(rename("  My title ").unwrap(), "My title");
    assert_eq!(desk.list(None, None).unwrap().sessions[0].title.as_deref(), Some("My title"));
    assert_code(&rename(" \n ").unwrap_err(), INVALID_PARAMS);
    assert_eq!(desk.list(None, None).unwrap().sessions[0].title.as_deref(), Some("My title"));
}

/// A prompt, an answer with two calls, their results, another answer, another prompt.
fn conversation() -> Vec<Value> {
    vec![
        user("p1", None),
        calls("t1", "p1", "msg_1", "Bash"),
        calls("t2", "t1", "msg_1", "Bash"),
        result("r1", "t1", "t1"),
        result("r2", "t2", "t2"),
        says("said", "r2"),
        user("p2", Some("said")),
        says("end", "p2"),
    ]
}

#[test]
fn caa_1048_a_fork_ends_at_the_message_that_is_named_in_either_way() {
    let desk = Desk::new();
    desk.write(1, "/work", &conversation());
    let whole = desk.fork(None).unwrap();
    assert_eq!(desk.texts(&whole), ["p1", "", "", "", "", "said", "p2", "end"]);
    for (at, count) in [
        (uuid("said"), 6),
        ("msg_said".into(), 6),
        (uuid("p2"), 7),
        // An answer with its calls and what they gave.
        ("msg_1".into(), 5),
        (uuid("p1"), 1),
    ] {
        let fork = desk.fork(Some(&at)).unwrap();
        assert_eq!(desk.texts(&fork).len(), count, "{at}");
        assert!(find(&desk.library, &fork, Some("/work")).is_ok());
    }
    for at in ["msg_none", "", &uuid("none")] {
        assert_code(&desk.fork(Some(at)).unwrap_err(), INVALID_PARAMS);
    }
}

#[test]
fn acp_load_02_what_a_subagent_did_comes_before_the_result_of_its_call() {
    let desk = Desk::new();
    let path = desk.write(
        1,
        "/work",
        &[user("p1", None), calls("a1", "p1", "msg_1", "Agent"), result("r1", "a1", "a1"), says("end", "r1")],
    );
    let folder = path.with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let write_agent = |name: &str, call: &str, records: &[Value]| {
        fs::write(folder.join(format!("agent-{name}.jsonl")), lines(records)).unwrap();
        let meta = json!({ "agentType": "general-purpose", "toolUseId": call });
        fs::write(folder.join(format!("agent-{name}.meta.json")), meta.to_string()).unwrap();
    };
    write_agent(
        "one",
        "a1",
        &[user("q", None), calls("a2", "q", "msg_2", "Agent"), result("r2", "a2", "a2"), says("q1", "r2")],
    );
    write_agent("two", "a2", &[user("deep", None), says("deeper", "deep")]);
    write_agent("lost", "a3", &[user("nobody", None)]);
    let order = desk.order(1);
    let named = |name: &str, call: Option<&str>| (uuid(name), call.map(str::to_owned));
    assert_eq!(
        order,
        [
            named("p1", None),
            named("a1", None),
            named("q", Some("a1")),
            named("a2", Some("a1")),
            named("deep", Some("a2")),
            named("deeper", Some("a2")),
            named("r2", Some("a1")),
            named("q1", Some("a1")),
            named("r1", None),
            named("end", None)
        ]
    );
}

/// What a screen is shown, as the names of the events.
fn events(desk: &Desk, number: usize) -> Vec<String> {
    let mut replay = desk.replay(number);
    let mut names = Vec::new();
    let mut take = |events: &mut dyn Iterator<Item = oarlock_agent::reduce::Event>| {
        names.extend(
            events.map(|event| format!("{event:?}").split(['(', ' ', '{']).next().unwrap().to_owned()),
        );
    };
    while let Some((record, call)) = replay.read() {
        take(&mut replay.events(record, call).into_iter());
    }
    take(&mut replay.reducer.close());
    names.retain(|name| name != "MessageFinished" && name != "SessionChanged" && name != "BlockFinished");
    names
}

#[test]
fn caa_415_a_call_without_a_result_does_not_stay_open() {
    let desk = Desk::new();
    desk.write(
        1,
        "/work",
        &[
            user("p1", None),
            calls("t1", "p1", "msg_1", "Bash"),
            user("p2", Some("t1")),
            calls("t2", "p2", "msg_2", "Bash"),
        ],
    );
    assert_eq!(
        events(&desk, 1),
        [
            "Prompt",
            "TurnStarted",
            "ToolCall",
            "ToolCancelled",
            "TurnEnded",
            "Prompt",
            "TurnStarted",
            "ToolCall",
            "ToolCancelled",
            "TurnEnded"
        ]
    );
    let mut replay = desk.replay(1);
    assert!(replay.by_ref().count() < 20);
    assert!(replay.next().is_none(), "the end is the end");
}

#[test]
fn acp_load_02_compactions_interruptions_and_errors_are_what_they_were_live() {
    let desk = Desk::new();
    let boundary = json!({ "type": "system", "subtype": "compact_boundary", "uuid": uuid("cut"), "parentUuid": null,
        "logicalParentUuid": uuid("said"), "compactMetadata": { "trigger": "manual", "preTokens": 7 } });
    let mut summary = user("This session is being continued", Some("cut"));
    summary["isCompactSummary"] = json!(true);
    let mut failed = says("failed", "p2");
    failed["isApiErrorMessage"] = json!(true);
    failed["error"] = json!("rate_limit");
    let stop = "[Request interrupted by user]";
    desk.write(
        1,
        "/work",
        &[
            user("p1", None),
            says("said", "p1"),
            boundary,
            summary,
            user("p2", Some("This session is being continued")),
            failed,
            user("p3", Some("failed")),
            user(stop, Some("p3")),
        ],
    );
    let events = events(&desk, 1);
    let counted = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(counted("Prompt"), 3, "{events:?}");
    assert_eq!(counted("Compaction"), 2, "the cut and the summary: {events:?}");
    assert_eq!(counted("ApiFailed"), 1, "{events:?}");
    assert_eq!(counted("Interrupted"), 1, "{events:?}");
}

#[test]
fn acp_load_02_what_a_slash_command_wrote_is_shown_again() {
    let desk = Desk::new();
    let command = user("<command-name>/context</command-name>", Some("said"));
    let name = "<command-name>/context</command-name>";
    let wrote = |name: &str, parent: &str, text: &str| {
        json!({ "type": "system", "subtype": "local_command", "uuid": uuid(name), "parentUuid": uuid(parent),
            "content": format!("<local-command-stdout>{text}</local-command-stdout>") })
    };
    desk.write(
        1,
        "/work",
        &[
            user("p1", None),
            says("said", "p1"),
            command,
            wrote("out", name, "all of it"),
            wrote("more", "out", "and more"),
            user("p2", Some("more")),
            says("end", "p2"),
        ],
    );
    assert_eq!(
        events(&desk, 1),
        [
            "Prompt",
            "TurnStarted",
            "Text",
            "TurnEnded",
            "Prompt",
            "CommandOutput",
            "CommandOutput",
            "Prompt",
            "TurnStarted",
            "Text",
            "TurnEnded"
        ]
    );
}

#[test]
fn a_broken_line_is_passed_over() {
    let desk = Desk::new();
    let path = desk.write(1, "/work", &[user("p1", None), says("said", "p1")]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{half\n{text}{{\"type\":\"assis")).unwrap();
    let updates: Vec<_> = desk.replay(1).flatten().collect();
    let shown = serde_json::to_string(&updates).unwrap();
    assert!(shown.contains("said"), "{shown}");
}
