//! Recorded traces.

mod host;

use std::time::Duration;

use host::{Host, kinds};
use oarlock_script::{Launch, Script};
use serde_json::json;

/// A permission, as the real CLI was recorded with it (shortened).
const PERMISSION: &str = r#"
{"t":0,"dir":"meta","msg":{"event":"spawn","args":[]}}
{"t":0.01,"dir":"in","msg":{"type":"control_request","request_id":"req_1","request":{"subtype":"initialize"}}}
{"t":0.2,"dir":"out","msg":{"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"commands":[],"models":[]}}}}
{"t":0.21,"dir":"in","msg":{"type":"user","message":{"role":"user","content":"recorded"},"uuid":"rec-uuid"}}
{"t":0.22,"dir":"out","msg":{"type":"system","subtype":"init","claude_code_version":"2.1.197","user_message_uuids":["rec-uuid"]}}
{"t":0.3,"dir":"out","msg":{"type":"control_request","request_id":"ask-1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{}}}}
{"t":0.31,"dir":"err","raw":"a warning"}
{"t":0.32,"dir":"in","msg":{"type":"control_response","response":{"subtype":"success","request_id":"ask-1","response":{"behavior":"allow"}}}}
{"t":0.5,"dir":"out","msg":{"type":"result","subtype":"success","is_error":false,"result":"done"}}
{"t":0.6,"dir":"in","msg":{"type":"control_request","request_id":"req_2","request":{"subtype":"get_usage"}}}
{"t":0.7,"dir":"out","msg":{"type":"control_response","response":{"subtype":"success","request_id":"req_2","response":{"recorded":true}}}}
{"t":0.8,"dir":"meta","msg":{"event":"close_stdin"}}
{"t":0.9,"dir":"meta","msg":{"event":"exit","rc":4}}
"#;

#[tokio::test]
async fn the_host_is_waited_for_and_ids_are_its_own() {
    let script = Script::parse(PERMISSION).expect("a trace");
    assert_eq!(script.version(), "2.1.197 (Claude Code)");
    let mut host = Host::start(script, Launch::default());
    // Another order and other ids than recorded, and a request that was never recorded.
    let usage = host.ask(json!({ "subtype": "get_usage" })).await;
    let version = host.request(json!({ "subtype": "get_binary_version" })).await;
    assert_eq!(version["response"]["version"], "2.1.197");
    host.initialize(json!({})).await;
    host.prompt_as("mine", "my-uuid").await;
    let init = host.until(|frame| frame["subtype"] == "init").await;
    assert_eq!(init["user_message_uuids"], json!(["my-uuid"]));
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, json!({ "behavior": "deny", "message": "x" })).await;
    host.until_result().await;
    let answer = host.until(|frame| frame["response"]["request_id"] == *usage).await;
    assert_eq!(answer["response"]["response"], json!({ "recorded": true }));
    let (outcome, stderr) = host.end().await;
    assert_eq!((outcome.code, stderr.as_str()), (4, "a warning\n"));
}

#[tokio::test]
async fn a_host_that_leaves_early_hears_the_rest_but_no_answer_it_did_not_ask_for() {
    let mut host = Host::start(Script::parse(PERMISSION).expect("a trace"), Launch::default());
    host.prompt("mine").await;
    host.close_input();
    host.until_result().await;
    assert!(host.next().await.is_none());
    assert_eq!(kinds(&host.seen), ["system init", "control_request can_use_tool", "result success"]);
}

#[tokio::test]
async fn it_can_be_played_in_its_own_time() {
    let script = Script::parse(PERMISSION).expect("a trace").at_speed(2.0);
    let mut host = Host::start(script, Launch::default());
    let started = tokio::time::Instant::now();
    host.initialize(json!({})).await;
    host.prompt("mine").await;
    host.until_request("can_use_tool").await;
    assert!(started.elapsed() >= Duration::from_millis(130), "{:?}", started.elapsed());
}

#[tokio::test]
async fn bare_frames_answer_the_first_prompt() {
    let frames = "{\"type\":\"system\",\"subtype\":\"init\"}\r\n[debug] x\n\u{2028}\n{\"type\":\"result\",\"subtype\":\"new\"}\n";
    let mut host = Host::start(Script::parse(frames).expect("frames"), Launch::default());
    host.initialize(json!({})).await;
    host.prompt("mine").await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.extend(host.line().await.expect("a line"));
    }
    assert_eq!(String::from_utf8(lines).expect("text"), frames, "byte for byte");
    assert_eq!(host.end().await.0.code, 0);
}

#[tokio::test]
async fn a_cli_that_ended_by_itself_does_so_again() {
    let trace = r#"{"t":0,"dir":"out","msg":{"type":"result","subtype":"error_during_execution"}}
{"t":0.1,"dir":"meta","msg":{"event":"eof"}}
{"t":0.15,"dir":"in","msg":{"type":"user"}}
{"t":0.2,"dir":"meta","msg":{"event":"close_stdin"}}
{"t":0.3,"dir":"meta","msg":{"event":"exit","rc":1}}"#;
    let mut host = Host::start(Script::parse(trace).expect("a trace"), Launch::default());
    host.until_result().await;
    assert_eq!(host.end_of_its_own().await.0.code, 1);
}
