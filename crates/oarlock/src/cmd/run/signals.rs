//! Ctrl-C and the signals that end a program.
//!
//! They are handled in a task of their own, so that a screen or a pipe that stands still does not keep them waiting. The
//! first Ctrl-C interrupts the turn; the second, or one when no turn runs, leaves. A second signal leaves at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oarlock_agent::Session;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::exit::{INTERRUPTED, TERMINATED};

/// How long a polite end may take before it is none any more.
const POLITE: Duration = Duration::from_secs(15);

/// What the handler and the loop tell each other.
#[derive(Clone)]
pub(super) struct Signals {
    shared: Arc<Shared>,
    leave: watch::Sender<Option<u8>>,
}

#[derive(Default)]
struct Shared {
    /// A turn runs, or a prompt is on its way.
    is_busy: AtomicBool,
    /// The turn has been interrupted.
    is_interrupted: AtomicBool,
}

/// The handler. It ends with this.
pub(super) struct Handling(JoinHandle<()>);

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Signals {
    /// From now on signals are handled. `is_editing`: Ctrl-C belongs to the person's editor.
    pub(super) fn handle(session: &Session, is_editing: Arc<AtomicBool>) -> anyhow::Result<(Self, Handling)> {
        let signals = Self { shared: Arc::default(), leave: watch::Sender::new(None) };
        let sources = Sources::new()?;
        let task = tokio::spawn(signals.clone().run(sources, session.clone(), is_editing));
        Ok((signals, Handling(task)))
    }

    /// A turn begins or ends.
    pub(super) fn busy(&self, is_busy: bool) {
        self.shared.is_busy.store(is_busy, Ordering::Relaxed);
        if !is_busy {
            self.shared.is_interrupted.store(false, Ordering::Relaxed);
        }
    }

    /// Was the running turn interrupted?
    pub(super) fn is_interrupted(&self) -> bool {
        self.shared.is_interrupted.load(Ordering::Relaxed)
    }

    /// Waits until it is time to leave, with this exit code.
    pub(super) async fn left(&self) -> u8 {
        let mut leave = self.leave.subscribe();
        match leave.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(code)) => *code,
            _ => std::future::pending().await,
        }
    }

    async fn run(self, mut sources: Sources, session: Session, is_editing: Arc<AtomicBool>) {
        // What takes time, because the next signal must be heard meanwhile.
        let mut works = JoinSet::new();
        loop {
            let code = sources.next().await;
            if code == INTERRUPTED && is_editing.load(Ordering::Relaxed) {
                continue;
            }
            let is_first = !self.shared.is_interrupted.swap(true, Ordering::Relaxed);
            let is_turn = code == INTERRUPTED && self.shared.is_busy.load(Ordering::Relaxed);
            if is_turn && is_first && self.leave.borrow().is_none() {
                let session = session.clone();
                works.spawn(async move {
                    let interrupted = match session.can("interrupt_cancel_queued_v1") {
                        true => session.interrupt_all().await,
                        false => session.interrupt().await,
                    };
                    if let Err(error) = interrupted {
                        tracing::warn!(%error, "the turn could not be interrupted");
                    }
                });
            } else if self.leave.borrow().is_none() && !is_turn {
                self.leave.send_replace(Some(code));
                let session = session.clone();
                works.spawn(async move {
                    tokio::time::sleep(POLITE).await;
                    at_once(&session, code).await;
                });
            } else {
                at_once(&session, code).await;
            }
        }
    }
}

/// Ends the CLI and this program.
async fn at_once(session: &Session, code: u8) {
    let _ = tokio::time::timeout(Duration::from_secs(1), session.kill()).await;
    std::process::exit(i32::from(code));
}

#[cfg(unix)]
struct Sources {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Sources {
    fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal, as the exit code that it stands for.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
            _ = self.hangup.recv() => TERMINATED,
        }
    }
}

#[cfg(not(unix))]
struct Sources;

#[cfg(not(unix))]
impl Sources {
    fn new() -> anyhow::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> u8 {
        match tokio::signal::ctrl_c().await {
            Ok(()) => INTERRUPTED,
            Err(_) => std::future::pending().await,
        }
    }
}
