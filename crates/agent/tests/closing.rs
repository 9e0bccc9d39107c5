//! When stdin is closed: by the session's state, not at the first result.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::time::Duration;

use oarlock_agent::Options;
use oarlock_agent::permission::PermissionRequest;
use serde_json::json;
use support::{Cli, session};
use tokio::time::{Instant, timeout};

/// Does stdin stay open for so long?
async fn stays_open(cli: &mut Cli, time: Duration) -> bool {
    timeout(time, cli.hear_or_end()).await.is_err()
}

/// Stdin must be closed now, in no time.
async fn is_closed(cli: &mut Cli) -> bool {
    let begin = Instant::now();
    cli.hear_or_end().await.is_none() && begin.elapsed() < Duration::from_millis(100)
}

async fn started(options: Options) -> (oarlock_agent::Session, oarlock_agent::Events, Cli) {
    let (session, events, mut cli) = session(options).await;
    let id = session.send("x").await.unwrap();
    cli.hear().await;
    session.finish().await;
    cli.state("running").await;
    cli.say(
        json!({"type": "user", "isReplay": true, "uuid": id, "message": {"role": "user", "content": "x"}}),
    )
    .await;
    (session, events, cli)
}

#[tokio::test(start_paused = true)]
async fn hl_end_01_after_a_plain_turn_it_closes_when_the_session_is_idle() {
    let (_session, _events, mut cli) = started(Options::new()).await;
    cli.result().await;
    assert!(stays_open(&mut cli, Duration::from_secs(60)).await, "the result is not the end");
    cli.state("idle").await;
    assert!(is_closed(&mut cli).await);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_finished_stays_open() {
    let (session, _events, mut cli) = session(Options::new()).await;
    session.send("x").await.unwrap();
    cli.hear().await;
    cli.state("running").await;
    cli.result().await;
    cli.state("idle").await;
    assert!(stays_open(&mut cli, Duration::from_secs(3600)).await);
    // Dropping the last handle finishes it.
    drop(session);
    assert!(timeout(Duration::from_secs(3), cli.hear_or_end()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn hl_end_02_a_background_task_keeps_it_open_and_so_does_the_turn_it_owes() {
    let (_session, _events, mut cli) = started(Options::new()).await;
    cli.say(json!({"type": "system", "subtype": "task_started", "task_id": "t", "task_type": "local_agent",
        "description": "d", "is_backgrounded": true}))
        .await;
    cli.result().await;
    cli.state("idle").await;
    assert!(stays_open(&mut cli, Duration::from_secs(300)).await);
    cli.say(json!({"type": "system", "subtype": "task_notification", "task_id": "t", "status": "completed"}))
        .await;
    assert!(stays_open(&mut cli, Duration::from_millis(1200)).await, "the model is told first");
    cli.state("running").await;
    cli.say(json!({"type": "result", "subtype": "success", "is_error": false, "origin": {"kind": "task-notification"}})).await;
    cli.state("idle").await;
    assert!(is_closed(&mut cli).await);
}

#[tokio::test(start_paused = true)]
async fn hl_end_03_a_task_that_never_ends_is_not_waited_for_for_ever() {
    let (_session, _events, mut cli) = started(Options::new().background_wait(Duration::from_secs(30))).await;
    cli.say(json!({"type": "system", "subtype": "task_started", "task_id": "t", "description": "d"})).await;
    cli.result().await;
    cli.state("idle").await;
    assert!(stays_open(&mut cli, Duration::from_secs(29)).await);
    assert!(timeout(Duration::from_secs(2), cli.hear_or_end()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_question_of_background_work_is_answered_after_the_result() {
    let options = Options::new().can_use_tool(|request: PermissionRequest| async move { request.allow() });
    let (_session, _events, mut cli) = started(options).await;
    cli.say(json!({"type": "system", "subtype": "task_started", "task_id": "t", "description": "d"})).await;
    cli.result().await;
    cli.state("idle").await;
    cli.ask("q", json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "x"}))
        .await;
    assert_eq!(cli.hear_answer("q").await["response"]["behavior"], "allow");
}

#[tokio::test(start_paused = true)]
async fn hl_end_04_a_callback_that_runs_keeps_it_open() {
    let (done, mut gate) = tokio::sync::watch::channel(false);
    gate.mark_unchanged();
    let options = Options::new().can_use_tool(move |request: PermissionRequest| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            request.allow()
        }
    });
    let (_session, _events, mut cli) = started(options).await;
    cli.ask("q", json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "x"}))
        .await;
    cli.result().await;
    cli.state("idle").await;
    assert!(stays_open(&mut cli, Duration::from_secs(60)).await);
    done.send(true).unwrap();
    cli.hear_answer("q").await;
    assert!(is_closed(&mut cli).await);
}

#[tokio::test(start_paused = true)]
async fn hl_end_05_a_message_that_was_not_taken_up_is_waited_for() {
    let (session, _events, mut cli) = started(Options::new()).await;
    session.send("second").await.unwrap();
    cli.hear().await;
    cli.result().await;
    cli.state("idle").await;
    assert!(stays_open(&mut cli, Duration::from_secs(1)).await, "the second message has not been read");
    // An interrupt may have swallowed it: a quiet session is closed in the end.
    assert!(timeout(Duration::from_secs(1), cli.hear_or_end()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn hl_end_07_a_busy_cli_may_read_late() {
    let (session, _events, mut cli) = session(Options::new().request_timeout(Duration::from_secs(60))).await;
    session.send("x").await.unwrap();
    cli.hear().await;
    session.finish().await;
    assert!(stays_open(&mut cli, Duration::from_secs(50)).await, "it has not yet begun");
    // One that never begins is not waited for for ever.
    assert!(timeout(Duration::from_secs(11), cli.hear_or_end()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_stops_reading_does_not_keep_a_finished_session_for_ever() {
    let (session, events, _cli) = session(Options::new().request_timeout(Duration::from_secs(60))).await;
    // More than the pipe takes, but not so much that the sender is held back.
    session.send("x".repeat(200 << 10)).await.unwrap();
    session.finish().await;
    let tags = timeout(Duration::from_secs(80), support::tags(events)).await.unwrap();
    assert!(tags.is_empty(), "{tags:?}");
    assert!(session.has_ended());
}

#[tokio::test(start_paused = true)]
async fn hl_end_08_a_turn_that_runs_after_the_input_has_closed_is_not_cut_short() {
    let options = Options::new().close_grace(Duration::from_secs(5));
    let (_session, events, mut cli) = started(options).await;
    cli.result().await;
    cli.state("idle").await;
    assert!(is_closed(&mut cli).await);
    // A scheduled task, say: the CLI ends it before it ends itself.
    cli.state("running").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    cli.result().await;
    cli.state("idle").await;
    cli.fall_silent();
    let tags = support::tags(events).await;
    assert_eq!(tags, ["system", "user", "result", "system", "system", "result", "system"]);
}

#[tokio::test(start_paused = true)]
async fn an_older_cli_that_tells_no_state_closes_at_its_result() {
    let (session, _events, mut cli) = session(Options::new()).await;
    let id = session.send("x").await.unwrap();
    cli.hear().await;
    session.finish().await;
    cli.say(json!({"type": "system", "subtype": "init", "session_id": "s"})).await;
    cli.say(
        json!({"type": "user", "isReplay": true, "uuid": id, "message": {"role": "user", "content": "x"}}),
    )
    .await;
    assert!(stays_open(&mut cli, Duration::from_secs(60)).await);
    cli.result().await;
    assert!(is_closed(&mut cli).await);
}
