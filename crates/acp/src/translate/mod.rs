//! From events to `session/update`: what a client is shown of a session.
//!
//! [`Screen`] is fed with events, live or from a transcript, and gives updates. Text that is ready together goes out
//! together; everything is said once; both passes end in the same picture.
//!
//! | what | where |
//! | --- | --- |
//! | updates that wait, and how they are joined | [`queue`] |
//! | a tool call's life | [`call`] |
//! | what a call shows: title, content, result | [`face`], [`result`] |
//! | diffs of files | [`diff`] |
//! | commands, terminals, live output | [`command`] |
//! | prompts of the past | [`said`] |
//! | retries, limits, failures | [`notice`] |
//! | compactions | [`compaction`] |
//! | how full the context is | [`usage`] |

mod call;
mod command;
mod compaction;
mod diff;
mod face;
mod notice;
mod queue;
mod result;
mod said;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use oarlock_agent::reduce::{self, Event, MessageHead, NoticeLevel, TurnEnd};
use oarlock_agent::stream::{Message, ResultKind, System, TodoStatus};
use oarlock_proto::acp::{
    ClientCapabilities, ContentChunk, Plan, PlanEntry, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus,
};
use serde_json::json;

use call::Call;
use compaction::Compacting;
use queue::{Queue, Voice, claude_code};
use usage::Usage;
pub(crate) use usage::Windows;

/// Where events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// From a running session.
    Live,
    /// From a transcript: prompts are shown too, and files are not looked at.
    Replay,
}

/// What a client has been shown of a session.
#[derive(Debug)]
pub(crate) struct Screen {
    client: Arc<ClientCapabilities>,
    cwd: String,
    pass: Pass,
    queue: Queue,
    /// Calls that are not over, by id.
    calls: HashMap<String, Call>,
    /// Calls of the running turn that no more is shown of.
    abandoned: BTreeSet<String>,
    plan: Vec<PlanEntry>,
    usage: Usage,
    compacting: Option<Compacting>,
    /// Notices that are told once.
    told: BTreeSet<String>,
    /// A `/model` of the past, until it is clear whether the user typed it.
    switched: Option<ContentChunk>,
}

impl Screen {
    /// An empty one.
    pub(crate) fn new(client: Arc<ClientCapabilities>, cwd: String, pass: Pass) -> Self {
        Self {
            client,
            cwd,
            pass,
            queue: Queue::default(),
            calls: HashMap::new(),
            abandoned: BTreeSet::new(),
            plan: Vec::new(),
            usage: Usage::default(),
            compacting: None,
            told: BTreeSet::new(),
            switched: None,
        }
    }

    /// Shows an event. Errors of the API are not shown live: they answer the prompt.
    pub(crate) fn show(&mut self, event: Event) {
        if let Event::CommandOutput(_) | Event::Text { .. } | Event::Thinking { .. } | Event::ToolCall(_) =
            event
        {
            self.show_switch();
        }
        match event {
            Event::Text { message, text, .. } => self.say(Voice::Speaks, &message, text),
            Event::Thinking { message, text, .. } => self.say(Voice::Thinks, &message, text),
            Event::BlockFinished { message, content, .. } => self.reported(&message, *content),
            Event::ToolAnnounced(call) => self.announce(&call),
            Event::ToolCall(call) => self.call(&call),
            Event::ToolProgress { id, elapsed, .. } => self.progress(&id, elapsed),
            Event::ToolResult { result, .. } => self.result(&result),
            Event::ToolCancelled(call) => self.cancelled(&call.id),
            Event::Task { change, task } => self.task(change, &task),
            Event::Plan(entries) => self.plan(&entries),
            Event::Prompt(prompt) => self.prompt(&prompt),
            Event::CommandOutput(text) => self.queue.tell(text, None),
            Event::ApiFailed(failure)
                if self.pass == Pass::Replay && failure.parent_tool_use_id.is_none() =>
            {
                self.queue.tell(failure.text, failure.uuid);
            }
            Event::Retry(retry) => self.retry(&retry),
            Event::Notice(notice) => self.noticed(&notice),
            Event::RateLimit(limit) => self.rate_limit(&limit),
            Event::Compaction(compaction) => self.compact(compaction),
            Event::SessionChanged { session_id, previous: Some(_) } => {
                let description = format!("What follows is kept as session {session_id}");
                self.notice(NoticeLevel::Info, "The conversation begins anew", Some(&description));
            }
            Event::Init(init) => self.usage.model_is(&init.model),
            Event::ModelChanged(model) => self.usage.model_is(&model),
            Event::MessageFinished(end) if end.message.parent_tool_use_id.is_none() => {
                let update = self.usage.message_finished(&end);
                self.push_usage(update);
            }
            Event::TurnStarted => self.abandoned.clear(),
            Event::TurnEnded(end) => self.turn_ended(*end),
            Event::Other(message) => {
                if let Message::System(System::MemoryRecall(recall)) = *message {
                    self.recalled(&recall);
                }
            }
            // A block that breaks off and one that is taken back have been read already; what replaces them is a message of
            // its own.
            _ => {}
        }
    }

    /// Tells the user something that is not part of the conversation: a notice, or a line for clients without them.
    pub(crate) fn notice(&mut self, level: NoticeLevel, title: &str, description: Option<&str>) {
        if self.pass == Pass::Live {
            let update = notice::update(&self.client, level, title, description);
            self.queue.push(update);
        }
    }

    /// Does an update of another pass end a call that is at work here?
    pub(crate) fn is_premature(&self, update: &SessionUpdate) -> bool {
        let SessionUpdate::ToolCallUpdate(call) = update else { return false };
        let is_end = matches!(call.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed));
        is_end && self.calls.contains_key(&call.tool_call_id)
    }

    /// The client was shown the session from its transcript, which does not tell that calls are at work.
    pub(crate) fn tell_at_work(&mut self) {
        let is_at_work = |call: &&Call| call.status == ToolCallStatus::InProgress;
        for call in self.calls.values().filter(is_at_work) {
            let (id, status) = (call.tool.id.clone(), Some(ToolCallStatus::InProgress));
            self.queue.update(ToolCall { tool_call_id: id, status, ..ToolCall::default() });
        }
    }

    /// What fits into each model, as turns of other sessions have told.
    pub(crate) fn windows_are(&mut self, windows: &Windows) {
        self.usage.windows_are(windows);
    }

    /// What fits into each model, if a turn has told something new since this was asked.
    pub(crate) fn new_windows(&mut self) -> Option<&Windows> {
        self.usage.new_windows()
    }

    /// Takes the updates that are ready to be sent.
    pub(crate) fn take(&mut self) -> Vec<SessionUpdate> {
        self.queue.take()
    }

    fn say(&mut self, voice: Voice, message: &Arc<MessageHead>, text: String) {
        let is_main = message.parent_tool_use_id.is_none();
        if !text.is_empty() && (is_main || self.client.has_meta("subagent-transcript")) {
            self.queue.say(voice, message, text);
        }
    }

    fn plan(&mut self, entries: &[reduce::PlanEntry]) {
        let is_there = |entry: &&reduce::PlanEntry| entry.status != TodoStatus::Deleted;
        let entries: Vec<_> = entries.iter().filter(is_there).map(plan_entry).collect();
        if self.plan != entries {
            self.plan.clone_from(&entries);
            self.queue.plan(SessionUpdate::Plan(Plan { entries }));
        }
    }

    fn turn_ended(&mut self, end: TurnEnd) {
        self.close_compaction();
        let update = self.usage.turn_ended(&end);
        let Some(result) = end.result else { return };
        if !end.spoke
            && !result.is_error
            && result.subtype == ResultKind::Success
            && let Some(text) = result.result.filter(|text| !text.trim().is_empty())
        {
            self.queue.tell(text, None);
        }
        self.push_usage(update);
    }

    fn push_usage(&mut self, update: Option<oarlock_proto::acp::UsageUpdate>) {
        if let Some(update) = update {
            self.queue.push(SessionUpdate::UsageUpdate(update));
        }
    }

    /// The CLI has looked at what it remembers.
    fn recalled(&mut self, recall: &oarlock_agent::stream::MemoryRecall) {
        let locations: Vec<_> = (recall.memories.iter())
            .filter(|memory| memory.path.starts_with('/'))
            .map(|memory| ToolCallLocation { path: memory.path.clone(), line: None })
            .collect();
        let texts = recall.memories.iter().filter_map(|memory| memory.content.clone());
        let title = match recall.memories.len() {
            1 => "Recalled a memory".to_owned(),
            count => format!("Recalled {count} memories"),
        };
        self.queue.call(ToolCall {
            tool_call_id: recall.uuid.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            title: Some(title),
            kind: Some("read"),
            status: Some(ToolCallStatus::Completed),
            content: Some(texts.map(ToolCallContent::text).collect::<Vec<_>>())
                .filter(|content| !content.is_empty()),
            locations: Some(locations).filter(|locations| !locations.is_empty()),
            meta: Some(claude_code(json!({ "toolName": "memory_recall" }))),
            ..ToolCall::default()
        });
    }
}

fn plan_entry(entry: &reduce::PlanEntry) -> PlanEntry {
    let (status, content) = match &entry.status {
        TodoStatus::Completed => ("completed", &entry.content),
        TodoStatus::InProgress => ("in_progress", entry.active_form.as_ref().unwrap_or(&entry.content)),
        _ => ("pending", &entry.content),
    };
    PlanEntry { content: content.clone(), priority: "medium", status }
}
