//! Compactions: updates of their own, or a tool call for clients that do not know them.

use oarlock_agent::reduce::Compaction;
use oarlock_proto::acp::{
    CompactionUpdate, ContentBlock, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus,
};
use serde_json::json;

use super::queue::claude_code;
use super::{Pass, Screen};

/// A compaction that is not over.
#[derive(Debug)]
pub(super) struct Compacting {
    id: String,
    /// The conversation was replaced; the summary comes next.
    is_done: bool,
}

/// How a compaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Screen {
    pub(super) fn compact(&mut self, compaction: Compaction) {
        match compaction {
            Compaction::Started => {
                self.close_compaction();
                self.open_compaction(uuid::Uuid::new_v4().to_string());
            }
            Compaction::Ended { error: Some(error) } => {
                self.end_compaction(Status::Failed, None, Some(error))
            }
            Compaction::Boundary(boundary) => {
                if self.compacting.is_none() {
                    // A transcript knows only this. Its name is the same every time.
                    let id = boundary.uuid.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
                    self.open_compaction(id);
                }
                if let Some(compacting) = &mut self.compacting {
                    compacting.is_done = true;
                }
                if self.pass == Pass::Live {
                    let update = self.usage.compacted(boundary.compact_metadata.post_tokens);
                    self.push_usage(update);
                }
            }
            Compaction::Summary(summary) => self.end_compaction(Status::Completed, Some(summary), None),
            _ => {}
        }
    }

    /// Is the next thing that is said the summary?
    pub(super) fn awaits_summary(&self) -> bool {
        self.compacting.as_ref().is_some_and(|compacting| compacting.is_done)
    }

    /// Nothing more comes of it.
    pub(super) fn close_compaction(&mut self) {
        let status = if self.awaits_summary() { Status::Completed } else { Status::Cancelled };
        self.end_compaction(status, None, None);
    }

    fn open_compaction(&mut self, id: String) {
        self.compacting = Some(Compacting { id: id.clone(), is_done: false });
        self.push_compaction(id, Status::InProgress, None, None);
    }

    fn end_compaction(&mut self, status: Status, summary: Option<String>, error: Option<String>) {
        if let Some(Compacting { id, .. }) = self.compacting.take() {
            self.push_compaction(id, status, summary, error);
        }
    }

    fn push_compaction(
        &mut self,
        id: String,
        status: Status,
        summary: Option<String>,
        error: Option<String>,
    ) {
        if self.client.shows_compactions() {
            return self.queue.push(SessionUpdate::CompactionUpdate(CompactionUpdate {
                compaction_id: id,
                status: status.as_str(),
                summary: summary.map(|summary| vec![ContentBlock::text(summary)]),
                error,
            }));
        }
        let text = summary.or_else(|| error.map(|error| format!("The compaction failed: {error}")));
        let update = ToolCall {
            tool_call_id: id,
            content: text.map(|text| vec![ToolCallContent::text(text)]),
            ..ToolCall::default()
        };
        match status {
            Status::InProgress => self.queue.call(ToolCall {
                title: Some("Compact conversation".into()),
                kind: Some("think"),
                status: Some(ToolCallStatus::InProgress),
                meta: Some(claude_code(json!({ "toolName": "compact" }))),
                ..update
            }),
            Status::Completed => {
                self.queue.update(ToolCall { status: Some(ToolCallStatus::Completed), ..update });
            }
            Status::Failed | Status::Cancelled => {
                self.queue.update(ToolCall { status: Some(ToolCallStatus::Failed), ..update });
            }
        }
    }
}
