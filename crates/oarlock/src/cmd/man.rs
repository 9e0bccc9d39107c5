//! `oarlock man`: manual pages.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

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
            let mut whole = crate::Cli::command().disable_help_subcommand(true);
            whole.build();
            pages(&whole, &self.dir)
        };
        write().with_context(|| format!("failed to write manual pages into {}", self.dir.display()))
    }
}

/// The page of a command, and those of its subcommands.
fn pages(command: &clap::Command, dir: &Path) -> std::io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        pages(command, dir)?;
    }
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(dir.join(man.get_filename()), in_sections(&String::from_utf8_lossy(&page)))
}

/// What stands below the help becomes the sections that manual pages have for it.
fn in_sections(page: &str) -> String {
    let Some((before, rest)) = page.split_once(".SH EXTRA\n") else { return page.to_owned() };
    let (extra, after) = rest.find("\n.SH ").map_or((rest, ""), |end| rest.split_at(end + 1));
    let starts_section = extra.starts_with("Exit codes:");
    let mut sections = if starts_section { String::new() } else { ".SH NOTES\n.nf\n".to_owned() };
    for line in extra.lines() {
        match line {
            "Exit codes:" => sections.push_str(".SH \"EXIT STATUS\"\n.nf\n"),
            "Examples:" => sections.push_str(".fi\n.SH EXAMPLES\n.nf\n"),
            line => {
                sections.push_str(line);
                sections.push('\n');
            }
        }
    }
    format!("{before}{sections}.fi\n{after}")
}
