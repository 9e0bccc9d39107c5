//! The commands, as a person or a script uses them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use oarlock_testkit::cli::Sandbox;
use oarlock_testkit::engine::{Engine, Oarlock};
use oarlock_testkit::mcp::McpClient;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

struct Rig {
    sandbox: Sandbox,
    oarlock: Oarlock,
    engine: Engine,
    client: McpClient,
}

async fn rig(arguments: &[&str]) -> Rig {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    let engine = oarlock.serve(arguments).await.unwrap();
    let client = engine.client().await.unwrap();
    client.initialize().await.unwrap();
    client.ide_connected().await.unwrap();
    Rig { sandbox, oarlock, engine, client }
}

impl Rig {
    /// Proposes contents for a file; the request's id and the diff's short id.
    async fn propose(&self, name: &str, contents: &str) -> (i64, String) {
        let mark = self.engine.events().len();
        let file = self.sandbox.work().join(name);
        let arguments = json!({
            "old_file_path": file, "new_file_path": file, "new_file_contents": contents, "tab_name": format!("tab {name}"),
        });
        let call = json!({ "name": "openDiff", "arguments": arguments });
        let id = self.client.start("tools/call", call).await.unwrap();
        let opened = self.engine.event_after(mark, "diff_opened", SOON, |_| true).await.unwrap();
        (id, opened["diff"].as_str().unwrap().to_owned())
    }

    async fn texts(&self, id: i64) -> Vec<String> {
        let answer = self.client.answer(id, SOON).await.unwrap();
        let content = answer["content"].as_array().unwrap();
        content.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    }

    fn json(&self, text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }
}

#[tokio::test]
async fn diffs_are_listed_accepted_changed_and_rejected() {
    let rig = rig(&[]).await;
    rig.sandbox.write("a.txt", "old\n").unwrap();
    let (id, short) = rig.propose("a.txt", "new\n").await;
    let listed = rig.json(&rig.engine.ide(&["diffs", "--json"]).await.unwrap());
    assert_eq!(listed["diffs"][0]["diff"], short);
    let shown = rig.engine.ide(&["diffs", "-p"]).await.unwrap();
    assert!(shown.contains("- old") && shown.contains("+ new"), "{shown}");
    rig.engine.ide(&["accept", &short]).await.unwrap();
    assert_eq!(rig.texts(id).await, ["FILE_SAVED", "new\n"]);

    let mine = rig.sandbox.write("mine.txt", "my own\n").unwrap();
    let (id, _) = rig.propose("a.txt", "new\n").await;
    rig.engine.ide(&["accept", "a.txt", "--contents", mine.to_str().unwrap()]).await.unwrap();
    assert_eq!(rig.texts(id).await, ["FILE_SAVED", "my own\n"]);

    let (id, _) = rig.propose("a.txt", "new\n").await;
    rig.engine.ide(&["reject", "tab a.txt"]).await.unwrap();
    assert_eq!(rig.texts(id).await, ["DIFF_REJECTED"]);
    assert_eq!(std::fs::read_to_string(rig.sandbox.work().join("a.txt")).unwrap(), "old\n");
}

#[tokio::test]
async fn an_ambiguous_or_unknown_diff_is_an_error_with_the_list() {
    let rig = rig(&[]).await;
    let (first, short) = rig.propose("a.txt", "one\n").await;
    let (second, _) = rig.propose("a.txt", "two\n").await;
    let port = rig.engine.port().to_string();
    for name in ["a.txt", "nowhere.txt", "77"] {
        let output = rig.oarlock.output(&["ide", "accept", name, "--engine", &port]).await.unwrap();
        assert_eq!(output.status.code(), Some(3), "{name}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&short) && said.contains("tab a.txt"), "{said}");
    }
    let arguments = ["ide", "accept", &short, "--contents", "no-such-file", "--engine", &port];
    let missing = rig.oarlock.output(&arguments).await.unwrap();
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nothing was accepted"));
    rig.engine.ide(&["reject", &short]).await.unwrap();
    assert_eq!(rig.texts(first).await, ["DIFF_REJECTED"]);
    rig.engine.ide(&["reject", "a.txt"]).await.unwrap();
    assert_eq!(rig.texts(second).await, ["DIFF_REJECTED"]);
}

#[tokio::test]
async fn selections_mentions_and_pauses_reach_the_client() {
    let rig = rig(&[]).await;
    rig.sandbox.write("sub dir/é.py", "x = 1\ny = 2\nz = 3\n").unwrap();
    rig.engine.ide(&["select", "sub dir/é.py:2-3"]).await.unwrap();
    let told = rig.client.notification("selection_changed", SOON).await.unwrap();
    assert_eq!(told["text"], "y = 2\nz = 3");
    rig.engine.ide(&["mention", "sub dir/é.py:1-2"]).await.unwrap();
    let told = rig.client.notification("at_mentioned", SOON).await.unwrap();
    assert_eq!(
        told,
        json!({
            "filePath": rig.sandbox.work().join("sub dir/é.py"), "lineStart": 0, "lineEnd": 1,
        })
    );
    rig.engine.ide(&["pause"]).await.unwrap();
    let cleared = |m: &Value| m["method"] == "selection_changed" && m["params"].get("filePath").is_none();
    rig.client.message("a cleared selection", SOON, cleared).await.unwrap();
    let port = rig.engine.port().to_string();
    let refused = rig.oarlock.output(&["ide", "mention", "sub dir/é.py", "--engine", &port]).await.unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("paused"));
    rig.engine.ide(&["resume"]).await.unwrap();
    let unknown = rig
        .oarlock
        .output(&["ide", "mention", "sub dir/é.py", "--to", "1", "--engine", &port])
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no connected Claude Code session has pid 1"));
}

#[tokio::test]
async fn ide_mcp_10_published_diagnostics_add_a_tool_and_are_answered() {
    let rig = rig(&[]).await;
    let names = |list: &Value| -> Vec<String> {
        let tools = list["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = rig.client.request("tools/list", json!({})).await.unwrap();
    assert!(!names(&before).contains(&"getDiagnostics".to_owned()));
    let file = rig.sandbox.write("a.py", "x\n").unwrap();
    let uri = format!("file://{}", file.display());
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    let list = json!([{ "uri": uri, "diagnostics": [
        { "message": "undefined name", "severity": 1, "range": range, "code": 821, "source": "lint" }
    ]}]);
    let input = rig.sandbox.write("problems.json", list.to_string()).unwrap();
    rig.engine.ide(&["diagnostics", input.to_str().unwrap()]).await.unwrap();
    rig.client.notification("notifications/tools/list_changed", SOON).await.unwrap();
    let after = rig.client.request("tools/list", json!({})).await.unwrap();
    assert!(names(&after).contains(&"getDiagnostics".to_owned()));
    let answer = rig.client.call("getDiagnostics", json!({ "uri": uri })).await.unwrap();
    let files = rig.json(answer["content"][0]["text"].as_str().unwrap());
    assert_eq!(files[0]["uri"], uri);
    assert_eq!(files[0]["diagnostics"][0]["severity"], "Error");
    assert_eq!(files[0]["diagnostics"][0]["code"], "821");
}

#[tokio::test]
async fn watching_shows_what_happens() {
    let rig = rig(&[]).await;
    let mut watch = Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .args(["ide", "watch", "--json", "--engine", &rig.engine.port().to_string()])
        .env_clear()
        .envs(rig.sandbox.environment(None).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let first = tokio::task::spawn_blocking(move || (lines.next().unwrap(), lines)).await.unwrap();
    assert_eq!(first.0["event"], "watching");
    rig.client.call("getWorkspaceFolders", json!({})).await.unwrap();
    let mut lines = first.1;
    let call =
        tokio::task::spawn_blocking(move || lines.find(|event| event["event"] == "tool_call").unwrap());
    let call = tokio::time::timeout(SOON, call).await.unwrap().unwrap();
    assert_eq!(call["tool"], "getWorkspaceFolders");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[tokio::test]
async fn tools_can_be_called_from_the_command_line() {
    let rig = rig(&[]).await;
    let folders = rig.json(&rig.engine.ide(&["call", "getWorkspaceFolders"]).await.unwrap());
    assert_eq!(folders["rootPath"], rig.sandbox.work().to_str().unwrap());
    let port = rig.engine.port().to_string();
    let wrong = rig.oarlock.output(&["ide", "call", "openFile", "--engine", &port]).await.unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("missing field `filePath`"));
    let bad = rig.oarlock.output(&["ide", "call", "openFile", "{", "--engine", &port]).await.unwrap();
    assert_eq!(bad.status.code(), Some(2));
    let arguments = ["ide", "call", "openFile", "{\"filePath\":\"/nowhere/x\"}", "--engine", &port];
    let failed = rig.oarlock.output(&arguments).await.unwrap();
    assert_eq!(failed.status.code(), Some(4));
}

#[tokio::test]
async fn the_configuration_for_other_clients_is_private_and_works() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = rig(&[]).await;
    let path = rig.engine.ide(&["config"]).await.unwrap();
    let path = std::path::Path::new(path.trim());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let server = &config["mcpServers"]["oarlock"];
    let token = server["headers"]["X-Claude-Code-Ide-Authorization"].as_str().unwrap();
    let client = McpClient::connect(rig.engine.port(), token).await.unwrap();
    client.initialize().await.unwrap();
    let tools = client.request("tools/list", json!({})).await.unwrap().to_string();
    assert!(tools.contains("getWorkspaceFolders") && !tools.contains("openDiff"), "{tools}");
}

#[tokio::test]
async fn mcp_over_stdio_works_with_and_without_an_engine() {
    for with_engine in [true, false] {
        let mut rig = rig(&[]).await;
        if !with_engine {
            rig.engine.stop().await.unwrap();
        }
        let mut mcp = Command::new(env!("CARGO_BIN_EXE_oarlock"))
            .arg("mcp")
            .env_clear()
            .envs(rig.sandbox.environment(None).unwrap())
            .current_dir(rig.sandbox.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = mcp.stdin.take().unwrap();
        for message in [
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
            json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": { "name": "getWorkspaceFolders" } }),
        ] {
            writeln!(stdin, "{message}").unwrap();
        }
        drop(stdin);
        let output = tokio::task::spawn_blocking(move || mcp.wait_with_output().unwrap());
        let output = tokio::time::timeout(SOON, output).await.unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 3, "with an engine: {with_engine}: {text}");
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert!(answers[1]["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 3));
        assert!(answers[2]["result"]["content"][0]["text"].as_str().unwrap().contains("rootPath"));
    }
}

#[tokio::test]
async fn the_demo_runs_unattended_and_asks_for_a_terminal_otherwise() {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    let shown = oarlock.run(&["demo", "--yes"]).await.unwrap();
    assert!(shown.contains("FILE_SAVED") && shown.contains("selection_changed"), "{shown}");
    let asked = oarlock.output(&["demo"]).await.unwrap();
    assert_eq!(asked.status.code(), Some(2));
}

#[tokio::test]
async fn without_an_engine_a_command_says_how_to_start_one() {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    let output = oarlock.output(&["ide", "diffs"]).await.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("oarlock serve"));
}

#[tokio::test]
async fn a_withheld_selection_is_not_called_shared_and_a_repeated_one_is_sent_again() {
    let rig = rig(&[]).await;
    rig.sandbox.write("a.py", "x = 1\n").unwrap();
    rig.sandbox.write(".env", "KEY=1\n").unwrap();
    let said = rig.engine.ide(&["select", ".env"]).await.unwrap();
    assert!(said.contains("nothing of it is shared"), "{said}");
    for _ in 1..=2 {
        let mark = rig.client.received().len();
        rig.engine.ide(&["select", "a.py:1"]).await.unwrap();
        let shared = |m: &Value| m["method"] == "selection_changed" && m["params"]["text"] == "x = 1";
        rig.client.received().wait_after(mark, "the selection", SOON, shared).await.unwrap();
    }
}

#[tokio::test]
async fn a_command_takes_nothing_away_from_a_session_that_is_still_to_come() {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    let file = sandbox.write("a.py", "x = 1\n").unwrap();
    let engine = oarlock.serve(&[]).await.unwrap();
    engine.ide(&["mention", "a.py"]).await.unwrap();
    engine.ide(&["call", "getWorkspaceFolders"]).await.unwrap();
    let client = engine.client().await.unwrap();
    client.initialize().await.unwrap();
    client.ide_connected().await.unwrap();
    let told = client.notification("at_mentioned", SOON).await.unwrap();
    assert_eq!(told["filePath"], file.to_str().unwrap());
}

#[tokio::test]
async fn a_second_engine_for_a_directory_is_warned_of() {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    let _first = oarlock.serve(&[]).await.unwrap();
    let mut second = oarlock.serve(&[]).await.unwrap();
    second.complaint_with("will not connect here", SOON).await.unwrap();
    second.stop().await.unwrap();
}
