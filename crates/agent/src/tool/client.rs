//! The way from a server to the CLI, and what is going on between them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use oarlock_proto::jsonrpc::{self, Id};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use crate::Error;
use crate::stream::Json;

type Sink = Box<dyn Fn(Json) -> BoxFuture<Result<(), Error>> + Send + Sync>;

/// The CLI of one session, as a server sees it. A clone is the same CLI.
///
/// The default has nobody behind it: what is sent is dropped.
#[derive(Clone, Default)]
pub struct Client(Arc<Connection>);

#[derive(Default)]
pub(super) struct Connection {
    sink: Option<Sink>,
    calls: Mutex<Calls>,
    /// What the server runs for this session. It ends with the connection.
    #[cfg(feature = "rmcp")]
    run: Mutex<Option<Arc<super::rmcp::Run>>>,
}

/// The calls that are running. They are few, so a list is enough.
#[derive(Default)]
struct Calls {
    next: u64,
    // After a second handshake ids come again, so an id alone does not name a call.
    running: Vec<(u64, Id, CancellationToken)>,
}

impl Client {
    /// A client that hands every message for the CLI to `sink`: in a session the control request `mcp_message`, in a test
    /// whatever collects them.
    ///
    /// There is one for each session and server, cloned for every [`Server::message`](super::Server::message). When the
    /// last clone is dropped, the session is over.
    pub fn new<F, Fut>(sink: F) -> Self
    where
        F: Fn(Json) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let sink: Sink = Box::new(move |message| Box::pin(sink(message)));
        Self(Arc::new(Connection { sink: Some(sink), ..Connection::default() }))
    }

    /// Sends any JSON-RPC message.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn send(&self, message: Json) -> Result<(), Error> {
        match &self.0.sink {
            Some(sink) => sink(message).await,
            None => Ok(()),
        }
    }

    /// Sends a notification; parameters that serialise to `null` are left out.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn notify(&self, method: &str, params: &(impl Serialize + Sync)) -> Result<(), Error> {
        self.send(json(jsonrpc::write_notification(method, params))).await
    }

    /// Says that the list of tools has changed, upon which the CLI asks for it again.
    ///
    /// Only a CLI with the capability `sdk_mcp_tools_list_changed` does; 2.1.197 goes on with the list it has.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn tools_changed(&self) -> Result<(), Error> {
        self.notify("notifications/tools/list_changed", &()).await
    }

    /// Writes down that a call is running.
    pub(super) fn begin(&self, id: Id) -> Running {
        let token = CancellationToken::new();
        let mut calls = self.calls();
        calls.next += 1;
        let number = calls.next;
        calls.running.push((number, id, token.clone()));
        drop(calls);
        Running { client: self.clone(), number, token }
    }

    /// The CLI no longer wants the answer to the request with this id.
    pub(super) fn cancel(&self, id: &RawValue) {
        if let Some((_, _, token)) =
            self.calls().running.iter().rev().find(|(_, running, _)| running.as_json() == id.get())
        {
            token.cancel();
        }
    }

    /// What the server runs for this session, which may be replaced.
    #[cfg(feature = "rmcp")]
    pub(super) fn run(&self) -> MutexGuard<'_, Option<Arc<super::rmcp::Run>>> {
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn downgrade(&self) -> Weak<Connection> {
        Arc::downgrade(&self.0)
    }

    pub(super) fn upgrade(connection: &Weak<Connection>) -> Option<Self> {
        connection.upgrade().map(Self)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("calls", &self.calls().running.len()).finish_non_exhaustive()
    }
}

/// A call that is running. When it is dropped, the call is over: its token fires.
pub(super) struct Running {
    client: Client,
    number: u64,
    pub(super) token: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.token.cancel();
        self.client.calls().running.retain(|(number, _, _)| *number != self.number);
    }
}

/// Text that `jsonrpc` wrote, which is always JSON.
pub(super) fn json(text: String) -> Json {
    RawValue::from_string(text).map(Json::from).unwrap_or_default()
}
