//! `oarlock sessions`: what Claude Code has written down.

mod change;
mod export;
mod list;
mod pager;
mod search;
mod show;

use std::path::{Path, PathBuf};

use oarlock_agent::Error;
use oarlock_agent::history::{Filter, Library, Transcript};

use crate::exit::Failure;
use crate::output::visible;

/// List, read, search and change the sessions of Claude Code
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Show(show::Args),
    Search(search::Args),
    Export(export::Args),
    Rename(change::RenameArgs),
    Tag(change::TagArgs),
    Fork(change::ForkArgs),
    Delete(change::DeleteArgs),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List(args) => args.run(),
            Self::Show(args) => args.run(),
            Self::Search(args) => args.run(),
            Self::Export(args) => args.run(),
            Self::Rename(args) => args.run(),
            Self::Tag(args) => args.run(),
            Self::Fork(args) => args.run(),
            Self::Delete(args) => args.run(),
        }
        .map_err(explain)
    }
}

/// Whose sessions.
#[derive(clap::Args)]
struct Scope {
    /// The directory whose sessions are meant, with the other work trees of its repository; otherwise this one
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    project: Option<PathBuf>,
    /// The sessions of all projects
    #[arg(short, long)]
    all: bool,
}

impl Scope {
    fn cwd(&self) -> anyhow::Result<Option<PathBuf>> {
        Ok(match (&self.project, self.all) {
            (_, true) => None,
            (Some(dir), _) => Some(dir.clone()),
            (None, _) => Some(std::env::current_dir()?),
        })
    }

    fn filter(&self) -> anyhow::Result<Filter> {
        Ok(self.cwd()?.map_or_else(Filter::default, |cwd| Filter::project(cwd).worktrees(true)))
    }
}

/// Which session.
#[derive(clap::Args)]
struct Which {
    /// The session's id, the beginning of it, or its title
    #[arg(value_name = "SESSION")]
    session: String,
    /// The directory whose session is meant; otherwise this one, and for an id any
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl Which {
    fn find(&self, library: &Library) -> anyhow::Result<Transcript> {
        find(library, Some(&self.session), self.project.as_deref())
    }
}

/// Which session, or the last one.
#[derive(clap::Args)]
struct WhichOrLast {
    /// The session's id, the beginning of it, or its title; otherwise the last one of this directory
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// The directory whose session is meant; otherwise this one, and for an id any
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl WhichOrLast {
    fn find(&self, library: &Library) -> anyhow::Result<Transcript> {
        find(library, self.session.as_deref(), self.project.as_deref())
    }
}

fn find(library: &Library, name: Option<&str>, project: Option<&Path>) -> anyhow::Result<Transcript> {
    let cwd = match project {
        Some(project) => project.to_owned(),
        None => std::env::current_dir()?,
    };
    let Some(name) = name else {
        let latest = library.latest(&cwd)?.ok_or_else(|| Failure::not_found(nothing(Some(&cwd))))?;
        return Ok(library.open(&latest.id, Some(&cwd))?);
    };
    match library.resolve(name, Some(&cwd)) {
        // An id means one session, wherever it is; a title could mean another project's by accident.
        Err(Error::NoSession { .. }) if project.is_none() && looks_like_id(name) => {
            Ok(library.resolve(name, None)?)
        }
        outcome => Ok(outcome?),
    }
}

fn looks_like_id(name: &str) -> bool {
    name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// What to say when there are no sessions.
fn nothing(cwd: Option<&Path>) -> String {
    match cwd {
        Some(cwd) => {
            let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned());
            let cwd = visible(&cwd.display().to_string());
            format!("no sessions of {cwd}; `oarlock sessions list --all` lists those of all projects")
        }
        None => "no sessions; `claude` makes them, below its configuration directory".to_owned(),
    }
}

/// Gives an error the exit code that it deserves.
fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        Some(Error::NoSession { .. }) => Failure::not_found(format!("{error}, with `oarlock sessions list`")),
        Some(Error::SeveralSessions { .. } | Error::NoMessage { .. } | Error::NoMessages { .. }) => {
            Failure::not_found(error)
        }
        Some(Error::SessionOpen { .. }) => Failure::refused(format!("{error} (--force)")),
        Some(Error::Outside { .. }) => Failure::refused(error),
        Some(Error::Blank { .. }) => Failure::usage(error),
        _ => error,
    }
}

/// The first characters of an id, which name it nearly always.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// How long ago something was.
fn age(time: std::time::SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..1_209_600 => format!("{} d", seconds / 86_400),
        1_209_600..31_536_000 => format!("{} w", seconds / 604_800),
        _ => format!("{} y", seconds / 31_536_000),
    }
}

/// A size as people say it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Text in one line.
fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn ages_and_sizes_are_short() {
        let ago = |seconds| age(SystemTime::now() - Duration::from_secs(seconds));
        assert_eq!(
            [ago(5), ago(150), ago(7300), ago(90_000), ago(3_000_000)],
            ["now", "2 min", "2 h", "1 d", "4 w"]
        );
        assert_eq!(age(SystemTime::now() + Duration::from_secs(100)), "now");
        assert_eq!(
            [size(5), size(5_500), size(5_550_000), size(1 << 30)],
            ["5 B", "5 kB", "5.5 MB", "1.1 GB"]
        );
    }

    #[test]
    fn words_are_no_ids() {
        assert!(looks_like_id("deadbeef") && looks_like_id("1234-"));
        assert!(!looks_like_id("fix") && !looks_like_id("my title") && !looks_like_id("abc"));
    }
}
