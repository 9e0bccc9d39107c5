//! An ordinary MCP client over [`ws`](crate::ws): what the CLI does, without the CLI.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::record::Record;
use crate::ws::{Frame, Handshake, Message, Socket};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// A connected MCP client. Pings and other requests of the server are answered; all else it says is recorded.
#[derive(Debug)]
pub struct McpClient {
    outgoing: mpsc::Sender<Outgoing>,
    incoming: Record<Value>,
    next_id: AtomicI64,
    pump: AbortHandle,
}

type Outgoing = (Frame, oneshot::Sender<Result<()>>);

impl McpClient {
    /// Connects to `port` with the token of its lock file. Nothing is sent yet.
    pub async fn connect(port: u16, token: &str) -> Result<Self> {
        Ok(Self::over(Handshake::new(port, token).connect().await?))
    }

    /// Speaks over a socket that is already open.
    #[must_use]
    pub fn over(socket: Socket) -> Self {
        // One frame at a time: whoever sends waits until it is written.
        let (outgoing, queue) = mpsc::channel(1);
        let incoming = Record::default();
        let pump = tokio::spawn(pump(socket, queue, incoming.clone())).abort_handle();
        Self { outgoing, incoming, next_id: AtomicI64::new(0), pump }
    }

    /// `initialize` and `notifications/initialized`, as the CLI sends them. Returns the server's answer.
    pub async fn initialize(&self) -> Result<Value> {
        let client = json!({"name": "claude-code", "title": "Claude Code", "version": "2.1.325"});
        let answer = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"roots": {"listChanged": true}, "elicitation": {}},
                    "clientInfo": client,
                }),
            )
            .await?;
        self.notify("notifications/initialized", Value::Null).await?;
        Ok(answer)
    }

    /// Says that this is an IDE client, with our own process id.
    pub async fn ide_connected(&self) -> Result<()> {
        self.notify("ide_connected", json!({"pid": std::process::id()})).await
    }

    /// Calls a tool and returns its result, which may be an error result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a request and returns its result; a JSON-RPC error is an error.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value> {
        let id = self.start(method, params).await?;
        self.answer(id, PATIENCE).await
    }

    /// Sends a request without waiting for its answer. Returns its id for [`McpClient::answer`].
    pub async fn start(&self, method: &str, params: Value) -> Result<i64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message).await?;
        Ok(id)
    }

    /// The result of the request `id`; a JSON-RPC error is an error.
    pub async fn answer(&self, id: i64, within: Duration) -> Result<Value> {
        let message = self
            .message(&format!("the answer to request {id}"), within, |m| {
                m["id"] == id && m.get("method").is_none()
            })
            .await?;
        match message.get("error") {
            Some(error) => bail!("request {id} was answered with the error {error}"),
            None => Ok(message["result"].clone()),
        }
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message).await
    }

    /// Sends any message.
    pub async fn send(&self, message: &Value) -> Result<()> {
        self.send_frame(Frame::text(&message.to_string())).await
    }

    /// Sends any frame.
    pub async fn send_frame(&self, frame: Frame) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.outgoing.send((frame, done)).await.ok().context("the connection has ended")?;
        written.await.context("the connection has ended")?
    }

    /// The first message of the server, past or future, for which `wanted` holds. Its end is recorded as
    /// `{"closed": [code, reason]}` or `{"closed": null}`.
    pub async fn message(
        &self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        self.incoming.wait_for(what, within, wanted).await
    }

    /// The params of the first notification `method`, past or future.
    pub async fn notification(&self, method: &str, within: Duration) -> Result<Value> {
        let message =
            self.message(&format!("a notification {method}"), within, |m| m["method"] == method).await?;
        Ok(message["params"].clone())
    }

    /// Everything that the server has sent.
    #[must_use]
    pub fn received(&self) -> &Record<Value> {
        &self.incoming
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// Owns the socket: writes what is queued, records what comes, answers what the server asks.
async fn pump(socket: Socket, mut queue: mpsc::Receiver<Outgoing>, incoming: Record<Value>) {
    let (mut reader, mut writer) = socket.split();
    loop {
        let answer = tokio::select! {
            outgoing = queue.recv() => {
                let Some((frame, done)) = outgoing else { break };
                // The sender may have given up waiting.
                let _ = done.send(writer.send(&frame).await);
                None
            }
            message = reader.next_message() => match message {
                Ok(Message::Ping(payload)) => Some(Frame::new(10, payload)),
                Ok(Message::Text(text)) => {
                    let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({"notJson": text}));
                    let is_request = value.get("method").is_some() && value.get("id").is_some();
                    let answer = is_request.then(|| Frame::text(&reply(&value).to_string()));
                    incoming.push(value);
                    answer
                }
                Ok(Message::Binary(bytes)) => {
                    incoming.push(json!({"notText": bytes.len()}));
                    None
                }
                Ok(Message::Close(reason)) => {
                    incoming.push(json!({"closed": reason}));
                    break;
                }
                Ok(Message::End) | Err(_) => {
                    incoming.push(json!({"closed": null}));
                    break;
                }
            },
        };
        // A failed write shows as the end of reading.
        if let Some(frame) = answer {
            let _ = writer.send(&frame).await;
        }
    }
    incoming.end();
}

/// What the CLI answers to a request of the server.
fn reply(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("ping") => json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}),
        _ => json!({
            "jsonrpc": "2.0", "id": request["id"],
            "error": {"code": -32601, "message": "Method not found"},
        }),
    }
}
