//! A question is asked after the client has been told what it is about, and while its turn is wanted.
//!
//! The CLI's question reaches us in two ways: as a call of ours to be answered, and as an event in its place among the
//! others. The first waits for the second. A cancel ends all questions: a yes that comes later is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::ask::Situation;

/// Where questions wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    sides: HashMap<String, Side>,
    /// Ends the questions that are open.
    cancelled: CancellationToken,
}

/// Who was here first.
#[derive(Debug)]
enum Side {
    /// `None`: it is not to be asked.
    Shown(Option<Situation>),
    Waiting(oneshot::Sender<Option<Situation>>),
}

impl Gate {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has been told of the call that this question is about; `None` if it is not to be asked.
    pub(super) fn show(&self, request_id: &str, situation: Option<Situation>) {
        let mut inner = self.inner();
        match inner.sides.remove(request_id) {
            Some(Side::Waiting(waiting)) => drop(waiting.send(situation)),
            _ => drop(inner.sides.insert(request_id.to_owned(), Side::Shown(situation))),
        }
    }

    /// Waits until it has. `None`: nobody is to be asked.
    pub(super) async fn shown(&self, request_id: &str) -> Option<Situation> {
        let waiting = {
            let mut inner = self.inner();
            if let Some(Side::Shown(situation)) = inner.sides.remove(request_id) {
                return situation;
            }
            let (sender, receiver) = oneshot::channel();
            inner.sides.insert(request_id.to_owned(), Side::Waiting(sender));
            receiver
        };
        // A question that is forgotten is not asked.
        waiting.await.ok().flatten()
    }

    /// Asks, unless the user cancels first.
    pub(super) async fn unless_cancelled<T>(&self, ask: impl Future<Output = T>) -> Option<T> {
        let cancelled = self.inner().cancelled.clone();
        tokio::select! {
            // First: an answer that comes with the cancel comes too late.
            biased;
            () = cancelled.cancelled() => None,
            answer = ask => Some(answer),
        }
    }

    /// The user wants nothing more of what is asked about now.
    pub(super) fn cancel(&self) {
        std::mem::take(&mut self.inner().cancelled).cancel();
    }

    /// The question was withdrawn.
    pub(super) fn forget(&self, request_id: &str) {
        self.inner().sides.remove(request_id);
    }

    /// The CLI is gone, and its questions with it.
    pub(super) fn clear(&self) {
        self.inner().sides.clear();
    }
}
