//! The frames have the fields of the real CLI's. `shapes.json` holds, for each kind of frame, the fields that were there in
//! every recording of 2.1.325, and those that were there in some.

mod host;

use std::collections::{BTreeMap, BTreeSet};

use host::{Host, example, steps};
use oarlock_proto::stream::{Message, System, decode};
use oarlock_script::{Launch, Script};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Shape {
    always: BTreeSet<String>,
    sometimes: BTreeSet<String>,
}

/// What kind of frame it is. Answers are told apart by the request they answer.
fn kind(frame: &Value, asked: &BTreeMap<String, String>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("None").to_owned();
    let of_agent = if frame["parent_tool_use_id"].is_string() { " subagent" } else { "" };
    let detail = match frame["type"].as_str() {
        Some("control_request") => {
            let request = &frame["request"];
            let detail = match request["subtype"].as_str() {
                Some("can_use_tool") if text(&request["tool_name"]).starts_with("mcp__") => " mcp".to_owned(),
                Some("can_use_tool") => format!(" {}", text(&request["tool_name"])),
                Some("hook_callback") => format!(" {}", text(&request["input"]["hook_event_name"])),
                _ => String::new(),
            };
            format!(" {}{detail}", text(&request["subtype"]))
        }
        Some("control_response") => {
            let response = &frame["response"];
            let asked = asked.get(&text(&response["request_id"])).map_or("?", String::as_str);
            format!(" {asked} {}", text(&response["subtype"]))
        }
        Some("system") if frame["subtype"] == "status" => format!(" status {}", text(&frame["status"])),
        Some("system") if frame["subtype"] == "task_started" => {
            format!(" task_started {}", text(&frame["task_type"]))
        }
        Some("system") => format!(" {}", text(&frame["subtype"])),
        Some("stream_event") => match &frame["event"]["delta"]["type"] {
            Value::String(delta) => format!(" content_block_delta {delta}"),
            _ => format!(" {}", text(&frame["event"]["type"])),
        },
        Some("assistant") if frame["message"]["model"] == "<synthetic>" => " synthetic".to_owned(),
        Some("assistant") => of_agent.to_owned(),
        Some("user") if frame["isReplay"] == true => " replay".to_owned(),
        Some("user") if frame["isSynthetic"] == true => " synthetic".to_owned(),
        Some("user") if frame["message"]["content"][0]["type"] == "tool_result" => {
            format!(" tool_result{of_agent}")
        }
        Some("user") => format!(" text{of_agent}"),
        Some("result") => {
            let is_error = frame["subtype"] == "success" && frame["is_error"] == true;
            let is_local = frame["num_turns"] == 0;
            let detail =
                format!("{}{}", if is_error { " error" } else { "" }, if is_local { " local" } else { "" });
            format!(" {}{detail}", text(&frame["subtype"]))
        }
        _ => String::new(),
    };
    format!("{}{detail}", text(&frame["type"]))
}

/// Paths of the fields that are compared.
fn fields(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    const OBJECTS: [&str; 9] = [
        "message",
        "request",
        "event",
        "compact_metadata",
        "patch",
        "origin",
        "subagent_stats",
        "usage",
        "delta",
    ];
    const LISTS: [&str; 4] = ["tool_result_meta", "tool_use_meta", "mcp_servers", "tasks"];
    let deep = prefix.matches('.').count() >= 3;
    for (name, field) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        if OBJECTS.contains(&name.as_str()) && !deep && !path.starts_with("request.message") {
            fields(field, &format!("{path}."), found);
        }
        if LISTS.contains(&name.as_str()) {
            fields(&field[0], &format!("{path}."), found);
        }
        found.insert(path);
    }
}

fn fields_of(frame: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if frame["type"] == "control_response" {
        let response = frame["response"].as_object().expect("a response");
        found.extend(
            response.keys().filter(|name| *name != "response" || !response["response"].is_object()).cloned(),
        );
        let body = frame["response"]["response"].as_object().into_iter().flatten();
        found.extend(body.map(|(name, _)| format!("response.{name}")));
    } else {
        fields(frame, "", &mut found);
    }
    found
}

/// A host that says yes to everything, until the results are there.
async fn serve(host: &mut Host, results: usize) {
    for _ in 0..results {
        loop {
            let frame =
                host.until(|frame| frame["type"] == "control_request" || frame["type"] == "result").await;
            let request = &frame["request"];
            let body = match request["subtype"].as_str() {
                Some("can_use_tool") => json!({ "behavior": "allow", "updatedInput": request["input"] }),
                Some("mcp_message") => {
                    let result = match request["message"]["method"].as_str() {
                        Some("tools/list") => json!({ "tools": [{ "name": "add" }] }),
                        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "5" }] }),
                        _ => json!({ "serverInfo": { "name": "calc", "version": "1" } }),
                    };
                    json!({ "mcp_response": { "jsonrpc": "2.0", "id": request["message"]["id"], "result": result } })
                }
                Some("elicitation") => json!({ "action": "accept", "content": { "name": "Bob" } }),
                Some(_) => json!({}),
                None => break,
            };
            host.answer(&frame, body).await;
        }
    }
}

fn all_hooks() -> Value {
    let events = [
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PostToolBatch",
        "Stop",
        "SubagentStart",
        "SubagentStop",
    ];
    let hook = |event: &str| (event.to_owned(), json!([{ "hookCallbackIds": [event] }]));
    Value::Object(events.into_iter().map(hook).collect())
}

#[tokio::test]
async fn every_frame_has_the_fields_of_the_real_one() {
    let shapes: BTreeMap<String, Shape> = serde_json::from_str(include_str!("shapes.json")).expect("shapes");
    let full =
        || Launch::default().env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1").arg("--replay-user-messages");
    let several = |name: &str, results| (example(name), full(), results);
    let mut plays: Vec<(Script, Launch, usize)> = [
        "text",
        "thinking",
        "tool-allow",
        "tool-rewrite",
        "parallel-permissions",
        "mcp-tool",
        "elicitation",
        "question",
        "plan-mode",
        "error-401",
        "error-529",
        "subagent",
        "compaction",
        "image",
        "structured-output",
    ]
    .map(|name| several(name, 1))
    .into();
    plays.push(several("background", 2));
    plays.push((example("max-turns"), full().arg("--max-turns").arg("1"), 1));
    plays.push((example("tool-allow"), full().arg("--max-budget-usd").arg("0.00001"), 1));
    plays.push((example("tool-deny"), Launch::new(["--verbose"]), 1));
    let agent = r#"{ tool = "Task", input = { description = "d", prompt = "p" }, steps = [{ text = "sub" }],
                     then = [{ text = "noticed" }] }, { text = "outer" }"#;
    plays.push((steps(agent), full(), 2));
    let read = r#"{ tool = "Read", input = { file_path = "/etc/hostname" }, output = "vm" }, { text = "x" }"#;
    plays.push((steps(read), full(), 1));

    let mut seen = BTreeSet::new();
    let mut complaints = BTreeSet::new();
    for (script, launch, results) in plays {
        let mut host = Host::start(script, launch);
        let mut asked = BTreeMap::new();
        let initialize = json!({ "subtype": "initialize", "sdkMcpServers": ["calc"], "hooks": all_hooks() });
        asked.insert(host.ask(initialize).await, "initialize".to_owned());
        host.prompt_as("hi", "u-0").await;
        serve(&mut host, results).await;
        for request in [
            json!({ "subtype": "interrupt" }),
            json!({ "subtype": "set_model", "model": "haiku" }),
            json!({ "subtype": "set_permission_mode", "mode": "acceptEdits" }),
            json!({ "subtype": "mcp_status" }),
            json!({ "subtype": "mcp_set_servers", "servers": {} }),
            json!({ "subtype": "mcp_reconnect", "serverName": "x" }),
            json!({ "subtype": "rewind_files", "user_message_id": "x" }),
            json!({ "subtype": "get_session_cost" }),
            json!({ "subtype": "get_usage" }),
            json!({ "subtype": "get_context_usage" }),
            json!({ "subtype": "get_settings" }),
            json!({ "subtype": "get_binary_version" }),
            json!({ "subtype": "stop_task", "task_id": "x" }),
            json!({ "subtype": "cancel_async_message", "message_uuid": "x" }),
            json!({ "subtype": "rename_session", "title": "x" }),
            json!({ "subtype": "side_question", "question": "x" }),
            json!({ "subtype": "read_file", "path": "Cargo.toml" }),
            json!({ "subtype": "no_such_request" }),
        ] {
            let subtype = request["subtype"].as_str().expect("a subtype").to_owned();
            let id = host.ask(request).await;
            host.until(|frame| frame["response"]["request_id"] == *id).await;
            asked.insert(id, subtype);
        }
        for command in ["/compact", "/clear"] {
            host.prompt(command).await;
            host.until_result().await;
        }
        // The host's own answers come back as well, and are no frames of the CLI.
        let is_echo = |frame: &Value| {
            frame["response"]["request_id"].as_str().is_some_and(|id| !asked.contains_key(id))
        };
        for frame in host.seen.iter().filter(|frame| !is_echo(frame)) {
            let kind = kind(frame, &asked);
            match decode(frame.to_string().as_bytes()) {
                Ok(Message::Unknown(_) | Message::System(System::Unknown(_))) | Err(_) => {
                    complaints.insert(format!("{kind}: not known to our own reader"));
                }
                Ok(_) => {}
            }
            let Some(shape) = shapes.get(&kind) else {
                complaints.insert(format!("{kind}: never recorded"));
                continue;
            };
            let have = fields_of(frame);
            complaints.extend(shape.always.difference(&have).map(|field| format!("{kind}: no {field}")));
            let odd = have
                .iter()
                .filter(|field| !shape.always.contains(*field) && !shape.sometimes.contains(*field));
            complaints.extend(odd.map(|field| format!("{kind}: {field} is not in the real one")));
            seen.insert(kind);
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.into_iter().collect::<Vec<_>>().join("\n"));
    assert!(seen.len() > 60, "most kinds were played: {}", seen.len());
}
