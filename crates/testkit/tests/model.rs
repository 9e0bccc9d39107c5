//! The scripted model API, spoken to over its socket.

use std::time::Duration;

use anyhow::{Context, Result};
use oarlock_testkit::model::{Block, Model, Script, hold, text, thinking, tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(5);

async fn post(model: &Model, body: Value) -> Result<String> {
    let address = model.base_url().strip_prefix("http://").context("not an http URL")?;
    let mut socket = TcpStream::connect(address).await?;
    let body = body.to_string();
    let head =
        format!("POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn ask(prompt: &str, stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "tools": [{"name": "Read"}], "messages": [{"role": "user", "content": prompt}]})
}

fn events(answer: &str) -> Result<Vec<Value>> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| Ok(serde_json::from_str(data)?)).collect()
}

#[tokio::test]
async fn a_turn_is_streamed_and_its_pieces_add_up() {
    let model = Model::start().await.unwrap();
    let said = "é".repeat(100);
    let script =
        Script::new().turn([thinking("hm"), text(&said), tool("Read", json!({"file_path": "/a b"}))]);
    let events = events(&post(&model, ask(&model.script("s", script), true)).await.unwrap()).unwrap();
    let joined =
        |key: &str| -> String { events.iter().filter_map(|event| event["delta"][key].as_str()).collect() };
    assert_eq!(joined("text"), said);
    assert_eq!(joined("thinking"), "hm");
    assert_eq!(serde_json::from_str::<Value>(&joined("partial_json")).unwrap(), json!({"file_path": "/a b"}));
    assert_eq!(joined("stop_reason"), "tool_use");
    assert_eq!(events.first().unwrap()["type"], "message_start");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    assert!(model.requests()[0].is_turn("s", 0));
}

#[tokio::test]
async fn an_unstreamed_request_gets_a_message() {
    let model = Model::start().await.unwrap();
    let answer =
        post(&model, ask(&model.script("s", Script::new().turn([text("hello")])), false)).await.unwrap();
    let message: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(message["content"], json!([{"type": "text", "text": "hello"}]));
    assert_eq!(message["stop_reason"], "end_turn");
}

#[tokio::test]
async fn an_error_is_given_as_often_as_the_script_says() {
    let model = Model::start().await.unwrap();
    let script = Script::new().turn([Block::Error { error: 529, times: Some(2) }, text("at last")]);
    let prompt = model.script("s", script);
    for _ in 0..2 {
        let answer = post(&model, ask(&prompt, true)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 529 ") && answer.contains("overloaded_error"), "{answer}");
    }
    assert!(post(&model, ask(&prompt, true)).await.unwrap().contains("at last"));
}

#[tokio::test]
async fn a_held_turn_waits_for_its_release() {
    let model = Model::start().await.unwrap();
    let prompt = model.script("s", Script::new().turn([hold("gate"), text("through")]));
    let asking = post(&model, ask(&prompt, true));
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => panic!("the gate was open: {answer:?}"),
        turn = model.turn("s", 0, SOON) => { turn.unwrap(); }
    }
    model.release("gate");
    assert!(asking.await.unwrap().contains("through"));
}

#[tokio::test]
async fn a_broken_stream_has_no_end() {
    let model = Model::start().await.unwrap();
    let prompt =
        model.script("s", Script::new().turn([text("half"), Block::Break { r#break: true }, text("other")]));
    let answer = post(&model, ask(&prompt, true)).await.unwrap();
    assert!(
        answer.contains("half") && !answer.contains("other") && !answer.contains("message_stop"),
        "{answer}"
    );
}
