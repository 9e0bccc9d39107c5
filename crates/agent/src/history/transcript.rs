//! Reading one session.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::chain::{Index, Owner, Place};
use super::lines::{Pieces, failed};
use super::{Record, Summary, list};
use crate::Error;

/// How deep folders of subagents are looked into.
const MAX_DEPTH: usize = 8;

/// A session's transcript. Nothing of it is read before somebody asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    id: String,
    path: PathBuf,
}

/// How far back to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reading {
    /// Everything that was said, through all compactions.
    #[default]
    Whole,
    /// From the last compaction on, beginning with its summary: what the official SDKs give.
    SinceCompaction,
}

impl Transcript {
    pub(crate) fn new(id: &str, path: PathBuf) -> Self {
        Self { id: id.into(), path }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the project's folder.
    #[must_use]
    pub fn project(&self) -> String {
        self.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What the session is about; `None` when there is nothing to tell, or it cannot be read.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        let meta = self.path.metadata().ok()?;
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        list::summary_of(&self.id, &self.path, modified, meta.len())
    }

    /// The conversation, from the first message to the last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn messages(&self) -> Result<Messages, Error> {
        self.read(Reading::Whole)
    }

    /// The conversation, or the part of it since the last compaction.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self, reading: Reading) -> Result<Messages, Error> {
        Messages::of(&self.path, Owner::Session, reading)
    }

    /// What its subagents did, in the order of their names.
    ///
    /// # Errors
    /// When a folder is there and cannot be read.
    pub fn subagents(&self) -> Result<Vec<Subagent>, Error> {
        let mut found = Vec::new();
        let (own, folder) = (self.folder(), self.folder().join("subagents"));
        // A link may lead anywhere.
        if ![&own, &folder].into_iter().any(|path| path.is_symlink()) {
            collect(&folder, MAX_DEPTH, &mut found)?;
        }
        Ok(found)
    }

    /// The subagent of an id.
    ///
    /// # Errors
    /// As [`subagents`](Self::subagents).
    pub fn subagent(&self, id: &str) -> Result<Option<Subagent>, Error> {
        Ok(self.subagents()?.into_iter().find(|subagent| subagent.id == id))
    }

    /// Where the session keeps everything besides its transcript.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path.with_extension("")
    }
}

/// Messages, one after the other; each is read from the file when its turn comes.
pub struct Messages {
    path: PathBuf,
    pieces: Pieces,
    left: std::vec::IntoIter<Place>,
    skipped: u64,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("path", &self.path).field("left", &self.left.len()).finish()
    }
}

impl Messages {
    fn of(path: &Path, owner: Owner, reading: Reading) -> Result<Self, Error> {
        let index = Index::build(path)?;
        let places = index.conversation(owner, reading == Reading::Whole);
        Ok(Self {
            path: path.to_owned(),
            pieces: Pieces::open(path)?,
            left: places.into_iter(),
            skipped: index.skipped,
        })
    }

    /// How many lines of the file were no records and are missing here. A line that is just being written is one.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Iterator for Messages {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.left.next()?;
        let line = self.pieces.read(place.offset, place.length as usize);
        Some(match line {
            Ok(line) => Record::decode(line).map_err(Error::from),
            Err(error) => Err(failed("read", &self.path, error)),
        })
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        if n > 0 {
            self.left.nth(n - 1)?;
        }
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Messages {}

/// What a subagent did, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subagent {
    /// Its id.
    pub id: String,
    /// Its transcript.
    pub path: PathBuf,
    /// Its kind (`general-purpose`, `Explore`, …).
    pub agent_type: Option<String>,
    /// What it was asked for, in a few words.
    pub description: Option<String>,
    /// The tool call that started it.
    pub tool_use_id: Option<String>,
    /// The subagent that started it, when that was one.
    pub parent_agent: Option<String>,
}

/// What the CLI writes down beside a subagent's transcript.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    agent_type: Option<String>,
    description: Option<String>,
    tool_use_id: Option<String>,
    parent_agent_id: Option<String>,
}

impl Subagent {
    fn at(id: &str, path: PathBuf) -> Self {
        let meta: Meta = std::fs::read(path.with_extension("meta.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self {
            id: id.into(),
            path,
            agent_type: meta.agent_type,
            description: meta.description,
            tool_use_id: meta.tool_use_id,
            parent_agent: meta.parent_agent_id,
        }
    }

    /// What it said and did, from the first message to the last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn messages(&self) -> Result<Messages, Error> {
        Messages::of(&self.path, Owner::Subagent, Reading::Whole)
    }
}

/// Subagents may be in folders of their own (`subagents/workflows/RUN`). Links are not followed.
fn collect(folder: &Path, depth: usize, found: &mut Vec<Subagent>) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", folder, error)),
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix("agent-")?.strip_suffix(".jsonl"));
        match id {
            Some(id) if kind.is_file() => found.push(Subagent::at(id, entry.path())),
            _ if kind.is_dir() && depth > 0 => collect(&entry.path(), depth - 1, found)?,
            _ => {}
        }
    }
    Ok(())
}
