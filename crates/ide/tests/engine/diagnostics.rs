//! `getDiagnostics`: always in time, in the CLI's own words.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_ide::editor::{FileProblems, Scope};
use oarlock_proto::ide::{Diagnostic, Dialect, Severity};
use oarlock_proto::pos;
use serde_json::{Value, json};

use crate::support::{Call, Client, Mood, Rig, range, selection, text};

fn problem(message: &str, severity: Severity) -> Diagnostic {
    let (source, code) = (Some("pyright".into()), Some("E1".into()));
    Diagnostic { message: message.into(), severity, range: range((1, 4), (1, 9)), source, code }
}

fn problems(path: &Path) -> FileProblems {
    let bare = Diagnostic { source: None, code: None, ..problem("bare", Severity::Hint) };
    let diagnostics = vec![
        problem("broken", Severity::Error),
        problem("odd", Severity::Warning),
        problem("by the way", Severity::Info),
        bare,
    ];
    FileProblems { path: path.to_owned(), diagnostics }
}

async fn get(client: &mut Client, arguments: Value) -> Value {
    let answer = client.call("getDiagnostics", arguments).await;
    serde_json::from_str(text(&answer)).unwrap()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

#[tokio::test]
async fn ide_diag_01_one_file_and_all_files_are_lists_by_file() {
    let rig = Rig::start().await;
    let (a, b) = (rig.home.file("a.py", "x\n"), rig.home.file("b.py", "x\n"));
    rig.editor.scene().problems = vec![problems(&a), problems(&b)];
    let mut client = rig.cli().await;
    let one = get(&mut client, json!({ "uri": uri(&a) })).await;
    assert_eq!((one.as_array().unwrap().len(), &one[0]["uri"]), (1, &json!(uri(&a))));
    let all = get(&mut client, json!({})).await;
    assert_eq!((all.as_array().unwrap().len(), &all[1]["uri"]), (2, &json!(uri(&b))));
    assert_eq!(get(&mut client, json!({ "uri": null })).await, all);
    let scopes: Vec<Call> = rig.editor.calls();
    assert_eq!(
        scopes,
        [Call::Diagnostics(Scope::File(a)), Call::Diagnostics(Scope::All), Call::Diagnostics(Scope::All)]
    );
}

#[tokio::test]
async fn ide_diag_02_fifty_calls_are_in_time_and_a_missing_file_is_an_empty_list() {
    let rig = Rig::start().await;
    let a = rig.home.file("a.py", "x\n");
    rig.editor.scene().problems = vec![problems(&a)];
    let mut client = rig.cli().await;
    let asked = [
        uri(&a),
        uri(Path::new("/nowhere/x.py")),
        "untitled:Untitled-1".into(),
        "https://x".into(),
        String::new(),
    ];
    for (at, uri) in asked.iter().cycle().take(50).enumerate() {
        let start = Instant::now();
        let list = get(&mut client, json!({ "uri": uri })).await;
        assert!(start.elapsed() < Duration::from_millis(350));
        assert_eq!(list.as_array().unwrap().len(), usize::from(at % asked.len() == 0), "{uri}");
    }
    client.settle_accounts().await;
}

/// How long each of several clients waits for an answer when all ask at once. A busy machine may hold one of them up,
/// so the quickest is what counts.
async fn waits(rig: &Rig, arguments: Value) -> Duration {
    let ask = |arguments: Value| async move {
        let mut client = rig.cli().await;
        let start = Instant::now();
        assert_eq!(get(&mut client, arguments).await, json!([]));
        start.elapsed()
    };
    let (a, b, c) = tokio::join!(ask(arguments.clone()), ask(arguments.clone()), ask(arguments));
    assert!(a.max(b).max(c) < Duration::from_secs(4), "{a:?} {b:?} {c:?}");
    a.min(b).min(c)
}

#[tokio::test]
async fn ide_diag_02_a_slow_editor_is_not_waited_for() {
    let rig = Rig::start().await;
    let a = rig.home.file("a.py", "x\n");
    for mood in [Mood::Hanging, Mood::Slow(Duration::from_secs(5))] {
        rig.editor.set("diagnostics", mood);
        let took = waits(&rig, json!({ "uri": uri(&a) })).await;
        // The CLI of 2.1.325 ignores what comes after 0.4 s.
        assert!((Duration::from_millis(300)..Duration::from_millis(400)).contains(&took), "{took:?}");
    }
}

#[tokio::test]
async fn ide_diag_02_all_files_have_longer_and_are_in_time_too() {
    let rig = Rig::start().await;
    let a = rig.home.file("a.py", "x\n");
    rig.editor.scene().problems = vec![problems(&a)];
    let mut client = rig.cli().await;
    rig.editor.set("diagnostics", Mood::Slow(Duration::from_millis(700)));
    assert_eq!(
        get(&mut client, json!({})).await.as_array().unwrap().len(),
        1,
        "0.7 s is soon enough for all"
    );
    rig.editor.set("diagnostics", Mood::Hanging);
    let took = waits(&rig, json!({})).await;
    assert!((Duration::from_millis(1700)..Duration::from_millis(2000)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn ide_diag_02_a_call_of_the_model_may_wait_longer() {
    let rig = Rig::with(|options| options.diagnostics.model = Duration::from_millis(1200)).await;
    let a = rig.home.file("a.py", "x\n");
    rig.editor.scene().problems = vec![problems(&a)];
    rig.editor.set("diagnostics", Mood::Slow(Duration::from_millis(600)));
    let mut client = rig.cli().await;
    let meta = json!({ "progressToken": 3, "claudecode/toolUseId": "toolu_1" });
    let call = json!({ "name": "getDiagnostics", "arguments": { "uri": uri(&a) }, "_meta": meta });
    let answer = client.request("tools/call", call.clone()).await;
    assert!(text(&answer).contains("broken"), "{answer}");
    rig.editor.set("diagnostics", Mood::Hanging);
    let start = Instant::now();
    assert_eq!(text(&client.request("tools/call", call).await), "[]", "but not for ever");
    assert!(start.elapsed() >= Duration::from_millis(1100));
    assert_eq!(oarlock_ide::DiagnosticsTimes::default().model, Duration::from_secs(10));
}

#[tokio::test]
async fn ide_diag_02_a_waiting_call_holds_no_other_up() {
    let rig = Rig::start().await;
    rig.editor.set("diagnostics", Mood::Hanging);
    let mut client = rig.cli().await;
    let slow = client.ask_tool("getDiagnostics", json!({})).await;
    let start = Instant::now();
    client.ping().await;
    assert!(start.elapsed() < Duration::from_millis(500));
    client.answer(&slow).await;
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_diag_02_a_failing_editor_is_an_empty_list() {
    let rig = Rig::start().await;
    rig.editor.set("diagnostics", Mood::Failing);
    let mut client = rig.cli().await;
    assert_eq!(get(&mut client, json!({})).await, json!([]));
    assert_eq!(get(&mut client, json!({ "uri": "file:///w/a.py" })).await, json!([]));
}

#[tokio::test]
async fn ide_diag_03_every_entry_is_as_the_cli_wants_it() {
    let rig = Rig::start().await;
    let a = rig.home.file("a.py", "x\n");
    rig.editor.scene().problems = vec![problems(&a)];
    let mut client = rig.cli().await;
    let list = get(&mut client, json!({})).await;
    let position = json!({
        "type": "object", "required": ["line", "character"], "additionalProperties": false,
        "properties": { "line": { "type": "integer", "minimum": 0 }, "character": { "type": "integer", "minimum": 0 } },
    });
    let entry = json!({
        "type": "object", "required": ["message", "severity", "range"], "additionalProperties": false,
        "properties": {
            "message": { "type": "string" },
            "severity": { "enum": ["Error", "Warning", "Info", "Hint"] },
            "range": { "type": "object", "required": ["start"], "properties": { "start": position, "end": position } },
            "source": { "type": "string" },
            "code": { "type": "string" },
        },
    });
    let file = json!({
        "type": "object", "required": ["uri", "diagnostics"],
        "properties": { "uri": { "type": "string" }, "diagnostics": { "type": "array", "items": entry } },
    });
    jsonschema::validate(&json!({ "type": "array", "items": file }), &list)
        .unwrap_or_else(|error| panic!("{error}: {list}"));
    let severities: Vec<&Value> =
        list[0]["diagnostics"].as_array().unwrap().iter().map(|entry| &entry["severity"]).collect();
    assert_eq!(severities, ["Error", "Warning", "Info", "Hint"]);
    let bare = list[0]["diagnostics"][3].as_object().unwrap();
    assert!(!bare.contains_key("source") && !bare.contains_key("code"), "left out, not null");
}

#[tokio::test]
async fn ide_diag_03_jetbrains_has_other_words() {
    let rig = Rig::speaking(Dialect::Jetbrains).await;
    let a = rig.home.file("a.py", "x\n");
    rig.editor.scene().problems = vec![problems(&a)];
    let mut client = rig.cli().await;
    let list = get(&mut client, json!({ "uri": uri(&a) })).await;
    let severities: Vec<&Value> =
        list[0]["diagnostics"].as_array().unwrap().iter().map(|entry| &entry["severity"]).collect();
    assert_eq!(severities, ["ERROR", "WARNING", "INFO", "WEAK_WARNING"]);
}

#[tokio::test]
async fn jetbrains_without_a_uri_means_the_current_file() {
    let rig = Rig::speaking(Dialect::Jetbrains).await;
    let (a, b) = (rig.home.file("a.py", "x\n"), rig.home.file("b.py", "x\n"));
    rig.editor.scene().problems = vec![problems(&a), problems(&b)];
    rig.editor.scene().selection = Some(selection(&b, "x"));
    let mut client = rig.cli().await;
    let list = get(&mut client, json!({})).await;
    assert_eq!((list.as_array().unwrap().len(), &list[0]["uri"]), (1, &json!(uri(&b))));
}

#[tokio::test]
async fn ide_diag_04_a_uri_comes_back_raw_however_it_was_asked() {
    let rig = Rig::start().await;
    let file = rig.home.file("sub dir/é #1%.py", "x\n");
    rig.editor.scene().problems = vec![problems(&file)];
    let mut client = rig.cli().await;
    let raw = uri(&file);
    assert!(raw.ends_with("/sub dir/é #1%.py"));
    let workspace = rig.home.workspace.display();
    for asked in
        [raw.clone(), format!("file://{workspace}/sub%20dir/%C3%A9%20%231%25.py"), file.display().to_string()]
    {
        let list = get(&mut client, json!({ "uri": asked })).await;
        assert_eq!(list[0]["uri"], raw, "{asked}");
    }
    assert_eq!(get(&mut client, json!({})).await[0]["uri"], raw);
}

#[tokio::test]
async fn ide_diag_05_positions_are_zero_based_and_utf16() {
    let rig = Rig::start().await;
    let line = "aé𝒳b";
    let file = rig.home.file("a.py", line);
    // An editor that counts in bytes turns its column 8 (behind the b) into the protocol's.
    let at = pos::position(line, 8);
    let problem =
        Diagnostic { range: pos::Range::new(pos::Position::new(0, 0), at), ..problem("x", Severity::Error) };
    rig.editor.scene().problems = vec![FileProblems { path: file, diagnostics: vec![problem] }];
    let mut client = rig.cli().await;
    let range = get(&mut client, json!({})).await[0]["diagnostics"][0]["range"].take();
    assert_eq!(
        range,
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 5 } })
    );
}

#[tokio::test]
async fn files_that_were_not_asked_for_are_left_out() {
    let rig = Rig::start().await;
    let (a, b) = (rig.home.file("a.py", "x\n"), rig.home.file("b.py", "x\n"));
    let mut client = rig.cli().await;
    // Whatever the editor says: this one does not filter.
    rig.editor.scene().problems = vec![problems(&a)];
    assert_eq!(get(&mut client, json!({ "uri": uri(&b) })).await, json!([]));
    assert_eq!(get(&mut client, json!({ "uri": uri(&PathBuf::from("/")) })).await, json!([]));
}

#[tokio::test]
async fn diagnostics_changed_is_told_in_the_dialect_that_knows_it_in_its_words() {
    let rig = Rig::speaking(Dialect::Jetbrains).await;
    let a = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    rig.editor.ide().diagnostics_changed(vec![problems(&a)]);
    let changed = client.notification("diagnostics_changed").await;
    assert_eq!(changed["uri"], uri(&a));
    let severities: Vec<&Value> =
        changed["diagnostics"].as_array().unwrap().iter().map(|entry| &entry["severity"]).collect();
    assert_eq!(severities, ["ERROR", "WARNING", "INFO", "WEAK_WARNING"]);
    for dialect in [Dialect::Vscode, Dialect::Vault] {
        let rig = Rig::speaking(dialect).await;
        let mut client = rig.cli().await;
        rig.editor.ide().diagnostics_changed(vec![problems(&a)]);
        client.ping().await;
        assert!(!client.heard.iter().any(|text| text.contains("diagnostics_changed")));
    }
}
