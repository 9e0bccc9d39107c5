//! The right, and the duty, to answer one request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oarlock_proto::jsonrpc::{self, ErrorObject, Id};
use serde::Serialize;

use crate::outbox::Outbox;

/// Answers one request exactly once: replying consumes it, and dropping it unanswered replies -32603.
#[derive(Debug)]
#[must_use = "a request must be answered"]
pub struct Responder {
    outbox: Arc<Outbox>,
    /// Taken by the answer.
    id: Option<Id>,
}

impl Responder {
    pub(crate) fn new(outbox: Arc<Outbox>, id: Id) -> Self {
        outbox.unanswered.fetch_add(1, Ordering::Relaxed);
        Self { outbox, id: Some(id) }
    }

    /// The request's id.
    #[must_use]
    pub fn id(&self) -> &Id {
        // Only an answer takes the id, and an answer consumes `self`.
        static ANSWERED: std::sync::OnceLock<Id> = std::sync::OnceLock::new();
        self.id.as_ref().unwrap_or_else(|| ANSWERED.get_or_init(Id::null))
    }

    /// Answers with a result.
    pub fn reply(mut self, result: &impl Serialize) {
        if let Some(id) = self.id.take() {
            self.outbox.push(jsonrpc::write_result(&id, result));
        }
    }

    /// Answers with an error.
    pub fn error(mut self, error: &ErrorObject) {
        if let Some(id) = self.id.take() {
            self.outbox.push(jsonrpc::write_error(&id, error));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.outbox.unanswered.fetch_sub(1, Ordering::Relaxed);
        if let Some(id) = self.id.take() {
            let error = ErrorObject::internal("the request was given up without an answer");
            self.outbox.push(jsonrpc::write_error(&id, &error));
        }
    }
}
