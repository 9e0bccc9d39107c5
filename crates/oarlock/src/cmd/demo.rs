//! `oarlock demo`: what an IDE engine does, for someone with no account and no `claude`.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use oarlock_ide::client::{Client, Credential};
use oarlock_ide::headless::{HeadlessEditor, OnDiff};
use oarlock_ide::lock::LockFile;
use oarlock_ide::{Options, Server};
use serde_json::json;

use crate::exit::Failure;
use crate::output::{DIM, GOOD, STRONG, say};
use crate::review::TerminalReviewer;

use super::serve::stop_signal;

/// Show what the engine does, with a scripted client: no account and no Claude Code needed
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Accept the proposed change without asking
    #[arg(long)]
    yes: bool,
}

const FILE: &str = "greeting.py";
const BEFORE: &str = "def greet(name):\n    print(\"Hello, \" + nane)\n\n\ngreet(\"world\")\n";
const AFTER: &str = "def greet(name):\n    print(f\"Hello, {name}!\")\n\n\ngreet(\"world\")\n";

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.yes && !std::io::stdin().is_terminal() {
            return Err(Failure::usage("the demo asks a question, and there is no terminal; use --yes"));
        }
        super::block_on(self.play())
    }

    async fn play(self) -> anyhow::Result<()> {
        let stop = stop_signal()?;
        let home = tempfile::tempdir()?;
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace)?;
        let workspace = workspace.canonicalize()?;
        let file = workspace.join(FILE);
        std::fs::write(&file, BEFORE)?;

        step("1", &format!("An engine starts on {} and writes a lock file.", workspace.display()))?;
        let on_diff =
            if self.yes { OnDiff::Accept } else { OnDiff::Ask(Arc::new(TerminalReviewer::default())) };
        let options = Options {
            name: "Oarlock demo".into(),
            workspace: vec![workspace],
            // A place of its own, so that no real session finds the demo.
            lock_dir: Some(home.path().join("ide")),
            state_dir: Some(home.path().join("state")),
            ..Options::default()
        };
        let server = Server::start(Arc::new(HeadlessEditor::new(on_diff)), options).await?;
        detail(&server.lock_path().display().to_string())?;
        // Whichever way it ends, the lock file and the workspace go.
        let outcome = tokio::select! {
            outcome = converse(&server, &file) => outcome,
            () = stop => Err(Failure::Code(130).into()),
        };
        server.stop().await;
        outcome
    }
}

/// The part that Claude Code plays, over the real socket.
async fn converse(server: &Server, file: &Path) -> anyhow::Result<()> {
    step("2", "A client reads the lock file and connects with its token, as Claude Code does.")?;
    let lock = LockFile::parse(&std::fs::read(server.lock_path())?).context("the lock file is broken")?;
    let token = lock.auth_token.context("the lock file has no token")?;
    let mut client = Client::connect(server.socket(), Credential::Token(&token)).await?;
    client.initialize("oarlock-demo").await?;
    client.announce();
    let tools = client.request("tools/list", &json!({})).await?;
    detail(&format!("{} tools are offered", tools["tools"].as_array().map_or(0, Vec::len)))?;

    step("3", "The person selects a line in the editor; the client is told.")?;
    client
        .call("openFile", &json!({ "filePath": file, "startText": "    print", "selectToEndOfLine": true }))
        .await?;
    let told = tokio::time::timeout(Duration::from_secs(10), async {
        while let Some(notification) = client.notification().await {
            if notification.method == "selection_changed" {
                return Some(notification.params);
            }
        }
        None
    });
    let selection = told.await.ok().flatten().context("no selection came; please report this")?;
    detail(&format!("selection_changed: {}", selection["text"]))?;

    step("4", "A linter found a problem; the client asks for diagnostics.")?;
    let range = json!({ "start": { "line": 1, "character": 21 }, "end": { "line": 1, "character": 25 } });
    let problem =
        json!({ "message": "undefined name `nane`", "severity": "Error", "range": range, "source": "demo" });
    let uri = oarlock_ide::paths::file_uri(file);
    publish(server, &json!([{ "uri": uri, "diagnostics": [problem] }])).await?;
    let diagnostics = client.call("getDiagnostics", &json!({ "uri": uri })).await?;
    detail(diagnostics.text_at(0).unwrap_or_default())?;

    step("5", "The client proposes a change, and you decide. Nothing is written before you say yes.")?;
    let proposal = json!({
        "old_file_path": file, "new_file_path": file, "new_file_contents": AFTER, "tab_name": "demo: greeting.py",
    });
    let answer = client.call("openDiff", &proposal).await?;
    match (answer.text_at(0), answer.text_at(1)) {
        (Some("FILE_SAVED"), Some(contents)) => {
            std::fs::write(file, contents)?;
            detail("FILE_SAVED: the client writes what was accepted")?;
            say!("\n{contents}")?;
            say!(
                "{GOOD}That is all of it.{GOOD:#} Now for real: {STRONG}oarlock serve{STRONG:#} in a project of yours."
            )
        }
        (Some("DIFF_REJECTED"), _) => {
            detail("DIFF_REJECTED: the file stays as it was")?;
            Err(Failure::refused("the change was rejected"))
        }
        _ => anyhow::bail!("the diff was not decided: {}", answer.text_at(0).unwrap_or("no answer")),
    }
}

async fn publish(server: &Server, files: &serde_json::Value) -> anyhow::Result<()> {
    let control = server.control_token();
    let commands = Client::connect(server.socket(), Credential::Control(control)).await?;
    let published = commands.request("oarlock/publishDiagnostics", &json!({ "files": files })).await;
    commands.close().await;
    published?;
    Ok(())
}

fn step(number: &str, text: &str) -> anyhow::Result<()> {
    say!("\n{STRONG}{number}{STRONG:#}  {text}")
}

fn detail(text: &str) -> anyhow::Result<()> {
    say!("   {DIM}{text}{DIM:#}")
}
