//! What the model learns from the IDE: selections, mentions, diagnostics.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::model::{Script, tool};
use serde_json::{Value, json};

use crate::stage::{FINISHED, PATIENCE, Stage, aside, diff, edit};

pub(crate) async fn selection_reaches_the_model(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\nz = 3\n")?;
    let engine = stage.serve(&[]).await?;
    // It stands before the CLI comes. Straight after `ide_connected` the CLI would lose it: the engine has to wait.
    engine.ide(&["select", "a.py:2-3"]).await?;
    let tui = stage.enter(&engine, &stage.claude()?.args(["--ide"])).await?;
    tui.wait_for_text("2 lines selected", PATIENCE).await?;
    stage.prompt(&tui, "look", Script::new()).await?;
    let told = stage.turn(&tui, "look", 0).await?.told_last();
    let wanted = format!("The user selected the lines 2 to 3 from {}:\ny = 2\nz = 3\n", path.display());
    ensure!(told.contains(&wanted), "the selection is not in what the model was told:\n{told}");
    tui.wait_for_text(FINISHED, PATIENCE).await?;
    // The CLI uses a selection once.
    stage.prompt(&tui, "again", Script::new()).await?;
    let told = stage.turn(&tui, "again", 0).await?.told_last();
    ensure!(!told.contains("The user selected"), "the selection was told twice:\n{told}");
    ensure!(stage.read(&path)? == "x = 1\ny = 2\nz = 3\n");
    Ok(())
}

pub(crate) async fn mention_reaches_the_model(stage: Stage) -> Result<()> {
    stage.sandbox.write("a.py", "x = 1\ny = 2\nz = 3\n")?;
    let engine = stage.serve(&[]).await?;
    // Before there is anybody to tell: the engine keeps it until the CLI can take it.
    engine.ide(&["mention", "a.py:1-2"]).await?;
    let tui = stage.enter(&engine, &stage.claude()?.args(["--ide"])).await?;
    tui.wait_for_text("@a.py#L1-2", PATIENCE).await?;
    stage.prompt(&tui, "look", Script::new()).await?;
    let told = stage.turn(&tui, "look", 0).await?.told_last();
    ensure!(told.contains("@a.py#L1-2 please"), "the mention is not in the prompt:\n{told}");
    ensure!(told.contains("1\tx = 1\n2\ty = 2"), "the mentioned lines were not told:\n{told}");
    ensure!(!told.contains("z = 3"), "more than the mentioned lines was told:\n{told}");
    Ok(())
}

pub(crate) async fn new_diagnostics_reach_the_model(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = oops")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    let mark = engine.events().len();
    engine.ide(&["accept", &diff]).await?;
    // The baseline has been taken before the problem is there.
    engine.event_after(mark, "tool_call", PATIENCE, |event| event["tool"] == "getDiagnostics").await?;
    stage.turn(&tui, "edit", 2).await?;
    tui.wait_for_text(FINISHED, PATIENCE).await?;
    let problems = aside(&stage, "problems.json", &problems(&path)?.to_string())?;
    engine.ide(&["diagnostics", problems.to_str().context("not UTF-8")?]).await?;
    stage.prompt(&tui, "next", Script::new()).await?;
    let told = stage.turn(&tui, "next", 0).await?.told();
    ensure!(told.contains("<new-diagnostics>"), "no new diagnostics were told:\n{told}");
    ensure!(
        told.contains("✘ [Line 1:5] oops is not defined [F821] (ruff)"),
        "not the published problem:\n{told}"
    );
    ensure!(stage.read(&path)? == "x = oops\ny = 2\n");
    Ok(())
}

pub(crate) async fn model_asks_for_diagnostics(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = oops\n")?;
    let engine = stage.serve(&[]).await?;
    // The tool is listed once there is something to tell; a CLI that lists again later gives no sign of it.
    let problems = aside(&stage, "problems.json", &problems(&path)?.to_string())?;
    engine.ide(&["diagnostics", problems.to_str().context("not UTF-8")?]).await?;
    let allowed = ["--ide", "--allowedTools", "mcp__ide__getDiagnostics"];
    let tui = stage.join(&engine, &stage.claude()?.args(allowed)).await?;
    let uri = format!("file://{}", path.display());
    let script = Script::new().turn([tool("mcp__ide__getDiagnostics", json!({"uri": uri}))]);
    stage.prompt(&tui, "ask", script).await?;
    let told = stage.turn(&tui, "ask", 1).await?;
    let result = told.last_tool_result().with_context(|| format!("no tool result in {told:?}"))?;
    ensure!(!result.is_error, "the call failed: {result:?}");
    let files: Value =
        serde_json::from_str(&result.text).with_context(|| format!("not JSON: {}", result.text))?;
    ensure!(files[0]["uri"] == uri, "another file's diagnostics: {files}");
    ensure!(
        files[0]["diagnostics"][0]["message"] == "oops is not defined",
        "not the published problem: {files}"
    );
    ensure!(stage.read(&path)? == "x = oops\n");
    Ok(())
}

/// One error in the first line, as a linter reports it.
fn problems(path: &std::path::Path) -> Result<Value> {
    let uri = format!("file://{}", path.to_str().context("not UTF-8")?);
    let range = json!({"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 8}});
    Ok(json!([{"uri": uri, "diagnostics": [{
        "message": "oops is not defined", "severity": "Error", "range": range, "source": "ruff", "code": "F821",
    }]}]))
}
