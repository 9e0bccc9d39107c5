//! A transcript, shown again: its records go the way that a live session's messages go.
//!
//! What is different in a transcript is made up for here. Turns have no end in it, so a prompt ends the one before. What
//! subagents did is in files of their own; live, their calls come before the result of the call that started them.

use std::collections::HashMap;

use oarlock_agent::history::{Messages, Record, Subagent, Transcript};
use oarlock_agent::reduce::{Event, Reducer};
use oarlock_agent::stream::{Content, Message, User};
use oarlock_proto::acp::SessionUpdate;
use oarlock_proto::jsonrpc::ErrorObject;

use super::outputs::Outputs;
use crate::translate::Screen;
use crate::{fault, review};

/// Subagents can start subagents.
const DEEPEST: usize = 8;

/// What a transcript shows, message by message: the same as the session showed when it ran.
pub(crate) struct Replay {
    /// Who is being read; the last one first, since the others wait for it.
    speakers: Vec<Speaker>,
    /// What is still to be read of subagents, by the call that started them.
    subagents: HashMap<String, Subagent>,
    outputs: Outputs,
    pub(super) reducer: Reducer,
    screen: Screen,
    closed: bool,
}

/// The main conversation, or a subagent.
struct Speaker {
    messages: Messages,
    /// The call that started it.
    call: Option<String>,
    /// The record that waits for a subagent.
    held: Option<Record>,
}

impl Replay {
    /// Begins at the first message.
    pub(crate) fn new(transcript: &Transcript, screen: Screen) -> Result<Self, ErrorObject> {
        let messages = transcript.messages().map_err(|error| fault::cli(&error))?;
        let subagents = transcript.subagents().unwrap_or_default().into_iter();
        let subagents = subagents.filter_map(|subagent| Some((subagent.tool_use_id.clone()?, subagent)));
        Ok(Self {
            speakers: vec![Speaker { messages, call: None, held: None }],
            subagents: subagents.collect(),
            outputs: Outputs::read(transcript.path()).unwrap_or_default(),
            reducer: Reducer::default(),
            screen,
            closed: false,
        })
    }

    /// The next record, and the call whose subagent wrote it.
    pub(super) fn read(&mut self) -> Option<(Record, Option<String>)> {
        loop {
            let depth = self.speakers.len();
            let speaker = self.speakers.last_mut()?;
            let record = match speaker.held.take() {
                Some(record) => record,
                None => match speaker.messages.next() {
                    Some(Ok(record)) => record,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "a record was passed over");
                        continue;
                    }
                    None => {
                        self.speakers.pop();
                        continue;
                    }
                },
            };
            let started = super::results(&record).find_map(|call| self.subagents.remove(call));
            match started.filter(|_| depth < DEEPEST).map(|subagent| (subagent.messages(), subagent)) {
                Some((Ok(messages), subagent)) => {
                    speaker.held = Some(record);
                    self.speakers.push(Speaker { messages, call: subagent.tool_use_id, held: None });
                }
                Some((Err(error), _)) => {
                    tracing::debug!(%error, "a subagent cannot be read");
                    return Some((record, speaker.call.clone()));
                }
                None => return Some((record, speaker.call.clone())),
            }
        }
    }

    /// What a record means.
    pub(super) fn events(&mut self, record: Record, call: Option<String>) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        // Nothing of a turn is left open when the next begins.
        if call.is_none() && record.is_prompt() && self.reducer.state().in_turn {
            events.extend(self.reducer.close());
        }
        let mut message = record.message;
        review::disguise(&mut message);
        match &mut message {
            Message::User(user) => {
                user.parent_tool_use_id = call;
                user.is_synthetic = user.is_synthetic.or(record.is_summary.then_some(true));
            }
            Message::Assistant(assistant) => assistant.parent_tool_use_id = call,
            _ => {}
        }
        events.extend(self.reducer.apply(message));
        for output in self.outputs.behind(&record.uuid) {
            // Live, the CLI repeats it in the user's name.
            let mut user = User::prompt(Content::Text(output));
            user.is_replay = Some(true);
            events.extend(self.reducer.apply(Message::User(Box::new(user))));
        }
        events
    }
}

impl Iterator for Replay {
    type Item = Vec<SessionUpdate>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let events = match self.read() {
                Some((record, call)) => self.events(record, call),
                None if std::mem::replace(&mut self.closed, true) => return None,
                // Whoever was at work then is not any more.
                None => self.reducer.close().collect(),
            };
            for event in events {
                self.screen.show(event);
            }
            if self.closed {
                // Neither are commands and subagents in the background.
                self.screen.abandon();
            }
            let updates = self.screen.take();
            if !updates.is_empty() {
                return Some(updates);
            }
        }
    }
}
