//! Sessions over pipes: what is said, what is heard, and when the input ends.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::time::Duration;

use oarlock_agent::hook::{Hook, OnFailure};
use oarlock_agent::permission::PermissionRequest;
use oarlock_agent::stream::hook::HookOutput;
use oarlock_agent::stream::{Message, PermissionMode, Request, Unknown};
use oarlock_agent::{Buffer, Error, Options, Phase};
use serde_json::json;
use support::{delta, session, soon, tags};

#[tokio::test]
async fn a_message_is_sent_with_a_uuid_and_its_turn_is_read() {
    let (session, mut events, mut cli) = session(Options::new()).await;
    assert_eq!(session.info().claude_code_version.as_deref(), Some("9.9"));
    let id = session.send("hello").await.unwrap();
    let heard = cli.hear().await;
    assert_eq!(heard["uuid"], id);
    assert_eq!(heard["message"], json!({"role": "user", "content": "hello"}));
    cli.say(json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "permissionMode": "plan"})).await;
    cli.say(delta("hi")).await;
    cli.result().await;
    let mut seen = Vec::new();
    let result = events.turn(|message| seen.push(message.tag().to_owned())).await.unwrap().unwrap();
    assert_eq!(result.result.as_deref(), Some("ok"));
    assert_eq!(seen, ["system", "stream_event"]);
    let state = session.state();
    assert_eq!((state.session_id.as_deref(), state.model.as_deref()), (Some("s"), Some("m")));
    assert_eq!(state.permission_mode, Some(PermissionMode::Plan));
}

#[tokio::test]
async fn hl_ctl_01_control_answers_pass_by_what_nobody_reads() {
    let (session, _events, mut cli) =
        session(Options::new().buffer(Buffer { memory: 10_000, file: 1 << 30 })).await;
    let flood = async {
        // Far more than the buffer and the pipe hold; nobody reads it.
        for _ in 0..20_000 {
            cli.say(delta("0123456789")).await;
        }
        let request = cli.hear_request("get_session_cost").await;
        cli.answer(&request, json!({"text": "cheap"})).await;
    };
    let (cost, ()) = soon(async { tokio::join!(session.session_cost(), flood) }).await;
    assert_eq!(cost.unwrap().text, "cheap");
}

#[tokio::test]
async fn hl_ctl_01_questions_are_answered_although_nobody_reads() {
    let options = Options::new()
        .buffer(Buffer { memory: 10_000, file: 1 << 30 })
        .can_use_tool(|request: PermissionRequest| async move { request.allow() });
    let (_session, mut events, mut cli) = session(options).await;
    soon(async {
        for _ in 0..20_000 {
            cli.say(delta("0123456789")).await;
        }
        cli.ask("q", json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"}))
            .await;
        let answer = cli.hear_answer("q").await;
        assert_eq!(answer["response"]["behavior"], "allow");
    })
    .await;
    cli.fall_silent();
    let mut count = 0;
    while let Some(item) = events.next().await {
        match item.unwrap() {
            Message::StreamEvent(_) => count += 1,
            Message::ControlRequest(request) => {
                assert_eq!((request.request_id.as_str(), count), ("q", 20_000))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count, 20_000);
}

#[tokio::test(start_paused = true)]
async fn hl_mem_01_a_slow_reader_holds_the_cli_back_when_there_is_no_file() {
    let (_session, _events, mut cli) =
        session(Options::new().buffer(Buffer { memory: 10_000, file: 0 })).await;
    let flood = async {
        for _ in 0..20_000 {
            cli.say(delta("0123456789")).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), flood).await.expect_err("held back");
}

#[tokio::test]
async fn hl_ctl_03_an_unknown_question_is_refused_and_never_met_with_silence() {
    let (_session, events, mut cli) = session(Options::new()).await;
    cli.ask("1", json!({"subtype": "brand_new", "x": 1})).await;
    let answer = cli.hear_answer("1").await;
    assert_eq!(answer["subtype"], "error");
    assert!(answer["error"].as_str().unwrap().contains("brand_new"));
    cli.ask("2", json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}))
        .await;
    assert_eq!(cli.hear_answer("2").await["subtype"], "error");
    cli.ask("3", json!({"subtype": "mcp_message", "server_name": "none", "message": {}})).await;
    assert_eq!(cli.hear_answer("3").await["subtype"], "error");
    cli.ask("4", json!({"subtype": "hook_callback", "callback_id": "hook_7", "input": {}})).await;
    assert_eq!(cli.hear_answer("4").await["subtype"], "error");
    cli.ask("5", json!({"subtype": "elicitation", "mcp_server_name": "m", "message": "?"})).await;
    assert_eq!(cli.hear_answer("5").await["response"]["action"], "decline");
    cli.fall_silent();
    assert_eq!(tags(events).await, ["control_request", "control_request", "control_request"]);
}

#[tokio::test]
async fn unknown_requests_can_be_answered() {
    let options = Options::new().on_request(|request| async move {
        (request.tag() == "brand_new").then(|| Ok(json!({"fine": true}).into()))
    });
    let (_session, _events, mut cli) = session(options).await;
    cli.ask("1", json!({"subtype": "brand_new"})).await;
    assert_eq!(cli.hear_answer("1").await["response"]["fine"], true);
    cli.ask("2", json!({"subtype": "other"})).await;
    assert_eq!(cli.hear_answer("2").await["subtype"], "error");
}

fn permission(id: &str) -> serde_json::Value {
    json!({"subtype": "can_use_tool", "tool_name": id, "input": {"a": 1}, "tool_use_id": id})
}

#[tokio::test]
async fn hl_perm_01_permissions_are_allowed_rewritten_and_denied_in_any_order() {
    let (later, gate) = tokio::sync::watch::channel(false);
    let options = Options::new().can_use_tool(move |request: PermissionRequest| {
        let mut gate = gate.clone();
        async move {
            match request.tool_name.as_str() {
                "first" => {
                    gate.wait_for(|open| *open).await.unwrap();
                    request.allow()
                }
                "second" => request.allow_with(json!({"a": 2})),
                _ => request.deny_and_interrupt("no"),
            }
        }
    });
    let (_session, _events, mut cli) = session(options).await;
    for id in ["first", "second", "third"] {
        cli.ask(id, permission(id)).await;
    }
    let mut answers = [cli.hear().await, cli.hear().await];
    answers.sort_by_key(|answer| answer["response"]["request_id"].to_string());
    let [second, third] = answers.map(|answer| answer["response"]["response"].clone());
    assert_eq!((&second["behavior"], &second["updatedInput"]), (&json!("allow"), &json!({"a": 2})));
    assert_eq!(
        (&third["behavior"], &third["message"], &third["interrupt"]),
        (&json!("deny"), &json!("no"), &json!(true))
    );
    later.send(true).unwrap();
    assert_eq!(cli.hear_answer("first").await["response"]["updatedInput"], json!({"a": 1}));
}

#[tokio::test]
async fn hl_perm_02_a_callback_that_panics_or_sleeps_is_a_no() {
    let options = Options::new().permission_timeout(Duration::from_millis(20)).can_use_tool(
        |request: PermissionRequest| async move {
            assert!(request.tool_name != "panics", "this panic is part of the test");
            std::future::pending().await
        },
    );
    let (_session, _events, mut cli) = session(options).await;
    for id in ["panics", "sleeps"] {
        cli.ask(id, permission(id)).await;
        let answer = soon(cli.hear_answer(id)).await;
        assert_eq!(answer["response"]["behavior"], "deny", "{answer}");
    }
}

#[tokio::test]
async fn hl_hook_01_a_hook_that_fails_blocks_unless_it_was_told_to_go_on() {
    let options = Options::new()
        .hook(Hook::on("PreToolUse").matching("Bash"), |_| async { panic!("this panic is part of the test") })
        .hook(
            Hook::on("PreToolUse").timeout(Duration::from_millis(10)).on_failure(OnFailure::Continue),
            |_| std::future::pending::<HookOutput>(),
        )
        .hook(Hook::on("UserPromptSubmit"), |_| async { panic!("this panic is part of the test") });
    let (transport, mut cli) = support::pipes();
    let connecting = tokio::spawn(options.connect_over(transport));
    let request = cli.hear_request("initialize").await;
    let hooks = &request["request"]["hooks"];
    assert_eq!(hooks["PreToolUse"][0]["matcher"], "Bash");
    assert_eq!(hooks["PreToolUse"][0]["onFailure"], "block");
    assert_eq!(hooks["PreToolUse"][1]["onFailure"], "continue");
    cli.answer(&request, json!({})).await;
    let _session = connecting.await.unwrap().unwrap();

    let call = |hooks: &serde_json::Value, event: &str| {
        json!({"subtype": "hook_callback", "callback_id": hooks["hookCallbackIds"][0],
            "input": {"hook_event_name": event, "tool_name": "Bash", "tool_input": {}}})
    };
    cli.ask("1", call(&hooks["PreToolUse"][0], "PreToolUse")).await;
    let answer = cli.hear_answer("1").await;
    assert_eq!(answer["response"]["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    cli.ask("2", call(&hooks["PreToolUse"][1], "PreToolUse")).await;
    assert_eq!(cli.hear_answer("2").await["response"], json!({}));
    cli.ask("3", call(&hooks["UserPromptSubmit"][0], "UserPromptSubmit")).await;
    assert_eq!(cli.hear_answer("3").await["response"]["decision"], "block");
}

#[tokio::test]
async fn hl_perm_03_a_withdrawn_question_is_dropped_and_not_answered() {
    let (seen, mut saw) = tokio::sync::mpsc::channel(1);
    let options = Options::new().can_use_tool(move |request: PermissionRequest| {
        let seen = seen.clone();
        async move {
            seen.send(request.withdrawn().clone()).await.unwrap();
            std::future::pending().await
        }
    });
    let (_session, mut events, mut cli) = session(options).await;
    cli.ask("1", permission("t")).await;
    let withdrawn = saw.recv().await.unwrap();
    cli.say(json!({"type": "control_cancel_request", "request_id": "1"})).await;
    soon(withdrawn.cancelled()).await;
    cli.ask("2", json!({"subtype": "brand_new"})).await;
    cli.hear_answer("2").await;
    assert_eq!(events.next().await.unwrap().unwrap().tag(), "control_request");
    assert_eq!(events.next().await.unwrap().unwrap().tag(), "control_cancel_request");
}

#[tokio::test]
async fn an_elicitation_is_answered_by_the_program() {
    let options = Options::new().on_elicitation(|ask| async move {
        assert!(ask.message != "panic", "this panic is part of the test");
        ask.accept(json!({"name": ask.message, "id": ask.request_id()}))
    });
    let (_session, _events, mut cli) = session(options).await;
    cli.ask("1", json!({"subtype": "elicitation", "mcp_server_name": "m", "message": "who?"})).await;
    let answer = cli.hear_answer("1").await;
    assert_eq!(answer["response"], json!({"action": "accept", "content": {"name": "who?", "id": "1"}}));
    cli.ask("2", json!({"subtype": "elicitation", "mcp_server_name": "m", "message": "panic"})).await;
    assert_eq!(cli.hear_answer("2").await["response"], json!({"action": "decline"}));
}

#[tokio::test]
async fn hl_perm_04_a_question_asked_anew_under_its_id_is_answered() {
    let (seen, mut saw) = tokio::sync::mpsc::channel(4);
    let options = Options::new().can_use_tool(move |request: PermissionRequest| {
        let seen = seen.clone();
        async move {
            seen.send(request.withdrawn().clone()).await.unwrap();
            if request.tool_name == "hangs" {
                std::future::pending::<()>().await;
            }
            request.deny(request.tool_name.clone())
        }
    });
    let (_session, _events, mut cli) = session(options).await;
    let cancel = json!({"type": "control_cancel_request", "request_id": "1"});
    let unknown = json!({"type": "control_cancel_request", "request_id": "never asked"});
    cli.ask("1", permission("hangs")).await;
    saw.recv().await.unwrap();
    // In one write, so that the first is not yet swept away when the second comes.
    let again = json!({"type": "control_request", "request_id": "1", "request": permission("again")});
    cli.say_raw(format!("{unknown}\n{cancel}\n{again}\n").as_bytes()).await;
    assert_eq!(soon(cli.hear_answer("1")).await["response"]["message"], "again");
    saw.recv().await.unwrap();
    // Twice at once: the answer is about the later one.
    cli.ask("2", permission("hangs")).await;
    let first = saw.recv().await.unwrap();
    cli.ask("2", permission("later")).await;
    assert_eq!(soon(cli.hear_answer("2")).await["response"]["message"], "later");
    assert!(first.is_cancelled());
}

#[tokio::test]
async fn hl_hook_02_a_broken_hook_does_not_keep_a_turn_from_its_end() {
    let panics = |_| async { panic!("this panic is part of the test") };
    let options = Options::new().hook(Hook::on("Stop"), panics).hook(Hook::on("PostToolUse"), panics);
    let (transport, mut cli) = support::pipes();
    let connecting = tokio::spawn(options.connect_over(transport));
    let request = cli.hear_request("initialize").await;
    let hooks = &request["request"]["hooks"];
    assert_eq!(hooks["Stop"][0]["onFailure"], "continue");
    cli.answer(&request, json!({})).await;
    let _session = connecting.await.unwrap().unwrap();
    for event in ["Stop", "PostToolUse"] {
        let ask = json!({"subtype": "hook_callback", "callback_id": hooks[event][0]["hookCallbackIds"][0],
            "input": {"hook_event_name": event}});
        cli.ask(event, ask).await;
        assert_eq!(cli.hear_answer(event).await["response"], json!({}), "{event}");
    }
}

#[tokio::test]
async fn what_the_first_answer_told_is_not_forgotten() {
    let (transport, mut cli) = support::pipes();
    let serve = async {
        let request = cli.hear_request("initialize").await;
        let answer = json!({"capabilities": ["interrupt_receipt_v1"], "claude_code_version": "9.9",
            "current_permission_mode": "plan"});
        cli.answer(&request, answer).await;
    };
    let (connected, ()) = tokio::join!(Options::new().connect_over(transport), serve);
    let (session, mut events) = connected.unwrap();
    cli.state("running").await;
    events.next().await.unwrap().unwrap();
    assert!(session.can("interrupt_receipt_v1"));
    let state = session.state();
    assert_eq!((state.version.as_deref(), state.phase), (Some("9.9"), Phase::Running));
    assert_eq!(state.permission_mode, Some(PermissionMode::Plan));
}

#[tokio::test]
async fn options_are_checked_also_when_the_cli_runs_already() {
    use oarlock_agent::tool::{Tool, ToolServer};
    let server = || ToolServer::new("calc").tool(Tool::new("pi", async || 3.5));
    let stdio = || oarlock_agent::options::StdioServer::new("x");
    for options in [
        Options::new().fork_session(true),
        Options::new().initialize_field("subtype", json!("x")),
        Options::new().env("A=B", "c"),
        Options::new().tool_server(server()).tool_server(server()),
        Options::new().tool_server(server()).mcp_server("calc", stdio()),
    ] {
        let (transport, mut cli) = support::pipes();
        let error = options.connect_over(transport).await.err().unwrap();
        assert!(matches!(error, Error::Option { .. }), "{error}");
        assert!(cli.hear_or_end().await.is_none(), "nothing was said");
    }
}

#[test]
fn a_runtime_that_goes_down_ends_the_session_for_those_who_wait_elsewhere() {
    let first = tokio::runtime::Runtime::new().unwrap();
    let (session, events, _cli) = first.block_on(session(Options::new()));
    first.shutdown_background();
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        soon(session.wait()).await;
        assert!(soon(session.interrupt()).await.is_err());
        assert!(soon(session.send("x")).await.is_err());
        assert_eq!(soon(tags(events)).await, ["! the session is over"]);
    });
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_a_cli_that_has_stopped_listening() {
    let (session, events, mut cli) = session(Options::new()).await;
    cli.state("running").await;
    cli.stop_listening();
    // The first one finds out.
    assert!(session.interrupt().await.is_err());
    assert!(matches!(session.interrupt().await, Err(Error::Closed)));
    assert!(matches!(session.send("x").await, Err(Error::Closed)));
    // What runs comes to its end all the same.
    cli.result().await;
    cli.state("idle").await;
    cli.fall_silent();
    assert_eq!(tags(events).await, ["system", "result", "system"]);
}

#[tokio::test]
async fn hl_line_01_hl_line_02_what_cannot_be_read_is_an_error_and_the_stream_goes_on() {
    let (_session, events, mut cli) = session(Options::new().line_limit(300)).await;
    cli.say_raw(b"[debug] not JSON\n\r\n\n").await;
    cli.say(delta("a\u{2028}b")).await;
    cli.say_raw(format!("{{\"type\":\"stream_event\",\"x\":\"{}\"}}\n", "y".repeat(400)).as_bytes()).await;
    cli.say_raw(b"{\"type\":\"brand_new\"}\r\n{\"type\":\"keep_alive\"}\n{\"type\":\"assistant\",\"message\":{\"id\":\"\\ud83d\"}}\n").await;
    cli.say_raw(b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}").await;
    cli.fall_silent();
    let tags = tags(events).await;
    assert!(tags[0].starts_with("! the line is not JSON"), "{tags:?}");
    assert!(tags[2].starts_with("! claude wrote a line of more than 300 bytes"), "{tags:?}");
    assert_eq!(tags[1], "stream_event");
    assert_eq!(tags[3..], ["brand_new", "keep_alive", "assistant", "result"]);
}

#[tokio::test]
async fn hl_end_06_an_end_in_the_middle_of_a_turn_is_an_error() {
    let (session, events, mut cli) = session(Options::new()).await;
    session.send("x").await.unwrap();
    cli.state("running").await;
    cli.fall_silent();
    let tags = soon(tags(events)).await;
    assert_eq!(tags.len(), 2);
    assert!(tags[1].starts_with("! claude has ended"), "{tags:?}");
    assert!(support::is_exited(&session.send("more").await.unwrap_err()));
    assert!(support::is_exited(&session.interrupt().await.unwrap_err()));
    assert!(session.has_ended());
}

#[tokio::test(start_paused = true)]
async fn hl_ctl_02_a_request_without_an_answer_times_out_and_tells_whether_the_cli_hangs() {
    let (session, _events, mut cli) = session(Options::new().request_timeout(Duration::from_secs(7))).await;
    let error = session.interrupt().await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { silent: true, .. }), "{error}");
    assert!(error.to_string().contains("hangs"), "{error}");
    let request = cli.hear_request("interrupt").await;
    let (error, ()) = tokio::join!(session.interrupt(), cli.say(delta("still here")));
    assert!(matches!(error, Err(Error::NoAnswer { silent: false, .. })));
    // The late answer is nobody's, and harms nobody.
    cli.answer(&request, json!({})).await;
    cli.hear_request("interrupt").await;
    let asked = async {
        let request = cli.hear_request("get_session_cost").await;
        cli.answer(&request, json!({"text": "x"})).await;
    };
    let (cost, ()) = tokio::join!(session.session_cost(), asked);
    assert_eq!(cost.unwrap().text, "x");
}

#[tokio::test]
async fn refusals_say_what_and_why() {
    let (session, _events, mut cli) = session(Options::new()).await;
    let refuse = async {
        for error in [
            json!({"subtype": "error", "error": "Unsupported control request subtype: set_color"}),
            json!({"subtype": "error", "error": "no such mode", "error_code": "invalid_mode"}),
        ] {
            let request = cli.hear().await;
            let mut response = error;
            response["request_id"] = request["request_id"].clone();
            cli.say(json!({"type": "control_response", "response": response})).await;
        }
    };
    let asked =
        async { (session.set_color("red").await, session.set_permission_mode(PermissionMode::Auto).await) };
    let ((color, mode), ()) = tokio::join!(asked, refuse);
    assert!(matches!(color, Err(Error::Unsupported { .. })));
    assert_eq!(mode.unwrap_err().to_string(), "claude refused set_permission_mode: no such mode");
}

#[tokio::test]
async fn hl_ctl_05_anything_can_be_asked() {
    let (session, _events, mut cli) = session(Options::new()).await;
    let raw = Unknown { tag: "brand_new".into(), raw: json!({"subtype": "brand_new", "x": 1}).into() };
    let serve = async {
        let request = cli.hear_request("brand_new").await;
        assert_eq!(request["request"]["x"], 1);
        cli.answer(&request, json!({"y": 2})).await;
    };
    let (answer, ()) = tokio::join!(session.request(Request::Unknown(raw)), serve);
    assert_eq!(answer.unwrap().value(), json!({"y": 2}));
}

#[tokio::test]
async fn hl_ctl_04_the_echo_of_our_own_answers_is_no_answer_to_us() {
    let (session, events, mut cli) = session(Options::new()).await;
    cli.say(json!({"type": "control_response", "response": {"subtype": "success", "request_id": "strange"}}))
        .await;
    cli.fall_silent();
    assert!(tags(events).await.is_empty());
    assert_eq!(session.state().phase, Phase::Idle);
}

#[tokio::test]
async fn why_a_session_could_not_begin_is_told_in_the_clis_words() {
    let (transport, mut cli) = support::pipes();
    let serve = async {
        cli.hear_request("initialize").await;
        cli.say(json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
            "errors": ["No conversation found with session ID: x"]}))
            .await;
        cli.fall_silent();
    };
    let (connected, ()) = tokio::join!(Options::new().connect_over(transport), serve);
    let error = connected.err().unwrap();
    assert!(
        matches!(&error, Error::NotStarted { reason, .. } if reason.contains("No conversation")),
        "{error}"
    );
}

#[tokio::test]
async fn hl_mcp_01_tools_are_served_before_the_session_has_begun() {
    use oarlock_agent::tool::{Tool, ToolServer};
    let options = Options::new().tool_server(ToolServer::new("calc").tool(Tool::new("pi", async || 3.5)));
    let (transport, mut cli) = support::pipes();
    let serve = async {
        let initialize = cli.hear_request("initialize").await;
        assert_eq!(initialize["request"]["sdkMcpServers"], json!(["calc"]));
        let call = |message| json!({"subtype": "mcp_message", "server_name": "calc", "message": message});
        // Twice, as the CLI does at times.
        for id in ["a", "b"] {
            cli.ask(id, call(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
                {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}))).await;
            let answer = cli.hear_answer(id).await;
            assert_eq!(
                answer["response"]["mcp_response"]["result"]["serverInfo"]["name"], "calc",
                "{answer}"
            );
            cli.ask(id, call(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))).await;
            assert_eq!(cli.hear_answer(id).await["response"]["mcp_response"]["id"], 0);
        }
        cli.answer(&initialize, json!({})).await;
        cli.ask("c", call(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pi", "arguments": {}}})))
            .await;
        let answer = cli.hear_answer("c").await;
        assert_eq!(answer["response"]["mcp_response"]["result"]["content"][0]["text"], "3.5", "{answer}");
    };
    let (connected, ()) = tokio::join!(options.connect_over(transport), serve);
    assert!(connected.is_ok());
}

#[tokio::test]
async fn what_the_cli_writes_down_is_copied_to_a_store() {
    use oarlock_agent::store::{Key, MemoryStore, load_all};
    let store = std::sync::Arc::new(MemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().config_dir(dir.path()).store(store.clone());
    let (_session, events, mut cli) = session(options).await;
    let id = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b";
    let file = dir.path().join("projects/-w").join(format!("{id}.jsonl"));
    let record =
        json!({"type": "user", "uuid": "u", "sessionId": id, "message": {"role": "user", "content": "hi"}});
    cli.say(json!({"type": "transcript_mirror", "filePath": file, "entries": [record]})).await;
    cli.result().await;
    cli.fall_silent();
    assert_eq!(tags(events).await, ["result"], "the copies are not shown");
    let stored = load_all(store.as_ref(), &Key::new("-w", id)).await.unwrap().unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].value(), record);
}
