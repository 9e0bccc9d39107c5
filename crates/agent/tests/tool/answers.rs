//! What functions are given, and what becomes of what they return.

use std::collections::BTreeMap;

use oarlock_agent::stream::Json;
use oarlock_agent::tool::schemars::JsonSchema;
use oarlock_agent::tool::{
    Client, Image, NoArgs, Server as _, Structured, Tool, ToolCx, ToolError, ToolOutput, ToolServer,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::host::Host;
use crate::{Point, calc};

#[tokio::test]
async fn wrong_arguments_are_answered_with_the_field_and_the_reason() {
    let host = Host::new(calc());
    let text = async |args: Value| host.error_text("add", args).await;
    assert_eq!(
        text(json!({"a": "x", "b": 1})).await,
        "the arguments of `add` do not fit: field `a`: invalid type: string \"x\", expected f64"
    );
    assert_eq!(text(json!({"a": 1})).await, "the arguments of `add` do not fit: missing field `b`");
    let nested = text(json!({"a": 1, "b": 2, "points": [{"x": 1, "y": 1}, {"x": null, "y": 1}]})).await;
    assert!(nested.contains("field `points[1].x`"), "{nested}");
    assert!(text(json!("1 and 2")).await.contains("do not fit"));
    assert!(text(Value::Null).await.contains("missing field `a`"));
}

#[tokio::test]
async fn half_a_character_in_the_arguments_is_read_as_a_replacement() {
    let echo = Tool::new("echo", async |args: BTreeMap<String, String>| args["text"].clone());
    let host = Host::new(ToolServer::new("s").tool(echo));
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",
        "params":{"name":"echo","arguments":{"text":"x\ud83d"}}}"#;
    let answer = host.raw(serde_json::from_str(request).unwrap()).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "x\u{fffd}", "{answer}");
}

#[tokio::test]
async fn tools_without_arguments_take_any() {
    let cx_only = Tool::new("cx", |_: NoArgs, cx: ToolCx| async move {
        format!("{:?} {}", cx.tool_use_id(), cx.meta().value()["more"])
    });
    let host = Host::new(ToolServer::new("s").tool(Tool::new("one", async || 1)).tool(cx_only));
    for arguments in [json!({}), Value::Null, json!({"stray": true})] {
        assert_eq!(host.call("one", arguments).await["content"][0]["text"], "1");
    }
    let params = json!({"name": "cx", "_meta": {"claudecode/toolUseId": "toolu_1", "more": 7}});
    let answer = host.ask("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Some(\"toolu_1\") 7");
    // Remarks of another shape do not matter.
    let answer = host.ask("tools/call", json!({"name": "cx", "_meta": 1})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "None null");
}

#[tokio::test]
async fn raw_tools_get_their_arguments_as_they_came() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let raw = Tool::raw("q", schema.clone(), |args: Json, _: ToolCx| async move { args.text().to_owned() });
    let host = Host::new(ToolServer::new("s").tool(raw));
    assert_eq!(host.call("q", json!({"q": [1, 2]})).await["content"][0]["text"], r#"{"q":[1,2]}"#);
    assert_eq!(host.ask("tools/list", Value::Null).await["result"]["tools"][0]["inputSchema"], schema);
}

#[tokio::test]
async fn structured_answers_have_data_text_and_a_schema_that_they_keep() {
    #[derive(Serialize, JsonSchema)]
    // Only what is written counts, not what could be read.
    #[serde(rename_all(serialize = "camelCase"))]
    struct Path {
        way_points: Vec<Point>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    let tool = Tool::new("path", async || {
        Ok::<_, ToolError>(Structured(Path { way_points: vec![Point { x: 1, y: 2 }], note: None }))
    });
    let host = Host::new(ToolServer::new("s").tool(tool));
    let answer = host.call("path", json!({})).await;
    assert_eq!(answer["structuredContent"], json!({"wayPoints": [{"x": 1, "y": 2}]}));
    let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, answer["structuredContent"]);
    let list = host.ask("tools/list", Value::Null).await;
    let validator = jsonschema::draft202012::new(&list["result"]["tools"][0]["outputSchema"]).unwrap();
    assert!(validator.is_valid(&answer["structuredContent"]), "{list}");
    assert!(!validator.is_valid(&json!({"wayPoints": [{"x": 1}]})), "{list}");
}

#[tokio::test]
async fn pictures_and_remarks_are_passed_on() {
    let tool = Tool::new("plot", async || ToolOutput::text("see").with(Image::png(b"\x89PNG")).meta("ms", 3));
    let host = Host::new(ToolServer::new("s").tool(tool));
    assert_eq!(
        host.call("plot", json!({})).await,
        json!({
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            ],
            "_meta": {"ms": 3},
        })
    );
}

#[tokio::test]
async fn a_failing_tool_can_answer_with_a_json_rpc_error() {
    let tool = Tool::new("no", async || Err::<(), _>(ToolError::protocol(-32042, "go away")));
    let host = Host::new(ToolServer::new("s").tool(tool));
    let answer = host.ask("tools/call", json!({"name": "no"})).await;
    assert_eq!(answer["error"], json!({"code": -32042, "message": "go away"}));
}

#[tokio::test]
async fn progress_goes_to_the_cli_with_its_token_and_only_if_asked_for() {
    let tool = Tool::new("work", |_: NoArgs, cx: ToolCx| async move {
        cx.progress(1.0, Some(3.0), "half way").await;
        cx.progress(2.0, None, "").await;
    });
    let host = Host::new(ToolServer::new("s").tool(tool));
    host.call("work", json!({})).await;
    assert_eq!(host.sent(), Vec::<Value>::new());
    host.ask("tools/call", json!({"name": "work", "_meta": {"progressToken": "t-1"}})).await;
    let progress = |params| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    assert_eq!(
        host.sent(),
        [
            progress(json!({"progressToken": "t-1", "progress": 1.0, "total": 3.0, "message": "half way"})),
            progress(json!({"progressToken": "t-1", "progress": 2.0})),
        ]
    );
    // Without anybody to report to, the tool still works.
    let request = json!({
        "id": 1, "method": "tools/call", "params": {"name": "work", "_meta": {"progressToken": 1}},
    });
    let answer = host.server.message(request.into(), Client::default()).await.unwrap();
    assert_eq!(answer.value()["result"], json!({"content": []}));
}
