//! The task of one session.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use oarlock_agent::history::Transcript;
use oarlock_agent::reduce::{Event, NoticeLevel, Reducer, TaskChange, view};
use oarlock_agent::stream::{Content, Json, Message, PermissionMode, System, TaskType, User};
use oarlock_agent::{Error, Events, Session};
use oarlock_proto::acp::{
    AvailableCommands, ConfigOptions, CurrentMode, Empty, SessionInfoUpdate, SessionUpdate,
    SetConfigOptionResponse, SetupRequest, SetupResponse,
};
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::Responder;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::{Begin, Command, launch};
use crate::ask::Situation;
use crate::choices::{Choices, Known, Order};
use crate::context::{Asker, Context};
use crate::history::Replay;
use crate::tail::Tails;
use crate::translate::{Pass, Screen};
use crate::turn::{Answer, Answers, Turns};
use crate::{ask, cache, fault, prompt, review, tail};

/// How long a first start may keep `session/new` waiting. Without it nobody knows which models there are.
const FIRST_START: Duration = Duration::from_secs(4);
/// How long the CLI may take to stop before the client is answered.
const STOP: Duration = Duration::from_millis(1500);
/// How long the CLI may take to stop before it is killed.
const STOP_OR_DIE: Duration = Duration::from_secs(10);
/// How long to wait for the turn that a subagent's end should start.
const WAKE: Duration = Duration::from_millis(1500);
/// Messages that are taken before the client is told.
const BATCH: usize = 512;

/// What others tell the actor.
#[derive(Debug)]
pub(super) enum Note {
    /// The user has allowed a call.
    Allowed(String),
    /// The CLI has taken back a message that no turn had read.
    Withdrawn(String),
    /// A choice was made, or not.
    Chosen { order: Order, outcome: Result<(), Error>, whole: bool, responder: Responder },
    /// The CLI says more about itself than it did at its start.
    Known(Box<Known>),
    /// The user should know this about the review of edits.
    Review(String),
}

/// The CLI of a session.
enum Cli {
    /// None: not yet, parked, or dead.
    Off,
    /// It starts.
    Starting(Pin<Box<dyn Future<Output = Result<(Session, Events), Error>> + Send>>),
    /// It runs.
    On { session: Session, events: Events, outgoing: mpsc::Sender<User> },
}

/// What wakes the actor.
enum Wake {
    Closed(Option<Responder>),
    Command(Command),
    Started(Result<(Session, Events), Error>),
    Message(Option<Result<Message, Error>>),
    Note(Note),
    Output,
    Timer(Timer),
}

/// What time has come for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// The client has waited for a first start long enough.
    Setup,
    /// The client has waited for a cancel long enough.
    GiveUp,
    /// The CLI does not stop.
    Kill,
    /// The turn that a subagent's end should start does not come.
    Wake,
    /// The session has been idle for long.
    Park,
}

pub(super) struct Actor {
    asker: Asker,
    request: SetupRequest,
    commands: mpsc::Receiver<Command>,
    closed: oneshot::Receiver<Option<Responder>>,
    tasks: TaskTracker,
    notes: mpsc::Sender<Note>,
    noted: mpsc::Receiver<Note>,
    timers: HashMap<&'static str, (Instant, Timer)>,

    cli: Cli,
    /// The CLI's own id of the session; `/clear` gives it another one.
    cli_session: String,
    /// Why the CLI that ran before is gone, if nobody asked it to go.
    died: Option<String>,
    choices: Choices,
    cache: Option<std::path::PathBuf>,
    /// Setups that are answered when the CLI is up.
    setups: Vec<(Begin, Responder)>,
    /// Choices that are made when the CLI is up.
    orders: Vec<(Order, bool, Responder)>,

    gate: Gate,
    reducer: Reducer,
    screen: Screen,
    tails: Tails,
    turns: Turns,
    /// The prompts' responders, by the uuid of their message.
    responders: HashMap<String, Responder>,
    /// Prompts that the CLI does not have yet.
    waiting: VecDeque<User>,
    /// The turn that runs was answered already: what it still says is not for the client.
    muted: bool,
    title: Option<String>,
    /// The client has heard of the title.
    title_told: bool,
    /// The user knows what is special about the review of edits.
    told_of_review: bool,
}

impl Actor {
    pub(super) fn new(
        context: Arc<Context>,
        id: String,
        request: SetupRequest,
        commands: mpsc::Receiver<Command>,
        closed: oneshot::Receiver<Option<Responder>>,
        tasks: TaskTracker,
    ) -> Self {
        // Callbacks wait when it is full; the actor empties it at every turn.
        let (notes, noted) = mpsc::channel(64);
        let screen = Screen::new(context.client.clone(), request.cwd.clone(), Pass::Live);
        Self {
            asker: Asker { context, session_id: id.as_str().into() },
            request,
            commands,
            closed,
            tasks,
            notes,
            noted,
            timers: HashMap::new(),
            cli: Cli::Off,
            cli_session: id,
            died: None,
            choices: Choices::default(),
            cache: None,
            setups: Vec::new(),
            orders: Vec::new(),
            gate: Gate::default(),
            reducer: Reducer::default(),
            screen,
            tails: Tails::default(),
            turns: Turns::default(),
            responders: HashMap::new(),
            waiting: VecDeque::new(),
            muted: false,
            title: None,
            title_told: false,
            told_of_review: false,
        }
    }

    fn context(&self) -> &Context {
        &self.asker.context
    }

    pub(super) async fn run(mut self, begin: Begin, transcript: Option<Transcript>, responder: Responder) {
        self.begin(begin, transcript, responder).await;
        loop {
            match self.next().await {
                Wake::Closed(responder) => return self.end(responder).await,
                Wake::Command(command) => self.obey(command).await,
                Wake::Started(outcome) => self.started(outcome),
                Wake::Message(item) => self.hear(item).await,
                Wake::Note(note) => self.note(note),
                Wake::Output => {
                    for output in self.tails.read() {
                        self.screen.output(&output.tool_use_id, &output.text);
                    }
                }
                Wake::Timer(timer) => self.ring(timer),
            }
            self.send_waiting();
            self.flush();
            self.set_timers();
        }
    }

    async fn next(&mut self) -> Wake {
        let Self { cli, commands, closed, noted, timers, tails, asker, .. } = self;
        let timer = timers.values().min_by_key(|(at, _)| *at).copied();
        let ring = async {
            match timer {
                Some((at, timer)) => {
                    sleep_until(at).await;
                    timer
                }
                None => pending().await,
            }
        };
        let heard = async {
            match cli {
                Cli::Off => pending().await,
                Cli::Starting(starting) => Wake::Started(starting.await),
                Cli::On { events, .. } => {
                    // A client that does not read holds back the CLI, not our memory.
                    asker.context.peer.ready().await;
                    Wake::Message(events.next().await)
                }
            }
        };
        let output = async {
            match tails.is_empty() {
                true => pending().await,
                false => tails.changed().await,
            }
        };
        tokio::select! {
            biased;
            responder = closed => Wake::Closed(responder.ok().flatten()),
            Some(command) = commands.recv() => Wake::Command(command),
            Some(note) = noted.recv() => Wake::Note(note),
            wake = heard => wake,
            () = output => Wake::Output,
            timer = ring => Wake::Timer(timer),
        }
    }

    // ---- beginning and ending

    async fn begin(&mut self, begin: Begin, transcript: Option<Transcript>, responder: Responder) {
        if let Ok(program) = self.context().program() {
            self.cache = cache::place(self.context(), &program, Path::new(&self.request.cwd));
        }
        let known = self.cache.as_deref().and_then(cache::load);
        let (mode, model) = wishes(&self.request);
        self.choices = Choices::new(&known.clone().unwrap_or_default(), mode, model);
        if let Some(transcript) = &transcript {
            self.title = transcript.summary().map(|summary| summary.title);
            if begin == Begin::Load {
                self.replay(transcript).await;
            }
        }
        self.start();
        if known.is_some() || begin == Begin::Load {
            self.set_up(begin, responder);
        } else {
            self.timers.insert("setup", (Instant::now() + FIRST_START, Timer::Setup));
            self.setups.push((begin, responder));
        }
    }

    /// Shows a transcript, as fast as the client reads.
    async fn replay(&mut self, transcript: &Transcript) {
        let context = self.asker.context.clone();
        let screen = Screen::new(context.client.clone(), self.request.cwd.clone(), Pass::Replay);
        let replay = match Replay::new(transcript, screen) {
            Ok(replay) => replay,
            Err(error) => return tracing::warn!(%error, "the transcript cannot be read"),
        };
        for updates in replay {
            for update in &updates {
                context.update(&self.asker.session_id, update);
            }
            context.peer.ready().await;
        }
    }

    /// Answers a setup.
    fn set_up(&mut self, begin: Begin, responder: Responder) {
        let is_new = matches!(begin, Begin::New | Begin::Fork);
        responder.reply(&SetupResponse {
            session_id: is_new.then(|| self.asker.session_id.to_string()),
            modes: self.choices.modes(),
            config_options: self.choices.options(&self.context().client),
        });
        self.tell_commands();
    }

    fn tell_commands(&self) {
        let available_commands = self.choices.commands();
        if !available_commands.is_empty() {
            self.update(&SessionUpdate::AvailableCommandsUpdate(AvailableCommands { available_commands }));
        }
    }

    /// The client has closed the session, or is gone.
    async fn end(mut self, responder: Option<Responder>) {
        for event in self.reducer.close() {
            self.screen.show(event);
        }
        self.flush();
        let answers = self.turns.close();
        self.answer(answers);
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&closed());
        }
        for (_, responder) in self.setups.drain(..) {
            responder.error(&closed());
        }
        match std::mem::replace(&mut self.cli, Cli::Off) {
            Cli::On { session, events, .. } => {
                drop(events);
                if self.turns.is_running() {
                    session.kill().await;
                } else {
                    let _ = session.close().await;
                }
            }
            // Dropping the future kills what it has started.
            Cli::Starting(_) | Cli::Off => {}
        }
        if let Some(responder) = responder {
            responder.reply(&Empty {});
        }
    }

    // ---- the CLI

    /// Starts the CLI, if it is not there.
    fn start(&mut self) {
        if !matches!(self.cli, Cli::Off) {
            return;
        }
        let options = launch::options(&self.asker, &self.request, &self.gate, &self.notes);
        let options = match options {
            Ok(options) => options,
            Err(error) => {
                self.cli = Cli::Starting(std::future::ready(Err(error)).boxed());
                return;
            }
        };
        let options = self.choices.launch(options);
        let cwd = Path::new(&self.request.cwd);
        let is_begun = self.context().library.as_ref().is_some_and(|library| {
            library.exists(&self.cli_session, cwd)
                || library.find(&self.cli_session, None).ok().flatten().is_some()
        });
        let options = match is_begun {
            true => options.resume(&self.cli_session),
            false => options.session_id(&self.cli_session),
        };
        self.cli = Cli::Starting(options.connect().boxed());
    }

    fn started(&mut self, outcome: Result<(Session, Events), Error>) {
        self.timers.remove("setup");
        let (session, events) = match outcome {
            Ok(started) => started,
            Err(error) => return self.not_started(&error),
        };
        let (outgoing, messages) = mpsc::channel(1);
        self.tasks.spawn(send_all(session.clone(), messages));
        let known = Known::new(session.info(), None);
        let mut is_news = self.choices.learn(&known);
        if let Some(mode) = &session.info().current_permission_mode {
            is_news |= self.choices.set_mode(mode);
        }
        if let Some(place) = &self.cache {
            cache::store(place, &known);
        }
        // The model in force is in the settings, which are asked for beside.
        let (notes, of) = (self.notes.clone(), session.clone());
        self.tasks.spawn(async move {
            if let Ok(settings) = of.settings().await {
                let known = Known::new(of.info(), Some(&settings));
                let _ = notes.send(Note::Known(Box::new(known))).await;
            }
        });
        for (order, whole, responder) in std::mem::take(&mut self.orders) {
            self.carry_out(&session, order, whole, responder);
        }
        self.cli = Cli::On { session, events, outgoing };
        if let Some(why) = self.died.take() {
            let title = "Claude Code was started again; the session goes on";
            self.screen.notice(NoticeLevel::Warning, title, Some(&why));
        }
        if self.setups.is_empty() {
            if is_news {
                self.tell_mode();
                self.tell_commands();
            }
        } else {
            for (begin, responder) in std::mem::take(&mut self.setups) {
                self.set_up(begin, responder);
            }
        }
    }

    fn not_started(&mut self, error: &Error) {
        tracing::warn!(%error, "the CLI did not start");
        self.cli = Cli::Off;
        let fault = fault::cli(error);
        for (_, responder) in self.setups.drain(..) {
            responder.error(&fault);
        }
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&fault);
        }
        self.waiting.clear();
        let answers = self.turns.fail(&fault);
        self.answer(answers);
    }

    /// Takes what the CLI says, and all that it has said besides.
    async fn hear(&mut self, item: Option<Result<Message, Error>>) {
        let mut next = Some(item);
        for _ in 0..BATCH {
            match next.take() {
                Some(Some(Ok(message))) => self.follow(message),
                Some(Some(Err(error))) if !error.is_fatal() => {
                    tracing::warn!(%error, "a line of the CLI's was passed over");
                }
                Some(item) => return self.bury(item.and_then(Result::err)).await,
                None => return,
            }
            let Cli::On { events, .. } = &mut self.cli else { return };
            next = events.next().now_or_never();
        }
        if let Some(Some(Ok(message))) = next {
            self.follow(message);
        } else if let Some(item) = next {
            self.bury(item.and_then(Result::err)).await;
        }
    }

    /// The CLI is gone.
    async fn bury(&mut self, error: Option<Error>) {
        let Cli::On { session, .. } = std::mem::replace(&mut self.cli, Cli::Off) else { return };
        let error = match error {
            Some(error) => error,
            None => Error::Exited(session.wait().await),
        };
        tracing::warn!(%error, "the CLI is gone");
        self.gate.clear();
        let events: Vec<Event> = self.reducer.close().collect();
        for event in events {
            self.show(event);
        }
        self.flush();
        self.muted = false;
        self.timers.clear();
        self.died = Some(error.to_string());
        let fault = fault::cli(&error);
        let answers = self.turns.gone(&fault);
        self.answer(answers);
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&fault);
        }
        if !self.waiting.is_empty() {
            self.start();
        }
    }

    /// Lets the CLI go until it is needed.
    fn park(&mut self) {
        if let Cli::On { session, .. } = std::mem::replace(&mut self.cli, Cli::Off) {
            tracing::info!("parked");
            self.tasks.spawn(async move { drop(session.close().await) });
        }
        self.reducer.close();
        self.gate.clear();
    }

    // ---- what the CLI says

    fn follow(&mut self, mut message: Message) {
        review::disguise(&mut message);
        if let Message::System(System::ElicitationComplete(done)) = &message {
            ask::elicitation_complete(self.context(), done.elicitation_id.clone());
        }
        let events: Vec<Event> = self.reducer.apply(message).collect();
        for event in events {
            self.show(event);
        }
    }

    fn show(&mut self, event: Event) {
        let asked = self.learn(&event);
        let answers = self.turns.follow(&event);
        let ended = matches!(event, Event::TurnEnded(_));
        if self.muted {
            if matches!(event, Event::TurnStarted) {
                // The one that was cancelled before it began. Messages that came since are not meant.
                self.interrupt_turn();
            }
        } else {
            self.screen.show(event);
        }
        // A turn that was cancelled is not asked for: its questions are withdrawn with it.
        if let Some((request_id, situation)) = asked.filter(|_| !self.muted) {
            // Whoever asks must find the call on the client's screen.
            self.flush();
            self.gate.show(&request_id, situation);
        }
        if ended {
            self.muted = false;
            if let Some(error) = self.turns.take_unclaimed() {
                self.screen.notice(NoticeLevel::Error, "Claude Code could not go on", Some(&error.message));
            }
            self.flush();
            self.tell_info();
        }
        if !answers.is_empty() {
            self.flush();
            self.answer(answers);
        }
    }

    /// What an event means for the session itself. Gives the question that may be asked now.
    fn learn(&mut self, event: &Event) -> Option<(String, Situation)> {
        match event {
            Event::Permission(permission) => {
                let situation = Situation {
                    cwd: self.request.cwd.clone(),
                    mode: Some(PermissionMode::from(self.choices.modes().current_mode_id.as_str())),
                    modes: self.choices.available_modes(),
                    parent_tool_use_id: permission.call.parent_tool_use_id.clone(),
                };
                return Some((permission.request_id.clone(), situation));
            }
            Event::QuestionWithdrawn { request_id } => self.gate.forget(request_id),
            Event::ModeChanged(mode) => {
                if self.choices.set_mode(mode) {
                    self.tell_mode();
                }
            }
            Event::ModelChanged(model) => {
                if self.choices.set_model(model) {
                    self.tell_choices();
                }
            }
            Event::Commands(commands) => {
                if self.choices.set_commands(commands) {
                    self.tell_commands();
                }
            }
            Event::SessionChanged { session_id, .. } => self.cli_session.clone_from(session_id),
            Event::TitleChanged(title) => {
                self.set_title(title.clone());
                self.tell_info();
            }
            Event::ToolResult { call: Some(call), result } => {
                if let Some(file) = view::output_file(&call.name, result).filter(|_| call.name == "Bash") {
                    self.tails.add(&call.id, file.into());
                }
            }
            Event::Task { change: TaskChange::Started, task } if task.kind == Some(TaskType::LocalBash) => {
                // A command is a task when it is in the background, or has run for some seconds. Only the result of the
                // former says where the output is.
                if let Some(id) = &task.tool_use_id {
                    let cwd = self.reducer.state().cwd.as_deref().unwrap_or(&self.request.cwd);
                    self.tails.add(id, tail::place(Path::new(cwd), &self.cli_session, &task.id));
                }
            }
            Event::Task { change: TaskChange::Ended, task } => {
                let rest = task.tool_use_id.as_deref().and_then(|id| self.tails.finish(id));
                if let Some(output) = rest {
                    self.screen.output(&output.tool_use_id, &output.text);
                }
            }
            _ => {}
        }
        None
    }

    // ---- what the client says

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Prompt { content, responder } => self.prompt(content, responder),
            Command::Steer { content, asks_first, responder } => self.steer(content, asks_first, responder),
            Command::Cancel => self.cancel(),
            Command::CancelRequest(id) => {
                if self.responders.values().any(|responder| responder.id().as_json() == id) {
                    self.cancel();
                }
            }
            Command::Choose { id, value, whole, responder } => self.choose(&id, &value, whole, responder),
            Command::Titled(title) => {
                self.set_title(title);
                self.tell_info();
            }
            Command::Again { begin, request, responder } => self.again(begin, request, responder).await,
        }
    }

    fn prompt(&mut self, content: Content, responder: Responder) {
        let uuid = uuid::Uuid::new_v4().to_string();
        if self.title.is_none() {
            self.title = title_of(&prompt::words(&content));
        }
        self.turns.prompt(&uuid);
        self.responders.insert(uuid.clone(), responder);
        let mut user = User::prompt(content);
        user.uuid = Some(uuid);
        self.waiting.push_back(user);
        self.start();
    }

    fn steer(&mut self, content: Content, asks_first: bool, responder: Responder) {
        let is_running = self.turns.is_running() && !self.turns.is_cancelling();
        if !is_running && asks_first {
            return responder.reply(&json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
        }
        let mut user = User::prompt(content);
        user.uuid = Some(uuid::Uuid::new_v4().to_string());
        self.waiting.push_back(user);
        self.start();
        let outcome = if is_running { "injected" } else { "startedNewTurn" };
        responder.reply(&json!({ "outcome": outcome }));
    }

    /// Sends what waits, as far as the CLI takes it.
    fn send_waiting(&mut self) {
        let Cli::On { outgoing, .. } = &self.cli else { return };
        while self.turns.may_send() && !self.waiting.is_empty() {
            let Ok(permit) = outgoing.try_reserve() else { return };
            let Some(user) = self.waiting.pop_front() else { return };
            if let Some(uuid) = &user.uuid {
                self.turns.sent(uuid);
                self.reducer.sent(uuid);
            }
            if !self.turns.is_running() {
                self.muted = false;
            }
            permit.send(user);
        }
    }

    fn cancel(&mut self) {
        let cancel = self.turns.cancel();
        self.waiting.clear();
        self.answer(cancel.answers);
        if cancel.interrupt {
            self.interrupt(cancel.queued, cancel.tasks);
            let now = Instant::now();
            self.timers.insert("give up", (now + STOP, Timer::GiveUp));
            self.timers.insert("kill", (now + STOP_OR_DIE, Timer::Kill));
        }
    }

    /// Stops the CLI's turn: first messages that no turn has read, so that none begins.
    fn interrupt(&self, queued: Vec<String>, tasks: Vec<String>) {
        let Cli::On { session, .. } = &self.cli else { return };
        let (session, notes) = (session.clone(), self.notes.clone());
        self.tasks.spawn(async move {
            for uuid in queued {
                let withdrawn = session.cancel_message(&uuid).await;
                if withdrawn.is_ok_and(|answer| answer.cancelled) {
                    let _ = notes.send(Note::Withdrawn(uuid)).await;
                }
            }
            for task in tasks {
                let _ = session.stop_task(&task).await;
            }
            match session.interrupt_all().await {
                Ok(receipt) => {
                    for uuid in receipt.cancelled.into_iter().flatten() {
                        let _ = notes.send(Note::Withdrawn(uuid)).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "the interrupt failed"),
            }
        });
    }

    /// Stops the turn that runs, and nothing else.
    fn interrupt_turn(&self) {
        let Cli::On { session, .. } = &self.cli else { return };
        let session = session.clone();
        self.tasks.spawn(async move { drop(session.interrupt().await) });
    }

    fn choose(&mut self, id: &str, value: &Json, whole: bool, responder: Responder) {
        let order = match self.choices.order(id, value) {
            Ok(order) => order,
            Err(error) => return responder.error(&error),
        };
        match &self.cli {
            Cli::On { session, .. } => self.carry_out(&session.clone(), order, whole, responder),
            Cli::Starting(_) => self.orders.push((order, whole, responder)),
            // It is started with it.
            Cli::Off => self.chosen(&order, whole, responder),
        }
    }

    fn carry_out(&self, session: &Session, order: Order, whole: bool, responder: Responder) {
        let (session, notes) = (session.clone(), self.notes.clone());
        self.tasks.spawn(async move {
            let outcome = order.carry_out(&session).await;
            let _ = notes.send(Note::Chosen { order, outcome, whole, responder }).await;
        });
    }

    fn chosen(&mut self, order: &Order, whole: bool, responder: Responder) {
        self.choices.done(order);
        // The other of the two ways hears of it, too.
        match order {
            Order::Mode(_) => self.tell_mode(),
            _ if !whole => self.tell_choices(),
            _ => {}
        }
        if whole {
            let config_options = self.choices.options(&self.context().client);
            responder.reply(&SetConfigOptionResponse { config_options });
        } else {
            responder.reply(&Empty {});
        }
    }

    async fn again(&mut self, begin: Begin, request: SetupRequest, responder: Responder) {
        if begin == Begin::Load
            && let Some(library) = &self.context().library
            && let Ok(transcript) = library.open(&self.cli_session, None)
        {
            self.replay(&transcript).await;
        }
        let is_other = request.cwd != self.request.cwd
            || request.mcp_servers != self.request.mcp_servers
            || request.additional_directories != self.request.additional_directories;
        if is_other && self.turns.is_idle() {
            self.request = request;
            self.park();
            self.start();
        }
        self.set_up(begin, responder);
    }

    // ---- what others say

    fn note(&mut self, note: Note) {
        match note {
            Note::Allowed(tool_use_id) => self.screen.allowed(&tool_use_id),
            Note::Review(words) => {
                // The CLI may be started many times; the user is told once.
                if !std::mem::replace(&mut self.told_of_review, true) {
                    self.screen.notice(NoticeLevel::Warning, "Edit review", Some(&words));
                    self.flush();
                }
            }
            Note::Withdrawn(uuid) => {
                let answers = self.turns.withdrawn(&uuid);
                self.flush();
                self.answer(answers);
            }
            Note::Chosen { order, outcome, whole, responder } => match outcome {
                Ok(()) => self.chosen(&order, whole, responder),
                Err(error) => responder.error(&fault::cli(&error)),
            },
            Note::Known(known) => {
                if let Some(place) = &self.cache {
                    cache::store(place, &known);
                }
                if self.choices.learn(&known) {
                    self.tell_mode();
                }
            }
        }
    }

    fn ring(&mut self, timer: Timer) {
        self.timers.retain(|_, (_, other)| *other != timer);
        match timer {
            Timer::Setup => {
                for (begin, responder) in std::mem::take(&mut self.setups) {
                    self.set_up(begin, responder);
                }
            }
            Timer::GiveUp => {
                self.muted = true;
                self.screen.abandon();
                self.flush();
                let answers = self.turns.give_up();
                self.answer(answers);
            }
            Timer::Kill => {
                if let Cli::On { session, .. } = &self.cli {
                    tracing::warn!("the CLI does not stop; it is killed");
                    let session = session.clone();
                    self.tasks.spawn(async move { drop(session.kill().await) });
                }
            }
            Timer::Wake => {
                let answers = self.turns.release();
                self.answer(answers);
            }
            Timer::Park => self.park(),
        }
    }

    /// Sets the timers that the state asks for, and takes away those it does not.
    fn set_timers(&mut self) {
        let now = Instant::now();
        if !self.turns.is_cancelling() {
            self.timers.remove("give up");
            if !self.turns.is_running() || !self.muted {
                self.timers.remove("kill");
            }
        }
        if self.turns.awaits_wake() {
            self.timers.entry("wake").or_insert((now + WAKE, Timer::Wake));
        } else {
            self.timers.remove("wake");
        }
        let state = self.reducer.state();
        let is_idle = self.turns.is_idle()
            && matches!(self.cli, Cli::On { .. })
            && state.tasks.is_empty()
            && state.questions.is_empty()
            && self.waiting.is_empty();
        match self.context().settings.park_after {
            Some(after) if is_idle => {
                self.timers.entry("park").or_insert((now + after, Timer::Park));
            }
            _ => drop(self.timers.remove("park")),
        }
    }

    // ---- what the client is told

    fn update(&self, update: &SessionUpdate) {
        self.context().update(&self.asker.session_id, update);
    }

    fn flush(&mut self) {
        for update in self.screen.take() {
            self.context().update(&self.asker.session_id, &update);
        }
    }

    fn answer(&mut self, answers: Answers) {
        for (uuid, answer) in answers {
            let Some(responder) = self.responders.remove(&uuid) else { continue };
            match answer {
                Answer::Stopped(response) => responder.reply(&response),
                Answer::Failed(error) => responder.error(&error),
            }
        }
    }

    fn tell_mode(&self) {
        let current_mode_id = self.choices.modes().current_mode_id;
        self.update(&SessionUpdate::CurrentModeUpdate(CurrentMode { current_mode_id }));
        self.tell_choices();
    }

    fn tell_choices(&self) {
        let config_options = self.choices.options(&self.context().client);
        self.update(&SessionUpdate::ConfigOptionUpdate(ConfigOptions { config_options }));
    }

    fn set_title(&mut self, title: String) {
        self.title_told &= self.title.as_deref() == Some(&title);
        self.title = Some(title);
    }

    fn tell_info(&mut self) {
        let updated_at = Some(format!("{:.3}", jiff::Timestamp::now()));
        let title = self.title.clone().filter(|_| !self.title_told);
        self.title_told |= title.is_some();
        let info = SessionInfoUpdate { title, updated_at, meta: None };
        self.update(&SessionUpdate::SessionInfoUpdate(info));
    }
}

/// Hands messages to the CLI one by one: it may be slow to take them.
async fn send_all(session: Session, mut messages: mpsc::Receiver<User>) {
    while let Some(user) = messages.recv().await {
        if let Err(error) = session.send(user).await {
            // The end of the session's messages tells the rest.
            return tracing::debug!(%error, "a message was not taken");
        }
    }
}

/// The mode and the model that the client asks for at the start.
fn wishes(request: &SetupRequest) -> (Option<PermissionMode>, Option<String>) {
    let options = request.meta.as_ref().and_then(|meta| meta.get("claudeCode")?.get("options"));
    let word = |name: &str| options.and_then(|options| options.get(name)).and_then(Value::as_str);
    (word("permissionMode").map(PermissionMode::from), word("model").map(str::to_owned))
}

/// A title, until there is a better one: the beginning of the first prompt.
fn title_of(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(100).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

fn closed() -> ErrorObject {
    ErrorObject::internal("the session was closed")
}
