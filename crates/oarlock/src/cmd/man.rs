//! `oarlock man`: manual pages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;

/// Write manual pages into a directory, one for each command
///
/// For example `oarlock man ~/.local/share/man/man1`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let write = || {
            std::fs::create_dir_all(&self.dir)?;
            clap_mangen::generate_to(crate::Cli::command(), &self.dir)
        };
        write().with_context(|| format!("failed to write manual pages into {}", self.dir.display()))
    }
}
