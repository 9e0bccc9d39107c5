//! One HTTP/1.1 request on one connection, and its answer: JSON or a stream of server-sent events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::script::{self, Block};
use super::{Request, Stage, lock};

const MOST_HEAD: usize = 64 << 10;
const MOST_BODY: usize = 64 << 20;

static MESSAGES: AtomicU64 = AtomicU64::new(1);

/// Serves one request. A client that goes away early is no fault: interrupting is what people do.
pub(super) async fn serve(mut socket: TcpStream, stage: Arc<Stage>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut request = read(&mut socket).await?;
    let (method, path) = (request.method.clone(), request.path.clone());
    let is_message = method == "POST" && path.split('?').next() == Some("/v1/messages");
    if !is_message {
        stage.requests.push(request);
        return match (method.as_str(), path.contains("count_tokens")) {
            ("HEAD", _) => respond(&mut socket, 200, None).await,
            ("POST", true) => respond(&mut socket, 200, Some(json!({"input_tokens": 42}))).await,
            ("POST", false) => respond(&mut socket, 200, Some(json!({}))).await,
            _ => respond(&mut socket, 200, Some(json!({"data": [], "has_more": false}))).await,
        };
    }
    let (turn, blocks) = script::plan(&request.body, &lock(&stage.scripts));
    request.turn.clone_from(&turn);
    let model = request.body["model"].clone();
    let streams = request.body["stream"] == true;
    let refusal = turn.and_then(|turn| refusal(&stage, (turn.script, turn.number), &blocks));
    stage.requests.push(request);
    if let Some(status) = refusal {
        let error = json!({"type": kind(status), "message": "an error of the script"});
        return respond(&mut socket, status, Some(json!({"type": "error", "error": error}))).await;
    }
    let id = format!("msg_{:016}", MESSAGES.fetch_add(1, Ordering::Relaxed));
    let message = script::message(&id, &model, &blocks);
    if streams {
        stream(&mut socket, &stage, message, &blocks).await
    } else {
        respond(&mut socket, 200, Some(message)).await
    }
}

/// The status of an `Error` block that has not been used up.
fn refusal(stage: &Stage, turn: (String, usize), blocks: &[Block]) -> Option<u16> {
    let (status, times) = blocks.iter().find_map(|block| match block {
        Block::Error { error, times } => Some((*error, *times)),
        _ => None,
    })?;
    let mut errors = lock(&stage.errors);
    let given = errors.entry(turn).or_default();
    *given += 1;
    times.is_none_or(|times| *given <= times).then_some(status)
}

/// The API's name for an error of this status.
fn kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

pub(crate) async fn read(socket: &mut TcpStream) -> Result<Request> {
    let mut bytes = Vec::with_capacity(16 << 10);
    loop {
        ensure!(socket.read_buf(&mut bytes).await? > 0, "the request ended within its head");
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut head = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(&bytes).context("the request is not HTTP/1.1")?
        else {
            ensure!(bytes.len() < MOST_HEAD, "the request's head is too long");
            continue;
        };
        let headers: Vec<(String, String)> = head
            .headers
            .iter()
            .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
            .collect();
        let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        if header("transfer-encoding").is_some() {
            bail!("a request with Transfer-Encoding is not understood");
        }
        let body_length: usize =
            header("content-length").unwrap_or("0").parse().context("bad Content-Length")?;
        ensure!(body_length <= MOST_BODY, "the request's body is too long");
        let (method, path) =
            (head.method.unwrap_or_default().to_owned(), head.path.unwrap_or_default().to_owned());
        let mut body = bytes.split_off(length);
        body.reserve(body_length.saturating_sub(body.len()));
        while body.len() < body_length {
            ensure!(socket.read_buf(&mut body).await? > 0, "the request ended within its body");
        }
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        return Ok(Request { method, path, headers, body, turn: None });
    }
}

pub(crate) async fn respond(socket: &mut TcpStream, status: u16, body: Option<Value>) -> Result<()> {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(socket.shutdown().await?)
}

async fn stream(socket: &mut TcpStream, stage: &Stage, message: Value, blocks: &[Block]) -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let id = message["id"].as_str().unwrap_or_default().to_owned();
    let mut started = message;
    started["content"] = json!([]);
    started["stop_reason"] = Value::Null;
    send(socket, json!({"type": "message_start", "message": started})).await?;
    let mut index = 0;
    for (number, block) in blocks.iter().enumerate() {
        match block {
            Block::Pause { pause } => tokio::time::sleep(Duration::from_millis(*pause)).await,
            Block::Hold { hold } => {
                let mut released = stage.released.subscribe();
                released.wait_for(|released| released.contains(hold)).await?;
            }
            Block::Break { .. } => return Ok(()),
            _ => {}
        }
        let Some(content) = script::content(&id, number, block) else { continue };
        let (start, mut deltas) = deltas(content);
        if let Block::Pieces { pieces } = block {
            deltas = pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        }
        send(socket, json!({"type": "content_block_start", "index": index, "content_block": start})).await?;
        for delta in deltas {
            send(socket, json!({"type": "content_block_delta", "index": index, "delta": delta})).await?;
        }
        send(socket, json!({"type": "content_block_stop", "index": index})).await?;
        index += 1;
    }
    let delta = json!({"stop_reason": script::stop_reason(blocks), "stop_sequence": null});
    send(socket, json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}})).await?;
    send(socket, json!({"type": "message_stop"})).await?;
    Ok(socket.shutdown().await?)
}

async fn send(socket: &mut TcpStream, event: Value) -> Result<()> {
    let name = event["type"].as_str().unwrap_or_default();
    Ok(socket.write_all(format!("event: {name}\ndata: {event}\n\n").as_bytes()).await?)
}

/// A content block as it starts, empty, and the deltas that fill it.
fn deltas(mut block: Value) -> (Value, Vec<Value>) {
    let take = |block: &mut Value, key: &str, empty: Value| std::mem::replace(&mut block[key], empty);
    match block["type"].as_str() {
        Some("text") => {
            let text = take(&mut block, "text", json!(""));
            (block, pieces(&text).map(|piece| json!({"type": "text_delta", "text": piece})).collect())
        }
        Some("thinking") => {
            let thinking = take(&mut block, "thinking", json!(""));
            let signature = take(&mut block, "signature", json!(""));
            let mut deltas: Vec<Value> =
                pieces(&thinking).map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
            (block, deltas)
        }
        _ => {
            let input = json!(take(&mut block, "input", json!({})).to_string());
            (
                block,
                pieces(&input)
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect(),
            )
        }
    }
}

/// A text in several pieces, as a model streams it; a long one in longer pieces.
fn pieces(text: &Value) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
    let size = (characters.len() / 64).max(12);
    let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
