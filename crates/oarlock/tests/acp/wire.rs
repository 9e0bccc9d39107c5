//! The wire: versions, ids, junk, refusals, and what must not be in it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::{Abilities, Client};
use serde_json::{Value, json};

use crate::stage::Stage;

async fn greeted(stage: &Stage, abilities: Abilities) -> Result<(Client, Value)> {
    let client = Client::start(stage.command(&[])?, abilities)?;
    let hello = client.initialize().await?;
    Ok((client, hello))
}

async fn init(stage: Stage, abilities: Abilities, terminal_auth: bool) -> Result<()> {
    let (client, hello) = greeted(&stage, abilities).await?;
    ensure!(hello["protocolVersion"] == 1, "{hello}");
    ensure!(hello["agentInfo"]["name"].is_string() && hello["agentInfo"]["version"].is_string(), "{hello}");
    let capabilities = &hello["agentCapabilities"];
    ensure!(capabilities["loadSession"] == true, "{hello}");
    ensure!(capabilities["promptCapabilities"]["image"] == true, "{hello}");
    ensure!(capabilities["promptCapabilities"]["embeddedContext"] == true, "{hello}");
    ensure!(capabilities["mcpCapabilities"] == json!({"http": true, "sse": true}), "{hello}");
    for name in ["list", "delete", "additionalDirectories", "resume", "close", "fork"] {
        ensure!(capabilities["sessionCapabilities"][name].is_object(), "{name}: {hello}");
    }
    let methods = hello["authMethods"].as_array().cloned().unwrap_or_default();
    let terminal = methods.iter().any(|method| method["type"] == "terminal");
    ensure!(terminal == terminal_auth, "terminal methods for who has a terminal: {hello}");
    stage.end(client).await
}

pub(crate) async fn init_zed(stage: Stage) -> Result<()> {
    init(stage, Abilities::Zed, true).await
}

pub(crate) async fn init_full(stage: Stage) -> Result<()> {
    init(stage, Abilities::Full, true).await
}

pub(crate) async fn init_bare(stage: Stage) -> Result<()> {
    init(stage, Abilities::Bare, false).await
}

pub(crate) async fn acp_init_01_acp_wire_01_versions_are_agreed_on(stage: Stage) -> Result<()> {
    for version in [1, 2, 99, 0] {
        let client = Client::start(stage.command(&[])?, Abilities::Bare)?;
        let answer = client.call("initialize", json!({"protocolVersion": version})).await?;
        ensure!(answer.result()?["protocolVersion"] == 1, "to {version}: {answer:?}");
        stage.end(client).await?;
    }
    Ok(())
}

pub(crate) async fn acp_init_02_initialize_starts_nothing(stage: Stage) -> Result<()> {
    // A `claude` that would leave a trace.
    stage.fake("touch \"$HOME/started\"; sleep 60")?;
    let (client, _) = greeted(&stage, Abilities::Zed).await?;
    let answered = client.lines().last().map(|line| line.at).context("no answer")?;
    ensure!(answered < Duration::from_secs(1), "it took {answered:?}");
    let running = stage.sandbox.processes()?;
    ensure!(running.len() == 1, "only the agent runs: {running:?}");
    stage.end(client).await?;
    ensure!(!stage.sandbox.home().join("started").exists(), "the CLI was started");
    Ok(())
}

pub(crate) async fn acp_init_04_nothing_is_served_before_initialize(stage: Stage) -> Result<()> {
    let client = Client::start(stage.command(&[])?, Abilities::Bare)?;
    for method in ["session/new", "session/list", "session/prompt"] {
        let params = json!({"cwd": stage.sandbox.work(), "mcpServers": [], "sessionId": "x", "prompt": []});
        client.call(method, params).await?.error(-32600)?;
    }
    client.initialize().await?;
    stage.end(client).await
}

pub(crate) async fn acp_wire_03_unknown_messages_and_fields_are_survived(stage: Stage) -> Result<()> {
    let client = Client::start(stage.command(&[])?, Abilities::Bare)?;
    let odd = json!({
        "protocolVersion": 1, "unknown": {"a": [1]}, "_meta": {"traceparent": "00-x", "own": 1},
        "clientCapabilities": {"fs": {"future": true}, "novelty": {}},
    });
    client.call("initialize", odd).await?.result()?;
    client.call("no/such", json!({})).await?.error(-32601)?;
    client.call("_ext/none", json!({})).await?.error(-32601)?;
    // Old clients still call it.
    client.call("session/set_model", json!({"sessionId": "x", "modelId": "y"})).await?.error(-32601)?;
    client.notify("no/such", json!({"x": 1})).await?;
    client.notify("_ext/none", json!([])).await?;
    let list = json!({"cwd": stage.sandbox.work(), "_meta": {"own": {}}, "extra": 5});
    client.call("session/list", list).await?.result()?;
    stage.end(client).await
}

pub(crate) async fn acp_wire_04_junk_is_answered_and_survived(stage: Stage) -> Result<()> {
    let (client, _) = greeted(&stage, Abilities::Bare).await?;
    for junk in ["this is no JSON\n", "{\"jsonrpc\":\"2.0\",\n", "[[[\n"] {
        let mark = client.mark();
        client.send_raw(junk.as_bytes()).await?;
        let is_parse_error = |message: &Value| message["error"]["code"] == -32700 && message["id"].is_null();
        client.wait_after(mark, "a parse error", is_parse_error).await?;
    }
    let mark = client.mark();
    client.send_raw(b"\xff\xfe\x00\n").await?;
    client.wait_after(mark, "an error", |message| message["error"]["code"] == -32700).await?;
    client.send_raw(b"\n\n").await?;
    let answer = client.call("session/new", json!({"cwd": 5, "mcpServers": []})).await?;
    let error = answer.error(-32602)?;
    ensure!(error.to_string().contains("cwd"), "the field is named: {error}");
    let answer = client.call("session/prompt", json!({"prompt": []})).await?;
    let error = answer.error(-32602)?;
    ensure!(error.to_string().contains("sessionId"), "the field is named: {error}");
    client.call("session/list", json!({})).await?.result()?;
    stage.end(client).await
}

pub(crate) async fn acp_wire_05_ids_come_back_as_they_were_sent(stage: Stage) -> Result<()> {
    let (client, _) = greeted(&stage, Abilities::Bare).await?;
    let ids = [json!(0), json!("a string"), json!(-7), json!(9_007_199_254_740_991_i64), json!("")];
    for id in ids {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}})).await?;
        client.answered(&id).await?.result()?;
    }
    stage.end(client).await
}

pub(crate) async fn acp_wire_06_a_request_can_be_cancelled(stage: Stage) -> Result<()> {
    stage.play(
        "[[turn]]\nsteps = [{ text = \"I begin\" }, { wait = \"interrupt\" }, { text = \"never\" }]\n",
    )?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    let id = client.ask(&session, "go on for long").await?;
    client.update("agent_message_chunk", |_| true).await?;
    client.notify("$/cancel_request", json!({"requestId": id})).await?;
    let answer = client.answered(&id).await?;
    match answer.0.get("error") {
        Some(_) => drop(answer.error(-32800)?),
        None => ensure!(answer.stop_reason()? == "cancelled", "{answer:?}"),
    }
    // One that is not open is nothing.
    client.notify("$/cancel_request", json!({"requestId": 4711})).await?;
    client.call("session/list", json!({})).await?.result()?;
    stage.end(client).await
}

pub(crate) async fn acp_new_01_a_session_needs_a_directory(stage: Stage) -> Result<()> {
    let client = stage.agent(Abilities::Bare).await?;
    for cwd in [json!("relative"), json!("/no/such/directory"), json!(null), json!("")] {
        client.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await?.error(-32602)?;
    }
    client.call("session/new", json!({"mcpServers": []})).await?.error(-32602)?;
    // A fork, too, is refused before its session is looked for.
    for (method, id) in [("session/new", json!(null)), ("session/fork", json!("of nobody"))] {
        let params = json!({"cwd": stage.sandbox.work(), "mcpServers": [], "sessionId": id,
            "additionalDirectories": ["relative"]});
        let error = client.call(method, params).await?.error(-32602)?.to_string();
        ensure!(error.contains("additionalDirectories"), "{method}: {error}");
    }
    let one = client.new_session(stage.sandbox.work()).await?;
    let other = client.new_session(stage.sandbox.work()).await?;
    ensure!(one != other, "two sessions have one id");
    stage.end(client).await
}

pub(crate) async fn acp_prompt_04_an_unknown_session_is_not_found(stage: Stage) -> Result<()> {
    let client = stage.agent(Abilities::Bare).await?;
    let prompt = json!([{"type": "text", "text": "hi"}]);
    for id in ["nope", "00000000-0000-4000-8000-000000000000", "../../etc"] {
        let params =
            json!({"sessionId": id, "prompt": prompt, "cwd": stage.sandbox.work(), "mcpServers": []});
        for method in ["session/prompt", "session/load", "session/resume", "session/fork", "session/close"] {
            client.call(method, params.clone()).await?.error(-32002)?;
        }
        client.call("session/set_mode", json!({"sessionId": id, "modeId": "plan"})).await?.error(-32002)?;
        client.cancel(id).await?;
    }
    stage.end(client).await
}

pub(crate) async fn acp_prompt_06_content_is_taken_or_refused_by_kind(stage: Stage) -> Result<()> {
    let prompt = stage.says("content", "taken");
    let file = stage.given("a.txt", "one\n")?;
    let (client, session) = stage.open(Abilities::Bare).await?;
    let link = json!({"type": "resource_link", "uri": format!("file://{file}"), "name": "a.txt"});
    let resource =
        json!({"type": "resource", "resource": {"uri": format!("file://{file}"), "text": "embedded words"}});
    let words = json!({"type": "text", "text": prompt});
    let good = json!({"sessionId": session, "prompt": [link, resource, words]});
    ensure!(client.call("session/prompt", good).await?.stop_reason()? == "end_turn");
    if stage.is_real() {
        let told = stage.model.requests().iter().any(|request| request.told().contains("embedded words"));
        ensure!(told, "the model was not told the embedded text");
    }
    let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    for bad in [audio, json!({"type": "nonsense"}), json!({"type": "text"}), json!("text")] {
        let params = json!({"sessionId": session, "prompt": [bad]});
        client.call("session/prompt", params).await?.error(-32602)?;
    }
    let picture = stage.read("a.txt").context("the file stays")?;
    ensure!(picture == "one\n");
    stage.end(client).await
}

pub(crate) async fn acp_sec_01_no_credential_comes_out(stage: Stage) -> Result<()> {
    let secret = "hidden-header-value-4711";
    let prompt = stage.says("secret", "nothing to see");
    let client = stage.agent(Abilities::Full).await?;
    let server = json!({"type": "http", "name": "remote", "url": "http://127.0.0.1:9/mcp",
        "headers": [{"name": "Authorization", "value": secret}]});
    let program = json!({"name": "local", "command": "/no/such/program", "args": [], "env": [{"name": "TOKEN", "value": secret}]});
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server, program]})).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let out = format!(
        "{:?} {}",
        client
            .lines()
            .iter()
            .filter(|line| !line.sent)
            .map(|line| line.message.to_string())
            .collect::<Vec<_>>(),
        client.stderr()
    );
    ensure!(!out.contains(secret), "the header's value came out");
    // The laws look for the key of the environment.
    stage.end(client).await
}

pub(crate) async fn errors(stage: Stage) -> Result<()> {
    let (client, session) = stage.open(Abilities::Zed).await?;
    let option = json!({"sessionId": session, "configId": "x", "value": "y"});
    client.call("session/set_config_option", option).await?.error(-32602)?;
    client
        .call("session/set_mode", json!({"sessionId": session, "modeId": "nonsense"}))
        .await?
        .error(-32602)?;
    client.call("authenticate", json!({"methodId": "zzz"})).await?.error(-32602)?;
    client.call("session/new", json!({})).await?.error(-32602)?;
    client.call("session/list", json!({"cursor": "nonsense"})).await?.error(-32602)?;
    stage.end(client).await
}

pub(crate) async fn a_trace_records_both_sides_without_secrets(stage: Stage) -> Result<()> {
    let prompt = stage.says("traced", "recorded");
    let file = stage.path("trace.jsonl");
    let client = stage.agent_with(Abilities::Zed, &["--trace", &file]).await?;
    let secret = "hidden-env-value-4711";
    let server = json!({"name": "local", "command": "/no/such/program", "args": [], "env": [{"name": "TOKEN", "value": secret}]});
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server]})).await?;
    client.prompt(&session, &prompt).await?.result()?;
    stage.end(client).await?;
    let trace = stage.read("trace.jsonl").context("no trace")?;
    for line in trace.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| format!("no JSON: {line}"))?;
        ensure!(line["msg"]["jsonrpc"] == "2.0", "{line}");
    }
    ensure!(trace.contains("\"recorded\"") && trace.contains("session/prompt"), "one side is missing");
    ensure!(!trace.contains(secret), "the trace has a secret");
    Ok(())
}

pub(crate) async fn logs_go_to_a_file(stage: Stage) -> Result<()> {
    let prompt = stage.says("logged", "said");
    let file = stage.path("agent.log");
    let client = stage.agent_with(Abilities::Zed, &["--log", &file]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    client.prompt(&session, &prompt).await?.result()?;
    let noise = client.stderr();
    stage.end(client).await?;
    ensure!(noise == "stderr: ", "the log is in the file, not on {noise}");
    ensure!(stage.read("agent.log").is_some(), "there is no log");
    Ok(())
}

/// A client's terminal runs the agent as the CLI, with its arguments and its exit code.
pub(crate) async fn caa_29_logging_in_is_the_clis_own(stage: Stage) -> Result<()> {
    stage.fake("echo \"claude $*\"; exit 5")?;
    let (client, hello) = greeted(&stage, Abilities::Zed).await?;
    let methods = hello["authMethods"].as_array().context("no methods")?;
    let terminal =
        methods.iter().find(|method| method["type"] == "terminal").context("no terminal method")?;
    let arguments: Vec<&str> =
        terminal["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    stage.end(client).await?;
    let output = stage.command(&arguments)?.output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = format!("claude {}", arguments[1..].join(" "));
    ensure!(said.trim() == wanted && output.status.code() == Some(5), "{arguments:?}: {output:?}");
    Ok(())
}
