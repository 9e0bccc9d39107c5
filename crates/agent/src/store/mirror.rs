//! From the CLI's reports of what it writes to a store.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::{Key, Store};
use crate::history::Scan;
use crate::history::scan::Kind;
use crate::stream::{Json, TranscriptMirror};

/// With so many records or bytes waiting, nobody waits for the end of the turn.
const MANY: (usize, usize) = (500, 1 << 20);
/// With so many bytes waiting the store is stuck, and what comes is lost.
const MOST: usize = 64 << 20;
/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// When records are handed to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pace {
    /// At [`flush`](Mirror::flush), which a session does at the end of each turn, or when many wait.
    #[default]
    EachTurn,
    /// As soon as the store has taken those before.
    Eager,
}

/// Records that did not reach the store. They are in the CLI's own file all the same, and
/// [`import`](super::import) can make up for them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Where they belong; `None` when the file is none of the CLI's transcripts.
    pub key: Option<Key>,
    /// The CLI's file.
    pub file: PathBuf,
    /// How many.
    pub entries: usize,
    /// Why.
    pub reason: String,
}

type OnLost = Box<dyn Fn(&Lost) + Send + Sync>;

/// Hands the records that the CLI reports on to a store, in order and in batches.
///
/// Nothing that a store does can hurt the session: [`push`](Self::push) never waits, a failure is tried again twice and
/// then reported to [`on_lost`](Self::on_lost), a store that hangs is given up after a minute, and what waits for one is
/// bounded (64 MiB). What was sent to the API (`api-request…`) is not handed on.
pub struct Mirror {
    shared: Arc<Shared>,
    done: watch::Receiver<u64>,
    worker: JoinHandle<()>,
}

struct Shared {
    store: Arc<dyn Store>,
    projects_dir: PathBuf,
    queue: Mutex<Queue>,
    wake: Notify,
    is_eager: AtomicBool,
    on_lost: OnceLock<OnLost>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(PathBuf, Vec<Json>)>,
    entries: usize,
    bytes: usize,
    /// How many frames there were.
    pushed: u64,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").field("projects_dir", &self.shared.projects_dir).finish_non_exhaustive()
    }
}

impl Mirror {
    /// A mirror of the transcripts below a directory of projects
    /// ([`Library::projects_dir`](crate::history::Library::projects_dir) of the configuration that the CLI uses).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(store: Arc<dyn Store>, projects_dir: impl Into<PathBuf>) -> Self {
        let shared = Arc::new(Shared {
            store,
            projects_dir: projects_dir.into(),
            queue: Mutex::default(),
            wake: Notify::new(),
            is_eager: AtomicBool::new(false),
            on_lost: OnceLock::new(),
        });
        let (done_sender, done) = watch::channel(0);
        let worker = tokio::spawn(shared.clone().work(done_sender));
        Self { shared, done, worker }
    }

    /// When records are handed on.
    #[must_use]
    pub fn pace(self, pace: Pace) -> Self {
        self.shared.is_eager.store(pace == Pace::Eager, Ordering::Relaxed);
        self
    }

    /// Who is told of records that did not reach the store. Only the first one given counts.
    #[must_use]
    pub fn on_lost(self, tell: impl Fn(&Lost) + Send + Sync + 'static) -> Self {
        // A second one is ignored, as documented.
        let _ = self.shared.on_lost.set(Box::new(tell));
        self
    }

    /// Takes a frame. It never waits.
    pub fn push(&self, frame: TranscriptMirror) {
        let file = PathBuf::from(frame.file_path);
        let mut entries = frame.entries;
        entries.retain(
            |entry| !matches!(Scan::of(entry.text().as_bytes()), Some(scan) if scan.kind == Kind::Private),
        );
        if entries.is_empty() {
            return;
        }
        let bytes: usize = entries.iter().map(|entry| entry.text().len()).sum();
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.bytes + bytes > MOST {
            drop(queue);
            let reason = "too much waits for the store already".to_owned();
            let key = self.shared.key(&file);
            return self.shared.report(Lost { key, file, entries: entries.len(), reason });
        }
        queue.entries += entries.len();
        queue.bytes += bytes;
        queue.pushed += 1;
        queue.waiting.push_back((file, entries));
        let are_many = queue.entries > MANY.0 || queue.bytes > MANY.1;
        drop(queue);
        if are_many || self.shared.is_eager.load(Ordering::Relaxed) {
            self.shared.wake.notify_one();
        }
    }

    /// Hands on what waits, without waiting for it.
    pub(crate) fn hand_on(&self) {
        self.shared.wake.notify_one();
    }

    /// Waits until everything that was pushed before is stored, or lost and reported.
    pub async fn flush(&self) {
        let pushed = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).pushed;
        self.shared.wake.notify_one();
        // The worker ends only when this is dropped.
        let _ = self.done.clone().wait_for(|done| *done >= pushed).await;
    }
}

/// What still waits is not stored. To have it stored, flush first.
impl Drop for Mirror {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Shared {
    async fn work(self: Arc<Self>, done: watch::Sender<u64>) {
        loop {
            self.wake.notified().await;
            let (batch, pushed) = {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                (queue.entries, queue.bytes) = (0, 0);
                (std::mem::take(&mut queue.waiting), queue.pushed)
            };
            // One append for each file.
            let mut files: Vec<(PathBuf, Vec<Json>)> = Vec::new();
            for (file, entries) in batch {
                match files.iter_mut().find(|(other, _)| *other == file) {
                    Some((_, all)) => all.extend(entries),
                    None => files.push((file, entries)),
                }
            }
            for (file, entries) in files {
                self.store(file, &entries).await;
            }
            done.send_replace(pushed);
        }
    }

    async fn store(&self, file: PathBuf, entries: &[Json]) {
        let lost = |key, reason| Lost { key, file: file.clone(), entries: entries.len(), reason };
        let Some(key) = self.key(&file) else {
            let reason = format!("it is no transcript below {}", self.projects_dir.display());
            return self.report(lost(None, reason));
        };
        let mut pauses = PAUSES.iter();
        loop {
            let append = AssertUnwindSafe(async { self.store.append(&key, entries).await }).catch_unwind();
            let reason = match tokio::time::timeout(PATIENCE, append).await {
                Ok(Ok(Ok(()))) => return,
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(_)) => "the store panicked".to_owned(),
                // It may still be at it, so a second attempt would only be in its way.
                Err(_) => {
                    let reason = format!("the store did not answer for {} s", PATIENCE.as_secs());
                    return self.report(lost(Some(key), reason));
                }
            };
            match pauses.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return self.report(lost(Some(key), reason)),
            }
        }
    }

    /// The key of a file. The CLI may write the directory in another way than we were told: with links resolved.
    fn key(&self, file: &std::path::Path) -> Option<Key> {
        Key::of_file(file, &self.projects_dir)
            .or_else(|| Key::of_file(file, &self.projects_dir.canonicalize().ok()?))
    }

    fn report(&self, lost: Lost) {
        tracing::warn!(file = %lost.file.display(), entries = lost.entries, reason = lost.reason, "not mirrored");
        if let Some(tell) = self.on_lost.get() {
            // Whoever is told must not be able to stop the mirror.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| tell(&lost)));
        }
    }
}
