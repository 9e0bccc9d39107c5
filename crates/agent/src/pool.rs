//! Sessions that are ready before they are needed: starting the CLI takes most of a second, a prompt to one that waits tens
//! of milliseconds.

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::{Error, Events, Options, Session, State};

/// How long a session that was taken goes first, at most.
const COURTESY: Duration = Duration::from_secs(1);

/// A pool of sessions that have been started and are ready for their first message.
///
/// ```no_run
/// # async fn example() -> Result<(), oarlock_agent::Error> {
/// use oarlock_agent::{Options, Pool};
///
/// let pool = Pool::new(Options::new().model("haiku"), 2);
/// let (session, events) = pool.take().await?; // ready; another one is started when its first turn runs
/// # Ok(())
/// # }
/// ```
///
/// Sessions of a pool share their options, so they are for new conversations, not for one to resume. Those that wait are
/// ended with the pool.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    size: usize,
    state: Mutex<Waiting>,
    /// One permit for each session that waits, or failed to start.
    ready: Semaphore,
    /// How many wait for a session.
    takers: watch::Sender<usize>,
}

#[derive(Default)]
struct Waiting {
    sessions: VecDeque<Result<(Session, Events), Error>>,
    /// Those that are being started. Dropped with the pool.
    starting: JoinSet<()>,
}

impl Pool {
    /// A pool that keeps `size` sessions ready. The first ones are started at once; must be called in a tokio runtime.
    #[must_use]
    pub fn new(options: Options, size: usize) -> Self {
        let inner = Inner {
            options,
            size: size.max(1),
            state: Mutex::default(),
            ready: Semaphore::new(0),
            takers: watch::Sender::new(0),
        };
        let pool = Self { inner: Arc::new(inner) };
        pool.fill(None);
        pool
    }

    /// Takes a session that is ready, or waits for the next one.
    ///
    /// # Errors
    /// When the CLI could not be started.
    pub async fn take(&self) -> Result<(Session, Events), Error> {
        loop {
            self.fill(None);
            match self.inner.ready.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(_) => {
                    let _taker = Taker::new(&self.inner.takers);
                    let Ok(permit) = self.inner.ready.acquire().await else { return Err(Error::Closed) };
                    permit.forget();
                }
            }
            let taken = self.lock().sessions.pop_front();
            match taken {
                // One may have died while it waited: killed by somebody, out of memory.
                Some(Ok((session, _))) if session.has_ended() => {}
                Some(result) => {
                    self.fill(result.as_ref().ok().map(|(session, _)| session.watch()));
                    return result;
                }
                None => {}
            }
        }
    }

    /// How many are ready now.
    #[must_use]
    pub fn ready(&self) -> usize {
        let is_ready = |started: &&Result<(Session, Events), Error>| {
            started.as_ref().is_ok_and(|(session, _)| !session.has_ended())
        };
        self.lock().sessions.iter().filter(is_ready).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts what is missing. The session that was just taken goes first: a CLI that starts keeps a small machine as busy
    /// as one that answers, and somebody waits for the answer.
    fn fill(&self, first: Option<watch::Receiver<State>>) {
        let mut waiting = self.lock();
        while waiting.starting.try_join_next().is_some() {}
        while waiting.sessions.len() + waiting.starting.len() < self.inner.size {
            let (options, first) = (self.inner.options.clone(), first.clone());
            let mut takers = self.inner.takers.subscribe();
            // Weak, or the tasks would keep the pool alive.
            let inner = Arc::downgrade(&self.inner);
            waiting.starting.spawn(async move {
                if let Some(mut first) = first {
                    // Its first turn tells the session's id.
                    let begun = first.wait_for(|state| state.session_id.is_some());
                    tokio::select! {
                        _ = begun => {}
                        _ = takers.wait_for(|takers| *takers > 0) => {}
                        () = tokio::time::sleep(COURTESY) => {}
                    }
                }
                // A way to start it that panics must not leave those who wait without an answer.
                let session = AssertUnwindSafe(options.connect()).catch_unwind().await;
                let session = session.unwrap_or(Err(Error::Closed));
                if let Some(inner) = inner.upgrade() {
                    inner.state.lock().unwrap_or_else(PoisonError::into_inner).sessions.push_back(session);
                    inner.ready.add_permits(1);
                }
            });
        }
    }
}

/// Somebody who waits for a session.
struct Taker<'a>(&'a watch::Sender<usize>);

impl<'a> Taker<'a> {
    fn new(takers: &'a watch::Sender<usize>) -> Self {
        takers.send_modify(|takers| *takers += 1);
        Self(takers)
    }
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|takers| *takers -= 1);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.inner.size).field("ready", &self.ready()).finish()
    }
}
