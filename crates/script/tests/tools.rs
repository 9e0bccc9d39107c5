//! Tools: permissions, hooks, in-process MCP servers, questions, subagents, background tasks.

mod host;

use host::{Host, example, kinds, steps};
use oarlock_script::{Launch, Script};
use serde_json::{Value, json};

fn plain() -> Launch {
    Launch::new(["--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio"])
}

fn allow(request: &Value) -> Value {
    json!({ "behavior": "allow", "updatedInput": request["request"]["input"] })
}

fn content(result: &Value) -> &Value {
    &result["message"]["content"][0]["content"]
}

#[tokio::test]
async fn what_the_host_allows_is_done() {
    let mut host = Host::start(example("tool-allow"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    let request = &question["request"];
    assert_eq!(request["tool_name"], "Write");
    assert_eq!(request["permission_suggestions"][0]["mode"], "acceptEdits");
    host.answer(&question, allow(&question)).await;
    let result = host.until_tool_result().await;
    assert_eq!(result["tool_use_result"]["type"], "create");
    assert_eq!(result["tool_result_meta"][0]["permission_decision"]["decision"], "accept");
    assert_eq!(host.until_result().await["num_turns"], 2);
}

#[tokio::test]
async fn what_the_host_rewrites_is_what_runs() {
    let mut host = Host::start(example("tool-rewrite"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, json!({ "behavior": "allow", "updatedInput": { "command": "echo other" } })).await;
    assert_eq!(content(&host.until_tool_result().await), "ran: echo other");
}

#[tokio::test]
async fn what_the_host_denies_is_told_to_the_model() {
    let mut host = Host::start(example("tool-deny"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, json!({ "behavior": "deny", "message": "not today" })).await;
    let result = host.until_tool_result().await;
    assert_eq!(
        (content(&result), &result["tool_use_result"]),
        (&json!("not today"), &json!("Error: not today"))
    );
    let end = host.until_result().await;
    assert_eq!(end["permission_denials"][0]["tool_name"], "Bash");
    assert_eq!(end["is_error"], false);
}

#[tokio::test]
async fn a_denial_can_end_the_turn() {
    let mut host = Host::start(example("tool-interrupt"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, json!({ "behavior": "deny", "message": "x", "interrupt": true })).await;
    let end = host.until_result().await;
    assert_eq!(
        (&end["subtype"], &end["terminal_reason"]),
        (&json!("error_during_execution"), &json!("aborted_tools"))
    );
    assert_eq!(end["num_turns"], 3);
    host.prompt("again").await;
    assert_eq!(host.until_result().await["result"], "Second turn.");
}

#[tokio::test]
async fn an_interrupt_withdraws_the_question_before_it_is_answered() {
    let mut host = Host::start(example("tool-interrupt"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.request(json!({ "subtype": "interrupt" })).await;
    let withdrawn = &host.seen[host.seen.len() - 2];
    assert_eq!(withdrawn["type"], "control_cancel_request");
    assert_eq!(withdrawn["request_id"], question["request_id"]);
    // A late answer is nobody's.
    host.answer(&question, allow(&question)).await;
    let end = host.until_result().await;
    assert_eq!(end["terminal_reason"], "aborted_tools");
    assert_eq!(end["permission_denials"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_interrupt_stops_a_running_tool() {
    let script = steps(r#"{ tool = "Bash", input = { command = "ls" }, lasts_ms = 60000 }"#);
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    host.until_assistant().await;
    host.request(json!({ "subtype": "interrupt" })).await;
    let end = host.until_result().await;
    assert_eq!(end["terminal_reason"], "aborted_tools");
    assert_eq!(end["permission_denials"], json!([]));
}

#[tokio::test]
async fn an_interrupt_withdraws_all_open_questions() {
    let mut host = Host::start(example("parallel-permissions"), plain());
    host.prompt("hi").await;
    host.until_request("can_use_tool").await;
    host.until_request("can_use_tool").await;
    host.request(json!({ "subtype": "interrupt" })).await;
    assert_eq!(host.seen.iter().filter(|frame| frame["type"] == "control_cancel_request").count(), 2);
    let end = host.until_result().await;
    assert_eq!(end["num_turns"], 4);
}

#[tokio::test]
async fn several_questions_are_open_at_once_and_answered_in_any_order() {
    let mut host = Host::start(example("parallel-permissions"), plain());
    host.prompt("hi").await;
    let first = host.until_request("can_use_tool").await;
    let second = host.until_request("can_use_tool").await;
    host.answer(&second, json!({ "behavior": "deny", "message": "not this" })).await;
    host.answer(&first, allow(&first)).await;
    assert_eq!(content(&host.until_tool_result().await), "first: mkdir one");
    assert_eq!(content(&host.until_tool_result().await), "not this");
    assert_eq!(host.until_result().await["num_turns"], 3);
}

#[tokio::test]
async fn uses_of_one_message_are_asked_one_after_the_other_unless_parallel() {
    let script = steps(r#"{ tools = [{ tool = "Write", input = {} }, { tool = "Edit", input = {} }] }"#);
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let first = host.until_request("can_use_tool").await;
    host.answer(&first, allow(&first)).await;
    host.until_tool_result().await;
    let second = host.until_request("can_use_tool").await;
    host.answer(&second, allow(&second)).await;
    host.until_result().await;
    let ids: Vec<&Value> = host
        .seen
        .iter()
        .filter(|frame| frame["type"] == "assistant")
        .map(|frame| &frame["message"]["id"])
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1], "one message");
}

#[tokio::test]
async fn a_rule_that_came_with_an_answer_is_remembered() {
    let script = steps(
        r#"{ tool = "Bash", input = { command = "mkdir a" } }, { tool = "Bash", input = { command = "mkdir b" } },
           { tool = "Bash", input = { command = "rm a" } }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    let rule = json!({ "toolName": "Bash", "ruleContent": "mkdir *" });
    let update =
        json!({ "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session" });
    let answer = json!({ "behavior": "allow", "updatedInput": {}, "updatedPermissions": [update] });
    host.answer(&question, answer).await;
    let next = host.until_request("can_use_tool").await;
    assert_eq!(next["request"]["input"]["command"], "rm a");
}

#[tokio::test]
async fn a_mode_that_came_with_an_answer_is_told_and_kept() {
    let script = steps(
        r#"{ tool = "Write", input = { file_path = "a" } }, { tool = "Edit", input = { file_path = "a" } }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    let update = &question["request"]["permission_suggestions"];
    let answer = json!({ "behavior": "allow", "updatedInput": {}, "updatedPermissions": update });
    host.answer(&question, answer).await;
    let status = host.until(|frame| frame["subtype"] == "status").await;
    assert_eq!(status["permissionMode"], "acceptEdits");
    host.until_result().await;
    assert!(
        !kinds(&host.seen).iter().skip(4).any(|kind| kind.contains("can_use_tool")),
        "edits are accepted now"
    );
}

#[tokio::test]
async fn without_a_prompt_tool_what_would_be_asked_is_denied() {
    let mut host = Host::start(example("tool-deny"), Launch::new(["--verbose"]));
    host.prompt("hi").await;
    let denied = host.until(|frame| frame["subtype"] == "permission_denied").await;
    assert_eq!(denied["tool_name"], "Bash");
    assert_eq!(host.until_tool_result().await["message"]["content"][0]["is_error"], true);
    assert_eq!(host.until_result().await["is_error"], false);
}

#[tokio::test]
async fn allowed_tools_and_harmless_ones_are_not_asked_about() {
    let launch = plain().arg("--allowedTools").arg("Write,mcp__calc");
    let script = steps(
        r#"{ tool = "Write", input = {} }, { tool = "Bash", input = { command = "ls" } }, { tool = "Read", input = { file_path = "x" } }"#,
    );
    let mut host = Host::start(script, launch);
    host.prompt("hi").await;
    host.until_result().await;
    assert!(!kinds(&host.seen).iter().any(|kind| kind.contains("can_use_tool")));
}

#[tokio::test]
async fn a_broken_answer_is_an_error_of_the_tool() {
    for (body, text) in [
        (json!({}), "The canUseTool callback returned an invalid permission result."),
        (json!({ "behavior": "deny" }), "The canUseTool callback returned an invalid permission result."),
    ] {
        let mut host = Host::start(example("tool-deny"), plain());
        host.prompt("hi").await;
        let question = host.until_request("can_use_tool").await;
        host.answer(&question, body).await;
        let result = host.until_tool_result().await;
        assert!(content(&result).as_str().expect("text").starts_with(text));
    }
}

#[tokio::test]
async fn an_input_that_ends_during_a_question_lets_the_turn_go_on() {
    let mut host = Host::start(example("tool-deny"), plain());
    host.prompt("hi").await;
    host.until_request("can_use_tool").await;
    host.close_input();
    let result = host.until_tool_result().await;
    assert!(content(&result).as_str().expect("text").contains("stream closed before response received"));
    assert_eq!(host.until_result().await["result"], "Then not.");
    assert_eq!(host.end().await.0.code, 0);
}

/// Answers everything the CLI asks until the result, and gives the events of the hooks in order.
async fn serve_hooks(host: &mut Host, mut answer: impl FnMut(&Value) -> Value) -> Vec<String> {
    let mut events = Vec::new();
    loop {
        let frame = host.until(|frame| frame["type"] == "control_request" || frame["type"] == "result").await;
        match frame["request"]["subtype"].as_str() {
            Some("hook_callback") => {
                let input = &frame["request"]["input"];
                events.push(input["hook_event_name"].as_str().expect("an event").to_owned());
                let body = answer(input);
                host.answer(&frame, body).await;
            }
            Some(_) => host.answer(&frame, allow(&frame)).await,
            None => return events,
        }
    }
}

fn hooks(events: &[&str]) -> Value {
    let hook = |event: &&str| {
        ((*event).to_owned(), json!([{ "matcher": null, "hookCallbackIds": [format!("on_{event}")] }]))
    };
    json!({ "hooks": Value::Object(events.iter().map(hook).collect()) })
}

const EVENTS: [&str; 7] = [
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
];

#[tokio::test]
async fn registered_hooks_are_called_in_order() {
    let mut host = Host::start(example("hook"), plain());
    let initialize = host.initialize(hooks(&EVENTS)).await;
    assert_eq!(initialize["response"]["hooks_applied"], true);
    host.prompt("hi").await;
    let events = serve_hooks(&mut host, |_| json!({})).await;
    assert_eq!(
        events,
        ["UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolBatch", "Stop"]
    );
}

#[tokio::test]
async fn a_hook_can_deny_allow_and_rewrite() {
    let decide = |decision: Value| {
        move |input: &Value| match input["hook_event_name"].as_str() {
            Some("PreToolUse") => json!({ "hookSpecificOutput": decision }),
            _ => json!({}),
        }
    };
    let mut host = Host::start(example("hook"), plain());
    host.initialize(hooks(&["PreToolUse"])).await;
    host.prompt("hi").await;
    serve_hooks(
        &mut host,
        decide(json!({ "permissionDecision": "deny", "permissionDecisionReason": "no shell" })),
    )
    .await;
    let result = host.seen.iter().find(|frame| frame["tool_use_result"].is_string()).expect("a failure");
    assert_eq!(content(result), "PreToolUse:Bash hook error: no shell");

    let mut host = Host::start(example("hook"), plain());
    host.initialize(hooks(&["PreToolUse"])).await;
    host.prompt("hi").await;
    let decision = json!({ "permissionDecision": "allow", "updatedInput": { "command": "echo re" } });
    serve_hooks(&mut host, decide(decision)).await;
    assert!(
        !kinds(&host.seen).iter().any(|kind| kind.contains("can_use_tool")),
        "a hook that allows spares the question"
    );
    let result = host.seen.iter().find(|frame| frame["tool_use_result"].is_object()).expect("a result");
    assert_eq!(content(result), "ran: echo re");
}

#[tokio::test]
async fn a_matcher_chooses_the_tools() {
    let mut host = Host::start(example("hook"), plain());
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Write|Edit", "hookCallbackIds": ["x"] }] } });
    host.initialize(hooks).await;
    host.prompt("hi").await;
    assert!(serve_hooks(&mut host, |_| json!({})).await.is_empty());
}

#[tokio::test]
async fn a_hook_can_refuse_the_prompt() {
    let mut host = Host::start(example("text"), plain());
    host.initialize(hooks(&["UserPromptSubmit"])).await;
    host.prompt("hi").await;
    serve_hooks(&mut host, |_| json!({ "decision": "block", "reason": "blocked!" })).await;
    let result = host.seen.last().expect("a result");
    assert_eq!(result["num_turns"], 0);
    assert!(result["result"].as_str().expect("text").contains("blocked!"));
}

#[tokio::test]
async fn a_stop_hook_can_hold_the_turn_back_once() {
    let script = Script::parse(
        r#"
        [[turn]]
        steps = [{ text = "one" }]
        on_stop_blocked = [{ text = "two" }]
        "#,
    );
    let mut host = Host::start(script.expect("a script"), plain());
    host.initialize(hooks(&["Stop"])).await;
    host.prompt("hi").await;
    let events = serve_hooks(&mut host, |_| json!({ "decision": "block", "reason": "go on" })).await;
    assert_eq!(events, ["Stop", "Stop"]);
    assert_eq!(host.seen.last().expect("a result")["result"], "two");
    let feedback = host.seen.iter().find(|frame| frame["isSynthetic"] == true).expect("feedback");
    assert_eq!(feedback["message"]["content"][0]["text"], "Stop hook feedback:\ngo on");
}

#[tokio::test]
async fn a_hook_that_is_too_slow_is_withdrawn_and_the_tool_refused() {
    let mut host = Host::start(example("hook"), plain());
    let hooks = json!({ "hooks": { "PreToolUse": [{ "hookCallbackIds": ["x"], "timeout": 0.05 }] } });
    host.initialize(hooks).await;
    host.prompt("hi").await;
    let call = host.until_request("hook_callback").await;
    let withdrawn = host.until(|frame| frame["type"] == "control_cancel_request").await;
    assert_eq!(withdrawn["request_id"], call["request_id"]);
    assert_eq!(host.until_tool_result().await["message"]["content"][0]["is_error"], true);
    host.until_result().await;
}

#[tokio::test]
async fn a_hook_that_fails_blocks_only_if_registered_so() {
    for (on_failure, is_error) in [(json!(null), false), (json!("block"), true)] {
        let mut host = Host::start(example("hook"), plain().arg("--allowedTools").arg("Bash"));
        let hook = json!({ "hookCallbackIds": ["x"], "onFailure": on_failure });
        host.initialize(json!({ "hooks": { "PreToolUse": [hook] } })).await;
        host.prompt("hi").await;
        let call = host.until_request("hook_callback").await;
        let response = json!({ "subtype": "error", "request_id": call["request_id"], "error": "boom" });
        host.send(json!({ "type": "control_response", "response": response })).await;
        assert_eq!(
            host.until(|frame| frame["subtype"] == "informational").await["tag"],
            "hook_callback_failed"
        );
        assert_eq!(host.until_tool_result().await["message"]["content"][0]["is_error"], is_error);
    }
}

/// Serves an MCP server with one tool until the result; gives the methods that were called.
async fn serve_tools(host: &mut Host, call: impl Fn(&Value) -> Value) -> Vec<String> {
    let mut methods = Vec::new();
    loop {
        let frame = host
            .until(|frame| {
                frame["type"] == "control_request"
                    || frame["type"] == "result"
                    || frame["type"] == "control_response"
            })
            .await;
        let request = &frame["request"];
        match request["subtype"].as_str() {
            Some("mcp_message") => {
                let message = &request["message"];
                let method = message["method"].as_str().expect("a method");
                methods.push(method.to_owned());
                let result = match method {
                    "initialize" => {
                        json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "calc", "version": "1" } })
                    }
                    "tools/list" => {
                        json!({ "tools": [{ "name": "add", "annotations": { "readOnlyHint": true } }] })
                    }
                    "tools/call" => call(&message["params"]),
                    _ => json!({}),
                };
                let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                host.answer(&frame, json!({ "mcp_response": reply })).await;
            }
            Some(_) => host.answer(&frame, allow(&frame)).await,
            None if frame["type"] == "control_response" => methods.push("(initialized)".to_owned()),
            None => return methods,
        }
    }
}

fn sum(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let sum = arguments["a"].as_i64().expect("a") + arguments["b"].as_i64().expect("b");
    json!({ "content": [{ "type": "text", "text": sum.to_string() }] })
}

#[tokio::test]
async fn a_tool_in_the_host_is_greeted_listed_and_called() {
    let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    for launch in [plain(), plain().arg("--mcp-config").arg(config)] {
        let mut host = Host::start(example("mcp-tool"), launch);
        host.ask(json!({ "subtype": "initialize", "sdkMcpServers": ["calc"] })).await;
        host.prompt("hi").await;
        let methods = serve_tools(&mut host, sum).await;
        assert_eq!(
            methods,
            ["initialize", "(initialized)", "notifications/initialized", "tools/list", "tools/call"],
            "the handshake comes before the answer to initialize"
        );
        let init = host.seen.iter().find(|frame| frame["subtype"] == "init").expect("init");
        assert_eq!(init["mcp_servers"], json!([{ "name": "calc", "status": "connected", "source": "sdk" }]));
        assert!(init["tools"].as_array().expect("tools").contains(&json!("mcp__calc__add")));
        let result = host.seen.iter().find(|frame| frame["tool_use_result"].is_array()).expect("a result");
        assert_eq!(content(result), &json!([{ "type": "text", "text": "5" }]));
        let status = host.request(json!({ "subtype": "mcp_status" })).await;
        assert_eq!(
            status["response"]["mcpServers"][0]["tools"][0]["annotations"],
            json!({ "readOnly": true })
        );
    }
}

#[tokio::test]
async fn a_tool_in_the_host_can_fail() {
    let mut host = Host::start(example("mcp-tool"), plain());
    host.ask(json!({ "subtype": "initialize", "sdkMcpServers": ["calc"] })).await;
    host.prompt("hi").await;
    serve_tools(&mut host, |_| json!({ "isError": true, "content": [{ "type": "text", "text": "bad" }] }))
        .await;
    let result = host.seen.iter().find(|frame| frame["tool_use_result"].is_string()).expect("a failure");
    assert_eq!((content(result), &result["tool_use_result"]), (&json!("bad"), &json!("Error: bad")));
}

#[tokio::test]
async fn a_tool_of_no_server_does_not_exist() {
    let mut host = Host::start(example("mcp-tool"), plain().arg("--allowedTools").arg("mcp__calc__add"));
    host.prompt("hi").await;
    assert_eq!(content(&host.until_tool_result().await), "No such tool available: mcp__calc__add");
}

#[tokio::test]
async fn servers_can_come_later() {
    let mut host = Host::start(example("mcp-tool"), plain());
    host.initialize(json!({})).await;
    let set =
        json!({ "subtype": "mcp_set_servers", "servers": { "calc": { "type": "sdk", "name": "calc" } } });
    assert_eq!(host.request(set).await["response"]["added"], json!(["calc"]));
    host.prompt("hi").await;
    let methods = serve_tools(&mut host, sum).await;
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn a_server_asks_in_the_middle_of_a_call() {
    let mut host = Host::start(example("elicitation"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, allow(&question)).await;
    let question = host.until_request("elicitation").await;
    assert_eq!(question["request"]["mcp_server_name"], "srv");
    assert_eq!(question["request"]["property_order"], json!(["name"]));
    host.answer(&question, json!({ "action": "accept", "content": { "name": "Bob" } })).await;
    assert_eq!(content(&host.until_tool_result().await), "elicited: accept Bob");
}

#[tokio::test]
async fn a_question_to_the_user_is_answered_through_the_input() {
    let mut host = Host::start(example("question"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    assert_eq!(question["request"]["requires_user_interaction"], true);
    let mut input = question["request"]["input"].clone();
    input["answers"] = json!({ "Which colour?": "Blue" });
    host.answer(&question, json!({ "behavior": "allow", "updatedInput": input })).await;
    let result = host.until_tool_result().await;
    assert!(content(&result).as_str().expect("text").contains("\"Which colour?\"=\"Blue\""));
    assert_eq!(result["tool_use_result"]["answers"]["Which colour?"], "Blue");
}

#[tokio::test]
async fn leaving_plan_mode_changes_the_mode() {
    let accept = json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }]);
    for (updates, mode) in [(json!([]), "default"), (accept, "acceptEdits")] {
        let mut host = Host::start(example("plan-mode"), plain().arg("--permission-mode").arg("plan"));
        host.prompt("hi").await;
        assert_eq!(host.until(|frame| frame["subtype"] == "init").await["permissionMode"], "plan");
        let question = host.until_request("can_use_tool").await;
        let mut answer = allow(&question);
        answer["updatedPermissions"] = updates;
        host.answer(&question, answer).await;
        assert_eq!(host.until(|frame| frame["subtype"] == "status").await["permissionMode"], mode);
        host.until_result().await;
        host.prompt("again").await;
        assert_eq!(host.until_result().await["result"], format!("The mode is {mode}."));
    }
}

#[tokio::test]
async fn a_subagent_speaks_under_its_parent() {
    let mut host = Host::start(example("subagent"), Launch::default());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    let parent =
        host.seen.iter().find(|frame| frame["message"]["content"][0]["name"] == "Task").expect("the task");
    let parent = parent["message"]["content"][0]["id"].clone();
    let started =
        host.seen.iter().find(|frame| frame["subtype"] == "task_started").expect("task_started").clone();
    assert_eq!(started["tool_use_id"], parent);
    assert_eq!(question["request"]["agent_id"], started["task_id"]);
    host.answer(&question, allow(&question)).await;
    let result = host.until_result().await;
    assert_eq!(result["subagent_stats"]["completed"], 1);
    let of_agent: Vec<&Value> =
        host.seen.iter().filter(|frame| frame["parent_tool_use_id"] == parent).collect();
    let kinds: Vec<String> = kinds(&of_agent.into_iter().cloned().collect::<Vec<_>>());
    assert_eq!(kinds, ["user text", "assistant tool_use", "user tool_result"], "its prose stays with it");
}

#[tokio::test]
async fn a_subagent_speaks_up_when_asked_to() {
    let mut host = Host::start(example("subagent"), plain());
    host.initialize(json!({ "forwardSubagentText": true })).await;
    host.prompt("hi").await;
    let text =
        host.until(|frame| frame["parent_tool_use_id"].is_string() && frame["type"] == "assistant").await;
    assert_eq!(text["message"]["content"][0]["text"], "Working.");
}

#[tokio::test]
async fn a_background_task_starts_a_turn_of_its_own() {
    let mut host = Host::start(example("background"), plain());
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, allow(&question)).await;
    assert_eq!(host.until_result().await["result"], "Started.");
    let result = host.until_result().await;
    assert_eq!(result["result"], "The build is done.");
    assert_eq!(result["origin"]["kind"], "task-notification");
    let after: Vec<String> =
        kinds(&host.seen).into_iter().skip_while(|kind| kind != "result success").collect();
    assert_eq!(
        after,
        [
            "result success",
            "system task_updated",
            "system task_notification",
            "system background_tasks_changed",
            "system init",
            "assistant text",
            "result success",
        ]
    );
}

#[tokio::test]
async fn an_input_that_ends_waits_for_background_tasks() {
    let mut host = Host::start(example("background"), plain().arg("--allowedTools").arg("Bash"));
    host.prompt("hi").await;
    host.close_input();
    host.until_result().await;
    assert_eq!(host.until_result().await["result"], "The build is done.");
    assert_eq!(host.end().await.0.code, 0);
}

#[tokio::test]
async fn a_background_task_can_be_stopped() {
    let script = steps(
        r#"{ tool = "Bash", ask = false, input = { command = "make", run_in_background = true }, lasts_ms = 60000,
            then = [{ text = "never" }] }, { text = "started" }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let started = host.until(|frame| frame["subtype"] == "task_started").await;
    host.until_result().await;
    host.request(json!({ "subtype": "stop_task", "task_id": started["task_id"] })).await;
    assert_eq!(host.until(|frame| frame["subtype"] == "task_updated").await["patch"]["status"], "killed");
    assert_eq!(host.until(|frame| frame["subtype"] == "task_notification").await["status"], "stopped");
    host.prompt("and now?").await;
    assert_eq!(host.until_result().await["result"], "started");
}

#[tokio::test]
async fn a_subagent_in_the_background_asks_after_the_turn_is_over() {
    let script = steps(
        r#"{ tool = "Task", input = { description = "d", prompt = "p" }, lasts_ms = 20, then = [{ text = "noticed" }],
            steps = [{ tool = "Bash", input = { command = "mkdir x" } }, { text = "sub done" }] }, { text = "outer" }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    assert_eq!(host.until_result().await["result"], "outer");
    let question = host.until_request("can_use_tool").await;
    // Another turn runs meanwhile, and an interrupt of it is not meant for the subagent.
    host.prompt("meanwhile").await;
    assert_eq!(host.until_result().await["result"], "outer");
    host.request(json!({ "subtype": "interrupt" })).await;
    host.answer(&question, allow(&question)).await;
    let notice = host.until(|frame| frame["subtype"] == "task_notification").await;
    assert_eq!(notice["summary"], "sub done");
    assert_eq!(host.until_result().await["result"], "noticed");
}
