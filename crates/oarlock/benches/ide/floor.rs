//! The floor: a bare tokio-tungstenite loop that parses the envelope and answers a constant inline. Nothing
//! that speaks JSON-RPC over a WebSocket can do less.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::Message;

use crate::socket::{self, Select, Socket};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

pub(crate) async fn serve(lock_dir: &Path, reply: &str) -> Result<()> {
    let reply: Arc<str> = reply.into();
    // No client lags: the benchmark reads each change before it makes the next.
    let changes = broadcast::Sender::new(16);
    let listener = socket::listen(lock_dir).await?;
    loop {
        let stream = socket::accept(&listener).await?;
        let (reply, changes) = (Arc::clone(&reply), changes.clone());
        tokio::spawn(async move {
            // A client that fails ends its own task; the benchmark's client reports why.
            let _ = answer_all(socket::upgrade(stream).await?, &reply, changes).await;
            anyhow::Ok(())
        });
    }
}

async fn answer_all(mut socket: Socket, reply: &str, changes: broadcast::Sender<usize>) -> Result<()> {
    let mut changed = changes.subscribe();
    loop {
        let message = tokio::select! {
            message = socket.next() => message,
            line = changed.recv() => {
                let params = socket::selection(line?);
                let text = format!(r#"{{"jsonrpc":"2.0","method":"selection_changed","params":{params}}}"#);
                socket.send(Message::text(text)).await?;
                continue;
            }
        };
        let Some(message) = message else { return Ok(()) };
        let Message::Text(text) = message? else { continue };
        let envelope: Envelope<'_> = serde_json::from_str(&text)?;
        let (Some(id), Some(method)) = (envelope.id, envelope.method) else { continue };
        if let (socket::SELECT, Some(params)) = (method, envelope.params) {
            changes.send(serde_json::from_str::<Select>(params.get())?.line)?;
        }
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{reply}}}"#, id.get());
        socket.send(Message::text(answer)).await?;
    }
}
