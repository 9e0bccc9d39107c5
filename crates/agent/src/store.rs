//! Where transcripts can be kept besides the CLI's own files.
//!
//! `claude` always writes its transcripts to disk. With `--session-mirror` it also reports each record that it writes
//! ([`TranscriptMirror`](crate::stream::TranscriptMirror) frames), and a [`Mirror`] hands those on to a [`Store`]: a
//! database, another machine, a test. From there a session can be brought back with [`materialise`] and resumed.
//!
//! | store | keeps transcripts |
//! |---|---|
//! | [`MemoryStore`] | until the program ends |
//! | [`FileStore`] | in a directory, laid out as the CLI's own |
//! | `SqliteStore` (feature `sqlite`) | in one SQLite file |
//!
//! For any other place, implement [`Store`] and let [`conformance`] check it:
//!
//! ```
//! # async fn check() {
//! use oarlock_agent::store::{MemoryStore, conformance};
//!
//! conformance::check(async || MemoryStore::new()).await.assert();
//! # }
//! ```
//!
//! Reading from a store is reading files: [`open`] brings a session into temporary ones, and all that
//! [`history`](crate::history) can do with a transcript is there.

use std::path::Path;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::history::{Digest, Summary};
use crate::stream::Json;

mod change;
pub mod conformance;
mod file;
mod memory;
mod mirror;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transfer;

pub use change::{Opened, fork, open, rename, tag};
pub use file::FileStore;
pub use memory::MemoryStore;
pub use mirror::{Lost, Mirror, Pace};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use transfer::{Existing, import, materialise};

/// What a transcript is kept under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The project: [`Project::name`](crate::history::Project::name).
    pub project: String,
    /// The session.
    pub session: String,
    /// What belongs to a session besides its main transcript: `subagents/agent-…`. Never empty.
    pub subpath: Option<String>,
}

impl Key {
    /// The main transcript of a session.
    pub fn new(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into(), subpath: None }
    }

    /// Something else of the same session.
    #[must_use]
    pub fn sub(&self, subpath: impl Into<String>) -> Self {
        Self { subpath: Some(subpath.into()), ..self.clone() }
    }

    /// The main transcript of the same session.
    #[must_use]
    pub fn main(&self) -> Self {
        Self { subpath: None, ..self.clone() }
    }

    /// The key of one of the CLI's files; `None` when the file is not below the directory of the projects, or is no
    /// transcript.
    #[must_use]
    pub fn of_file(file: &Path, projects_dir: &Path) -> Option<Self> {
        let relative = file.strip_prefix(projects_dir).ok()?;
        let mut parts: Vec<&str> = relative.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        let name = parts.pop()?.strip_suffix(".jsonl")?;
        let key = match parts.as_slice() {
            [project] => Self::new(*project, name),
            [project, session, rest @ ..] if !rest.is_empty() => {
                Self::new(*project, *session).sub(format!("{}/{name}", rest.join("/")))
            }
            _ => return None,
        };
        key.check().ok().map(|()| key)
    }

    /// Keys may become paths, so none of their parts may lead elsewhere.
    ///
    /// # Errors
    /// When a part is empty, is `.` or `..`, or has a separator, a drive or a control character in it.
    pub fn check(&self) -> Result<(), Error> {
        let parts = [self.project.as_str(), &self.session].into_iter();
        let is_safe = parts.chain(self.subpath.iter().flat_map(|path| path.split('/'))).all(is_safe);
        if is_safe { Ok(()) } else { Err(failed("use a key", format!("{self:?} is no path"))) }
    }
}

fn is_safe(part: &str) -> bool {
    let odd = |character: char| matches!(character, '/' | '\\' | ':') || character.is_control();
    !matches!(part, "" | "." | "..") && part.len() <= 240 && !part.contains(odd)
}

/// Some records of a transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The records, in their order.
    pub entries: Vec<Json>,
    /// Where to go on; `None` after the last.
    pub next: Option<u64>,
}

/// A session that a store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub session: String,
    /// When something was last stored for it, by the store's clock.
    pub modified: SystemTime,
}

/// A session and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Digested {
    /// The session.
    pub session: String,
    /// When something was last stored for it, by the same clock as [`Listed::modified`].
    pub modified: SystemTime,
    /// The fold over all records of its main transcript.
    pub digest: Digest,
}

/// A place for transcripts.
///
/// # The contract
/// [`conformance`] checks all of it.
///
/// - A transcript is a list of records (JSON objects). A store does not look into them, but for `uuid`.
/// - `append` adds at the end. When it returns, the records are stored. Records of one call stay together and in order;
///   calls one after the other stay in order.
/// - A record whose `uuid` the transcript has already is ignored: a mirror that tries again, and an import that is run
///   twice, add nothing. Records without a `uuid` are always added.
/// - `append` of no records does nothing. It makes no transcript.
/// - `load` gives back values that are equal to what was appended. The text may differ (order of fields, blanks).
/// - Transcripts do not touch each other: not those of other projects, of other sessions, or of other subpaths, whatever
///   their names look like.
/// - `delete` of a main transcript deletes everything of the session; of a subpath, only that. Deleting what is not there
///   is no error.
/// - Several calls may be open at once, from several tasks.
/// - An error is returned, not panicked, and leaves the store usable.
///
/// The futures must do their work without blocking the thread.
pub trait Store: Send + Sync + 'static {
    /// Adds records at the end of a transcript.
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>>;

    /// Loads a transcript piece by piece: first from 0, then from where the piece before says. `None` when there is no
    /// such transcript.
    ///
    /// A store chooses how much a piece is; a few hundred records, or about a megabyte, keep everybody's memory small.
    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>>;

    /// The sessions of a project that have a main transcript, in any order.
    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>>;

    /// The subpaths of a session, in any order. The key's own subpath does not matter.
    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Deletes a transcript.
    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>>;

    /// The sessions of a project with what they are about, for stores that keep a [`Digest`] beside each main
    /// transcript. `None` from a store that does not: then listing loads every session.
    fn list_digests<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Option<Vec<Digested>>, Error>> {
        let _ = project;
        Box::pin(async { Ok(None) })
    }
}

/// Loads a whole transcript.
///
/// # Errors
/// The store's.
pub async fn load_all(store: &dyn Store, key: &Key) -> Result<Option<Vec<Json>>, Error> {
    let mut entries = Vec::new();
    let mut from = 0;
    loop {
        match store.load(key, from).await? {
            Some(batch) => {
                entries.extend(batch.entries);
                let Some(next) = batch.next else { return Ok(Some(entries)) };
                from = next;
            }
            None => return Ok((from > 0).then_some(entries)),
        }
    }
}

/// The sessions of a project, the last written first, as [`Library::list`](crate::history::Library::list) lists files.
///
/// # Errors
/// The store's.
pub async fn list(store: &dyn Store, project: &str) -> Result<Vec<Summary>, Error> {
    let digested = match store.list_digests(project).await? {
        Some(digested) => digested,
        None => {
            let mut digested = Vec::new();
            for Listed { session, modified } in store.list_sessions(project).await? {
                let digest = digest(store, &Key::new(project, session.as_str())).await?;
                digested.push(Digested { session, modified, digest });
            }
            digested
        }
    };
    let summary = |entry: Digested| entry.digest.summary(&entry.session, project, entry.modified);
    let mut summaries: Vec<Summary> = digested.into_iter().filter_map(summary).collect();
    summaries.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
    Ok(summaries)
}

/// What a session is about, from its records.
async fn digest(store: &dyn Store, key: &Key) -> Result<Digest, Error> {
    let mut digest = Digest::default();
    let mut from = Some(0);
    while let Some(at) = from {
        let batch = store.load(key, at).await?.unwrap_or_default();
        batch.entries.iter().for_each(|entry| digest.add(entry));
        from = batch.next;
    }
    Ok(digest)
}

/// The `uuid` of a record.
fn uuid_of(entry: &Json) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        uuid: Option<String>,
    }

    entry.read::<Named>().ok()?.uuid.filter(|uuid| !uuid.is_empty())
}

/// The error of a store.
fn failed(action: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Store { action: action.into(), source: source.into() }
}

/// Runs what blocks on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(failed("finish its work", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_keys_and_only_transcripts_do() {
        let of = |file: &str| Key::of_file(Path::new(file), Path::new("/c/projects"));
        let main = Key::new("-w", "s");
        assert_eq!(of("/c/projects/-w/s.jsonl"), Some(main.clone()));
        assert_eq!(of("/c/projects/-w/s/subagents/agent-1.jsonl"), Some(main.sub("subagents/agent-1")));
        assert_eq!(
            of("/c/projects/-w/s/subagents/workflows/r/agent-1.jsonl"),
            Some(main.sub("subagents/workflows/r/agent-1"))
        );
        for none in [
            "/c/projects/s.jsonl",
            "/c/projects/-w/s.txt",
            "/c/projects/-w/s/x.jsonl",
            "/elsewhere/projects/-w/s.jsonl",
            "/c/projects/../-w/s.jsonl",
            "/c/projects/-w/.jsonl",
            "s.jsonl",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn keys_that_lead_elsewhere_are_refused() {
        assert!(Key::new("p", "s").sub("subagents/agent-1").check().is_ok());
        for wrong in ["", ".", "..", "a/../b", "/a", "a/", "a//b", "a\\b", "C:x", "a\0b", "a\nb"] {
            assert!(Key::new("p", "s").sub(wrong).check().is_err(), "{wrong:?}");
            assert!(Key::new(wrong, "s").check().is_err(), "{wrong:?}");
        }
        assert!(Key::new("p/q", "s").check().is_err());
    }
}
