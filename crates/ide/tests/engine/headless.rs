//! The headless editor behind a server: files on disk, a policy for diffs, diagnostics from outside.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use oarlock_ide::Server;
use oarlock_ide::editor::{Cancelled, DiffOutcome, EditorError, OpenDiff};
use oarlock_ide::headless::{HeadlessEditor, OnDiff, Reviewer};
use oarlock_ide::state::Engines;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{Client, Home, Upgrade, diff, eventually, is_tool_error, text, texts};

struct Headless {
    server: Server,
    home: Home,
}

async fn start(editor: HeadlessEditor) -> Headless {
    let home = Home::new();
    let server = Server::start(Arc::new(editor), home.options()).await.unwrap();
    Headless { server, home }
}

impl Headless {
    fn handshake(&self) -> Upgrade {
        let lock: Value = serde_json::from_slice(&std::fs::read(self.server.lock_path()).unwrap()).unwrap();
        Upgrade::like_the_cli(self.server.port(), lock["authToken"].as_str().unwrap())
    }

    async fn cli(&self) -> Client {
        let mut client = Client::connect(self.server.port(), &self.handshake()).await;
        client.initialize().await;
        client.notify("ide_connected", json!({ "pid": std::process::id() })).await;
        eventually("the client to settle", || self.server.ide().clients().iter().all(|client| client.ready))
            .await;
        client
    }

    async fn control(&self) -> Client {
        let control = Engines::open(self.home.state_dir()).unwrap().running().remove(0).control;
        let handshake = self.handshake().without("X-Claude-Code-Ide-Authorization");
        Client::connect(self.server.port(), &handshake.and("X-Oarlock-Control", control.reveal())).await
    }
}

#[tokio::test]
async fn each_policy_decides_diffs_and_none_writes_the_file() {
    for (policy, wanted) in
        [(OnDiff::Accept, json!(["FILE_SAVED", "y\n"])), (OnDiff::Reject, json!(["DIFF_REJECTED"]))]
    {
        let headless = start(HeadlessEditor::new(policy)).await;
        let file = headless.home.file("a.py", "x\n");
        let mut client = headless.cli().await;
        let answer = client.call("openDiff", diff(&file, "y\n", "tab")).await;
        assert_eq!(json!(texts(&answer)), wanted);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
    }
}

#[tokio::test]
async fn a_diff_that_waits_is_decided_by_a_command_or_by_the_client() {
    let headless = start(HeadlessEditor::default()).await;
    let file = headless.home.file("a.py", "x\n");
    let (mut client, mut commands) = (headless.cli().await, headless.control().await);
    let ide = headless.server.ide();
    for (decision, wanted) in [
        ("oarlock/accept", json!(["FILE_SAVED", "y\n"])),
        ("oarlock/reject", json!(["DIFF_REJECTED"])),
        ("close_tab", json!(["DIFF_REJECTED"])),
    ] {
        let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        eventually("the diff to wait", || ide.diffs().len() == 1).await;
        if decision == "close_tab" {
            client.call("close_tab", json!({ "tab_name": "tab" })).await;
        } else {
            commands.request(decision, json!({ "tab": "tab" })).await;
        }
        assert_eq!(json!(texts(&client.answer(&id).await)), wanted, "{decision}");
        assert!(ide.diffs().is_empty());
    }
    client.settle_accounts().await;
}

#[tokio::test]
async fn a_reviewer_is_asked_and_told_when_it_is_decided_elsewhere() {
    struct Person(mpsc::Sender<&'static str>);
    impl Reviewer for Person {
        fn review(
            &self,
            request: OpenDiff,
            cancelled: Cancelled,
        ) -> futures_util::future::BoxFuture<'_, Result<DiffOutcome, EditorError>> {
            Box::pin(async move {
                if request.tab == "edit" {
                    return Ok(DiffOutcome::Accepted { contents: "mine\n".into() });
                }
                self.0.send("asked").await.unwrap();
                cancelled.cancelled().await;
                self.0.send("given up").await.unwrap();
                Ok(DiffOutcome::Closed)
            })
        }
    }
    let (told, mut heard) = mpsc::channel(8);
    let headless = start(HeadlessEditor::new(OnDiff::Ask(Arc::new(Person(told))))).await;
    let file = headless.home.file("a.py", "x\n");
    let mut client = headless.cli().await;
    let answer = client.call("openDiff", diff(&file, "y\n", "edit")).await;
    assert_eq!(texts(&answer), ["FILE_SAVED", "mine\n"]);
    let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    assert_eq!(heard.recv().await, Some("asked"));
    client.call("close_tab", json!({ "tab_name": "tab" })).await;
    assert_eq!(heard.recv().await, Some("given up"));
    assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
}

#[tokio::test]
async fn opening_a_file_really_selects_and_closing_it_clears() {
    let headless = start(HeadlessEditor::default()).await;
    let file = headless.home.file("é a.py", "def one():\r\n    return '𝒳b'\r\n");
    let mut client = headless.cli().await;
    let arguments =
        json!({ "filePath": file, "startText": "one", "endText": "𝒳", "selectToEndOfLine": true });
    client.call("openFile", arguments).await;
    let told = client.notification("selection_changed").await;
    assert_eq!(told["text"], "one():\r\n    return '𝒳b'");
    assert_eq!(told["selection"]["start"], json!({ "line": 0, "character": 4 }));
    assert_eq!(told["selection"]["end"], json!({ "line": 1, "character": 16 }));
    let current: Value =
        serde_json::from_str(text(&client.call("getCurrentSelection", json!({})).await)).unwrap();
    assert_eq!((&current["text"], &current["selection"]), (&told["text"], &told["selection"]));
    let tabs: Value = serde_json::from_str(text(&client.call("getOpenEditors", json!({})).await)).unwrap();
    assert_eq!(
        (&tabs[0]["label"], &tabs[0]["isActive"], &tabs[0]["languageId"]),
        (&json!("é a.py"), &json!(true), &json!("python"))
    );
    let missing = client.call("openFile", json!({ "filePath": file, "startText": "nine" })).await;
    assert!(text(&missing).contains("not found"), "{missing}");
    assert_eq!(client.notification("selection_changed").await["text"], "", "open, with nothing selected");
    client.call("close_tab", json!({ "tab_name": file })).await;
    assert!(client.notification("selection_changed").await.get("filePath").is_none());
    let saved = client.call("saveDocument", json!({ "filePath": file })).await;
    assert!(text(&saved).contains(r#""saved":false"#), "{saved}");
}

#[tokio::test]
async fn published_diagnostics_make_the_tool_appear() {
    let headless = start(HeadlessEditor::default()).await;
    let file = headless.home.file("a.py", "x\n");
    let (mut client, mut commands) = (headless.cli().await, headless.control().await);
    let uri = format!("file://{}", file.display());
    let listed = client.request("tools/list", Value::Null).await.to_string();
    assert!(!listed.contains("getDiagnostics") && !listed.contains("executeCode"));
    assert_eq!(text(&client.call("getDiagnostics", json!({})).await), "[]");
    let position = json!({ "line": 0, "character": 0 });
    let problem = json!({ "message": "broken", "severity": "Error", "range": { "start": position } });
    let publish = |problems: Value| json!({ "files": [{ "uri": uri, "diagnostics": problems }] });
    commands.request("oarlock/publishDiagnostics", publish(json!([problem]))).await;
    client.notification("notifications/tools/list_changed").await;
    assert!(client.request("tools/list", Value::Null).await.to_string().contains("getDiagnostics"));
    let answer = client.call("getDiagnostics", json!({ "uri": uri })).await;
    assert!(text(&answer).contains("broken"), "{answer}");
    commands.request("oarlock/publishDiagnostics", publish(json!([]))).await;
    assert_eq!(text(&client.call("getDiagnostics", json!({})).await), "[]");
}

#[tokio::test]
async fn a_formatter_is_a_program_of_the_users() {
    let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let headless = start(HeadlessEditor::default().with_formatter(command(&["sed", "-i", "s/x/y/"]))).await;
    let file = headless.home.file("a b.py", "x\n");
    let mut client = headless.cli().await;
    assert_eq!(text(&client.call("reformat_file", json!({ "file_path": file })).await), "OK");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "y\n");
    let headless = start(HeadlessEditor::default().with_formatter(command(&["false"]))).await;
    let file = headless.home.file("a.py", "x\n");
    let answer = headless.cli().await.call("reformat_file", json!({ "file_path": file })).await;
    assert!(is_tool_error(&answer).unwrap().contains("false"), "{answer}");
}

#[tokio::test]
async fn what_is_no_file_is_not_opened_and_holds_nobody_up() {
    let headless = start(HeadlessEditor::default()).await;
    let pipe = headless.home.workspace.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let (mut client, mut other) = (headless.cli().await, headless.cli().await);
    for path in [pipe, "/dev/zero".into(), headless.home.workspace.clone()] {
        let answer = client.call("openFile", json!({ "filePath": path })).await;
        assert!(is_tool_error(&answer).unwrap().contains("not a regular file"), "{answer}");
        other.ping().await;
    }
}

#[tokio::test]
async fn a_formatter_ends_with_its_call() {
    let headless = start(HeadlessEditor::default().with_formatter(
        ["sh", "-c", "echo $$ > \"$1.pid\"; exec sleep 60", "formatter"].map(String::from).into(),
    ))
    .await;
    let file = headless.home.file("a.py", "x\n");
    let mut client = headless.cli().await;
    let id = client.ask_tool("reformat_file", json!({ "file_path": file })).await;
    let note = headless.home.workspace.join("a.py.pid");
    let pid = || std::fs::read_to_string(&note).ok().and_then(|text| text.trim().parse::<u32>().ok());
    eventually("the formatter to start", || pid().is_some()).await;
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    client.answer(&id).await;
    let pid = pid().unwrap();
    eventually("the formatter to end", || !oarlock_ide::process::is_alive(pid)).await;
}

#[tokio::test]
async fn diffs_cannot_fill_the_memory() {
    let headless = start(HeadlessEditor::default()).await;
    let file = headless.home.file("a.py", "x\n");
    let mut client = headless.cli().await;
    let large = "x".repeat(50 << 20);
    for n in 0..5 {
        client.ask_tool("openDiff", diff(&file, &large, &n.to_string())).await;
    }
    let answer = client.call("openDiff", diff(&file, &large, "one too many")).await;
    assert!(is_tool_error(&answer).unwrap().contains("decide some of them first"), "{answer}");
    assert_eq!(headless.server.ide().diffs().len(), 5);
}

#[tokio::test]
async fn a_command_that_only_listens_does_not_delay_the_stop() {
    let headless = start(HeadlessEditor::default()).await;
    let mut idle = headless.control().await;
    idle.ping().await;
    let start = std::time::Instant::now();
    headless.server.stop().await;
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}
