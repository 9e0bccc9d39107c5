//! `oarlock sessions`.
#![allow(clippy::unwrap_used, reason = "a test")]

mod home;

use home::Home;
use serde_json::{Value, json};

fn id(number: u64) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// Where the CLI would keep the workspace's sessions.
fn folder(home: &Home) -> String {
    let name: String = home
        .workspace()
        .display()
        .to_string()
        .encode_utf16()
        .map(|unit| char::from_u32(unit.into()).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect();
    assert!(name.len() <= 200);
    format!(".claude/projects/{name}")
}

fn said(kind: &str, uuid: &str, parent: Option<&str>, content: Value) -> Value {
    json!({ "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "cwd": "/work", "gitBranch": "main",
        "timestamp": "2026-11-15T01:03:38.855Z", "message": { "id": format!("m{uuid}"), "role": kind, "content": content } })
}

fn write(home: &Home, folder: &str, number: u64, records: &[Value]) {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    home.write(&format!("{folder}/{}.jsonl", id(number)), &text);
}

/// A home with two sessions of the workspace and one elsewhere.
fn home() -> Home {
    let home = Home::new();
    let here = folder(&home);
    let call = json!([{ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "echo \u{1b}[31mred" } }]);
    let result: String = (0..20).map(|line| format!("line {line}\n")).collect();
    let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": result }]);
    let thinking = json!([{ "type": "thinking", "thinking": "hm, a haystack" }]);
    write(
        &home,
        &here,
        0xa1,
        &[
            said(
                "user",
                "aaaa0001-0000-4000-8000-000000000000",
                None,
                json!("find the needle\u{1b}]0;x\u{7}"),
            ),
            said(
                "assistant",
                "aaaa0002-0000-4000-8000-000000000000",
                Some("aaaa0001-0000-4000-8000-000000000000"),
                thinking,
            ),
            said(
                "assistant",
                "aaaa0003-0000-4000-8000-000000000000",
                Some("aaaa0002-0000-4000-8000-000000000000"),
                call,
            ),
            said(
                "user",
                "aaaa0004-0000-4000-8000-000000000000",
                Some("aaaa0003-0000-4000-8000-000000000000"),
                result,
            ),
            said(
                "assistant",
                "aaaa0005-0000-4000-8000-000000000000",
                Some("aaaa0004-0000-4000-8000-000000000000"),
                json!([{ "type": "text", "text": "Found it." }]),
            ),
            json!({ "type": "api-request-blob", "message": { "content": "the system prompt" } }),
            json!({ "type": "custom-title", "customTitle": "Needles" }),
        ],
    );
    write(&home, &here, 0xb2, &[said("user", "u", None, json!("another thing"))]);
    write(&home, ".claude/projects/-elsewhere", 0xc3, &[said("user", "u", None, json!("far away"))]);
    home
}

#[test]
fn sessions_are_listed_for_people_and_programs() {
    let home = home();
    let ran = home.run(&["sessions", "list"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    for part in ["000000a1", "Needles", "000000b2", "another thing", "main", " kB", "now"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let all = home.run(&["sessions", "list", "--all", "--count", "--json"]).json();
    let sessions = all["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 3);
    let needles = sessions.iter().find(|one| one["title"] == "Needles").unwrap();
    assert_eq!(
        (&needles["id"], &needles["messages"], &needles["pid"]),
        (&json!(id(0xa1)), &json!(5), &json!(null))
    );
    assert_eq!(needles["created"], "2026-11-15T01:03:38.855Z");
    let one = home.run(&["sessions", "list", "--limit", "1"]);
    assert_eq!(one.stdout.lines().count(), 1);
    assert!(one.stderr.contains("--limit 0"), "{}", one.stderr);
}

#[test]
fn none_says_where_there_may_be_some() {
    let home = Home::new();
    let ran = home.run(&["sessions", "list"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "", "what is no session is no line of the list");
    assert!(ran.stderr.contains("no sessions of") && ran.stderr.contains("--all"), "{}", ran.stderr);
    let ran = home.run(&["sessions", "list", "--tag", "mine"]);
    assert!(ran.stderr.contains("no sessions with the tag `mine`"), "{}", ran.stderr);
    assert_eq!(home.run(&["sessions", "list", "--json"]).json(), json!({ "sessions": [] }));
    let ran = home.run(&["sessions", "show"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}

#[test]
fn a_session_is_shown_and_cannot_steer_the_terminal() {
    let home = home();
    let ran = home.run(&["sessions", "show", "Needles"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{:?}", ran.stdout);
    for part in ["❯ find the needle", "● Bash echo", "line 7", "… 12 more lines", "Found it.", "5 messages"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("line 8") && !ran.stdout.contains("haystack"));
    assert!(!ran.stdout.contains("system prompt"));
    let ran = home.run(&["sessions", "show", "000000a1", "--thinking", "--full"]);
    assert!(ran.stdout.contains("line 19") && ran.stdout.contains("hm, a haystack"), "{}", ran.stdout);
    let shown = home.run(&["sessions", "show", &id(0xc3), "--json"]).json();
    assert_eq!(shown["messages"][0]["message"]["content"], "far away", "an id is found in any project");
    assert_eq!(home.run(&["sessions", "show", "far away"]).code, Some(3), "a title only here");
}

#[test]
fn a_text_is_found() {
    let home = home();
    let ran = home.run(&["sessions", "search", "needle"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("Needles  000000a1") && ran.stdout.contains("aaaa0001 prompt: find the needle")
    );
    assert!(!ran.stdout.contains('\u{1b}'));
    let ran = home.run(&["sessions", "search", "-i", "FAR", "--all", "--json"]);
    assert_eq!(ran.json()["session"], id(0xc3));
    let ran = home.run(&["sessions", "search", "system prompt", "--all"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert_eq!(home.run(&["sessions", "search", ""]).code, Some(2));
}

#[test]
fn exports_go_to_stdout_or_a_private_file() {
    let home = home();
    let ran = home.run(&["sessions", "export", "Needles"]);
    assert!(ran.stdout.starts_with("# Needles\n") && ran.stdout.contains("## Claude"), "{}", ran.stdout);
    let file = home.at("w/out.json");
    let ran = home.run(&["sessions", "export", "Needles", "-o", "out.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(value["session"]["title"], "Needles");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let ran = home.run(&["sessions", "export", "Needles", "-o", "nowhere/out.md"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("nowhere/out.md"), "{}", ran.stderr);
}

#[test]
fn a_session_is_renamed_tagged_forked_and_deleted() {
    let home = home();
    assert_eq!(home.run(&["sessions", "rename", "000000a1", "Better"]).code, Some(0));
    assert_eq!(
        home.run(&["sessions", "tag", "better", "hay", "--json"]).json(),
        json!({ "session": id(0xa1), "tag": "hay" })
    );
    assert!(home.run(&["sessions", "list", "--tag", "hay"]).stdout.contains("Better #hay"));
    assert_eq!(home.run(&["sessions", "tag", "better"]).code, Some(0));
    assert!(!home.run(&["sessions", "list"]).stdout.contains("#hay"));
    assert_eq!(home.run(&["sessions", "rename", "Better", " "]).code, Some(2));

    let fork = home.run(&["sessions", "fork", "Better", "--at", "aaaa0004", "--json"]).json();
    let forked = fork["session"].as_str().unwrap();
    assert_eq!(fork["from"], id(0xa1));
    let shown = home.run(&["sessions", "show", forked, "--json"]).json();
    assert_eq!(shown["session"]["title"], "Better (fork)");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 3, "without thinking");
    let ran = home.run(&["sessions", "fork", "Better", "--at", "aaaa"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("give more of the id"), "{}", ran.stderr);

    let ran = home.run(&["sessions", "delete", forked]);
    assert!(ran.code == Some(2) && ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert_eq!(home.run(&["sessions", "delete", forked, "--yes"]).code, Some(0));
    assert_eq!(home.run(&["sessions", "delete", forked, "--yes"]).code, Some(3));
    assert!(home.run(&["sessions", "list"]).stdout.contains("Better"), "the original stays");
    // Nothing is deleted when one of the names is wrong.
    assert_eq!(home.run(&["sessions", "delete", "000000a1", "nothing", "--yes"]).code, Some(3));
    assert_eq!(
        home.run(&["sessions", "delete", "000000a1", "000000b2", "--yes", "--json"]).json()["deleted"][1],
        id(0xb2)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_open_session_is_marked_and_kept() {
    let home = home();
    let me = std::process::id();
    home.write(
        &format!(".claude/sessions/{me}.json"),
        &json!({ "pid": me, "sessionId": id(0xa1) }).to_string(),
    );
    assert!(home.run(&["sessions", "list"]).stdout.contains("● 000000a1"));
    let ran = home.run(&["sessions", "delete", "000000a1", "--yes"]);
    assert!(ran.code == Some(4) && ran.stderr.contains(&me.to_string()), "{}", ran.stderr);
    assert_eq!(home.run(&["sessions", "delete", "000000a1", "--yes", "--force"]).code, Some(0));
}

#[test]
fn what_is_ambiguous_is_not_guessed() {
    let home = home();
    let ran = home.run(&["sessions", "show", "0000"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains(&id(0xa1)) && ran.stderr.contains(&id(0xb2)), "{}", ran.stderr);
}

#[cfg(target_os = "linux")]
mod terminal {
    use std::time::Duration;

    use oarlock_testkit::tui::{Key, Launch};

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// A home has a runtime of its own, which must not end inside of another one.
    fn block_on(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    }

    fn launch(home: &Home, pager: &str, args: &[&str]) -> Launch {
        let environment = vec![
            ("HOME".into(), home.at("").into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("TERM".into(), "xterm".into()),
            ("PAGER".into(), pager.into()),
        ];
        Launch::new(env!("CARGO_BIN_EXE_oarlock"), home.workspace(), environment).args(args)
    }

    #[test]
    fn a_person_is_asked_before_a_session_is_deleted() {
        let home = home();
        block_on(async {
            for (answer, is_left) in [("n", true), ("", true), ("perhaps", true), ("y", false)] {
                let tui = launch(&home, "", &["sessions", "delete", "000000a1"]).start().unwrap();
                let screen = tui.wait_for_text("for good? (y/N)", SOON).await.unwrap();
                assert!(screen.contains("Needles"), "{screen}");
                tui.type_text(answer).unwrap();
                tui.press(Key::Enter).unwrap();
                let end = if is_left { "nothing was deleted" } else { "deleted 000000a1" };
                tui.wait_for_text(end, SOON).await.unwrap();
                assert_eq!(home.run(&["sessions", "list"]).stdout.contains("Needles"), is_left, "{answer:?}");
            }
        });
    }

    #[test]
    fn a_pager_shows_what_is_long() {
        let home = home();
        block_on(async {
            let tui = launch(&home, "sed s/^/paged:/", &["sessions", "show", "Needles"]).start().unwrap();
            tui.wait_for_text("paged:● Bash", SOON).await.unwrap();
            let tui = launch(&home, "sed 's/^/in a shell:/' | cat", &["sessions", "list"]).start().unwrap();
            tui.wait_for_text("in a shell:", SOON).await.unwrap();
            let tui = launch(&home, "no-such-pager", &["sessions", "list"]).start().unwrap();
            tui.wait_for_text("Needles", SOON).await.unwrap();
        });
    }

    #[test]
    fn a_title_in_wide_characters_stays_in_its_line() {
        let home = home();
        let title = "漢".repeat(150);
        assert_eq!(home.run(&["sessions", "rename", "000000a1", &title]).code, Some(0));
        block_on(async {
            let tui = launch(&home, "cat", &["sessions", "list"]).start().unwrap();
            tui.wait_for_end(SOON).await.unwrap();
            let screen = tui.screen();
            let lines = screen.lines().filter(|line| line.contains('漢'));
            assert_eq!(lines.count(), 1, "{screen}");
        });
    }
}
