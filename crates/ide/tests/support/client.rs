//! A small MCP client over [`Socket`], which keeps account of every request and every answer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::socket::{Frame, Socket, Upgrade};
use super::within;

pub(crate) struct Client {
    pub(crate) socket: Socket,
    /// Whether the engine's pings are answered.
    pub(crate) answers_pings: bool,
    inbox: VecDeque<Value>,
    next_id: u64,
    asked: Vec<Value>,
    /// How often each request was answered, by the text of its id.
    answers: BTreeMap<String, usize>,
    /// Everything that came, for those who look for what must not be there.
    pub(crate) heard: Vec<String>,
}

impl Client {
    pub(crate) async fn connect(port: u16, handshake: &Upgrade) -> Self {
        let mut socket = Socket::connect(port).await;
        let answer = socket.upgrade(handshake).await;
        assert_eq!(answer.status, 101, "{}", answer.body);
        Self {
            socket,
            answers_pings: true,
            inbox: VecDeque::new(),
            next_id: 0,
            asked: Vec::new(),
            answers: BTreeMap::new(),
            heard: Vec::new(),
        }
    }

    pub(crate) async fn initialize(&mut self) {
        let info = json!({ "name": "claude-code", "title": "Claude Code", "version": "2.1.325" });
        let capabilities = json!({ "roots": {}, "elicitation": {} });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let answer = self.request("initialize", params).await;
        assert!(answer["result"].is_object(), "{answer}");
        self.notify("notifications/initialized", Value::Null).await;
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        if message.get("method").is_some() && message.get("id").is_some() {
            self.asked.push(message["id"].clone());
        }
        self.socket.send_text(&message.to_string()).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&envelope(None, method, params)).await;
    }

    /// Sends a request and does not wait; its id.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(&envelope(Some(&id), method, params)).await;
        id
    }

    pub(crate) async fn ask_tool(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(&id).await
    }

    /// Calls a tool; the whole answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.ask_tool(tool, arguments).await;
        self.answer(&id).await
    }

    pub(crate) async fn ping(&mut self) {
        let answer = self.request("ping", Value::Null).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// Takes one message from the socket; `Err` when the connection ends instead.
    async fn read(&mut self) -> Result<Value, Option<Frame>> {
        let text = self.socket.message().await?;
        let message: Value = serde_json::from_str(&text).unwrap();
        self.heard.push(text);
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message.get("method").is_none() {
            *self.answers.entry(message["id"].to_string()).or_default() += 1;
        } else if message["method"] == "ping" && self.answers_pings {
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} })).await;
        }
        Ok(message)
    }

    /// The first message that fits; others wait for those who ask for them.
    async fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.inbox.iter().position(&fits) {
            return self.inbox.remove(at).unwrap();
        }
        let found = async {
            loop {
                match self.read().await {
                    Ok(message) if fits(&message) => return message,
                    Ok(message) => self.inbox.push_back(message),
                    Err(end) => panic!("the connection ended while waiting for {what}: {end:?}"),
                }
            }
        };
        within(what, found).await
    }

    /// The next message, whatever it is.
    pub(crate) async fn receive(&mut self) -> Value {
        self.find("a message", |_| true).await
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: &Value) -> Value {
        let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == *id;
        self.find(&format!("the answer to {id}"), is_answer).await
    }

    /// The parameters of the next notification with this method.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        let mut message = self.find(method, |message| message["method"] == method).await;
        message["params"].take()
    }

    /// Everything with this method that came by now and comes within `time`.
    pub(crate) async fn notifications(&mut self, method: &str, time: Duration) -> Vec<Value> {
        let end = tokio::time::Instant::now() + time;
        while let Ok(message) = tokio::time::timeout_at(end, self.read()).await {
            let message = message.unwrap_or_else(|end| panic!("the connection ended: {end:?}"));
            self.inbox.push_back(message);
        }
        let (wanted, others) =
            std::mem::take(&mut self.inbox).into_iter().partition(|message| message["method"] == method);
        self.inbox = others;
        wanted.into_iter().map(|mut message: Value| message["params"].take()).collect()
    }

    /// The close frame, after whatever still comes; `None` when the connection just ends.
    pub(crate) async fn closed(&mut self) -> Option<(u16, String)> {
        within("the end of the connection", async {
            loop {
                match self.read().await {
                    Ok(message) => self.inbox.push_back(message),
                    Err(frame) => return frame.map(|frame| frame.close()),
                }
            }
        })
        .await
    }

    /// Takes what is on its way, by a last ping, and holds the account: every request was answered exactly once, and
    /// nothing else was.
    pub(crate) async fn settle_accounts(&mut self) {
        self.ping().await;
        self.assert_one_answer_each();
    }

    pub(crate) fn assert_one_answer_each(&self) {
        let mut wanted = BTreeMap::new();
        for id in &self.asked {
            *wanted.entry(id.to_string()).or_insert(0) += 1;
        }
        assert_eq!(self.answers, wanted);
    }
}

fn envelope(id: Option<&Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(id) = id {
        message["id"] = id.clone();
    }
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

/// The texts of a tool's successful answer.
pub(crate) fn texts(answer: &Value) -> Vec<&str> {
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no result: {answer}"));
    content.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

/// The one text of a tool's successful answer.
pub(crate) fn text(answer: &Value) -> &str {
    let texts = texts(answer);
    assert_eq!(texts.len(), 1, "{answer}");
    texts[0]
}

/// The message of a tool's failure, if it is one.
pub(crate) fn is_tool_error(answer: &Value) -> Option<&str> {
    let result = &answer["result"];
    (result["isError"] == true).then(|| result["content"][0]["text"].as_str().unwrap())
}

pub(crate) fn error_code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}
