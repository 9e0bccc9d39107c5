//! The task of one session.
//!
//! This file has its state and its loop; what it does with its CLI, with what that says, and with what the client asks is in the
//! files beside.

mod cli;
mod client;
mod events;
mod life;
mod rewind;
mod tell;

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use oarlock_agent::history::Transcript;
use oarlock_agent::reduce::{Event, NoticeLevel, PromptKind, Reducer, TaskChange, ToolCall, view};
use oarlock_agent::stream::{CommandState, Content, Json, Message, PermissionMode, System, TaskType, User};
use oarlock_agent::{Error, Events, Session};
use oarlock_proto::acp::{
    AvailableCommands, ConfigOptions, CurrentMode, Empty, PromptResponse, RewindResponse, SessionInfoUpdate,
    SessionUpdate, SetConfigOptionResponse, SetTitleRequest, SetupRequest, SetupResponse, StopReason,
};
use oarlock_proto::jsonrpc::{self, ErrorObject};
use oarlock_wire::Responder;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::{Begin, Command, Past, given, launch};
use crate::ask::Situation;
use crate::choices::{Choices, Known, Order};
use crate::context::{Asker, Context};
use crate::history::{Mark, Replay};
use crate::tail::Tails;
use crate::translate::{Pass, Screen};
use crate::turn::{Answer, Answers, Turns};
use crate::{ask, cache, choices, fault, history, prompt, review, tail};

/// How long a first start may keep `session/new` waiting. Without it nobody knows which models there are.
const FIRST_START: Duration = Duration::from_secs(4);
/// How long the CLI may take to stop before the client is answered.
const STOP: Duration = Duration::from_millis(1500);
/// How long the CLI may take to stop before it is killed.
const STOP_OR_DIE: Duration = Duration::from_secs(10);
/// How long to wait for the turn that a subagent's end should start.
const WAKE: Duration = Duration::from_millis(1500);
/// How long to wait for the turn in which a message is read that came too late for the one it was to steer.
const STEERED: Duration = Duration::from_secs(10);
/// Messages that may wait for a CLI that is slow to read; more wait here.
const OUTGOING: usize = 64;
/// Messages that are taken before the client is told.
const BATCH: usize = 512;

/// What others tell the actor.
#[derive(Debug)]
pub(super) enum Note {
    /// The user has allowed a call.
    Allowed(String),
    /// The CLI has taken back a message that no turn had read.
    Withdrawn(String),
    /// The CLI has been interrupted.
    Interrupted,
    /// A choice was made, or not.
    Chosen { order: Order, outcome: Result<(), Error>, whole: bool, responder: Responder },
    /// The CLI says more about itself than it did at its start.
    Known(Box<Known>),
    /// The user should know this about the review of edits.
    Review(String),
    /// What was shown is written down, or not: the session that is open can be shown again.
    Written { request: SetupRequest, transcript: Result<Transcript, ErrorObject>, responder: Responder },
}

/// A session with its CLI, and whether that goes on with a conversation; or why there is none.
type Started = Result<(Session, Events, bool), Error>;

/// The CLI of a session.
enum Cli {
    /// None: not yet, parked, or dead.
    Off,
    /// It starts.
    Starting(BoxFuture<'static, Started>),
    /// It runs.
    On { session: Session, events: Events, outgoing: mpsc::Sender<Outgoing> },
}

/// What is on its way to the CLI.
enum Outgoing {
    Message(Box<User>),
    /// All that was before it has been handed over.
    Fence(oneshot::Sender<()>),
}

/// What wakes the actor.
enum Wake {
    Closed(Option<Responder>),
    Command(Command),
    Started(Started),
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
    /// The turn that a subagent's end or a late message should start does not come.
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
    /// Done when the CLI that ran before is gone.
    leaving: Option<BoxFuture<'static, ()>>,
    /// How the client has asked for the session the last time. It counts when nothing is at work any more.
    wanted: Option<SetupRequest>,
    /// The CLI's own id of the session; `/clear` gives it another one.
    cli_session: String,
    /// How far it is, for those who read its transcript.
    mark: watch::Sender<Mark>,
    /// The CLI has begun a turn.
    has_begun: bool,
    /// Why the CLI that ran before is gone, if nobody asked it to go.
    died: Option<String>,
    /// The CLI was started without any choice, so what is in force is what the settings say.
    is_plain: bool,
    choices: Choices,
    cache: Option<std::path::PathBuf>,
    /// Setups that are answered when the CLI is up.
    setups: Vec<(Begin, Responder)>,
    /// Choices that are made when the CLI is up.
    orders: Vec<(Order, bool, Responder)>,
    /// Prompts to go back to when the CLI is up.
    rewinds: Vec<(String, Responder)>,

    gate: Gate,
    reducer: Reducer,
    screen: Screen,
    tails: Tails,
    turns: Turns,
    /// The prompts' responders, by the uuid of their message.
    responders: HashMap<String, Responder>,
    /// Prompts that the CLI does not have yet.
    waiting: VecDeque<User>,
    /// Messages that the CLI has, and that no turn has begun to read.
    unread: Vec<User>,
    /// Interrupts that are on their way.
    interrupts: usize,
    /// Subagents were stopped by a cancel. The turn in which the CLI tells the model of it is not wanted either.
    hushed_until: Option<Instant>,
    /// A CLI has died with prompts unread, and this one has them.
    is_second_try: bool,
    /// The turn that runs was answered already: what it still says is not for the client.
    muted: bool,
    title: Option<String>,
    /// The title that the user has given. A CLI that ends may write over it, so it is written once more then.
    given_title: Option<String>,
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
        mark: watch::Sender<Mark>,
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
            leaving: None,
            wanted: None,
            cli_session: id,
            mark,
            has_begun: false,
            died: None,
            is_plain: false,
            choices: Choices::default(),
            cache: None,
            setups: Vec::new(),
            orders: Vec::new(),
            rewinds: Vec::new(),
            gate: Gate::default(),
            reducer: Reducer::default(),
            screen,
            tails: Tails::default(),
            turns: Turns::default(),
            responders: HashMap::new(),
            waiting: VecDeque::new(),
            unread: Vec::new(),
            interrupts: 0,
            hushed_until: None,
            is_second_try: false,
            muted: false,
            title: None,
            given_title: None,
            title_told: false,
            told_of_review: false,
        }
    }

    /// The CLI is started when another session is over.
    pub(super) fn after(mut self, before: Option<CancellationToken>) -> Self {
        self.leaving = before.map(|before| before.cancelled_owned().boxed());
        self
    }

    fn context(&self) -> &Context {
        &self.asker.context
    }

    pub(super) async fn run(mut self, begin: Begin, past: Past, responder: Responder) {
        let past = tokio::select! {
            biased;
            closing = &mut self.closed => {
                responder.error(&closed());
                return self.end(closing.ok().flatten()).await;
            }
            past = past => past,
        };
        match past {
            Ok(transcript) => self.begin(begin, transcript, responder).await,
            Err(error) => {
                responder.error(&error);
                return self.end(None).await;
            }
        }
        loop {
            match self.next().await {
                Wake::Closed(responder) => return self.end(responder).await,
                Wake::Command(command) => self.obey(command),
                Wake::Started(outcome) => self.started(outcome),
                Wake::Message(item) => self.hear(item).await,
                Wake::Note(note) => self.note(note).await,
                Wake::Output => {
                    for output in self.tails.read() {
                        self.screen.output(&output.tool_use_id, &output.text);
                    }
                }
                Wake::Timer(timer) => self.ring(timer),
            }
            self.renew();
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
                false => {
                    asker.context.peer.ready().await;
                    tails.changed().await;
                }
            }
        };
        tokio::select! {
            biased;
            responder = closed => Wake::Closed(responder.ok().flatten()),
            Some(command) = commands.recv() => Wake::Command(command),
            Some(note) = noted.recv() => Wake::Note(note),
            // A CLI that never stops to talk must not keep us from ending it.
            timer = ring => Wake::Timer(timer),
            wake = heard => wake,
            () = output => Wake::Output,
        }
    }

    // ---- what others say

    async fn note(&mut self, note: Note) {
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
            Note::Interrupted => self.interrupts -= 1,
            Note::Chosen { order, outcome, whole, responder } => match outcome {
                Ok(()) => self.chosen(&order, whole, responder),
                Err(error) => responder.error(&fault::cli(&error)),
            },
            Note::Known(known) => {
                if let Some(place) = &self.cache {
                    let to_keep = (*known).clone();
                    cache::store(place, &if self.is_plain { to_keep } else { to_keep.without_defaults() });
                }
                if self.choices.learn(&known) {
                    self.tell_mode();
                }
            }
            Note::Written { request, transcript, responder } => match transcript {
                Ok(transcript) => {
                    self.replay(&transcript).await;
                    self.screen.tell_at_work();
                    self.flush();
                    self.set_up_again(Begin::Load, request, responder);
                }
                Err(error) => responder.error(&error),
            },
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

    /// Could the CLI be let go, without a loss?
    fn is_at_rest(&self) -> bool {
        let state = self.reducer.state();
        self.turns.is_idle()
            && matches!(self.cli, Cli::On { .. })
            && state.tasks.is_empty()
            && state.questions.is_empty()
            && self.interrupts == 0
            && self.waiting.is_empty()
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
            let wait = if self.turns.is_steered() { STEERED } else { WAKE };
            self.timers.entry("wake").or_insert((now + wait, Timer::Wake));
        } else {
            self.timers.remove("wake");
        }
        match self.context().settings.park_after {
            Some(after) if self.is_at_rest() => {
                self.timers.entry("park").or_insert((now + after, Timer::Park));
            }
            _ => drop(self.timers.remove("park")),
        }
    }
}

/// Hands messages to the CLI one by one: it may be slow to take them.
async fn send_all(session: Session, mut outgoing: mpsc::Receiver<Outgoing>) {
    while let Some(next) = outgoing.recv().await {
        let user = match next {
            Outgoing::Message(user) => *user,
            Outgoing::Fence(reached) => {
                let _ = reached.send(());
                continue;
            }
        };
        if let Err(error) = session.send(user).await {
            // The end of the session's messages tells the rest.
            return tracing::debug!(%error, "a message was not taken");
        }
    }
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

/// Writes a title into a transcript that nobody else writes to now.
fn keep_title(context: &Context, session_id: String, title: Option<String>) {
    let Some(title) = title else { return };
    if let Err(error) = history::rename(context, &SetTitleRequest { session_id, title }) {
        tracing::warn!(%error, "the title was not kept");
    }
}
