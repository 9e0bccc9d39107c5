//! The conformance kit, on all stores of ours and on some that are broken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use oarlock_agent::Error;
use oarlock_agent::store::conformance::{self, Report};
use oarlock_agent::store::{Batch, Digested, FileStore, Key, Listed, MemoryStore, Store, load_all};
use oarlock_agent::stream::Json;
use serde_json::json;

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    conformance::check(async || MemoryStore::new()).await.assert();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_of_files_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let count = AtomicU64::new(0);
    let next = || dir.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
    conformance::check(async || FileStore::new(next())).await.assert();
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn the_store_in_sqlite_keeps_the_contract() {
    use oarlock_agent::store::SqliteStore;

    conformance::check(async || SqliteStore::in_memory().await.unwrap()).await.assert();
    let dir = tempfile::tempdir().unwrap();
    let count = AtomicU64::new(0);
    let next = || dir.path().join(format!("{}.db", count.fetch_add(1, Ordering::Relaxed)));
    conformance::check(async || SqliteStore::open(next()).await.unwrap()).await.assert();
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_is_kept_and_shared_and_private() {
    use oarlock_agent::store::SqliteStore;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let (one, two) = (SqliteStore::open(&path).await.unwrap(), SqliteStore::open(&path).await.unwrap());
    let key = Key::new("p", "s");
    one.append(&key, &[record("a")]).await.unwrap();
    two.append(&key, &[record("a"), record("b")]).await.unwrap();
    assert_eq!(load_all(&one, &key).await.unwrap().unwrap(), [record("a"), record("b")]);
    drop((one, two));
    let again = SqliteStore::open(&path).await.unwrap();
    assert_eq!(load_all(&again, &key).await.unwrap().unwrap().len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop(again);
    let plain = dir.path().join("plain.txt");
    std::fs::write(&plain, "this is no database, however long it is and whatever it says here").unwrap();
    assert!(SqliteStore::open(&plain).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_can_be_written_by_two_stores_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (FileStore::new(dir.path()), FileStore::new(dir.path()));
    let key = Key::new("p", "s");
    one.append(&key, &[record("a")]).await.unwrap();
    two.append(&key, &[record("a"), record("b")]).await.unwrap();
    one.append(&key, &[record("b"), record("c")]).await.unwrap();
    assert_eq!(load_all(&two, &key).await.unwrap().unwrap(), [record("a"), record("b"), record("c")]);
    // A process that was killed while it wrote leaves half a line, which stays the only loss.
    let path = dir.path().join("p/s.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"x\",\"uu");
    std::fs::write(&path, text).unwrap();
    one.append(&key, &[record("d")]).await.unwrap();
    assert_eq!(load_all(&two, &key).await.unwrap().unwrap().last(), Some(&record("d")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

fn record(uuid: &str) -> Json {
    json!({ "type": "x", "uuid": uuid }).into()
}

/// What a broken store gets wrong.
#[derive(Debug, Clone, Copy)]
enum Fault {
    AddsTwice,
    ForgetsTheLast,
    SharesProjects,
    KeepsSubkeys,
    MixesOrder,
    LivesInThePast,
    Panics,
    LoadsForever,
}

/// A good store behind a bad one.
struct Broken(Arc<MemoryStore>, Fault);

impl Broken {
    fn key(&self, key: &Key) -> Key {
        match self.1 {
            Fault::SharesProjects => Key { project: "one for all".into(), ..key.clone() },
            _ => key.clone(),
        }
    }
}

impl Store for Broken {
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut entries = entries.to_vec();
            match self.1 {
                Fault::AddsTwice => {
                    // A new name each time: nothing is recognised.
                    let strip = |entry: &Json| {
                        let mut value = entry.value();
                        value["_"] = value["uuid"].take();
                        Json::from(value)
                    };
                    entries = entries.iter().map(strip).collect();
                }
                Fault::MixesOrder => entries.reverse(),
                Fault::Panics => panic!("out of order"),
                _ => {}
            }
            self.0.append(&self.key(key), &entries).await
        })
    }

    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>> {
        Box::pin(async move {
            let mut batch = self.0.load(&self.key(key), from).await?;
            if let Some(batch) = &mut batch {
                match self.1 {
                    Fault::ForgetsTheLast if batch.entries.len() > 9 => drop(batch.entries.pop()),
                    Fault::LoadsForever if from > 0 => batch.next = Some(from),
                    Fault::AddsTwice => {
                        let put_back = |entry: &Json| {
                            let mut value = entry.value();
                            value["uuid"] = value["_"].take();
                            value.as_object_mut().unwrap().remove("_");
                            Json::from(value)
                        };
                        batch.entries = batch.entries.iter().map(put_back).collect();
                    }
                    _ => {}
                }
            }
            Ok(batch)
        })
    }

    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        Box::pin(async move {
            let mut listed = self.0.list_sessions(project).await?;
            if matches!(self.1, Fault::LivesInThePast) {
                listed
                    .iter_mut()
                    .for_each(|one| one.modified = SystemTime::UNIX_EPOCH + Duration::from_secs(7));
            }
            Ok(listed)
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        self.0.list_subkeys(key)
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let kept = match self.1 {
                Fault::KeepsSubkeys => self.0.list_subkeys(key).await?,
                _ => Vec::new(),
            };
            let mut saved = Vec::new();
            for subpath in kept {
                let sub = key.sub(subpath);
                saved.push((sub.clone(), load_all(&*self.0, &sub).await?.unwrap_or_default()));
            }
            self.0.delete(&self.key(key)).await?;
            for (sub, entries) in saved {
                self.0.append(&sub, &entries).await?;
            }
            Ok(())
        })
    }

    fn list_digests<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Vec<Digested>>, Error>> {
        Box::pin(async { Ok(None) })
    }
}

async fn report(fault: Fault) -> Report {
    conformance::check(async || Broken(Arc::default(), fault)).await
}

#[tokio::test]
async fn a_broken_store_does_not_pass() {
    for (fault, check) in [
        (Fault::AddsTwice, "a_record_is_stored_once"),
        (Fault::ForgetsTheLast, "a_long_transcript_comes_back_piece_by_piece"),
        (Fault::SharesProjects, "projects_do_not_touch_each_other"),
        (Fault::KeepsSubkeys, "a_deleted_session_is_gone_with_all_of_it"),
        (Fault::MixesOrder, "what_was_appended_is_loaded_in_order"),
        (Fault::LivesInThePast, "sessions_are_listed_with_their_times"),
        (Fault::Panics, "appends_add_at_the_end"),
        (Fault::LoadsForever, "a_long_transcript_comes_back_piece_by_piece"),
    ] {
        let report = report(fault).await;
        assert!(report.failures().any(|(name, _)| name == check), "{fault:?} was not seen:\n{report}");
    }
}

#[tokio::test]
async fn a_failure_says_what_is_wrong() {
    let report = report(Fault::MixesOrder).await;
    let shown = report.to_string();
    assert!(shown.contains("FAILED  what_was_appended_is_loaded_in_order: Key"), "{shown}");
    assert!(shown.contains("ok      what_was_never_appended_is_none"), "{shown}");
    let panic = std::panic::catch_unwind(|| report.assert()).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().starts_with("the store breaks the contract"));
}

/// A store that keeps no digests is listed by loading.
#[tokio::test]
async fn listing_works_without_digests() {
    let plain = |fault| Broken(Arc::default(), fault);
    let store = plain(Fault::KeepsSubkeys);
    let title = Json::from(json!({ "type": "custom-title", "customTitle": "t" }));
    store.append(&Key::new("p", "s"), &[title]).await.unwrap();
    let listed = oarlock_agent::store::list(&store, "p").await.unwrap();
    assert_eq!(listed[0].title, "t");
}
