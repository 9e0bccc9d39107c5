//! What is said: by the model, by the CLI, by the user.

use serde_json::{Value, json};

use super::fold::Item;
use super::{Stage, bare, capabilities, full, text};
use crate::translate::Pass;

fn delta(index: u64, kind: &str, text: &str) -> Value {
    let key = if kind == "text" { "text" } else { "thinking" };
    json!({ "type": "stream_event", "event": { "type": "content_block_delta", "index": index,
        "delta": { "type": format!("{kind}_delta"), key: text } } })
}

fn start(id: &str) -> Value {
    json!({ "type": "stream_event", "event": { "type": "message_start", "message": { "id": id, "model": "m" } } })
}

#[test]
fn text_that_is_ready_together_goes_out_together() {
    let mut stage = Stage::new(bare());
    stage.hear(&start("m1")).hear(&delta(0, "thinking", "hm")).hear(&delta(0, "thinking", "m"));
    stage.hear(&delta(1, "text", "Hel")).hear(&delta(1, "text", "lo"));
    let chunk = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text }, "messageId": "m1" });
    assert_eq!(stage.take(), [chunk("agent_thought_chunk", "hmm"), chunk("agent_message_chunk", "Hello")]);
    stage.hear(&delta(1, "text", "!"));
    assert_eq!(stage.take(), [chunk("agent_message_chunk", "!")], "what is sent is not sent again");
    stage.hear(&delta(1, "text", " One")).hear(&start("m2")).hear(&delta(0, "text", "Two"));
    let ids: Vec<_> = stage.take().iter().map(|update| update["messageId"].clone()).collect();
    assert_eq!(ids, ["m1", "m2"]);
}

#[test]
fn a_subagent_s_text_is_for_clients_that_ask() {
    let message = json!({ "type": "assistant", "parent_tool_use_id": "t1",
        "message": { "id": "m2", "content": [{ "type": "text", "text": "child" }] } });
    assert_eq!(Stage::new(bare()).hear(&message).take(), [""; 0]);
    let updates = Stage::new(full()).hear(&message).take();
    assert_eq!(updates[0]["_meta"], json!({ "claudeCode": { "parentToolUseId": "t1" } }));
}

#[test]
fn a_command_s_output_is_told_once() {
    let output = json!({ "type": "system", "subtype": "local_command_output", "content": "## Context" });
    let result = json!({ "type": "result", "subtype": "success", "result": "## Context", "is_error": false });
    let mut stage = Stage::new(bare());
    let init = json!({ "type": "system", "subtype": "init", "cwd": "/w", "model": "m" });
    let picture = stage.hear(&init).hear(&output).hear(&result).picture();
    assert_eq!(picture.said(), "## Context");
    let picture = stage.hear(&init).hear(&result).picture();
    assert_eq!(picture.said(), "## Context", "a result that nobody has said is said");
    let failed =
        json!({ "type": "result", "subtype": "success", "result": "Prompt is too long", "is_error": true });
    assert_eq!(stage.hear(&init).hear(&failed).picture().said(), "", "an error answers the prompt");
}

#[test]
fn a_client_without_notices_reads_a_line() {
    let retry = |attempt: u64| {
        json!({ "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10,
        "retry_delay_ms": 2500, "error_status": 529, "error": "overloaded" })
    };
    let mut stage = Stage::new(full());
    stage.hear_all(&(1..=10).map(retry).collect::<Vec<_>>());
    let picture = stage.picture();
    assert_eq!(picture.notices.len(), 4, "not every try is worth a word");
    let notice = json!({ "sessionUpdate": "notice", "severity": "warning",
        "title": "The API failed (529, overloaded); Claude Code tries again",
        "description": "Attempt 1 of 10, in 2.5 s" });
    assert_eq!(picture.notices[0], notice);
    let picture = Stage::new(bare()).hear(&retry(1)).picture();
    assert_eq!(
        picture.said(),
        "\n\n**The API failed (529, overloaded); Claude Code tries again**: Attempt 1 of 10, in 2.5 s\n\n"
    );
    let mut replay = Stage::at(full(), "/w", Pass::Replay);
    assert_eq!(replay.hear(&retry(1)).take(), [""; 0], "notices are not replayed");
}

#[test]
fn a_server_that_fails_is_told_of_once() {
    let init = |status: &str| {
        json!({ "type": "system", "subtype": "init", "cwd": "/w", "model": "m",
        "mcp_servers": [{ "name": "calc", "status": status }] })
    };
    let mut stage = Stage::new(full());
    for status in ["failed", "failed", "connected", "failed"] {
        stage.hear(&init(status));
    }
    let notices = stage.picture().notices;
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0]["title"], "The MCP server calc has failed");
}

#[test]
fn what_is_used_of_a_limit_is_in_meta_once() {
    let limit = |used: f64| {
        json!({ "type": "rate_limit_event", "rate_limit_info":
        { "status": "allowed", "rateLimitType": "five_hour", "resetsAt": 1_794_700_000, "utilization": used } })
    };
    let mut stage = Stage::new(bare());
    stage.hear_all(&[limit(0.5), limit(0.5), limit(0.6)]);
    let told: Vec<_> =
        stage.take().into_iter().map(|update| update["_meta"]["_claude/rateLimit"].clone()).collect();
    let expected = |used: f64| json!({ "status": "allowed", "rateLimitType": "five_hour", "resetsAt": 1_794_700_000, "utilization": used });
    assert_eq!(told, [expected(0.5), expected(0.6)]);
}

#[test]
fn limits_are_told_once_until_there_is_room() {
    let limit = |status: &str| {
        json!({ "type": "rate_limit_event", "rate_limit_info":
        { "status": status, "rateLimitType": "five_hour", "resetsAt": 1_794_700_000 } })
    };
    let mut stage = Stage::new(full());
    for status in
        ["allowed", "allowed_warning", "allowed_warning", "rejected", "rejected", "allowed", "rejected"]
    {
        stage.hear(&limit(status));
    }
    let notices = stage.picture().notices;
    let titles: Vec<_> = notices.iter().map(|notice| notice["title"].as_str().expect("a title")).collect();
    let (near, over) = ("Your five hour limit is nearly used up", "Your five hour limit is used up");
    assert_eq!(titles, [near, over, over]);
    assert!(
        notices[0]["description"].as_str().is_some_and(|words| words.starts_with("There is room again at"))
    );
}

fn compacted() -> [Value; 4] {
    [
        json!({ "type": "system", "subtype": "status", "status": "compacting" }),
        json!({ "type": "system", "subtype": "status", "status": null, "compact_result": "success" }),
        json!({ "type": "system", "subtype": "compact_boundary", "uuid": "u1",
            "compact_metadata": { "trigger": "manual", "post_tokens": 500 } }),
        json!({ "type": "user", "isSynthetic": true, "message": { "role": "user", "content": "The summary" } }),
    ]
}

#[test]
fn a_compaction_is_told_with_its_summary() {
    let mut stage = Stage::new(full());
    stage.hear_all(&compacted());
    let picture = stage.picture();
    let [begun, done] = &picture.others[..] else { panic!("{:#?}", picture.others) };
    assert_eq!((&begun["status"], &done["status"]), (&json!("in_progress"), &json!("completed")));
    assert_eq!(begun["compactionId"], done["compactionId"]);
    assert_eq!(done["summary"], json!([{ "type": "text", "text": "The summary" }]));
    assert_eq!(picture.usages[0]["used"], 500);

    let mut stage = Stage::new(bare());
    stage.hear(&compacted()[0]);
    let id = stage.take()[0]["toolCallId"].as_str().expect("an id").to_owned();
    stage.hear_all(&compacted()[1..]);
    let update = stage.take().into_iter().find(|update| update["toolCallId"] == id.as_str()).expect("an end");
    assert_eq!((&update["status"], text(&update["content"][0])), (&json!("completed"), "The summary"));
}

#[test]
fn a_compaction_that_fails_or_stops_says_so() {
    let failed = json!({ "type": "system", "subtype": "status", "status": null, "compact_result": "failed",
        "compact_error": "Not enough messages" });
    let mut stage = Stage::new(bare());
    let picture = stage.hear(&compacted()[0]).hear(&failed).picture();
    let call = picture.calls.values().next().expect("a call");
    assert_eq!((&call["title"], &call["kind"]), (&json!("Compact conversation"), &json!("think")));
    assert_eq!(
        (&call["status"], text(&call["content"][0])),
        (&json!("failed"), "The compaction failed: Not enough messages")
    );
    let result = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true });
    let picture = Stage::new(full()).hear(&compacted()[0]).hear(&result).picture();
    assert_eq!(picture.others[1]["status"], "cancelled");
}

#[test]
fn prompts_of_the_past_are_as_the_user_wrote_them() {
    let said = |content: Value| {
        let mut stage = Stage::at(capabilities(json!({})), "/w", Pass::Replay);
        stage.hear(
            &json!({ "type": "user", "uuid": "u1", "message": { "role": "user", "content": content } }),
        );
        let items = stage.picture().items;
        items.into_iter().next().map(|item| match item {
            Item::Said { kind, text, .. } => (kind, text),
            Item::Call(id) => panic!("{id}"),
        })
    };
    let user = |text: &str| Some(("user_message_chunk".to_owned(), text.to_owned()));
    assert_eq!(said(json!("hello")), user("hello"));
    let command = "<command-name>/review</command-name>\n<command-args>all</command-args>";
    assert_eq!(said(json!(command)), user("/review all"));
    assert_eq!(said(json!("<local-command-caveat>Caveat</local-command-caveat>")), None);
    assert_eq!(said(json!("<system-reminder>be good</system-reminder>")), None);
    assert_eq!(
        said(json!([{ "type": "text", "text": "look<system-reminder>x</system-reminder>" }])),
        user("look")
    );
    let output = said(json!("<local-command-stdout>done</local-command-stdout>"));
    assert_eq!(output, Some(("agent_message_chunk".into(), "done".into())));
    let mut stage = Stage::at(capabilities(json!({})), "/w", Pass::Replay);
    let blocks = json!([
        { "type": "text", "text": "see" },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA" } },
        { "type": "text", "text": "<context ref=\"file:///w/a\">\nbody\n</context>" },
    ]);
    stage.hear(&json!({ "type": "user", "uuid": "u1", "message": { "role": "user", "content": blocks } }));
    let kinds: Vec<_> = stage.take().iter().map(|update| update["content"]["type"].clone()).collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
}

#[test]
fn live_prompts_are_the_client_s_own() {
    let message = json!({ "type": "user", "isReplay": true, "uuid": "u1", "message": { "role": "user", "content": "hi" } });
    assert_eq!(Stage::new(bare()).hear(&message).take(), [""; 0]);
}
