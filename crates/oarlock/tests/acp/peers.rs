//! Clients that others wrote: the SDKs for Python and Rust, and `acpx`. Each plays the same four scenarios.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarlock_testkit::acp::Abilities;
use oarlock_testkit::acp::peers::Peer;
use oarlock_testkit::cli::Program;
use oarlock_testkit::model::{Script, hold, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::stage::Stage;
use crate::turns::text_of;

/// The package of the Rust client. It is no part of the workspace: it would turn on features of our dependencies.
pub(crate) const RUST_CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/rust-client");

const LIMIT: Duration = Duration::from_secs(60);

/// What a client plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A prompt, and text.
    Text,
    /// A file is written, with permission.
    Permission,
    /// A prompt is cancelled.
    Cancel,
    /// A session of the past is shown, and goes on.
    Load,
}

impl Scenario {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Permission => "permission",
            Self::Cancel => "cancel",
            Self::Load => "load",
        }
    }
}

/// All cells: on the newest CLI always, on the oldest in a full run.
pub(crate) fn cells(full: bool) -> impl Iterator<Item = (Peer, Scenario, Program)> {
    let scenarios = [Scenario::Text, Scenario::Permission, Scenario::Cancel, Scenario::Load];
    let programs = if full { &[Program::Newest, Program::Oldest][..] } else { &[Program::Newest] };
    programs.iter().flat_map(move |program| {
        Peer::ALL.into_iter().flat_map(move |peer| scenarios.map(|scenario| (peer, scenario, *program)))
    })
}

pub(crate) async fn play(stage: Stage, peer: Peer, scenario: Scenario, target: &Path) -> Result<()> {
    let prompt = match scenario {
        Scenario::Text | Scenario::Load => stage.says("peer", "Said to a peer."),
        Scenario::Permission => {
            let input = json!({"file_path": stage.path("new.txt"), "content": "new\n"});
            stage.uses("peer", "Write", input, "Written for a peer.")
        }
        Scenario::Cancel => {
            stage.script("peer", Script::new().turn([text("Begun for a peer."), hold("never")]))
        }
    };
    let session = match scenario {
        Scenario::Load => Some(past(&stage).await?),
        _ => None,
    };
    match peer {
        Peer::Acpx => acpx(&stage, scenario, &prompt, session.as_deref(), target).await?,
        Peer::Python | Peer::Rust => {
            driver(&stage, peer, scenario, &prompt, session.as_deref(), target).await?
        }
    }
    if scenario == Scenario::Permission {
        ensure!(stage.read("new.txt").as_deref() == Some("new\n"), "{:?}", stage.read("new.txt"));
    }
    if scenario == Scenario::Load {
        let asked = stage.model.turn("peer", 0, Duration::from_secs(5)).await?;
        ensure!(asked.body.to_string().contains("Said in the past."), "the model remembers");
    }
    stage.all_gone().await
}

/// A session that our own client has had.
async fn past(stage: &Stage) -> Result<String> {
    let prompt = stage.says("past", "Said in the past.");
    let (client, session) = stage.open(Abilities::Zed).await?;
    text_of(&client, &session, &prompt).await?;
    stage.end(client).await?;
    Ok(session)
}

fn prepared(stage: &Stage, command: std::process::Command) -> Result<Command> {
    let mut command = Command::from(command);
    command
        .current_dir(stage.sandbox.work())
        .env_clear()
        .envs(stage.sandbox.environment(Some(&stage.model))?);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

async fn output(command: &mut Command) -> Result<(String, String)> {
    let output = tokio::time::timeout(LIMIT, command.spawn()?.wait_with_output()).await;
    let output = output.context("the client did not end")??;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{}: {stdout}\n{stderr}", output.status);
    Ok((stdout.into_owned(), stderr.into_owned()))
}

/// A program that is given a plan and prints what came of it.
async fn driver(
    stage: &Stage,
    peer: Peer,
    scenario: Scenario,
    prompt: &str,
    session: Option<&str>,
    target: &Path,
) -> Result<()> {
    let plan = json!({
        "agent": env!("CARGO_BIN_EXE_oarlock"), "cwd": stage.sandbox.work(), "scenario": scenario.name(),
        "prompt": prompt, "session": session,
    });
    let mut command = peer.command(target);
    if peer == Peer::Python {
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/drivers/client.py"));
    }
    command.arg(plan.to_string());
    let (stdout, stderr) = output(&mut prepared(stage, command)?).await?;
    let said: Value = serde_json::from_str(stdout.trim()).with_context(|| format!("{stdout}\n{stderr}"))?;
    let text = said["text"].as_str().unwrap_or_default();
    let wanted = match scenario {
        Scenario::Text => "Said to a peer.",
        Scenario::Permission => "Written for a peer.",
        Scenario::Cancel => "Begun for a peer.",
        Scenario::Load => "Said in the past.Said to a peer.",
    };
    ensure!(text == wanted, "{said}\n{stderr}");
    let stop = if scenario == Scenario::Cancel { "cancelled" } else { "end_turn" };
    ensure!(said["stop"] == stop, "{said}\n{stderr}");
    ensure!(said["asked"] == u8::from(scenario == Scenario::Permission), "{said}\n{stderr}");
    Ok(())
}

async fn acpx(
    stage: &Stage,
    scenario: Scenario,
    prompt: &str,
    session: Option<&str>,
    target: &Path,
) -> Result<()> {
    let agent = format!("{} acp", env!("CARGO_BIN_EXE_oarlock"));
    let call = |more: &[&str]| {
        let mut command = Peer::Acpx.command(target);
        command.args(["--approve-all", "--ttl", "1", "--agent", &agent, "--format", "text"]).args(more);
        prepared(stage, command)
    };
    match scenario {
        Scenario::Text | Scenario::Permission => {
            let (stdout, stderr) = output(&mut call(&["exec", prompt])?).await?;
            let wanted = if scenario == Scenario::Text { "Said to a peer." } else { "Written for a peer." };
            ensure!(stdout.contains(wanted), "{stdout}\n{stderr}");
            // Unasked extensions make it print errors.
            ensure!(!stderr.contains("Method not found") && !stdout.contains("Method not found"), "{stderr}");
        }
        Scenario::Cancel => {
            let child = call(&["exec", prompt])?.spawn()?;
            let id = child.id().map(u32::cast_signed).and_then(Pid::from_raw).context("it runs")?;
            stage.model.turn("peer", 0, LIMIT).await?;
            kill_process(id, Signal::INT)?;
            let output =
                tokio::time::timeout(LIMIT, child.wait_with_output()).await.context("it did not end")??;
            let said = format!("{output:?}");
            ensure!(!said.contains("never"), "{said}");
        }
        Scenario::Load => {
            let session = session.context("there is one")?;
            output(&mut call(&["sessions", "new", "--resume-session", session])?).await?;
            let (stdout, stderr) = output(&mut call(&["prompt", prompt])?).await?;
            ensure!(stdout.contains("Said to a peer."), "{stdout}\n{stderr}");
            // Its server of the queue ends by itself a second later.
            stage.until("its end", || Ok(stage.sandbox.processes()?.is_empty())).await?;
        }
    }
    Ok(())
}
