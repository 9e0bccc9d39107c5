//! Edits reviewed in another terminal: the one where `oarlock serve` runs, and the one of the minimal example.

use anyhow::{Context, Result, ensure};
use oarlock_testkit::tui::{Key, Launch, Tui};

use crate::edits::{MODIFIED, refused, succeeded};
use crate::stage::{PATIENCE, SETTLING, Stage, aside, edit, no_question, question};

const PROPOSAL: &str = "accept (a), reject (r) or edit (e)?";

/// `oarlock serve` in a terminal of its own, and a CLI that has connected to it.
async fn served(stage: &Stage) -> Result<(Tui, Tui)> {
    served_with(stage, "sed -i 's/x = 10/x = 11/' \"$1\"").await
}

/// The same, with an editor that does something else.
async fn served_with(stage: &Stage, editor: &str) -> Result<(Tui, Tui)> {
    let editor = aside(stage, "editor.sh", editor)?;
    let serve = Launch::new(stage.oarlock.program(), stage.sandbox.work(), stage.sandbox.environment(None)?)
        .args(["serve"])
        .env("EDITOR", format!("sh {}", editor.display()));
    let ide = serve.start()?;
    ide.wait_for_text("is an IDE now", PATIENCE).await?;
    let tui = stage.open(&stage.claude()?.args(["--ide"])).await?;
    ide.wait_for_text("is ready", PATIENCE).await?;
    tokio::time::sleep(SETTLING).await;
    Ok((ide, tui))
}

/// Waits until the question about a change is the last thing on the screen: what is typed before it counts for nothing.
async fn asked(ide: &Tui, change: &str) -> Result<String> {
    let is_asked = |screen: &str| {
        let last = screen.lines().rev().map(str::trim).find(|line| !line.is_empty());
        screen.contains(change) && last.is_some_and(|line| line.ends_with(PROPOSAL))
    };
    ide.wait_until(&format!("the question about {change:?}"), PATIENCE, is_asked).await
}

fn answer(ide: &Tui, line: &str) -> Result<()> {
    ide.type_text(line)?;
    ide.press(Key::Enter)
}

pub(crate) async fn edit_accepted_where_serve_runs(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\ny = 2\n")?;
    let (ide, tui) = served(&stage).await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    let shown = asked(&ide, "+ x = 10").await?;
    ensure!(shown.contains("- x = 1"), "no diff is shown:\n{shown}");
    // A stray Enter decides nothing, and what was pasted behind it is not an answer.
    answer(&ide, "")?;
    ide.wait_until("the question again", PATIENCE, |screen| screen.matches(PROPOSAL).count() > 1).await?;
    ensure!(stage.read(&path)? == "x = 1\ny = 2\n");
    answer(&ide, "a")?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\ny = 2\n");
    Ok(())
}

pub(crate) async fn edit_changed_and_rejected_where_serve_runs(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (ide, tui) = served(&stage).await?;
    stage.prompt(&tui, "first", edit(&path, "x = 1", "x = 10")).await?;
    asked(&ide, "+ x = 10").await?;
    answer(&ide, "e")?;
    asked(&ide, "+ x = 11").await?;
    answer(&ide, "a")?;
    let told = stage.turn(&tui, "first", 2).await?;
    ensure!(told.told_last().contains(MODIFIED), "the model does not know of the change: {told:?}");
    ensure!(stage.read(&path)? == "x = 11\n");

    stage.prompt(&tui, "edit", edit(&path, "x = 11", "x = 12")).await?;
    asked(&ide, "+ x = 12").await?;
    answer(&ide, "r")?;
    refused(&stage, &tui).await?;
    ensure!(stage.read(&path)? == "x = 11\n");
    Ok(())
}

pub(crate) async fn edit_decided_in_the_cli_frees_the_serve_terminal(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let (ide, tui) = served(&stage).await?;
    stage.prompt(&tui, "first", edit(&path, "x = 1", "x = 10")).await?;
    asked(&ide, "+ x = 10").await?;
    crate::stage::answer(&tui, Key::Enter).await?;
    ide.wait_for_text("decided elsewhere", PATIENCE).await?;
    succeeded(&stage.turn(&tui, "first", 2).await?)?;
    no_question(&tui).await?;
    // What is typed between two questions answers neither.
    answer(&ide, "a")?;
    stage.prompt(&tui, "edit", edit(&path, "x = 10", "x = 20")).await?;
    asked(&ide, "+ x = 20").await?;
    ensure!(stage.read(&path)? == "x = 10\n", "an answer to the old question counted for the new one");
    answer(&ide, "a")?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 20\n");
    Ok(())
}

pub(crate) async fn no_question_is_asked_under_a_running_editor(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let done = stage.sandbox.home().join("done");
    let waits = format!("echo editing; until [ -e '{}' ]; do sleep 0.05; done", done.display());
    let (ide, tui) = served_with(&stage, &waits).await?;
    stage.prompt(&tui, "first", edit(&path, "x = 1", "x = 10")).await?;
    asked(&ide, "+ x = 10").await?;
    answer(&ide, "e")?;
    ide.wait_for_text("editing", PATIENCE).await?;
    crate::stage::answer(&tui, Key::Enter).await?;
    succeeded(&stage.turn(&tui, "first", 2).await?)?;
    no_question(&tui).await?;
    stage.prompt(&tui, "edit", edit(&path, "x = 10", "x = 20")).await?;
    question(&tui).await?;
    // Longer than the engine gives a view to close: keys still belong to the editor.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    answer(&ide, "a")?;
    ensure!(!ide.screen().contains("+ x = 20"), "asked under the editor:\n{}", ide.screen());
    std::fs::write(&done, "")?;
    asked(&ide, "+ x = 20").await?;
    ensure!(stage.read(&path)? == "x = 10\n", "a key of the editor accepted the next change");
    answer(&ide, "a")?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 20\n");
    Ok(())
}

pub(crate) async fn minimal_example_is_an_ide(stage: Stage) -> Result<()> {
    let path = stage.sandbox.write("a.py", "x = 1\n")?;
    let example = example()?;
    let ide = Launch::new(&example, stage.sandbox.work(), stage.sandbox.environment(None)?).start()?;
    ide.wait_for_text("ready:", PATIENCE).await?;
    let tui = stage.open(&stage.claude()?.args(["--ide"])).await?;
    tokio::time::sleep(2 * SETTLING).await;
    stage.prompt(&tui, "edit", edit(&path, "x = 1", "x = 10")).await?;
    ide.wait_for_text("accept? [y/N]", PATIENCE).await?;
    question(&tui).await?;
    answer(&ide, "y")?;
    succeeded(&stage.turn(&tui, "edit", 2).await?)?;
    ensure!(stage.read(&path)? == "x = 10\n");
    Ok(())
}

/// Where the example is built.
fn example() -> Result<std::path::PathBuf> {
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_oarlock")).parent().context("no directory")?;
    Ok(programs.join("examples").join("minimal_ide"))
}

/// Builds the example, before the cage is closed.
pub(crate) fn build_example() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = std::process::Command::new(cargo);
    build.args(["build", "--quiet", "--package", "oarlock-ide", "--example", "minimal_ide"]);
    ensure!(build.status().context("failed to run cargo")?.success(), "the minimal example does not build");
    Ok(())
}
