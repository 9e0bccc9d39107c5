//! Reading and changing sessions of a store, as [`history`](crate::history) does with files.

use std::ops::Deref;
use std::time::SystemTime;

use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::{Existing, Key, Store, blocking, failed, import, materialise};
use crate::Error;
use crate::history::{self, Fork, Library, Transcript};
use crate::stream::Json;

/// A session of a store, in temporary files: a [`Transcript`] to read, search and export. The files are gone when it is
/// dropped.
#[derive(Debug)]
pub struct Opened {
    transcript: Transcript,
    library: Library,
    _dir: TempDir,
}

impl Deref for Opened {
    type Target = Transcript;

    fn deref(&self) -> &Transcript {
        &self.transcript
    }
}

/// Opens a session of a store for reading; `None` when there is none.
///
/// # Errors
/// When the store fails, the key has no session id in it, or there is no room for the files.
pub async fn open(store: &dyn Store, key: &Key) -> Result<Option<Opened>, Error> {
    let dir = blocking(|| TempDir::new().map_err(|error| failed("make a directory", error))).await?;
    let library = Library::at(dir.path());
    let transcript = materialise(store, key, &library, Existing::Keep).await?;
    Ok(transcript.map(|transcript| Opened { transcript, library, _dir: dir }))
}

/// Gives a session of a store a name; the last one counts.
///
/// # Errors
/// [`Error::Blank`] for a name with nothing in it; otherwise the store's.
pub async fn rename(store: &dyn Store, key: &Key, title: &str) -> Result<(), Error> {
    let title = history::plain(title).ok_or(Error::Blank { what: "title" })?;
    let record = record(key, json!({ "type": "custom-title", "customTitle": title }));
    store.append(&key.main(), &[record]).await
}

/// Gives a session of a store a tag, or takes it away.
///
/// # Errors
/// [`Error::Blank`] for a tag with nothing in it; otherwise the store's.
pub async fn tag(store: &dyn Store, key: &Key, tag: Option<&str>) -> Result<(), Error> {
    let tag = match tag {
        Some(tag) => history::plain(tag).ok_or(Error::Blank { what: "tag" })?,
        None => String::new(),
    };
    let record = record(key, json!({ "type": "tag", "tag": tag }));
    store.append(&key.main(), &[record]).await
}

/// Copies a session of a store into a new one of the same project, as [`Library::fork`] does, and gives its key.
///
/// # Errors
/// [`Error::NoSession`] when there is none, and those of [`Library::fork`]; otherwise the store's.
pub async fn fork(store: &dyn Store, key: &Key, fork: &Fork) -> Result<Key, Error> {
    let opened = open(store, key).await?.ok_or_else(|| Error::NoSession {
        name: key.session.clone(),
        place: format!("of {} in the store", key.project),
    })?;
    let fork = fork.clone();
    let (copy, _opened) = blocking(move || {
        let copy = opened.library.fork(&opened, &fork)?;
        Ok((copy, opened))
    })
    .await?;
    import(&copy, store).await?;
    Ok(Key::new(key.project.as_str(), copy.id()))
}

/// A record about a session, with a name of its own so that it is stored once.
fn record(key: &Key, mut record: serde_json::Value) -> Json {
    record["sessionId"] = json!(key.session);
    record["uuid"] = json!(Uuid::new_v4().to_string());
    record["timestamp"] = json!(history::format_time(SystemTime::now()));
    record.into()
}
