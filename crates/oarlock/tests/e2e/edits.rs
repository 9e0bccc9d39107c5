//! Edits that the model proposes, reviewed in the IDE or in the terminal.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::engine::Engine;
use oarlock_testkit::model::{Request, Script, tool};
use oarlock_testkit::tui::{Key, Tui};
use serde_json::json;

use crate::stage::{FINISHED, PATIENCE, Stage, answer, aside, decision, diff, edit, no_question, question};

const REFUSED: &str = "The user doesn't want to proceed with this tool use";
pub(crate) const MODIFIED: &str = "The user modified your proposed changes before accepting them";

pub(crate) async fn edit_accepted(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    ensure!(stage.read(&path)? == "x = 1\ny = 2\n", "the file changed before anybody accepted");
    engine.ide(&["accept", &diff]).await?;
    let told = stage.turn(&tui, "edit", 2).await?;
    succeeded(&told)?;
    ensure!(!told.told_last().contains(MODIFIED), "nobody modified anything: {told:?}");
    ensure!(stage.read(&path)? == "x = 10\ny = 2\n");
    ensure!(decision(&engine, &diff).await? == "accepted");
    tui.wait_for_text(FINISHED, PATIENCE).await.map(drop)
}

pub(crate) async fn edit_accepted_with_changes(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    let contents = aside(&stage, "mine.py", "x = 11\ny = 2\n")?;
    let contents = contents.to_str().context("not UTF-8")?;
    engine.ide(&["accept", &diff, "--contents", contents]).await?;
    let told = stage.turn(&tui, "edit", 2).await?;
    succeeded(&told)?;
    ensure!(told.told_last().contains(MODIFIED), "the model does not know of the change: {told:?}");
    ensure!(stage.read(&path)? == "x = 11\ny = 2\n");
    Ok(())
}

pub(crate) async fn edit_rejected(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["reject", &diff]).await?;
    ensure!(decision(&engine, &diff).await? == "rejected");
    refused(&stage, &tui).await?;
    ensure!(stage.read(&path)? == "x = 1\n");
    Ok(())
}

pub(crate) async fn edit_accepted_by_policy(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (engine, tui) = stage.connected_with(&["--on-diff", "accept"]).await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    let decided = engine.event("diff_decided", PATIENCE).await?;
    ensure!(
        decided["decision"] == "accepted" && decided["by"] == "editor",
        "decided by something else: {decided}"
    );
    Ok(())
}

pub(crate) async fn edit_answered_yes_in_the_terminal(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    // The cursor starts on Yes.
    answer(&tui, Key::Enter).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    closed_by_the_client(&engine, &diff).await
}

pub(crate) async fn edit_answered_no_in_the_terminal(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    // Yes, Yes for the whole session, No.
    answer(&tui, Key::Character('3')).await?;
    refused(&stage, &tui).await?;
    ensure!(stage.read(&path)? == "x = 1\n");
    closed_by_the_client(&engine, &diff).await
}

pub(crate) async fn edit_escaped_in_the_terminal(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    answer(&tui, Key::Escape).await?;
    refused(&stage, &tui).await?;
    ensure!(stage.read(&path)? == "x = 1\n");
    closed_by_the_client(&engine, &diff).await
}

/// An engine that goes away decides nothing: the question stays with the person at the terminal.
pub(crate) async fn engine_stops_while_a_diff_is_open(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (mut engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    diff(&engine, &tui, 0, &path).await?;
    question(&tui).await?;
    engine.stop().await?;
    ensure!(!engine.lock().exists(), "the lock file outlived the engine");
    // Five tries to reconnect take 15 s; the first ones are enough to see that the question stays.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    question(&tui).await?;
    ensure!(stage.read(&path)? == "x = 1\n", "the end of the engine accepted the edit");
    answer(&tui, Key::Enter).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    Ok(())
}

pub(crate) async fn two_writes_in_a_row(stage: Stage) -> Result<()> {
    let (first, second) = (stage.sandbox.work().join("one.py"), stage.sandbox.work().join("two.py"));
    let (engine, tui) = stage.connected().await?;
    let write = |path, contents| tool("Write", json!({"file_path": path, "content": contents}));
    let script = Script::new().turn([write(&first, "n = 1\n"), write(&second, "n = 2\n")]);
    stage.prompt(&tui, "write", script).await?;
    let opened = diff(&engine, &tui, 0, &first).await?;
    let mark = engine.events().len();
    ensure!(!second.exists());
    engine.ide(&["accept", &opened]).await?;
    let opened = diff(&engine, &tui, mark, &second).await?;
    engine.ide(&["accept", &opened]).await?;
    let told = stage.turn(&tui, "write", 1).await?;
    let results = told.tool_results();
    ensure!(
        results.len() == 2 && results.iter().all(|result| !result.is_error),
        "not two successes: {results:?}"
    );
    // The CLI drops the last line feed of a Write that the IDE accepts.
    ensure!(stage.read(&first)?.trim_end() == "n = 1");
    ensure!(stage.read(&second)?.trim_end() == "n = 2");
    Ok(())
}

pub(crate) async fn edit_of_a_megabyte(stage: Stage) -> Result<()> {
    let mut contents = String::from("x = 1\n");
    while contents.len() < 1 << 20 {
        contents.push_str("# one more line of a long, long file\n");
    }
    let path = stage.sandbox.write("long.py", &contents)?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["accept", &diff]).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == contents.replacen("x = 1", "x = 10", 1), "the long file is not as edited");
    Ok(())
}

pub(crate) async fn edit_keeps_crlf(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("dos.py", "x = 1\r\ny = 2\r\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["accept", &diff]).await?;
    let told = stage.turn(&tui, "edit", 2).await?;
    succeeded(&told)?;
    ensure!(!told.told_last().contains(MODIFIED), "line ends count as a change: {told:?}");
    let contents = stage.read(&path)?;
    ensure!(contents == "x = 10\r\ny = 2\r\n", "line ends were lost: {contents:?}");
    Ok(())
}

pub(crate) async fn edit_in_a_path_with_blanks_and_accents(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("sub dir/é #1%.py", "x = 1\n")?;
    let (engine, tui) = stage.connected().await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let diff = diff(&engine, &tui, 0, &path).await?;
    engine.ide(&["accept", &diff]).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    Ok(())
}

/// The newest CLI starts in auto mode: it writes unasked, and the IDE sees no diff.
pub(crate) async fn auto_mode_writes_without_a_diff(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let engine = stage.serve(&[]).await?;
    let tui = stage.join(&engine, &stage.claude_as_it_comes()?.args(["--ide"])).await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    tui.wait_for_text(FINISHED, PATIENCE).await?;
    let events = engine.events().entries();
    ensure!(
        events.iter().any(|event| event["tool"] == "getDiagnostics"),
        "no baseline was asked for: {events:?}"
    );
    ensure!(!events.iter().any(|event| event["event"] == "diff_opened"), "a diff was opened: {events:?}");
    Ok(())
}

/// The model was told that its edit was made.
pub(crate) fn succeeded(told: &Request) -> Result<()> {
    let result = told.last_tool_result().with_context(|| format!("no tool result in {told:?}"))?;
    ensure!(!result.is_error, "the model was told of an error: {result:?}");
    ensure!(result.text.contains("updated") || result.text.contains("created"), "not a success: {result:?}");
    Ok(())
}

/// The turn has stopped, and the next prompt tells the model that the person refused.
pub(crate) async fn refused(stage: &Stage, tui: &Tui) -> Result<()> {
    no_question(tui).await?;
    stage.prompt(tui, "after", Script::new()).await?;
    let told = stage.turn(tui, "after", 0).await?;
    let result = told.last_tool_result().with_context(|| format!("no tool result in {told:?}"))?;
    ensure!(
        result.is_error && result.text.contains(REFUSED),
        "the model was not told of the refusal: {result:?}"
    );
    let turned = stage.model.requests().iter().any(|request| request.is_turn("edit", 2));
    ensure!(!turned, "the turn went on after the refusal");
    tui.wait_for_text(FINISHED, PATIENCE).await.map(drop)
}

/// The answer in the terminal closes the diff in the IDE, which must not call that an acceptance.
async fn closed_by_the_client(engine: &Engine, diff: &str) -> Result<()> {
    let decision = decision(engine, diff).await?;
    ensure!(["closed", "rejected"].contains(&decision.as_str()), "the closed diff counts as {decision}");
    Ok(())
}
