//! Turns, tasks and money: the rules one by one.

use oarlock_agent::reduce::{Event, Phase, TurnEnd};
use serde_json::{Value, json};

use crate::outline;
use crate::replay::{Replay, read};

fn init(session: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": session, "model": "m", "permissionMode": "default",
        "cwd": "/w", "claude_code_version": "1"})
}

fn result(more: Value) -> Value {
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false});
    for (name, value) in more.as_object().expect("an object") {
        result[name] = value.clone();
    }
    result
}

fn cost(cost: f64) -> Value {
    result(json!({"total_cost_usd": cost}))
}

fn ends(replay: &Replay) -> Vec<&TurnEnd> {
    let ends = replay.events.iter().filter_map(|event| match event {
        Event::TurnEnded(end) => Some(&**end),
        _ => None,
    });
    ends.collect()
}

fn costs(messages: impl IntoIterator<Item = Value>) -> Vec<f64> {
    ends(&Replay::of_values(messages)).iter().map(|end| end.cost_usd).collect()
}

fn lifecycle(uuid: &str, state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state})
}

fn replayed(uuid: &str) -> Value {
    json!({"type": "user", "isReplay": true, "uuid": uuid, "message": {"role": "user", "content": "hello"}})
}

fn call(id: &str, parent: Value, name: &str) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": parent, "message": {"id": format!("m of {id}"), "model": "m",
        "content": [{"type": "tool_use", "id": id, "name": name, "input": {"description": "d", "prompt": "p"}}]}})
}

fn answer(id: &str, output: Value) -> Value {
    json!({"type": "user", "tool_use_result": output, "message": {"role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": "said"}]}})
}

fn task(subtype: &str, more: Value) -> Value {
    let mut task = json!({"type": "system", "subtype": subtype, "task_id": "a1", "tool_use_id": "t1"});
    for (name, value) in more.as_object().expect("an object") {
        task[name] = value.clone();
    }
    task
}

fn may(request_id: &str, id: &str) -> Value {
    json!({"type": "control_request", "request_id": request_id, "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "tool_use_id": id, "agent_id": "a1", "input": {}}})
}

#[test]
fn a_turn_costs_what_the_sum_has_grown_by() {
    assert_eq!(costs([cost(0.1), cost(0.3), cost(0.3)]), [0.1, 0.2, 0.0]);
}

#[test]
fn a_sum_that_has_shrunk_has_begun_anew() {
    assert_eq!(costs([cost(0.5), cost(0.2), cost(0.3)]), [0.5, 0.2, 0.1]);
}

#[test]
fn after_clear_the_sum_begins_anew_even_if_it_grows_at_once() {
    let reset = json!({"type": "conversation_reset", "new_conversation_id": "n", "trigger": "clear"});
    assert_eq!(costs([cost(0.1), reset, cost(0.4)]), [0.1, 0.4]);
}

#[test]
fn the_clis_own_difference_is_preferred() {
    // A session that was resumed begins with a sum.
    let usage = json!({"m": {"inputTokens": 5, "outputTokens": 7, "costUSD": 0.25}, "n": {"costUSD": 0.5}});
    let resumed =
        result(json!({"total_cost_usd": 9.0, "model_usage_since_last_result": usage, "modelUsage": {}}));
    let replay = Replay::of_values([resumed]);
    let ends = ends(&replay);
    assert_eq!((ends[0].cost_usd, ends[0].model_usage["m"].output_tokens), (0.75, 7));
    let totals = replay.reducer.state().totals;
    assert_eq!((totals.turns, totals.cost_usd, totals.input_tokens), (1, 0.75, 5));
}

#[test]
fn usage_by_model_is_the_difference_of_sums() {
    let sums = |input: u64, cost: f64| {
        let usage =
            json!({"inputTokens": input, "outputTokens": 1, "costUSD": cost, "contextWindow": 200_000});
        result(json!({"total_cost_usd": cost, "modelUsage": {"m": usage}}))
    };
    let replay = Replay::of_values([sums(10, 0.1), sums(30, 0.3), sums(30, 0.3), sums(4, 0.1)]);
    let tokens: Vec<_> = (ends(&replay).iter())
        .map(|end| end.model_usage.get("m").map(|usage| (usage.input_tokens, usage.context_window)))
        .collect();
    let window = Some(200_000);
    assert_eq!(tokens, [Some((10, window)), Some((20, window)), None, Some((4, window))]);
}

#[test]
fn a_turn_begins_at_its_first_sign() {
    let status = json!({"type": "system", "subtype": "status", "status": "compacting"});
    let text = json!({"type": "assistant", "message": {"id": "m", "model": "m", "content": []}});
    let stream = json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}});
    for sign in [init("s"), status, text, stream, lifecycle("u", "started"), replayed("u"), cost(0.0)] {
        let replay = Replay::of_values([sign.clone()]);
        assert_eq!(replay.events[0], Event::TurnStarted, "{sign}");
        let again = Replay::of_values([sign.clone(), init("s"), init("s")]);
        let turns = again.events.iter().filter(|event| matches!(event, Event::TurnStarted)).count();
        assert_eq!(turns, if sign["type"] == "result" { 2 } else { 1 }, "{sign}");
    }
    let hook = json!({"type": "system", "subtype": "hook_started", "hook_id": "h"});
    let state = json!({"type": "system", "subtype": "session_state_changed", "state": "running"});
    let of_subagent = call("t2", json!("t1"), "Bash");
    for no_sign in [hook, state, of_subagent, lifecycle("u", "queued"), may("r", "t")] {
        let replay = Replay::of_values([no_sign.clone()]);
        assert!(!replay.events.contains(&Event::TurnStarted), "{no_sign}");
    }
}

#[test]
fn a_session_that_is_idle_has_no_turn() {
    let idle = json!({"type": "system", "subtype": "session_state_changed", "state": "idle"});
    let replay = Replay::of_values([init("s"), idle.clone()]);
    assert_eq!(ends(&replay)[0].result, None);
    let replay = Replay::of_values([init("s"), cost(0.1), idle]);
    assert_eq!(ends(&replay).len(), 1, "the result has ended it");
}

#[test]
fn a_result_says_what_it_answers_or_the_replays_do() {
    let told = result(json!({"user_message_uuids": ["a", "b"]}));
    let answers = |messages: Vec<Value>| {
        let replay = Replay::of_values(messages);
        ends(&replay).iter().map(|end| end.answers.clone()).collect::<Vec<_>>()
    };
    assert_eq!(answers(vec![init("s"), told]), [["a", "b"]]);
    assert_eq!(
        answers(vec![
            replayed("a"),
            init("s"),
            cost(0.0),
            replayed("b"),
            init("s"),
            replayed("c"),
            cost(0.0)
        ]),
        [vec!["a"], vec!["b", "c"]]
    );
    assert_eq!(answers(vec![lifecycle("a", "started"), init("s"), replayed("a"), cost(0.0)]), [["a"]]);
    let cancelled =
        [lifecycle("a", "started"), lifecycle("b", "started"), lifecycle("b", "cancelled"), cost(0.0)];
    assert_eq!(answers(cancelled.to_vec()), [["a"]]);
}

#[test]
fn a_cli_that_does_not_tell_answers_what_waited_when_the_turn_began() {
    let mut replay = Replay::default();
    replay.reducer.sent("a");
    replay.hear(read(&init("s")));
    replay.reducer.sent("b");
    replay.reducer.sent("c");
    replay.hear(read(&cost(0.0)));
    assert_eq!(replay.reducer.state().queued, ["b", "c"]);
    let origin = json!({"kind": "task-notification"});
    replay.hear(read(&init("s")));
    replay.hear(read(&result(json!({"origin": origin}))));
    assert_eq!(replay.reducer.state().queued, ["b", "c"], "nobody asked for that turn");
    replay.hear(read(&init("s")));
    replay.hear(read(&cost(0.0)));
    let answers: Vec<_> = ends(&replay).iter().map(|end| end.answers.clone()).collect();
    assert_eq!(answers, [vec!["a"], vec![], vec!["b", "c"]]);
    assert!(replay.reducer.state().queued.is_empty());
}

#[test]
fn messages_wait_until_they_are_read_or_cancelled() {
    let mut replay =
        Replay::of_values([lifecycle("a", "queued"), lifecycle("b", "queued"), lifecycle("c", "queued")]);
    replay.reducer.sent("a");
    assert_eq!(replay.reducer.state().queued, ["a", "b", "c"]);
    replay.hear(read(&lifecycle("a", "started")));
    replay.hear(read(&lifecycle("b", "cancelled")));
    assert_eq!(replay.reducer.state().queued, ["c"]);
    replay.hear(read(&replayed("c")));
    assert!(replay.reducer.state().queued.is_empty());
}

#[test]
fn another_session_id_is_told_and_empties_the_plan() {
    let todo = json!({"type": "assistant", "message": {"id": "m", "model": "m", "content": [{"type": "tool_use",
        "id": "t1", "name": "TodoWrite", "input": {"todos": [{"content": "a", "status": "pending"}]}}]}});
    let replay = Replay::of_values([
        init("s"),
        todo,
        answer("t1", json!({})),
        cost(0.0),
        init("s"),
        cost(0.0),
        init("z"),
    ]);
    let sessions = replay.events.iter().filter(|event| matches!(event, Event::SessionChanged { .. }));
    let sessions: Vec<_> = sessions.map(outline::event).collect();
    assert_eq!(sessions, ["session s before None", "session z before Some(\"s\")"]);
    assert!(replay.reducer.state().plan.is_empty());
}

#[test]
fn what_never_got_a_result_is_cancelled_with_its_turn() {
    let replay = Replay::of_values([call("t1", Value::Null, "Bash"), may("r1", "t1"), cost(0.0)]);
    let lines: Vec<_> = replay.events[2..].iter().map(outline::event).collect();
    assert_eq!(lines[1..3], ["cancelled Bash t1 at of t1.0", "withdrawn r1"]);
    assert!(lines[3].starts_with("turn ended"));
    assert!(replay.conversation.calls["t1"].cancelled);
}

/// A background subagent that calls a tool, up to the end of its turn.
fn background() -> Replay {
    Replay::of_values([
        call("t1", Value::Null, "Task"),
        task("task_started", json!({"description": "d"})),
        call("t2", json!("t1"), "Bash"),
        may("r1", "t2"),
        answer("t1", json!({"status": "async_launched", "agentId": "a1"})),
        cost(0.0),
    ])
}

#[test]
fn a_background_subagent_goes_on_when_its_turn_is_over() {
    let mut replay = background();
    let state = replay.reducer.state();
    assert_eq!(state.phase(), Phase::RequiresAction);
    assert!(state.tasks["a1"].is_background && !state.in_turn);
    assert_eq!(state.calls.keys().collect::<Vec<_>>(), ["t2"]);
    replay.hear(read(&answer("t2", json!("x"))));
    assert_eq!(replay.reducer.state().phase(), Phase::Idle);
    assert!(replay.conversation.calls["t2"].result.is_some());
}

#[test]
fn what_a_stopped_subagent_left_open_waits_for_its_result_until_the_next_turn() {
    let mut replay = background();
    replay.hear(read(&task("task_updated", json!({"patch": {"status": "killed"}}))));
    replay.hear(read(&task("task_notification", json!({"status": "stopped", "summary": "s"}))));
    assert!(replay.reducer.state().tasks.is_empty());
    assert!(replay.reducer.state().calls.contains_key("t2"), "its result comes last");
    replay.hear(read(&init("s")));
    assert!(replay.reducer.state().calls.is_empty());
    assert!(replay.conversation.calls["t2"].cancelled);
    assert_eq!(replay.conversation.calls["t1"].task.as_ref().expect("a task").status.as_str(), "stopped");
}

#[test]
fn a_task_that_is_no_longer_listed_is_over() {
    let mut replay = background();
    let list =
        |tasks: Value| json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks});
    replay.hear(read(&list(json!([{"task_id": "a1", "task_type": "local_agent"}]))));
    assert!(replay.reducer.state().tasks.contains_key("a1"));
    replay.hear(read(&list(json!([]))));
    assert!(replay.reducer.state().tasks.is_empty());
    // The list has background tasks only.
    replay.hear(read(&task("task_started", json!({"description": "d", "is_backgrounded": false}))));
    replay.hear(read(&list(json!([]))));
    assert!(replay.reducer.state().tasks.contains_key("a1"));
}

#[test]
fn a_foreground_task_ends_with_its_turn_at_the_latest() {
    let replay = Replay::of_values([
        call("t1", Value::Null, "Bash"),
        task("task_started", json!({"description": "d", "is_backgrounded": false})),
        answer("t1", json!("Error: interrupted")),
        cost(0.0),
    ]);
    assert!(replay.reducer.state().tasks.is_empty());
}

#[test]
fn an_old_background_command_outlives_its_turn() {
    let output = json!({"stdout": "", "stderr": "", "backgroundTaskId": "a1"});
    let replay = Replay::of_values([
        call("t1", Value::Null, "Bash"),
        task("task_started", json!({"description": "d"})),
        answer("t1", output),
        cost(0.0),
    ]);
    assert!(replay.reducer.state().tasks["a1"].is_background);
}

#[test]
fn news_of_a_task_that_is_over_do_not_bring_it_back() {
    let progress = task("task_progress", json!({"description": "late"}));
    let replay = Replay::of_values([task("task_notification", json!({"status": "completed"})), progress]);
    let changes: Vec<_> = replay.events.iter().map(outline::event).collect();
    assert_eq!(changes, ["task a1 Ended: completed of t1", "task a1 Progressed: running of t1"]);
    assert!(replay.reducer.state().tasks.is_empty());
}

#[test]
fn a_server_that_fails_is_told_once() {
    let with = |status: &str| {
        let mut init = init("s");
        init["mcp_servers"] = json!([{"name": "x", "status": status}]);
        init
    };
    let replay = Replay::of_values([
        with("pending"),
        with("failed"),
        with("failed"),
        with("connected"),
        with("failed"),
    ]);
    let notices = replay.events.iter().filter(|event| matches!(event, Event::Notice(_))).count();
    assert_eq!(notices, 2);
}
