//! How CLIs find the engine, and what happens when there are several or when it restarts.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::engine::Engine;
use oarlock_testkit::model::{Script, tool};
use oarlock_testkit::tui::{Key, Launch, Tui};
use serde_json::{Value, json};

use crate::stage::{FINISHED, PATIENCE, SETTLING, Stage, answer, diff, edit, question};

pub(crate) async fn connects_by_the_ide_flag(stage: Stage) -> Result<()> {
    let (engine, tui) = stage.connected().await?;
    introduced(&stage, &engine, &tui).await
}

/// The port variable needs no matching folder: the engine serves another one.
pub(crate) async fn connects_by_the_port_variable(stage: Stage) -> Result<()> {
    let elsewhere = stage.sandbox.home().join("elsewhere");
    std::fs::create_dir(&elsewhere)?;
    let engine = stage.serve(&["--workspace", elsewhere.to_str().context("not UTF-8")?]).await?;
    let launch = stage.claude()?.env("CLAUDE_CODE_SSE_PORT", engine.port().to_string());
    let tui = stage.join(&engine, &launch).await?;
    introduced(&stage, &engine, &tui).await
}

pub(crate) async fn started_by_oarlock_claude(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let engine = stage.serve(&[]).await?;
    let environment = stage.sandbox.environment(Some(&stage.model))?;
    let launch = Launch::new(stage.oarlock.program(), stage.sandbox.work(), environment).args(["claude"]);
    let tui = stage.join(&engine, &launch).await?;
    introduced(&stage, &engine, &tui).await?;
    // Nobody chose a mode, so `oarlock claude` chose the one in which edits are reviewed.
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["accept", &diff]).await?;
    stage.turn(&tui, "edit", 2).await?;
    ensure!(stage.read(&path)? == "x = 10\n");
    Ok(())
}

pub(crate) async fn oarlock_claude_brings_its_own_engine(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let environment = stage.sandbox.environment(Some(&stage.model))?;
    let launch = Launch::new(stage.oarlock.program(), stage.sandbox.work(), environment).args(["claude"]);
    let tui = stage.open(&launch).await?;
    tokio::time::sleep(2 * SETTLING).await;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    question(&tui).await?;
    // The CLI leaves the change to its IDE; the person must learn where to see it.
    tui.wait_for_text("oarlock ide diffs -p", PATIENCE).await?;
    let shown = stage.oarlock.run(&["ide", "diffs", "-p"]).await?;
    ensure!(shown.contains("+ x = 10"), "the change is not shown: {shown}");
    answer(&tui, Key::Enter).await?;
    stage.turn(&tui, "edit", 2).await?;
    ensure!(stage.read(&path)? == "x = 10\n");
    Ok(())
}

pub(crate) async fn two_clients_at_once(stage: Stage) -> Result<()> {
    let (one, two) = (stage.sandbox.write("one.py", "x = 1\n")?, stage.sandbox.write("two.py", "x = 2\n")?);
    let (engine, first) = stage.connected().await?;
    let second = stage.join(&engine, &stage.claude()?.args(["--ide"])).await?;

    stage.prompt(&first, "one", edit(&one, "x = 1", "x = 10")).await?;
    let first_diff = diff(&engine, &first, 0, &one).await?;
    // The second client's prompt closes all diffs: its own, not the first one's.
    stage.prompt(&second, "two", edit(&two, "x = 2", "x = 20")).await?;
    let second_diff = diff(&engine, &second, 0, &two).await?;
    engine.ide(&["reject", &second_diff]).await?;
    engine.ide(&["accept", &first_diff]).await?;
    let told = stage.turn(&first, "one", 2).await?;
    ensure!(
        told.last_tool_result().is_some_and(|result| !result.is_error),
        "the first edit failed: {told:?}"
    );
    ensure!(stage.read(&one)? == "x = 10\n" && stage.read(&two)? == "x = 2\n");

    // A mention can go to one of the two.
    let pid = second.pid().context("the second CLI has ended")?.to_string();
    engine.ide(&["mention", "two.py", "--to", &pid]).await?;
    second.wait_for_text("@two.py", PATIENCE).await?;
    ensure!(!first.screen().contains("@two.py"), "both got the mention:\n{}", first.framed());
    drop(second);
    engine.event("client_gone", PATIENCE).await.map(drop)
}

pub(crate) async fn engine_restarts_and_the_client_reconnects(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\n")?;
    let (mut engine, tui) = stage.connected().await?;
    let (port, token) = (engine.port(), engine.token()?);
    engine.stop().await?;
    ensure!(!engine.lock().exists(), "the lock file outlived the engine");
    let engine = stage.serve(&[]).await?;
    ensure!(engine.port() == port && engine.token()? == token, "the new engine took another port or token");
    engine.event("client_ready", PATIENCE).await.map_err(|error| error.context(tui.framed()))?;
    engine.ide(&["select", "a.py:1-2"]).await?;
    tui.wait_for_text("2 lines selected", PATIENCE).await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let told = stage.turn(&tui, "edit", 0).await?.told_last();
    ensure!(told.contains("The user selected the lines 1 to 2"), "the selection is not told:\n{told}");
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["accept", &diff]).await?;
    stage.turn(&tui, "edit", 2).await?;
    ensure!(stage.read(&path)? == "x = 10\ny = 2\n");
    Ok(())
}

/// `claude -p` never connects as an IDE client; the written configuration makes the engine an ordinary MCP server.
pub(crate) async fn headless_client_uses_the_written_config(stage: Stage) -> Result<()> {
    let engine = stage.serve(&[]).await?;
    let config = engine.ide(&["config"]).await?.trim().to_owned();
    let text: Value =
        serde_json::from_slice(&std::fs::read(&config).with_context(|| format!("no {config:?}"))?)?;
    let servers = text["mcpServers"].as_object().with_context(|| format!("no servers in {text}"))?;
    let name = servers.keys().next().context("no server")?;
    let folders = format!("mcp__{name}__getWorkspaceFolders");
    let script = Script::new().turn([tool(folders.as_str(), json!({}))]);
    let marker = stage.model.script("ask", script.turn([oarlock_testkit::model::text(FINISHED)]));
    let launch = stage.claude_as_it_comes()?.args([
        "-p",
        &format!("which folders? {marker}"),
        "--mcp-config",
        &config,
        "--allowedTools",
        &folders,
    ]);
    let tui = launch.start()?;
    let told = stage.turn(&tui, "ask", 1).await?;
    let result = told.last_tool_result().with_context(|| format!("no tool result in {told:?}"))?;
    let work = stage.sandbox.work().to_str().context("not UTF-8")?;
    ensure!(!result.is_error && result.text.contains(work), "not the engine's folders: {result:?}");
    tui.wait_for_text(FINISHED, PATIENCE).await?;
    tui.wait_for_end(PATIENCE).await?;
    ensure!(std::fs::read_dir(work)?.count() == 0, "something was written into the workspace");
    let ready = engine.events().entries().iter().any(|event| event["event"] == "client_ready");
    ensure!(!ready, "a headless client counts as an IDE client");
    Ok(())
}

/// The engine knows which CLI has come, and the model got nothing but the prompt.
async fn introduced(stage: &Stage, engine: &Engine, tui: &Tui) -> Result<()> {
    let ready = engine.event("client_ready", PATIENCE).await?;
    ensure!(ready["version"] == stage.cli.version.as_str(), "another client: {ready}");
    ensure!(
        ready["cwd"] == stage.sandbox.work().to_str().context("not UTF-8")?,
        "another directory: {ready}"
    );
    stage.prompt(tui, "hello", Script::new()).await?;
    let told = stage.turn(tui, "hello", 0).await?.told_last();
    ensure!(told.contains("please"), "the prompt was not told:\n{told}");
    ensure!(
        !told.contains("The user selected") && !told.contains("in the IDE"),
        "context out of nowhere:\n{told}"
    );
    tui.wait_for_text(FINISHED, PATIENCE).await.map(drop)
}
