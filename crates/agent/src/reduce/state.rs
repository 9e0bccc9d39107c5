//! What is open in a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::ToolCall;
use crate::stream::{McpServerState, PermissionMode, TaskStatus, TaskType, TaskUsage, TodoStatus};

/// How a session stands: its settings, and what is open in it. What is over is not in it, so it stays small.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct State {
    /// The session's id.
    pub session_id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The directory it works in.
    pub cwd: Option<String>,
    /// The CLI's version.
    pub version: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<PermissionMode>,
    /// What the CLI can do.
    pub capabilities: Vec<String>,
    /// The MCP servers, by name.
    pub mcp_servers: BTreeMap<String, McpServerState>,
    /// Does a turn run?
    pub in_turn: bool,
    /// Calls without a result, by id.
    pub calls: BTreeMap<String, OpenCall>,
    /// Tasks that are not over, by id.
    pub tasks: BTreeMap<String, Arc<Task>>,
    /// Questions without an answer, by request id.
    pub questions: BTreeMap<String, Question>,
    /// User messages that wait, by uuid.
    pub queued: Vec<String>,
    /// The list of things to do.
    pub plan: Vec<PlanEntry>,
    /// Sums since the reducer began.
    pub totals: Totals,
}

impl State {
    /// What the session is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match (self.questions.is_empty(), self.in_turn) {
            (false, _) => Phase::RequiresAction,
            (true, true) => Phase::Running,
            (true, false) => Phase::Idle,
        }
    }
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No turn runs. There may be background tasks.
    Idle,
    /// A turn runs.
    Running,
    /// A question waits for the host's answer.
    RequiresAction,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCall {
    /// The call.
    pub call: Arc<ToolCall>,
    /// Is its input whole?
    pub complete: bool,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The call it is about.
    pub tool_use_id: Option<String>,
    /// What is asked.
    pub kind: QuestionKind,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// May a tool run?
    Permission,
    /// A question of an MCP server's.
    Elicitation,
    /// A question of the CLI's.
    Dialog,
}

/// A task: a subagent, a shell command.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id; for a subagent also the agent's.
    pub id: String,
    /// The call that started it.
    pub tool_use_id: Option<String>,
    /// What kind of task it is.
    pub kind: Option<TaskType>,
    /// What kind of subagent.
    pub subagent_type: Option<String>,
    /// What it is about.
    pub description: String,
    /// What the subagent was told.
    pub prompt: Option<String>,
    /// Does it outlive its turn? Not every CLI says so at the start.
    pub is_background: bool,
    /// How it is.
    pub status: TaskStatus,
    /// What it is doing.
    pub progress: Option<String>,
    /// The tool it used last.
    pub last_tool_name: Option<String>,
    /// What it has used so far.
    pub usage: Option<TaskUsage>,
    /// What came of it, when it is over.
    pub summary: Option<String>,
    /// Where its output is.
    pub output_file: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl Task {
    /// Is it over?
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(
            self.status,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Killed | TaskStatus::Stopped
        )
    }
}

/// A thing to do.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanEntry {
    /// Its id, when the tasks have ids.
    pub id: Option<String>,
    /// What to do.
    pub content: String,
    /// The same, while it is done.
    pub active_form: Option<String>,
    /// How far it is.
    pub status: TodoStatus,
}

/// Sums since the reducer began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Totals {
    /// Turns that are over.
    pub turns: u64,
    /// What they cost.
    pub cost_usd: f64,
    /// Tokens read, besides the cache's.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens put into the cache.
    pub cache_creation_input_tokens: u64,
}
