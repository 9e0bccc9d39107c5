//! Transcripts in one SQLite file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{Batch, Digested, Key, Listed, Store, blocking, failed, uuid_of};
use crate::Error;
use crate::history::{Digest, from_millis, millis};
use crate::stream::Json;

/// How much a piece is: this many records, or about this many bytes.
const PIECE: (u32, usize) = (256, 1 << 20);
/// What the tables are like. A file with a higher number is from a later version and is left alone.
const VERSION: i64 = 1;
/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE transcript (
        id INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        session TEXT NOT NULL,
        subpath TEXT NOT NULL, -- empty for the main transcript
        modified INTEGER NOT NULL, -- milliseconds since 1970
        digest TEXT NOT NULL,
        UNIQUE (project, session, subpath)
    ) STRICT;
    CREATE TABLE entry (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        transcript INTEGER NOT NULL REFERENCES transcript (id) ON DELETE CASCADE,
        uuid TEXT,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX entry_of ON entry (transcript, seq);
    CREATE UNIQUE INDEX entry_once ON entry (transcript, uuid) WHERE uuid IS NOT NULL;
";

/// Keeps transcripts in one SQLite file. Several processes may use it at once.
#[derive(Clone)]
pub struct SqliteStore {
    connection: Arc<Mutex<Connection>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore")
    }
}

impl SqliteStore {
    /// Opens a file, and makes it when there is none.
    ///
    /// # Errors
    /// When it cannot be opened, is no SQLite file, or was made by a later version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        blocking(move || {
            make_private(&path)?;
            let open = |error| failed(format!("open {}", path.display()), error);
            Self::set_up(Connection::open(&path).map_err(open)?)
        })
        .await
    }

    /// A store that is gone when it is dropped.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub async fn in_memory() -> Result<Self, Error> {
        blocking(|| Self::set_up(Connection::open_in_memory().map_err(|error| failed("open", error))?)).await
    }

    fn set_up(mut connection: Connection) -> Result<Self, Error> {
        let mut set_up = || -> rusqlite::Result<Option<i64>> {
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if version == 0 {
                transaction.execute_batch(TABLES)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            transaction.commit()?;
            Ok(Some(version).filter(|version| *version > VERSION))
        };
        match set_up() {
            Ok(None) => Ok(Self { connection: Arc::new(Mutex::new(connection)) }),
            Ok(Some(version)) => Err(failed(
                "open",
                format!(
                    "the file has version {version}, and {VERSION} is the latest that is known; update Oarlock"
                ),
            )),
            Err(error) => Err(failed("prepare its tables", error)),
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let connection = self.connection.clone();
        blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection).map_err(|error| failed(action, error))
        })
        .await
    }
}

/// A new file may be read by its owner only.
fn make_private(path: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = std::fs::OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(format!("make {}", path.display()), error));
            }
            _ => {}
        }
    }
    let _ = path;
    Ok(())
}

fn subpath(key: &Key) -> &str {
    key.subpath.as_deref().unwrap_or_default()
}

fn append(connection: &mut Connection, key: &Key, entries: &[Json]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let now = i64::try_from(millis(SystemTime::now())).unwrap_or(i64::MAX);
    // A later write is later, whatever the clock says.
    let (id, digest): (i64, String) = transaction
        .prepare_cached(
            "INSERT INTO transcript (project, session, subpath, modified, digest) VALUES (?1, ?2, ?3, ?4, '{}')
             ON CONFLICT DO UPDATE SET modified = max(excluded.modified, modified + 1) RETURNING id, digest",
        )?
        .query_row(params![key.project, key.session, subpath(key), now], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut digest: Digest = serde_json::from_str(&digest).unwrap_or_default();
    {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO entry (transcript, uuid, body) VALUES (?1, ?2, ?3)
             ON CONFLICT (transcript, uuid) WHERE uuid IS NOT NULL DO NOTHING",
        )?;
        for entry in entries {
            if insert.execute(params![id, uuid_of(entry), entry.text()])? > 0 {
                digest.add(entry);
            }
        }
    }
    let digest = serde_json::to_string(&digest).unwrap_or_else(|_| "{}".into());
    transaction.execute("UPDATE transcript SET digest = ?2 WHERE id = ?1", params![id, digest])?;
    transaction.commit()
}

fn load(connection: &mut Connection, key: &Key, from: u64) -> rusqlite::Result<Option<Batch>> {
    let id: Option<i64> = connection
        .prepare_cached("SELECT id FROM transcript WHERE project = ?1 AND session = ?2 AND subpath = ?3")?
        .query_row(params![key.project, key.session, subpath(key)], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(None) };
    let mut select = connection.prepare_cached(
        "SELECT seq, body FROM entry WHERE transcript = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let mut rows = select.query(params![id, from, PIECE.0])?;
    let (mut batch, mut bytes, mut last) = (Batch::default(), 0, from);
    while let Some(row) = rows.next()? {
        let body: String = row.get(1)?;
        last = row.get(0)?;
        bytes += body.len();
        batch.entries.extend(serde_json::from_str::<Json>(&body).ok());
        if bytes >= PIECE.1 {
            break;
        }
    }
    // A full piece may be followed by an empty one, which costs less than counting.
    let is_full = batch.entries.len() >= PIECE.0 as usize || bytes >= PIECE.1;
    batch.next = is_full.then(|| last.unsigned_abs());
    Ok(Some(batch))
}

impl Store for SqliteStore {
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            key.check()?;
            if entries.is_empty() {
                return Ok(());
            }
            let (key, entries) = (key.clone(), entries.to_vec());
            self.run("append", move |connection| append(connection, &key, &entries)).await
        })
    }

    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>> {
        let key = key.clone();
        Box::pin(self.run("load", move |connection| load(connection, &key, from)))
    }

    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        let project = project.to_owned();
        Box::pin(self.run("list sessions", move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT session, modified FROM transcript WHERE project = ?1 AND subpath = ''",
            )?;
            let rows = select.query_map([project], |row| {
                Ok(Listed { session: row.get(0)?, modified: time_of(row.get(1)?) })
            })?;
            rows.collect()
        }))
    }

    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        let key = key.clone();
        Box::pin(self.run("list subkeys", move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT subpath FROM transcript WHERE project = ?1 AND session = ?2 AND subpath != ''",
            )?;
            let rows = select.query_map([key.project, key.session], |row| row.get(0))?;
            rows.collect()
        }))
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>> {
        let key = key.clone();
        Box::pin(self.run("delete", move |connection| {
            let all = key.subpath.is_none();
            connection.execute(
                "DELETE FROM transcript WHERE project = ?1 AND session = ?2 AND (?3 OR subpath = ?4)",
                params![key.project, key.session, all, subpath(&key)],
            )?;
            Ok(())
        }))
    }

    fn list_digests<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Option<Vec<Digested>>, Error>> {
        let project = project.to_owned();
        Box::pin(self.run("list digests", move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT session, modified, digest FROM transcript WHERE project = ?1 AND subpath = ''",
            )?;
            let rows = select.query_map([project], |row| {
                let digest: String = row.get(2)?;
                let digest = serde_json::from_str(&digest).unwrap_or_default();
                Ok(Digested { session: row.get(0)?, modified: time_of(row.get(1)?), digest })
            })?;
            rows.collect::<rusqlite::Result<_>>().map(Some)
        }))
    }
}

fn time_of(millis: i64) -> SystemTime {
    from_millis(millis.unsigned_abs())
}
