//! `oarlock ide config`: how other MCP clients reach the engine.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use oarlock_ide::state::Running;
use serde_json::json;

use crate::output::{json_line, say};
use crate::target::{self, Target};

/// Write an MCP configuration for `claude -p --mcp-config` and other MCP clients, and print its path
///
/// `claude -p` never connects to an IDE by itself; with this file it reaches the tools that make sense for it. The file
/// holds the engine's token, so only you can read it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the configuration instead of writing a file
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    target: Target,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let engine = self.target.find()?;
        let token = target::token(&engine)?;
        let config = json!({ "mcpServers": { "oarlock": {
            "type": "ws",
            "url": format!("ws://127.0.0.1:{}", engine.port),
            "headers": { "X-Claude-Code-Ide-Authorization": token.reveal() },
        }}});
        let text = serde_json::to_string_pretty(&config)?;
        if self.print {
            return say!("{text}");
        }
        let path = write(&engine, &text)?;
        if self.target.json { json_line(&json!({ "path": path })) } else { say!("{}", path.display()) }
    }
}

/// Beside the lock file, in a directory that only the user can enter; temporary files are made with mode 0600.
fn write(engine: &Running, text: &str) -> anyhow::Result<PathBuf> {
    let dir = engine.lock.parent().context("the lock file has no directory")?;
    let path = dir.join(format!("oarlock-{}.mcp.json", engine.port));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.persist(&path).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(path)
}
