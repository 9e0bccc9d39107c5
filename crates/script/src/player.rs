//! The running session: what it knows, how it writes, how it waits.
//!
//! Three futures share one [`Player`]: `host` reads what the host writes and answers its requests, `turn` plays one turn
//! after the other, `task` plays what runs in the background. They meet in [`State`], and wait for each other with
//! [`Player::until`].

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::hook::Hooks;
use crate::mcp::Server;
use crate::permission::Rule;
use crate::play::Outcome;
use crate::result::Totals;
use crate::script::{Scenario, Step};
use crate::task::Job;
use crate::{Launch, template};

/// What cuts the steps of a turn short.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The host interrupted the turn; `tool` while a tool was asked about or ran.
    Interrupted { tool: bool },
    /// A message with `priority: "now"` came in.
    Preempted,
    /// A limit of the command line was reached.
    Limit { subtype: &'static str, error: String, reason: &'static str },
    /// The API failed for good.
    ApiError { status: u16, kind: String, text: String },
    /// The turn's own result is ready.
    Ended,
    /// The process ends.
    Exit(Outcome),
}

impl From<std::io::Error> for Stop {
    /// Nobody reads any more.
    fn from(_: std::io::Error) -> Self {
        Self::Exit(Outcome::exit(1))
    }
}

/// What the host said to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Success(Value),
    Error(String),
    /// The input ended before the answer.
    Closed,
}

/// A request of ours that the host has not answered yet.
pub(crate) struct Pending {
    pub(crate) answer: Option<Answer>,
    /// Asked on behalf of the running turn, so an interrupt withdraws it.
    pub(crate) in_turn: bool,
}

/// A prompt in the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prompt {
    pub(crate) content: Value,
    pub(crate) uuid: Option<String>,
    /// `shouldQuery: false`.
    pub(crate) is_note: bool,
    /// A turn the CLI starts by itself: its `origin`, and its steps if the script has them.
    pub(crate) origin: Option<Value>,
    pub(crate) steps: Option<Vec<Step>>,
}

/// What the three futures share.
pub(crate) struct State {
    pub(crate) session_id: String,
    pub(crate) model: String,
    pub(crate) mode: String,
    pub(crate) queue: VecDeque<Prompt>,
    pub(crate) is_running: bool,
    pub(crate) is_interrupted: bool,
    pub(crate) is_preempted: bool,
    /// Questions about tools that are open.
    pub(crate) questions: usize,
    pub(crate) is_closed: bool,
    /// SIGINT came: nothing new is begun.
    pub(crate) is_ending: bool,
    pub(crate) stops_reading: bool,
    pub(crate) pending: HashMap<String, Pending>,
    pub(crate) seen: BTreeMap<String, usize>,
    pub(crate) hooks: Hooks,
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) forwards_subagents: bool,
    pub(crate) schema: bool,
    pub(crate) totals: Totals,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) running_jobs: usize,
    /// Background tasks, as `background_tasks_changed` lists them.
    pub(crate) tasks: Vec<Value>,
    /// Tasks that the host wants stopped.
    pub(crate) stopped: Vec<String>,
    /// Rules that came with answers.
    pub(crate) allowed: Vec<Rule>,
    /// The last answer of the host, for `${answer}`.
    pub(crate) answer: Value,
}

/// A running session.
pub(crate) struct Player<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) launch: &'a Launch,
    pub(crate) started: Instant,
    out: tokio::sync::Mutex<Option<Output<'a>>>,
    err: tokio::sync::Mutex<Output<'a>>,
    state: Mutex<State>,
    changed: Notify,
}

type Output<'a> = Box<dyn AsyncWrite + Send + Unpin + 'a>;

impl<'a> Player<'a> {
    pub(crate) fn new(scenario: &'a Scenario, launch: &'a Launch, out: Output<'a>, err: Output<'a>) -> Self {
        let model = launch.value("--model").map(resolve_model).or_else(|| scenario.model.clone());
        let mode = if launch.flag("--dangerously-skip-permissions") {
            "bypassPermissions"
        } else {
            launch
                .value("--permission-mode")
                .map_or("default", |mode| if mode == "manual" { "default" } else { mode })
        };
        let servers = launch.sdk_servers().into_iter().map(|name| (name, Server::default())).collect();
        let state = State {
            session_id: session_id(scenario, launch),
            model: model.unwrap_or_else(|| resolve_model("default")),
            mode: mode.to_owned(),
            queue: VecDeque::new(),
            is_running: false,
            is_interrupted: false,
            is_preempted: false,
            questions: 0,
            is_closed: false,
            is_ending: false,
            stops_reading: false,
            pending: HashMap::new(),
            seen: BTreeMap::new(),
            hooks: Hooks::default(),
            servers,
            forwards_subagents: launch.flag("--forward-subagent-text"),
            schema: launch.value("--json-schema").is_some(),
            totals: Totals::default(),
            jobs: VecDeque::new(),
            running_jobs: 0,
            tasks: Vec::new(),
            stopped: Vec::new(),
            allowed: Vec::new(),
            answer: Value::Null,
        };
        Self {
            scenario,
            launch,
            started: Instant::now(),
            out: tokio::sync::Mutex::new(Some(out)),
            err: tokio::sync::Mutex::new(err),
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// What goes wrong before anything is read.
    pub(crate) async fn refuse_launch(&self) -> Option<Outcome> {
        let resumed = self.launch.value("--resume").or_else(|| self.launch.value("-r"))?;
        let known = self.scenario.sessions.as_ref()?;
        if known.iter().any(|id| id == resumed) {
            return None;
        }
        let error = format!("No conversation found with session ID: {resumed}");
        let _ = self.complain(&error).await;
        let result = self.bare_result(
            "error_during_execution",
            true,
            json!({ "errors": [error], "session_id": resumed }),
        );
        let _ = self.send(&result).await;
        Some(Outcome::exit(1))
    }

    /// The state, for a moment: never across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whoever waits for that.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_waiters();
        changed
    }

    /// Interrupts the running turn; the process ends after it.
    pub(crate) fn interrupt_for_good(&self) {
        self.change(|state| {
            state.is_ending = true;
            state.is_interrupted |= state.is_running;
            state.pending.retain(|_, pending| !pending.in_turn);
        });
    }

    /// Waits until the state answers with something.
    pub(crate) async fn until<T>(&self, mut ask: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Enabled before the look, so that no change falls between the look and the wait.
            changed.as_mut().enable();
            if let Some(found) = ask(&mut self.state()) {
                return found;
            }
            changed.await;
        }
    }

    /// A pause that an interrupt ends.
    pub(crate) async fn pause(&self, time: Duration, in_tool: bool) -> Result<(), Stop> {
        let cut = |state: &State| match (state.is_interrupted, state.is_preempted) {
            (true, _) => Some(Stop::Interrupted { tool: in_tool }),
            (_, true) if !in_tool => Some(Stop::Preempted),
            _ => None,
        };
        if time.is_zero() {
            return cut(&self.state()).map_or(Ok(()), Err);
        }
        tokio::select! {
            stop = self.until(|state| cut(state)) => Err(stop),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    /// Writes a frame.
    pub(crate) async fn send(&self, frame: &Value) -> std::io::Result<()> {
        let mut line = frame.to_string();
        line.push('\n');
        self.write(line.as_bytes()).await
    }

    /// Writes bytes as they are. After stdout is closed, nowhere.
    pub(crate) async fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.write_ahead(bytes).await?;
        match self.out.lock().await.as_mut() {
            Some(out) => out.flush().await,
            None => Ok(()),
        }
    }

    /// Writes bytes without waiting until they have left.
    pub(crate) async fn write_ahead(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self.out.lock().await.as_mut() {
            Some(out) => out.write_all(bytes).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn close_stdout(&self) {
        let out = self.out.lock().await.take();
        if let Some(mut out) = out {
            let _ = out.shutdown().await;
        }
    }

    /// Writes a line to stderr.
    pub(crate) async fn complain(&self, text: &str) -> std::io::Result<()> {
        let mut err = self.err.lock().await;
        err.write_all(text.as_bytes()).await?;
        err.write_all(b"\n").await?;
        err.flush().await
    }

    /// Sends a `system` frame.
    pub(crate) async fn system(&self, subtype: &str, fields: Value) -> std::io::Result<()> {
        let mut frame = json!({ "type": "system", "subtype": subtype });
        lay(&mut frame, fields);
        self.send(&self.sign(frame)).await
    }

    /// Adds `uuid` and `session_id` where they are missing.
    pub(crate) fn sign(&self, mut frame: Value) -> Value {
        if let Some(fields) = frame.as_object_mut() {
            fields.entry("uuid").or_insert_with(|| new_uuid().into());
            fields.entry("session_id").or_insert_with(|| self.state().session_id.clone().into());
        }
        frame
    }

    /// Tells the session's state to hosts that asked for it.
    pub(crate) async fn tell_state(&self, state: &str) -> std::io::Result<()> {
        let mut fields = json!({ "state": state });
        if !self.launch.is_on("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
            if !self.launch.is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
                return Ok(());
            }
            fields["sdk_host_only"] = true.into();
        }
        self.system("session_state_changed", fields).await
    }

    /// Tells what became of a message that has a uuid.
    pub(crate) async fn tell_lifecycle(&self, uuids: &[String], state: &str) -> std::io::Result<()> {
        for uuid in uuids {
            let frame = json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": state });
            self.send(&self.sign(frame)).await?;
        }
        Ok(())
    }

    /// Sends a request to the host and waits for its answer.
    pub(crate) async fn ask(&self, request: Value, in_turn: bool) -> Result<Answer, Stop> {
        let id = self.request(request, in_turn).await?;
        self.answer_to(&id, in_turn).await
    }

    /// Waits for the answer to a request.
    pub(crate) async fn answer_to(&self, id: &str, in_turn: bool) -> Result<Answer, Stop> {
        let answer = self
            .until(|state| match state.pending.get_mut(id) {
                Some(pending) => match pending.answer.take() {
                    Some(answer) => Some(Some(answer)),
                    None if state.is_closed => Some(Some(Answer::Closed)),
                    // It was sent while the interrupt withdrew the others.
                    None if in_turn && state.is_interrupted => Some(None),
                    None => None,
                },
                // Withdrawn by an interrupt.
                None => Some(None),
            })
            .await;
        let is_pending = self.state().pending.remove(id).is_some();
        if answer.is_none() && is_pending {
            self.withdraw(id).await?;
        }
        answer.ok_or(Stop::Interrupted { tool: false })
    }

    /// Sends a request to the host and gives its id.
    pub(crate) async fn request(&self, request: Value, in_turn: bool) -> std::io::Result<String> {
        let id = new_uuid();
        self.state().pending.insert(id.clone(), Pending { answer: None, in_turn });
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request })).await?;
        Ok(id)
    }

    /// Withdraws a request.
    pub(crate) async fn withdraw(&self, id: &str) -> std::io::Result<()> {
        self.state().pending.remove(id);
        self.send(&json!({ "type": "control_cancel_request", "request_id": id })).await
    }

    /// Fills in a text of the script.
    pub(crate) fn fill(&self, text: &str, prompt: &Map<String, Value>) -> String {
        template::fill(text, &self.scope(prompt))
    }

    /// What `${…}` can name.
    pub(crate) fn scope(&self, prompt: &Map<String, Value>) -> Map<String, Value> {
        let state = self.state();
        let mut scope = prompt.clone();
        scope.insert("session_id".to_owned(), state.session_id.clone().into());
        scope.insert("model".to_owned(), state.model.clone().into());
        scope.insert("mode".to_owned(), state.mode.clone().into());
        scope.insert("cwd".to_owned(), self.launch.directory().into());
        scope.insert("answer".to_owned(), state.answer.clone());
        scope.insert("arg".to_owned(), self.launch.named());
        scope
    }
}

/// Lays the fields of `over` over those of `under`.
pub(crate) fn lay(under: &mut Value, over: Value) {
    if let (Some(under), Value::Object(over)) = (under.as_object_mut(), over) {
        under.extend(over);
    }
}

pub(crate) fn new_uuid() -> String {
    Uuid::new_v4().to_string()
}

/// An id as the API makes them: a prefix and hexadecimal digits.
pub(crate) fn new_id(prefix: &str, digits: usize) -> String {
    let hex = Uuid::new_v4().simple().to_string();
    format!("{prefix}{}", &hex[..digits.min(hex.len())])
}

/// Now, as frames write it.
pub(crate) fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// What a model's short name stands for.
pub(crate) fn resolve_model(name: &str) -> String {
    match name {
        "default" | "opus" | "best" => "claude-opus-5-5".to_owned(),
        "sonnet" => "claude-sonnet-5-5".to_owned(),
        "haiku" => "claude-haiku-5-5".to_owned(),
        other => other.to_owned(),
    }
}

fn session_id(scenario: &Scenario, launch: &Launch) -> String {
    let resumed = launch.value("--resume").or_else(|| launch.value("-r"));
    let kept = resumed.filter(|_| !launch.flag("--fork-session"));
    let chosen = launch.value("--session-id").or(kept).map(ToOwned::to_owned);
    chosen.or_else(|| scenario.session_id.clone()).unwrap_or_else(new_uuid)
}
