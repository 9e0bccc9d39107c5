//! What is said and called: the rules one by one.

use oarlock_agent::reduce::{Body, Event};
use serde_json::{Value, json};

use crate::outline;
use crate::replay::{Replay, read};

fn event(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn start(id: &str) -> Value {
    event(json!({"type": "message_start", "message": {"id": id, "model": "m", "content": []}}))
}

fn block(index: u64, content: Value) -> Value {
    event(json!({"type": "content_block_start", "index": index, "content_block": content}))
}

fn delta(index: u64, delta: Value) -> Value {
    event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn text_delta(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn stop(index: u64) -> Value {
    event(json!({"type": "content_block_stop", "index": index}))
}

fn end() -> Value {
    event(json!({"type": "message_stop"}))
}

fn frame(id: &str, content: Value) -> Value {
    json!({"type": "assistant", "uuid": format!("frame of {id}"), "parent_tool_use_id": null,
        "message": {"id": id, "model": "m", "content": [content]}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn of_subagent(parent: &str, mut message: Value) -> Value {
    message["parent_tool_use_id"] = json!(parent);
    message
}

fn answer(id: &str, is_error: bool, output: Value) -> Value {
    json!({"type": "user", "parent_tool_use_id": null, "tool_use_result": output, "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": "said", "is_error": is_error}]}})
}

fn may(request_id: &str, id: &str, agent: Option<&str>) -> Value {
    json!({"type": "control_request", "request_id": request_id, "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "tool_use_id": id, "agent_id": agent, "input": {"command": "ls"}}})
}

fn result() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false})
}

/// The events after the first, which says that a turn has started.
fn outline(messages: impl IntoIterator<Item = Value>) -> Vec<String> {
    let events = Replay::of_values(messages).events;
    let mut lines: Vec<_> = events.iter().map(outline::event).collect();
    assert_eq!(lines.remove(0), "turn started");
    lines
}

#[test]
fn the_end_of_a_block_that_was_not_streamed_is_given_with_the_whole_block() {
    let lines = outline([start("m1"), block(0, text("")), text_delta(0, "Hel"), frame("m1", text("Hello"))]);
    assert_eq!(lines, ["text m1.0 \"Hel\"", "text m1.0 \"lo\"", "finished m1.0 text as of m1"]);
}

#[test]
fn a_block_that_reads_otherwise_in_the_end_is_not_given_again() {
    let replay = Replay::of_values([
        start("m1"),
        block(0, text("")),
        text_delta(0, "Hello "),
        frame("m1", text("Hello")),
    ]);
    assert_eq!(replay.shown_by_main(), "Hello ");
    assert_eq!(replay.conversation.turns[0].text(), "Hello", "the whole block is what counts");
}

#[test]
fn a_block_that_comes_whole_after_its_message_has_ended_is_not_given_again() {
    let late = [
        start("m1"),
        block(0, text("")),
        text_delta(0, "Hi"),
        stop(0),
        end(),
        frame("m1", text("Hi")),
        result(),
    ];
    let lines = outline(late);
    assert_eq!(lines[..2], ["text m1.0 \"Hi\"", "finished m1.0 text as of m1"]);
    assert!(lines[2].starts_with("turn ended"));
}

#[test]
fn text_that_a_block_begins_with_is_given_too() {
    let lines = outline([start("m1"), block(0, text("He")), text_delta(0, "y"), frame("m1", text("Hey"))]);
    assert_eq!(lines, ["text m1.0 \"He\"", "text m1.0 \"y\"", "finished m1.0 text as of m1"]);
}

#[test]
fn what_is_only_streamed_is_finished_by_the_end_of_its_message() {
    let input = json!({"type": "input_json_delta", "partial_json": "{\"command\":\"ls\"}"});
    let thinking = json!({"type": "thinking", "thinking": ""});
    let hm = json!({"type": "thinking_delta", "thinking": "Hm."});
    let lines = outline([
        start("m1"),
        block(0, thinking),
        delta(0, hm),
        stop(0),
        block(1, text("")),
        text_delta(1, "Hi"),
        stop(1),
        block(2, tool("t1", "Bash", json!({}))),
        delta(2, input),
        stop(2),
        end(),
        start("m2"),
    ]);
    let want = [
        "thinking m1.0 \"Hm.\"",
        "text m1.1 \"Hi\"",
        "announced Bash t1 at m1.2",
        "input of t1 \"{\\\"command\\\":\\\"ls\\\"}\"",
        "finished m1.0 thinking",
        "finished m1.1 text",
        "call Bash t1 at m1.2 {\"command\":\"ls\"}",
    ];
    assert_eq!(lines, want);
}

#[test]
fn a_call_whose_stream_breaks_is_cancelled_and_no_part_of_the_conversation() {
    let mut broken = end();
    broken["abandoned_blocks"] = json!({"api_message_id": "m1", "from_block_index": 1});
    let replay = Replay::of_values([
        start("m1"),
        block(0, text("")),
        text_delta(0, "Hi"),
        frame("m1", text("Hi")),
        stop(0),
        block(1, tool("t1", "Bash", json!({}))),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"comm"})),
        stop(1),
        broken,
    ]);
    assert_eq!(outline::event(replay.events.last().expect("some")), "cancelled Bash t1 at m1.1");
    assert_eq!(replay.conversation.turns[0].blocks.len(), 1);
    assert!(replay.conversation.calls.is_empty() && replay.reducer.state().calls.is_empty());
}

#[test]
fn blocks_of_another_message_are_not_abandoned() {
    let mut broken = end();
    broken["abandoned_blocks"] = json!({"api_message_id": "another", "from_block_index": 0});
    let lines = outline([
        start("m1"),
        block(0, text("")),
        text_delta(0, "Hi"),
        stop(0),
        broken,
        frame("m1", text("Hi")),
    ]);
    assert_eq!(lines, ["text m1.0 \"Hi\"", "finished m1.0 text as of m1"]);
}

#[test]
fn a_model_that_falls_back_to_a_whole_message_gives_up_the_stream() {
    let lines = outline([start("m1"), block(0, text("")), text_delta(0, "Hel"), frame("m2", text("Hello"))]);
    assert_eq!(lines[1..], ["abandoned m1.0", "text m2.0 \"Hello\"", "finished m2.0 text as of m2"]);
}

#[test]
fn thinking_is_given_once_with_its_signature_and_its_tokens() {
    let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "s"});
    let replay = Replay::of_values([
        start("m1"),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "system", "subtype": "thinking_tokens", "estimated_tokens": 4, "estimated_tokens_delta": 4}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "s"})),
        frame("m1", signed.clone()),
        stop(0),
    ]);
    let lines: Vec<_> = replay.events[1..].iter().map(outline::event).collect();
    assert_eq!(lines, ["thinking tokens 4", "thinking m1.0 \"Hm.\"", "finished m1.0 thinking as of m1"]);
    let Body::Thinking(thinking) = &replay.conversation.turns[0].blocks[0].body else { panic!("thinking") };
    assert_eq!(thinking.signature.as_deref(), Some("s"));
    // Models that keep it to themselves sign nothing but silence.
    let silent = json!({"type": "thinking", "thinking": "", "signature": "s"});
    assert_eq!(outline([frame("m1", silent)]), ["finished m1.0 thinking as of m1"]);
}

#[test]
fn a_question_may_come_before_its_call() {
    let started = json!({"type": "system", "subtype": "task_started", "task_id": "a1", "tool_use_id": "t1"});
    let call = frame("m2", tool("t2", "Bash", json!({"command": "ls"})));
    let replay = Replay::of_values([
        frame("m1", tool("t1", "Task", json!({"description": "d", "prompt": "p"}))),
        started,
        may("r1", "t2", Some("a1")),
        of_subagent("t1", call),
    ]);
    let lines: Vec<_> = replay.events[3..].iter().map(outline::event).collect();
    let want = [
        "call Bash t2 at nowhere {\"command\":\"ls\"} in t1",
        "may Bash t2 at nowhere run? 0 suggestions r1 in t1",
        "call Bash t2 at m2.0 {\"command\":\"ls\"} in t1",
    ];
    assert_eq!(lines, want);
    assert_eq!(replay.conversation.calls["t1"].blocks.len(), 1);
}

#[test]
fn the_input_of_a_call_is_what_its_message_says() {
    // The question has what a hook made of it.
    let replay = Replay::of_values([
        frame("m1", tool("t1", "Bash", json!({"command": "ls -l"}))),
        may("r1", "t1", None),
    ]);
    let Some(Event::Permission(permission)) = replay.events.last() else { panic!("a question") };
    assert_eq!(permission.call.input.value()["command"], "ls -l");
    assert_eq!(permission.request.input.value()["command"], "ls");
    assert_eq!(replay.events.iter().filter(|event| matches!(event, Event::ToolCall(_))).count(), 1);
}

#[test]
fn a_question_during_the_stream_makes_the_call_whole() {
    let lines = outline([start("m1"), block(0, tool("t1", "Bash", json!({}))), may("r1", "t1", None)]);
    let want = [
        "announced Bash t1 at m1.0",
        "call Bash t1 at m1.0 {\"command\":\"ls\"}",
        "may Bash t1 at m1.0 run? 0 suggestions r1",
    ];
    assert_eq!(lines, want);
}

#[test]
fn a_call_that_a_question_has_named_is_not_announced_again() {
    let lines = outline([start("m1"), may("r1", "t1", None), block(0, tool("t1", "Bash", json!({})))]);
    let want =
        ["call Bash t1 at nowhere {\"command\":\"ls\"}", "may Bash t1 at nowhere run? 0 suggestions r1"];
    assert_eq!(lines, want);
}

#[test]
fn pieces_without_text_are_no_text() {
    let thinking = json!({"type": "thinking_delta", "thinking": "", "estimated_tokens": 7});
    let lines = outline([start("m1"), block(0, text("")), text_delta(0, ""), delta(1, thinking)]);
    assert_eq!(lines, ["thinking tokens 7"]);
}

#[test]
fn a_result_may_come_before_its_call() {
    let call = frame("m1", tool("t1", "Bash", json!({"command": "ls"})));
    let lines = outline([start("m1"), answer("t1", false, json!("x")), call, result()]);
    assert_eq!(
        lines[..2],
        ["result t1 unknown with data \"said\"", "call Bash t1 at m1.0 {\"command\":\"ls\"}"]
    );
    assert!(lines[2].starts_with("turn ended"), "it is not cancelled: {lines:?}");
}

#[test]
fn a_result_closes_the_question() {
    let call = frame("m1", tool("t1", "Bash", json!({"command": "ls"})));
    let lines = outline([call, may("r1", "t1", None), answer("t1", true, json!("x"))]);
    assert_eq!(lines[2..], ["withdrawn r1", "result t1 Bash error with data \"said\""]);
}

#[test]
fn an_answer_that_the_cli_repeats_closes_the_question() {
    let mut replay = Replay::of_values([may("r1", "t1", None)]);
    assert!(!replay.reducer.state().questions.is_empty());
    let echo = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r1"}});
    replay.hear(read(&echo));
    assert!(replay.reducer.state().questions.is_empty());
}

#[test]
fn a_heartbeat_is_about_the_call_that_it_names_as_its_parent() {
    let call = frame("m1", tool("t1", "Bash", json!({"command": "ls"})));
    let beat = |id: &str, parent: Value, heartbeat: Value| {
        json!({"type": "tool_progress", "tool_use_id": id, "tool_name": "Bash", "parent_tool_use_id": parent,
            "elapsed_time_seconds": 30, "heartbeat": heartbeat})
    };
    let lines = outline([
        call,
        beat("t1-heartbeat-0", json!("t1"), json!(true)),
        beat("t1-heartbeat-1", json!("t1"), Value::Null),
        beat("t1", Value::Null, Value::Null),
        beat("t9", json!("t8"), Value::Null),
        beat("t7-heartbeat-0", json!("t7"), json!(true)),
    ]);
    let known = "progress t1 known 30 s";
    assert_eq!(lines[1..], [known, known, known, "progress t9 unknown 30 s", "progress t7 unknown 30 s"]);
}

#[test]
fn several_results_in_one_message_are_several_and_the_rest_is_a_prompt() {
    let message = json!({"type": "user", "parent_tool_use_id": null, "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
        {"type": "text", "text": "and this"},
        {"type": "tool_result", "tool_use_id": "t2", "content": "two"}]}});
    let lines: Vec<_> = Replay::of_values([message]).events.iter().map(outline::event).collect();
    assert_eq!(
        lines,
        ["result t1 unknown \"one\"", "result t2 unknown \"two\"", "prompt Other \"and this\""]
    );
}

#[test]
fn what_takes_the_place_of_a_message_takes_it_out_of_the_conversation() {
    let mut second = frame("m2", text("better"));
    second["supersedes"] = json!(["frame of m1"]);
    let replay = Replay::of_values([frame("m1", text("bad")), second]);
    assert_eq!(replay.conversation.turns[0].text(), "better");
}

#[test]
fn an_api_error_is_no_text() {
    let mut failed = frame("x", text("API Error: Overloaded"));
    failed["error"] = json!("server_error");
    failed["message"]["model"] = json!("<synthetic>");
    let lines = outline([failed]);
    assert_eq!(lines, ["API failed: server_error \"API Error: Overloaded\""]);
}

#[test]
fn output_of_commands_is_no_text_of_the_models() {
    let mut output = frame("x", text("Unknown command: /x"));
    output["message"]["model"] = json!("<synthetic>");
    let mut nothing = frame("y", text("(no content)"));
    nothing["message"]["model"] = json!("<synthetic>");
    let replayed = json!({"type": "user", "isReplay": true, "message": {"role": "user",
        "content": "<local-command-stdout>Set model to haiku</local-command-stdout>"}});
    let lines = outline([output, nothing, replayed]);
    assert_eq!(lines, ["command output \"Unknown command: /x\"", "command output \"Set model to haiku\""]);
}

#[test]
fn a_prompt_that_looks_like_output_is_a_prompt() {
    let prompt = json!({"type": "user", "isSynthetic": true, "message": {"role": "user",
        "content": "<local-command-stdout>look</local-command-stdout>"}});
    let lines: Vec<_> = Replay::of_values([prompt]).events.iter().map(outline::event).collect();
    assert_eq!(lines, ["prompt Synthetic \"<local-command-stdout>look</local-command-stdout>\""]);
}

#[test]
fn a_setting_that_is_changed_between_turns_begins_none() {
    let replayed = json!({"type": "user", "isReplay": true, "message": {"role": "user",
        "content": "<local-command-stdout>Set model to haiku</local-command-stdout>"}});
    let mode = json!({"type": "system", "subtype": "status", "status": null, "permissionMode": "plan"});
    let replay = Replay::of_values([replayed, mode.clone(), mode]);
    let lines: Vec<_> = replay.events.iter().map(outline::event).collect();
    assert_eq!(lines, ["command output \"Set model to haiku\"", "mode plan"], "and is told once");
}

#[test]
fn only_the_cli_itself_can_say_that_it_was_interrupted() {
    let mark = |replay: bool| {
        json!({"type": "user", "uuid": "u", "isReplay": replay, "message": {"role": "user",
            "content": [{"type": "text", "text": "[Request interrupted by user]"}]}})
    };
    let lines: Vec<_> = Replay::of_values([mark(false)]).events.iter().map(outline::event).collect();
    assert_eq!(lines, ["interrupted"]);
    assert_eq!(outline([mark(true)]), ["prompt Replay \"[Request interrupted by user]\""]);
}

#[test]
fn a_tool_that_the_api_runs_is_a_call_with_its_result() {
    let hits = json!([{"type": "web_search_result", "url": "u", "title": "t"}]);
    let message = json!({"type": "assistant", "message": {"id": "m1", "model": "m", "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": hits},
        {"type": "text", "text": "found"}]}});
    let lines = outline([message]);
    let want = [
        "call web_search s1 at m1.0 {\"query\":\"q\"}",
        "result s1 web_search \"\"",
        "text m1.2 \"found\"",
        "finished m1.2 text",
    ];
    assert_eq!(lines, want);
}

fn todos(id: &str, todos: &[(&str, &str)], is_error: bool) -> [Value; 2] {
    let todos: Vec<_> =
        todos.iter().map(|(content, status)| json!({"content": content, "status": status})).collect();
    let call = frame("m", tool(id, "TodoWrite", json!({"todos": todos})));
    let output = if is_error { json!("Error: no") } else { json!({"oldTodos": [], "newTodos": todos}) };
    [call, answer(id, is_error, output)]
}

fn plans(replay: &Replay) -> Vec<String> {
    let plans = replay.events.iter().filter(|event| matches!(event, Event::Plan(_)));
    plans.map(outline::event).collect()
}

#[test]
fn a_plan_is_told_when_it_has_changed() {
    let replay = Replay::of_values(
        [
            todos("t1", &[("a", "pending")], false),
            todos("t2", &[("a", "pending")], false),
            todos("t3", &[("a", "completed")], true),
            todos("t4", &[("a", "in_progress"), ("b", "pending")], false),
        ]
        .into_iter()
        .flatten(),
    );
    assert_eq!(plans(&replay), ["plan [\"a pending\"]", "plan [\"a in_progress\", \"b pending\"]"]);
    assert_eq!(replay.reducer.state().plan, replay.conversation.plan);
}

#[test]
fn a_subagents_list_is_its_own() {
    let [call, answer] = todos("t2", &[("a", "pending")], false);
    let replay = Replay::of_values([of_subagent("t1", call), of_subagent("t1", answer)]);
    assert_eq!(plans(&replay), Vec::<String>::new());
}

#[test]
fn tasks_that_are_made_at_once_are_listed_in_their_order() {
    let create = |id: &str, subject: &str| {
        frame(
            "m",
            tool(id, "TaskCreate", json!({"subject": subject, "description": "d", "activeForm": "doing"})),
        )
    };
    let made = |id: &str, task: &str, subject: &str| {
        answer(id, false, json!({"task": {"id": task, "subject": subject}}))
    };
    let update = frame("m", tool("t4", "TaskUpdate", json!({"taskId": "2", "status": "in_progress"})));
    let updated = answer("t4", false, json!({"success": true, "taskId": "2", "updatedFields": ["status"]}));
    let refused = frame("m", tool("t5", "TaskUpdate", json!({"taskId": "2", "status": "completed"})));
    let failed = answer("t5", false, json!({"success": false, "taskId": "2", "updatedFields": []}));
    let replay = Replay::of_values([
        create("t1", "a"),
        create("t2", "b"),
        create("t3", "c"),
        made("t3", "10", "c"),
        made("t2", "2", "b"),
        made("t1", "1", "a"),
        update,
        updated,
        refused,
        failed,
    ]);
    let last = plans(&replay).pop().expect("a plan");
    assert_eq!(last, "plan [\"a pending\", \"b in_progress\", \"c pending\"]");
    assert_eq!(plans(&replay).len(), 4);
    assert_eq!(replay.reducer.state().plan[1].active_form.as_deref(), Some("doing"));
}
