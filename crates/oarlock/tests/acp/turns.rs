//! Turns: what is said, what it costs, and that each prompt is answered once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client};
use oarlock_testkit::model::{Block, Script, hold, text as words, thinking as thinks, tool};
use serde_json::{Value, json};

use crate::stage::Stage;

const MARKDOWN: &str = "Hello, this is **markdown** text with a [link](a.txt).";

pub(crate) async fn text_of(client: &Client, session: &str, prompt: &str) -> Result<String> {
    let before = client.picture(session).text().len();
    let answer = client.prompt(session, prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    Ok(client.picture(session).text()[before..].to_owned())
}

pub(crate) async fn text(stage: Stage) -> Result<()> {
    let prompt = stage.says("text", MARKDOWN);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let said = text_of(&client, &session, &prompt).await?;
    ensure!(said == MARKDOWN, "{said}");
    let said = text_of(&client, &session, &prompt).await?;
    ensure!(said == MARKDOWN, "again: {said}");
    stage.end(client).await
}

pub(crate) async fn acp_wire_02_acp_prompt_01_text_streams_and_the_turn_ends(stage: Stage) -> Result<()> {
    let long = "words and more words ".repeat(200);
    let prompt = stage.says("long", &long);
    for abilities in [Abilities::Zed, Abilities::Full, Abilities::Bare] {
        let (client, session) = stage.open(abilities).await?;
        let said = text_of(&client, &session, &prompt).await?;
        ensure!(said == long, "{} of {} bytes arrived", said.len(), long.len());
        stage.end(client).await?;
    }
    Ok(())
}

pub(crate) async fn thinking(stage: Stage) -> Result<()> {
    let script = Script::new().turn([thinks("Let me think about this."), words("Thought about it.")]);
    let prompt = stage.script("thinking", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let said = text_of(&client, &session, &prompt).await?;
    ensure!(said == "Thought about it.", "thoughts are not said: {said}");
    let thought = client.picture(&session).words("thought");
    ensure!(thought == "Let me think about this.", "{thought:?}");
    stage.end(client).await
}

pub(crate) async fn image(stage: Stage) -> Result<()> {
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let look = stage.says("image", "seen");
    let file = stage.given("a.txt", "one\n")?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    let prompt = json!([
        {"type": "text", "text": look},
        {"type": "image", "data": DOT, "mimeType": "image/png"},
        {"type": "resource_link", "uri": format!("file://{file}"), "name": "a.txt"},
    ]);
    let answer = client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let asked = stage.model.turn("image", 0, Duration::from_secs(5)).await?;
    ensure!(asked.body.to_string().contains(DOT), "the model was not shown the picture");
    ensure!(asked.told().contains("a.txt"), "the model was not told of the file");
    stage.end(client).await
}

pub(crate) async fn commands(stage: Stage) -> Result<()> {
    commanded(stage, Abilities::Zed).await
}

pub(crate) async fn commands_full(stage: Stage) -> Result<()> {
    commanded(stage, Abilities::Full).await
}

async fn commanded(stage: Stage, abilities: Abilities) -> Result<()> {
    let (client, session) = stage.open(abilities).await?;
    let said = text_of(&client, &session, "/context").await?;
    ensure!(said.matches("Context Usage").count() == 1, "once: {said}");
    ensure!(client.prompt(&session, "/compact").await?.stop_reason()? == "end_turn");
    // One version says so itself, the other leaves it to the model.
    let said = text_of(&client, &session, "/nosuchcommand").await?;
    ensure!(said.contains("nosuchcommand") || said == "ok", "{said}");
    // It is not offered, but whoever types it gets what the CLI says.
    ensure!(!text_of(&client, &session, "/cost").await?.is_empty(), "nothing was said");
    stage.end(client).await
}

async fn compacted(stage: &Stage, abilities: Abilities) -> Result<(Client, String)> {
    let prompts: Vec<String> = (0..3)
        .map(|n| stage.says(&format!("lorem{n}"), &format!("answer {n} {}", "lorem ip ".repeat(40))))
        .collect();
    let after = stage.says("after", "after the compaction");
    let (client, session) = stage.open(abilities).await?;
    for prompt in &prompts {
        text_of(&client, &session, prompt).await?;
    }
    ensure!(client.prompt(&session, "/compact").await?.stop_reason()? == "end_turn");
    let said = text_of(&client, &session, &after).await?;
    ensure!(said == "after the compaction", "{said}");
    Ok((client, session))
}

pub(crate) async fn compact(stage: Stage) -> Result<()> {
    let (client, session) = compacted(&stage, Abilities::Zed).await?;
    let picture = client.picture(&session);
    let call = picture.call("Compact").context("a client without compactions sees a call")?;
    ensure!(call.status() == "completed", "{call:?}");
    stage.end(client).await
}

pub(crate) async fn compact_full(stage: Stage) -> Result<()> {
    let (client, session) = compacted(&stage, Abilities::Full).await?;
    let picture = client.picture(&session);
    let states: Vec<&Value> = picture
        .others
        .iter()
        .filter(|other| other["sessionUpdate"] == "compaction_update")
        .map(|other| &other["status"])
        .collect();
    ensure!(states == ["in_progress", "completed"], "{states:?}");
    ensure!(picture.call("Compact").is_none(), "not as a call, too");
    stage.end(client).await
}

/// Three prompts, the later ones sent while the first is still answered.
pub(crate) async fn queue(stage: Stage) -> Result<()> {
    let first = stage.script("first", Script::new().turn([words("one "), hold("go"), words("is done")]));
    let second = stage.says("second", "two");
    let third = stage.says("third", "three");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let one = client.ask(&session, &first).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let two = client.ask(&session, &second).await?;
    let three = client.ask(&session, &third).await?;
    stage.model.release("go");
    for id in [one, two, three] {
        let answer = client.answered(&id).await?;
        ensure!(answer.stop_reason()? == "end_turn", "{id}: {answer:?}");
    }
    let said = client.picture(&session).text();
    ensure!(said.starts_with("one is done") && said.contains("three"), "{said}");
    stage.end(client).await
}

pub(crate) async fn acp_prompt_05_two_prompts_at_once_are_both_answered(stage: Stage) -> Result<()> {
    let (first, second) = (stage.says("first", "one"), stage.says("second", "two"));
    let (client, session) = stage.open(Abilities::Bare).await?;
    let (one, two) = (client.ask(&session, &first).await?, client.ask(&session, &second).await?);
    for id in [one, two] {
        let answer = client.answered(&id).await?;
        ensure!(answer.stop_reason()? == "end_turn", "{id}: {answer:?}");
    }
    stage.end(client).await
}

fn fails(status: u16) -> Script {
    Script::new().turn([Block::Error { error: status, times: None }])
}

/// The error comes as the answer, with its kind, and is not also said.
pub(crate) async fn acp_prompt_02_an_api_error_is_told_once(stage: Stage) -> Result<()> {
    let prompt = stage.script("bad", fails(400));
    let next = stage.says("next", "fine again");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let answer = client.prompt(&session, &prompt).await?;
    let error = answer.error(-32603)?;
    ensure!(error["data"]["errorKind"].is_string(), "no kind: {error}");
    ensure!(error.to_string().contains("an error of the script"), "the API's own words: {error}");
    let said = client.picture(&session).text();
    ensure!(said.is_empty(), "it is also said: {said}");
    ensure!(text_of(&client, &session, &next).await? == "fine again");
    stage.end(client).await
}

pub(crate) async fn error(stage: Stage) -> Result<()> {
    let prompt = stage.script("bad", fails(400));
    let (client, session) = stage.open(Abilities::Full).await?;
    client.prompt(&session, &prompt).await?.error(-32603)?;
    stage.end(client).await
}

/// A refused key is told at once as what it is, and not retried in silence for minutes.
pub(crate) async fn auth_error(stage: Stage) -> Result<()> {
    let prompt = stage.script("unauthorised", fails(401));
    let mut command = stage.command(&[])?;
    command.env("CLAUDE_CODE_MAX_RETRIES", "1");
    let client = Client::start(command, Abilities::Zed)?;
    client.initialize().await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&session, &prompt).await?.error(-32000)?;
    stage.end(client).await
}

pub(crate) async fn acp_use_01_cost_is_of_the_turn(stage: Stage) -> Result<()> {
    let prompt = stage.says("priced", "cheap");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let mut costs = Vec::new();
    for _ in 0..3 {
        let before = client.picture(&session).usage.len();
        text_of(&client, &session, &prompt).await?;
        let usage = client.picture(&session).usage.split_off(before);
        let told: Vec<f64> = usage.iter().filter_map(|usage| usage["cost"]["amount"].as_f64()).collect();
        ensure!(told.len() == 1, "the cost is told once a turn: {usage:?}");
        ensure!(
            usage.windows(2).all(|two| two[0]["used"].as_u64() <= two[1]["used"].as_u64()),
            "it fell: {usage:?}"
        );
        costs.extend(told);
    }
    let (least, most) =
        costs.iter().fold((f64::MAX, 0.0_f64), |(least, most), cost| (least.min(*cost), most.max(*cost)));
    ensure!(most < 1.9 * least, "equal turns cost the same, not the sum: {costs:?}");
    stage.end(client).await
}

/// Also when the CLI was parked in between, and when the session is resumed by another agent.
pub(crate) async fn acp_use_01_cost_is_of_the_turn_after_a_restart(stage: Stage) -> Result<()> {
    let prompt = stage.says("priced", "cheap");
    let mut costs = Vec::new();
    let mut session = None;
    for _ in 0..2 {
        let client = stage.agent_with(Abilities::Zed, &["--park-after", "0.005"]).await?;
        let id = match session.take() {
            None => client.new_session(stage.sandbox.work()).await?,
            Some(id) => {
                let params = json!({"sessionId": id, "cwd": stage.sandbox.work(), "mcpServers": []});
                client.call("session/resume", params).await?.result()?;
                id
            }
        };
        for _ in 0..3 {
            text_of(&client, &id, &prompt).await?;
            stage.until("the parking", || Ok(stage.clis()?.is_empty())).await?;
        }
        let usage = client.picture(&id).usage;
        costs.extend(usage.iter().filter_map(|usage| usage["cost"]["amount"].as_f64()));
        session = Some(id);
        stage.end(client).await?;
    }
    let (least, most) =
        costs.iter().fold((f64::MAX, 0.0_f64), |(least, most), cost| (least.min(*cost), most.max(*cost)));
    ensure!(costs.len() == 6 && most < 1.9 * least, "equal turns cost the same, not the sum: {costs:?}");
    Ok(())
}

pub(crate) async fn caa_625_usage_has_the_window(stage: Stage) -> Result<()> {
    let prompt = stage.says("used", "some");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let answer = client.prompt(&session, &prompt).await?;
    let usages = client.picture(&session).usage;
    let usage = usages.last().context("no usage")?;
    ensure!(usage["used"].as_u64() > Some(0) && usage["size"].as_u64() >= Some(200_000), "{usage}");
    ensure!(usages.iter().all(|other| other["size"] == usage["size"]), "a guess was told: {usages:?}");
    ensure!(answer.result()?["usage"]["outputTokens"].as_u64() > Some(0), "{answer:?}");
    stage.end(client).await
}

/// A CLI that goes idle without a result.
pub(crate) async fn caa_630_a_turn_without_a_result_is_answered(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nwhen = \"no result\"\nsteps = [{ text = \"half\" }, { raw = { type = \"system\", subtype = \"session_state_changed\", state = \"idle\" } }, { wait = \"interrupt\" }]\n\
         [[turn]]\nsteps = [{ text = \"whole\" }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    let id = client.ask(&session, "give no result").await?;
    client.answered_within(&id, Duration::from_secs(15)).await?;
    stage.end(client).await
}

fn steer(session: &str, words: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]})
}

pub(crate) async fn caa_871_caa_1027_a_steered_turn_ends_once(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", "one\n")?;
    let prompt = stage.script(
        "steered",
        Script::new()
            .turn([words("reading"), hold("go"), tool("Read", json!({"file_path": file}))])
            .turn([words("done")]),
    );
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &prompt).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let answer = client.call("_session/steering", steer(&session, "look at line one")).await?;
    ensure!(answer.result()?["outcome"] == "injected", "{answer:?}");
    // The oldest CLI takes a moment to read its input, and gives no sign of it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stage.model.release("go");
    let answer = client.answered(&id).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    // A CLI that was slow to hear it begins another turn with it, which is over before the answer, too.
    let told = stage.model.requests().iter().any(|request| request.told().contains("look at line one"));
    ensure!(told, "the model was not told");
    ensure!(text_of(&client, &session, &stage.says("next", "next")).await?.contains("next"));
    stage.end(client).await
}

/// What comes too late for a turn begins another one, before the prompt is answered.
pub(crate) async fn caa_1027_a_message_that_is_late_is_told_all_the_same(stage: Stage) -> Result<()> {
    let prompt = stage.script("steered", Script::new().turn([words("saying"), hold("go"), words(" it")]));
    let steering = stage.says("steering", "so be it");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &prompt).await?;
    client.update("agent_message_chunk", |_| true).await?;
    // The turn calls no tool, so there is nothing during it that the message could be read after.
    client.call("_session/steering", steer(&session, &steering)).await?.result()?;
    stage.model.release("go");
    let answer = client.answered(&id).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let said = client.picture(&session).text();
    ensure!(said.contains("so be it"), "{said}");
    stage.end(client).await
}

fn kill_clis(stage: &Stage) -> Result<()> {
    for id in stage.clis()? {
        let id = rustix::process::Pid::from_raw(id).context("no pid")?;
        rustix::process::kill_process(id, rustix::process::Signal::KILL)?;
    }
    Ok(())
}

/// What a turn was to be steered by is not lost with the CLI that has not read it.
pub(crate) async fn a_steered_message_outlives_its_cli(stage: Stage) -> Result<()> {
    // Its turn comes after the answer to the prompt that was lost.
    let stage = stage.with_background();
    let prompt = stage.script("steered", Script::new().turn([words("reading"), hold("go")]));
    let (client, session) = stage.open(Abilities::Zed).await?;
    let id = client.ask(&session, &prompt).await?;
    client.update("agent_message_chunk", |_| true).await?;
    let steering = stage.says("steering", "so be it");
    client.call("_session/steering", steer(&session, &steering)).await?.result()?;
    kill_clis(&stage)?;
    client.answered(&id).await?.error(-32603)?;
    client.seen(&session, "its turn", |picture| picture.text().contains("so be it")).await?;
    stage.end(client).await
}

pub(crate) async fn caa_871_steering_an_idle_session(stage: Stage) -> Result<()> {
    // The turn has no prompt that could be answered.
    let stage = stage.with_background();
    let prompt = stage.says("steered", "a turn of its own");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let mut asks = steer(&session, &prompt);
    asks["_meta"] = json!({"steering": {"idleBehavior": "promptRequired"}});
    let answer = client.call("_session/steering", asks).await?;
    ensure!(answer.result()?["outcome"] == "promptRequired", "{answer:?}");
    let answer = client.call("_session/steering", steer(&session, &prompt)).await?;
    ensure!(answer.result()?["outcome"] == "startedNewTurn", "{answer:?}");
    client.seen(&session, "its words", |picture| picture.text().contains("a turn of its own")).await?;
    stage.end(client).await
}

pub(crate) async fn zed_53438_zed_47928_a_prompt_during_a_turn_is_answered(stage: Stage) -> Result<()> {
    let first = stage.script(
        "first",
        Script::new()
            .turn([tool("Bash", json!({"command": "sleep 1", "description": "wait"}))])
            .turn([words("one")]),
    );
    let second = stage.says("second", "two");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let one = client.ask(&session, &first).await?;
    client.update("tool_call", |_| true).await?;
    let two = client.ask(&session, &second).await?;
    for id in [&one, &two] {
        let answer = client.answered(id).await?;
        ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    }
    stage.end(client).await
}

pub(crate) async fn zed_55501_a_usage_limit_leaves_the_session_usable(stage: Stage) -> Result<()> {
    let limited = stage.script("limited", fails(429));
    let next = stage.says("next", "there is more");
    let mut command = stage.command(&[])?;
    command.env("CLAUDE_CODE_MAX_RETRIES", "1");
    let client = Client::start(command, Abilities::Full)?;
    client.initialize().await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    let answer = client.prompt(&session, &limited).await?;
    let error = answer.error(-32603)?;
    ensure!(error["data"]["errorKind"].is_string(), "{error}");
    ensure!(text_of(&client, &session, &next).await? == "there is more");
    stage.end(client).await
}

/// What `--thinking` says is what the CLI is started with.
pub(crate) async fn zed_56375_thinking_can_be_asked_for(stage: Stage) -> Result<()> {
    let prompt = stage.script("thinking", Script::new().turn([thinks("a summary"), words("said")]));
    let client = stage.agent_with(Abilities::Zed, &["--thinking", "summarized"]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let running = stage.sandbox.processes()?;
    ensure!(running.iter().any(|line| line.contains("summarized")), "{running:?}");
    ensure!(client.picture(&session).words("thought") == "a summary");
    stage.end(client).await
}

/// As agent-shell does.
pub(crate) async fn caa_766_a_client_can_ask_for_thinking(stage: Stage) -> Result<()> {
    let prompt = stage.script("thinking", Script::new().turn([thinks("a summary"), words("said")]));
    let client = stage.agent(Abilities::Zed).await?;
    let thinking = json!({"type": "adaptive", "display": "summarized"});
    let meta = json!({"_meta": {"claudeCode": {"options": {"thinking": thinking}}}});
    let (session, _) = stage.open_with(&client, meta).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let running = stage.sandbox.processes()?;
    ensure!(running.iter().any(|line| line.contains("--thinking-display=summarized")), "{running:?}");
    ensure!(client.picture(&session).words("thought") == "a summary");
    stage.end(client).await
}

/// A client sees that the API is being retried: by a notice, or in a line of text.
pub(crate) async fn retries_are_told_while_they_happen(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nsteps = [{ api_error = 529, retries = 2, recover = true }, { text = \"at last\" }]\n",
    )?;
    for abilities in [Abilities::Full, Abilities::Zed] {
        let (client, session) = stage.open(abilities).await?;
        let answer = client.prompt(&session, "try").await?;
        ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
        let picture = client.picture(&session);
        ensure!(picture.text().contains("at last"), "{}", picture.text());
        match abilities {
            Abilities::Full => ensure!(!picture.notices.is_empty(), "no notice of the retries"),
            _ => ensure!(picture.text() != "at last", "no line about the retries: {}", picture.text()),
        }
        stage.end(client).await?;
    }
    Ok(())
}

pub(crate) async fn caa_62_max_turns_is_a_stop_reason(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", "one\n")?;
    let read = || tool("Read", json!({"file_path": file}));
    let prompt = stage.script("turns", Script::new().turn([read()]).turn([read()]).turn([words("never")]));
    let client = stage.agent(Abilities::Zed).await?;
    let options = json!({"_meta": {"claudeCode": {"options": {"maxTurns": 1}}}});
    let (session, _) = stage.open_with(&client, options).await?;
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "max_turn_requests", "{answer:?}");
    stage.end(client).await
}

/// One prompt, one call of the API: no probe, no title, no suggestion.
pub(crate) async fn acp_cost_01_no_call_is_hidden(stage: Stage) -> Result<()> {
    let prompt = stage.says("alone", "one call");
    let (client, session) = stage.open(Abilities::Full).await?;
    for _ in 0..2 {
        text_of(&client, &session, &prompt).await?;
    }
    stage.end(client).await?;
    let posts: Vec<_> =
        stage.model.requests().into_iter().filter(|request| request.method == "POST").collect();
    ensure!(posts.len() == 2, "{posts:?}");
    Ok(())
}

pub(crate) async fn stop_reasons_are_the_models(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nwhen = \"refuse\"\nsteps = [{ text = \"no\" }, { end = { stop_reason = \"refusal\" } }]\n\
         [[turn]]\nwhen = \"long\"\nsteps = [{ text = \"and\" }, { end = { stop_reason = \"max_tokens\" } }]\n\
         [[turn]]\nsteps = [{ text = \"yes\" }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    for (prompt, reason) in [("refuse", "refusal"), ("long", "max_tokens"), ("else", "end_turn")] {
        let answer = client.prompt(&session, prompt).await?;
        ensure!(answer.stop_reason()? == reason, "{answer:?}");
    }
    stage.end(client).await
}

pub(crate) async fn caa_1132_cline_14251_a_rate_limit_is_told_once(stage: Stage) -> Result<()> {
    let limit = "{ raw = { type = \"rate_limit_event\", rate_limit_info = { status = \"allowed_warning\", rateLimitType = \"five_hour\", resetsAt = 1794700000 } } }";
    stage.play(&format!("[[turn]]\nsteps = [{limit}, {limit}, {{ text = \"said\" }}]\n"))?;
    let (client, session) = stage.open(Abilities::Full).await?;
    ensure!(text_of(&client, &session, "go").await? == "said");
    let notices = client.picture(&session).notices;
    ensure!(notices.len() == 1 && notices[0]["title"].to_string().contains("limit"), "{notices:?}");
    let usages = client.picture(&session).usage;
    let limits: Vec<&Value> = usages.iter().map(|usage| &usage["_meta"]["_claude/rateLimit"]).collect();
    let told = limits.iter().filter(|limit| limit["rateLimitType"] == "five_hour").count();
    ensure!(told == 1, "for programs, too: {usages:?}");
    stage.end(client).await
}

/// Without a HOME nothing is remembered, but all prompts are answered.
pub(crate) async fn harnss_14_without_a_home_prompts_are_answered(stage: Stage) -> Result<()> {
    stage.play("[[turn]]\nsteps = [{ text = \"at home\" }]\n")?;
    let mut command = stage.command(&[])?;
    command.env_remove("HOME");
    let client = Client::start(command, Abilities::Bare)?;
    client.initialize().await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    ensure!(text_of(&client, &session, "go").await? == "at home");
    stage.end(client).await
}

/// How many bytes the agent sends of a turn; what it says of itself besides is not meant.
fn received(client: &Client, mark: usize) -> usize {
    let lines = client.lines().split_off(mark);
    let of_itself = ["available_commands_update", "config_option_update", "current_mode_update"];
    let is_of_turn = |message: &Value| {
        let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default();
        !of_itself.contains(&kind)
    };
    let messages = lines.iter().filter(|line| !line.sent).map(|line| &line.message);
    messages.filter(|message| is_of_turn(message)).map(|message| message.to_string().len() + 1).sum()
}

/// What a client must get travels once: a file that is read, and both sides of a diff.
pub(crate) async fn a_payload_is_sent_once(stage: Stage) -> Result<()> {
    let old: String = (0..1500).map(|n| format!("line {n} with words that make it longer\n")).collect();
    let new = old.replace("line 77 ", "line seventy-seven ");
    let file = stage.given("big.txt", &old)?;
    let reads = stage.uses("reads", "Read", json!({"file_path": file, "limit": 1000}), "read");
    let writes = stage.uses("writes", "Write", json!({"file_path": file, "content": new}), "written");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let mark = client.mark();
    text_of(&client, &session, &reads).await?;
    let payload = client.picture(&session).calls[0].text().len();
    let sent = received(&client, mark);
    ensure!(payload > 10_000 && sent * 10 < payload * 13, "Read: {sent} bytes for {payload}");
    let mark = client.mark();
    text_of(&client, &session, &writes).await?;
    let (payload, sent) = (old.len() + new.len(), received(&client, mark));
    ensure!(sent * 10 < payload * 13, "Write: {sent} bytes for {payload}");
    for ask in client.asks("session/request_permission") {
        let call = &ask.params["toolCall"];
        ensure!(call.get("content").is_none() && call.get("rawInput").is_none(), "repeated: {call}");
    }
    stage.end(client).await
}

/// An agent that is chosen between two prompts answers the second, and can be taken back.
pub(crate) async fn another_agent_answers_the_next_prompt(stage: Stage) -> Result<()> {
    let agent = "---\nname: pirate\ndescription: Talks like one\n---\nYou are the pirate of these tests.\n";
    std::fs::create_dir_all(stage.sandbox.work().join(".claude/agents"))?;
    stage.given(".claude/agents/pirate.md", agent)?;
    let prompts: Vec<String> = (0..4).map(|n| stage.says(&format!("p{n}"), &format!("said {n}"))).collect();
    let (client, session) = stage.open(Abilities::Full).await?;
    for (n, chosen) in [None, Some("pirate"), None, Some("default")].into_iter().enumerate() {
        if let Some(agent) = chosen {
            let params = json!({"sessionId": session, "configId": "agent", "value": agent});
            client.call("session/set_config_option", params).await?.result()?;
        }
        ensure!(text_of(&client, &session, &prompts[n]).await? == format!("said {n}"));
        let asked = stage.model.turn(&format!("p{n}"), 0, Duration::from_secs(5)).await?;
        let is_pirate = asked.body["system"].to_string().contains("the pirate of these tests");
        ensure!(is_pirate == (n == 1 || n == 2), "prompt {n}: {}", asked.body["system"]);
        let knows = |words: &str| asked.body["messages"].to_string().contains(words);
        ensure!((0..n).all(|before| knows(&format!("said {before}"))), "prompt {n} has lost what was said");
    }
    ensure!(client.picture(&session).notices.is_empty(), "{:?}", client.picture(&session).notices);
    stage.end(client).await
}
