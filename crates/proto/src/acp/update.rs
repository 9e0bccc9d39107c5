//! `session/update`: all that an agent tells without being asked.

use serde::Serialize;

use super::{ConfigOption, ContentBlock, Meta, ToolCall};

/// The parameters of `session/update`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification<'a> {
    /// The session.
    pub session_id: &'a str,
    /// What is new.
    pub update: &'a SessionUpdate,
}

/// What is new in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionUpdate {
    /// The user says something; only in a replay.
    UserMessageChunk(ContentChunk),
    /// The model says something.
    AgentMessageChunk(ContentChunk),
    /// The model thinks something.
    AgentThoughtChunk(ContentChunk),
    /// A tool is called.
    ToolCall(Box<ToolCall>),
    /// Something is new about a call.
    ToolCallUpdate(Box<ToolCall>),
    /// The whole list of things to do.
    Plan(Plan),
    /// A plan with an id (unstable); only for clients that have plans.
    PlanUpdate(PlanUpdate),
    /// All slash commands there are.
    AvailableCommandsUpdate(AvailableCommands),
    /// Another mode is in force.
    CurrentModeUpdate(CurrentMode),
    /// All options.
    ConfigOptionUpdate(ConfigOptions),
    /// The session's title, and when it was last written to.
    SessionInfoUpdate(SessionInfoUpdate),
    /// How full the context is, and what it cost.
    UsageUpdate(UsageUpdate),
    /// Something the user should read; only for clients that show notices.
    Notice(Notice),
    /// The conversation is being replaced by a summary; only for clients that show it.
    CompactionUpdate(CompactionUpdate),
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentChunk {
    /// The piece.
    pub content: ContentBlock,
    /// The message it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A list of things to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The things.
    pub entries: Vec<PlanEntry>,
}

/// A thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// What.
    pub content: String,
    /// How much it matters: `high`, `medium`, `low`.
    pub priority: &'static str,
    /// How far it is: `pending`, `in_progress`, `completed`.
    pub status: &'static str,
}

/// A plan with an id (unstable).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanUpdate {
    /// The plan.
    pub plan: PlanText,
}

/// A plan as Markdown (unstable).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "markdown", rename_all = "camelCase")]
pub struct PlanText {
    /// Its id.
    pub plan_id: String,
    /// The text.
    pub content: String,
}

/// Slash commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AvailableCommands {
    /// All of them.
    pub available_commands: Vec<AvailableCommand>,
}

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AvailableCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
}

/// What may follow a slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandInput {
    /// In words.
    pub hint: String,
}

/// The mode in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentMode {
    /// Its id.
    pub current_mode_id: String,
}

/// Options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOptions {
    /// All of them.
    pub config_options: Vec<ConfigOption>,
}

/// What a list of sessions shows of one. What is not there has not changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfoUpdate {
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was last written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageUpdate {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that fit.
    pub size: u64,
    /// What the turn cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Money.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// Of what.
    pub currency: &'static str,
}

/// Something the user should read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// `info`, `warning`, `error`.
    pub severity: &'static str,
    /// In a few words.
    pub title: String,
    /// In more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The conversation is being replaced by a summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionUpdate {
    /// Its id.
    pub compaction_id: String,
    /// `in_progress`, `completed`, `failed`, `cancelled`.
    pub status: &'static str,
    /// The summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Vec<ContentBlock>>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
