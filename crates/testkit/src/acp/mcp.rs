//! A server of the Model Context Protocol over HTTP: the transport of today, and the one with server-sent events before it.
//!
//! Its tool `add` adds. Its tool `login`, which only the older transport can have here, sends the user to an address. It
//! serves one client, and only one that sends the header it was given.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinSet};

use crate::model::Request;
use crate::model::http::{read, respond};

/// The header that a client must send.
pub const HEADER: (&str, &str) = ("x-test-key", "open-sesame");
/// Where the tool `login` sends the user.
pub const ADDRESS: &str = "https://example.com/login";

/// How it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Each message is a request, and its answer the response.
    Http,
    /// Answers come in a stream of events.
    Sse,
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    transport: Transport,
    port: u16,
    serving: AbortHandle,
}

impl Server {
    /// Starts one on a free port of the loopback interface.
    pub async fn start(transport: Transport) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        // More than a test says; nothing is lost.
        let (events, _) = broadcast::channel(64);
        let desk = Arc::new(Desk { transport, events, login: Mutex::default() });
        Ok(Self { transport, port, serving: tokio::spawn(accept(listener, desk)).abort_handle() })
    }

    /// It, as `session/new` takes it.
    #[must_use]
    pub fn config(&self, name: &str) -> Value {
        let (kind, path) = match self.transport {
            Transport::Http => ("http", "mcp"),
            Transport::Sse => ("sse", "sse"),
        };
        let url = format!("http://127.0.0.1:{}/{path}", self.port);
        json!({"type": kind, "name": name, "url": url, "headers": [{"name": HEADER.0, "value": HEADER.1}]})
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What all connections share.
struct Desk {
    transport: Transport,
    events: broadcast::Sender<Value>,
    /// The call of `login` that waits for the user.
    login: Mutex<Option<Value>>,
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((socket, _)) = accepted {
                connections.spawn(serve(socket, Arc::clone(&desk)));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One request. A client that goes away is no fault.
async fn serve(mut socket: TcpStream, desk: Arc<Desk>) -> Result<()> {
    let Request { method, path, headers, body, .. } = read(&mut socket).await?;
    if !headers.iter().any(|(name, value)| (name.as_str(), value.as_str()) == HEADER) {
        return respond(&mut socket, 403, None).await;
    }
    match (method.as_str(), path.as_str(), desk.transport) {
        ("POST", "/mcp", Transport::Http) => match answer(&body) {
            Some(answer) => respond(&mut socket, 200, Some(answer)).await,
            None => respond(&mut socket, 202, None).await,
        },
        ("GET", "/sse", Transport::Sse) => stream(&mut socket, &desk).await,
        ("POST", "/messages", Transport::Sse) => {
            for message in desk.hear(&body) {
                // Without a listener there is nobody to tell.
                let _ = desk.events.send(message);
            }
            respond(&mut socket, 202, None).await
        }
        // A client may ask for a stream that this server does not have.
        _ => respond(&mut socket, 405, None).await,
    }
}

async fn stream(socket: &mut TcpStream, desk: &Desk) -> Result<()> {
    let mut events = desk.events.subscribe();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(format!("{head}event: endpoint\ndata: /messages\n\n").as_bytes()).await?;
    loop {
        let event = events.recv().await?;
        socket.write_all(format!("event: message\ndata: {event}\n\n").as_bytes()).await?;
    }
}

impl Desk {
    /// What a message leads to.
    fn hear(&self, message: &Value) -> Vec<Value> {
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        if message["params"]["name"] == "login" {
            *login = Some(message["id"].clone());
            let params =
                json!({"mode": "url", "message": "Log in", "url": ADDRESS, "elicitationId": "login-1"});
            return vec![
                json!({"jsonrpc": "2.0", "id": "login", "method": "elicitation/create", "params": params}),
            ];
        }
        if message["id"] == "login"
            && let Some(id) = login.take()
        {
            let done = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete",
                "params": {"elicitationId": "login-1"}});
            let told = if message["result"].is_null() { &message["error"] } else { &message["result"] };
            return vec![done, result(&id, says(&format!("login: {told}")))];
        }
        answer(message).into_iter().collect()
    }
}

fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The answer to a request; `None` for a notification.
fn answer(message: &Value) -> Option<Value> {
    let (id, params) = (message.get("id")?, &message["params"]);
    let number = || json!({"type": "number"});
    let answer = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "add", "description": "Adds",
                "inputSchema": {"type": "object", "properties": {"a": number(), "b": number()}}},
            {"name": "login", "description": "Logs in", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => {
            let sum: f64 = ["a", "b"].iter().filter_map(|name| params["arguments"][name].as_f64()).sum();
            says(&format!("the sum is {sum}"))
        }
        _ => json!({}),
    };
    Some(result(id, answer))
}
