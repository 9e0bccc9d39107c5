//! What the user is asked: permissions, plans, questions, forms.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Reply};
use oarlock_testkit::model::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A server of the Model Context Protocol whose tool `add` adds, and whose tool `ask` asks the user for a colour.
const SERVER: &str = r#"
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}
    elif method == "tools/list":
        number = {"type": "number"}
        result = {"tools": [
            {"name": "add", "description": "Adds", "inputSchema": {"type": "object", "properties": {"a": number, "b": number}}},
            {"name": "ask", "description": "Asks", "inputSchema": {"type": "object"}},
        ]}
    elif method == "tools/call" and params["name"] == "add":
        total = params["arguments"]["a"] + params["arguments"]["b"]
        result = {"content": [{"type": "text", "text": f"the sum is {total}"}]}
    elif method == "tools/call":
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
        say({"id": "ask", "method": "elicitation/create", "params": {"message": "Which colour?", "requestedSchema": schema}})
        for line in sys.stdin:
            answer = json.loads(line)
            if answer.get("id") == "ask":
                break
        result = {"content": [{"type": "text", "text": "answer: " + json.dumps(answer.get("result"))}]}
    say({"id": message["id"], "result": result})
"#;

/// That server, as `session/new` takes it.
pub(crate) fn server(stage: &Stage) -> Result<Value> {
    let file = stage.sandbox.home().join("server.py");
    std::fs::write(&file, SERVER)?;
    Ok(json!({"name": "calc", "command": "python3", "args": [file], "env": []}))
}

async fn planned(
    stage: &Stage,
    choice: &'static str,
) -> Result<(oarlock_testkit::acp::Client, String, String)> {
    let script = Script::new()
        .turn([
            text("Planning."),
            tool("Write", json!({"file_path": "$PLAN_FILE", "content": "# Plan\n1. Do it\n"})),
        ])
        .turn([tool("ExitPlanMode", json!({"plan": "# Plan\n1. Do it\n"}))])
        .turn([text("plan accepted")]);
    let prompt = stage.script("plan", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await?.result()?;
    client.policy(move |_| Reply::option(choice));
    let answer = client.prompt(&session, &prompt).await?;
    let reason = answer.stop_reason()?.to_owned();
    Ok((client, session, reason))
}

pub(crate) async fn plan_mode(stage: Stage) -> Result<()> {
    let (client, session, reason) = planned(&stage, "exit-plan-default").await?;
    ensure!(reason == "end_turn", "{reason}");
    let picture = client.picture(&session);
    ensure!(picture.text().contains("plan accepted"), "{}", picture.text());
    let call = picture.calls.iter().find(|call| call.field("kind") == "switch_mode").context("no exit")?;
    ensure!(call.text().contains("1. Do it") && call.status() == "completed", "{call:?}");
    ensure!(picture.mode.as_deref() == Some("default"), "{:?}", picture.mode);
    let asks = client.asks("session/request_permission");
    let ids: Vec<&Value> = asks
        .iter()
        .flat_map(|ask| ask.params["options"].as_array().into_iter().flatten())
        .map(|option| &option["optionId"])
        .collect();
    ensure!(ids.contains(&&json!("exit-plan-accept-edits")) && ids.contains(&&json!("reject")), "{ids:?}");
    stage.end(client).await
}

pub(crate) async fn plan_reject(stage: Stage) -> Result<()> {
    let (client, session, reason) = planned(&stage, "reject").await?;
    ensure!(reason == "cancelled" || reason == "end_turn", "{reason}");
    let picture = client.picture(&session);
    ensure!(!picture.text().contains("plan accepted"), "it went on: {}", picture.text());
    ensure!(picture.mode.as_deref() != Some("default"), "still planning: {:?}", picture.mode);
    ensure!(stage.read("a.txt").is_none());
    let next = stage.says("next", "still here");
    ensure!(client.prompt(&session, &next).await?.stop_reason()? == "end_turn");
    stage.end(client).await
}

fn asks_colour(stage: &Stage) -> String {
    let questions = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cold"}],
    }]});
    stage.uses("ask", "AskUserQuestion", questions, "asked")
}

fn told(stage: &Stage, words: &str) -> Result<()> {
    let requests = stage.model.requests();
    let is_told = requests
        .iter()
        .any(|request| request.last_tool_result().is_some_and(|result| result.text.contains(words)));
    ensure!(is_told, "the model was not told {words:?}: {requests:?}");
    Ok(())
}

pub(crate) async fn ask(stage: Stage) -> Result<()> {
    let prompt = asks_colour(&stage);
    let (client, session) = stage.open(Abilities::Full).await?;
    client.policy(|ask| {
        // The one field of the form gets the second of its values.
        let properties = ask.params["requestedSchema"]["properties"].as_object();
        let mut content = serde_json::Map::new();
        for (name, field) in properties.into_iter().flatten() {
            let values = field["oneOf"].as_array().or(field["enum"].as_array());
            if let Some(value) = values.and_then(|values| values.get(1)) {
                content.insert(name.clone(), value.get("const").unwrap_or(value).clone());
            }
        }
        Reply::Result(json!({"action": "accept", "content": content}))
    });
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let forms = client.asks("elicitation/create");
    ensure!(forms.len() == 1 && forms[0].params.to_string().contains("Which colour?"), "{forms:?}");
    ensure!(client.asks("session/request_permission").is_empty(), "it was asked twice");
    told(&stage, "Blue")?;
    stage.end(client).await
}

pub(crate) async fn caa_23_a_question_without_forms_is_a_choice(stage: Stage) -> Result<()> {
    let prompt = asks_colour(&stage);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|ask| {
        let options = ask.params["options"].as_array().cloned().unwrap_or_default();
        let blue =
            options.iter().find(|option| option["name"].as_str().is_some_and(|name| name.contains("Blue")));
        Reply::option(blue.and_then(|option| option["optionId"].as_str()).unwrap_or_default())
    });
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    ensure!(client.asks("session/request_permission").len() == 1);
    told(&stage, "Blue")?;
    stage.end(client).await
}

fn writes(stage: &Stage, name: &str) -> String {
    stage.uses(
        name,
        "Write",
        json!({"file_path": stage.path(&format!("{name}.txt")), "content": "new\n"}),
        "written",
    )
}

/// Others are served, the tool does not run, and a cancel ends it.
pub(crate) async fn acp_perm_02_a_client_that_never_answers(stage: Stage) -> Result<()> {
    let (asked, other) = (writes(&stage, "asked"), stage.says("other", "of the other"));
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|_| Reply::Never);
    let id = client.ask(&session, &asked).await?;
    client.asked("session/request_permission").await?;
    let second = client.new_session(stage.sandbox.work()).await?;
    ensure!(client.prompt(&second, &other).await?.stop_reason()? == "end_turn");
    ensure!(stage.read("asked.txt").is_none(), "it ran");
    client.cancel(&session).await?;
    let answer = client.answered(&id).await?;
    ensure!(answer.stop_reason()? == "cancelled", "{answer:?}");
    ensure!(stage.read("asked.txt").is_none(), "it ran");
    stage.end(client).await
}

pub(crate) async fn acp_perm_03_the_scope_of_always_is_in_its_name(stage: Stage) -> Result<()> {
    let write = tool("Write", json!({"file_path": stage.path("new.txt"), "content": "x"}));
    let touch = tool("Bash", json!({"command": "touch made.txt", "description": "make"}));
    let prompt = stage.script("both", Script::new().turn([write]).turn([touch]).turn([text("done")]));
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let asks = client.asks("session/request_permission");
    ensure!(asks.len() == 2, "{asks:?}");
    for (ask, scope) in asks.iter().zip(["session", "touch"]) {
        let options = ask.params["options"].as_array().context("no options")?;
        let kinds: Vec<&Value> = options.iter().map(|option| &option["kind"]).collect();
        ensure!(kinds == ["allow_once", "allow_always", "reject_once"], "{options:?}");
        ensure!(options[0]["optionId"] == "allow-once" && options[2]["optionId"] == "reject", "{options:?}");
        let name = options[1]["name"].as_str().unwrap_or_default();
        ensure!(name.contains(scope), "{name:?} does not say {scope:?}");
    }
    stage.end(client).await
}

pub(crate) async fn caa_94_deny_rules_hold(stage: Stage) -> Result<()> {
    stage.given(".claude/settings.json", r#"{"permissions": {"deny": ["Read(./secret.txt)"]}}"#)?;
    let file = stage.given("secret.txt", "the secret words")?;
    let prompt = stage.uses("read", "Read", json!({"file_path": file}), "read");
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let picture = client.picture(&session);
    ensure!(picture.calls[0].status() == "failed", "{:?}", picture.calls);
    let leaked = client.lines().iter().any(|line| line.message.to_string().contains("the secret words"));
    ensure!(!leaked, "it was read");
    ensure!(client.asks("session/request_permission").is_empty(), "a rule is not asked about");
    stage.end(client).await
}

/// "Always" for a command holds for it, in this session and in the next; other commands are asked about.
pub(crate) async fn caa_272_zed_37632_always_is_kept_within_its_scope(stage: Stage) -> Result<()> {
    let touch = |name: &str| tool("Bash", json!({"command": format!("touch {name}"), "description": "make"}));
    let script = Script::new().turn([touch("a.txt")]).turn([touch("a.txt")]).turn([text("done")]);
    let prompt = stage.script("touch", script);
    let other = stage.uses("mkdir", "Bash", json!({"command": "mkdir made", "description": "make"}), "done");
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|ask| ask.choose("allow_always"));
    client.prompt(&session, &prompt).await?.result()?;
    ensure!(client.asks("session/request_permission").len() == 1, "asked again in the session");
    let next = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&next, &prompt).await?.result()?;
    let asks = client.asks("session/request_permission");
    ensure!(asks.len() == 1, "asked again in the next session: {asks:?}");
    client.policy(|ask| ask.choose("reject_once"));
    client.prompt(&next, &other).await?.result()?;
    ensure!(client.asks("session/request_permission").len() == 2, "it allows too much");
    ensure!(!stage.sandbox.work().join("made").exists());
    stage.end(client).await
}

pub(crate) async fn caa_329_allow_rules_of_the_project_hold(stage: Stage) -> Result<()> {
    stage.given(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#)?;
    let prompt =
        stage.uses("touch", "Bash", json!({"command": "touch made.txt", "description": "make"}), "done");
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.prompt(&session, &prompt).await?.result()?;
    ensure!(client.asks("session/request_permission").is_empty(), "a rule allows it");
    ensure!(stage.read("made.txt").is_some(), "it did not run");
    stage.end(client).await
}

/// Three at once, answered in another order.
pub(crate) async fn parallel_permissions(stage: Stage) -> Result<()> {
    let outside = stage.sandbox.home().join("outside");
    std::fs::create_dir(&outside)?;
    let read = |n: u8| -> Result<_> {
        let file = outside.join(format!("{n}.txt"));
        std::fs::write(&file, format!("number {n}"))?;
        Ok(tool("Read", json!({"file_path": file})))
    };
    let script = Script::new().turn([read(1)?, read(2)?, read(3)?]).turn([text("read")]);
    let prompt = stage.script("three", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|_| Reply::Never);
    let id = client.ask(&session, &prompt).await?;
    let mut asks = Vec::new();
    while asks.len() < 3 {
        let mark = client.mark();
        asks = client.asks("session/request_permission");
        if asks.len() < 3 {
            client.wait_after(mark, "three questions", |_| true).await?;
        }
    }
    for ask in asks.iter().rev() {
        client.answer(&ask.id, json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})).await?;
    }
    ensure!(client.answered(&id).await?.stop_reason()? == "end_turn");
    let calls = client.picture(&session).calls;
    ensure!(calls.len() == 3 && calls.iter().all(|call| call.status() == "completed"), "{calls:?}");
    stage.end(client).await
}

pub(crate) async fn fountain_999_an_elicitation_of_a_server_is_a_form(stage: Stage) -> Result<()> {
    let prompt = stage.uses("elicit", "mcp__calc__ask", json!({}), "asked");
    let client = stage.agent(Abilities::Full).await?;
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server(&stage)?]})).await?;
    client.policy(|ask| match ask.method.as_str() {
        "elicitation/create" => Reply::Result(json!({"action": "accept", "content": {"colour": "green"}})),
        _ => ask.choose("allow_once"),
    });
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let forms = client.asks("elicitation/create");
    ensure!(
        forms.len() == 1 && forms[0].params["message"].to_string().contains("Which colour?"),
        "{forms:?}"
    );
    told(&stage, "green")?;
    stage.end(client).await
}

/// A hook of the user's may change what a call does before it is asked about: the client is shown what would be done.
pub(crate) async fn what_is_asked_about_is_what_is_shown(stage: Stage) -> Result<()> {
    let file = stage.path("a.txt");
    stage.play(&format!(
        "[[turn]]\nsteps = [{{ tool = \"Write\", input = {{ file_path = \"{file}\", content = \"harmless\" }}, ask = true, \
         ask_fields = {{ input = {{ file_path = \"{file}\", content = \"not so\" }} }} }}]\n"
    ))?;
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|_| Reply::Never);
    client.ask(&session, "go").await?;
    let ask = client.asked("session/request_permission").await?;
    let call = client.picture(&session).calls.pop().context("no call")?;
    let diffs = call.diffs();
    ensure!(diffs.len() == 1 && diffs[0].2 == "not so", "the user sees {diffs:?}");
    client.answer(&ask.id, json!({"outcome": {"outcome": "cancelled"}})).await?;
    stage.end(client).await
}
