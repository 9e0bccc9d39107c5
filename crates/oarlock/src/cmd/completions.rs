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
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "oarlock", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
