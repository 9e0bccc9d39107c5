//! The first exchange: who speaks, and what each side can do.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Empty, Meta};
use crate::stream::Json;

/// A capability: there, or not. Clients write it as an object, and some as a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Able(pub bool);

impl<'de> Deserialize<'de> for Able {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(Self(!matches!(json.text(), "null" | "false")))
    }
}

/// `initialize`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequest {
    /// The newest version the client speaks.
    pub protocol_version: u64,
    /// What it can do.
    #[serde(default)]
    pub client_capabilities: ClientCapabilities,
    /// Who it is.
    pub client_info: Option<Implementation>,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// What a client can do. Nothing that is not here may be used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// Files through the editor.
    pub fs: FileSystemCapabilities,
    /// Terminals of the editor.
    pub terminal: bool,
    /// What it shows of a session.
    pub session: Option<ClientSessionCapabilities>,
    /// How it logs in.
    pub auth: Option<AuthCapabilities>,
    /// Questions to the user.
    pub elicitation: Option<ElicitationCapabilities>,
    /// Plans with an id (unstable).
    pub plan: Able,
    /// Subagents as sessions of their own (unstable).
    pub subagents: Able,
    /// What is agreed on outside of the protocol (`terminal_output`, `terminal-auth`, …).
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

impl ClientCapabilities {
    /// Does `_meta` have this key, and not as `false` or `null`?
    #[must_use]
    pub fn has_meta(&self, key: &str) -> bool {
        self.meta.as_ref().and_then(|meta| meta.get(key)).is_some_and(|value| match value {
            serde_json::Value::Bool(is_set) => *is_set,
            value => !value.is_null(),
        })
    }

    /// Does it show notices?
    #[must_use]
    pub fn shows_notices(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.notices.0)
    }

    /// Does it show compactions?
    #[must_use]
    pub fn shows_compactions(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.compaction.0)
    }

    /// Does it have switches among its options?
    #[must_use]
    pub fn has_boolean_options(&self) -> bool {
        self.session.as_ref().and_then(|session| session.config_options).is_some_and(|kinds| kinds.boolean.0)
    }

    /// Does it show forms?
    #[must_use]
    pub fn shows_forms(&self) -> bool {
        self.elicitation.is_some_and(|elicitation| elicitation.form.0)
    }

    /// Does it open addresses?
    #[must_use]
    pub fn opens_urls(&self) -> bool {
        self.elicitation.is_some_and(|elicitation| elicitation.url.0)
    }

    /// Can it run the agent's own program in a terminal, to log in?
    #[must_use]
    pub fn logs_in_by_terminal(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.terminal) || self.has_meta("terminal-auth")
    }
}

/// Which methods for files there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileSystemCapabilities {
    /// `fs/read_text_file`.
    pub read_text_file: bool,
    /// `fs/write_text_file`.
    pub write_text_file: bool,
}

/// What a client shows of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientSessionCapabilities {
    /// Compactions.
    pub compaction: Able,
    /// Notices.
    pub notices: Able,
    /// Kinds of options.
    pub config_options: Option<ConfigOptionsCapabilities>,
}

/// Which kinds of options a client shows, besides lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConfigOptionsCapabilities {
    /// Switches.
    pub boolean: Able,
}

/// How a client logs in.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AuthCapabilities {
    /// By running the agent in a terminal.
    pub terminal: bool,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

/// Which questions a client shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ElicitationCapabilities {
    /// Forms.
    pub form: Able,
    /// Addresses to open.
    pub url: Able,
}

/// The answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The version that is spoken from now on.
    pub protocol_version: u16,
    /// What the agent can do.
    pub agent_capabilities: AgentCapabilities,
    /// How to log in.
    pub auth_methods: Vec<AuthMethod>,
    /// Who the agent is.
    pub agent_info: Implementation,
}

/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// `session/load`.
    pub load_session: bool,
    /// What a prompt may hold.
    pub prompt_capabilities: PromptCapabilities,
    /// Which MCP servers it connects to, besides those it starts.
    pub mcp_capabilities: McpCapabilities,
    /// What it does with sessions.
    pub session_capabilities: SessionCapabilities,
    /// What it does about accounts.
    pub auth: AgentAuthCapabilities,
    /// What is agreed on outside of the protocol.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a prompt may hold, besides text and links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptCapabilities {
    /// Pictures.
    pub image: bool,
    /// Sound.
    pub audio: bool,
    /// Resources with their contents.
    pub embedded_context: bool,
}

/// Which MCP servers an agent connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct McpCapabilities {
    /// Over HTTP.
    pub http: bool,
    /// Over server-sent events.
    pub sse: bool,
}

/// What an agent does with sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCapabilities {
    /// `session/list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Empty>,
    /// `session/delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<Empty>,
    /// More than one directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Empty>,
    /// `session/resume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Empty>,
    /// `session/close`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<Empty>,
    /// `session/fork` (unstable).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<Empty>,
    /// `session/set_title` (unstable).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Empty>,
}

/// What an agent does about accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AgentAuthCapabilities {
    /// `logout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logout: Option<Empty>,
}

/// A way to log in: the client runs the agent's program again, with these arguments, in a terminal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthMethod {
    /// In a terminal.
    Terminal {
        /// Its name, for programs.
        id: String,
        /// Its name, for people.
        name: String,
        /// What it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The arguments.
        args: Vec<String>,
        /// The environment.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// What is agreed on outside of the protocol.
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Meta>,
    },
}

/// `authenticate`, from the client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateRequest {
    /// The way, by its name.
    pub method_id: String,
}
