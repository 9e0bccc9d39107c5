//! Tokens and money for the user, and time for us.

use std::sync::Arc;
use std::time::Instant;

use oarlock_agent::reduce::{Event, MessageHead};
use serde_json::{Value, json};

use super::{Stage, bare};
use crate::translate::{Pass, Screen};

fn finished(id: &str, tokens: u64) -> [Value; 2] {
    let event = |event: Value| json!({ "type": "stream_event", "event": event });
    let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 1 });
    let message = json!({ "id": id, "model": "claude-x", "usage": usage });
    [
        event(json!({ "type": "message_start", "message": message })),
        event(
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } }),
        ),
    ]
}

fn result(cost: f64, window: u64) -> Value {
    let usage = json!({ "inputTokens": 1, "outputTokens": 1, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
        "webSearchRequests": 0, "contextWindow": window });
    json!({ "type": "result", "subtype": "success", "is_error": false, "result": "", "total_cost_usd": cost,
        "modelUsage": { "claude-x[1m]": usage } })
}

#[test]
fn acp_use_01_usage_is_told_once_a_call_and_cost_by_turn() {
    let mut stage = Stage::new(bare());
    let init = |model: &str| json!({ "type": "system", "subtype": "init", "cwd": "/w", "model": model });
    stage.hear(&init("claude-x"));
    stage.hear_all(&finished("m1", 985));
    stage.hear_all(&finished("m2", 985));
    assert_eq!(stage.take(), [json!(null); 0], "nobody knows yet what fits");
    stage.hear(&result(0.5, 10_000));
    let update = json!({ "sessionUpdate": "usage_update", "used": 1000, "size": 10_000,
        "cost": { "amount": 0.5, "currency": "USD" }, "_meta": { "_claude/model": "claude-x" } });
    assert_eq!(stage.take(), [update]);
    stage.hear(&init("claude-x"));
    stage.hear_all(&finished("m3", 1985));
    stage.hear_all(&finished("m4", 1985));
    let update = json!({ "sessionUpdate": "usage_update", "used": 2000, "size": 10_000,
        "_meta": { "_claude/model": "claude-x" } });
    assert_eq!(stage.take(), [update], "the same is not told again");
    stage.hear(&result(0.75, 10_000));
    let updates = stage.take();
    assert_eq!(updates.last().expect("an end")["cost"]["amount"], 0.25, "what this turn cost");
}

#[test]
fn a_large_window_is_known_by_the_model_s_name() {
    let mut stage = Stage::new(bare());
    stage.hear(&json!({ "type": "system", "subtype": "init", "cwd": "/w", "model": "claude-x[1m]" }));
    stage.hear_all(&finished("m1", 5));
    assert_eq!(stage.take()[0]["size"], 1_000_000);
}

#[test]
fn caa_625_what_other_sessions_have_learnt_is_known_from_the_beginning() {
    let mut first = Stage::new(bare());
    first.hear_all(&finished("m1", 5));
    first.hear(&result(0.5, 400_000));
    let windows = first.screen.new_windows().expect("news").clone();
    assert_eq!(first.screen.new_windows(), None, "once");
    let mut second = Stage::new(bare());
    second.screen.windows_are(&windows);
    second.hear_all(&finished("m2", 5));
    assert_eq!(second.take()[0]["size"], 400_000);
    second.hear(&result(0.5, 400_000));
    assert_eq!(second.screen.new_windows(), None, "nothing new");
}

#[test]
fn caa_1037_limits_go_along_with_the_usage_once() {
    let mut stage = Stage::new(bare());
    stage.hear(&json!({ "type": "rate_limit_event", "rate_limit_info":
        { "status": "allowed", "rateLimitType": "five_hour", "resetsAt": 1_794_700_000, "utilization": 0.25 } }));
    stage.hear_all(&finished("m1", 5));
    stage.hear(&result(0.5, 400_000));
    let told = stage.take();
    let limit = &told[0]["_meta"]["_claude/rateLimit"];
    assert_eq!(
        (&limit["rateLimitType"], &limit["utilization"]),
        (&json!("five_hour"), &json!(0.25)),
        "{told:?}"
    );
    stage.hear_all(&finished("m2", 500));
    assert!(stage.take()[0]["_meta"].get("_claude/rateLimit").is_none());
}

#[test]
fn a_delta_costs_next_to_nothing() {
    let head = Arc::new(MessageHead {
        id: "msg_0123456789".into(),
        model: "claude".into(),
        ..MessageHead::default()
    });
    let mut screen = Screen::new(bare(), "/w".into(), Pass::Live);
    let events: Vec<_> = (0..2000)
        .map(|_| Event::Text { message: head.clone(), block: 0, text: "twelve chars".into() })
        .collect();
    let start = Instant::now();
    for (number, event) in events.into_iter().enumerate() {
        screen.show(event);
        if number % 50 == 49 {
            screen.take();
        }
    }
    let each = start.elapsed() / 2000;
    println!("{each:?} a delta");
    let most = if cfg!(debug_assertions) { 100 } else { 2 };
    assert!(each.as_micros() < most, "{each:?}");
}
