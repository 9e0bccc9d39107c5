//! Transcripts in a directory.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use futures_util::future::BoxFuture;

use super::{Batch, Digested, Key, Listed, Store, blocking, failed, uuid_of};
use crate::Error;
use crate::history::{Lines, Name, Scan, digest};
use crate::stream::Json;

/// How much a piece is: this many records, or about this many bytes.
const PIECE: (usize, usize) = (256, 1 << 20);
/// Of how many transcripts the names of the records are remembered.
const REMEMBERED: usize = 64;

/// Keeps transcripts in a directory, laid out as the CLI lays out its `projects`:
/// `PROJECT/SESSION.jsonl` and `PROJECT/SESSION/SUBPATH.jsonl`.
///
/// Several processes may use it at once: a transcript is locked while it is written.
#[derive(Debug, Clone)]
pub struct FileStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    seen: Mutex<HashMap<PathBuf, Seen>>,
}

/// The names of a transcript's records, up to a place in the file.
#[derive(Debug, Default)]
struct Seen {
    uuids: HashSet<Name>,
    to: u64,
}

impl FileStore {
    /// A store in a directory, which is made when something is stored.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { inner: Arc::new(Inner { root: root.into(), seen: Mutex::default() }) }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = self.inner.clone();
        blocking(move || work(&inner)).await
    }
}

impl Store for FileStore {
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>> {
        let (key, entries) = (key.clone(), entries.to_vec());
        Box::pin(self.run(move |inner| inner.append(&key, &entries)))
    }

    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>> {
        let key = key.clone();
        Box::pin(self.run(move |inner| inner.load(&key, from)))
    }

    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        let project = project.to_owned();
        Box::pin(self.run(move |inner| {
            let files = inner.sessions(&project)?.into_iter();
            Ok(files.map(|(session, _, modified)| Listed { session, modified }).collect())
        }))
    }

    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let key = key.main();
        Box::pin(self.run(move |inner| inner.subkeys(&key)))
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.run(move |inner| inner.delete(&key)))
    }

    fn list_digests<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Option<Vec<Digested>>, Error>> {
        let project = project.to_owned();
        // The two ends of the files are as good as a digest that is kept beside them, and never stale.
        Box::pin(self.run(move |inner| {
            let files = inner.sessions(&project)?.into_iter();
            let digested = files.filter_map(|(session, path, modified)| {
                Some(Digested { session, modified, digest: digest(&path).ok()? })
            });
            Ok(Some(digested.collect()))
        }))
    }
}

impl Inner {
    fn path(&self, key: &Key) -> Result<PathBuf, Error> {
        key.check()?;
        let mut path = self.root.join(&key.project);
        match &key.subpath {
            None => path.push(format!("{}.jsonl", key.session)),
            Some(subpath) => {
                path.push(&key.session);
                path.extend(subpath.split('/'));
                path.as_mut_os_string().push(".jsonl");
            }
        }
        Ok(path)
    }

    fn append(&self, key: &Key, entries: &[Json]) -> Result<(), Error> {
        let path = self.path(key)?;
        if entries.is_empty() {
            return Ok(());
        }
        let write = |error| failed(format!("write {}", path.display()), error);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED && !seen.contains_key(&path) {
            seen.clear();
        }
        let seen = seen.entry(path.clone()).or_default();
        let mut file = open(&path).map_err(write)?;
        file.lock().map_err(write)?;
        // Another process may have written since.
        let length = file.seek(SeekFrom::End(0)).map_err(write)?;
        seen.catch_up(&path, length)?;
        let mut text = String::new();
        if length > 0 && !ends_with_newline(&mut file).map_err(write)? {
            text.push('\n');
        }
        let mut new = Vec::new();
        for entry in entries {
            let name = uuid_of(entry).map(|uuid| Name::of(&uuid));
            if name.is_some_and(|name| seen.uuids.contains(&name) || new.contains(&name)) {
                continue;
            }
            new.extend(name);
            // Line breaks are blanks between the parts of the value: inside a string JSON cannot have any.
            text.extend(entry.text().chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
            text.push('\n');
        }
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(write)?;
        seen.uuids.extend(new);
        seen.to = length + text.len() as u64;
        Ok(())
    }

    fn load(&self, key: &Key, from: u64) -> Result<Option<Batch>, Error> {
        let path = self.path(key)?;
        if !path.is_file() {
            return Ok(None);
        }
        let mut lines = Lines::from(&path, from)?;
        let (mut batch, mut bytes) = (Batch::default(), 0);
        while let Some(line) =
            lines.next().map_err(|error| failed(format!("read {}", path.display()), error))?
        {
            bytes += line.bytes.len();
            let text = String::from_utf8_lossy(line.bytes);
            // What is no JSON was not stored by us, or only half.
            batch.entries.extend(serde_json::from_str::<Json>(&text).ok());
            if batch.entries.len() >= PIECE.0 || bytes >= PIECE.1 {
                batch.next = Some(lines.position());
                break;
            }
        }
        Ok(Some(batch))
    }

    /// The main transcripts of a project.
    fn sessions(&self, project: &str) -> Result<Vec<(String, PathBuf, SystemTime)>, Error> {
        Key::new(project, "any").check()?;
        let mut found = Vec::new();
        for (name, path) in read_dir(&self.root.join(project))? {
            let Some(session) = name.strip_suffix(".jsonl") else { continue };
            let Some(meta) = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file) else {
                continue;
            };
            found.push((session.into(), path, meta.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
        }
        Ok(found)
    }

    fn subkeys(&self, key: &Key) -> Result<Vec<String>, Error> {
        let folder = self.path(key)?.with_extension("");
        let mut found = Vec::new();
        let mut left = vec![(folder, String::new())];
        while let Some((folder, prefix)) = left.pop() {
            for (name, path) in read_dir(&folder)? {
                let is_link = path.is_symlink();
                if path.is_dir() && !is_link {
                    left.push((path, format!("{prefix}{name}/")));
                } else if let Some(name) = name.strip_suffix(".jsonl").filter(|_| !is_link) {
                    found.push(format!("{prefix}{name}"));
                }
            }
        }
        Ok(found)
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        let path = self.path(key)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let ignore_missing = |outcome: io::Result<()>| match outcome {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(format!("delete {}", path.display()), error))
            }
            _ => Ok(()),
        };
        let folder = path.with_extension("");
        seen.retain(|other, _| *other != path && !other.starts_with(&folder));
        ignore_missing(std::fs::remove_file(&path))?;
        if key.subpath.is_none() {
            ignore_missing(std::fs::remove_dir_all(&folder))?;
        }
        Ok(())
    }
}

impl Seen {
    /// Learns the names in the part of the file that is new.
    fn catch_up(&mut self, path: &Path, length: u64) -> Result<(), Error> {
        if length < self.to {
            *self = Self::default();
        }
        if length > self.to {
            let mut lines = Lines::from(path, self.to)?;
            while let Some(line) =
                lines.next().map_err(|error| failed(format!("read {}", path.display()), error))?
            {
                self.uuids.extend(Scan::of(line.bytes).and_then(|scan| scan.uuid));
            }
            self.to = length;
        }
        Ok(())
    }
}

/// Opens a transcript to write to, and makes it when there is none. Only its owner may read it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
            options.open(path)
        }
        outcome => outcome,
    }
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The entries of a directory that have names we could have given; none when there is no directory.
fn read_dir(path: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    match std::fs::read_dir(path) {
        Ok(entries) => {
            let named =
                |entry: std::fs::DirEntry| Some((entry.file_name().into_string().ok()?, entry.path()));
            Ok(entries.flatten().filter_map(named).collect())
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(failed(format!("read {}", path.display()), error)),
    }
}
