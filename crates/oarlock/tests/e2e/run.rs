//! `oarlock run` with the real CLI: alone, at a terminal, resumed, interrupted.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::model::{Script, hold, text, thinking, tool};
use oarlock_testkit::tui::{Key, Launch, Tui};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::stage::{FINISHED, PATIENCE, Stage};

const ALLOW: &str = "allow it?";
const SESSION: &str = "0d3fa1c2-5a50-4c55-9c1e-6a5b7cb0a111";

/// What a run without a terminal has left.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn piped(stage: &Stage, arguments: &[&str]) -> Result<Ran> {
    let mut command = Command::new(stage.oarlock.program());
    command.arg("run").args(arguments).current_dir(stage.sandbox.work()).env_clear();
    command.envs(stage.sandbox.environment(Some(&stage.model))?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.spawn()?.wait_with_output());
    let output = output.await.context("it did not end")??;
    Ok(Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}

/// In a terminal, below a shell that outlives Ctrl-C and says with what code it ended.
fn open(stage: &Stage, arguments: &str) -> Result<Tui> {
    let program = stage.oarlock.program().display();
    let script = format!("trap : INT; '{program}' run {arguments}; echo \"ended with $?\"; read line");
    let environment = stage.sandbox.environment(Some(&stage.model))?;
    Launch::new("/bin/sh", stage.sandbox.work(), environment).args(["-c", &script]).start()
}

async fn asked(tui: &Tui, times: usize) -> Result<String> {
    let is_asked = |screen: &str| {
        let last = screen.lines().rev().map(str::trim).find(|line| !line.is_empty());
        screen.matches(ALLOW).count() == times && last.is_some_and(|line| line.ends_with(':'))
    };
    tui.wait_until(&format!("question {times}"), PATIENCE, is_asked).await
}

fn answer(tui: &Tui, line: &str) -> Result<()> {
    tui.type_text(line)?;
    tui.press(Key::Enter)
}

pub(crate) async fn run_answers_once(stage: Stage) -> Result<()> {
    let script = Script::new().turn([thinking("Let me see."), text("It is **so**.")]);
    let prompt = format!("how is it? {}", stage.model.script("how", script));
    let ran = piped(&stage, &[&prompt]).await?;
    ensure!(
        ran.code == Some(0) && ran.stdout == "It is **so**.\n",
        "{:?} {} {}",
        ran.code,
        ran.stdout,
        ran.stderr
    );
    ensure!(ran.stderr.is_empty(), "on stderr: {}", ran.stderr);
    let ran = piped(&stage, &[&prompt, "--output", "json"]).await?;
    let result: Value = serde_json::from_str(&ran.stdout)?;
    ensure!(result["type"] == "result" && result["result"] == "It is **so**.", "{result}");
    let ran = piped(&stage, &[&prompt, "--output", "stream-json"]).await?;
    let kinds: Vec<Value> = ran.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(kinds.iter().any(|frame| frame["subtype"] == "init"), "{}", ran.stdout);
    ensure!(kinds.iter().any(|frame| frame["type"] == "assistant"), "{}", ran.stdout);

    let tui = open(&stage, &format!("--thinking show '{prompt}'"))?;
    let shown = tui.wait_for_text("ended with 0", PATIENCE).await?;
    for part in ["Let me see.", "It is so.", "1 turn", "session "] {
        ensure!(shown.contains(part), "no {part:?}:\n{shown}");
    }
    Ok(())
}

pub(crate) async fn run_asks_before_it_writes(stage: Stage) -> Result<()> {
    let path = stage.sandbox.work().join("new.txt");
    let write = |contents: &str| tool("Write", json!({"file_path": path, "content": contents}));
    let script = Script::new().turn([write("first\n")]).turn([write("second\n")]).turn([text(FINISHED)]);
    let alone = format!("write {}", stage.model.script("alone", script.clone()));
    let prompt = format!("write {}", stage.model.script("write", script));

    let ran = piped(&stage, &[&alone]).await?;
    ensure!(
        ran.code == Some(0) && ran.stderr.contains("nobody could be asked"),
        "{:?} {}",
        ran.code,
        ran.stderr
    );
    ensure!(!path.exists(), "written without a yes");

    let tui = open(&stage, &format!("'{prompt}'"))?;
    let shown = asked(&tui, 1).await?;
    ensure!(shown.contains("wants to create") && shown.contains("+ first"), "{shown}");
    answer(&tui, "y")?;
    asked(&tui, 2).await?;
    ensure!(stage.read(&path)? == "first\n");
    answer(&tui, "n not like that")?;
    let told = stage.turn(&tui, "write", 2).await?;
    let refusal = told.last_tool_result().context("no tool result")?;
    ensure!(refusal.is_error && refusal.text.contains("not like that"), "{refusal:?}");
    let shown = tui.wait_for_text("ended with 0", PATIENCE).await?;
    ensure!(shown.contains("done") && shown.contains("refused") && shown.contains(FINISHED), "{shown}");
    ensure!(stage.read(&path)? == "first\n");
    Ok(())
}

pub(crate) async fn run_always_adds_the_suggested_rule(stage: Stage) -> Result<()> {
    let run =
        |name: &str| tool("Bash", json!({"command": format!("mkdir {name}"), "description": "makes it"}));
    let script = Script::new().turn([run("one")]).turn([run("one/two")]).turn([text(FINISHED)]);
    let prompt = format!("make {}", stage.model.script("make", script));
    let tui = open(&stage, &format!("'{prompt}'"))?;
    let shown = asked(&tui, 1).await?;
    ensure!(shown.contains("mkdir one") && shown.contains("a(lways):"), "{shown}");
    answer(&tui, "a")?;
    let told = stage.turn(&tui, "make", 1).await?;
    ensure!(told.last_tool_result().is_some_and(|result| !result.is_error), "{told:?}");
    ensure!(stage.sandbox.work().join("one").is_dir());
    tui.wait_for_text("ended with", PATIENCE).await.map(drop)
}

pub(crate) async fn run_goes_on_with_a_conversation(stage: Stage) -> Result<()> {
    let first =
        format!("my name is Ann {}", stage.model.script("first", Script::new().turn([text("Hello Ann.")])));
    let ran = piped(&stage, &[&first, "--session-id", SESSION]).await?;
    ensure!(ran.code == Some(0), "{}", ran.stderr);
    let second = format!("who am I? {}", stage.model.script("second", Script::new().turn([text("Ann.")])));
    for arguments in [&["--resume", SESSION][..], &["--continue"], &["--resume", SESSION, "--fork"]] {
        let ran = piped(&stage, &[&[second.as_str(), "--output", "json"], arguments].concat()).await?;
        let result: Value = serde_json::from_str(&ran.stdout).context(ran.stderr)?;
        let is_fork = arguments.contains(&"--fork");
        ensure!((result["session_id"] == SESSION) != is_fork, "{arguments:?}: {result}");
        let told = stage.model.requests().pop().context("nothing was asked")?.told();
        ensure!(told.contains("my name is Ann"), "{arguments:?}: the model does not remember:\n{told}");
    }
    let ran = piped(&stage, &["hi", "--resume", "0d3fa1c2-5a50-4c55-9c1e-000000000000"]).await?;
    ensure!(
        ran.code == Some(3) && ran.stderr.contains("No conversation found"),
        "{:?} {}",
        ran.code,
        ran.stderr
    );
    Ok(())
}

pub(crate) async fn run_is_interrupted_by_ctrl_c(stage: Stage) -> Result<()> {
    let script = Script::new().turn([text("Part one.\n\n"), hold("gate"), text("Part two.")]);
    let prompt = format!("say it {}", stage.model.script("say", script));
    let tui = open(&stage, &format!("--session-id {SESSION} '{prompt}'"))?;
    tui.wait_for_text("Part one.", PATIENCE).await?;
    tui.press(Key::Control('c'))?;
    let shown = tui.wait_for_text("ended with 130", PATIENCE).await?;
    ensure!(shown.contains("interrupted") && !shown.contains("Part two."), "{shown}");
    // The conversation is whole: it can be resumed.
    let again = format!("and now? {}", stage.model.script("again", Script::new().turn([text("Now.")])));
    let ran = piped(&stage, &[&again, "--resume", SESSION]).await?;
    ensure!(ran.stdout == "Now.\n", "{} {}", ran.stdout, ran.stderr);
    Ok(())
}
