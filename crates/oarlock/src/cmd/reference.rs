//! `oarlock reference`: the tables of PROTOCOL.md that are made from code.

use oarlock_ide::{tools, vault};
use oarlock_proto::ide::Dialect;

use crate::output::say;

/// Print the reference tables of PROTOCOL.md
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        say!("| tool | for | `vscode` (default), `vault` | `jetbrains` |\n|---|---|---|---|")?;
        for tool in tools::TABLE {
            let whom = if tool.for_clis { "Claude Code sessions" } else { "every client" };
            let (vscode, jetbrains) = ((tool.replies)(Dialect::Vscode), (tool.replies)(Dialect::Jetbrains));
            let jetbrains = if jetbrains == vscode { "the same" } else { jetbrains };
            say!("| `{}` | {whom} | {vscode} | {jetbrains} |", tool.name)?;
        }
        say!("\nMethods that exist only in the dialect `vault`:\n\n| method | answers |\n|---|---|")?;
        for (name, answer) in vault::METHODS {
            say!("| `{name}` | {answer} |")?;
        }
        Ok(())
    }
}
