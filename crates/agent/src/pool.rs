//! Sessions that are ready before they are needed: starting the CLI takes most of a second, a prompt to one that waits tens
//! of milliseconds.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::{Error, Events, Options, Session};

/// A pool of sessions that have been started and are ready for their first message.
///
/// ```no_run
/// # async fn example() -> Result<(), oarlock_agent::Error> {
/// use oarlock_agent::{Options, Pool};
///
/// let pool = Pool::new(Options::new().model("haiku"), 2);
/// let (session, events) = pool.take().await?; // ready, and another one is being started
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
    /// Somebody wants one that is not there.
    wanted: watch::Sender<usize>,
}

/// A replacement is started a little later: the session that was taken has the machine for its first answer.
const LATER: Duration = Duration::from_secs(1);

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
        let (state, ready) = (Mutex::default(), Semaphore::new(0));
        let inner = Inner { options, size: size.max(1), state, ready, wanted: watch::Sender::new(0) };
        let pool = Self { inner: Arc::new(inner) };
        pool.fill(Duration::ZERO);
        pool
    }

    /// Takes a session that is ready, or waits for the next one.
    ///
    /// # Errors
    /// When the CLI could not be started.
    pub async fn take(&self) -> Result<(Session, Events), Error> {
        loop {
            match self.inner.ready.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(_) => {
                    self.fill(Duration::ZERO);
                    let _wanted = Wanted::new(&self.inner.wanted);
                    let Ok(permit) = self.inner.ready.acquire().await else { return Err(Error::Closed) };
                    permit.forget();
                }
            }
            let taken = self.lock().sessions.pop_front();
            self.fill(LATER);
            match taken {
                // One may have died while it waited: killed by somebody, out of memory.
                Some(Ok((session, _))) if session.has_ended() => {}
                Some(result) => return result,
                None => {}
            }
        }
    }

    /// How many are ready now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.lock().sessions.iter().filter(|session| session.is_ok()).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts what is missing, after a while, or at once when somebody waits for it.
    fn fill(&self, delay: Duration) {
        let mut waiting = self.lock();
        while waiting.starting.try_join_next().is_some() {}
        while waiting.sessions.len() + waiting.starting.len() < self.inner.size {
            let options = self.inner.options.clone();
            // Weak, or the tasks would keep the pool alive.
            let inner = Arc::downgrade(&self.inner);
            let mut wanted = self.inner.wanted.subscribe();
            waiting.starting.spawn(async move {
                if !delay.is_zero() {
                    let _ = tokio::time::timeout(delay, wanted.wait_for(|wanted| *wanted > 0)).await;
                }
                let session = options.connect().await;
                if let Some(inner) = inner.upgrade() {
                    inner.state.lock().unwrap_or_else(PoisonError::into_inner).sessions.push_back(session);
                    inner.ready.add_permits(1);
                }
            });
        }
    }
}

/// Somebody who waits, for as long as this lives.
struct Wanted<'a>(&'a watch::Sender<usize>);

impl<'a> Wanted<'a> {
    fn new(wanted: &'a watch::Sender<usize>) -> Self {
        wanted.send_modify(|wanted| *wanted += 1);
        Self(wanted)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|wanted| *wanted -= 1);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.inner.size).field("ready", &self.ready()).finish()
    }
}
