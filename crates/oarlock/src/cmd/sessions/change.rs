//! `oarlock sessions rename`, `tag`, `fork` and `delete`.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use oarlock_agent::history::{Fork, Library, Transcript};
use serde_json::json;

use super::{Which, age, find, one_line, short, size};
use crate::exit::Failure;
use crate::output::{DIM, STRONG, json_line, say, visible};

/// Give a session a title
#[derive(clap::Args)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    which: Which,
    /// The title
    title: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl RenameArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let library = Library::new()?;
        let session = self.which.find(&library)?;
        library.rename(&session, &self.title)?;
        if self.json {
            return json_line(
                &json!({ "session": session.id(), "title": session.summary().map(|now| now.title) }),
            );
        }
        say!("renamed {} to {STRONG}{}{STRONG:#}", short(session.id()), title(&session))
    }
}

/// Give a session a tag, or take it away
#[derive(clap::Args)]
pub(crate) struct TagArgs {
    #[command(flatten)]
    which: Which,
    /// The tag; without one, the session has none any more
    tag: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl TagArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let library = Library::new()?;
        let session = self.which.find(&library)?;
        library.tag(&session, self.tag.as_deref())?;
        let tag = session.summary().and_then(|now| now.tag);
        if self.json {
            return json_line(&json!({ "session": session.id(), "tag": tag }));
        }
        match tag {
            Some(tag) => say!("tagged {} {DIM}#{}{DIM:#}", short(session.id()), one_line(&tag)),
            None => say!("{} has no tag", short(session.id())),
        }
    }
}

/// Copy a session into a new one that goes its own way
///
/// `claude --resume ID` goes on with the copy; the original stays as it is.
#[derive(clap::Args)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    which: Which,
    /// The last message of the copy: its id, or the beginning of it (`show --json` and `search` tell)
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,
    /// The title of the copy; otherwise the old one with `(fork)`
    #[arg(long)]
    title: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ForkArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let library = Library::new()?;
        let session = self.which.find(&library)?;
        let mut fork = Fork::new();
        if let Some(at) = &self.at {
            fork = fork.at(message(&session, at)?);
        }
        if let Some(title) = self.title {
            fork = fork.title(title);
        }
        let copy = library.fork(&session, &fork)?;
        if self.json {
            return json_line(&json!({ "session": copy.id(), "path": copy.path(), "from": session.id() }));
        }
        say!("{}\n{DIM}{}; go on with: claude --resume {}{DIM:#}", copy.id(), title(&copy), copy.id())
    }
}

/// The whole id of a message.
fn message(session: &Transcript, beginning: &str) -> anyhow::Result<String> {
    if beginning.len() >= 36 {
        return Ok(beginning.to_owned());
    }
    let mut found = Vec::new();
    for record in session.messages()? {
        let uuid = record?.uuid;
        if uuid.starts_with(beginning) {
            found.push(uuid);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            Err(Failure::not_found(format!("no message of the session begins with `{}`", visible(beginning))))
        }
        _ => Err(Failure::not_found(format!(
            "{} messages of the session begin with `{}`; give more of the id",
            found.len(),
            visible(beginning)
        ))),
    }
}

/// Delete sessions for good, with what their subagents did
#[derive(clap::Args)]
pub(crate) struct DeleteArgs {
    /// Ids, beginnings of ids, or titles
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    /// The directory whose sessions are meant; otherwise this one, and for an id any
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Also one that a running `claude` has open
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl DeleteArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let library = Library::new()?;
        // All of them are found before the first is deleted.
        let sessions: Vec<Transcript> = self
            .sessions
            .iter()
            .map(|name| find(&library, Some(name), self.project.as_deref()))
            .collect::<anyhow::Result<_>>()?;
        if !self.yes {
            ask(&sessions)?;
        }
        let mut deleted = Vec::new();
        for session in &sessions {
            library.delete(session, self.force)?;
            deleted.push(session.id());
            if !self.json {
                say!("deleted {}", session.id())?;
            }
        }
        if self.json { json_line(&json!({ "deleted": deleted })) } else { Ok(()) }
    }
}

/// Only a plain yes will do.
fn ask(sessions: &[Transcript]) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("deleting cannot be undone, and there is nobody to ask; say --yes"));
    }
    for session in sessions {
        let about = session.summary().map(|now| format!("{}, {}", size(now.size), age(now.modified)));
        anstream::eprintln!(
            "  {}  {STRONG}{}{STRONG:#}  {DIM}{}{DIM:#}",
            short(session.id()),
            title(session),
            about.unwrap_or_default()
        );
    }
    let what = if sessions.len() == 1 {
        "this session".to_owned()
    } else {
        format!("these {} sessions", sessions.len())
    };
    // What was typed before the question was not meant for it.
    #[cfg(unix)]
    rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    anstream::eprint!("Delete {what} for good? (y/N) ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    // Half a line is no answer.
    let answer = answer.strip_suffix('\n').unwrap_or_default().trim().to_ascii_lowercase();
    match answer.as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::refused("nothing was deleted")),
    }
}

fn title(session: &Transcript) -> String {
    session.summary().map(|now| one_line(&now.title)).unwrap_or_default()
}
