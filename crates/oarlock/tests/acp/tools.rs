//! Tool calls: what they look like, what they change, and what they say while they run.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::mcp::{self, Server, Transport};
use oarlock_testkit::acp::{Abilities, Call, Client, Reply};
use oarlock_testkit::model::{Script, text, tool};
use serde_json::{Value, json};

use crate::stage::Stage;

const BEFORE: &str = "one\ntwo\nthree\n";
const AFTER: &str = "one\nTWO\nthree\n";

/// Plays a prompt to its end and gives the calls.
async fn calls(client: &Client, session: &str, prompt: &str) -> Result<Vec<Call>> {
    let answer = client.prompt(session, prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    Ok(client.picture(session).calls)
}

fn is(call: &Call, kind: &str, status: &str) -> Result<()> {
    ensure!(call.field("kind") == kind && call.status() == status, "wanted {kind}, {status}: {call:?}");
    Ok(())
}

pub(crate) async fn read(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let prompt = stage.uses("read", "Read", json!({"file_path": file, "offset": 2, "limit": 1}), "read");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let [call] = calls.as_slice() else { anyhow::bail!("{calls:?}") };
    is(call, "read", "completed")?;
    ensure!(call.title().starts_with("Read") && call.title().contains("a.txt"), "{}", call.title());
    ensure!(
        call.field("locations")[0]["path"] == file && call.field("locations")[0]["line"] == 2,
        "{call:?}"
    );
    if stage.is_real() {
        ensure!(call.text().contains("two") && !call.text().contains("three"), "{}", call.text());
        ensure!(!call.text().contains("system-reminder"), "{}", call.text());
    }
    stage.end(client).await
}

pub(crate) async fn write(stage: Stage) -> Result<()> {
    let file = stage.path("new.txt");
    let prompt = stage.uses("write", "Write", json!({"file_path": file, "content": "new\n"}), "written");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let [call] = calls.as_slice() else { anyhow::bail!("{calls:?}") };
    is(call, "edit", "completed")?;
    ensure!(call.diffs() == [(&json!(file), &Value::Null, &json!("new\n"))], "{call:?}");
    let asks = client.asks("session/request_permission");
    ensure!(asks.len() == 1 && asks[0].params["toolCall"]["toolCallId"] == call.id, "{asks:?}");
    if stage.is_real() {
        ensure!(stage.read("new.txt").as_deref() == Some("new\n"), "{:?}", stage.read("new.txt"));
    }
    stage.end(client).await
}

fn edits(stage: &Stage, file: &str) -> String {
    let script = Script::new()
        .turn([tool("Read", json!({"file_path": file}))])
        .turn([tool("Edit", json!({"file_path": file, "old_string": "two", "new_string": "TWO"}))])
        .turn([text("edited")]);
    stage.script("edit", script)
}

/// The diff is the file's whole text before and after, there before permission is asked, and true at the end.
pub(crate) async fn acp_tool_01_acp_tool_02_acp_tool_03_edit(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let prompt = edits(&stage, &file);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|_| Reply::Never);
    let id = client.ask(&session, &prompt).await?;
    let ask = client.asked("session/request_permission").await?;
    let picture = client.picture(&session);
    let call = picture
        .calls
        .iter()
        .find(|call| call.id == ask.params["toolCall"]["toolCallId"])
        .context("no call")?;
    let whole = |call: &Call| {
        let wanted = [(&json!(file), &json!(BEFORE), &json!(AFTER))];
        ensure!(call.diffs() == wanted, "the diff is not the whole truth: {call:?}");
        Ok(())
    };
    whole(call)?;
    ensure!(stage.read("a.txt").as_deref() == Some(BEFORE), "it is written before it is allowed");
    client.answer(&ask.id, json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})).await?;
    client.answered(&id).await?.result()?;
    let picture = client.picture(&session);
    let call = picture.call("Edit").context("no edit")?;
    is(call, "edit", "completed")?;
    whole(call)?;
    ensure!(stage.read("a.txt").as_deref() == Some(AFTER), "{:?}", stage.read("a.txt"));
    stage.end(client).await
}

pub(crate) async fn acp_tool_04_a_call_runs_after_its_permission(stage: Stage) -> Result<()> {
    let file = stage.path("new.txt");
    let prompt = stage.uses("write", "Write", json!({"file_path": file, "content": "new\n"}), "written");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let statuses = &calls.first().context("no call")?.statuses;
    ensure!(*statuses == ["pending", "in_progress", "completed"], "{statuses:?}");
    stage.end(client).await
}

pub(crate) async fn acp_perm_01_edit_reject(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let prompt = edits(&stage, &file);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|ask| ask.choose("reject_once"));
    let calls = calls(&client, &session, &prompt).await?;
    let edit = calls.last().context("no call")?;
    ensure!(edit.status() == "failed", "{edit:?}");
    ensure!(client.picture(&session).text() == "edited", "the turn goes on");
    ensure!(stage.read("a.txt").as_deref() == Some(BEFORE), "{:?}", stage.read("a.txt"));
    stage.end(client).await
}

pub(crate) async fn acp_perm_01_edit_always(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let edit =
        |old: &str, new: &str| tool("Edit", json!({"file_path": file, "old_string": old, "new_string": new}));
    let script = Script::new()
        .turn([tool("Read", json!({"file_path": file}))])
        .turn([edit("two", "TWO")])
        .turn([edit("three", "THREE")])
        .turn([text("edited")]);
    let prompt = stage.script("always", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.policy(|ask| ask.choose("allow_always"));
    calls(&client, &session, &prompt).await?;
    let asks = client.asks("session/request_permission");
    ensure!(asks.len() == 1, "it was asked again: {asks:?}");
    let picture = client.picture(&session);
    ensure!(picture.mode.as_deref() == Some("acceptEdits"), "the mode is told: {:?}", picture.mode);
    if stage.is_real() {
        ensure!(stage.read("a.txt").as_deref() == Some("one\nTWO\nTHREE\n"), "{:?}", stage.read("a.txt"));
    }
    stage.end(client).await
}

fn runs(stage: &Stage) -> String {
    let script = Script::new()
        .turn([tool("Bash", json!({"command": "printf 'x\\ny\\n'; ls", "description": "List the files"}))])
        .turn([tool("Bash", json!({"command": "exit 3", "description": "Fail"}))])
        .turn([text("ran")]);
    stage.script("bash", script)
}

pub(crate) async fn bash(stage: Stage) -> Result<()> {
    stage.given("a.txt", BEFORE)?;
    let prompt = runs(&stage);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let [good, bad] = calls.as_slice() else { anyhow::bail!("{calls:?}") };
    is(good, "execute", "completed")?;
    is(bad, "execute", "failed")?;
    ensure!(good.title().contains("printf"), "the command is the title: {}", good.title());
    ensure!(good.field("content")[0] == json!({"type": "terminal", "terminalId": good.id}), "{good:?}");
    ensure!(good.field("_meta")["terminal_info"]["terminal_id"] == good.id, "{good:?}");
    ensure!(good.output.contains("x\ny\n") && good.output.contains("a.txt"), "{:?}", good.output);
    let code = |call: &Call| call.exit.as_ref().map(|exit| exit["exit_code"].clone());
    ensure!(code(good) == Some(json!(0)) && code(bad) == Some(json!(3)), "{good:?} {bad:?}");
    stage.end(client).await
}

pub(crate) async fn bash_bare(stage: Stage) -> Result<()> {
    stage.given("a.txt", BEFORE)?;
    let prompt = runs(&stage);
    let (client, session) = stage.open(Abilities::Bare).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let [good, bad] = calls.as_slice() else { anyhow::bail!("{calls:?}") };
    ensure!(good.text().contains("x\ny\n") && good.text().contains("a.txt"), "{good:?}");
    ensure!(bad.status() == "failed" && bad.text().contains('3'), "{bad:?}");
    stage.end(client).await
}

/// A bit of everything, for a client that declares nothing: the laws say what it must not be sent.
pub(crate) async fn acp_init_03_a_bare_client_gets_only_what_it_knows(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let script = Script::new()
        .turn([tool("Read", json!({"file_path": file}))])
        .turn([tool("Edit", json!({"file_path": file, "old_string": "two", "new_string": "TWO"}))])
        .turn([tool("Bash", json!({"command": "echo hi", "description": "hi"}))])
        .turn([tool(
            "TodoWrite",
            json!({"todos": [{"content": "First", "status": "pending", "activeForm": "Doing"}]}),
        )])
        .turn([text("done")]);
    let prompt = stage.script("all", script);
    let (client, session) = stage.open(Abilities::Bare).await?;
    calls(&client, &session, &prompt).await?;
    ensure!(client.prompt(&session, "/compact").await?.stop_reason()? == "end_turn");
    stage.end(client).await
}

pub(crate) async fn bash_permission(stage: Stage) -> Result<()> {
    let command = "touch made.txt && mv made.txt kept.txt";
    let prompt = stage.uses("bash", "Bash", json!({"command": command, "description": "Make"}), "ran");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    ensure!(calls[0].statuses == ["pending", "in_progress", "completed"], "{calls:?}");
    ensure!(client.asks("session/request_permission").len() == 1);
    ensure!(stage.read("kept.txt").is_some(), "it did not run");
    stage.end(client).await
}

pub(crate) async fn search(stage: Stage) -> Result<()> {
    stage.given("a.txt", BEFORE)?;
    let work = stage.sandbox.work();
    let script = Script::new()
        .turn([tool("Grep", json!({"pattern": "two", "path": work, "output_mode": "content"}))])
        .turn([tool("Glob", json!({"pattern": "**/*.txt", "path": work}))])
        .turn([text("found")]);
    let prompt = stage.script("search", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    ensure!(calls.len() == 2, "{calls:?}");
    // The newest CLI has no such tools in some builds; then the calls fail, but look the same.
    for call in &calls {
        ensure!(call.field("kind") == "search" && call.is_over(), "{call:?}");
    }
    ensure!(calls[0].title().contains("two"), "{}", calls[0].title());
    stage.end(client).await
}

/// Real CLIs of today have the tasks below in its place.
pub(crate) async fn todo(stage: Stage) -> Result<()> {
    let todos = |first: &str, second: &str| {
        tool(
            "TodoWrite",
            json!({"todos": [
                {"content": "First", "status": first, "activeForm": "Doing first"},
                {"content": "Second", "status": second, "activeForm": "Doing second"},
            ]}),
        )
    };
    let script = Script::new()
        .turn([todos("in_progress", "pending")])
        .turn([todos("completed", "in_progress")])
        .turn([todos("completed", "in_progress")])
        .turn([text("planned")]);
    let prompt = stage.script("todo", script);
    let client = stage.agent(Abilities::Zed).await?;
    // The oldest CLI has it only where its newer list of tasks is switched off; the newest has neither.
    let environment = json!({"claudeCode": {"options": {"env": {"CLAUDE_CODE_ENABLE_TASKS": "0"}}}});
    let (session, _) = stage.open_with(&client, json!({"_meta": environment})).await?;
    let calls = calls(&client, &session, &prompt).await?;
    ensure!(calls.is_empty(), "a list of tasks is no call: {calls:?}");
    let plans = client.picture(&session).plans;
    ensure!(plans.len() == 2, "equal ones are told once: {plans:?}");
    ensure!(plans[1][0]["status"] == "completed" && plans[1][1]["status"] == "in_progress", "{plans:?}");
    stage.end(client).await
}

pub(crate) async fn acp_plan_01_todo(stage: Stage) -> Result<()> {
    todo(stage).await
}

/// The newest CLI has these tools no more.
pub(crate) async fn acp_plan_01_tasks(stage: Stage) -> Result<()> {
    let create = |subject: &str| {
        tool("TaskCreate", json!({"subject": subject, "description": "do it", "activeForm": "Doing it"}))
    };
    let update = |id: &str, status: &str| tool("TaskUpdate", json!({"taskId": id, "status": status}));
    let script = Script::new()
        .turn([create("First")])
        .turn([create("Second")])
        .turn([update("1", "in_progress")])
        .turn([update("1", "completed")])
        .turn([text("planned")]);
    let prompt = stage.script("tasks", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let plans = client.picture(&session).plans;
    ensure!(calls.is_empty(), "a list of tasks is no call: {calls:?}");
    let last = plans.last().context("no plan")?;
    ensure!(plans.len() <= 4 && last.as_array().map(Vec::len) == Some(2), "{plans:?}");
    ensure!(last[0]["status"] == "completed" && last[1]["status"] == "pending", "{last}");
    stage.end(client).await
}

fn sends_agent(stage: &Stage, child: Script, background: bool) -> String {
    stage.script("child", child);
    let input = json!({
        "description": "Look around", "prompt": "look {{script child}}", "subagent_type": "general-purpose",
        "run_in_background": background,
    });
    stage.uses("parent", "Task", input, "parent done")
}

async fn sent_agent(stage: Stage, abilities: Abilities) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let child =
        Script::new().turn([tool("Read", json!({"file_path": file}))]).turn([text("child says hello")]);
    let prompt = sends_agent(&stage, child, false);
    let (client, session) = stage.open(abilities).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let parent = calls.iter().find(|call| call.title().contains("Look around")).context("no agent")?;
    is(parent, "think", "completed")?;
    ensure!(
        parent.text().contains("child says hello") && !parent.text().contains("agentId"),
        "{}",
        parent.text()
    );
    let read = calls.iter().find(|call| call.field("kind") == "read").context("no read")?;
    ensure!(read.parent() == Some(parent.id.as_str()), "{read:?}");
    let said = client.picture(&session).text();
    ensure!(said == "parent done", "the child's words are not the parent's: {said}");
    stage.end(client).await
}

pub(crate) async fn subagent(stage: Stage) -> Result<()> {
    sent_agent(stage, Abilities::Zed).await
}

pub(crate) async fn subagent_full(stage: Stage) -> Result<()> {
    sent_agent(stage, Abilities::Full).await
}

pub(crate) async fn caa_708_subagent_permission(stage: Stage) -> Result<()> {
    let file = stage.path("child.txt");
    let child = Script::new()
        .turn([tool("Write", json!({"file_path": file, "content": "from the child\n"}))])
        .turn([text("child wrote")]);
    let prompt = sends_agent(&stage, child, false);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let asks = client.asks("session/request_permission");
    ensure!(asks.len() == 1, "{asks:?}");
    let write = calls.iter().find(|call| call.field("kind") == "edit").context("no write")?;
    ensure!(asks[0].params["toolCall"]["toolCallId"] == write.id, "{asks:?}");
    ensure!(write.parent().is_some() && write.status() == "completed", "{write:?}");
    ensure!(stage.read("child.txt").as_deref() == Some("from the child\n"));
    stage.end(client).await
}

const LATE: &str = "echo early; until [ -e go.signal ]; do sleep 0.05; done; echo late";

/// The turn ends, the command goes on, and its call ends with it.
pub(crate) async fn bash_background(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let input = json!({"command": LATE, "description": "Slow", "run_in_background": true});
    let script = Script::new().turn([tool("Bash", input)]).turn([text("started")]).turn([text("noticed")]);
    let prompt = stage.script("background", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    ensure!(client.picture(&session).text() == "started");
    stage.sandbox.write("go.signal", "")?;
    client.seen(&session, "its end", |picture| picture.calls.iter().all(Call::is_over)).await?;
    stage.end(client).await
}

pub(crate) async fn caa_651_caa_739_output_is_live(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let input = json!({"command": LATE, "description": "Slow", "run_in_background": true});
    let script = Script::new().turn([tool("Bash", input)]).turn([text("started")]).turn([text("noticed")]);
    let prompt = stage.script("live", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.prompt(&session, &prompt).await?.result()?;
    client
        .seen(&session, "output while it runs", |picture| picture.calls[0].output.contains("early"))
        .await?;
    ensure!(!client.picture(&session).calls[0].is_over(), "it still runs");
    stage.sandbox.write("go.signal", "")?;
    client.seen(&session, "the rest", |picture| picture.calls[0].output.contains("late")).await?;
    stage.end(client).await
}

pub(crate) async fn caa_336_caa_864_a_background_command_ends_by_itself(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let input = json!({"command": "sleep 0.2; exit 7", "description": "Fails", "run_in_background": true});
    let script = Script::new().turn([tool("Bash", input)]).turn([text("started")]).turn([text("noticed")]);
    let prompt = stage.script("fails", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    client.prompt(&session, &prompt).await?.result()?;
    client.seen(&session, "its end", |picture| picture.calls.iter().all(Call::is_over)).await?;
    ensure!(client.picture(&session).calls[0].status() == "failed");
    stage.end(client).await
}

pub(crate) async fn zed_62488_a_background_subagent_does_not_hold_the_session(stage: Stage) -> Result<()> {
    let stage = stage.with_background();
    let wait = json!({"command": LATE, "description": "Slow"});
    let child = Script::new().turn([tool("Bash", wait)]).turn([text("child done")]);
    let prompt = sends_agent(&stage, child, true);
    let second = stage.says("second", "still here");
    let (client, session) = stage.open(Abilities::Zed).await?;
    let one = client.ask(&session, &prompt).await?;
    client.seen(&session, "the parent's words", |picture| picture.text().contains("parent done")).await?;
    // The first answer is held for the agent; the session takes the next prompt all the same.
    let two = client.ask(&session, &second).await?;
    client.seen(&session, "the second turn", |picture| picture.text().contains("still here")).await?;
    stage.sandbox.write("go.signal", "")?;
    for id in [one, two] {
        let answer = client.answered(&id).await?;
        ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    }
    stage.end(client).await
}

pub(crate) async fn caa_360_a_diff_has_the_whole_file(stage: Stage) -> Result<()> {
    let before: String = (1..400).map(|n| format!("line {n}\n")).collect();
    let after = before.replace("line 200\n", "line two hundred\n").replace("line 7\n", "line seven\n");
    let file = stage.given("long.txt", &before)?;
    let write = json!({"file_path": file, "content": after});
    let script = Script::new()
        .turn([tool("Read", json!({"file_path": file}))])
        .turn([tool("Write", write)])
        .turn([text("ok")]);
    let prompt = stage.script("long", script);
    let (client, session) = stage.open(Abilities::Zed).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let diffs = calls[1].diffs();
    ensure!(diffs == [(&json!(file), &json!(before), &json!(after))], "{} diffs", diffs.len());
    stage.end(client).await
}

/// With `--review-edits` the editor writes the files.
pub(crate) async fn caa_333_edits_can_go_through_the_editor(stage: Stage) -> Result<()> {
    let file = stage.given("a.txt", BEFORE)?;
    let edit = json!({"file_path": file, "old_string": "two", "new_string": "TWO"});
    let script = Script::new()
        .turn([tool("Read", json!({"file_path": file}))])
        .turn([tool("mcp__acp__Edit", edit)])
        .turn([text("edited")]);
    let prompt = stage.script("review", script);
    let client = stage.agent_with(Abilities::Zed, &["--review-edits"]).await?;
    let session = client.new_session(stage.sandbox.work()).await?;
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let offered =
        stage.model.requests().iter().find(|request| request.turn.is_some()).context("no request")?.clone();
    ensure!(!offered.tools().contains(&"Edit"), "the built-in is still offered: {:?}", offered.tools());
    let writes = client.asks("fs/write_text_file");
    ensure!(
        writes.len() == 1 && writes[0].params["content"] == AFTER,
        "{writes:?}; offered: {:?}",
        offered.tools()
    );
    ensure!(stage.read("a.txt").as_deref() == Some(AFTER));
    stage.end(client).await
}

/// A server that is somewhere else is reached with the client's headers, and its call is shown as any other.
async fn remote_server(stage: Stage, transport: Transport) -> Result<()> {
    let prompt = stage.uses("mcp", "mcp__far__add", json!({"a": 2, "b": 3}), "added");
    let server = Server::start(transport).await?;
    let client = stage.agent(Abilities::Zed).await?;
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server.config("far")]})).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let call = calls.first().context("no call")?;
    ensure!(calls.len() == 1 && call.status() == "completed", "{calls:?}");
    ensure!(call.text().contains("the sum is 5"), "{call:?}");
    ensure!(call.title() == "far: Add", "{}", call.title());
    stage.end(client).await
}

pub(crate) async fn an_http_server_is_used(stage: Stage) -> Result<()> {
    remote_server(stage, Transport::Http).await
}

pub(crate) async fn an_sse_server_is_used(stage: Stage) -> Result<()> {
    remote_server(stage, Transport::Sse).await
}

/// A server that needs the user in a browser: the client is given the address, and told when it is done. The oldest CLI
/// refuses the server this.
pub(crate) async fn a_server_can_ask_for_an_address_to_be_opened(stage: Stage) -> Result<()> {
    let prompt = stage.uses("login", "mcp__far__login", json!({}), "logged in");
    let server = Server::start(Transport::Sse).await?;
    let client = stage.agent(Abilities::Full).await?;
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server.config("far")]})).await?;
    client.policy(|ask| match ask.method.as_str() {
        "elicitation/create" => Reply::Result(json!({"action": "accept"})),
        _ => ask.choose("allow_once"),
    });
    let answer = client.prompt(&session, &prompt).await?;
    ensure!(answer.stop_reason()? == "end_turn", "{answer:?}");
    let told = client.picture(&session).calls.first().context("no call")?.text();
    let asked = client.asks("elicitation/create");
    ensure!(asked.len() == 1, "{asked:?}, and the server was told {told}");
    let params = &asked[0].params;
    ensure!(params["mode"] == "url" && params["url"] == mcp::ADDRESS, "{params}");
    ensure!(params["message"].as_str().is_some_and(|words| words.contains("far")), "nobody asks: {params}");
    let done = client.wait_for("its end", |line| line["method"] == "elicitation/complete").await?;
    ensure!(done["params"]["elicitationId"] == params["elicitationId"], "{done}");
    ensure!(told.contains("accept"), "the server was told {told}");
    stage.end(client).await
}

pub(crate) async fn mcp_tools_have_readable_titles(stage: Stage) -> Result<()> {
    let prompt = stage.uses("mcp", "mcp__calc__add", json!({"a": 2, "b": 3}), "added");
    let client = stage.agent(Abilities::Zed).await?;
    let server = crate::asks::server(&stage)?;
    let (session, _) = stage.open_with(&client, json!({"mcpServers": [server]})).await?;
    let calls = calls(&client, &session, &prompt).await?;
    let call = calls.first().context("no call")?;
    ensure!(
        !call.title().contains("mcp__") && call.title().to_lowercase().contains("add"),
        "{}",
        call.title()
    );
    ensure!(call.text().contains('5') && call.status() == "completed", "{call:?}");
    stage.end(client).await
}
