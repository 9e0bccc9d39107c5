//! `oarlock ide list`.

/// List the IDEs that Claude Code can find, and say which it would take
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Ok(())
    }
}
