//! `oarlock ide config`: how other MCP clients reach the engine.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use oarlock_ide::discover::Environment;
use oarlock_ide::state::{self, Running};
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
            "url": format!("ws://{}", engine.socket()),
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

/// Among the engines' records, where only the user can enter; temporary files are made with mode 0600. Files of engines that
/// are gone are removed.
fn write(engine: &Running, text: &str) -> anyhow::Result<PathBuf> {
    let engines = state::engines_dir(&Environment::from_process())?;
    let dir = engines.join("mcp");
    std::fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
    let name = |port: u16| dir.join(format!("{port}.json"));
    let live: Vec<PathBuf> = target::running()?.iter().map(|engine| name(engine.port)).collect();
    for entry in std::fs::read_dir(&dir)?.flatten() {
        let is_ours = entry.path().extension().is_some_and(|extension| extension == "json");
        if is_ours && !live.contains(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let mut file = tempfile::NamedTempFile::new_in(&dir)?;
    file.write_all(text.as_bytes())?;
    let path = name(engine.port);
    file.persist(&path).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(path)
}
