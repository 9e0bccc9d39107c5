//! Events: what a session does, each thing once and in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::{PlanEntry, Task};
use crate::stream::{
    Activity, AssistantError, BackgroundTask, CanUseTool, CommandState, CompactBoundary, Content,
    ContentBlock, ConversationReset, Elicitation, HookProgress, HookResponse, HookStarted, Init, Json,
    Message, ModelUsage, Origin, PermissionDenied, PermissionMode, RateLimitInfo, RequestUserDialog,
    SlashCommand, StopReason, System, ToolInput, ToolOutput, ToolResultMeta, ToolUseMeta, TurnResult, Usage,
};

/// One thing that happened.
///
/// Everything is said once, with or without partial messages. What a subagent says and does names the call that started
/// it ([`Event::parent_tool_use_id`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A turn begins. The CLI also begins turns by itself.
    TurnStarted,
    /// A turn is over. All its own calls and questions are closed by now.
    TurnEnded(Box<TurnEnd>),
    /// All there is to know about the session; once a turn.
    Init(Box<Init>),
    /// The session has an id, or another one (after `/clear`).
    SessionChanged {
        /// The id.
        session_id: String,
        /// The one before.
        previous: Option<String>,
    },
    /// Another model answers.
    ModelChanged(String),
    /// Another permission mode is in force.
    ModeChanged(PermissionMode),
    /// The session has a new title.
    TitleChanged(String),
    /// The conversation starts afresh.
    ConversationReset(Box<ConversationReset>),
    /// All slash commands there are.
    Commands(Vec<SlashCommand>),
    /// What the CLI is doing; `None` when it is done with that.
    Activity(Option<Activity>),

    /// More text.
    Text {
        /// The message it belongs to.
        message: Arc<MessageHead>,
        /// The block's place in the message.
        block: u32,
        /// What is new.
        text: String,
    },
    /// More thinking.
    Thinking {
        /// The message it belongs to.
        message: Arc<MessageHead>,
        /// The block's place in the message.
        block: u32,
        /// What is new.
        text: String,
    },
    /// How much has been thought, as the CLI estimates it.
    ThinkingTokens(u64),
    /// A block is whole: text, thinking with its signature, or a kind that is not known. What it says was given before,
    /// piece by piece. (Tool calls and results have events of their own.)
    BlockFinished {
        /// The message it belongs to.
        message: Arc<MessageHead>,
        /// The block's place in the message.
        block: u32,
        /// The whole block.
        content: Box<ContentBlock>,
        /// The name of its record in the transcript.
        uuid: Option<String>,
    },
    /// A block that was begun does not count: the stream broke. The CLI forgets it.
    BlockAbandoned {
        /// The message it belongs to.
        message: Arc<MessageHead>,
        /// The block's place in the message.
        block: u32,
    },
    /// Blocks that were finished are taken back, by their [uuids](Event::BlockFinished::uuid).
    Retracted(Vec<String>),
    /// The model has finished a message; only with partial messages.
    MessageFinished(Box<MessageEnd>),

    /// A tool will be called; its input is still being written. Only with partial messages.
    ToolAnnounced(Arc<ToolCall>),
    /// More of that input.
    ToolInput {
        /// The call, with no input yet.
        call: Arc<ToolCall>,
        /// A piece of JSON text, to be joined with the others.
        json: String,
    },
    /// A tool is called. It comes before all else about the call, and again if something in it turns out otherwise
    /// (a question can come before the message that makes the call).
    ToolCall(Arc<ToolCall>),
    /// A tool is still at work.
    ToolProgress {
        /// The call's id.
        id: String,
        /// The call, when it is known.
        call: Option<Arc<ToolCall>>,
        /// For how long, in seconds.
        elapsed: f64,
    },
    /// A tool was refused without a question. Its result follows.
    PermissionDenied {
        /// The call, when it is known.
        call: Option<Arc<ToolCall>>,
        /// Why.
        denied: Box<PermissionDenied>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call, when it is known.
        call: Option<Arc<ToolCall>>,
        /// The answer.
        result: Arc<ToolResult>,
    },
    /// A call that never gets a result.
    ToolCancelled(Arc<ToolCall>),

    /// May this tool run?
    Permission(Box<Permission>),
    /// An MCP server asks the user.
    Elicitation {
        /// The question's id.
        request_id: String,
        /// The question.
        request: Box<Elicitation>,
    },
    /// The CLI asks the user.
    Dialog {
        /// The question's id.
        request_id: String,
        /// The question.
        request: Box<RequestUserDialog>,
    },
    /// A question needs no answer any more.
    QuestionWithdrawn {
        /// Its id.
        request_id: String,
    },

    /// News about a task: a subagent, a shell command.
    Task {
        /// What is new.
        change: TaskChange,
        /// The task, as it is now.
        task: Arc<Task>,
    },
    /// All background tasks there are.
    BackgroundTasks(Vec<BackgroundTask>),
    /// The whole list of things to do, after a change.
    Plan(Vec<PlanEntry>),

    /// Something that is said to the model.
    Prompt(Box<Prompt>),
    /// The user has interrupted.
    Interrupted {
        /// The call whose subagent it was.
        parent_tool_use_id: Option<String>,
    },
    /// What became of a user message that has a uuid.
    MessageState {
        /// The message.
        uuid: String,
        /// How far it is.
        state: CommandState,
    },

    /// What a slash command wrote. (The result says it again.)
    CommandOutput(String),
    /// The API failed. (The result says it again.)
    ApiFailed(Box<ApiFailure>),
    /// An API call failed and will be tried again.
    Retry(Box<crate::stream::ApiRetry>),
    /// Something the user should read.
    Notice(Box<Notice>),
    /// The conversation is being replaced by a summary.
    Compaction(Compaction),
    /// A hook at work.
    Hook(Box<Hook>),
    /// How the account's limits stand.
    RateLimit(Box<RateLimitInfo>),

    /// A message that is none of this, as it came: kinds that are not known, and those without a meaning for the
    /// conversation.
    Other(Box<Message>),
}

impl Event {
    /// The call whose subagent it is about; `None` for the main conversation and for the session.
    #[must_use]
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        match self {
            Self::Text { message, .. }
            | Self::Thinking { message, .. }
            | Self::BlockFinished { message, .. }
            | Self::BlockAbandoned { message, .. } => message.parent_tool_use_id.as_deref(),
            Self::MessageFinished(end) => end.message.parent_tool_use_id.as_deref(),
            Self::ToolAnnounced(call)
            | Self::ToolCall(call)
            | Self::ToolCancelled(call)
            | Self::ToolInput { call, .. } => call.parent_tool_use_id.as_deref(),
            Self::ToolResult { result, .. } => result.parent_tool_use_id.as_deref(),
            Self::Permission(permission) => permission.call.parent_tool_use_id.as_deref(),
            Self::Prompt(prompt) => prompt.parent_tool_use_id.as_deref(),
            Self::Interrupted { parent_tool_use_id } => parent_tool_use_id.as_deref(),
            Self::ApiFailed(failure) => failure.parent_tool_use_id.as_deref(),
            Self::Other(message) => message.parent_tool_use_id(),
            _ => None,
        }
    }
}

/// What all blocks of a message share.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageHead {
    /// The API's id.
    pub id: String,
    /// The model that speaks.
    pub model: String,
    /// The call that started the subagent which speaks.
    pub parent_tool_use_id: Option<String>,
    /// That subagent's id.
    pub agent_id: Option<String>,
    /// What kind of subagent it is.
    pub subagent_type: Option<String>,
}

/// The end of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEnd {
    /// The message.
    pub message: Arc<MessageHead>,
    /// Why the model stopped; `None` when it was stopped.
    pub stop_reason: Option<StopReason>,
    /// What the call of the API took. Its tokens together are what fills the context.
    pub usage: Usage,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What goes in; `null` while it is being written.
    pub input: Json,
    /// The message that makes the call; `None` while only a question has named it.
    pub message: Option<Arc<MessageHead>>,
    /// The block's place in that message.
    pub block: Option<u32>,
    /// The call that started the subagent which calls.
    pub parent_tool_use_id: Option<String>,
    /// The name of the block's record in the transcript.
    pub uuid: Option<String>,
    /// How to show an MCP tool.
    pub meta: Option<ToolUseMeta>,
    /// Does the API run it itself?
    pub is_server_tool: bool,
}

impl ToolCall {
    /// The input, typed by the tool's name.
    #[must_use]
    pub fn typed_input(&self) -> ToolInput {
        ToolInput::of(&self.name, &self.input)
    }
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// What the model reads: a `tool_result`, or the result of a tool that the API runs.
    pub block: ContentBlock,
    /// What the tool answered, as data. Subagents' results have none.
    pub output: Option<Json>,
    /// How it came about.
    pub meta: Option<ToolResultMeta>,
    /// The call that started the subagent which called.
    pub parent_tool_use_id: Option<String>,
    /// The name of its record in the transcript.
    pub uuid: Option<String>,
}

impl ToolResult {
    /// Did the tool fail, or was it refused?
    #[must_use]
    pub fn is_error(&self) -> bool {
        match &self.block {
            ContentBlock::ToolResult(block) | ContentBlock::McpToolResult(block) => {
                block.is_error == Some(true)
            }
            _ => false,
        }
    }

    /// What the model reads, the text of it.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.block {
            ContentBlock::ToolResult(block) | ContentBlock::McpToolResult(block) => {
                block.content.as_ref().map(Content::text).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    /// The output of a tool, typed by its name.
    #[must_use]
    pub fn typed_output(&self, tool: &str) -> Option<ToolOutput> {
        self.output.as_ref().map(|output| ToolOutput::of(tool, output))
    }
}

/// May this tool run?
#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    /// The question's id.
    pub request_id: String,
    /// The call.
    pub call: Arc<ToolCall>,
    /// The question. Its input is the one to allow; a hook or the CLI may have changed it.
    pub request: CanUseTool,
}

/// What is new about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskChange {
    /// It starts.
    Started,
    /// It goes on.
    Progressed,
    /// Its state has changed.
    Updated,
    /// It is over.
    Ended,
}

/// Something that is said to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Who says it.
    pub kind: PromptKind,
    /// What.
    pub content: Content,
    /// Its name; for a replay the host's own.
    pub uuid: Option<String>,
    /// The call whose subagent hears it.
    pub parent_tool_use_id: Option<String>,
    /// Who or what wrote it.
    pub origin: Option<Origin>,
    /// The message that a refusal was about.
    pub refused_message_id: Option<String>,
}

/// Who says something to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptKind {
    /// The host: the CLI repeats what it was sent, when it reads it. Messages that waited together are joined, and the last
    /// of them has the whole text.
    Replay,
    /// The model, to a subagent.
    Subagent,
    /// The CLI, to go on after a broken stream or a refusal.
    Synthetic,
    /// Not known.
    Other,
}

/// The API failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiFailure {
    /// How.
    pub error: AssistantError,
    /// In words.
    pub text: String,
    /// The HTTP status.
    pub status: Option<u64>,
    /// The API's own word for it.
    pub api_error_type: Option<String>,
    /// The call whose subagent it was.
    pub parent_tool_use_id: Option<String>,
    /// The name of its record in the transcript.
    pub uuid: Option<String>,
}

/// Something the user should read.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// How much it matters.
    pub level: NoticeLevel,
    /// The words.
    pub text: String,
    /// The message that says so, when there is one.
    pub system: Option<System>,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Something has failed.
    Error,
}

/// The conversation is being replaced by a summary.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Compaction {
    /// The summary is being written.
    Started,
    /// It was written, or there was an error.
    Ended {
        /// What went wrong.
        error: Option<String>,
    },
    /// From here on it takes the conversation's place.
    Boundary(Box<CompactBoundary>),
    /// The summary.
    Summary(String),
}

/// A hook at work.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Hook {
    /// It starts.
    Started(HookStarted),
    /// It has written something.
    Progress(HookProgress),
    /// It has ended.
    Ended(HookResponse),
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnEnd {
    /// The CLI's own words; `None` when the session was idle or gone without any. Costs in it are sums over the process.
    pub result: Option<TurnResult>,
    /// The user messages that the turn answers, as far as they have uuids. A CLI that does not tell (before 2.1.325,
    /// without replays) is taken to answer all that [waited](super::Reducer::sent) when the turn began.
    pub answers: Vec<String>,
    /// What this turn cost. Subagents of earlier turns are in it.
    pub cost_usd: f64,
    /// What this turn took, by model.
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Was there any text: the model's, a slash command's, or the API's error? If not, the result's is all there is.
    pub spoke: bool,
}

impl TurnEnd {
    /// Tokens of this turn.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.result.as_ref()?.usage.as_ref()
    }

    /// What made the CLI start the turn by itself.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.result.as_ref()?.origin.as_ref()
    }
}
