//! Transcripts in memory, for tests and examples.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, ready};

use super::{Batch, Digested, Key, Listed, Store, uuid_of};
use crate::Error;
use crate::history::Digest;
use crate::stream::Json;

/// How many records a piece has.
const PIECE: usize = 256;

/// Keeps transcripts until the program ends.
#[derive(Debug, Default)]
pub struct MemoryStore {
    transcripts: Mutex<Transcripts>,
}

#[derive(Debug, Default)]
struct Transcripts {
    all: BTreeMap<Key, Kept>,
    last: Option<SystemTime>,
}

#[derive(Debug)]
struct Kept {
    entries: Vec<Json>,
    uuids: HashSet<String>,
    modified: SystemTime,
    digest: Digest,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Transcripts> {
        self.transcripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, key: &Key, entries: &[Json]) -> Result<(), Error> {
        key.check()?;
        if entries.is_empty() {
            return Ok(());
        }
        let mut transcripts = self.lock();
        // No two times are the same, so that the order of the sessions is certain.
        let after = transcripts.last.map_or(SystemTime::UNIX_EPOCH, |last| last + Duration::from_millis(1));
        let modified = SystemTime::now().max(after);
        transcripts.last = Some(modified);
        let kept = transcripts.all.entry(key.clone()).or_insert_with(|| Kept {
            entries: Vec::new(),
            uuids: HashSet::new(),
            modified,
            digest: Digest::default(),
        });
        kept.modified = modified;
        for entry in entries {
            if uuid_of(entry).is_none_or(|uuid| kept.uuids.insert(uuid)) {
                kept.digest.add(entry);
                kept.entries.push(entry.clone());
            }
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(ready(self.add(key, entries)))
    }

    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>> {
        let transcripts = self.lock();
        let batch = transcripts.all.get(key).map(|kept| {
            let from = usize::try_from(from).unwrap_or(usize::MAX).min(kept.entries.len());
            let to = (from + PIECE).min(kept.entries.len());
            Batch {
                entries: kept.entries[from..to].to_vec(),
                next: (to < kept.entries.len()).then_some(to as u64),
            }
        });
        Box::pin(ready(Ok(batch)))
    }

    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        let transcripts = self.lock();
        let mains = transcripts.all.iter().filter(|(key, _)| key.project == project && key.subpath.is_none());
        let listed =
            mains.map(|(key, kept)| Listed { session: key.session.clone(), modified: kept.modified });
        Box::pin(ready(Ok(listed.collect())))
    }

    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let transcripts = self.lock();
        let subkeys = transcripts.all.keys().filter(|other| other.main() == key.main());
        let subkeys = subkeys.filter_map(|other| other.subpath.clone()).collect();
        Box::pin(ready(Ok(subkeys)))
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>> {
        let mut transcripts = self.lock();
        transcripts.all.retain(|other, _| match key.subpath {
            Some(_) => other != key,
            None => other.main() != *key,
        });
        Box::pin(ready(Ok(())))
    }

    fn list_digests<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Option<Vec<Digested>>, Error>> {
        let transcripts = self.lock();
        let mains = transcripts.all.iter().filter(|(key, _)| key.project == project && key.subpath.is_none());
        let digested = mains.map(|(key, kept)| Digested {
            session: key.session.clone(),
            modified: kept.modified,
            digest: kept.digest.clone(),
        });
        Box::pin(ready(Ok(Some(digested.collect()))))
    }
}
