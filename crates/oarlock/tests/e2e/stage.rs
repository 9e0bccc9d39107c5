//! What every scenario starts from: a sandbox, a scripted model, the CLI and `oarlock`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_testkit::cli::{Cli, Sandbox};
use oarlock_testkit::engine::{Engine, Oarlock};
use oarlock_testkit::model::{Model, Request, Script, text, tool};
use oarlock_testkit::tui::{Key, Launch, Tui};
use serde_json::{Value, json};

/// How long anything may take. Waiting ends with the event, so this is only met by failures.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// How long a CLI takes after `ide_connected` until it uses the connection. It gives no sign of it: before that it
/// drops notifications, sends no `closeAllDiffTabs` with a prompt and takes a lost connection for a failed one.
pub(crate) const SETTLING: Duration = Duration::from_millis(600);

/// How soon a key is pressed again that had no effect: the CLI ignores keys just after a question has appeared.
const INSISTENCE: Duration = Duration::from_millis(700);

/// The end of every script: on the screen it means that the turn is over.
pub(crate) const FINISHED: &str = "That is all.";

/// The question of the CLI's own terminal when an edit needs permission.
const QUESTION: &str = "Do you want to";

/// A scenario's surroundings.
pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) sandbox: Sandbox,
    pub(crate) model: Model,
    pub(crate) oarlock: Oarlock,
}

impl Stage {
    pub(crate) async fn new(cli: Cli) -> Result<Self> {
        ensure!(
            cli.exists(),
            "{} is not there; the fetch before the cage must have failed",
            cli.program.display()
        );
        let sandbox = Sandbox::new(Some(&cli))?;
        let program =
            std::env::var_os("OARLOCK_E2E_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_oarlock").into());
        let oarlock = Oarlock::new(program, &sandbox)?;
        Ok(Self { cli, sandbox, model: Model::start().await?, oarlock })
    }

    /// An engine whose workspace is the working directory.
    pub(crate) async fn serve(&self, arguments: &[&str]) -> Result<Engine> {
        self.oarlock.serve(arguments).await
    }

    /// How to start the CLI so that it asks before it edits.
    pub(crate) fn claude(&self) -> Result<Launch> {
        Ok(self.claude_as_it_comes()?.args(["--permission-mode", "default"]))
    }

    /// How to start the CLI with no argument at all.
    pub(crate) fn claude_as_it_comes(&self) -> Result<Launch> {
        let environment = self.sandbox.environment(Some(&self.model))?;
        Ok(Launch::new(&self.cli.program, self.sandbox.work(), environment))
    }

    /// Starts an interactive CLI and waits until it takes input.
    pub(crate) async fn open(&self, launch: &Launch) -> Result<Tui> {
        let tui = launch.start()?;
        let ready =
            |screen: &str| screen.contains("? for shortcuts") || screen.contains("shift+tab to cycle");
        tui.wait_until("the CLI's input line", PATIENCE, ready).await?;
        Ok(tui)
    }

    /// An engine, and a CLI that has connected to it by `--ide`.
    pub(crate) async fn connected(&self) -> Result<(Engine, Tui)> {
        self.connected_with(&[]).await
    }

    /// The same, with more arguments for the engine.
    pub(crate) async fn connected_with(&self, arguments: &[&str]) -> Result<(Engine, Tui)> {
        let engine = self.serve(arguments).await?;
        let tui = self.join(&engine, &self.claude()?.args(["--ide"])).await?;
        Ok((engine, tui))
    }

    /// Starts a CLI that will connect to the engine, and waits until it uses the connection.
    pub(crate) async fn join(&self, engine: &Engine, launch: &Launch) -> Result<Tui> {
        let tui = self.enter(engine, launch).await?;
        tokio::time::sleep(SETTLING).await;
        Ok(tui)
    }

    /// Starts a CLI that will connect to the engine, and waits no longer than until it has said so.
    pub(crate) async fn enter(&self, engine: &Engine, launch: &Launch) -> Result<Tui> {
        let mark = engine.events().len();
        let tui = self.open(launch).await?;
        let ready = engine.event_after(mark, "client_ready", PATIENCE, |_| true).await;
        ready.map_err(|error| error.context(tui.framed()))?;
        Ok(tui)
    }

    /// Registers a script that ends with [`FINISHED`], and submits a prompt that plays it.
    pub(crate) async fn prompt(&self, tui: &Tui, name: &str, script: Script) -> Result<()> {
        let marker = self.model.script(name, script.turn([text(FINISHED)]));
        tui.submit(&format!("please {marker}"), PATIENCE).await
    }

    /// The request for one turn of a script; failing shows the screen.
    pub(crate) async fn turn(&self, tui: &Tui, script: &str, number: usize) -> Result<Request> {
        self.model.turn(script, number, PATIENCE).await.map_err(|error| error.context(tui.framed()))
    }

    /// What the file holds now.
    pub(crate) fn read(&self, path: &Path) -> Result<String> {
        let bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        String::from_utf8(bytes).context("not UTF-8")
    }
}

/// Reads the file, then replaces `old` by `new` in it: turns 0 and 1; turn 2 learns how it went.
pub(crate) fn edit(path: &Path, old: &str, new: &str) -> Script {
    Script::new()
        .turn([tool("Read", json!({"file_path": path, "limit": 20}))])
        .turn([tool("Edit", json!({"file_path": path, "old_string": old, "new_string": new}))])
}

/// The diff that the CLI asks for next, after the mark in the engine's events.
pub(crate) async fn diff(engine: &Engine, tui: &Tui, mark: usize, path: &Path) -> Result<String> {
    let path = path.to_str().context("a path that is not UTF-8")?;
    let opened = engine.event_after(mark, "diff_opened", PATIENCE, |event| event["path"] == path).await;
    let opened: Value = opened.map_err(|error| error.context(tui.framed()))?;
    Ok(opened["diff"].as_str().with_context(|| format!("no diff id in {opened}"))?.to_owned())
}

/// Waits until the engine has said how a diff ended.
pub(crate) async fn decision(engine: &Engine, diff: &str) -> Result<String> {
    let decided = engine.event_where("diff_decided", PATIENCE, |event| event["diff"] == diff).await?;
    Ok(decided["decision"].as_str().unwrap_or_default().to_owned())
}

/// Waits until the CLI's own question about the edit is on the screen.
pub(crate) async fn question(tui: &Tui) -> Result<()> {
    tui.wait_for_text(QUESTION, PATIENCE).await.map(drop)
}

/// Waits until the CLI's own question is gone.
pub(crate) async fn no_question(tui: &Tui) -> Result<()> {
    tui.wait_for_no_text(QUESTION, PATIENCE).await.map(drop)
}

/// Answers the CLI's own question with a key.
pub(crate) async fn answer(tui: &Tui, key: Key) -> Result<()> {
    question(tui).await?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        tui.press(key)?;
        if tui.wait_for_no_text(QUESTION, INSISTENCE).await.is_ok() {
            return Ok(());
        }
    }
    Err(tui.failure(&format!("the question does not take {key:?} for an answer")))
}

/// A file beside the workspace, so that it takes no part in it.
pub(crate) fn aside(stage: &Stage, name: &str, contents: &str) -> Result<PathBuf> {
    let path = stage.sandbox.home().join(name);
    std::fs::write(&path, contents)?;
    Ok(path)
}
