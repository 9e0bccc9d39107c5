//! Modes, models and other options; what a session is opened with; how soon it is there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Answer, Client, Picture};
use oarlock_testkit::model::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::turns::text_of;

fn option<'a>(options: &'a Value, id: &str) -> Option<&'a Value> {
    options.as_array()?.iter().find(|option| option["id"] == id)
}

async fn set(client: &Client, session: &str, id: &str, value: &str) -> Result<Value> {
    let params = json!({"sessionId": session, "configId": id, "value": value});
    Ok(client.call("session/set_config_option", params).await?.result()?["configOptions"].clone())
}

async fn set_mode(client: &Client, session: &str, mode: &str) -> Result<Answer> {
    client.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await
}

/// The values of an option that is chosen from a list, flat or grouped.
fn values(option: &Value) -> Vec<String> {
    let list = option["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let inner = |entry: &Value| match entry["options"].as_array() {
        Some(group) => group.clone(),
        None => vec![entry.clone()],
    };
    list.iter().flat_map(inner).filter_map(|entry| entry["value"].as_str().map(str::to_owned)).collect()
}

/// What is chosen is no part of the conversation, and is still chosen when the session is loaded. Other sessions are not
/// concerned.
pub(crate) async fn what_is_chosen_stays_with_its_session(stage: Stage) -> Result<()> {
    let (first, second) = (stage.says("first", "one"), stage.says("second", "two"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    ensure!(text_of(&client, &session, &first).await? == "one");
    set(&client, &session, "model", "haiku").await?;
    set_mode(&client, &session, "acceptEdits").await?.result()?;
    ensure!(text_of(&client, &session, &second).await? == "two");
    let live = client.picture(&session).text();
    ensure!(live == "onetwo", "what the CLI says of the choice is not shown: {live}");
    stage.end(client).await?;
    stage.written("two").await?;

    let client = stage.agent(Abilities::Zed).await?;
    let params = json!({"sessionId": session, "cwd": stage.sandbox.work(), "mcpServers": []});
    let loaded = client.call("session/load", params).await?.result()?.clone();
    ensure!(loaded["modes"]["currentModeId"] == "acceptEdits", "{loaded}");
    ensure!(client.picture(&session).text() == live, "{}", client.picture(&session).text());
    let prompts = client.picture(&session).words("user");
    ensure!(prompts.contains(&first) && !prompts.contains("/model"), "nobody has typed it: {prompts}");
    let is_haiku = |update: &Value| {
        option(&update["configOptions"], "model").is_some_and(|model| model["currentValue"] == "haiku")
    };
    client.update("config_option_update", is_haiku).await?;
    stage.end(client).await?;

    let client = stage.agent(Abilities::Zed).await?;
    let (_, other) = stage.open_with(&client, json!({})).await?;
    let model = option(&other["configOptions"], "model").context("no model")?;
    ensure!(model["currentValue"] == "default", "another session's model: {model}");
    ensure!(other["modes"]["currentModeId"] == "default", "{other}");
    stage.end(client).await
}

pub(crate) async fn config(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let options = set(&client, &session, "mode", "acceptEdits").await?;
    ensure!(option(&options, "mode").context("no mode")?["currentValue"] == "acceptEdits", "{options}");
    let model = option(&options, "model").context("no model")?;
    let other =
        values(model).into_iter().find(|value| *value != model["currentValue"]).context("one model only")?;
    let options = set(&client, &session, "model", &other).await?;
    ensure!(option(&options, "model").context("no model")?["currentValue"] == other, "{options}");
    if option(&options, "effort").is_some() {
        let options = set(&client, &session, "effort", "low").await?;
        ensure!(option(&options, "effort").context("no effort")?["currentValue"] == "low", "{options}");
    }
    for mode in ["default", "acceptEdits", "plan"] {
        set_mode(&client, &session, mode).await?.result()?;
        let picture = client.picture(&session);
        let told = picture.options.context("options are told")?;
        ensure!(picture.mode.as_deref() == Some(mode), "{:?}", picture.mode);
        ensure!(option(&told, "mode").context("no mode")?["currentValue"] == mode, "{told}");
    }
    set_mode(&client, &session, "nonsense").await?.error(-32602)?;
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    stage.end(client).await
}

pub(crate) async fn acp_new_03_acp_conf_01_modes_and_options_agree(stage: Stage) -> Result<()> {
    let file = stage.path("new.txt");
    let prompt = stage.uses("write", "Write", json!({"file_path": file, "content": "x"}), "written");
    let client = stage.agent(Abilities::Zed).await?;
    let (session, new) = stage.open_with(&client, json!({})).await?;
    let modes: Vec<&Value> = new["modes"]["availableModes"]
        .as_array()
        .context("no modes")?
        .iter()
        .map(|mode| &mode["id"])
        .collect();
    let offered = values(option(&new["configOptions"], "mode").context("no mode")?);
    ensure!(
        modes == offered.iter().map(|value| json!(value)).collect::<Vec<_>>().iter().collect::<Vec<_>>(),
        "{modes:?} {offered:?}"
    );
    let before = set(&client, &session, "mode", "acceptEdits").await?;
    let params = json!({"sessionId": session, "configId": "mode", "value": "nonsense"});
    client.call("session/set_config_option", params).await?.error(-32602)?;
    let params = json!({"sessionId": session, "configId": "nonsense", "value": "x"});
    client.call("session/set_config_option", params).await?.error(-32602)?;
    let ids = |options: &Value| {
        options.as_array().map(|all| all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>())
    };
    ensure!(ids(&before) == ids(&new["configOptions"]), "the answer has all options");
    ensure!(client.picture(&session).mode.as_deref() == Some("acceptEdits"), "the old value is kept");
    // It is the CLI's mode, not only a word.
    client.prompt(&session, &prompt).await?.result()?;
    ensure!(client.asks("session/request_permission").is_empty(), "edits are accepted in this mode");
    ensure!(stage.read("new.txt").is_some());
    stage.end(client).await
}

pub(crate) async fn caa_30_models_are_an_option(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let client = stage.agent(Abilities::Bare).await?;
    let (session, new) = stage.open_with(&client, json!({})).await?;
    ensure!(
        option(&new["configOptions"], "model").context("no model option")?["category"] == "model",
        "{new}"
    );
    // A first start may be slower than the client's patience; then the models come later.
    let models = |options: &Value| option(options, "model").map(values).unwrap_or_default().len();
    if models(&new["configOptions"]) < 2 {
        let later = |picture: &Picture| picture.options.as_ref().is_some_and(|options| models(options) > 1);
        client.seen(&session, "the models", later).await?;
    }
    set(&client, &session, "model", "haiku").await?;
    text_of(&client, &session, &prompt).await?;
    let asked = stage.model.turn("hi", 0, Duration::from_secs(5)).await?;
    ensure!(
        asked.body["model"].as_str().is_some_and(|model| model.contains("haiku")),
        "{}",
        asked.body["model"]
    );
    stage.end(client).await
}

pub(crate) async fn caa_93_any_model_is_accepted(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let options = set(&client, &session, "model", "my-own-model-7").await?;
    let model = option(&options, "model").context("no model")?;
    ensure!(
        model["currentValue"] == "my-own-model-7" && values(model).contains(&"my-own-model-7".to_owned()),
        "{model}"
    );
    text_of(&client, &session, &prompt).await?;
    let asked = stage.model.turn("hi", 0, Duration::from_secs(5)).await?;
    ensure!(asked.body["model"] == "my-own-model-7", "{}", asked.body["model"]);
    stage.end(client).await
}

pub(crate) async fn software_agent_sdk_3654_a_model_in_meta_is_honoured(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let client = stage.agent(Abilities::Zed).await?;
    let meta =
        json!({"_meta": {"claudeCode": {"options": {"model": "my-own-model-7", "permissionMode": "plan"}}}});
    let (session, new) = stage.open_with(&client, meta).await?;
    ensure!(new["modes"]["currentModeId"] == "plan", "{new}");
    text_of(&client, &session, &prompt).await?;
    let asked = stage.model.turn("hi", 0, Duration::from_secs(5)).await?;
    ensure!(asked.body["model"] == "my-own-model-7", "{}", asked.body["model"]);
    stage.end(client).await
}

pub(crate) async fn caa_495_auto_mode_is_never_fatal(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let (client, session) = stage.open(Abilities::Zed).await?;
    // Taken or refused, but never the end.
    set_mode(&client, &session, "auto").await?;
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    set_mode(&client, &session, "default").await?.result()?;
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    stage.end(client).await
}

pub(crate) async fn caa_108_bypass_is_not_offered_to_root(stage: Stage) -> Result<()> {
    let client = stage.agent(Abilities::Zed).await?;
    let (session, new) = stage.open_with(&client, json!({})).await?;
    let offered = new["modes"]["availableModes"].to_string().contains("bypassPermissions");
    ensure!(offered != rustix::process::geteuid().is_root(), "{}", new["modes"]);
    if !offered {
        let answer = set_mode(&client, &session, "bypassPermissions").await?;
        ensure!(answer.0.get("error").is_some(), "{answer:?}");
    }
    stage.end(client).await
}

pub(crate) async fn zed_53225_commands_are_there(stage: Stage) -> Result<()> {
    stage.given(
        ".claude/commands/greet.md",
        "---\ndescription: Greets somebody\nargument-hint: NAME\n---\nGreet $ARGUMENTS",
    )?;
    let prompt = stage.says("hi", "hello");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let update =
        client.update("available_commands_update", |update| update.to_string().contains("greet")).await?;
    let commands = update["availableCommands"].as_array().context("no commands")?;
    let has = |name: &str| commands.iter().any(|command| command["name"] == name);
    ensure!(has("compact") && has("greet"), "{update}");
    for of_the_terminal in ["clear", "login", "logout"] {
        ensure!(!has(of_the_terminal), "{of_the_terminal} is for terminals");
    }
    text_of(&client, &session, &prompt).await?;
    let commands = client.picture(&session).commands.context("they vanished")?;
    ensure!(commands.to_string().contains("greet"), "they vanished: {commands}");
    stage.end(client).await
}

pub(crate) async fn acp_new_02_caa_880_a_hanging_mcp_server_does_not_hold_the_session(
    stage: Stage,
) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let client = stage.agent(Abilities::Zed).await?;
    let server = json!({"name": "hangs", "command": "sleep", "args": ["3600"], "env": []});
    let begin = Instant::now();
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server]})).await?;
    let took = begin.elapsed();
    ensure!(took < Duration::from_secs(5), "session/new took {took:?}");
    // A word about the server may stand before it.
    let said = text_of(&client, &session, &prompt).await?;
    ensure!(said.ends_with("hello"), "{said}");
    stage.end(client).await
}

pub(crate) async fn claude_code_13329_a_failing_mcp_server_is_told(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let client = stage.agent(Abilities::Full).await?;
    let server = json!({"name": "broken", "command": "/no/such/program", "args": [], "env": []});
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server]})).await?;
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    let told = |picture: &Picture| picture.notices.iter().any(|notice| notice.to_string().contains("broken"));
    client.seen(&session, "a notice of the broken server", told).await?;
    stage.end(client).await
}

/// With a cache, a session is there before its CLI is.
pub(crate) async fn caa_567_the_second_session_is_there_at_once(stage: Stage) -> Result<()> {
    let prompt = stage.says("hi", "hello");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &prompt).await?;
    stage.end(client).await?;
    let client = stage.agent(Abilities::Zed).await?;
    let begin = Instant::now();
    let (session, new) = stage.open_with(&client, json!({})).await?;
    let took = begin.elapsed();
    ensure!(took < Duration::from_millis(500), "session/new took {took:?}");
    ensure!(option(&new["configOptions"], "model").is_some(), "it knows the models: {new}");
    ensure!(text_of(&client, &session, &prompt).await? == "hello");
    stage.end(client).await
}

pub(crate) async fn zed_52054_a_session_has_its_own_environment(stage: Stage) -> Result<()> {
    let run = tool("Bash", json!({"command": "echo \"<$FLAVOUR>\"", "description": "say"}));
    let prompt = stage.script("env", Script::new().turn([run]).turn([text("done")]));
    let client = stage.agent(Abilities::Zed).await?;
    let meta = json!({"_meta": {"claudeCode": {"options": {"env": {"FLAVOUR": "vanilla"}}}}});
    let (session, _) = stage.open_with(&client, meta).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let call = client.picture(&session).calls.pop().context("no call")?;
    ensure!(call.output.contains("<vanilla>"), "{call:?}");
    stage.end(client).await
}

pub(crate) async fn additional_directories_are_open(stage: Stage) -> Result<()> {
    let other = stage.sandbox.home().join("other");
    std::fs::create_dir(&other)?;
    let file = other.join("b.txt");
    std::fs::write(&file, "over there\n")?;
    let prompt = stage.uses("read", "Read", json!({"file_path": file}), "read");
    let client = stage.agent(Abilities::Zed).await?;
    let (session, _) = stage.open_with(&client, json!({"additionalDirectories": [other]})).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let picture = client.picture(&session);
    ensure!(picture.calls[0].text().contains("over there"), "{:?}", picture.calls);
    ensure!(client.asks("session/request_permission").is_empty(), "it is open to the session");
    stage.end(client).await
}
