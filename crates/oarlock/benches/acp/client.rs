//! A client of the protocol: raw lines, with the capabilities of Zed.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::process::Process;

pub(crate) struct Client {
    pub(crate) process: Process,
    next_id: u64,
}

/// A request and all that came until its answer.
pub(crate) struct Exchange {
    pub(crate) result: Value,
    pub(crate) sent: Instant,
    pub(crate) answered: Instant,
    /// When the model's first words came.
    pub(crate) first_text: Option<Instant>,
    /// Everything that came, the answer included.
    pub(crate) bytes: usize,
    pub(crate) lines: Vec<String>,
}

impl Exchange {
    /// From the request to the answer, in seconds.
    pub(crate) fn time(&self) -> f64 {
        (self.answered - self.sent).as_secs_f64()
    }

    /// The texts of all updates: of content, and of diffs the whole.
    pub(crate) fn holds(&self, text: &str) -> bool {
        // As JSON, without the quotes.
        let text = json!(text).to_string();
        let text = &text[1..text.len() - 1];
        self.lines.iter().any(|line| line.contains(text))
    }
}

/// What tells one message from another.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    result: Option<IgnoredAny>,
}

impl Client {
    pub(crate) fn start(command: Command) -> Result<Self> {
        Ok(Self { process: Process::start(command)?, next_id: 0 })
    }

    pub(crate) fn initialize(&mut self) -> Result<Exchange> {
        self.call(
            "initialize",
            json!({
                "protocolVersion": 1,
                "clientInfo": {"name": "zed", "title": "Zed", "version": "0.214.0"},
                "clientCapabilities": {
                    "fs": {"readTextFile": true, "writeTextFile": true},
                    "terminal": true,
                    "auth": {"terminal": true},
                    "session": {"configOptions": {"boolean": {}}},
                    "_meta": {"terminal_output": true, "terminal-auth": true},
                },
            }),
        )
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<Exchange> {
        let prompt = json!([{"type": "text", "text": text}]);
        let exchange = self.call("session/prompt", json!({"sessionId": session, "prompt": prompt}))?;
        ensure!(exchange.result["stopReason"] == "end_turn", "the turn ended with {}", exchange.result);
        Ok(exchange)
    }

    /// Sends a request, and answers those of the other side until its answer comes.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Exchange> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let sent = self.process.send(&request)?;
        let (mut first_text, mut bytes, mut lines) = (None, 0, Vec::new());
        loop {
            let line = self.process.next().with_context(|| format!("waiting for the answer to {method}"))?;
            bytes += line.text.len();
            if first_text.is_none() && line.text.contains("agent_message_chunk") {
                first_text = Some(line.at);
            }
            let head: Head =
                serde_json::from_str(&line.text).with_context(|| format!("not a message: {}", line.text))?;
            let is_answer = head.method.is_none() && head.id == Some(id.into());
            if let (Some(method), Some(id)) = (head.method, head.id) {
                let answer = answer(&method, id, &line.text)?;
                self.process.send(&answer)?;
            }
            lines.push(line.text);
            if is_answer {
                ensure!(head.result.is_some(), "{method} was answered with {:?}", head.error);
                let answer: Value = serde_json::from_str(lines.last().context("just added")?)?;
                let result = answer["result"].clone();
                return Ok(Exchange { result, sent, answered: line.at, first_text, bytes, lines });
            }
        }
    }
}

/// Allows what is asked for, once.
fn answer(method: &str, id: Value, text: &str) -> Result<Value> {
    if method != "session/request_permission" {
        let error = json!({"code": -32601, "message": "not here"});
        return Ok(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
    let request: Value = serde_json::from_str(text)?;
    let options = request["params"]["options"].as_array().context("a permission request without options")?;
    let allow = options.iter().find(|option| option["kind"] == "allow_once").context("no allow_once")?;
    let outcome = json!({"outcome": "selected", "optionId": allow["optionId"]});
    Ok(json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
}
