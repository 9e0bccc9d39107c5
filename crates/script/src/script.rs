//! What a script says, checked and ready to be played.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::Error;

/// A scenario that can be played as often as one likes.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) scenario: Scenario,
}

impl Script {
    /// Reads a script from its text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { scenario: crate::parse::scenario(text)? })
    }

    /// Reads a script from a file. Files that it names are found from the folder of this file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Read { path: path.display().to_string(), source };
        let mut script = Self::parse(&std::fs::read_to_string(path).map_err(failed)?)?;
        script.scenario.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(script)
    }

    /// What `claude --version` prints.
    pub fn version(&self) -> String {
        format!("{} (Claude Code)", self.scenario.version)
    }
}

/// The whole document.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
    pub(crate) model: Option<String>,
    pub(crate) session_id: Option<String>,
    /// Sessions that can be resumed; without the list, any.
    pub(crate) sessions: Option<Vec<String>>,
    /// Characters of a delta.
    pub(crate) delta: usize,
    pub(crate) delta_pause: Duration,
    /// Control requests that are never answered.
    pub(crate) ignore: Vec<String>,
    /// Bodies of control answers, by subtype.
    pub(crate) answers: Map<String, Value>,
    /// Control requests that fail, with the message.
    pub(crate) errors: Map<String, Value>,
    /// Laid over each `system/init`.
    pub(crate) init: Map<String, Value>,
    /// Laid over the answer to `initialize`.
    pub(crate) initialize: Map<String, Value>,
    pub(crate) turns: Vec<Turn>,
}

/// What happens after a prompt.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Only for prompts that contain this.
    pub(crate) when: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// One step of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) act: Act,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Nothing; the step was only a pause.
    Pause,
    Text {
        text: String,
        repeat: usize,
        delta: Option<usize>,
        delta_pause: Option<Duration>,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Tool uses of one message.
    Tools {
        tools: Vec<ToolUse>,
        parallel: bool,
    },
    ApiError(ApiError),
    Compact {
        trigger: String,
        fields: Map<String, Value>,
    },
    Mode(String),
    Wait(Wait),
    /// Fires a hook event by hand.
    Hook {
        event: String,
        input: Map<String, Value>,
    },
    Elicitation(Elicitation),
    /// Any control request to the host.
    Request {
        request: Map<String, Value>,
        cancel_after: Option<Duration>,
        forget: bool,
    },
    /// Any frame.
    Raw(Value),
    Line {
        line: String,
        repeat: usize,
    },
    Bytes(Vec<u8>),
    Stderr {
        text: String,
        repeat: usize,
    },
    Play(PathBuf),
    /// Ends the turn, with fields laid over its result.
    End(Map<String, Value>),
    Exit(i32),
    Kill,
    StopReading,
    CloseStdout,
}

/// A tool use and what comes of it.
#[derive(Debug, Clone)]
pub(crate) struct ToolUse {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) input: Value,
    /// The content of the tool_result.
    pub(crate) output: Option<Value>,
    /// The tool fails with this.
    pub(crate) error: Option<String>,
    /// `tool_use_result`.
    pub(crate) result: Option<Value>,
    /// Whether the host is asked; without it, as the real CLI does.
    pub(crate) ask: Option<bool>,
    /// Laid over the `can_use_tool` request.
    pub(crate) request: Map<String, Value>,
    pub(crate) lasts: Duration,
    pub(crate) elicit: Option<Elicitation>,
    /// What a subagent does.
    pub(crate) steps: Vec<Step>,
    /// The turn that the CLI starts by itself when a background task has ended.
    pub(crate) then: Option<Vec<Step>>,
}

/// A question of an MCP server.
#[derive(Debug, Clone)]
pub(crate) struct Elicitation {
    pub(crate) server: Option<String>,
    pub(crate) message: String,
    pub(crate) schema: Value,
    pub(crate) url: Option<String>,
}

/// The API answers with an error.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: Option<String>,
    pub(crate) kind: Option<String>,
    /// How often it is tried again; without it, `CLAUDE_CODE_MAX_RETRIES`, or 2.
    pub(crate) retries: Option<u32>,
    /// The last attempt succeeds and the turn goes on.
    pub(crate) recover: bool,
}

/// What a turn waits for.
#[derive(Debug, Clone)]
pub(crate) enum Wait {
    Interrupt,
    /// This many messages in the queue.
    Messages(usize),
    EndOfInput,
    /// A control request of this subtype.
    Request(String),
}
