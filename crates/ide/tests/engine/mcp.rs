//! The protocol itself: versions, ids, errors, lists, cancellation.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use oarlock_ide::editor::Abilities;
use oarlock_ide::tools::TABLE;
use oarlock_proto::ide::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    ALL, Call, Client, Mood, Rig, diff, error_code, is_tool_error, selection, text, texts, within,
};

const MOMENT: Duration = Duration::from_millis(150);

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

async fn tools(client: &mut Client) -> Vec<String> {
    let answer = client.request("tools/list", Value::Null).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn ide_mcp_01_initialize_says_who_answers() {
    let rig = Rig::start().await;
    let mut client = rig.client().await;
    let start = Instant::now();
    let answer = client.request("initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    assert!(start.elapsed() < Duration::from_secs(1));
    let schema = json!({
        "type": "object", "required": ["protocolVersion", "capabilities", "serverInfo"],
        "properties": {
            "protocolVersion": { "enum": ["2025-11-25"] },
            "capabilities": {
                "type": "object", "required": ["tools"],
                "properties": { "tools": { "type": "object", "required": ["listChanged"] } },
            },
            "serverInfo": {
                "type": "object", "required": ["name", "version"],
                "properties": {
                    "name": { "type": "string", "minLength": 1 },
                    "version": { "type": "string", "minLength": 1 },
                },
            },
        },
    });
    jsonschema::validate(&schema, &answer["result"]).unwrap_or_else(|error| panic!("{error}: {answer}"));
}

#[tokio::test]
async fn ide_mcp_02_known_versions_are_echoed_in_handshakes() {
    let rig = Rig::start().await;
    for (asked, answered) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1.0", "2025-11-25"),
        ("2099-12-31", "2025-11-25"),
    ] {
        let mut client = rig.client().await;
        let answer = client.request("initialize", json!({ "protocolVersion": asked })).await;
        assert_eq!(answer["result"]["protocolVersion"], answered, "{asked}");
    }
}

#[tokio::test]
async fn ide_mcp_03_ids_of_every_kind_come_back_as_they_were() {
    let rig = Rig::start().await;
    let mut client = rig.client().await;
    for id in [
        "0",
        "-1",
        "18446744073709551616",
        "123456789012345678901234567890",
        "1.5",
        "1e3",
        r#""""#,
        r#""0""#,
        r#""é \u00e9 \n""#,
        r#""a\"b""#,
    ] {
        client.socket.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        let answer = client.socket.message().await.unwrap();
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn ide_mcp_04_missing_params_unknown_fields_and_any_order_are_taken() {
    let rig = Rig::start().await;
    let mut client = rig.client().await;
    for (sent, id) in [
        (r#"{"id":1,"method":"ping","jsonrpc":"2.0"}"#, 1),
        (r#"{"method":"tools/list","jsonrpc":"2.0","id":2}"#, 2),
        (r#"{"params":null,"method":"tools/list","jsonrpc":"2.0","id":3}"#, 3),
        (r#"{"extra":{"deep":[1]},"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":1},"more":null}"#, 4),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"getWorkspaceFolders"}}"#, 5),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":
                {"_meta":{"progressToken":6,"x":1},"arguments":{"unknown":true},"name":"getWorkspaceFolders"}}"#,
            6,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#, 7),
        ("  {\"jsonrpc\":\"2.0\",\n\"id\":8,\t\"method\":\"pi\\u006eg\"}\n", 8),
    ] {
        client.socket.send_text(sent).await;
        let answer = client.answer(&json!(id)).await;
        assert!(answer.get("result").is_some(), "{sent}: {answer}");
    }
}

#[tokio::test]
async fn ide_mcp_05_ping_is_answered_also_while_a_diff_is_open() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    client.ping().await;
    let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    let shown = rig.editor.shown().await;
    for _ in 0..20 {
        let start = Instant::now();
        client.ping().await;
        assert!(start.elapsed() < Duration::from_millis(500));
    }
    shown.reject();
    client.answer(&id).await;
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_06_an_unknown_method_is_refused_once_and_an_unknown_notification_is_passed_over() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    for method in
        ["nope", "", "tools", "Ping", "sampling/createMessage", "ide_connected", "readFile", "oarlock/status"]
    {
        let answer = client.request(method, json!({})).await;
        assert_eq!(error_code(&answer), -32601, "{answer}");
    }
    for method in ["nope", "tools/call", "notifications/nope", "initialize", ""] {
        client.notify(method, json!({ "name": "getWorkspaceFolders" })).await;
    }
    client.settle_accounts().await;
    let long = client.request(&"x".repeat(100_000), Value::Null).await;
    assert!(message(&long).len() < 1000, "a long name is not sent back whole");
}

#[tokio::test]
async fn ide_mcp_07_what_is_no_message_is_refused_and_the_connection_lives() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    for (sent, id, code) in [
        ("", "null", -32700),
        ("{", "null", -32700),
        ("nope", "null", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, "null", -32700),
        (r#"{"id":1,"method":"ping"}}"#, "null", -32700),
        ("[]", "null", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "null", -32600),
        ("5", "null", -32600),
        ("null", "null", -32600),
        (r#""ping""#, "null", -32600),
        ("{}", "null", -32600),
        (r#"{"jsonrpc":"2.0","id":7}"#, "7", -32600),
        (r#"{"jsonrpc":"1.0","id":8,"method":"ping"}"#, "8", -32600),
        (r#"{"jsonrpc":"2.0","id":9,"method":5}"#, "9", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "null", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "null", -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, "null", -32600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "null", -32600),
    ] {
        client.socket.send_text(sent).await;
        let answer = client.receive().await;
        assert_eq!((answer["id"].to_string().as_str(), error_code(&answer)), (id, code), "{sent}");
        assert!(!message(&answer).is_empty());
    }
    client.ping().await;
}

#[tokio::test]
async fn ide_mcp_07_deeply_nested_input_is_survived() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    client.socket.send_text(&"[".repeat(200_000)).await;
    assert_eq!(error_code(&client.receive().await), -32700);
    client.socket.send_text(&deep).await;
    assert_eq!(error_code(&client.receive().await), -32600);
    for (id, text) in [
        (1, format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#)),
        (2, format!(r#"{{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"x":{deep}}}}}"#)),
        (
            3,
            format!(
                r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"openFile","arguments":{deep}}}}}"#
            ),
        ),
        (
            4,
            format!(
                r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"openFile","arguments":{{"filePath":{deep}}}}}}}"#
            ),
        ),
    ] {
        client.socket.send_text(&text).await;
        assert_eq!(client.receive().await["id"], id);
    }
    client.ping().await;
}

#[tokio::test]
async fn ide_mcp_07_answers_to_nothing_are_passed_over() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    for sent in [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":null}"#,
    ] {
        client.socket.send_text(sent).await;
    }
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_07_a_wrong_argument_is_named_with_the_reason() {
    let rig = Rig::start().await;
    let mut client = rig.cli().await;
    for (tool, arguments, words) in [
        ("openDiff", json!({ "new_file_contents": "" }), ["old_file_path", "missing"]),
        ("openDiff", json!({ "old_file_path": "/w/a" }), ["new_file_contents", "missing"]),
        ("openDiff", json!({ "old_file_path": 5, "new_file_contents": "" }), ["old_file_path", "string"]),
        (
            "openDiff",
            json!({ "old_file_path": "a.py", "new_file_contents": "" }),
            ["old_file_path", "absolute"],
        ),
        ("openDiff", diff("b.py".as_ref(), "", "t"), ["old_file_path", "absolute"]),
        (
            "openDiff",
            json!({ "old_file_path": "/w/a", "new_file_path": "a", "new_file_contents": "" }),
            ["new_file_path", "absolute"],
        ),
        (
            "openDiff",
            json!({ "old_file_path": "/w/a", "new_file_contents": "", "tab_name": [] }),
            ["tab_name", "string"],
        ),
        ("openDiff", json!({ "old_file_path": "/w/\0", "new_file_contents": "" }), ["old_file_path", "NUL"]),
        ("openFile", json!({}), ["filePath", "missing"]),
        ("openFile", json!({ "filePath": "/w/a", "preview": "yes" }), ["preview", "boolean"]),
        ("openFile", json!({ "filePath": null }), ["filePath", "string"]),
        ("open_files", json!({ "file_paths": "/w/a" }), ["file_paths", "array"]),
        ("open_files", json!({ "file_paths": ["/w/a", 1] }), ["file_paths", "string"]),
        ("open_files", json!({ "file_paths": ["a"] }), ["file_paths", "absolute"]),
        ("close_tab", json!({}), ["tab_name", "missing"]),
        ("getDiagnostics", json!({ "uri": 5 }), ["uri", "string"]),
        ("checkDocumentDirty", json!({}), ["filePath", "missing"]),
        ("saveDocument", json!({ "filePath": {} }), ["filePath", "string"]),
        ("reformat_file", json!({}), ["file_path", "missing"]),
        ("executeCode", json!({}), ["code", "missing"]),
        ("openFile", json!([]), ["arguments", "object"]),
        ("openFile", json!("x"), ["arguments", "object"]),
    ] {
        let answer = client.call(tool, arguments.clone()).await;
        assert_eq!(error_code(&answer), -32602, "{tool} {arguments}");
        for word in words {
            assert!(message(&answer).contains(word), "{tool} {arguments}: {answer}");
        }
    }
    assert_eq!(rig.editor.calls(), [], "the editor was not bothered");
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_07_a_wrong_parameter_of_a_method_is_named_too() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    for (method, params, field) in [
        ("initialize", json!({ "protocolVersion": 5 }), "protocolVersion"),
        ("initialize", json!({ "clientInfo": "me" }), "clientInfo"),
        ("tools/call", json!({}), "name"),
        ("tools/call", json!({ "name": 5 }), "name"),
        ("tools/call", json!({ "name": "ping", "_meta": 5 }), "_meta"),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(error_code(&answer), -32602, "{method} {params}");
        assert!(message(&answer).contains(field), "{method} {params} must name `{field}`: {answer}");
    }
    for (method, params) in
        [("initialize", json!([])), ("tools/call", json!("x")), ("tools/call", json!([1]))]
    {
        assert_eq!(error_code(&client.request(method, params).await), -32602);
    }
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_08_every_request_gets_exactly_one_answer_whatever_the_editor_does() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    let methods = [
        ("open_file", "openFile", json!({ "filePath": file })),
        ("open_file", "open_files", json!({ "file_paths": [file] })),
        ("open_diff", "openDiff", diff(&file, "y\n", "tab")),
        ("selection", "getCurrentSelection", json!({})),
        ("documents", "getOpenEditors", json!({})),
        ("documents", "get_all_opened_file_paths", json!({})),
        ("documents", "checkDocumentDirty", json!({ "filePath": file })),
        ("diagnostics", "getDiagnostics", json!({})),
        ("save", "saveDocument", json!({ "filePath": file })),
        ("format", "reformat_file", json!({ "file_path": file })),
        ("close_tab", "close_tab", json!({ "tab_name": "other" })),
        ("execute", "executeCode", json!({ "code": "1" })),
    ];
    for mood in [Mood::Failing, Mood::Panicking] {
        for (method, tool, arguments) in &methods {
            rig.editor.set(method, mood);
            let answer = client.call(tool, arguments.clone()).await;
            assert!(answer["result"]["content"][0]["text"].is_string(), "{tool}: {answer}");
            if mood == Mood::Panicking {
                let why = is_tool_error(&answer).unwrap_or_else(|| panic!("{tool}: {answer}"));
                assert!(why.contains("panicked"), "{tool}: {why}");
            }
        }
    }
    rig.editor.set("abilities", Mood::Panicking);
    assert_eq!(error_code(&client.request("tools/list", Value::Null).await), -32603);
    rig.editor.set("abilities", Mood::Ready);
    client.settle_accounts().await;
}

#[tokio::test]
async fn an_error_of_the_editor_is_a_tool_error_in_its_own_words() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    for (method, tool, arguments) in [
        ("open_file", "openFile", json!({ "filePath": file })),
        ("open_diff", "openDiff", diff(&file, "y\n", "tab")),
        ("selection", "getCurrentSelection", json!({})),
        ("documents", "getOpenEditors", json!({})),
        ("format", "reformat_file", json!({ "file_path": file })),
        ("execute", "executeCode", json!({ "code": "1" })),
    ] {
        rig.editor.set(method, Mood::Failing);
        let answer = client.call(tool, arguments).await;
        assert_eq!(is_tool_error(&answer), Some(format!("{method} is broken").as_str()), "{tool}");
    }
}

#[tokio::test]
async fn ide_mcp_09_a_tool_that_is_not_listed_is_answered_when_called() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    rig.editor.scene().abilities = Abilities::default();
    let mut client = rig.cli().await;
    assert_eq!(tools(&mut client).await, ["getWorkspaceFolders"]);
    // What the CLI calls without looking at the list.
    let answer = client.call("openDiff", diff(&file, "y\n", "tab")).await;
    assert!(is_tool_error(&answer).is_some(), "{answer}");
    assert_eq!(text(&client.call("getDiagnostics", json!({})).await), "[]");
    assert_eq!(text(&client.call("closeAllDiffTabs", json!({})).await), "CLOSED_0_DIFF_TABS");
    client.call("close_tab", json!({ "tab_name": "tab" })).await;
    assert!(is_tool_error(&client.call("executeCode", json!({ "code": "1" })).await).is_some());
    let unknown = client.call("no_such_tool", json!({})).await;
    assert!(error_code(&unknown) == -32602 && message(&unknown).contains("no_such_tool"), "{unknown}");
    assert!(!rig.editor.calls().iter().any(|call| matches!(call, Call::Execute(_) | Call::OpenDiff(_))));
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_mcp_10_the_list_is_valid_and_follows_the_abilities() {
    let rig = Rig::start().await;
    let mut client = rig.cli().await;
    let answer = client.request("tools/list", json!({ "cursor": "unknown" })).await;
    let listed = answer["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(listed.len(), TABLE.len());
    for tool in &listed {
        assert!(!tool["description"].as_str().unwrap().is_empty());
        assert_eq!(tool["inputSchema"]["type"], "object");
        jsonschema::meta::validate(&tool["inputSchema"]).unwrap_or_else(|error| panic!("{tool}: {error}"));
    }
    for (change, gone) in [
        (Abilities { open_file: false, ..ALL }, vec!["openFile", "open_files"]),
        (Abilities { open_diff: false, ..ALL }, vec!["openDiff", "close_tab", "closeAllDiffTabs"]),
        (Abilities { diagnostics: false, ..ALL }, vec!["getDiagnostics"]),
        (Abilities { selection: false, ..ALL }, vec!["getCurrentSelection", "getLatestSelection"]),
        (
            Abilities { documents: false, ..ALL },
            vec!["getOpenEditors", "checkDocumentDirty", "get_all_opened_file_paths"],
        ),
        (Abilities { save: false, ..ALL }, vec!["saveDocument"]),
        (Abilities { format: false, ..ALL }, vec!["reformat_file"]),
        (Abilities { execute: false, ..ALL }, vec!["executeCode"]),
    ] {
        rig.editor.scene().abilities = change;
        rig.editor.ide().abilities_changed();
        client.notification("notifications/tools/list_changed").await;
        let names = tools(&mut client).await;
        let missing: Vec<&str> =
            TABLE.iter().map(|tool| tool.name).filter(|name| !names.iter().any(|n| n == name)).collect();
        assert_eq!(missing, gone);
    }
}

#[tokio::test]
async fn ide_mcp_10_list_changed_comes_when_ide_connected_follows_a_list_and_only_then() {
    let rig = Rig::start().await;
    let mut late = rig.mcp().await;
    let before = tools(&mut late).await;
    late.notify("ide_connected", json!({ "pid": 1 })).await;
    late.notification("notifications/tools/list_changed").await;
    let mut added = tools(&mut late).await;
    added.retain(|name| !before.contains(name));
    assert_eq!(added, ["openDiff", "close_tab", "closeAllDiffTabs"]);
    late.notify("ide_connected", json!({ "pid": 1 })).await;
    assert_eq!(late.notifications("notifications/tools/list_changed", MOMENT).await.len(), 0, "only once");

    let mut early = rig.mcp().await;
    early.notify("ide_connected", json!({ "pid": 1 })).await;
    tools(&mut early).await;
    assert_eq!(early.notifications("notifications/tools/list_changed", MOMENT).await.len(), 0);

    let mut before_initialized = rig.client().await;
    before_initialized.ping().await;
    rig.editor.ide().abilities_changed();
    let early_news = before_initialized.notifications("notifications/tools/list_changed", MOMENT).await;
    assert_eq!(early_news.len(), 0, "nothing is said to a client that is not initialised");
}

#[tokio::test]
async fn resources_and_prompts_are_empty_lists() {
    let rig = Rig::start().await;
    let mut client = rig.mcp().await;
    assert_eq!(client.request("resources/list", Value::Null).await["result"], json!({ "resources": [] }));
    assert_eq!(client.request("prompts/list", json!({})).await["result"], json!({ "prompts": [] }));
}

#[tokio::test]
async fn cancelled_ends_the_call_with_one_tool_error() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    rig.editor.set("execute", Mood::Hanging);
    let code = client.ask_tool("executeCode", json!({ "code": "while True: pass" })).await;
    let waiting = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    let _shown = rig.editor.shown().await;
    for id in [&code, &waiting] {
        client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "user-cancel" })).await;
        let answer = client.answer(id).await;
        assert!(is_tool_error(&answer).unwrap().contains("cancelled"), "{answer}");
    }
    rig.editor.called(&Call::CloseDiff("tab".into())).await;
    for params in
        [json!({ "requestId": waiting }), json!({ "requestId": 777 }), json!({}), json!([]), Value::Null]
    {
        client.notify("notifications/cancelled", params).await;
    }
    client.settle_accounts().await;
    assert_eq!(rig.events.wait("diff_decided", 1).await["decision"], "failed");
}

#[tokio::test]
async fn cancelled_reaches_only_the_callers_own_request() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let (mut one, mut two) = (rig.cli().await, rig.cli().await);
    let id = one.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    let shown = rig.editor.shown().await;
    two.notify("notifications/cancelled", json!({ "requestId": id })).await;
    two.ping().await;
    shown.accept();
    assert_eq!(texts(&one.answer(&id).await), ["FILE_SAVED", "y\n"]);
}

#[tokio::test]
async fn a_client_is_known_by_what_it_says_of_itself() {
    let rig = Rig::start().await;
    let client = rig.cli().await;
    let ready = rig.events.wait("client_ready", 1).await;
    assert_eq!((&ready["name"], &ready["version"]), (&json!("claude-code"), &json!("2.1.325")));
    assert_eq!(ready["pid"], std::process::id());
    assert_eq!(ready["cwd"], json!(std::env::current_dir().unwrap()));
    let info = rig.server.ide().clients().remove(0);
    assert!(info.ready && info.pid == Some(std::process::id()));
    drop(client);
    assert_eq!(rig.events.wait("client_gone", 1).await["client"], 1);
    assert!(rig.server.ide().clients().is_empty());
}

#[tokio::test]
async fn a_strange_ide_connected_harms_nothing() {
    let rig = Rig::start().await;
    for params in [
        Value::Null,
        json!({}),
        json!({ "pid": null }),
        json!({ "pid": "x" }),
        json!({ "pid": -1 }),
        json!([1]),
    ] {
        let mut client = rig.mcp().await;
        client.notify("ide_connected", params).await;
        assert!(tools(&mut client).await.contains(&"openDiff".to_owned()));
    }
}

#[tokio::test]
async fn the_answers_of_slow_calls_come_in_the_order_they_are_ready() {
    let rig = Rig::start().await;
    rig.editor.set("documents", Mood::Slow(Duration::from_millis(200)));
    rig.editor.scene().selection = Some(selection(&rig.home.file("a.py", "x"), "x"));
    let mut client = rig.mcp().await;
    let slow = client.ask_tool("getOpenEditors", json!({})).await;
    let quick = client.ask_tool("getCurrentSelection", json!({})).await;
    assert_eq!(client.receive().await["id"], quick);
    assert_eq!(client.receive().await["id"], slow);
}

/// Texts that are nearly messages: pieces of real ones, put together at random.
fn nearly_a_message() -> impl Strategy<Value = String> {
    let member = prop_oneof![
        Just(r#""jsonrpc":"2.0""#.to_owned()),
        Just(r#""method":"ping""#.to_owned()),
        Just(r#""method":"tools/call""#.to_owned()),
        Just(r#""method":"notifications/cancelled""#.to_owned()),
        Just(r#""params":{"name":"getDiagnostics","arguments":{}}"#.to_owned()),
        Just(r#""params":[]"#.to_owned()),
        Just(r#""result":{}"#.to_owned()),
        Just(r#""error":1"#.to_owned()),
        any::<i64>().prop_map(|id| format!(r#""id":{id}"#)),
        "[a-z]{0,5}".prop_map(|id| format!(r#""id":"{id}""#)),
        Just(r#""id":null"#.to_owned()),
    ];
    let object =
        proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")));
    prop_oneof![4 => object, 1 => ".{0,40}", 1 => Just("[]".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn ide_mcp_08_whatever_is_sent_is_answered_at_most_once_and_the_connection_lives(
        sent in proptest::collection::vec(nearly_a_message(), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let rig = Rig::speaking(Dialect::Vscode).await;
            let mut client = rig.client().await;
            for text in &sent {
                client.socket.send_text(text).await;
                // The answer to this ping bounds what belongs to the text before it.
                client.socket.send_text(r#"{"id":"the ping after it","method":"ping"}"#).await;
                let mut answers = Vec::new();
                loop {
                    let answer = within("an answer", client.socket.message()).await.unwrap();
                    if answer.contains("the ping after it") {
                        break;
                    }
                    answers.push(answer);
                }
                // getDiagnostics of this editor answers at once, so nothing is late.
                assert!(answers.len() <= 1, "{text}: {answers:?}");
                let request: Result<Value, _> = serde_json::from_str(text);
                let is_request = request.is_ok_and(|r| r["method"].is_string() && (r["id"].is_string() || r["id"].is_number()));
                assert!(!is_request || answers.len() == 1, "{text}");
            }
        });
    }
}
