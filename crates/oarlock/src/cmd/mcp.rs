//! `oarlock mcp`: the tools as a stdio MCP server.

use std::sync::Arc;

use oarlock_ide::client::{Credential, dial};
use oarlock_ide::headless::{HeadlessEditor, OnDiff};
use oarlock_ide::{Options, server};
use oarlock_wire::frame::Lines;

use crate::config::Config;
use crate::target;

/// Serve the tools on stdin and stdout, for MCP clients that start their servers
///
/// Passes on to the engine of this directory; without one, a headless editor serves the directory by itself.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The engine's port; otherwise the engine of this directory
    #[arg(long, value_name = "PORT")]
    engine: Option<u16>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        super::block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let cwd = std::env::current_dir()?;
        let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
        match target::choose(target::running()?, &cwd, self.engine) {
            Ok(Some(engine)) => {
                let token = target::token(&engine)?;
                let frames = dial(engine.socket(), Credential::Token(&token)).await?;
                let lines = Lines::new(stdin, stdout, Options::default().limits.message);
                Ok(oarlock_wire::relay(lines, frames).await?)
            }
            Err(error) if self.engine.is_some() => Err(error),
            // An engine of some other directory is no engine for this one.
            Ok(None) | Err(_) => {
                let config = Config::load(std::slice::from_ref(&cwd))?;
                // No other command can find this engine, so there is nobody to ask.
                let on_diff = match config.on_diff_without_terminal() {
                    OnDiff::Wait => {
                        OnDiff::Nobody("nobody can be asked here; set ide.on_diff, or start `oarlock serve`")
                    }
                    decided => decided,
                };
                let editor = HeadlessEditor::new(on_diff).with_formatter(config.ide_formatter.value.clone());
                server::serve_lines(Arc::new(editor), config.options(vec![cwd])?, stdin, stdout).await?;
                Ok(())
            }
        }
    }
}
