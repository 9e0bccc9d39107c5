//! Prompts, turns and their results; control requests; interrupts and queues.

mod host;

use host::{Host, example, kinds, steps};
use oarlock_script::{Launch, Script};
use serde_json::{Value, json};

fn plain() -> Launch {
    Launch::new(["--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio"])
}

#[tokio::test]
async fn a_text_comes_in_deltas_with_its_assistant_frame_before_the_end_of_the_block() {
    let mut host = Host::start(example("text"), Launch::default());
    host.prompt("hi").await;
    let result = host.until_result().await;
    assert_eq!(
        kinds(&host.seen),
        [
            "system init",
            "system status requesting",
            "stream_event message_start",
            "stream_event content_block_start",
            "stream_event content_block_delta",
            "stream_event content_block_delta",
            "assistant text",
            "stream_event content_block_stop",
            "stream_event message_delta",
            "stream_event message_stop",
            "result success",
        ]
    );
    assert_eq!(result["result"], "Hello there, friend.");
    assert_eq!(result["num_turns"], 1);
    assert_eq!(host.end().await.0.code, 0);
}

#[tokio::test]
async fn without_partial_messages_there_are_no_stream_events() {
    let mut host = Host::start(example("thinking"), plain());
    host.prompt("hi").await;
    host.until_result().await;
    assert_eq!(kinds(&host.seen), ["system init", "assistant thinking", "assistant text", "result success"]);
}

#[tokio::test]
async fn thinking_has_estimates_deltas_and_a_signature() {
    let mut host = Host::start(example("thinking"), Launch::default());
    host.prompt("hi").await;
    host.until(|frame| frame["subtype"] == "thinking_tokens").await;
    let delta = host.next().await.expect("a delta");
    assert_eq!(delta["event"]["delta"], json!({ "type": "thinking_delta", "thinking": "Consider the" }));
    host.until(|frame| frame["event"]["delta"]["type"] == "signature_delta").await;
    let thought = host.until_assistant().await;
    assert_eq!(thought["message"]["content"][0]["thinking"], "Consider the two options.");
    assert!(thought["message"]["stop_reason"].is_null());
}

#[tokio::test]
async fn every_turn_has_its_init_and_costs_add_up() {
    let mut host = Host::start(example("text"), plain());
    for n in 1..=3_u64 {
        host.prompt("hi").await;
        let init = host.until(|frame| frame["subtype"] == "init").await;
        let result = host.until_result().await;
        assert_eq!(init["session_id"], result["session_id"]);
        assert_eq!(result["result_index"], n - 1);
        assert_eq!(result["modelUsage"]["claude-opus-5-5"]["inputTokens"], 10 * n);
        assert_eq!(result["usage"]["input_tokens"], 10);
    }
}

#[tokio::test]
async fn turns_go_in_order_the_last_repeats_and_when_picks() {
    let script = Script::parse(
        r#"
        [[turn]]
        steps = [{ text = "one" }]
        [[turn]]
        when = "secret"
        steps = [{ text = "found ${prompt}" }]
        [[turn]]
        steps = [{ text = "two" }]
        "#,
    );
    let mut host = Host::start(script.expect("a script"), plain());
    for (prompt, said) in [("a", "one"), ("the secret", "found the secret"), ("b", "two"), ("c", "two")] {
        host.prompt(prompt).await;
        assert_eq!(host.until_result().await["result"], said);
    }
}

#[tokio::test]
async fn a_script_without_turns_echoes() {
    let mut host = Host::start(Script::parse("").expect("a script"), plain());
    host.prompt("hello").await;
    assert_eq!(host.until_result().await["result"], "You said: hello");
}

#[tokio::test]
async fn messages_with_a_uuid_have_a_lifecycle_and_name_their_turn() {
    let mut host = Host::start(example("text"), plain());
    host.prompt_as("hi", "u-1").await;
    let result = host.until_result().await;
    assert_eq!(result["user_message_uuids"], json!(["u-1"]));
    host.until(|frame| frame["state"] == "completed").await;
    assert_eq!(
        kinds(&host.seen),
        [
            "command_lifecycle queued",
            "command_lifecycle started",
            "system init",
            "assistant text",
            "result success",
            "command_lifecycle completed",
        ]
    );
}

#[tokio::test]
async fn queued_messages_are_merged_and_replayed() {
    let mut host = Host::start(example("queued"), plain().arg("--replay-user-messages"));
    host.prompt_as("zero", "u-0").await;
    host.prompt_as("one", "u-1").await;
    host.prompt_as("two", "u-2").await;
    assert_eq!(host.until_result().await["result"], "Answer 0");
    let result = host.until_result().await;
    assert_eq!(result["result"], "You said: one\ntwo");
    assert_eq!(result["user_message_uuids"], json!(["u-1", "u-2"]));
    let replays: Vec<&Value> = host.seen.iter().filter(|frame| frame["isReplay"] == true).collect();
    let replayed: Vec<_> =
        replays.iter().map(|frame| (&frame["uuid"], &frame["message"]["content"])).collect();
    assert_eq!(json!(replayed), json!([["u-0", "zero"], ["u-1", "one"], ["u-2", "one\ntwo"]]),);
}

#[tokio::test]
async fn a_message_during_a_tool_is_taken_into_the_turn() {
    let script = steps(
        r#"{ tool = "Bash", input = { command = "make" }, ask = false, elicit = { message = "wait" } }, { text = "after" }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt_as("go", "u-0").await;
    let question = host.until_request("elicitation").await;
    host.prompt_as("steer", "u-1").await;
    host.until(|frame| frame["command_uuid"] == "u-1").await;
    host.answer(&question, json!({ "action": "decline" })).await;
    let result = host.until_result().await;
    assert_eq!(result["user_message_uuids"], json!(["u-0", "u-1"]));
    host.close_input();
    host.until(|frame| frame["command_uuid"] == "u-0" && frame["state"] == "completed").await;
    assert!(host.next().await.is_none(), "no second turn");
}

#[tokio::test]
async fn an_urgent_message_ends_the_running_turn_without_an_error() {
    let script = Script::parse(
        r#"
        [[turn]]
        steps = [{ text = "aa" }, { wait = "interrupt" }]
        [[turn]]
        steps = [{ text = "urgent" }]
        "#,
    );
    let mut host = Host::start(script.expect("a script"), plain());
    host.prompt("long").await;
    host.until_assistant().await;
    host.send(json!({ "type": "user", "message": { "role": "user", "content": "now" }, "priority": "now" }))
        .await;
    let first = host.until_result().await;
    assert_eq!((&first["is_error"], &first["terminal_reason"]), (&json!(false), &json!("aborted_streaming")));
    assert_eq!(host.until_result().await["result"], "urgent");
}

#[tokio::test]
async fn an_interrupt_is_answered_first_and_the_session_goes_on() {
    let mut host = Host::start(example("interrupt"), Launch::default());
    host.prompt_as("go", "u-0").await;
    host.until_assistant().await;
    host.prompt_as("next", "u-1").await;
    host.until(|frame| frame["command_uuid"] == "u-1").await;
    let receipt = host.request(json!({ "subtype": "interrupt" })).await;
    assert_eq!(receipt["response"], json!({ "still_queued": ["u-1"] }));
    let mark = host.until(|frame| frame["type"] == "user").await;
    assert_eq!(mark["message"]["content"][0]["text"], "[Request interrupted by user]");
    let stop = host.until(|frame| frame["event"]["type"] == "message_stop").await;
    assert_eq!(stop["abandoned_blocks"]["from_block_index"], 1);
    let result = host.until_result().await;
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    assert_eq!(result["num_turns"], 2);
    host.until(|frame| frame["command_uuid"] == "u-0" && frame["state"] == "cancelled").await;
    assert_eq!(host.until_result().await["result"], "After the interrupt.");
    assert_eq!(host.end().await.0.code, 0, "the last result was no error");
}

#[tokio::test]
async fn an_interrupt_can_cancel_the_queue() {
    let mut host = Host::start(example("interrupt"), plain());
    host.prompt("go").await;
    host.until_assistant().await;
    host.prompt_as("next", "u-1").await;
    host.until(|frame| frame["command_uuid"] == "u-1").await;
    let receipt = host.request(json!({ "subtype": "interrupt", "cancel_queued": true })).await;
    assert_eq!(receipt["response"], json!({ "still_queued": [], "cancelled": ["u-1"] }));
    host.until_result().await;
    assert_eq!(host.end().await.0.code, 1, "the last result was an error");
}

#[tokio::test]
async fn an_interrupt_cuts_a_slow_text_and_keeps_what_was_said() {
    let script = steps(r#"{ text = "one two three four five six", delta = 4, delta_ms = 50 }"#);
    let mut host = Host::start(script, Launch::default());
    host.prompt("go").await;
    host.until(|frame| frame["event"]["delta"]["text"] == "one ").await;
    host.request(json!({ "subtype": "interrupt" })).await;
    let kept = host.seen.iter().rev().find(|frame| frame["type"] == "assistant").cloned();
    let kept = match kept {
        Some(kept) => kept,
        None => host.until_assistant().await,
    };
    let kept = kept["message"]["content"][0]["text"].as_str().expect("text").to_owned();
    assert!("one two three four five six".starts_with(&kept) && kept.len() < 20, "{kept}");
}

#[tokio::test]
async fn an_idle_interrupt_changes_nothing() {
    let mut host = Host::start(example("text"), plain());
    assert_eq!(host.request(json!({ "subtype": "interrupt" })).await["subtype"], "success");
    host.prompt("hi").await;
    assert_eq!(host.until_result().await["is_error"], false);
}

#[tokio::test]
async fn a_queued_message_can_be_taken_back() {
    let mut host = Host::start(example("interrupt"), plain());
    host.prompt("go").await;
    host.until_assistant().await;
    host.prompt_as("next", "u-1").await;
    host.until(|frame| frame["command_uuid"] == "u-1").await;
    let cancel = |uuid: &str| json!({ "subtype": "cancel_async_message", "message_uuid": uuid });
    assert_eq!(host.request(cancel("u-1")).await["response"]["cancelled"], true);
    assert_eq!(host.request(cancel("u-1")).await["response"]["cancelled"], false);
}

#[tokio::test]
async fn requests_are_answered_in_the_shapes_of_the_real_cli() {
    let mut host = Host::start(example("text"), plain());
    let initialize = host.initialize(json!({})).await;
    for field in ["commands", "agents", "models", "account", "pid", "capabilities", "claude_code_version"] {
        assert!(initialize["response"].get(field).is_some(), "{field}");
    }
    let model = host.request(json!({ "subtype": "set_model", "model": "haiku" })).await;
    assert_eq!(model["response"], json!({ "model": "claude-haiku-5-5" }));
    let mode = host.request(json!({ "subtype": "set_permission_mode", "mode": "manual" })).await;
    assert_eq!(mode["response"], json!({ "mode": "default" }));
    let mode = host.request(json!({ "subtype": "set_permission_mode", "mode": "nonsense" })).await;
    assert_eq!(mode["error_code"], "invalid_mode");
    let mode = host.request(json!({ "subtype": "set_permission_mode", "mode": "bypassPermissions" })).await;
    assert_eq!(mode["error_code"], "bypass_not_launched");
    let status = host.request(json!({ "subtype": "mcp_status" })).await;
    assert_eq!(status["response"], json!({ "mcpServers": [] }));
    let unknown = host.request(json!({ "subtype": "brand_new" })).await;
    assert_eq!(unknown["error"], "Unsupported control request subtype: brand_new");
    host.prompt("hi").await;
    let init = host.until(|frame| frame["subtype"] == "init").await;
    assert_eq!(init["model"], "claude-haiku-5-5");
}

#[tokio::test]
async fn a_script_decides_over_answers_errors_and_silence() {
    let script = Script::parse(
        r#"
        version = "9.9.9"
        ignore = ["get_usage"]
        [answers]
        mcp_status = { mcpServers = [{ name = "x", status = "connected" }] }
        [errors]
        set_model = "no such model"
        [init]
        model = "my-model"
        [initialize]
        commands = []
        "#,
    );
    let mut host = Host::start(script.expect("a script"), plain());
    let initialize = host.initialize(json!({})).await;
    assert_eq!(initialize["response"]["commands"], json!([]));
    assert_eq!(initialize["response"]["claude_code_version"], "9.9.9");
    host.ask(json!({ "subtype": "get_usage" })).await;
    let status = host.request(json!({ "subtype": "mcp_status" })).await;
    assert_eq!(status["response"]["mcpServers"][0]["name"], "x");
    let model = host.request(json!({ "subtype": "set_model", "model": "x" })).await;
    assert_eq!((&model["subtype"], &model["error"]), (&json!("error"), &json!("no such model")));
    host.prompt("hi").await;
    assert_eq!(host.until(|frame| frame["subtype"] == "init").await["model"], "my-model");
    host.until_result().await;
    assert!(!host.seen.iter().any(|frame| frame["response"]["request_id"] == "req_2"), "silence");
}

#[tokio::test]
async fn end_session_ends_the_process() {
    let mut host = Host::start(example("text"), plain());
    host.request(json!({ "subtype": "end_session" })).await;
    assert_eq!(host.end_of_its_own().await.0.code, 0);
}

#[tokio::test]
async fn sessions_are_resumed_forked_and_refused() {
    const ID: &str = "11111111-2222-4333-8444-555555555555";
    let session = async |launch: Launch| {
        let mut host = Host::start(example("resume"), launch);
        host.prompt("hi").await;
        host.until_result().await["session_id"].as_str().expect("an id").to_owned()
    };
    assert_eq!(session(plain().arg(format!("--resume={ID}"))).await, ID);
    assert_eq!(session(plain().arg("--session-id").arg(ID)).await, ID);
    assert_ne!(session(plain().arg("--resume").arg(ID).arg("--fork-session")).await, ID);

    let script = Script::parse("sessions = [\"known\"]").expect("a script");
    let mut host = Host::start(script, plain().arg("--resume").arg(ID));
    let result = host.until_result().await;
    assert_eq!(result["errors"], json!([format!("No conversation found with session ID: {ID}")]));
    let (outcome, stderr) = host.end_of_its_own().await;
    assert_eq!(outcome.code, 1);
    assert!(stderr.contains("No conversation found"));
}

#[tokio::test]
async fn session_states_are_told_to_those_who_ask() {
    let launch = plain().env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");
    let mut host = Host::start(example("tool-deny"), launch);
    host.prompt("hi").await;
    let question = host.until_request("can_use_tool").await;
    host.answer(&question, json!({ "behavior": "deny", "message": "no" })).await;
    host.until_result().await;
    host.until(|frame| frame["state"] == "idle").await;
    let states: Vec<&Value> =
        host.seen.iter().map(|frame| &frame["state"]).filter(|state| state.is_string()).collect();
    assert_eq!(json!(states), json!(["running", "requires_action", "running", "idle"]));
}

#[tokio::test]
async fn the_api_fails_with_retries_a_synthetic_message_and_an_error_result() {
    for (status, error) in
        [(401, "authentication_failed"), (429, "rate_limit"), (500, "server_error"), (529, "server_error")]
    {
        let mut host = Host::start(example(&format!("error-{status}")), plain());
        host.prompt_as("hi", "u-0").await;
        let retry = host.until(|frame| frame["subtype"] == "api_retry").await;
        assert_eq!(retry["error_status"], status);
        let synthetic = host.until_assistant().await;
        assert_eq!(synthetic["message"]["model"], "<synthetic>");
        assert_eq!(synthetic["error"], error);
        let result = host.until_result().await;
        assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
        assert_eq!(result["api_error_status"], status);
        assert_eq!(host.next().await.expect("a lifecycle")["state"], "cancelled");
        assert_eq!(host.end().await.0.code, 1);
    }
}

#[tokio::test]
async fn the_api_can_recover() {
    let script = steps(r#"{ api_error = 529, retries = 2, recover = true }, { text = "there again" }"#);
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    assert_eq!(host.until_result().await["result"], "there again");
    assert_eq!(host.seen.iter().filter(|frame| frame["subtype"] == "api_retry").count(), 2);
}

#[tokio::test]
async fn limits_of_the_command_line_end_the_turn() {
    let mut host = Host::start(example("max-turns"), plain().arg("--max-turns").arg("1"));
    host.prompt("hi").await;
    let result = host.until_result().await;
    assert_eq!(result["subtype"], "error_max_turns");
    assert_eq!(result["errors"], json!(["Reached maximum number of turns (1)"]));
    host.prompt("again").await;
    assert_eq!(host.until_result().await["result"], "The next prompt works.");

    let mut host = Host::start(example("tool-allow"), plain().arg("--max-budget-usd").arg("0.00001"));
    host.prompt("hi").await;
    assert_eq!(host.until_result().await["subtype"], "error_max_budget_usd");
}

#[tokio::test]
async fn structured_output_ends_the_turn() {
    let mut host = Host::start(example("structured-output"), plain().arg("--json-schema").arg("{}"));
    host.prompt("hi").await;
    let result = host.until_result().await;
    assert_eq!(result["structured_output"], json!({ "name": "bob", "age": 7 }));
    assert_eq!(
        serde_json::from_str::<Value>(result["result"].as_str().expect("text")).expect("JSON"),
        result["structured_output"]
    );
    assert_eq!(result["stop_reason"], "tool_use");
}

#[tokio::test]
async fn compaction_happens_in_a_turn_or_on_command() {
    let mut host = Host::start(example("compaction"), plain());
    host.prompt("hi").await;
    let boundary = host.until(|frame| frame["subtype"] == "compact_boundary").await;
    assert_eq!(boundary["compact_metadata"]["trigger"], "auto");
    assert_eq!(boundary["compact_metadata"]["pre_tokens"], 160_000);
    assert_eq!(host.until_result().await["result"], "After.");
    host.prompt("/compact keep names").await;
    let boundary = host.until(|frame| frame["subtype"] == "compact_boundary").await;
    assert_eq!(boundary["compact_metadata"]["trigger"], "manual");
    assert_eq!(host.until_result().await["num_turns"], 0);
}

#[tokio::test]
async fn clear_begins_another_session_and_unknown_commands_are_prompts() {
    let mut host = Host::start(example("text"), plain());
    host.prompt("hi").await;
    let before = host.until_result().await["session_id"].clone();
    host.prompt("/clear").await;
    host.until(|frame| frame["type"] == "conversation_reset").await;
    assert_ne!(host.until_result().await["session_id"], before);
    host.prompt("/nope").await;
    assert_eq!(host.until_result().await["result"], "Hello there, friend.");
}

#[tokio::test]
async fn images_are_seen_and_given_back_as_sent() {
    let mut host = Host::start(example("image"), plain().arg("--replay-user-messages"));
    let image =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } });
    let content = json!([{ "type": "text", "text": "look" }, image]);
    host.send(json!({ "type": "user", "message": { "role": "user", "content": content } })).await;
    assert_eq!(host.until(|frame| frame["isReplay"] == true).await["message"]["content"], content);
    assert_eq!(host.until_result().await["result"], "I see 1 image(s).");
}

#[tokio::test]
async fn a_note_is_kept_without_a_turn_of_the_model() {
    let mut host = Host::start(example("text"), plain());
    let note =
        json!({ "type": "user", "message": { "role": "user", "content": "remember" }, "shouldQuery": false });
    host.send(note).await;
    let result = host.until_result().await;
    assert_eq!((&result["num_turns"], &result["result"]), (&json!(0), &json!("")));
    assert_eq!(kinds(&host.seen), ["system init", "result success"]);
}

#[tokio::test]
async fn hundreds_of_sessions_run_in_one_process() {
    let sessions = (0..300).map(|_| async {
        let mut host = Host::start(example("text"), Launch::default());
        host.initialize(json!({})).await;
        host.prompt("hi").await;
        host.until_result().await;
        host.end().await.0.code
    });
    let codes = futures_util::future::join_all(sessions).await;
    assert_eq!(codes, vec![0; 300]);
}
