//! Frames of the CLI's, into a store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use oarlock_agent::Error;
use oarlock_agent::store::{Batch, Key, Listed, Lost, MemoryStore, Mirror, Pace, Store, load_all};
use oarlock_agent::stream::{Json, TranscriptMirror};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

fn frame(file: &str, entries: &[Value]) -> TranscriptMirror {
    TranscriptMirror {
        file_path: file.into(),
        entries: entries.iter().cloned().map(Json::from).collect(),
        ..TranscriptMirror::default()
    }
}

fn record(number: usize) -> Value {
    json!({ "type": "user", "uuid": format!("u{number}"), "n": number })
}

const MAIN: &str = "/c/projects/-w/s.jsonl";
const SUB: &str = "/c/projects/-w/s/subagents/agent-1.jsonl";

/// A store that fails, panics or waits before it does its work.
#[derive(Default)]
struct Moody {
    store: MemoryStore,
    fail: AtomicUsize,
    panics: bool,
    gate: Option<Semaphore>,
    appends: AtomicUsize,
}

impl Store for Moody {
    fn append<'a>(&'a self, key: &'a Key, entries: &'a [Json]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.appends.fetch_add(1, Ordering::SeqCst);
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
            if self.fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            {
                assert!(!self.panics, "as told");
                return Err(Error::Store { action: "append".into(), source: "as told".into() });
            }
            self.store.append(key, entries).await
        })
    }

    fn load<'a>(&'a self, key: &'a Key, from: u64) -> BoxFuture<'a, Result<Option<Batch>, Error>> {
        self.store.load(key, from)
    }

    fn list_sessions<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Vec<Listed>, Error>> {
        self.store.list_sessions(project)
    }

    fn list_subkeys<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        self.store.list_subkeys(key)
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), Error>> {
        self.store.delete(key)
    }
}

fn mirror(store: &Arc<Moody>) -> (Mirror, Arc<Mutex<Vec<Lost>>>) {
    let lost: Arc<Mutex<Vec<Lost>>> = Arc::default();
    let tell = lost.clone();
    let mirror = Mirror::new(store.clone(), "/c/projects");
    (mirror.on_lost(move |lost| tell.lock().unwrap().push(lost.clone())), lost)
}

async fn count(store: &Moody, key: &Key) -> usize {
    load_all(store, key).await.unwrap().unwrap_or_default().len()
}

fn key() -> Key {
    Key::new("-w", "s")
}

#[tokio::test]
async fn frames_are_stored_in_order_with_one_append_for_each_file() {
    let store = Arc::new(Moody::default());
    let (mirror, lost) = mirror(&store);
    for number in 0..10 {
        mirror.push(frame(MAIN, &[record(number)]));
        mirror.push(frame(SUB, &[record(number), json!({ "type": "api-request", "params": "secret" })]));
    }
    mirror.push(frame(MAIN, &[json!({ "type": "api-request-blob", "message": "secret" })]));
    assert_eq!(store.appends.load(Ordering::SeqCst), 0, "nothing happens before the end of the turn");
    mirror.flush().await;
    assert_eq!(store.appends.load(Ordering::SeqCst), 2);
    let want: Vec<Json> = (0..10).map(|number| record(number).into()).collect();
    assert_eq!(load_all(&*store, &key()).await.unwrap().unwrap(), want);
    assert_eq!(load_all(&*store, &key().sub("subagents/agent-1")).await.unwrap().unwrap(), want);
    assert_eq!(*lost.lock().unwrap(), []);
    mirror.flush().await;
}

#[tokio::test]
async fn many_records_do_not_wait_for_the_end_of_the_turn() {
    let store = Arc::new(Moody { gate: Some(Semaphore::new(0)), ..Moody::default() });
    let (mirror, _) = mirror(&store);
    for number in 0..501 {
        mirror.push(frame(MAIN, &[record(number)]));
    }
    while store.appends.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    store.gate.as_ref().unwrap().add_permits(10);
    mirror.flush().await;
    assert_eq!(count(&store, &key()).await, 501);
}

#[tokio::test]
async fn an_eager_mirror_stores_at_once_and_gathers_while_the_store_is_busy() {
    let store = Arc::new(Moody { gate: Some(Semaphore::new(0)), ..Moody::default() });
    let (mirror, _) = mirror(&store);
    let mirror = mirror.pace(Pace::Eager);
    mirror.push(frame(MAIN, &[record(0)]));
    while store.appends.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for number in 1..100 {
        mirror.push(frame(MAIN, &[record(number)]));
    }
    store.gate.as_ref().unwrap().add_permits(10);
    mirror.flush().await;
    assert_eq!(count(&store, &key()).await, 100);
    assert_eq!(store.appends.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_and_then_reported() {
    for panics in [false, true] {
        let store = Arc::new(Moody { fail: AtomicUsize::new(2), panics, ..Moody::default() });
        let (mirror, lost) = mirror(&store);
        mirror.push(frame(MAIN, &[record(1)]));
        mirror.flush().await;
        assert_eq!((count(&store, &key()).await, lost.lock().unwrap().len()), (1, 0), "the third attempt");
        store.fail.store(3, Ordering::SeqCst);
        mirror.push(frame(MAIN, &[record(2), record(3)]));
        mirror.flush().await;
        {
            let lost = lost.lock().unwrap();
            assert_eq!((lost[0].key.clone(), lost[0].entries), (Some(key()), 2));
            assert!(lost[0].reason.contains(if panics { "panicked" } else { "as told" }), "{lost:?}");
        }
        mirror.push(frame(MAIN, &[record(4)]));
        mirror.flush().await;
        assert_eq!(count(&store, &key()).await, 2, "it goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_given_up() {
    let store = Arc::new(Moody { gate: Some(Semaphore::new(0)), ..Moody::default() });
    let (mirror, lost) = mirror(&store);
    mirror.push(frame(MAIN, &[record(1)]));
    mirror.flush().await;
    assert!(lost.lock().unwrap()[0].reason.contains("60 s"));
    assert_eq!(store.appends.load(Ordering::SeqCst), 1, "no second attempt in the way of the first");
}

#[tokio::test]
async fn files_from_elsewhere_and_too_much_at_once_are_reported() {
    let store = Arc::new(Moody { gate: Some(Semaphore::new(0)), ..Moody::default() });
    let (mirror, lost) = mirror(&store);
    mirror.push(frame("/elsewhere/projects/-w/s.jsonl", &[record(1)]));
    mirror.flush().await;
    assert_eq!(lost.lock().unwrap()[0].key, None);
    assert!(lost.lock().unwrap()[0].reason.contains("/c/projects"));
    let large = json!({ "type": "user", "text": "x".repeat(40 << 20) });
    mirror.push(frame(MAIN, std::slice::from_ref(&large)));
    mirror.push(frame(MAIN, &[large]));
    let last = lost.lock().unwrap().pop().unwrap();
    assert!(last.reason.contains("too much"), "{last:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_directory_may_be_named_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap().join("real");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, dir.path().join("link")).unwrap();
    let store = Arc::new(MemoryStore::new());
    let mirror = Mirror::new(store.clone(), dir.path().join("link"));
    mirror.push(frame(&Path::join(&real, "-w/s.jsonl").to_string_lossy(), &[record(1)]));
    mirror.flush().await;
    assert!(load_all(&*store, &key()).await.unwrap().is_some());
}
