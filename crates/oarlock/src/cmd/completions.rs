//! `oarlock completions`: completions for a shell.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

/// Print completions for a shell
///
/// For example `oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut visible(), "oarlock", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}

/// The program as its help shows it; hidden commands are nothing to complete.
fn visible() -> clap::Command {
    let whole = crate::Cli::command();
    clap::Command::new("oarlock")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(whole.get_arguments())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()))
}
