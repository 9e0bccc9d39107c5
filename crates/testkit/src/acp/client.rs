//! A process that is spoken to in lines of JSON-RPC.

use std::fmt;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::{Abilities, Picture};
use crate::record::Record;

/// How long anything may take. Waiting ends with the event, so this is only met by failures.
const PATIENCE: Duration = Duration::from_secs(40);

/// One line of the conversation.
#[derive(Clone)]
pub struct Line {
    /// When, since the start.
    pub at: Duration,
    /// Whether the client sent it.
    pub sent: bool,
    /// What it says; a text that is no JSON is a string.
    pub message: Value,
}

/// Failure messages want many lines, not long ones.
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.message.to_string().chars().take(400).collect();
        write!(f, "{:8.3} {} {text}", self.at.as_secs_f64(), if self.sent { "->" } else { "<-" })
    }
}

/// What the agent asks the client.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Its id.
    pub id: Value,
    /// `session/request_permission`, `elicitation/create`, …
    pub method: String,
    /// The parameters.
    pub params: Value,
}

impl Ask {
    /// The answer that takes the first option of this kind, e.g. `allow_once`; else a cancellation.
    #[must_use]
    pub fn choose(&self, kind: &str) -> Reply {
        let options = self.params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        match options.iter().find(|option| option["kind"] == kind) {
            Some(option) => Reply::option(option["optionId"].as_str().unwrap_or_default()),
            None => Reply::cancelled(),
        }
    }
}

/// How the client answers.
#[derive(Debug, Clone)]
pub enum Reply {
    /// With this result.
    Result(Value),
    /// With this error code.
    Error(i64),
    /// Not at all, unless the test does it with [`Client::answer`].
    Never,
}

impl Reply {
    /// A permission request's option, by its id.
    #[must_use]
    pub fn option(id: &str) -> Self {
        Self::Result(json!({"outcome": {"outcome": "selected", "optionId": id}}))
    }

    /// A permission request that is not answered because the turn is cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Result(json!({"outcome": {"outcome": "cancelled"}}))
    }
}

/// How the agent answered.
#[derive(Debug, Clone)]
pub struct Answer(pub Value);

impl Answer {
    /// The result, or an error that shows the agent's.
    pub fn result(&self) -> Result<&Value> {
        self.0.get("result").with_context(|| format!("answered with an error: {}", self.0))
    }

    /// The error, which must have this code.
    pub fn error(&self, code: i64) -> Result<&Value> {
        ensure!(self.0["error"]["code"] == code, "wanted the error {code}, got {}", self.0);
        Ok(&self.0["error"])
    }

    /// The stop reason of a prompt.
    pub fn stop_reason(&self) -> Result<&str> {
        self.result()?["stopReason"].as_str().with_context(|| format!("no stop reason: {}", self.0))
    }
}

type Policy = Box<dyn Fn(&Ask) -> Reply + Send>;

/// What the tasks of a client share.
struct Shared {
    start: Instant,
    lines: Record<Line>,
    stdin: AsyncMutex<Option<ChildStdin>>,
    policy: Mutex<Policy>,
    stderr: Mutex<Vec<u8>>,
}

/// A running agent, seen from its client. It is killed when dropped.
pub struct Client {
    shared: Arc<Shared>,
    child: Child,
    abilities: Abilities,
    next: AtomicI64,
    reading: watch::Sender<bool>,
}

/// What is left of an agent.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// How long that took after its stdin was closed.
    pub after: Duration,
    /// All lines.
    pub lines: Vec<Line>,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Client {
    /// Starts an agent. The permissions that it asks for are granted once, until [`Client::policy`] says otherwise.
    pub fn start(mut command: Command, abilities: Abilities) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("failed to start the agent")?;
        let shared = Arc::new(Shared {
            start: Instant::now(),
            lines: Record::default(),
            stdin: AsyncMutex::new(child.stdin.take()),
            policy: Mutex::new(Box::new(grant)),
            stderr: Mutex::default(),
        });
        let reading = watch::Sender::new(true);
        let stdout = child.stdout.take().context("stdout is piped")?;
        tokio::spawn(read(stdout, Arc::clone(&shared), reading.subscribe()));
        tokio::spawn(listen(child.stderr.take().context("stderr is piped")?, Arc::clone(&shared)));
        Ok(Self { shared, child, abilities, next: AtomicI64::new(1), reading })
    }

    /// What this client has said it can do.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Answers what the agent asks from now on by this function.
    pub fn policy(&self, policy: impl Fn(&Ask) -> Reply + Send + 'static) {
        *lock(&self.shared.policy) = Box::new(policy);
    }

    /// Stops reading what the agent writes, or goes on.
    pub fn read(&self, reads: bool) {
        self.reading.send_replace(reads);
    }

    /// The id of the agent's process.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.child.id().map(u32::cast_signed)
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        let mut stdin = self.shared.stdin.lock().await;
        let stdin = stdin.as_mut().context("the agent's stdin is closed")?;
        stdin.write_all(bytes).await?;
        Ok(stdin.flush().await?)
    }

    /// Sends a message.
    pub async fn send(&self, message: Value) -> Result<()> {
        self.shared.send(message).await
    }

    /// Sends a request, and gives its id.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value> {
        let id = json!(self.next.fetch_add(1, Ordering::Relaxed));
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        Ok(id)
    }

    /// The answer to a request.
    pub async fn answered(&self, id: &Value) -> Result<Answer> {
        self.answered_within(id, PATIENCE).await
    }

    /// The answer to a request that must come soon.
    pub async fn answered_within(&self, id: &Value, within: Duration) -> Result<Answer> {
        let what = format!("the answer to request {id}");
        let is_answer =
            |line: &Line| !line.sent && line.message.get("method").is_none() && line.message["id"] == *id;
        let line = self.shared.lines.wait_for(&what, within, is_answer).await;
        Ok(Answer(line.map_err(|error| error.context(self.stderr()))?.message))
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&self, method: &str, params: Value) -> Result<Answer> {
        let id = self.request(method, params).await?;
        self.answered(&id).await
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Answers a request of the agent's that the policy left open.
    pub async fn answer(&self, id: &Value, result: Value) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    /// Says hello.
    pub async fn initialize(&self) -> Result<Value> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": self.abilities.capabilities(),
            "clientInfo": {"name": "oarlock-testkit", "title": "Test client", "version": "0.1"},
        });
        Ok(self.call("initialize", params).await?.result()?.clone())
    }

    /// Opens a session, and gives its id.
    pub async fn new_session(&self, cwd: &std::path::Path) -> Result<String> {
        let answer = self.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await?;
        let id = answer.result()?["sessionId"].as_str().context("a session without an id")?;
        Ok(id.to_owned())
    }

    /// Sends a prompt of text, and gives the request's id.
    pub async fn ask(&self, session: &str, text: &str) -> Result<Value> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    /// Sends a prompt of text and waits for its answer.
    pub async fn prompt(&self, session: &str, text: &str) -> Result<Answer> {
        let id = self.ask(session, text).await?;
        self.answered(&id).await
    }

    /// Cancels what the session does.
    pub async fn cancel(&self, session: &str) -> Result<()> {
        self.notify("session/cancel", json!({"sessionId": session})).await
    }

    /// All lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.shared.lines.entries()
    }

    /// How many lines there are: a mark for [`Client::wait_after`].
    #[must_use]
    pub fn mark(&self) -> usize {
        self.shared.lines.len()
    }

    /// The first message of the agent's, past or future, for which `wanted` holds.
    pub async fn wait_for(&self, what: &str, wanted: impl FnMut(&Value) -> bool) -> Result<Value> {
        self.wait_after(0, what, wanted).await
    }

    /// The same, after a mark.
    pub async fn wait_after(
        &self,
        mark: usize,
        what: &str,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let wanted = |line: &Line| !line.sent && wanted(&line.message);
        let line = self.shared.lines.wait_after(mark, what, PATIENCE, wanted).await;
        Ok(line.map_err(|error| error.context(self.stderr()))?.message)
    }

    /// The first update of this kind, past or future, for which `wanted` holds.
    pub async fn update(&self, kind: &str, mut wanted: impl FnMut(&Value) -> bool) -> Result<Value> {
        let is_it = |message: &Value| {
            let update = &message["params"]["update"];
            message["method"] == "session/update" && update["sessionUpdate"] == kind && wanted(update)
        };
        Ok(self.wait_for(kind, is_it).await?["params"]["update"].clone())
    }

    /// The first request of the agent's of this method, past or future.
    pub async fn asked(&self, method: &str) -> Result<Ask> {
        let line = self.wait_for(method, |message| message["method"] == method).await?;
        Ok(Ask { id: line["id"].clone(), method: method.to_owned(), params: line["params"].clone() })
    }

    /// The requests of the agent's so far, of this method.
    #[must_use]
    pub fn asks(&self, method: &str) -> Vec<Ask> {
        let lines = self.lines().into_iter().filter(|line| !line.sent && line.message["method"] == method);
        let ask = |line: Line| Ask {
            id: line.message["id"].clone(),
            method: method.to_owned(),
            params: line.message["params"].clone(),
        };
        lines.map(ask).collect()
    }

    /// What a user sees of a session now.
    #[must_use]
    pub fn picture(&self, session: &str) -> Picture {
        Picture::of(&self.lines(), session)
    }

    /// Waits until a user sees something in a session.
    pub async fn seen(
        &self,
        session: &str,
        what: &str,
        mut wanted: impl FnMut(&Picture) -> bool,
    ) -> Result<Picture> {
        loop {
            let mark = self.mark();
            let picture = self.picture(session);
            if wanted(&picture) {
                return Ok(picture);
            }
            self.wait_after(mark, what, |_| true).await?;
        }
    }

    /// What the agent has written to stderr.
    #[must_use]
    pub fn stderr(&self) -> String {
        format!("stderr: {}", String::from_utf8_lossy(&lock(&self.shared.stderr)))
    }

    /// Closes the agent's stdin and waits until it is gone.
    pub async fn end(self, within: Duration) -> Result<Ended> {
        self.reading.send_replace(true);
        drop(self.shared.stdin.lock().await.take());
        self.gone(within).await
    }

    /// Waits until the agent is gone, for whatever reason.
    pub async fn gone(mut self, within: Duration) -> Result<Ended> {
        let begin = Instant::now();
        let Ok(status) = tokio::time::timeout(within, self.child.wait()).await else {
            bail!("the agent was not gone after {within:?}\n{}", self.stderr());
        };
        let after = begin.elapsed();
        // Everything that it has written is read before its lines are looked at.
        let _ = self.shared.lines.wait_for("the end of stdout", within, |_| false).await;
        let stderr = String::from_utf8_lossy(&lock(&self.shared.stderr)).into_owned();
        Ok(Ended { status: status?, after, lines: self.lines(), stderr })
    }
}

impl Shared {
    async fn send(&self, message: Value) -> Result<()> {
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().context("the agent's stdin is closed")?;
        let line = format!("{message}\n");
        // Recorded first: the answer must not come before its question.
        self.note(true, message);
        stdin.write_all(line.as_bytes()).await.context("the agent does not read")?;
        Ok(stdin.flush().await?)
    }

    fn note(&self, sent: bool, message: Value) {
        self.lines.push(Line { at: self.start.elapsed(), sent, message });
    }
}

async fn read(stdout: ChildStdout, shared: Arc<Shared>, mut reading: watch::Receiver<bool>) {
    let mut lines = BufReader::new(stdout).split(b'\n');
    loop {
        if reading.wait_for(|reads| *reads).await.is_err() {
            break;
        }
        let Ok(Some(bytes)) = lines.next_segment().await else { break };
        let message = match std::str::from_utf8(&bytes) {
            Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            Err(_) => json!(String::from_utf8_lossy(&bytes)),
        };
        shared.note(false, message.clone());
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let ask = Ask { id: id.clone(), method: method.to_owned(), params: message["params"].clone() };
        let reply = lock(&shared.policy)(&ask);
        let answer = match reply {
            Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Reply::Error(code) => {
                let error = json!({"code": code, "message": "the test client says no"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
            Reply::Never => continue,
        };
        // In a task of its own: an agent that does not read must not keep us from reading.
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { shared.send(answer).await });
    }
    shared.lines.end();
}

async fn listen(mut stderr: ChildStderr, shared: Arc<Shared>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        lock(&shared.stderr).extend_from_slice(&buffer[..count]);
    }
}

/// Grants permissions once, declines forms, and serves files.
fn grant(ask: &Ask) -> Reply {
    let path = ask.params["path"].as_str().unwrap_or_default();
    match ask.method.as_str() {
        "session/request_permission" => ask.choose("allow_once"),
        "elicitation/create" => Reply::Result(json!({"action": "decline"})),
        "fs/read_text_file" => match std::fs::read_to_string(path) {
            Ok(content) => Reply::Result(json!({"content": content})),
            Err(_) => Reply::Error(-32002),
        },
        "fs/write_text_file" => {
            let content = ask.params["content"].as_str().unwrap_or_default();
            match std::fs::write(path, content) {
                Ok(()) => Reply::Result(json!({})),
                Err(_) => Reply::Error(-32603),
            }
        }
        _ => Reply::Error(-32601),
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
