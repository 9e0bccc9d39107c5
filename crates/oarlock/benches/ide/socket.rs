//! The socket code that the floor and rmcp share, set up with the same care as ours.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

// The sizes that our own connections have; tungstenite's 128 KiB each way would make memory per client a
// comparison of defaults.
const READ_BUFFER: usize = 16 * 1024;
const WRITE_BUFFER: usize = 4 * 1024;

/// A connection after its handshake.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// Listens on a free port and says so by a lock file, as our server does.
pub(crate) async fn listen(lock_dir: &Path) -> Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("failed to bind 127.0.0.1")?;
    let port = listener.local_addr()?.port();
    // A reader must never see half a lock, so it appears by renaming.
    let draft = lock_dir.join("draft");
    std::fs::write(&draft, r#"{"authToken":"none"}"#)?;
    std::fs::rename(draft, lock_dir.join(format!("{port}.lock")))?;
    Ok(listener)
}

/// Accepts one connection; the handshake is the caller's, in a task of its own.
pub(crate) async fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept().await.context("failed to accept")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Upgrades to WebSocket with the subprotocol `mcp`.
pub(crate) async fn upgrade(stream: TcpStream) -> Result<Socket> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(64 << 20))
        .max_frame_size(Some(64 << 20));
    #[expect(clippy::result_large_err, reason = "tungstenite fixes the type of the callback")]
    let answer = |_: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        response.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static("mcp"));
        Ok(response)
    };
    tokio_tungstenite::accept_hdr_async_with_config(stream, answer, Some(config))
        .await
        .context("no handshake")
}

/// The extra request of the peers: all their clients are told that the selection is on that line.
pub(crate) const SELECT: &str = "bench/select";

/// Its parameters.
#[derive(serde::Deserialize)]
pub(crate) struct Select {
    pub(crate) line: usize,
}

/// The parameters of the peers' `selection_changed`, of the size that ours have.
pub(crate) fn selection(line: usize) -> String {
    format!(
        r#"{{"text":"","filePath":"/tmp/.tmpAbCdEf/workspace/a.rs","fileUrl":"file:///tmp/.tmpAbCdEf/workspace/a.rs","selection":{{"start":{{"line":{line},"character":0}},"end":{{"line":{line},"character":0}},"isEmpty":true}}}}"#
    )
}
