//! The other end of a session's pipes, spoken by hand.

#![allow(dead_code)]

use std::time::Duration;

use oarlock_agent::transport::Transport;
use oarlock_agent::{Error, Events, Options, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

/// A CLI made of two pipes.
pub(crate) struct Cli {
    heard: Option<Lines<BufReader<DuplexStream>>>,
    says: Option<DuplexStream>,
}

/// Pipes of the size of real ones.
pub(crate) fn pipes() -> (Transport, Cli) {
    let (stdout, says) = tokio::io::duplex(64 << 10);
    let (stdin, heard) = tokio::io::duplex(64 << 10);
    (Transport::new(stdout, stdin), Cli { heard: Some(BufReader::new(heard).lines()), says: Some(says) })
}

/// A session that has begun.
pub(crate) async fn session(options: Options) -> (Session, Events, Cli) {
    let (transport, mut cli) = pipes();
    let (connected, ()) = tokio::join!(options.connect_over(transport), cli.initialize());
    let (session, events) = connected.expect("connected");
    (session, events, cli)
}

impl Cli {
    /// The next line that was sent.
    pub(crate) async fn hear(&mut self) -> Value {
        self.hear_or_end().await.expect("stdin is open")
    }

    /// The next line, or `None` when stdin is closed.
    pub(crate) async fn hear_or_end(&mut self) -> Option<Value> {
        let line = self.heard.as_mut().expect("it listens").next_line().await.expect("text");
        line.map(|line| serde_json::from_str(&line).expect("JSON"))
    }

    pub(crate) async fn initialize(&mut self) {
        let request = self.hear_request("initialize").await;
        self.answer(
            &request,
            json!({"commands": [], "models": [], "agents": [], "claude_code_version": "9.9"}),
        )
        .await;
    }

    /// The next line, which must be this request.
    pub(crate) async fn hear_request(&mut self, subtype: &str) -> Value {
        let line = self.hear().await;
        assert_eq!(line["type"], "control_request", "{line}");
        assert_eq!(line["request"]["subtype"], subtype, "{line}");
        line
    }

    pub(crate) async fn answer(&mut self, request: &Value, response: Value) {
        let response =
            json!({"subtype": "success", "request_id": request["request_id"], "response": response});
        self.say(json!({"type": "control_response", "response": response})).await;
    }

    /// Asks the program something.
    pub(crate) async fn ask(&mut self, id: &str, request: Value) {
        self.say(json!({"type": "control_request", "request_id": id, "request": request})).await;
    }

    /// The answer to a question, which must be the next line.
    pub(crate) async fn hear_answer(&mut self, id: &str) -> Value {
        let line = self.hear().await;
        assert_eq!(line["type"], "control_response", "{line}");
        assert_eq!(line["response"]["request_id"], id, "{line}");
        line["response"].clone()
    }

    pub(crate) async fn say(&mut self, line: Value) {
        self.say_raw(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn say_raw(&mut self, bytes: &[u8]) {
        self.says.as_mut().expect("stdout is open").write_all(bytes).await.expect("somebody reads");
    }

    pub(crate) async fn state(&mut self, state: &str) {
        self.say(json!({"type": "system", "subtype": "session_state_changed", "state": state})).await;
    }

    pub(crate) async fn result(&mut self) {
        self.say(json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "num_turns": 1})).await;
    }

    /// Closes its end of stdin.
    pub(crate) fn stop_listening(&mut self) {
        self.heard = None;
    }

    /// Closes stdout.
    pub(crate) fn fall_silent(&mut self) {
        self.says = None;
    }
}

pub(crate) fn delta(text: &str) -> Value {
    json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": text}}, "session_id": "s", "parent_tool_use_id": null, "uuid": "u"})
}

/// Waits for something that must happen soon.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it takes too long")
}

/// The tags of all messages to the end, errors as their text.
pub(crate) async fn tags(mut events: Events) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(item) = events.next().await {
        all.push(match item {
            Ok(message) => message.tag().to_owned(),
            Err(error) => format!("! {error}"),
        });
    }
    all
}

pub(crate) fn is_exited(error: &Error) -> bool {
    matches!(error, Error::Exited(_))
}
