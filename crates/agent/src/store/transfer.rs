//! Between the CLI's files and a store.

use std::collections::HashMap;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::{Key, Store, failed, uuid_of};
use crate::Error;
use crate::history::scan::Kind;
use crate::history::{Fields, Library, Lines, Name, Scan, Transcript, check_id};
use crate::stream::Json;

/// How much is read before it is stored: this many records, or about this many bytes.
const PIECE: (usize, usize) = (500, 1 << 20);

/// Copies a session from the CLI's files into a store, with what its subagents did.
///
/// The project is the name of the folder that the transcript is in, as it is when a [`Mirror`](super::Mirror) copies it.
/// Running it again, or after a mirror that has lost something, adds only what is missing. Lines that are no JSON, and
/// what was sent to the API, are left out.
///
/// # Errors
/// When a file cannot be read, or the store fails.
pub async fn import(transcript: &Transcript, store: &dyn Store) -> Result<(), Error> {
    let key = Key::new(transcript.project(), transcript.id());
    copy(transcript.path(), &key, store, None).await?;
    let folder = transcript.folder();
    for subagent in blocking_subagents(transcript).await? {
        let relative =
            subagent.path.strip_prefix(&folder).map_err(|error| failed("name a subagent", error))?;
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        let subpath = parts.map(|parts| parts.join("/")).unwrap_or_default();
        let key = key.sub(subpath.strip_suffix(".jsonl").unwrap_or_default());
        key.check()?;
        // A mirror gets what is beside the transcript as a record of it.
        let meta = read_meta(&subagent.path.with_extension("meta.json")).await;
        copy(&subagent.path, &key, store, meta).await?;
    }
    Ok(())
}

async fn blocking_subagents(transcript: &Transcript) -> Result<Vec<crate::history::Subagent>, Error> {
    let transcript = transcript.clone();
    super::blocking(move || transcript.subagents()).await
}

async fn read_meta(path: &Path) -> Option<Json> {
    let path = path.to_owned();
    super::blocking(move || {
        let meta = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let Some(Value::Object(mut meta)) = meta else { return Ok(None) };
        meta.insert("type".into(), "agent_metadata".into());
        Ok(Some(Value::Object(meta).into()))
    })
    .await
    .ok()
    .flatten()
}

/// Copies a file piece by piece, and something more at the end.
async fn copy(path: &Path, key: &Key, store: &dyn Store, more: Option<Json>) -> Result<(), Error> {
    let mut stored = Nameless::of(store, key).await?;
    let mut from = Some(0);
    while let Some(at) = from {
        let path = path.to_owned();
        let (mut entries, next) = super::blocking(move || read_piece(&path, at)).await?;
        from = next;
        if from.is_none() {
            entries.extend(more.clone());
        }
        entries.retain(|entry| !stored.take(entry));
        store.append(key, &entries).await?;
    }
    Ok(())
}

/// The records of a transcript in a store that have no name, by their values. (Those with a name are stored once anyway.)
#[derive(Default)]
struct Nameless(HashMap<Name, u64>);

impl Nameless {
    async fn of(store: &dyn Store, key: &Key) -> Result<Self, Error> {
        let mut nameless = Self::default();
        let mut from = Some(0);
        while let Some(at) = from {
            let batch = store.load(key, at).await?.unwrap_or_default();
            for entry in batch.entries.iter().filter(|entry| uuid_of(entry).is_none()) {
                *nameless.0.entry(Self::value(entry)).or_default() += 1;
            }
            from = batch.next;
        }
        Ok(nameless)
    }

    /// Is it there already? Each one that is there stands for one.
    fn take(&mut self, entry: &Json) -> bool {
        if uuid_of(entry).is_some() {
            return false;
        }
        match self.0.get_mut(&Self::value(entry)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// The order of the fields may differ; the text of a tree is sorted.
    fn value(entry: &Json) -> Name {
        Name::of(&entry.value().to_string())
    }
}

fn read_piece(path: &Path, from: u64) -> Result<(Vec<Json>, Option<u64>), Error> {
    let mut lines = Lines::from(path, from)?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while let Some(line) = lines.next().map_err(|error| crate::history::failed("read", path, error))? {
        bytes += line.bytes.len();
        let is_kept = Scan::of(line.bytes).is_some_and(|scan| scan.kind != Kind::Private);
        let text = String::from_utf8_lossy(line.bytes);
        entries.extend(is_kept.then(|| serde_json::from_str::<Json>(&text).ok()).flatten());
        if entries.len() >= PIECE.0 || bytes >= PIECE.1 {
            return Ok((entries, Some(lines.position())));
        }
    }
    Ok((entries, None))
}

/// What to do when the CLI has a transcript of the session already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Existing {
    /// Leave everything as it is: the CLI's own file knows best.
    #[default]
    Keep,
    /// Replace it: the session has gone on elsewhere.
    Replace,
}

/// Brings a session from a store into the CLI's files, with what its subagents did, so that `claude --resume` finds it.
///
/// `None` when the store has no such session.
///
/// # Errors
/// [`Error::SessionOpen`] when a session that is open would be replaced; otherwise when the store fails, or a file cannot
/// be written.
pub async fn materialise(
    store: &dyn Store,
    key: &Key,
    library: &Library,
    existing: Existing,
) -> Result<Option<Transcript>, Error> {
    let key = key.main();
    key.check()?;
    check_id(&key.session)?;
    let folder = library.projects_dir().join(&key.project);
    let path = folder.join(format!("{}.jsonl", key.session));
    let transcript = Transcript::new(&key.session, path.clone());
    if path.exists() {
        if existing == Existing::Keep {
            return Ok(Some(transcript));
        }
        if let Some(live) = library.live_session(&key.session) {
            return Err(Error::SessionOpen { id: live.session, pid: live.pid });
        }
    }
    let Some(main) = fetch(store, &key, &path, library).await? else { return Ok(None) };
    let mut files = Vec::new();
    for subpath in store.list_subkeys(&key).await? {
        let key = key.sub(subpath);
        // Names come from elsewhere: one that leads out of the folder is not followed.
        if let (Ok(()), Some(subpath)) = (key.check(), &key.subpath) {
            let path = folder.join(&key.session).join(format!("{subpath}.jsonl"));
            files.extend(fetch(store, &key, &path, library).await?);
        } else {
            tracing::warn!(?key, "a name that leads elsewhere is left out");
        }
    }
    // The transcript comes last: a session that is there is whole.
    files.push(main);
    super::blocking(move || files.into_iter().try_for_each(Restored::keep)).await?;
    Ok(Some(transcript))
}

/// A transcript that is written, but does not have its name yet.
struct Restored {
    path: PathBuf,
    out: BufWriter<NamedTempFile>,
    is_empty: bool,
    /// What was beside it.
    meta: Option<Json>,
}

/// Writes a transcript of the store's beside where it belongs; `None` when the store has nothing of it.
async fn fetch(
    store: &dyn Store,
    key: &Key,
    path: &Path,
    library: &Library,
) -> Result<Option<Restored>, Error> {
    let mut restored: Option<Restored> = None;
    let mut from = Some(0);
    while let Some(at) = from {
        let Some(batch) = store.load(key, at).await? else { break };
        from = batch.next;
        let (path, library, is_sub) = (path.to_owned(), library.clone(), key.subpath.is_some());
        let before = restored.take();
        let add = move || {
            let mut restored = match before {
                Some(restored) => restored,
                None => Restored::begin(path, &library)?,
            };
            restored.add(&batch.entries, is_sub)?;
            Ok(restored)
        };
        restored = Some(super::blocking(add).await?);
    }
    Ok(restored.filter(|restored| !restored.is_empty || restored.meta.is_some()))
}

impl Restored {
    fn begin(path: PathBuf, library: &Library) -> Result<Self, Error> {
        library.prepare(&path)?;
        let out = new_file(&path).map_err(|error| cannot_write(&path, error))?;
        Ok(Self { path, out: BufWriter::new(out), is_empty: true, meta: None })
    }

    fn add(&mut self, entries: &[Json], is_sub: bool) -> Result<(), Error> {
        for entry in entries {
            let Ok(mut fields) = entry.read::<Fields>() else { continue };
            if is_sub && fields.string("type").as_deref() == Some("agent_metadata") {
                self.meta = Some(entry.clone());
                continue;
            }
            // Some readers look at how a line begins, and a store may have changed the order.
            if fields.get("parentUuid").is_none() {
                fields.move_to_front("type");
            }
            let line = serde_json::to_string(&fields).map_err(|error| failed("write a record", error))?;
            // Line breaks are blanks between the parts of the value.
            let line = line.replace(['\n', '\r'], " ") + "\n";
            self.out.write_all(line.as_bytes()).map_err(|error| cannot_write(&self.path, error))?;
            self.is_empty = false;
        }
        Ok(())
    }

    /// Gives it its name.
    fn keep(self) -> Result<(), Error> {
        let Self { path, out, is_empty, meta } = self;
        let cannot = |error| cannot_write(&path, error);
        if let Some(mut meta) = meta.map(|meta| meta.value()) {
            meta.as_object_mut().map(|fields| fields.remove("type"));
            let path = path.with_extension("meta.json");
            let mut file = new_file(&path).map_err(cannot)?;
            file.write_all(meta.to_string().as_bytes()).map_err(cannot)?;
            file.persist(&path).map_err(|error| cannot(error.error))?;
        }
        if is_empty {
            return Ok(());
        }
        let file = out.into_inner().map_err(|error| cannot(error.into_error()))?;
        file.as_file().sync_all().map_err(cannot)?;
        file.persist(&path).map_err(|error| cannot(error.error))?;
        Ok(())
    }
}

/// A file beside the one that it will be, for its owner only.
fn new_file(path: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".restore-").tempfile_in(path.parent().unwrap_or(path))
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    failed(format!("write {}", path.display()), error)
}
