//! A question is asked after the client has been told what it is about.
//!
//! The CLI's question reaches us in two ways: as a call of ours to be answered, and as an event in its place among the
//! others. The first waits for the second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::ask::Situation;

/// Where questions wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<Mutex<HashMap<String, Side>>>);

/// Who was here first.
#[derive(Debug)]
enum Side {
    Shown(Situation),
    Waiting(oneshot::Sender<Situation>),
}

impl Gate {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Side>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The client has been told of the call that this question is about.
    pub(super) fn show(&self, request_id: &str, situation: Situation) {
        self.with(|sides| match sides.remove(request_id) {
            Some(Side::Waiting(waiting)) => drop(waiting.send(situation)),
            _ => drop(sides.insert(request_id.to_owned(), Side::Shown(situation))),
        });
    }

    /// Waits until it has.
    pub(super) async fn shown(&self, request_id: &str) -> Situation {
        let waiting = self.with(|sides| match sides.remove(request_id) {
            Some(Side::Shown(situation)) => Err(situation),
            _ => {
                let (sender, receiver) = oneshot::channel();
                sides.insert(request_id.to_owned(), Side::Waiting(sender));
                Ok(receiver)
            }
        });
        match waiting {
            Ok(receiver) => receiver.await.unwrap_or_default(),
            Err(situation) => situation,
        }
    }

    /// The question was withdrawn.
    pub(super) fn forget(&self, request_id: &str) {
        self.with(|sides| sides.remove(request_id));
    }

    /// The CLI is gone, and its questions with it.
    pub(super) fn clear(&self) {
        self.with(HashMap::clear);
    }
}
