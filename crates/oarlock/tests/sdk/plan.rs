//! What a driver is to do: the plan, as it is handed over in a JSON file.
//!
//! A plan has one or more sessions, played one after the other. In each the driver takes the steps in order, while
//! the callbacks answer by fixed rules.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// All of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The `claude` to run.
    pub(crate) cli: PathBuf,
    /// Where it works.
    pub(crate) cwd: PathBuf,
    /// How many seconds a session may take. Only failures meet it.
    pub(crate) limit: u64,
    pub(crate) sessions: Vec<Session>,
}

/// One session: by default a dialogue, in which everything that is said comes as a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) entry: Entry,
    pub(crate) options: Options,
    /// How tool permissions are answered; the first rule that fits counts. None: there is no such callback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) permissions: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hooks: Vec<Hook>,
    /// How elicitations are answered. None: there is no such callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) elicitation: Option<Value>,
    pub(crate) steps: Vec<Step>,
}

/// Through which door of the SDK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Entry {
    /// A long-lived session.
    #[default]
    Dialogue,
    /// One question: the first step is its text, and at the end the SDK finishes by itself.
    Query,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    /// Stream events too.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) partial: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) forward_subagent_text: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// Thinking, with so many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed_tools: Vec<String>,
    /// The JSON Schema of a structured output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Value>,
    /// MCP servers that the CLI starts.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) mcp_servers: Map<String, Value>,
    /// The in-process MCP server `calc`: `add` (a, b) says `the sum is …`, `fail` fails.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) calculator: bool,
    /// Resume the session before this one.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) resume: bool,
    /// With `resume`, as a new session.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) fork: bool,
}

/// How a permission request is answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Rule {
    /// The tool; none for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    pub(crate) answer: Answer,
    /// Only once so many have been asked in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) together: Option<usize>,
    /// Replaces these fields of the tool's input.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) input: Map<String, Value>,
    /// Accept what the CLI suggests for the next time, too.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) always: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) interrupt: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    #[default]
    Allow,
    Deny,
    /// Not answered at all, until the question is withdrawn.
    Never,
}

/// A hook callback that always answers the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) matcher: Option<String>,
    /// As the protocol has it; `{}` is no opinion.
    pub(crate) answer: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Says something: a text, or a list of content blocks.
    Send(Value),
    /// Waits until so many of these have come since the session began. The marks are the types of messages
    /// (`result`, `system/init` …), `delta` (a text delta), `ask` (a permission request), `withdrawn` and `hook`.
    Wait(String, usize),
    /// Tells the test, which lets the model's `hold` of this name go on and writes the file `NAME.signal`.
    Signal(String),
    Interrupt,
    /// Waits until the CLI has read everything sent so far, by asking it something.
    Settle,
}

impl Session {
    pub(crate) fn dialogue() -> Self {
        Self::default()
    }

    pub(crate) fn query(prompt: &str) -> Self {
        Self { entry: Entry::Query, ..Self::default() }.send(prompt)
    }

    /// Sets options.
    pub(crate) fn with(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self.options);
        self
    }

    pub(crate) fn permissions(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.permissions = rules.into_iter().collect();
        self
    }

    pub(crate) fn hook(mut self, event: &str, matcher: Option<&str>, answer: Value) -> Self {
        self.hooks.push(Hook { event: event.to_owned(), matcher: matcher.map(str::to_owned), answer });
        self
    }

    pub(crate) fn elicitation(mut self, answer: Value) -> Self {
        self.elicitation = Some(answer);
        self
    }

    pub(crate) fn send(self, content: impl Into<Value>) -> Self {
        self.step(Step::Send(content.into()))
    }

    pub(crate) fn wait(self, mark: &str, count: usize) -> Self {
        self.step(Step::Wait(mark.to_owned(), count))
    }

    pub(crate) fn signal(self, name: &str) -> Self {
        self.step(Step::Signal(name.to_owned()))
    }

    pub(crate) fn interrupt(self) -> Self {
        self.step(Step::Interrupt)
    }

    pub(crate) fn settle(self) -> Self {
        self.step(Step::Settle)
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Rule {
    /// Allows everything.
    pub(crate) fn allow() -> Self {
        Self::default()
    }

    pub(crate) fn deny(message: &str) -> Self {
        Self { answer: Answer::Deny, message: Some(message.to_owned()), ..Self::default() }
    }

    pub(crate) fn never() -> Self {
        Self { answer: Answer::Never, ..Self::default() }
    }

    pub(crate) fn input(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.input.insert(name.to_owned(), value.into());
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
