//! From events to `session/update`: what a client is shown of a session.
//!
//! [`Screen`] is fed with events, live or from a transcript, and gives updates. Text that is ready together goes out
//! together; everything is said once; both passes end in the same picture.

use std::sync::Arc;

use oarlock_agent::reduce::{Event, NoticeLevel};
use oarlock_proto::acp::{ClientCapabilities, ContentBlock, ContentChunk, SessionUpdate};

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
    updates: Vec<SessionUpdate>,
}

impl Screen {
    /// An empty one.
    pub(crate) fn new(client: Arc<ClientCapabilities>, cwd: String, pass: Pass) -> Self {
        Self { client, cwd, pass, updates: Vec::new() }
    }

    /// Shows an event. Errors of the API are not shown live: they answer the prompt.
    pub(crate) fn show(&mut self, event: Event) {
        let _ = (&self.client, &self.cwd, self.pass);
        if let Event::Text { message, text, .. } = event {
            self.updates.push(SessionUpdate::AgentMessageChunk(ContentChunk {
                content: ContentBlock::text(text),
                message_id: Some(message.id.clone()),
                meta: None,
            }));
        }
    }

    /// A call was allowed by the user: it runs.
    pub(crate) fn allowed(&mut self, tool_use_id: &str) {
        let _ = tool_use_id;
    }

    /// A command has written something.
    pub(crate) fn output(&mut self, tool_use_id: &str, text: &str) {
        let _ = (tool_use_id, text);
    }

    /// Tells the user something that is not part of the conversation: a notice, or a line for clients without them.
    pub(crate) fn notice(&mut self, level: NoticeLevel, title: &str, description: Option<&str>) {
        let _ = (level, title, description);
    }

    /// No more is shown of the calls that are open: they have failed, as far as the client is concerned.
    pub(crate) fn abandon(&mut self) {}

    /// How full the context is, in percent.
    pub(crate) fn context_used(&self) -> Option<u8> {
        None
    }

    /// Takes the updates that are ready to be sent.
    pub(crate) fn take(&mut self) -> Vec<SessionUpdate> {
        std::mem::take(&mut self.updates)
    }
}
