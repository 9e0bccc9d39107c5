//! What real CLIs said, word for word, played to the engine.
//!
//! Each file of `fixtures/replay` is one recorded connection: lines `{"in": …}` are the client's messages, lines
//! `{"out": …}` say how the recording server answered, with `texts` of a tool's result. The engine must answer every
//! request once, and with a result wherever there was one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Client, Rig, texts};

/// The recorded lines of one connection.
struct Recording {
    name: String,
    lines: Vec<Value>,
}

fn recordings() -> Vec<Recording> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/replay");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| Recording {
        name: path.file_name().unwrap().to_str().unwrap().to_owned(),
        lines: std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect(),
    };
    paths.into_iter().map(read).collect()
}

struct Replay {
    rig: Rig,
    client: Client,
    /// The tool that each request called, by its id.
    called: HashMap<String, String>,
}

impl Replay {
    async fn new() -> Self {
        let rig = Rig::start().await;
        let client = rig.client().await;
        Self { rig, client, called: HashMap::new() }
    }

    async fn say(&mut self, message: &Value) {
        if let Some(tool) = message["params"]["name"].as_str() {
            self.called.insert(message["id"].to_string(), tool.to_owned());
        }
        self.client.send(message).await;
    }

    /// Has the engine give the answer that was recorded, as far as it should.
    async fn compare(&mut self, recorded: &Value) {
        let id = &recorded["id"];
        let tool = self.called.get(&id.to_string()).map(String::as_str);
        let said: Option<Vec<&str>> = recorded["texts"]
            .as_array()
            .map(|texts| texts.iter().map(|text| text.as_str().unwrap()).collect());
        if tool == Some("openDiff") {
            let shown = self.rig.editor.shown().await;
            match said.as_deref() {
                Some(["FILE_SAVED", contents]) => shown.accept_as(contents),
                // The recording server said TAB_CLOSED when the person closed the view, and the file was written.
                Some(["DIFF_REJECTED"]) => shown.reject(),
                Some(["TAB_CLOSED"]) => shown.close(),
                other => panic!("an answer to openDiff that is not known: {other:?}"),
            }
        }
        let answer = self.client.answer(id).await;
        if recorded.get("error").is_some() {
            return;
        }
        assert!(answer["result"].is_object(), "{answer}");
        match (tool, said.as_deref()) {
            (Some("openDiff"), Some(["TAB_CLOSED"])) => assert_eq!(texts(&answer), ["DIFF_REJECTED"]),
            (Some("getDiagnostics"), _) => {
                let list: Value = serde_json::from_str(texts(&answer)[0]).unwrap();
                assert!(list.is_array(), "{answer}");
            }
            (Some("executeCode"), _) => assert_eq!(answer["result"]["content"][1]["type"], "image"),
            (_, Some(said)) => assert_eq!(texts(&answer), said),
            (_, None) => {}
        }
    }
}

#[tokio::test]
async fn ide_mcp_08_every_recorded_request_is_answered_once_and_in_the_recorded_shape() {
    let recordings = recordings();
    assert!(recordings.len() >= 20, "the recordings are there");
    for Recording { name, lines } in recordings {
        let replay = async {
            let mut replay = Replay::new().await;
            for line in &lines {
                match (line.get("in"), line.get("out")) {
                    (Some(message), _) => replay.say(message).await,
                    (None, Some(recorded)) => replay.compare(recorded).await,
                    _ => panic!("a line that is neither: {line}"),
                }
            }
            // What the recording server held for ever ends when its tab is closed, at the latest here.
            let close = json!({ "name": "closeAllDiffTabs", "arguments": {} });
            let id = json!("the end");
            replay
                .client
                .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": close }))
                .await;
            replay.client.answer(&id).await;
            let last = json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" });
            replay.client.send(&last).await;
            replay.client.answer(&json!("last")).await;
            replay.client.assert_one_answer_each();
            assert!(!replay.client.heard.iter().any(|text| text.contains("-326")), "no error in {name}");
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), replay)
            .await
            .unwrap_or_else(|_| panic!("{name} hangs"));
    }
}

#[test]
fn the_recordings_hold_every_call_that_the_cli_is_known_to_make() {
    let recordings = recordings();
    let said: Vec<String> =
        recordings.iter().flat_map(|recording| &recording.lines).map(ToString::to_string).collect();
    for word in [
        "\"initialize\"",
        "ide_connected",
        "tools/list",
        "closeAllDiffTabs",
        "openDiff",
        "close_tab",
        "getDiagnostics",
        "executeCode",
        "notifications/cancelled",
        "claudecode/toolUseId",
        "2.1.197",
        "2.1.325",
    ] {
        assert!(said.iter().any(|line| line.contains(word)), "{word}");
    }
}
