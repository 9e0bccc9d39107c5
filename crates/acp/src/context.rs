//! What all sessions of a connection share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_agent::history::Library;
use oarlock_proto::acp::{ClientCapabilities, Implementation, SessionNotification, SessionUpdate};
use oarlock_proto::jsonrpc::{self, Id};
use oarlock_wire::{CallError, Peer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Settings;

/// What all sessions of a connection share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Arc<Settings>,
    pub(crate) peer: Peer,
    pub(crate) client: Arc<ClientCapabilities>,
    pub(crate) client_info: Option<Implementation>,
    /// The CLI's own transcripts; `None` when there is no home directory.
    pub(crate) library: Option<Library>,
}

impl Context {
    /// Tells the client what is new in a session.
    pub(crate) fn update(&self, session_id: &str, update: &SessionUpdate) {
        self.peer.notify("session/update", &SessionNotification { session_id, update });
    }

    /// The CLI's configuration directory.
    pub(crate) fn config_dir(&self) -> Option<&Path> {
        self.library.as_ref().map(Library::config_dir)
    }

    /// The `claude` to start.
    pub(crate) fn program(&self) -> Result<PathBuf, oarlock_agent::Error> {
        (self.settings.program)()
    }
}

/// A session's way to ask its client. A question whose future is dropped is withdrawn by `$/cancel_request`.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) context: Arc<Context>,
    pub(crate) session_id: Arc<str>,
}

impl Asker {
    /// Asks, and reads the answer. An answer of another shape is a refusal.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, CallError> {
        let answer = self.context.peer.request_or_withdraw(method, params, cancel_request).await?;
        serde_json::from_str(answer.get()).map_err(|error| {
            CallError::Refused(jsonrpc::ErrorObject::invalid_params(format!(
                "the answer to {method}: {error}"
            )))
        })
    }

    pub(crate) fn client(&self) -> &ClientCapabilities {
        &self.context.client
    }
}

fn cancel_request(id: &Id) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: u64,
    }
    let request_id = id.as_u64().unwrap_or_default();
    jsonrpc::write_notification("$/cancel_request", &Params { request_id })
}
