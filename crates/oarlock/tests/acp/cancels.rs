//! Cancelling: at any time, once, and without harm to what comes next.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client, Reply};
use oarlock_testkit::model::{Script, hold, text, tool};
use serde_json::{Value, json};

use crate::faults::kill_clis;
use crate::stage::{SLEEP, Stage, sleeps};
use crate::turns::text_of;

/// A cancelled prompt is answered within this.
const SOON: Duration = Duration::from_secs(2);

fn holds(stage: &Stage) -> String {
    stage.script("held", Script::new().turn([text("before the wait "), hold("never"), text("never seen")]))
}

/// Cancels, and expects the answer soon.
async fn cancelled(client: &Client, session: &str, id: &Value) -> Result<()> {
    client.cancel(session).await?;
    let answer = client.answered_within(id, SOON).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    Ok(())
}

pub(crate) async fn cancel(stage: Stage) -> Result<()> {
    let (held, next) = (holds(&stage), stage.says("next", "hello again"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    cancelled(&client, &session, &id).await?;
    let said = client.picture(&session).text();
    ensure!(said == "before the wait ", "no prose of the CLI's: {said}");
    ensure!(text_of(&client, &session, &next).await? == "hello again");
    stage.end(client).await
}

/// While streaming, at once, during a tool, twice, and when idle.
pub(crate) async fn acp_cancel_01_cancel_in_five_cases(stage: Stage) -> Result<()> {
    let held = holds(&stage);
    let tool = stage.uses("tool", "Bash", json!({"command": SLEEP, "description": "Sleep"}), "never");
    let next = stage.says("next", "fine");
    let (client, session) = stage.open(Abilities::Zed).await?;
    // Idle.
    client.cancel(&session).await?;
    ensure!(text_of(&client, &session, &next).await? == "fine");
    // Streaming.
    let mark = client.mark();
    let id = client.ask(&session, &held).await?;
    client.wait_after(mark, "a chunk", |message| message.to_string().contains("before the")).await?;
    cancelled(&client, &session, &id).await?;
    // At once after the prompt.
    let id = client.ask(&session, &held).await?;
    cancelled(&client, &session, &id).await?;
    // During a tool, and twice.
    let mark = client.mark();
    let id = client.ask(&session, &tool).await?;
    client
        .wait_after(mark, "the call", |message| message["params"]["update"]["sessionUpdate"] == "tool_call")
        .await?;
    client.cancel(&session).await?;
    cancelled(&client, &session, &id).await?;
    client.cancel(&session).await?;
    ensure!(text_of(&client, &session, &next).await? == "fine");
    stage.end(client).await
}

pub(crate) async fn cancel_early(stage: Stage) -> Result<()> {
    let write = tool("Write", json!({"file_path": stage.path("n2.txt"), "content": "x"}));
    let prompt = stage
        .script("early", Script::new().turn([text("cancelled prompt's text"), write]).turn([text("never")]));
    let next = stage.says("next", "second prompt's text");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &prompt).await?;
    cancelled(&client, &session, &id).await?;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said == "second prompt's text", "{said}");
    ensure!(stage.read("n2.txt").is_none(), "it went on");
    stage.end(client).await
}

pub(crate) async fn cancel_tool(stage: Stage) -> Result<()> {
    let prompt = stage.uses("tool", "Bash", json!({"command": SLEEP, "description": "Sleep"}), "never");
    let next = stage.says("next", "hello again");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &prompt).await?;
    client.update("tool_call", |_| true).await?;
    stage.until("the command", || sleeps(&stage)).await?;
    cancelled(&client, &session, &id).await?;
    let call = client.picture(&session).calls.pop().context("no call")?;
    ensure!(call.status() == "failed", "{call:?}");
    ensure!(!call.output.contains("doesn't want to proceed"), "the CLI's words to the model: {call:?}");
    stage.until("the command's end", || Ok(!sleeps(&stage)?)).await?;
    ensure!(text_of(&client, &session, &next).await? == "hello again");
    stage.end(client).await
}

/// The client is told that its answer is no longer wanted, or its `cancelled` is taken; the tool does not run.
pub(crate) async fn acp_cancel_02_a_permission_is_withdrawn(stage: Stage) -> Result<()> {
    let input = json!({"file_path": stage.path("new.txt"), "content": "x"});
    let prompt = stage.uses("write", "Write", input, "never");
    let next = stage.says("next", "fine");
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|_| Reply::Never);
    let id = client.ask(&session, &prompt).await?;
    let ask = client.asked("session/request_permission").await?;
    client.cancel(&session).await?;
    client.answer(&ask.id, json!({"outcome": {"outcome": "cancelled"}})).await?;
    let answer = client.answered_within(&id, SOON).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    ensure!(stage.read("new.txt").is_none(), "it ran");
    // And without an answer.
    let mark = client.mark();
    let id = client.ask(&session, &prompt).await?;
    let is_ask = |message: &Value| message["method"] == "session/request_permission";
    let ask = client.wait_after(mark, "the question", is_ask).await?;
    cancelled(&client, &session, &id).await?;
    let is_withdrawal = |message: &Value| {
        message["method"] == "$/cancel_request" && message["params"]["requestId"] == ask["id"]
    };
    client.wait_after(mark, "the withdrawal", is_withdrawal).await?;
    ensure!(stage.read("new.txt").is_none(), "it ran");
    ensure!(text_of(&client, &session, &next).await? == "fine");
    stage.end(client).await
}

/// A call made under the next prompt is not denied for the cancel before.
pub(crate) async fn acp_cancel_03_the_next_prompt_is_not_denied(stage: Stage) -> Result<()> {
    let held = holds(&stage);
    let write = |name: &str| json!({"file_path": stage.path(name), "content": "x"});
    let prompts: Vec<String> = (0..3)
        .map(|n| stage.uses(&format!("write{n}"), "Write", write(&format!("{n}.txt")), "written"))
        .collect();
    let (client, session) = stage.open(Abilities::Zed).await?;
    for (n, prompt) in prompts.iter().enumerate() {
        let id = client.ask(&session, &held).await?;
        if n > 0 {
            client.seen(&session, "words", |picture| picture.text().matches("before").count() >= n).await?;
        }
        // The next prompt does not wait for the answer.
        client.cancel(&session).await?;
        let next = client.ask(&session, prompt).await?;
        ensure!(client.answered(&id).await?.stop_reason()? == "cancelled");
        let answer = client.answered(&next).await?;
        ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
        ensure!(stage.read(&format!("{n}.txt")).is_some(), "{n} was denied");
    }
    stage.end(client).await
}

pub(crate) async fn caa_415_cancel_after_load(stage: Stage) -> Result<()> {
    let (first, held) = (stage.says("first", "one"), holds(&stage));
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &first).await?;
    stage.end(client).await?;
    let client = stage.agent(Abilities::Zed).await?;
    let params = json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": []});
    client.call("session/load", params).await?.result()?;
    let id = client.ask(&session, &held).await?;
    client.seen(&session, "words", |picture| picture.text().contains("before")).await?;
    cancelled(&client, &session, &id).await?;
    stage.end(client).await
}

/// Many cancels, one answer: the laws count.
pub(crate) async fn caa_551_caa_680_cancelled_once(stage: Stage) -> Result<()> {
    let held = holds(&stage);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    for _ in 0..5 {
        client.cancel(&session).await?;
    }
    let answer = client.answered_within(&id, SOON).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    client.call("session/close", json!({"sessionId": session})).await?.result()?;
    stage.end(client).await
}

/// A session in which a prompt was cancelled together with one that waited for it.
async fn cancel_two(stage: &Stage) -> Result<(Client, String)> {
    let (held, queued) = (holds(stage), stage.says("queued", "must not run"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let one = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let two = client.ask(&session, &queued).await?;
    client.cancel(&session).await?;
    for id in [one, two] {
        let answer = client.answered(&id).await?;
        ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    }
    Ok((client, session))
}

pub(crate) async fn cancel_a_queued_prompt(stage: Stage) -> Result<()> {
    let next = stage.says("next", "fine");
    let (client, session) = cancel_two(&stage).await?;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said == "fine", "{said}");
    stage.end(client).await
}

/// A prompt that was taken back is not sent again when its CLI dies.
pub(crate) async fn a_cancelled_prompt_does_not_come_back(stage: Stage) -> Result<()> {
    let next = stage.says("next", "fine");
    let (client, session) = cancel_two(&stage).await?;
    ensure!(kill_clis(&stage)? == 1, "one CLI runs");
    stage.until("its end", || Ok(stage.clis()?.is_empty())).await?;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said.ends_with("fine") && !client.picture(&session).text().contains("must not run"), "{said}");
    stage.end(client).await
}

/// What was said to a turn goes with it.
pub(crate) async fn a_cancel_takes_steering_with_it(stage: Stage) -> Result<()> {
    let (held, steered) = (holds(&stage), stage.says("steered", "must not run"));
    let next = stage.says("next", "fine");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let steer = json!({"sessionId": session, "prompt": [{"type": "text", "text": steered}]});
    ensure!(client.call("_session/steering", steer).await?.result()?["outcome"] == "injected");
    cancelled(&client, &session, &id).await?;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said == "fine", "{said}");
    let told = stage
        .model
        .requests()
        .iter()
        .any(|request| request.turn.as_ref().is_some_and(|turn| turn.script == "steered"));
    ensure!(!told, "the turn that was cancelled went on");
    let asked = stage.model.turn("next", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(told.contains(&next) && !told.contains(&steered), "the model was told: {told}");
    stage.end(client).await
}

/// A CLI that does not hear of the cancel, and asks before or after it.
const DEAF: &str = "ignore = [\"interrupt\"]\n\
    [[turn]]\nwhen = \"before\"\nsteps = [{ tool = \"Bash\", input = { command = \"make\" }, ask = true, output = \"it ran\" }]\n\
    [[turn]]\nwhen = \"after\"\nsteps = [{ text = \"wait\" }, { after_ms = 400, tool = \"Bash\", input = { command = \"make\" }, ask = true, output = \"it ran\" }]\n";

/// After a cancel a yes comes too late, whether or not the CLI has heard of it.
pub(crate) async fn a_yes_after_a_cancel_is_none(stage: Stage) -> Result<()> {
    stage.play(DEAF)?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    client.policy(|_| Reply::Never);
    let id = client.ask(&session, "before").await?;
    let ask = client.asked("session/request_permission").await?;
    client.cancel(&session).await?;
    client.answer(&ask.id, json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})).await?;
    ensure!(client.answered_within(&id, SOON).await?.stop_reason()? == "cancelled");
    let call = client.picture(&session).calls.pop().context("no call")?;
    ensure!(call.status() == "failed" && !call.text().contains("it ran"), "{call:?}");
    stage.end(client).await
}

/// What a turn asks after it was cancelled is not put to the user.
pub(crate) async fn a_cancelled_turn_asks_nothing(stage: Stage) -> Result<()> {
    stage.play(DEAF)?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    let id = client.ask(&session, "after").await?;
    client.update("agent_message_chunk", |_| true).await?;
    cancelled(&client, &session, &id).await?;
    ensure!(client.asks("session/request_permission").is_empty(), "the user was asked");
    stage.end(client).await
}

/// An edit that waits for the editor when it is cancelled is not made.
pub(crate) async fn a_cancelled_edit_is_not_written(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", "one\n")?;
    let input = json!({"file_path": file, "old_string": "one", "new_string": "two"});
    let prompt = stage.uses("edit", "mcp__acp__Edit", input, "never");
    let next = stage.says("next", "fine");
    let client = stage.agent_with(Abilities::Zed, &["--review-edits"]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.policy(|ask| match ask.method.as_str() {
        "session/request_permission" => Reply::option("allow-once"),
        _ => Reply::Never,
    });
    let id = client.ask(&session, &prompt).await?;
    let read = client.asked("fs/read_text_file").await?;
    cancelled(&client, &session, &id).await?;
    client.answer(&read.id, json!({"content": "one\n"})).await?;
    ensure!(text_of(&client, &session, &next).await? == "fine");
    ensure!(client.asks("fs/write_text_file").is_empty(), "it was written");
    stage.end(client).await
}

/// A prompt that is held for its subagent is cancelled with it, and the model is not told of it in a turn of its own.
pub(crate) async fn a_cancel_stops_the_agents_of_a_held_prompt(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let child = Script::new().turn([tool("Bash", json!({"command": SLEEP, "description": "Sleep"}))]);
    let child = stage.script("child", child);
    let input = json!({"description": "work", "prompt": child, "subagent_type": "general-purpose", "run_in_background": true});
    let parent =
        Script::new().turn([tool("Task", input)]).turn([text("parent done")]).turn([text("noticed")]);
    let (parent, next) = (stage.script("parent", parent), stage.says("next", "fine"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &parent).await?;
    client.seen(&session, "the parent's words", |picture| picture.text().contains("parent done")).await?;
    stage.until("the command", || sleeps(&stage)).await?;
    cancelled(&client, &session, &id).await?;
    stage.until("the command's end", || Ok(!sleeps(&stage)?)).await?;
    // The CLI would tell the model at once.
    tokio::time::sleep(Duration::from_millis(700)).await;
    let said = text_of(&client, &session, &next).await?;
    ensure!(said == "fine" && !client.picture(&session).text().contains("noticed"), "{said}");
    stage.end(client).await
}

/// A prompt that is cancelled while the CLI waits for an MCP server never runs, and the CLI survives it.
pub(crate) async fn a_cancel_while_a_server_hangs(stage: Stage) -> Result<()> {
    let (one, two) = (stage.says("one", "must not run"), stage.says("two", "fine"));
    let client = stage.agent(Abilities::Full).await?;
    let server = json!({"name": "hangs", "command": "sleep", "args": ["3600"], "env": []});
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server]})).await?;
    stage.until("the CLI", || Ok(stage.clis()?.len() == 1)).await?;
    let before = stage.clis()?;
    let id = client.ask(&session, &one).await?;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    cancelled(&client, &session, &id).await?;
    let said = text_of(&client, &session, &two).await?;
    ensure!(said.ends_with("fine") && !client.picture(&session).text().contains("must not run"), "{said}");
    ensure!(stage.clis()? == before, "it was killed");
    stage.end(client).await
}
