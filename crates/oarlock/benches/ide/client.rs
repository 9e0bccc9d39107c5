//! The one client that all three servers see.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::server::Server;

/// A connected client that did the whole MCP handshake.
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    next_id: u64,
}

/// The upgrade request as the CLI sends it.
pub(crate) fn upgrade_request(server: &Server) -> Result<Request> {
    let mut request = format!("ws://127.0.0.1:{}/", server.port).into_client_request()?;
    let headers = request.headers_mut();
    headers.insert("Sec-WebSocket-Protocol", HeaderValue::from_static("mcp"));
    headers.insert("X-Claude-Code-Ide-Authorization", HeaderValue::from_str(&server.token)?);
    Ok(request)
}

impl Client {
    /// Connects and upgrades, no more.
    pub(crate) async fn connect(server: &Server) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).await.context("failed to connect")?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(16 << 10).write_buffer_size(16 << 10);
        let request = upgrade_request(server)?;
        let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config))
            .await
            .context("the upgrade was refused")?;
        Ok(Client { socket, next_id: 0 })
    }

    /// Connects and becomes ready, as the CLI does.
    pub(crate) async fn ready(server: &Server) -> Result<Client> {
        let mut client = Client::connect(server).await?;
        let who = json!({"name": "bench", "version": "0"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
        client.request("initialize", &params).await?;
        client.notify("notifications/initialized", &json!({})).await?;
        client.notify("ide_connected", &json!({"pid": std::process::id()})).await?;
        Ok(client)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await
    }

    /// Sends one request and returns its whole answer.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Utf8Bytes> {
        let id = self.id();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
            .await?;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, text: String) -> Result<()> {
        self.socket.send(Message::text(text)).await.context("failed to send")
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A small call as it goes over the wire.
    pub(crate) fn small_call(&mut self) -> String {
        let mut text = String::with_capacity(128);
        let _ = write!(
            text,
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"getWorkspaceFolders","arguments":{{}}}}}}"#,
            self.id()
        );
        text
    }

    /// An `openDiff` request with `contents`, which is JSON text already.
    pub(crate) fn open_diff(&mut self, contents: &str) -> String {
        let id = self.id();
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"openDiff","arguments":{{"old_file_path":"/w/a.rs","new_file_path":"/w/a.rs","new_file_contents":{contents},"tab_name":"a.rs {id}"}}}}}}"#
        )
    }

    /// `count` small calls, each after the answer to the one before.
    pub(crate) async fn call_one_by_one(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let call = self.small_call();
            self.send(call).await?;
            self.answer().await?;
        }
        Ok(())
    }

    /// `count` small calls in bursts of `window`: all of a burst are sent before its first answer is read.
    pub(crate) async fn call_in_bursts(&mut self, count: usize, window: usize) -> Result<()> {
        for _ in 0..count / window {
            for _ in 0..window {
                let call = self.small_call();
                self.socket.feed(Message::text(call)).await?;
            }
            self.socket.flush().await?;
            for _ in 0..window {
                self.answer().await?;
            }
        }
        Ok(())
    }

    /// The next answer. What the server says of its own accord is passed over; an error is an error.
    pub(crate) async fn answer(&mut self) -> Result<Utf8Bytes> {
        loop {
            let text = self.text().await?;
            if text.contains(r#""method":"#) {
                continue;
            }
            let failed = !text.contains(r#""result":"#) || text.contains(r#""isError":true"#);
            ensure!(!failed, "the server answered {}", text.chars().take(300).collect::<String>());
            return Ok(text);
        }
    }

    /// Reads until a `selection_changed` on `line` (from 0) has come.
    pub(crate) async fn selection_on(&mut self, line: usize) -> Result<()> {
        // Whether the line or the column comes first is the server's choice.
        let places = [format!(r#""line":{line},"#), format!(r#""line":{line}}}"#)];
        loop {
            let text = self.text().await?;
            if text.contains(r#""selection_changed""#) && places.iter().any(|place| text.contains(place)) {
                return Ok(());
            }
        }
    }

    /// The next text, whatever it says.
    pub(crate) async fn text(&mut self) -> Result<Utf8Bytes> {
        loop {
            match self.socket.next().await.context("the server closed the connection")?? {
                Message::Text(text) => return Ok(text),
                Message::Close(frame) => bail!("the server closed the connection: {frame:?}"),
                _ => {}
            }
        }
    }

    /// Closes as the protocol wants it.
    pub(crate) async fn close(mut self) -> Result<()> {
        self.socket.close(None).await?;
        while let Some(Ok(_)) = self.socket.next().await {}
        Ok(())
    }

    /// The bare connection below, for those who mean to misuse it.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.socket.into_inner()
    }
}
