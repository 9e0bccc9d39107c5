//! The CLI's own transcripts: list, read, search, export, change.
//!
//! `claude` keeps each session in a file of JSON lines below its configuration directory:
//! `projects/FOLDER/SESSION.jsonl`, and what its subagents did in `projects/FOLDER/SESSION/subagents`. A [`Library`] is
//! such a directory.
//!
//! ```no_run
//! use oarlock_agent::history::{Filter, Library};
//!
//! let library = Library::new()?;
//! for session in library.list(&Filter::project("."))?.take(10) {
//!     println!("{}  {}", session.id, session.title);
//! }
//! let transcript = library.open("1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b", Some(".".as_ref()))?;
//! for record in transcript.messages()? {
//!     println!("{}", record?.text());
//! }
//! # Ok::<(), oarlock_agent::Error>(())
//! ```
//!
//! # Only what is needed is read
//! - Listing sorts by the times of the files and reads 64 KiB at either end of a transcript when its turn comes.
//! - Reading goes through the file once to learn how the records hang together, keeping 100 bytes or so for each, and
//!   then fetches one record after the other.
//! - Searching goes through the file once.
//!
//! All of it is plain blocking file work. In async code, call it in `tokio::task::spawn_blocking`.
//!
//! # What is safe beside a running `claude`
//! Reading, renaming, tagging and forking. Deleting a session that is open is refused unless it is forced. Nothing is
//! read or written through a link that leads out of the projects directory.
//!
//! # What is never shown
//! Newer versions of the CLI write down what was sent to the API, system prompts included (`api-request…`). These
//! records, and the context that the CLI adds by itself (`attachment`), are no part of a conversation and leave this
//! module by no way but [`fork`](Library::fork), which copies attachments because the model has seen them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::Error;

mod chain;
mod change;
mod export;
mod fields;
mod fork;
mod lines;
mod list;
mod live;
mod markdown;
mod project;
mod record;
pub(crate) mod scan;
mod search;
mod summary;
mod time;
mod transcript;
mod view;

pub use export::{Export, Format};
pub use fork::Fork;
pub use list::{Filter, Sessions};
pub use live::Live;
pub use project::{Project, folder_name};
pub use record::Record;
pub use search::{Hit, Hits, Part, Search};
pub use summary::{Digest, Summary};
pub use transcript::{Messages, Reading, Subagent, Transcript};
pub use view::{Call, Outcome, Piece, View, headline};

pub(crate) use change::plain;
pub(crate) use fields::Fields;
pub(crate) use lines::{Lines, failed};
pub(crate) use scan::{Name, Scan};
pub(crate) use summary::digest;
pub(crate) use time::format as format_time;
#[cfg(feature = "sqlite")]
pub(crate) use time::{from_millis, millis};

/// A configuration directory of the CLI's, with the transcripts in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    config_dir: PathBuf,
}

impl Library {
    /// The directory that `claude` uses in this environment: `CLAUDE_CONFIG_DIR`, or else `.claude` in the home
    /// directory.
    ///
    /// # Errors
    /// When there is neither.
    pub fn new() -> Result<Self, Error> {
        let given = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        match given.or_else(|| home().map(|home| home.join(".claude"))) {
            Some(config_dir) => Ok(Self { config_dir }),
            None => Err(Error::Io {
                action: "find the directory of Claude Code".into(),
                source: std::io::Error::new(
                    std::io::ErrorKind::NotFound,
                    "there is no home directory; set HOME or CLAUDE_CONFIG_DIR",
                ),
            }),
        }
    }

    /// Another configuration directory.
    #[must_use]
    pub fn at(config_dir: impl Into<PathBuf>) -> Self {
        Self { config_dir: config_dir.into() }
    }

    /// The configuration directory.
    #[must_use]
    pub fn config_dir(&self) -> &Path {
        &self.config_dir
    }

    /// Where the folders of all projects are.
    #[must_use]
    pub fn projects_dir(&self) -> PathBuf {
        self.config_dir.join("projects")
    }

    /// Is there a session of this id in the project of a directory (or one of its work trees)?
    ///
    /// Worth a look before `claude` is started to resume it: older versions resume only what belongs to the directory
    /// they are started in, and say so only by ending.
    #[must_use]
    pub fn exists(&self, id: &str, cwd: &Path) -> bool {
        self.find(id, Some(cwd)).is_ok_and(|path| path.is_some())
    }

    /// The transcript of a session: in the project of a directory and its work trees, or in all projects.
    ///
    /// # Errors
    /// When `id` is no session id, or the directory cannot be read.
    pub fn find(&self, id: &str, cwd: Option<&Path>) -> Result<Option<PathBuf>, Error> {
        let file = format!("{}.jsonl", check_id(id)?);
        let guard = list::Guard::new(self)?;
        let filter = cwd.map_or_else(Filter::default, |cwd| Filter::project(cwd).worktrees(true));
        for folder in list::folders(self, &filter)? {
            let path = folder.join(&file);
            // A file with nothing in it is no session: the real one may be in another folder.
            if guard.admits(&path) && path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Opens a session: one of the project of a directory and its work trees, or of any project.
    ///
    /// # Errors
    /// [`Error::NoSession`] when there is none.
    pub fn open(&self, id: &str, cwd: Option<&Path>) -> Result<Transcript, Error> {
        match self.find(id, cwd)? {
            Some(path) => Ok(Transcript::new(id, path)),
            None => Err(no_session(id, cwd)),
        }
    }

    /// The session that was written to last in the project of a directory: what `--continue` takes.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn latest(&self, cwd: &Path) -> Result<Option<Summary>, Error> {
        Ok(self.list(&Filter::project(cwd))?.next())
    }

    /// The session that somebody means by its id, the beginning of its id, or its title (letters of either case).
    ///
    /// # Errors
    /// [`Error::NoSession`] when nothing fits, [`Error::SeveralSessions`] when more than one does.
    pub fn resolve(&self, name: &str, cwd: Option<&Path>) -> Result<Transcript, Error> {
        if check_id(name).is_ok() {
            return self.open(name, cwd);
        }
        let filter = cwd.map_or_else(Filter::default, |cwd| Filter::project(cwd).worktrees(true));
        let mut found = Vec::new();
        if name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
            let name = name.to_ascii_lowercase();
            found.extend(list::candidates(self, &filter)?.into_iter().filter_map(|candidate| {
                let fits = candidate.id.to_ascii_lowercase().starts_with(&name);
                fits.then_some((candidate.id, candidate.path))
            }));
        }
        if found.is_empty() {
            let name = name.trim().to_lowercase();
            let titled = |summary: &Summary| {
                summary.custom_title.as_ref().is_some_and(|title| title.to_lowercase() == name)
            };
            found.extend(self.list(&filter)?.filter(titled).map(|summary| (summary.id, summary.path)));
        }
        let mut seen = HashSet::new();
        found.retain(|(id, _)| seen.insert(id.clone()));
        match found.len() {
            0 => Err(no_session(name, cwd)),
            1 => {
                let (id, path) = found.remove(0);
                Ok(Transcript::new(&id, path))
            }
            _ => Err(Error::SeveralSessions {
                name: name.into(),
                ids: found.into_iter().take(5).map(|(id, _)| id).collect(),
            }),
        }
    }
}

/// Is there a session of this id in the project of a directory, in this environment? See [`Library::exists`].
#[must_use]
pub fn exists(id: &str, cwd: impl AsRef<Path>) -> bool {
    Library::new().is_ok_and(|library| library.exists(id, cwd.as_ref()))
}

/// Session ids become file names, so nothing but a UUID will do.
pub(crate) fn check_id(id: &str) -> Result<&str, Error> {
    let is_uuid = id.len() == 36 && uuid::Uuid::try_parse(id).is_ok();
    if is_uuid { Ok(id) } else { Err(Error::NoSessionId { id: id.chars().take(80).collect() }) }
}

fn no_session(name: &str, cwd: Option<&Path>) -> Error {
    let place = match cwd {
        Some(cwd) => format!("of {}", Project::of(cwd).path().display()),
        None => "of any project".into(),
    };
    Error::NoSession { name: name.chars().take(80).collect(), place }
}
