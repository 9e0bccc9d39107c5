//! From messages to events: a pure reducer.
//!
//! The CLI's messages are close to the wire: text comes twice (in pieces and whole), a question can come before the call
//! that it is about, subagents speak in between, costs are sums. [`Reducer`] turns them into [`Event`]s that can be shown
//! as they come, and keeps what is open in a [`State`]. [`Conversation`] folds events into one value, and [`view`]
//! says how to show a tool call.
//!
//! There is no I/O, no clock and no task here: the same messages give the same events. A transcript's records, read as
//! messages, give the events of the session that wrote them, but for the ends of its turns.
//!
//! ```
//! use oarlock_agent::reduce::{Event, Reducer};
//! use oarlock_agent::stream::decode;
//!
//! let lines = [
//!     r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}"#,
//!     r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text"}}}"#,
//!     r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,
//!         "delta":{"type":"text_delta","text":"Hello"}}}"#,
//!     r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Hello"}]}}"#,
//!     r#"{"type":"assistant","message":{"id":"m1","content":
//!         [{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#,
//!     r#"{"type":"result","subtype":"success","total_cost_usd":0.5}"#,
//! ];
//! let (mut reducer, mut shown) = (Reducer::default(), String::new());
//! for line in lines {
//!     for event in reducer.apply(decode(line.as_bytes()).expect("a message")) {
//!         match event {
//!             Event::Text { text, .. } => shown += &text,
//!             Event::ToolCall(call) => shown += &format!(" [{}]", call.name),
//!             Event::TurnEnded(end) => shown += &format!(" ${}", end.cost_usd),
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(shown, "Hello [Bash] $0.5");
//! assert!(reducer.state().calls.is_empty(), "what never got a result is closed with its turn");
//! ```
//!
//! # What can be relied on
//!
//! - [`Event::TurnStarted`] comes before all else of a turn, [`Event::TurnEnded`] after. Background tasks and their
//!   subagents go on outside of turns.
//! - The [`Event::Text`]s and [`Event::Thinking`]s of a block, joined, are the block that [`Event::BlockFinished`] has. A
//!   block that breaks off is followed by [`Event::BlockAbandoned`] instead.
//! - [`Event::ToolCall`] comes before its [`Event::Permission`] and its [`Event::ToolResult`]. A call ends by exactly one
//!   `ToolResult` or [`Event::ToolCancelled`]. (A result may come later than the CLI should send it; then it is still
//!   given.)
//! - [`Event::ModeChanged`], [`Event::ModelChanged`], [`Event::SessionChanged`] and [`Event::Plan`] come when there is
//!   a difference.
//! - A message that nothing is known about is an [`Event::Other`]. Only what says nothing new gives no event at all: the
//!   ends of blocks and messages, signatures (they are in the finished block), and empty output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::vec::Drain;

use crate::stream::{
    CanUseTool, CommandLifecycle, CommandState, ControlRequest, Message, ModelUsage, RateLimitEvent, Request,
    ToolProgress,
};

mod conversation;
mod event;
mod message;
mod plan;
mod state;
mod system;
mod task;
mod turn;
mod user;
pub mod view;

pub use conversation::*;
pub use event::*;
pub use state::*;

use message::Thread;

/// Turns messages into events. See the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Reducer {
    state: State,
    /// What the running turn has shown so far.
    turn: turn::Turn,
    /// The message that is being written on the main thread.
    main: Option<Thread>,
    /// The messages that subagents write, by the call that started them.
    subagents: BTreeMap<String, Thread>,
    /// Calls that had their result before a message made them.
    early: BTreeSet<String>,
    /// Foreground tasks whose call has its result.
    answered_tasks: BTreeSet<String>,
    /// Does the CLI tell which user messages a turn answers? Old ones do so by replays only.
    tells_answers: bool,
    /// The last sums that the CLI told.
    cost_usd: f64,
    model_usage: BTreeMap<String, ModelUsage>,
    /// The next synthetic message is the summary.
    compacted: bool,
    events: Vec<Event>,
}

impl Reducer {
    /// Takes the next message, and gives what it means.
    ///
    /// All of it is reduced already; events that are not taken are dropped.
    pub fn apply(&mut self, message: Message) -> Drain<'_, Event> {
        self.reduce(message);
        self.events.drain(..)
    }

    /// The CLI is gone: everything that is open ends. The next message may be another process's.
    pub fn close(&mut self) -> Drain<'_, Event> {
        self.end_tasks(|_| true);
        self.end_turn(None);
        for request_id in std::mem::take(&mut self.state.questions).into_keys() {
            self.events.push(Event::QuestionWithdrawn { request_id });
        }
        self.state.queued.clear();
        self.tells_answers = false;
        self.compacted = false;
        self.forget_sums();
        self.events.drain(..)
    }

    /// How the session stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The host has sent a user message with this uuid.
    pub fn sent(&mut self, uuid: &str) {
        if !self.state.queued.iter().any(|queued| queued == uuid) {
            self.state.queued.push(uuid.into());
        }
    }

    /// The host has answered a question. One that it does not tell of is closed by the tool's result.
    pub fn answered(&mut self, request_id: &str) {
        self.state.questions.remove(request_id);
    }

    fn reduce(&mut self, message: Message) {
        match message {
            Message::StreamEvent(stream) => self.on_stream_event(stream),
            Message::Assistant(assistant) => self.on_assistant(*assistant),
            Message::User(user) => self.on_user(user),
            Message::System(system) => self.on_system(system),
            Message::Result(result) => {
                self.start_turn();
                self.end_turn(Some(*result));
            }
            Message::ControlRequest(request) => self.on_request(request),
            Message::ControlResponse(response) => {
                // With replays the CLI repeats the host's answers.
                if let Some(request_id) = response.request_id() {
                    self.state.questions.remove(request_id);
                }
                self.other(Message::ControlResponse(response));
            }
            Message::ControlCancelRequest(cancel) => {
                if self.state.questions.remove(&cancel.request_id).is_some() {
                    self.events.push(Event::QuestionWithdrawn { request_id: cancel.request_id });
                } else {
                    self.other(Message::ControlCancelRequest(cancel));
                }
            }
            Message::ToolProgress(progress) => self.on_tool_progress(progress),
            Message::CommandLifecycle(lifecycle) => self.on_lifecycle(lifecycle),
            Message::ConversationReset(reset) => {
                self.forget_sums();
                self.set_plan(Vec::new());
                self.events.push(Event::ConversationReset(Box::new(reset)));
            }
            Message::RateLimitEvent(limit) => {
                let RateLimitEvent { rate_limit_info, .. } = *limit;
                self.events.push(Event::RateLimit(Box::new(rate_limit_info)));
            }
            other => self.other(other),
        }
    }

    fn other(&mut self, message: Message) {
        self.events.push(Event::Other(Box::new(message)));
    }

    fn on_request(&mut self, ControlRequest { request_id, request, extra }: ControlRequest) {
        let (kind, tool_use_id, event) = match request {
            Request::CanUseTool(request) => {
                let call = self.call_in_question(&request);
                let id = call.id.clone();
                let permission = Permission { request_id: request_id.clone(), call, request: *request };
                (QuestionKind::Permission, Some(id), Event::Permission(Box::new(permission)))
            }
            Request::Elicitation(request) => {
                let event = Event::Elicitation { request_id: request_id.clone(), request };
                (QuestionKind::Elicitation, None, event)
            }
            Request::RequestUserDialog(request) => {
                let id = request.tool_use_id.clone();
                let event = Event::Dialog { request_id: request_id.clone(), request: Box::new(request) };
                (QuestionKind::Dialog, id, event)
            }
            request => {
                return self.other(Message::ControlRequest(ControlRequest { request_id, request, extra }));
            }
        };
        self.state.questions.insert(request_id, Question { tool_use_id, kind });
        self.events.push(event);
    }

    /// The call that a permission is asked for. In a subagent the question can come before the call.
    fn call_in_question(&mut self, request: &CanUseTool) -> Arc<ToolCall> {
        if let Some(OpenCall { call, complete }) = self.state.calls.get(&request.tool_use_id) {
            if *complete {
                return call.clone();
            }
            let call = ToolCall { input: request.input.clone(), ..(**call).clone() };
            return self.open_call(call);
        }
        let asker = request.agent_id.as_ref().and_then(|id| self.state.tasks.get(id));
        let call = ToolCall {
            id: request.tool_use_id.clone(),
            name: request.tool_name.clone(),
            input: request.input.clone(),
            parent_tool_use_id: asker.and_then(|task| task.tool_use_id.clone()),
            ..ToolCall::default()
        };
        self.open_call(call)
    }

    /// Puts a call with its whole input into the table, and says so.
    fn open_call(&mut self, call: ToolCall) -> Arc<ToolCall> {
        let call = Arc::new(call);
        if !self.early.contains(&call.id) {
            self.state.calls.insert(call.id.clone(), OpenCall { call: call.clone(), complete: true });
        }
        self.events.push(Event::ToolCall(call.clone()));
        call
    }

    fn on_tool_progress(&mut self, progress: ToolProgress) {
        let ToolProgress { tool_use_id, parent_tool_use_id, elapsed_time_seconds, heartbeat, .. } = progress;
        // A heartbeat has an id of its own, and the call's as its parent.
        let id = match parent_tool_use_id {
            Some(parent) if heartbeat == Some(true) => parent,
            Some(parent)
                if !self.state.calls.contains_key(&tool_use_id) && self.state.calls.contains_key(&parent) =>
            {
                parent
            }
            _ => tool_use_id,
        };
        let call = self.state.calls.get(&id).map(|open| open.call.clone());
        let elapsed = elapsed_time_seconds.and_then(|seconds| seconds.as_f64()).unwrap_or_default();
        self.events.push(Event::ToolProgress { id, call, elapsed });
    }

    fn on_lifecycle(&mut self, CommandLifecycle { command_uuid: uuid, state, .. }: CommandLifecycle) {
        match &state {
            CommandState::Queued => self.sent(&uuid),
            CommandState::Started => {
                self.start_turn();
                self.turn_answers(&uuid);
            }
            CommandState::Cancelled => {
                self.state.queued.retain(|queued| *queued != uuid);
                self.turn.answers.retain(|answered| *answered != uuid);
            }
            _ => self.state.queued.retain(|queued| *queued != uuid),
        }
        self.events.push(Event::MessageState { uuid, state });
    }
}
