//! What a script says, checked and ready to be played.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::Error;
use crate::trace::Trace;

/// A scenario, or a recorded trace, that can be played as often as one likes.
#[derive(Debug, Clone)]
pub struct Script {
    pub(crate) scenario: Scenario,
    pub(crate) trace: Option<Trace>,
}

impl Script {
    /// Reads a script from its text: our own format, or a trace, which is told by its first `{`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.trim_start().starts_with('{') {
            return Ok(Self::from_trace(text));
        }
        Ok(Self { scenario: crate::parse::scenario(text)?, trace: None })
    }

    /// Reads a recorded trace: JSON lines, each with a direction `dir` and a frame `msg`, or bare frames of the CLI, which
    /// are played after the first prompt.
    pub fn from_trace(text: &str) -> Self {
        let trace = Trace::parse(text);
        let version = trace.version().unwrap_or_else(|| DEFAULT_VERSION.to_owned());
        Self { scenario: Scenario { version, ..Scenario::default() }, trace: Some(trace) }
    }

    /// Reads a script from a file. Files that it names are found from the folder of this file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Read { path: path.display().to_string(), source };
        // A trace may hold anything, also bytes that are no text.
        let bytes = std::fs::read(path).map_err(failed)?;
        let mut script = Self::parse(&String::from_utf8_lossy(&bytes))?;
        script.scenario.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(script)
    }

    /// Plays a trace with its pauses, this many times as fast as it was recorded. Without this, it is played without any.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        if let Some(trace) = &mut self.trace {
            trace.speed = (speed > 0.0).then_some(speed);
        }
        self
    }

    /// Whether the process must not end by SIGTERM or SIGINT, as a wedged one does not.
    pub fn ignores_signals(&self) -> bool {
        self.scenario.ignore_signals
    }

    /// What `claude --version` prints.
    pub fn version(&self) -> String {
        format!("{} (Claude Code)", self.scenario.version)
    }
}

/// The version that is claimed when the script names none.
pub(crate) const DEFAULT_VERSION: &str = "2.1.325";
/// Characters of a delta when the script says nothing.
pub(crate) const DEFAULT_DELTA: usize = 12;

/// The whole document.
#[derive(Debug, Clone, Default)]
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
    pub(crate) ignore_signals: bool,
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
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// Only for prompts that contain this.
    pub(crate) when: Option<String>,
    pub(crate) steps: Vec<Step>,
    /// What follows when a Stop hook does not let the turn end.
    pub(crate) on_stop_blocked: Vec<Step>,
}

impl Turn {
    /// Whether it is meant for this prompt in particular.
    pub(crate) fn answers(&self, prompt: &str) -> bool {
        self.when.as_ref().is_some_and(|when| prompt.contains(when))
    }

    /// The turn of a script without turns.
    pub(crate) fn echo() -> Self {
        let text = "You said: ${prompt}".to_owned();
        let act = Act::Text { text, repeat: 1, delta: None, delta_pause: None };
        Self { steps: vec![Step { after: Duration::ZERO, act }], ..Self::default() }
    }
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
