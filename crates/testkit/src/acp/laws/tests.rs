//! Every law can be broken, and then complains.

use std::time::Duration;

use serde_json::json;

use super::*;

fn line(sent: bool, message: Value) -> Line {
    Line { at: Duration::ZERO, sent, message }
}

fn sent(id: u32, method: &str, params: Value) -> Line {
    line(true, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn answer(id: u32, result: Value) -> Line {
    line(false, json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn shows(update: Value) -> Line {
    let params = json!({"sessionId": "s", "update": update});
    line(false, json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

fn call(status: &str) -> Line {
    shows(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "status": status}))
}

fn change(status: &str) -> Line {
    shows(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status}))
}

fn prompt() -> Line {
    sent(1, "session/prompt", json!({"sessionId": "s"}))
}

fn facts() -> Facts<'static> {
    Facts { abilities: Abilities::Bare, secrets: &[], stderr: "", background: false, cut_off: false }
}

#[test]
fn each_request_is_answered_once() {
    let done = || answer(1, json!({}));
    assert!(answers(&[prompt(), done()], &facts()).is_empty());
    assert_eq!(answers(&[prompt()], &facts()).len(), 1);
    assert_eq!(answers(&[prompt(), done(), done()], &facts()).len(), 1);
    assert_eq!(answers(&[done()], &facts()).len(), 1);
    let both = line(false, json!({"id": 1, "result": {}, "error": {}}));
    assert_eq!(answers(&[prompt(), both], &facts()).len(), 1);
}

#[test]
fn a_call_is_told_of_first_and_once() {
    assert!(calls(&[call("pending"), change("completed")], &facts()).is_empty());
    assert_eq!(calls(&[change("completed")], &facts()).len(), 1);
    assert_eq!(calls(&[call("pending"), call("pending")], &facts()).len(), 1);
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}});
    let ask =
        || line(false, json!({"id": 9, "method": "session/request_permission", "params": params.clone()}));
    assert_eq!(calls(&[ask()], &facts()).len(), 1);
    assert!(calls(&[call("pending"), ask()], &facts()).is_empty());
}

#[test]
fn a_status_moves_forward_and_ends_with_the_turn() {
    assert_eq!(calls(&[call("in_progress"), change("pending")], &facts()).len(), 1);
    assert_eq!(calls(&[call("completed"), change("failed")], &facts()).len(), 1);
    let turn = [prompt(), call("in_progress"), answer(1, json!({}))];
    assert_eq!(calls(&turn, &facts()).len(), 1);
    assert!(calls(&turn, &Facts { background: true, ..facts() }).is_empty());
}

#[test]
fn paths_are_absolute_and_lines_count_from_one() {
    let with = |location: Value| {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "locations": [location]});
        calls(&[shows(update)], &facts()).len()
    };
    assert_eq!(with(json!({"path": "a.txt"})), 1);
    assert_eq!(with(json!({"path": "/a.txt", "line": 0})), 1);
    assert_eq!(with(json!({"path": "/a.txt", "line": 1})), 0);
}

#[test]
fn nothing_is_shown_after_the_answer() {
    let chunk = || shows(json!({"sessionUpdate": "agent_message_chunk"}));
    let title = || shows(json!({"sessionUpdate": "session_info_update"}));
    assert!(quiet_between_turns(&[prompt(), chunk(), answer(1, json!({})), title()], &facts()).is_empty());
    assert_eq!(quiet_between_turns(&[prompt(), answer(1, json!({})), chunk()], &facts()).len(), 1);
}

#[test]
fn the_mode_is_the_same_in_both_places() {
    let new = |mode: &str, option: &str| {
        let result = json!({
            "sessionId": "s",
            "modes": {"currentModeId": mode, "availableModes": [{"id": "default"}, {"id": "plan"}]},
            "configOptions": [{"id": "mode", "currentValue": option}],
        });
        vec![sent(1, "session/new", json!({})), answer(1, result)]
    };
    assert!(modes(&new("plan", "plan")).is_empty());
    assert_eq!(modes(&new("plan", "default")).len(), 2, "at once, and at the end");
    assert_eq!(modes(&new("auto", "auto")).len(), 1, "it is not offered");
    let mut changed = new("plan", "plan");
    changed.push(shows(json!({"sessionUpdate": "current_mode_update", "currentModeId": "default"})));
    assert_eq!(modes(&changed).len(), 1);
    let options = json!([{"id": "mode", "currentValue": "default"}]);
    changed.push(shows(json!({"sessionUpdate": "config_option_update", "configOptions": options})));
    assert!(modes(&changed).is_empty());
}

#[test]
fn equal_plans_and_costs_are_not_repeated() {
    let plan = |text: &str| shows(json!({"sessionUpdate": "plan", "entries": [text]}));
    assert!(plans(&[plan("a"), plan("b"), plan("a")]).is_empty());
    assert_eq!(plans(&[plan("a"), plan("a")]).len(), 1);
    let cost = || shows(json!({"sessionUpdate": "usage_update", "used": 1, "cost": {"amount": 1}}));
    assert_eq!(usage(&[cost(), cost()]).len(), 1);
    assert!(usage(&[cost(), prompt(), cost()]).is_empty(), "equal turns cost the same");
}

#[test]
fn what_was_not_declared_is_not_used() {
    let notice = || shows(json!({"sessionUpdate": "notice"}));
    assert_eq!(abilities(&[notice()], Abilities::Zed).len(), 1);
    assert!(abilities(&[notice()], Abilities::Full).is_empty());
    let read = || line(false, json!({"id": 1, "method": "fs/read_text_file", "params": {}}));
    assert_eq!(abilities(&[read()], Abilities::Bare).len(), 1);
    let options = answer(1, json!({"configOptions": [{"type": "boolean"}]}));
    assert_eq!(abilities(&[options], Abilities::Bare).len(), 1);
    let terminal = shows(json!({"sessionUpdate": "tool_call", "_meta": {"terminal_info": {}}}));
    assert_eq!(abilities(&[terminal], Abilities::Bare).len(), 1);
}

#[test]
fn secrets_stay_inside() {
    let hidden = ["hush".to_owned()];
    let facts = Facts { secrets: &hidden, ..facts() };
    assert_eq!(secrets(&[answer(1, json!("it is hush"))], &facts).len(), 1);
    assert_eq!(secrets(&[], &Facts { stderr: "hush!", ..facts }).len(), 1);
}
