//! Cancelling: at any time, once, and without harm to what comes next.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client, Reply};
use oarlock_testkit::model::{Script, hold, text, tool};
use serde_json::{Value, json};

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

pub(crate) async fn cancel_a_queued_prompt(stage: Stage) -> Result<()> {
    let (held, queued) = (holds(&stage), stage.says("queued", "must not run"));
    let next = stage.says("next", "fine");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let one = client.ask(&session, &held).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let two = client.ask(&session, &queued).await?;
    client.cancel(&session).await?;
    for id in [one, two] {
        let answer = client.answered(&id).await?;
        ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    }
    let said = text_of(&client, &session, &next).await?;
    ensure!(said == "fine", "{said}");
    stage.end(client).await
}
