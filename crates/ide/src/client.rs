//! The other end: a client of an engine, for our own commands and for tests.

use std::net::SocketAddr;

use oarlock_proto::jsonrpc::{ErrorObject, INTERNAL_ERROR};
use oarlock_proto::mcp::{CallResult, VERSIONS};
use oarlock_wire::frame::{Ws, WsOptions};
use oarlock_wire::{CallError, Connection, Ended, Limits, Peer, Responder, Service, Tasks};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::token::Token;
use crate::{Error, Result, control, server};

/// Notifications that wait to be looked at; when nobody does, new ones are dropped.
const UNREAD: usize = 1024;

/// The code of an answer that says that a diff or a client is not there (a server-defined one).
pub const NOT_FOUND: i32 = -32002;

/// What a client shows at the door.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'a> {
    /// The token of the lock file: an ordinary MCP client.
    Token(&'a Token),
    /// The token of the state file: our own commands.
    Control(&'a Token),
}

/// A connection to an engine.
#[derive(Debug)]
pub struct Client {
    peer: Peer,
    notifications: mpsc::Receiver<Notification>,
    task: tokio::task::JoinHandle<Ended>,
}

/// Something the engine said without being asked.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Such as `selection_changed`.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// Opens a WebSocket to an engine on this machine, for those who want the messages themselves.
///
/// # Errors
/// When nobody listens there, or the token is wrong.
pub async fn dial(address: SocketAddr, credential: Credential<'_>) -> Result<Ws<TcpStream>> {
    let failed = |why: String| Error::Connect { address, why };
    let stream = TcpStream::connect(address).await.map_err(|error| failed(error.to_string()))?;
    stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
    let header = match credential {
        Credential::Token(token) => (server::TOKEN_HEADER, token.reveal()),
        Credential::Control(token) => (control::HEADER, token.reveal()),
    };
    let url = format!("ws://{address}/");
    let frames = Ws::dial(stream, &url, "mcp", &[header], WsOptions::default()).await;
    frames.map_err(|error| failed(error.to_string()))
}

impl Client {
    /// Connects to an engine on this machine.
    ///
    /// # Errors
    /// When nobody listens there, or the token is wrong.
    pub async fn connect(address: SocketAddr, credential: Credential<'_>) -> Result<Self> {
        let connection = Connection::new(dial(address, credential).await?, Limits::default());
        let peer = connection.peer();
        let (sender, notifications) = mpsc::channel(UNREAD);
        let task = tokio::spawn(connection.run(Inbound { notifications: sender }));
        Ok(Self { peer, notifications, task })
    }

    /// The MCP handshake of an ordinary client.
    ///
    /// # Errors
    /// When the engine refuses it.
    pub async fn initialize(&self, name: &str) -> Result<()> {
        let info = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": info });
        self.request("initialize", &params).await?;
        self.peer.notify("notifications/initialized", &());
        Ok(())
    }

    /// Announces this process as a Claude Code session, which gets diffs and notifications.
    pub fn announce(&self) {
        self.peer.notify("ide_connected", &json!({ "pid": std::process::id() }));
    }

    /// Asks something.
    ///
    /// # Errors
    /// When the engine says no or goes away.
    pub async fn request(&self, method: &str, params: &impl Serialize) -> Result<Value> {
        let answer = self.peer.request(method, params).await.map_err(|error| match error {
            CallError::Refused(error) => Error::Answer { code: error.code, message: error.message },
            closed => unreadable(&closed),
        })?;
        serde_json::from_str(answer.get()).map_err(|error| unreadable(&error))
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When the engine says no or goes away; a tool's own failure is a result.
    pub async fn call(&self, tool: &str, arguments: &impl Serialize) -> Result<CallResult> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments })).await?;
        serde_json::from_value(result).map_err(|error| unreadable(&error))
    }

    /// Says goodbye and waits until it is said.
    pub async fn close(mut self) {
        self.peer.close(oarlock_wire::Close::new(1000, "done"));
        let _ = (&mut self.task).await;
    }

    /// The next notification; `None` when the connection is over.
    pub async fn notification(&mut self) -> Option<Notification> {
        self.notifications.recv().await
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.peer.close(oarlock_wire::Close::new(1000, "done"));
    }
}

fn unreadable(error: &impl std::fmt::Display) -> Error {
    Error::Answer { code: INTERNAL_ERROR.into(), message: error.to_string() }
}

struct Inbound {
    notifications: mpsc::Sender<Notification>,
}

impl Service for Inbound {
    fn request(
        &mut self,
        method: &str,
        _params: Option<&RawValue>,
        responder: Responder,
        _tasks: &mut Tasks,
    ) {
        match method {
            "ping" => responder.reply(&json!({})),
            _ => responder.error(&ErrorObject::method_not_found(method)),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, _tasks: &mut Tasks) {
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        if self.notifications.try_send(Notification { method: method.to_owned(), params }).is_err() {
            tracing::warn!(method, "a notification is dropped: nobody reads them");
        }
    }

    fn closed(&mut self, _ended: &Ended) {}
}
