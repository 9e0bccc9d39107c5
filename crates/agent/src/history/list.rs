//! Listing sessions: the newest first, and none looked into before its turn.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::lines::failed;
use super::{Library, Lines, Project, Scan, Summary, check_id, summary};
use crate::Error;

/// Which sessions to list. The default is all of all projects.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Filter {
    cwd: Option<PathBuf>,
    worktrees: bool,
    tag: Option<String>,
    count: bool,
    after: Option<(SystemTime, String)>,
}

impl Filter {
    /// The sessions of one directory.
    pub fn project(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    /// Also those of the other work trees of its repository?
    pub fn worktrees(mut self, also: bool) -> Self {
        self.worktrees = also;
        self
    }

    /// Only those with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Only those that come after this one: the rest of a list that was shown in part. None of the others is looked into.
    pub fn after(mut self, modified: SystemTime, id: impl Into<String>) -> Self {
        self.after = Some((modified, id.into()));
        self
    }

    /// Count the messages too? That reads each transcript from beginning to end.
    pub fn count(mut self, count: bool) -> Self {
        self.count = count;
        self
    }
}

impl Library {
    /// Lists sessions, the last written first.
    ///
    /// Files that cannot be read, sessions without a prompt and subagents' transcripts are left out. A session that is in
    /// two folders is listed once.
    ///
    /// # Errors
    /// When the directory of the projects cannot be read. That there is none is no error.
    pub fn list(&self, filter: &Filter) -> Result<Sessions, Error> {
        let mut candidates = candidates(self, filter)?;
        if let Some((modified, id)) = &filter.after {
            candidates.retain(|candidate| (*modified, &candidate.id) > (candidate.modified, id));
        }
        candidates.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(Sessions { left: candidates.into_iter(), seen: HashSet::new(), filter: filter.clone() })
    }
}

/// Sessions, the last written first. Each transcript is looked into when its turn comes.
#[derive(Debug)]
pub struct Sessions {
    left: std::vec::IntoIter<Candidate>,
    seen: HashSet<String>,
    filter: Filter,
}

impl Iterator for Sessions {
    type Item = Summary;

    fn next(&mut self) -> Option<Summary> {
        loop {
            let candidate = self.left.next()?;
            if !self.seen.insert(candidate.id.clone()) {
                continue;
            }
            let Some(mut summary) = candidate.summary() else { continue };
            if self.filter.tag.is_some() && self.filter.tag != summary.tag {
                continue;
            }
            if self.filter.count {
                summary.messages = count(&summary.path).ok();
            }
            return Some(summary);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left.len()))
    }
}

/// A file that may be a session.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) id: String,
    pub(super) path: PathBuf,
    modified: SystemTime,
    size: u64,
}

impl Candidate {
    fn summary(&self) -> Option<Summary> {
        summary_of(&self.id, &self.path, self.modified, self.size)
    }
}

/// What a transcript is about; `None` when it cannot be read or there is nothing to tell.
pub(super) fn summary_of(id: &str, path: &Path, modified: SystemTime, size: u64) -> Option<Summary> {
    let digest = summary::digest(path);
    let digest =
        digest.inspect_err(|error| tracing::debug!(path = %path.display(), %error, "left out")).ok()?;
    let project = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let summary = digest.summary(id, &project, modified)?;
    Some(Summary { size, path: path.to_owned(), ..summary })
}

/// All files with the name of a session.
pub(super) fn candidates(library: &Library, filter: &Filter) -> Result<Vec<Candidate>, Error> {
    let guard = Guard::new(library)?;
    let mut found = Vec::new();
    for folder in folders(library, filter)? {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) else { continue };
            if check_id(id).is_err() {
                continue;
            }
            let path = entry.path();
            let meta = match entry.metadata() {
                Ok(meta) if meta.is_symlink() && guard.admits(&path) => path.metadata(),
                meta => meta,
            };
            let Some(meta) = meta.ok().filter(|meta| meta.is_file() && meta.len() > 0) else { continue };
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(Candidate { id: id.into(), path, modified, size: meta.len() });
        }
    }
    Ok(found)
}

/// The folders of the projects that a filter asks for.
pub(super) fn folders(library: &Library, filter: &Filter) -> Result<Vec<PathBuf>, Error> {
    let root = library.projects_dir();
    let guard = Guard::new(library)?;
    let wanted = filter.cwd.as_ref().map(Project::of);
    let wanted = wanted.map(|project| if filter.worktrees { project.worktrees() } else { vec![project] });
    // The usual case needs no look at the other projects.
    if let Some([project]) = wanted.as_deref() {
        let folder = root.join(project.name());
        if folder.is_dir() {
            return Ok(if guard.admits(&folder) { vec![folder] } else { Vec::new() });
        }
    }
    let entries = match std::fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("read", &root, error)),
    };
    let mut folders: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            wanted.as_ref().is_none_or(|projects| projects.iter().any(|project| project.owns(&name)))
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && guard.admits(path))
        .collect();
    // The project itself comes before its work trees, so that its sessions are found first.
    let own = wanted.as_ref().and_then(|projects| projects.first()).map(|project| root.join(project.name()));
    folders.sort_by_key(|path| (Some(path) != own.as_ref(), path.clone()));
    Ok(folders)
}

/// Keeps us inside the projects directory, whatever links there are in it.
#[derive(Debug)]
pub(super) struct Guard {
    root: Option<PathBuf>,
}

impl Guard {
    pub(super) fn new(library: &Library) -> Result<Self, Error> {
        let root = library.projects_dir();
        match root.canonicalize() {
            Ok(root) => Ok(Self { root: Some(root) }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self { root: None }),
            Err(error) => Err(failed("read", &root, error)),
        }
    }

    /// Is it there, and inside?
    pub(super) fn admits(&self, path: &Path) -> bool {
        let Some(root) = &self.root else { return false };
        path.canonicalize().is_ok_and(|real| real.starts_with(root) && real != *root)
    }
}

/// How many messages a transcript has, whichever branch they are on.
fn count(path: &Path) -> Result<u64, Error> {
    let mut lines = Lines::open(path)?;
    let mut count = 0;
    while let Some(line) = lines.next().map_err(|error| failed("read", path, error))? {
        count += u64::from(Scan::of(line.bytes).is_some_and(|scan| scan.is_visible()));
    }
    Ok(count)
}
