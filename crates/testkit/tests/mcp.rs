//! The hand-written clients against a server made with another library.

use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use oarlock_testkit::mcp::McpClient;
use oarlock_testkit::ws::{Frame, Handshake, Message};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message as Theirs;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};

const SOON: Duration = Duration::from_secs(5);

/// A server for one client, which is treated by `serve`.
async fn server<F>(serve: impl FnOnce(WebSocketStream<TcpStream>) -> F + Send + 'static) -> Result<u16>
where
    F: Future<Output = Result<()>> + Send,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await?;
        serve(accept_async(socket).await?).await
    });
    Ok(port)
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Result<Value> {
    let message = socket.next().await.context("the client has gone")??;
    Ok(serde_json::from_str(message.to_text()?)?)
}

async fn say(socket: &mut WebSocketStream<TcpStream>, message: Value) -> Result<()> {
    Ok(socket.send(Theirs::text(message.to_string())).await?)
}

#[tokio::test]
async fn a_client_asks_answers_pings_and_records_notifications() {
    let port = server(|mut socket| async move {
        let asked = next(&mut socket).await?;
        say(&mut socket, json!({"jsonrpc": "2.0", "method": "selection_changed", "params": {"text": "é"}}))
            .await?;
        say(&mut socket, json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await?;
        let pong = next(&mut socket).await?;
        say(
            &mut socket,
            json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"asked": asked, "pong": pong}}),
        )
        .await?;
        let asked = next(&mut socket).await?;
        let error = json!({"code": -32601, "message": "no such method"});
        say(&mut socket, json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await?;
        let reason = CloseFrame { code: 1001.into(), reason: "bye".into() };
        Ok(socket.close(Some(reason)).await?)
    });
    let client = McpClient::connect(port.await.unwrap(), "t").await.unwrap();
    let answer = client.call("openFile", json!({"filePath": "/a"})).await.unwrap();
    assert_eq!(answer["asked"]["params"], json!({"name": "openFile", "arguments": {"filePath": "/a"}}));
    assert_eq!(answer["pong"], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(client.notification("selection_changed", SOON).await.unwrap(), json!({"text": "é"}));
    let error = client.request("nothing", Value::Null).await.unwrap_err();
    assert!(error.to_string().contains("no such method"), "{error}");
    let closed = client.message("the close", SOON, |m| m.get("closed").is_some()).await.unwrap();
    assert_eq!(closed, json!({"closed": [1001, "bye"]}));
    assert!(client.request("more", Value::Null).await.is_err());
}

#[tokio::test]
async fn fragments_long_messages_and_half_open_sockets_work_both_ways() {
    let port = server(|mut socket| async move {
        while let Some(message) = socket.next().await {
            match message? {
                Theirs::Close(_) => break,
                message @ Theirs::Text(_) => {
                    socket.send(Theirs::Ping(b"still there?".to_vec().into())).await?;
                    socket.send(message).await?;
                }
                _ => {}
            }
        }
        Ok(())
    });
    let mut socket = Handshake::new(port.await.unwrap(), "t").connect().await.unwrap();
    socket.send(&Frame::text("in ").unfinished()).await.unwrap();
    socket.send(&Frame::new(0, "pieces")).await.unwrap();
    assert_eq!(socket.next(SOON).await.unwrap(), Message::Text("in pieces".to_owned()));
    let long = "x".repeat(3 << 20);
    socket.send_text(&long).await.unwrap();
    assert_eq!(socket.next(SOON).await.unwrap(), Message::Text(long));
    socket.half_close().await.unwrap();
    assert_eq!(socket.next(SOON).await.unwrap(), Message::End);
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_status_and_body() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await?;
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            tokio::io::AsyncReadExt::read_buf(&mut socket, &mut seen).await?;
        }
        socket.write_all(b"HTTP/1.1 403 Forbidden\r\nX-Why: origin\r\n\r\nno Origin, please").await
    });
    let answer = Handshake::new(port, "t").and("Origin", "http://evil").send().await.unwrap();
    assert_eq!(
        (answer.status, answer.header("x-why"), answer.body.as_str()),
        (403, Some("origin"), "no Origin, please")
    );
    assert!(answer.accepted().is_none());
}
