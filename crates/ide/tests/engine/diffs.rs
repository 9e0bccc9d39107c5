//! The rules with teeth: what answers an `openDiff`, and what never does.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Act, Call, Mood, Rig, diff, is_tool_error, text, texts};

/// The name that the real CLI gives to a diff.
const TAB: &str = "✻ [Claude Code] a.py (7928fd) ⧉";
const OLD: &str = "x = 1\n";
const NEW: &str = "x = 2\n";

/// A file's bytes and time of change, to be compared later.
fn print_of(path: &Path) -> (Vec<u8>, std::time::SystemTime) {
    (std::fs::read(path).unwrap(), std::fs::metadata(path).unwrap().modified().unwrap())
}

#[tokio::test]
async fn ide_diff_01_a_diff_stays_open_until_it_is_decided() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let shown = rig.editor.shown().await;
    let request = &shown.request;
    assert_eq!((&request.old_path, &request.new_path), (&file, &file));
    assert_eq!((&*request.new_contents, request.tab.as_str()), (NEW, TAB));
    assert_eq!((request.client.id, request.client.pid), (1, Some(std::process::id())));
    client.ping().await;
    assert_eq!(text(&client.call("getDiagnostics", json!({})).await), "[]");
    client.call("getWorkspaceFolders", json!({})).await;
    let opened = rig.events.wait("diff_opened", 1).await;
    assert_eq!((&opened["path"], &opened["tab"], &opened["client"]), (&json!(file), &json!(TAB), &json!(1)));
    assert!(rig.events.named("diff_decided").is_empty());
    let waiting = rig.server.ide().diffs();
    assert_eq!((waiting.len(), waiting[0].tab.as_str()), (1, TAB));
    shown.accept();
    client.answer(&id).await;
    assert!(rig.server.ide().diffs().is_empty());
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_diff_02_accept_answers_file_saved_and_the_contents() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    rig.editor.shown().await.accept();
    let answer = client.answer(&id).await;
    assert_eq!(texts(&answer), ["FILE_SAVED", NEW]);
    assert_eq!(answer["result"].as_object().unwrap().len(), 1, "content and nothing else: {answer}");
    let decided = rig.events.wait("diff_decided", 1).await;
    assert_eq!((&decided["decision"], &decided["by"]), (&json!("accepted"), &json!("editor")));
    // By a command, with and without other contents.
    for (contents, answered) in
        [(None, NEW), (Some("mine\n".to_owned()), "mine\n"), (Some(String::new()), "")]
    {
        let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
        let _shown = rig.editor.shown().await;
        rig.server.ide().accept(TAB, contents).unwrap();
        assert_eq!(texts(&client.answer(&id).await), ["FILE_SAVED", answered]);
    }
    rig.events.wait("diff_decided", 4).await;
    assert_eq!(rig.events.named("diff_decided")[3]["by"], "command");
}

#[tokio::test]
async fn ide_diff_03_the_persons_edits_are_in_the_answer() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    for edited in ["x = 22\n", "", "no end of line", "a\r\nb\r\n", "\u{feff}x = 'é𝒳'\n\0\t\\\"\u{2028}"] {
        let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
        rig.editor.shown().await.accept_as(edited);
        assert_eq!(texts(&client.answer(&id).await), ["FILE_SAVED", edited]);
    }
}

#[tokio::test]
async fn ide_diff_04_reject_answers_diff_rejected() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    rig.editor.shown().await.reject();
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let _shown = rig.editor.shown().await;
    rig.server.ide().reject(TAB).unwrap();
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    let decisions: Vec<Value> = rig
        .events
        .named("diff_decided")
        .iter()
        .map(|event| json!([event["decision"], event["by"]]))
        .collect();
    assert_eq!(decisions, [json!(["rejected", "editor"]), json!(["rejected", "command"])]);
}

#[tokio::test]
async fn ide_diff_05_a_view_that_is_closed_is_a_rejection_and_never_tab_closed() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    rig.editor.shown().await.close();
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    assert_eq!(rig.events.wait("diff_decided", 1).await["decision"], "closed");
    assert!(!client.heard.iter().any(|text| text.contains("TAB_CLOSED")));
}

#[tokio::test]
async fn ide_diff_06_the_engine_never_touches_the_file() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let new_file = rig.home.workspace.join("new dir/new.py");
    let before = print_of(&file);
    let mut client = rig.cli().await;
    for act in [
        Act::Decide(oarlock_ide::editor::DiffOutcome::Accepted { contents: NEW.into() }),
        Act::Decide(oarlock_ide::editor::DiffOutcome::Rejected),
        Act::Decide(oarlock_ide::editor::DiffOutcome::Closed),
        Act::Fail("lost"),
        Act::Panic,
    ] {
        let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
        rig.editor.shown().await.act(act);
        client.answer(&id).await;
    }
    let id = client.ask_tool("openDiff", diff(&new_file, NEW, TAB)).await;
    rig.editor.shown().await.accept();
    client.answer(&id).await;
    client.settle_accounts().await;
    assert!(!new_file.exists() && !new_file.parent().unwrap().exists());
    assert_eq!(print_of(&file), before);
    assert_eq!(std::fs::read_dir(&rig.home.workspace).unwrap().count(), 1, "nothing lies beside it");
    let _home = rig.stop().await;
    assert_eq!(print_of(&file), before);
}

#[tokio::test]
async fn ide_diff_07_close_tab_is_answered_at_once_twice_for_strangers_and_afterwards() {
    let rig = Rig::start().await;
    rig.editor.scene().found = false;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    rig.editor.shown().await.accept();
    client.answer(&id).await;
    for tab in [TAB, TAB, "never heard of", "", "/w/a.py"] {
        let start = Instant::now();
        assert_eq!(text(&client.call("close_tab", json!({ "tab_name": tab })).await), "TAB_CLOSED");
        assert!(start.elapsed() < Duration::from_millis(500));
    }
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let _shown = rig.editor.shown().await;
    for _ in 0..2 {
        let start = Instant::now();
        assert_eq!(text(&client.call("close_tab", json!({ "tab_name": TAB })).await), "TAB_CLOSED");
        assert!(start.elapsed() < Duration::from_millis(500));
    }
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_diff_08_close_tab_ends_an_open_diff_without_an_accept() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let other = client.ask_tool("openDiff", diff(&file, NEW, "other")).await;
    let other_shown = rig.editor.shown().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let shown = rig.editor.shown().await;
    client.call("close_tab", json!({ "tab_name": TAB })).await;
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    rig.editor.called(&Call::CloseDiff(TAB.into())).await;
    let decided = rig.events.wait("diff_decided", 1).await;
    assert_eq!((&decided["decision"], &decided["by"]), (&json!("closed"), &json!("client")));
    // A late click in a view that is already decided changes nothing.
    shown.accept();
    assert!(rig.server.ide().accept(TAB, None).is_err());
    other_shown.accept();
    assert_eq!(texts(&client.answer(&other).await), ["FILE_SAVED", NEW]);
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_diff_09_close_all_diff_tabs_closes_the_callers_diffs_and_no_other() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let (mut one, mut two) = (rig.cli().await, rig.cli().await);
    let mut mine = Vec::new();
    for tab in ["a", "b", "c"] {
        mine.push(one.ask_tool("openDiff", diff(&file, NEW, tab)).await);
        let _shown = rig.editor.shown().await;
    }
    let theirs = two.ask_tool("openDiff", diff(&file, NEW, "a")).await;
    let their_shown = rig.editor.shown().await;
    let start = Instant::now();
    assert_eq!(text(&one.call("closeAllDiffTabs", json!({})).await), "CLOSED_3_DIFF_TABS");
    assert!(start.elapsed() < Duration::from_millis(500));
    for id in mine {
        assert_eq!(text(&one.answer(&id).await), "DIFF_REJECTED");
    }
    assert_eq!(text(&one.call("closeAllDiffTabs", json!({})).await), "CLOSED_0_DIFF_TABS");
    // Nor does a tab of the same name belong to the other client.
    one.call("close_tab", json!({ "tab_name": "a" })).await;
    assert_eq!(rig.server.ide().diffs().len(), 1);
    their_shown.accept();
    assert_eq!(texts(&two.answer(&theirs).await), ["FILE_SAVED", NEW]);
    one.settle_accounts().await;
    two.settle_accounts().await;
}

#[tokio::test]
async fn ide_diff_10_a_lost_client_accepts_nothing_and_its_view_closes() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let before = print_of(&file);
    for end in ["reset", "goodbye"] {
        let mut client = rig.cli().await;
        client.ask_tool("openDiff", diff(&file, NEW, end)).await;
        let shown = rig.editor.shown().await;
        match end {
            "reset" => client.socket.cut(),
            _ => client.socket.send(crate::support::CLOSE, &1000_u16.to_be_bytes()).await,
        }
        rig.editor.called(&Call::CloseDiff(end.into())).await;
        shown.accept();
    }
    rig.events.wait("diff_decided", 2).await;
    rig.events.wait("client_gone", 2).await;
    assert!(rig.events.named("diff_decided").iter().all(|event| event["decision"] == "failed"));
    assert!(rig.server.ide().diffs().is_empty());
    assert_eq!(print_of(&file), before);
}

#[tokio::test]
async fn ide_diff_10_a_lost_editor_is_a_tool_error() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    for (act, word) in [(Act::Fail("the editor went away"), "the editor went away"), (Act::Panic, "panicked")]
    {
        let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
        rig.editor.shown().await.act(act);
        let answer = client.answer(&id).await;
        assert!(is_tool_error(&answer).unwrap().contains(word), "{answer}");
    }
    rig.editor.set("open_diff", Mood::Panicking);
    let answer = client.call("openDiff", diff(&file, NEW, TAB)).await;
    assert!(is_tool_error(&answer).unwrap().contains("panicked"), "{answer}");
    assert!(rig.server.ide().diffs().is_empty());
    assert!(rig.events.named("diff_decided").iter().all(|event| event["decision"] == "failed"));
    client.settle_accounts().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ide_diff_10_a_server_that_stops_answers_with_tool_errors_and_says_goodbye() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let before = print_of(&file);
    let (mut one, mut two) = (rig.cli().await, rig.cli().await);
    let a = one.ask_tool("openDiff", diff(&file, NEW, "a")).await;
    let b = one.ask_tool("openDiff", diff(&file, NEW, "b")).await;
    let c = two.ask_tool("openDiff", diff(&file, NEW, "c")).await;
    let shown = [rig.editor.shown().await, rig.editor.shown().await, rig.editor.shown().await];
    let (events, lock) = (rig.events.clone(), rig.server.lock_path().to_owned());
    let _home = rig.stop().await;
    assert!(!lock.exists());
    for (client, ids) in [(&mut one, vec![a, b]), (&mut two, vec![c])] {
        assert_eq!(client.closed().await.unwrap().0, 1001);
        for id in ids {
            let answer = client.answer(&id).await;
            assert!(is_tool_error(&answer).unwrap().contains("shutting down"), "{answer}");
        }
        client.assert_one_answer_each();
    }
    for shown in shown {
        shown.accept();
    }
    assert_eq!(events.named("diff_decided").len(), 3);
    assert!(events.named("diff_decided").iter().all(|event| event["decision"] == "failed"));
    assert_eq!(print_of(&file), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ide_diff_10_when_the_server_stops_the_editor_may_close_its_views() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let _shown = rig.editor.shown().await;
    let editor = rig.editor.clone();
    rig.stop().await;
    assert_eq!(editor.calls(), [Call::OpenDiff(TAB.into()), Call::CloseDiff(TAB.into())]);
}

#[tokio::test]
async fn ide_diff_11_every_kind_of_text_survives_an_unchanged_accept() {
    let rig = Rig::start().await;
    let mut client = rig.cli().await;
    for (name, contents) in [
        ("crlf.txt", "a\r\nb\r\n"),
        ("mixed.txt", "a\rb\nc\r\n"),
        ("bom.txt", "\u{feff}a\n"),
        ("no end.txt", "a\nb"),
        ("empty.txt", ""),
        ("sub dir/é #1%.py", "'aé𝒳b'\n"),
        ("controls.txt", "\0\u{1}\u{7f}\u{2028}\u{2029}\t\\\"/\u{fffd}\u{10ffff}"),
    ] {
        let file = rig.home.file(name, contents);
        let before = print_of(&file);
        let id = client.ask_tool("openDiff", diff(&file, contents, name)).await;
        let shown = rig.editor.shown().await;
        assert_eq!((&shown.request.new_path, &*shown.request.new_contents), (&file, contents));
        shown.accept();
        assert_eq!(texts(&client.answer(&id).await), ["FILE_SAVED", contents], "{name}");
        assert_eq!(print_of(&file), before, "{name}");
    }
}

#[tokio::test]
async fn ide_diff_11_any_absolute_path_may_be_shown() {
    let rig = Rig::start().await;
    let mut client = rig.cli().await;
    for path in ["/etc/hostname", "/nowhere/at all/x.py"] {
        let id = client.ask_tool("openDiff", diff(Path::new(path), NEW, path)).await;
        rig.editor.shown().await.reject();
        assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    }
    // The first seed has no `new_file_path`, the third of its names no `tab_name`.
    let id =
        client.ask_tool("openDiff", json!({ "old_file_path": "/w/b.py", "new_file_contents": NEW })).await;
    let shown = rig.editor.shown().await;
    assert_eq!(
        (shown.request.new_path.as_path(), shown.request.tab.as_str()),
        (Path::new("/w/b.py"), "b.py")
    );
    shown.accept();
    assert_eq!(texts(&client.answer(&id).await), ["FILE_SAVED", NEW]);
}

/// What an engine can do for layout and focus: one open and at most one close for each diff, and no other call.
#[tokio::test]
async fn ide_diff_12_the_editor_is_asked_for_one_open_and_one_close_and_nothing_else() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let (open, close) = (Call::OpenDiff(TAB.into()), Call::CloseDiff(TAB.into()));
    let mut client = rig.cli().await;
    for decided_in in ["editor", "terminal", "command", "prompt"] {
        let before = rig.editor.calls().len();
        let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
        let shown = rig.editor.shown().await;
        let mut wanted = vec![open.clone(), close.clone()];
        match decided_in {
            "editor" => {
                shown.accept();
                // It closed its view by itself.
                wanted.pop();
            }
            "terminal" => drop(client.call("close_tab", json!({ "tab_name": TAB })).await),
            "command" => rig.server.ide().reject(TAB).unwrap(),
            _ => drop(client.call("closeAllDiffTabs", json!({})).await),
        }
        client.answer(&id).await;
        if wanted.contains(&close) {
            crate::support::eventually("the view to close", || rig.editor.calls().len() >= before + 2).await;
        }
        client.ping().await;
        assert_eq!(rig.editor.calls()[before..], wanted, "{decided_in}");
    }
}

/// The CLI closes its tab twice, also after the diff was accepted in the editor: nothing is open then that could be
/// closed, least of all an ordinary tab.
#[tokio::test]
async fn ide_diff_12_a_second_close_tab_closes_no_view_again() {
    let rig = Rig::start().await;
    rig.editor.scene().found = false;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    let _shown = rig.editor.shown().await;
    for _ in 0..3 {
        client.call("close_tab", json!({ "tab_name": TAB })).await;
    }
    client.answer(&id).await;
    rig.editor.called(&Call::CloseDiff(TAB.into())).await;
    client.settle_accounts().await;
    let views: Vec<Call> =
        rig.editor.calls().into_iter().filter(|call| !matches!(call, Call::CloseTab(_))).collect();
    assert_eq!(views, [Call::OpenDiff(TAB.into()), Call::CloseDiff(TAB.into())]);
}

#[tokio::test]
async fn a_view_that_does_not_close_is_dropped_and_holds_nothing_up() {
    let rig = Rig::start().await;
    rig.editor.set("open_diff", Mood::Hanging);
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, NEW, TAB)).await;
    rig.events.wait("diff_opened", 1).await;
    let start = Instant::now();
    client.call("close_tab", json!({ "tab_name": TAB })).await;
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    assert!(start.elapsed() < Duration::from_millis(500), "the answer does not wait for the view");
    rig.editor.called(&Call::DropDiff(TAB.into())).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_11_a_client_that_is_no_cli_is_not_offered_diffs_and_is_told_why() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", OLD);
    let mut client = rig.mcp().await;
    let list = client.request("tools/list", Value::Null).await.to_string();
    for (tool, arguments) in [
        ("openDiff", diff(&file, NEW, TAB)),
        ("close_tab", json!({ "tab_name": TAB })),
        ("closeAllDiffTabs", json!({})),
    ] {
        assert!(!list.contains(&format!("\"{tool}\"")), "{list}");
        let answer = client.call(tool, arguments).await;
        let why = is_tool_error(&answer).unwrap();
        assert!(why.contains(tool) && why.contains("ide_connected"), "{why}");
    }
    assert_eq!(rig.editor.calls(), []);
    client.settle_accounts().await;
}

#[tokio::test]
async fn a_diff_is_found_by_number_path_or_name_and_an_ambiguous_name_lists_them() {
    let rig = Rig::start().await;
    let (a, b) = (rig.home.file("a.py", OLD), rig.home.file("b.py", OLD));
    let mut client = rig.cli().await;
    let mut ids = Vec::new();
    for (file, tab) in [(&a, "one"), (&a, "two"), (&b, "three"), (&b, "two")] {
        ids.push(client.ask_tool("openDiff", diff(file, NEW, tab)).await);
        let _shown = rig.editor.shown().await;
    }
    let ide = rig.server.ide();
    let numbers: Vec<String> = ide.diffs().into_iter().map(|diff| diff.diff).collect();
    let error = ide.accept("two", None).unwrap_err().to_string();
    assert!(
        error.contains("more than one") && numbers.iter().all(|number| error.contains(number)),
        "{error}"
    );
    assert!(ide.accept(a.to_str().unwrap(), None).is_err(), "two diffs for one file");
    assert!(ide.accept("nothing", None).unwrap_err().to_string().contains("nothing"));
    assert_eq!(ide.diffs().len(), 4, "nothing was decided by all that");
    ide.accept(&numbers[1], None).unwrap();
    assert_eq!(texts(&client.answer(&ids[1]).await), ["FILE_SAVED", NEW]);
    ide.reject(a.to_str().unwrap()).unwrap();
    assert_eq!(text(&client.answer(&ids[0]).await), "DIFF_REJECTED");
    ide.accept("two", None).unwrap();
    assert_eq!(texts(&client.answer(&ids[3]).await), ["FILE_SAVED", NEW]);
    ide.reject("three").unwrap();
    assert_eq!(text(&client.answer(&ids[2]).await), "DIFF_REJECTED");
    assert!(ide.accept(&numbers[1], None).is_err(), "it was decided");
    client.settle_accounts().await;
}
