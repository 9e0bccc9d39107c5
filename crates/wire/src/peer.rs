//! A handle to the other side of a connection.

use std::sync::Arc;

use oarlock_proto::jsonrpc::{self, ErrorObject, Id};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::frame::Close;
use crate::outbox::Outbox;

/// The other side of a connection. Clones are cheap and mean the same peer.
#[derive(Debug, Clone)]
pub struct Peer {
    pub(crate) outbox: Arc<Outbox>,
}

/// Why a request of ours has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The other side said no.
    #[error("{0}")]
    Refused(ErrorObject),
    /// The connection ended first.
    #[error("the connection ended before the answer came")]
    Closed,
}

impl Peer {
    /// Sends a notification. False when the connection is over.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> bool {
        self.send(jsonrpc::write_notification(method, params))
    }

    /// Sends a text that is already a message, for those that go to several peers.
    pub fn send(&self, text: String) -> bool {
        self.outbox.push(text)
    }

    /// Sends a request and waits for its answer. Dropping the future forgets the answer.
    ///
    /// # Errors
    /// [`CallError`] when the other side refuses or goes away.
    pub async fn request(&self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, CallError> {
        struct Forget<'a>(&'a Outbox, u64);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                self.0.answered(self.1);
            }
        }

        let (id, answer) = self.outbox.ask();
        let _forget = Forget(&self.outbox, id);
        self.send(jsonrpc::write_request(&Id::from(id), method, params));
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(CallError::Refused(error)),
            Err(_) => Err(CallError::Closed),
        }
    }

    /// [`request`](Self::request), and a word to the other side when the answer is no longer wanted: if the future is
    /// dropped first, `withdraw` makes the message for the request's id.
    ///
    /// # Errors
    /// [`CallError`] when the other side refuses or goes away.
    pub async fn request_or_withdraw(
        &self,
        method: &str,
        params: &impl Serialize,
        withdraw: fn(&Id) -> String,
    ) -> Result<Box<RawValue>, CallError> {
        struct Withdraw<'a>(&'a Outbox, u64, fn(&Id) -> String);
        impl Drop for Withdraw<'_> {
            fn drop(&mut self) {
                if self.0.answered(self.1).is_some() {
                    self.0.push((self.2)(&Id::from(self.1)));
                }
            }
        }

        let (id, answer) = self.outbox.ask();
        let _withdraw = Withdraw(&self.outbox, id, withdraw);
        self.send(jsonrpc::write_request(&Id::from(id), method, params));
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(CallError::Refused(error)),
            Err(_) => Err(CallError::Closed),
        }
    }

    /// Waits until the other side has read most of what was sent. Those who have much to say and can wait should.
    pub async fn ready(&self) {
        self.outbox.ready().await;
    }

    /// Ends the connection, after what is queued could be sent or not.
    pub fn close(&self, close: Close) {
        self.outbox.close(close);
    }

    /// Whether the connection is ending or over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.outbox.closing().is_some()
    }

    /// How many bytes have come from the other side so far.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.outbox.heard()
    }
}
