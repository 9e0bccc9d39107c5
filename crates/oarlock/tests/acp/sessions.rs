//! Sessions of the past: loaded, resumed, forked, listed, named, deleted.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client, Item};
use oarlock_testkit::model::{Script, hold, text, thinking, tool};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::turns::text_of;

const BEFORE: &str = "one\ntwo\nthree\n";

/// A session with words, thoughts, a read, an edit, a command, one that fails, and a list of tasks.
fn rich(stage: &Stage) -> Result<String> {
    let file = stage.given("a.txt", BEFORE)?;
    let script = Script::new()
        .turn([thinking("hmm"), text("I will edit."), tool("Read", json!({"file_path": file}))])
        .turn([tool("Edit", json!({"file_path": file, "old_string": "two", "new_string": "TWO"}))])
        .turn([tool("Bash", json!({"command": "echo out; exit 3", "description": "Fail"}))])
        .turn([text("All done.")]);
    Ok(stage.script("rich", script))
}

fn of(stage: &Stage, session: &str) -> Value {
    json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": []})
}

/// Plays the rich session to its end, and ends the agent.
async fn past(stage: &Stage) -> Result<(String, Vec<Value>)> {
    let prompt = rich(stage)?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &prompt).await?;
    let shown = client.picture(&session).shown();
    stage.end(client).await?;
    Ok((session, shown))
}

async fn loaded(stage: &Stage, session: &str) -> Result<Client> {
    let client = stage.agent(Abilities::Zed).await?;
    client.call("session/load", of(stage, session)).await?.result()?;
    Ok(client)
}

/// The replay is there before the answer, and equals what was shown live.
pub(crate) async fn acp_load_01_acp_load_02_load(stage: Stage) -> Result<()> {
    let (session, live) = past(&stage).await?;
    let client = loaded(&stage, &session).await?;
    // Looked at at once: nothing may come later.
    let replayed = client.picture(&session).shown();
    let without_users =
        |items: &[Value]| items.iter().filter(|item| item["who"] != "user").cloned().collect::<Vec<_>>();
    let (live, again) = (without_users(&live), without_users(&replayed));
    for (number, (before, after)) in live.iter().zip(&again).enumerate() {
        ensure!(before == after, "item {number} was shown as\n{before}\nand is replayed as\n{after}");
    }
    ensure!(live.len() == again.len(), "live {live:?}\n\nreplayed {again:?}");
    ensure!(replayed[0]["who"] == "user", "the user's words come first: {replayed:?}");
    let prompt = stage.says("next", "continued");
    ensure!(text_of(&client, &session, &prompt).await? == "continued");
    let asked = stage.model.requests().pop().context("no request")?;
    ensure!(asked.body.to_string().contains("All done."), "the model remembers");
    client.call("session/close", json!({"sessionId": session})).await?.result()?;
    client.call("session/delete", json!({"sessionId": session})).await?.result()?;
    client.call("session/load", of(&stage, &session)).await?.error(-32002)?;
    stage.end(client).await
}

pub(crate) async fn aionui_2890_replay_has_stable_message_ids(stage: Stage) -> Result<()> {
    let (session, live) = past(&stage).await?;
    let ids = |items: &[Item]| -> Vec<Option<String>> {
        let said = items.iter().filter_map(|item| match item {
            Item::Said { id, .. } => Some(id.clone()),
            Item::Call(_) => None,
        });
        said.collect()
    };
    let mut runs = Vec::new();
    for _ in 0..2 {
        let client = loaded(&stage, &session).await?;
        runs.push(ids(&client.picture(&session).items));
        stage.end(client).await?;
    }
    ensure!(runs[0] == runs[1] && runs[0].iter().all(Option::is_some), "{runs:?}");
    let of_live: Vec<&Value> =
        live.iter().filter(|item| item["who"] == "agent").map(|item| &item["id"]).collect();
    ensure!(
        of_live.iter().all(|id| runs[0].contains(&id.as_str().map(str::to_owned))),
        "{of_live:?} {runs:?}"
    );
    Ok(())
}

pub(crate) async fn resume(stage: Stage) -> Result<()> {
    let (session, _) = past(&stage).await?;
    let prompt = stage.says("next", "continued");
    let client = stage.agent(Abilities::Zed).await?;
    let list = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?;
    ensure!(list.result()?["sessions"][0]["sessionId"] == session, "{list:?}");
    client.call("session/resume", of(&stage, &session)).await?.result()?;
    ensure!(client.picture(&session).items.is_empty(), "nothing is replayed");
    ensure!(text_of(&client, &session, &prompt).await? == "continued");
    ensure!(client.picture(&session).items.len() == 1, "only the new turn is shown");
    let asked = stage.model.requests().pop().context("no request")?;
    ensure!(asked.body.to_string().contains("All done."), "the model remembers");
    stage.end(client).await
}

pub(crate) async fn fork(stage: Stage) -> Result<()> {
    let (session, _) = past(&stage).await?;
    let (left, right) = (stage.says("left", "to the left"), stage.says("right", "to the right"));
    let client = stage.agent(Abilities::Zed).await?;
    let answer = client.call("session/fork", of(&stage, &session)).await?;
    let other = answer.result()?["sessionId"].as_str().context("no id")?.to_owned();
    ensure!(other != session);
    client.call("session/resume", of(&stage, &session)).await?.result()?;
    text_of(&client, &session, &left).await?;
    text_of(&client, &other, &right).await?;
    for (words, absent) in [("to the left", "to the right"), ("to the right", "to the left")] {
        let told = stage.model.requests().into_iter().map(|request| request.body["messages"].to_string());
        ensure!(!told.into_iter().any(|told| told.contains(words) && told.contains(absent)), "they are one");
    }
    stage.end(client).await
}

pub(crate) async fn caa_1048_caa_71_fork_at_a_message(stage: Stage) -> Result<()> {
    let (one, two) = (stage.says("one", "first answer"), stage.says("two", "second answer"));
    let next = stage.says("next", "third answer");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &one).await?;
    text_of(&client, &session, &two).await?;
    let picture = client.picture(&session);
    let Some(Item::Said { id: Some(at), .. }) =
        picture.items.iter().find(|item| matches!(item, Item::Said { who: "agent", .. }))
    else {
        anyhow::bail!("no message: {picture:?}");
    };
    let mut params = of(&stage, &session);
    params["_meta"] = json!({"messageId": at});
    let answer = client.call("session/fork", params).await?;
    let other = answer.result()?["sessionId"].as_str().context("no id")?.to_owned();
    text_of(&client, &other, &next).await?;
    let asked = stage.model.turn("next", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(told.contains("first answer") && !told.contains("second answer"), "{told}");
    stage.end(client).await
}

pub(crate) async fn acp_load_03_list_pages_and_delete_forgives(stage: Stage) -> Result<()> {
    let client = stage.agent(Abilities::Bare).await?;
    let empty = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?;
    ensure!(empty.result()?["sessions"] == json!([]), "{empty:?}");
    client.call("session/list", json!({"cursor": "nonsense"})).await?.error(-32602)?;
    for id in ["nope", "00000000-0000-4000-8000-000000000000"] {
        client.call("session/delete", json!({"sessionId": id})).await?.result()?;
    }
    // Transcripts as the CLI writes them, more than a page of them.
    let folder = stage.sandbox.work().to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let folder = stage.sandbox.home().join(".claude/projects").join(folder);
    std::fs::create_dir_all(&folder)?;
    const MANY: usize = 260;
    for n in 0..MANY {
        let id = format!("00000000-0000-4000-8000-{n:012}");
        let line = json!({
            "type": "user", "uuid": id, "parentUuid": null, "sessionId": id, "cwd": stage.sandbox.work(),
            "timestamp": "2026-11-15T00:00:00.000Z", "message": {"role": "user", "content": format!("prompt {n}")},
        });
        std::fs::write(folder.join(format!("{id}.jsonl")), format!("{line}\n"))?;
    }
    let mut found = std::collections::BTreeSet::new();
    let mut params = json!({"cwd": stage.sandbox.work()});
    for _ in 0..MANY {
        let page = client.call("session/list", params.clone()).await?;
        let page = page.result()?;
        for session in page["sessions"].as_array().context("no sessions")? {
            ensure!(session["title"].as_str().is_some_and(|title| title.starts_with("prompt ")), "{session}");
            ensure!(found.insert(session["sessionId"].to_string()), "twice: {session}");
        }
        match page["nextCursor"].as_str() {
            Some(cursor) => params["cursor"] = json!(cursor),
            None => break,
        }
    }
    ensure!(found.len() == MANY, "{} of {MANY}", found.len());
    stage.end(client).await
}

pub(crate) async fn caa_130_sessions_of_the_cli_are_listed(stage: Stage) -> Result<()> {
    let prompt = stage.says("own", "said to the terminal");
    let output = tokio::process::Command::new(stage.sandbox.bin().join("claude"))
        .args(["-p", &prompt])
        .current_dir(stage.sandbox.work())
        .env_clear()
        .envs(stage.sandbox.environment(Some(&stage.model))?)
        .output()
        .await?;
    ensure!(output.status.success(), "{output:?}");
    let client = stage.agent(Abilities::Zed).await?;
    let list = client.call("session/list", json!({})).await?;
    let session = &list.result()?["sessions"][0];
    let id = session["sessionId"].as_str().context("not listed")?;
    ensure!(session["cwd"] == json!(stage.sandbox.work()), "{session}");
    client.call("session/load", of(&stage, id)).await?.result()?;
    ensure!(client.picture(id).text() == "said to the terminal", "{:?}", client.picture(id).items);
    stage.end(client).await
}

pub(crate) async fn zed_55888_a_cleared_session_goes_on(stage: Stage) -> Result<()> {
    let (one, two) = (stage.says("one", "before it"), stage.says("two", "after it"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &one).await?;
    let told = text_of(&client, &session, "/clear").await?;
    ensure!(told.contains("begins anew"), "the user is told: {told}");
    ensure!(text_of(&client, &session, &two).await? == "after it");
    let asked = stage.model.turn("two", 0, std::time::Duration::from_secs(5)).await?;
    ensure!(!asked.body["messages"].to_string().contains("before it"), "it was not cleared");
    stage.written("\"after it\"").await?;
    let list = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?.result()?.clone();
    let ids =
        list["sessions"].as_array().into_iter().flatten().filter_map(|entry| entry["sessionId"].as_str());
    ensure!(ids.filter(|id| told.contains(id)).count() == 1, "under the name that was told: {told} {list}");
    let answer = client.call("session/fork", of(&stage, &session)).await?;
    let fork = answer.result()?["sessionId"].as_str().context("no id")?.to_owned();
    text_of(&client, &fork, &stage.says("forked", "in the fork")).await?;
    let asked = stage.model.turn("forked", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(told.contains("after it") && !told.contains("before it"), "a fork of the other: {told}");
    // A CLI that dies after a clear comes back in the new conversation.
    for id in stage.clis()? {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(id).context("no pid")?,
            rustix::process::Signal::KILL,
        )?;
    }
    let said = text_of(&client, &session, &stage.says("three", "and on")).await?;
    ensure!(said.contains("and on"), "{said}");
    let asked = stage.model.turn("three", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(told.contains("after it") && !told.contains("before it"), "it is another conversation: {told}");
    stage.end(client).await
}

pub(crate) async fn zed_54411_a_title_can_be_set(stage: Stage) -> Result<()> {
    let prompt = stage.says("one", "words");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &prompt).await?;
    let told = client.seen(&session, "a title", |picture| picture.title.is_some()).await?;
    ensure!(told.title.as_deref().is_some_and(|title| title.starts_with("please")), "{:?}", told.title);
    client
        .call("session/set_title", json!({"sessionId": session, "title": "My own title"}))
        .await?
        .result()?;
    client.seen(&session, "the title", |picture| picture.title.as_deref() == Some("My own title")).await?;
    stage.end(client).await?;
    let client = stage.agent(Abilities::Zed).await?;
    let list = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?;
    ensure!(list.result()?["sessions"][0]["title"] == "My own title", "{list:?}");
    stage.end(client).await
}

pub(crate) async fn load_while_it_is_open(stage: Stage) -> Result<()> {
    let (one, two) = (stage.says("one", "first"), stage.says("two", "second"));
    let three = stage.says("three", "third");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &one).await?;
    // At once: the CLI writes the transcript a moment after the turn's end, and that is for the agent to wait for.
    client.call("session/load", of(&stage, &session)).await?.result()?;
    let list = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?;
    ensure!(list.result()?["sessions"][0]["sessionId"] == session, "{list:?}");
    let clis = stage.clis()?;
    ensure!(stage.clis()? == clis, "the same CLI serves it");
    ensure!(client.picture(&session).text().matches("first").count() == 2, "shown live and again");
    ensure!(text_of(&client, &session, &two).await? == "second");
    client.call("session/resume", of(&stage, &session)).await?.result()?;
    ensure!(stage.clis()? == clis, "and when it is resumed");
    // With other directories it is another CLI, which remembers.
    let mut other = of(&stage, &session);
    other["additionalDirectories"] = json!([stage.sandbox.home()]);
    client.call("session/resume", other).await?.result()?;
    ensure!(text_of(&client, &session, &three).await? == "third");
    let asked = stage.model.turn("three", 0, std::time::Duration::from_secs(5)).await?;
    let told = asked.body["messages"].to_string();
    ensure!(told.contains("first") && told.contains("second"), "it has forgotten: {told}");
    ensure!(stage.clis()?.iter().all(|id| !clis.contains(id)), "the same CLI");
    stage.end(client).await
}

/// The session goes on from a message: what was said after it is forgotten, also by those who load it.
/// A list right after the first turn has the session; one of an agent that has just begun has none.
pub(crate) async fn a_session_is_listed_after_its_first_turn(stage: Stage) -> Result<()> {
    let one = stage.says("one", "first");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &one).await?;
    let list = client.call("session/list", json!({"cwd": stage.sandbox.work()})).await?;
    ensure!(list.result()?["sessions"][0]["sessionId"] == session, "{list:?}");
    stage.end(client).await
}

/// A fork of a session whose message is still being said waits for it; one that never comes is an error.
pub(crate) async fn a_fork_waits_for_its_message(stage: Stage) -> Result<()> {
    let one = stage.script("one", Script::new().turn([text("half"), hold("go"), text(" whole")]));
    let next = stage.says("next", "and on");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let prompt = client.ask(&session, &one).await?;
    let shown = client.update("agent_message_chunk", |_| true).await?;
    let mut params = of(&stage, &session);
    params["_meta"] = json!({"messageId": shown["messageId"]});
    let asked = client.request("session/fork", params.clone()).await?;
    stage.model.release("go");
    client.answered(&prompt).await?.result()?;
    let answer = client.answered(&asked).await?;
    let other = answer.result()?["sessionId"].as_str().context("no id")?.to_owned();
    text_of(&client, &other, &next).await?;
    let told = stage.model.turn("next", 0, std::time::Duration::from_secs(5)).await?;
    ensure!(told.body["messages"].to_string().contains("half"), "{}", told.body["messages"]);
    params["_meta"] = json!({"messageId": "msg_that_nobody_said"});
    client.call("session/fork", params).await?.error(-32602)?;
    stage.end(client).await
}
