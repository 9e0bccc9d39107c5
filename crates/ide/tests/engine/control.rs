//! Our own commands: what they can do, and that nobody else can.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::PermissionsExt as _;

use oarlock_ide::client::{Client as OwnClient, Credential};
use oarlock_ide::state::Engines;
use oarlock_ide::token::Token;
use oarlock_proto::ide::Dialect;
use serde_json::{Value, json};

use crate::support::{Call, Rig, diff, error_code, range, text, texts};

const METHODS: [&str; 10] = [
    "oarlock/status",
    "oarlock/diffs",
    "oarlock/diff",
    "oarlock/accept",
    "oarlock/reject",
    "oarlock/open",
    "oarlock/mention",
    "oarlock/pause",
    "oarlock/publishDiagnostics",
    "oarlock/watch",
];

#[tokio::test]
async fn ide_ctl_01_the_token_of_the_lock_decides_nothing() {
    for dialect in Dialect::ALL {
        let rig = Rig::speaking(dialect).await;
        let file = rig.home.file("a.py", "x\n");
        let (mut client, mut other) = (rig.cli().await, rig.cli().await);
        let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        let shown = rig.editor.shown().await;
        for method in METHODS {
            let params = json!({ "tab": "tab", "paused": true, "path": file, "files": [] });
            for client in [&mut client, &mut other] {
                let answer = client.request(method, params.clone()).await;
                assert_eq!(error_code(&answer), -32601, "{method}: {answer}");
            }
        }
        assert_eq!(rig.server.ide().diffs().len(), 1);
        assert!(!rig.server.ide().is_paused());
        shown.reject();
        assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
        client.settle_accounts().await;
        other.settle_accounts().await;
    }
}

#[tokio::test]
async fn ide_ctl_01_the_second_token_is_in_the_private_record_and_nowhere_else() {
    let rig = Rig::start().await;
    let control = rig.control_token();
    assert_ne!(control, rig.token());
    assert!(!std::fs::read_to_string(rig.server.lock_path()).unwrap().contains(&control));
    let dir = rig.home.state_dir();
    assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    let files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&files[0]).unwrap().contains(&control));
    let mut client = rig.cli().await;
    client.request("tools/list", Value::Null).await;
    assert!(!client.heard.iter().any(|text| text.contains(&control)));
}

#[tokio::test]
async fn a_command_decides_a_diff_by_number_path_or_name() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    let mut commands = rig.control().await;
    let number = |diffs: &Value| diffs["result"]["diffs"][0]["diff"].clone();
    for (params, wanted) in [
        (json!({ "tab": "tab" }), json!(["FILE_SAVED", "y\n"])),
        (json!({ "tab": file, "contents": "mine\n" }), json!(["FILE_SAVED", "mine\n"])),
        (json!({ "tab": null, "contents": null }), json!(["FILE_SAVED", "y\n"])),
    ] {
        let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        let _shown = rig.editor.shown().await;
        let listed = commands.request("oarlock/diffs", Value::Null).await;
        let entry = &listed["result"]["diffs"][0];
        assert_eq!(
            (&entry["tab"], &entry["path"], &entry["client"]),
            (&json!("tab"), &json!(file), &json!(1))
        );
        let mut params = params;
        if params["tab"].is_null() {
            params["tab"] = number(&listed);
        }
        let whole = commands.request("oarlock/diff", json!({ "tab": params["tab"] })).await;
        assert_eq!(whole["result"]["contents"], "y\n", "{whole}");
        let accepted = commands.request("oarlock/accept", params).await;
        assert_eq!(accepted["result"]["decision"], "accepted", "{accepted}");
        assert_eq!(json!(texts(&client.answer(&id).await)), wanted);
    }
    let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    let _shown = rig.editor.shown().await;
    commands.request("oarlock/reject", json!({ "tab": "tab" })).await;
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    let gone = commands.request("oarlock/accept", json!({ "tab": "tab" })).await;
    assert!(
        error_code(&gone) == -32002 && gone["error"]["message"].as_str().unwrap().contains("tab"),
        "{gone}"
    );
    client.settle_accounts().await;
    commands.settle_accounts().await;
}

#[tokio::test]
async fn a_command_is_no_client() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut commands = rig.control().await;
    commands.initialize().await;
    commands.notify("ide_connected", json!({ "pid": 1 })).await;
    let status = commands.request("oarlock/status", Value::Null).await["result"].take();
    assert_eq!(
        (&status["clients"], &status["diffs"], &status["paused"]),
        (&json!([]), &json!([]), &json!(false))
    );
    assert_eq!(
        (&status["workspace"], &status["pid"]),
        (&json!([rig.home.workspace]), &json!(std::process::id()))
    );
    assert_eq!(status["dialect"], "vscode");
    rig.editor.ide().selection_changed(crate::support::selection(&file, "x"));
    let nothing = commands.notifications("selection_changed", std::time::Duration::from_millis(100)).await;
    assert!(nothing.is_empty());
    assert!(rig.events.all().is_empty(), "{:?}", rig.events.all());
    let list = commands.request("tools/list", Value::Null).await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), oarlock_ide::tools::TABLE.len());
}

#[tokio::test]
async fn a_command_opens_mentions_and_pauses() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli_with_pid(7).await;
    let mut commands = rig.control().await;
    let zero_to_one = range((0, 0), (0, 1));
    let opened = commands.request("oarlock/open", json!({ "path": file, "range": zero_to_one })).await;
    assert_eq!(opened["result"], json!({ "lineCount": 3, "withheld": null }));
    assert!(matches!(&rig.editor.calls()[0], Call::OpenFile(open) if open.path == file));
    assert_eq!(error_code(&commands.request("oarlock/open", json!({ "path": "a.py" })).await), -32602);

    let mention = json!({ "path": file, "lineStart": 1, "lineEnd": 2, "to": 7 });
    assert_eq!(commands.request("oarlock/mention", mention).await["result"], json!({ "clients": 1 }));
    let told = client.notification("at_mentioned").await;
    assert_eq!(told, json!({ "filePath": file, "lineStart": 1, "lineEnd": 2 }));
    for (wrong, code) in [
        (json!({ "path": file, "to": 8 }), -32002),
        (json!({ "path": "a.py" }), -32602),
        (json!({}), -32602),
        (json!({ "path": rig.home.file(".env", "") }), -32602),
    ] {
        assert_eq!(error_code(&commands.request("oarlock/mention", wrong).await), code);
    }
    assert_eq!(
        commands.request("oarlock/pause", json!({ "paused": true })).await["result"],
        json!({ "paused": true })
    );
    assert!(rig.server.ide().is_paused());
    commands.request("oarlock/pause", json!({ "paused": false })).await;
    assert!(!rig.server.ide().is_paused());
    commands.settle_accounts().await;
}

#[tokio::test]
async fn a_command_publishes_diagnostics() {
    let rig = Rig::start().await;
    let file = rig.home.file("é a.py", "x\n");
    let mut client = rig.cli().await;
    let mut commands = rig.control().await;
    let uri = format!("file://{}", file.display());
    let position = json!({ "line": 0, "character": 0 });
    let problem = json!({
        "message": "broken", "severity": 2, "range": { "start": position, "end": position }, "code": 5,
    });
    let files = json!({ "files": [{ "uri": uri, "diagnostics": [problem] }] });
    assert_eq!(commands.request("oarlock/publishDiagnostics", files).await["result"], json!({ "files": 1 }));
    let answer = client.call("getDiagnostics", json!({ "uri": uri })).await;
    let list: Value = serde_json::from_str(text(&answer)).unwrap();
    let entry = &list[0]["diagnostics"][0];
    assert_eq!((&entry["severity"], &entry["code"]), (&json!("Warning"), &json!("5")));
    for wrong in
        [json!({ "files": [{ "uri": "nowhere", "diagnostics": [] }] }), json!({ "files": 5 }), json!({})]
    {
        assert_eq!(error_code(&commands.request("oarlock/publishDiagnostics", wrong).await), -32602);
    }
    commands.settle_accounts().await;
}

#[tokio::test]
async fn a_command_that_watches_sees_what_happens() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut commands = rig.control().await;
    commands.request("oarlock/watch", Value::Null).await;
    let mut client = rig.cli().await;
    let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    rig.editor.shown().await.accept();
    client.answer(&id).await;
    drop(client);
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("client_gone")) {
        seen.push(commands.notification("oarlock/event").await["event"].take());
    }
    let wanted =
        ["client_connected", "client_ready", "diff_opened", "diff_decided", "tool_call", "client_gone"];
    assert_eq!(seen, wanted);
    rig.stop().await;
    assert_eq!(commands.closed().await.unwrap().0, 1001);
}

#[tokio::test]
async fn the_librarys_own_client_gets_in_both_ways() {
    let rig = Rig::start().await;
    let token = Token::from_text(rig.token());
    let client = OwnClient::connect(rig.server.socket(), Credential::Token(&token)).await.unwrap();
    client.initialize("test").await.unwrap();
    let folders = client.call("getWorkspaceFolders", &json!({})).await.unwrap();
    assert!(folders.text_at(0).unwrap().contains("rootPath"));
    assert!(client.request("oarlock/status", &json!({})).await.is_err());
    let engines = Engines::open(rig.home.state_dir()).unwrap();
    let control = engines.running().remove(0).control;
    let commands = OwnClient::connect(rig.server.socket(), Credential::Control(&control)).await.unwrap();
    let status = commands.request("oarlock/status", &json!({})).await.unwrap();
    assert_eq!(status["clients"].as_array().unwrap().len(), 1);
    let wrong =
        OwnClient::connect(rig.server.socket(), Credential::Token(&control)).await.unwrap_err().to_string();
    assert!(wrong.contains("401"), "{wrong}");
}

#[tokio::test]
async fn a_full_house_still_lets_our_commands_in() {
    let rig = Rig::with(|options| options.limits.clients = 1).await;
    let _client = rig.cli().await;
    let mut commands = rig.control().await;
    commands.request("oarlock/status", Value::Null).await;
}
