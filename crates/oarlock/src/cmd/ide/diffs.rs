//! `oarlock ide diffs`, `accept` and `reject`: deciding proposed changes.

use std::path::PathBuf;

use anyhow::Context as _;
use oarlock_ide::client::Client;
use oarlock_ide::paths::read_regular;
use serde_json::{Value, json};

use super::show;
use crate::output::{DIM, STRONG, json_line, say, visible};
use crate::review;
use crate::target::{self, Target};

/// List the diffs that wait for a decision
#[derive(clap::Args)]
pub(crate) struct DiffsArgs {
    /// Show the changes as well
    #[arg(short, long)]
    patch: bool,
    #[command(flatten)]
    target: Target,
}

impl DiffsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let client = self.target.connect().await?;
        let answer = client.request("oarlock/diffs", &json!({})).await?;
        if self.target.json {
            return json_line(&answer);
        }
        let diffs = answer["diffs"].as_array().cloned().unwrap_or_default();
        if diffs.is_empty() {
            return say!("no diff is waiting");
        }
        for diff in &diffs {
            let word = |name: &str| visible(diff[name].as_str().unwrap_or_default());
            let pid = diff["pid"].as_u64().map(|pid| format!("pid {pid}")).unwrap_or_default();
            say!("{STRONG}{}{STRONG:#}  {}  {DIM}{}  {pid}{DIM:#}", word("diff"), word("path"), word("tab"))?;
            if self.patch {
                let whole = client.request("oarlock/diff", &json!({ "tab": word("diff") })).await?;
                let old = read_regular(whole["oldPath"].as_str().unwrap_or_default().as_ref(), u64::MAX)
                    .unwrap_or_default();
                let new = whole["contents"].as_str().unwrap_or_default();
                say!("{}", review::render(&old, new))?;
            }
        }
        Ok(())
    }
}

/// Accept a proposed change
#[derive(clap::Args)]
pub(crate) struct AcceptArgs {
    /// The diff's number, its file's path, or its full name
    tab: String,
    /// Accept with the contents of this file instead of the proposal
    #[arg(long, value_name = "FILE")]
    contents: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl AcceptArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let contents = match &self.contents {
            Some(file) => Some(
                std::fs::read_to_string(file)
                    .with_context(|| format!("failed to read {}; nothing was accepted", file.display()))?,
            ),
            None => None,
        };
        let client = self.target.connect().await?;
        let answer = decide(&client, "oarlock/accept", &self.tab, contents).await;
        client.close().await;
        let answer = answer?;
        show(&self.target, &answer, "accepted")
    }
}

/// Reject a proposed change
#[derive(clap::Args)]
pub(crate) struct RejectArgs {
    /// The diff's number, its file's path, or its full name
    tab: String,
    #[command(flatten)]
    target: Target,
}

impl RejectArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let client = self.target.connect().await?;
        let answer = decide(&client, "oarlock/reject", &self.tab, None).await;
        client.close().await;
        let answer = answer?;
        show(&self.target, &answer, "rejected")
    }
}

async fn decide(client: &Client, method: &str, tab: &str, contents: Option<String>) -> anyhow::Result<Value> {
    let ask = |tab: String| {
        let params = json!({ "tab": tab, "contents": contents });
        async move { client.request(method, &params).await }
    };
    let answer = ask(tab.to_owned()).await;
    // A relative path means a file of this directory; the engine knows absolute ones.
    let absolute = std::path::absolute(tab).ok().filter(|path| path.as_os_str() != tab);
    let answer = match (answer, absolute) {
        (Err(_), Some(path)) if tab.parse::<u64>().is_err() => ask(path.display().to_string()).await,
        (answer, _) => answer,
    };
    answer.map_err(target::refused)
}
