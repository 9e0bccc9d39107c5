//! From the text of a script to a [`Scenario`]. Every complaint names a line.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use crate::Error;
use crate::script::{
    Act, ApiError, DEFAULT_DELTA, DEFAULT_VERSION, Elicitation, Scenario, Step, ToolUse, Turn, Wait,
};

type Fields = Map<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: Option<String>,
    model: Option<String>,
    session_id: Option<String>,
    sessions: Option<Vec<String>>,
    delta: Option<usize>,
    #[serde(default)]
    delta_ms: u64,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    ignore_signals: bool,
    #[serde(default)]
    answers: Fields,
    #[serde(default)]
    errors: Fields,
    #[serde(default)]
    init: Fields,
    #[serde(default)]
    initialize: Fields,
    #[serde(default)]
    turn: Vec<TurnTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnTable {
    when: Option<String>,
    steps: Vec<Spanned<StepTable>>,
    #[serde(default)]
    on_stop_blocked: Vec<Spanned<StepTable>>,
}

/// A step as it is written: one field says what it does, others say how.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct StepTable {
    // What it does.
    text: Option<String>,
    thinking: Option<String>,
    tool: Option<String>,
    tools: Option<Vec<Spanned<StepTable>>>,
    structured_output: Option<Value>,
    api_error: Option<u16>,
    compact: Option<String>,
    mode: Option<String>,
    wait: Option<String>,
    hook: Option<String>,
    elicitation: Option<ElicitationTable>,
    request: Option<Fields>,
    raw: Option<Fields>,
    line: Option<String>,
    bytes: Option<String>,
    stderr: Option<String>,
    play: Option<PathBuf>,
    end: Option<Fields>,
    exit: Option<i32>,
    kill: Option<bool>,
    stop_reading: Option<bool>,
    close_stdout: Option<bool>,
    // How.
    after_ms: Option<u64>,
    repeat: Option<usize>,
    delta: Option<usize>,
    delta_ms: Option<u64>,
    signature: Option<String>,
    id: Option<String>,
    input: Option<Value>,
    output: Option<Value>,
    error: Option<String>,
    result: Option<Value>,
    ask: Option<bool>,
    ask_fields: Option<Fields>,
    lasts_ms: Option<u64>,
    elicit: Option<ElicitationTable>,
    steps: Option<Vec<Spanned<StepTable>>>,
    then: Option<Vec<Spanned<StepTable>>>,
    parallel: Option<bool>,
    message: Option<String>,
    error_type: Option<String>,
    retries: Option<u32>,
    recover: Option<bool>,
    fields: Option<Fields>,
    count: Option<usize>,
    cancel_after_ms: Option<u64>,
    forget: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ElicitationTable {
    server: Option<String>,
    message: String,
    #[serde(default)]
    schema: Value,
    url: Option<String>,
}

/// Reads a scenario.
pub(crate) fn scenario(text: &str) -> Result<Scenario, Error> {
    let reader = Reader { text };
    let document: Document = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        reader.complaint(
            at,
            format!("{}; see `oarlock script --help` for the format", plainly(error.message())),
        )
    })?;
    let turns = document.turn.into_iter().map(|turn| {
        let (steps, on_stop_blocked) = (reader.steps(turn.steps)?, reader.steps(turn.on_stop_blocked)?);
        Ok(Turn { when: turn.when, steps, on_stop_blocked })
    });
    Ok(Scenario {
        folder: PathBuf::new(),
        version: document.version.unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
        model: document.model,
        session_id: document.session_id,
        sessions: document.sessions,
        delta: document.delta.unwrap_or(DEFAULT_DELTA).max(1),
        delta_pause: Duration::from_millis(document.delta_ms),
        ignore: document.ignore,
        ignore_signals: document.ignore_signals,
        answers: document.answers,
        errors: document.errors,
        init: document.init,
        initialize: document.initialize,
        turns: turns.collect::<Result<_, Error>>()?,
    })
}

/// A complaint of the TOML reader. Of an unknown field it lists all there are, where the one that was meant is enough.
fn plainly(complaint: &str) -> String {
    let mut names = complaint.split('`').skip(1).step_by(2);
    let (true, Some(unknown)) = (complaint.starts_with("unknown field"), names.next()) else {
        // The words of TOML, not of the reader.
        let plain = complaint.replace("invalid type: map", "invalid type: a table");
        return plain
            .replace("expected a sequence", "expected a list")
            .replace("expected a map", "expected a table");
    };
    let nearest = names.min_by_key(|name| distance(unknown, name));
    match nearest.filter(|name| distance(unknown, name) <= 1 + unknown.chars().count() / 3) {
        Some(meant) => format!("unknown field `{unknown}`, did you mean `{meant}`?"),
        None => complaint.to_owned(),
    }
}

/// How many characters have to be put in, taken out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in other.chars().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn complaint(&self, at: usize, what: impl Into<String>) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        Error::Script { line: before.matches('\n').count() + 1, what: what.into() }
    }

    fn steps(&self, steps: Vec<Spanned<StepTable>>) -> Result<Vec<Step>, Error> {
        steps.into_iter().map(|step| self.step(step)).collect()
    }

    fn step(&self, step: Spanned<StepTable>) -> Result<Step, Error> {
        let at = step.span().start;
        let mut table = step.into_inner();
        let after = Duration::from_millis(table.after_ms.take().unwrap_or(0));
        let acts = table.acts();
        if let [first, second, ..] = acts.as_slice() {
            let what = format!(
                "a step does one thing, and this one says both `{first}` and `{second}`; make two steps"
            );
            return Err(self.complaint(at, what));
        }
        let Some(&act) = acts.first() else {
            return match table.left_over() {
                None => Ok(Step { after, act: Act::Pause }),
                Some(field) => Err(self.complaint(
                    at,
                    format!(
                        "`{field}` alone does nothing; say what the step does, for example `text` or `tool`"
                    ),
                )),
            };
        };
        let act = self.act(at, act, &mut table)?;
        match table.left_over() {
            None => Ok(Step { after, act }),
            Some(field) => {
                Err(self
                    .complaint(at, format!("`{field}` does not belong to a step of this kind; remove it")))
            }
        }
    }

    fn act(&self, at: usize, name: &'static str, table: &mut StepTable) -> Result<Act, Error> {
        let missing = || self.complaint(at, format!("`{name}` is missing its value"));
        let millis = |value: Option<u64>| value.map(Duration::from_millis);
        let act = match name {
            "text" => Act::Text {
                text: table.text.take().ok_or_else(missing)?,
                repeat: table.repeat.take().unwrap_or(1),
                delta: table.delta.take().map(|delta| delta.max(1)),
                delta_pause: millis(table.delta_ms.take()),
            },
            "thinking" => Act::Thinking {
                thinking: table.thinking.take().ok_or_else(missing)?,
                signature: table.signature.take().unwrap_or_else(|| "c2NyaXB0ZWQ=".to_owned()),
            },
            "tool" => Act::Tools { tools: vec![self.tool(at, table)?], parallel: false },
            "tools" => {
                let tools = table.tools.take().ok_or_else(missing)?.into_iter().map(|tool| {
                    let at = tool.span().start;
                    let mut tool = tool.into_inner();
                    if tool.acts() != ["tool"] {
                        return Err(
                            self.complaint(at, "`tools` holds tool uses only: `{ tool = \"Bash\", … }`")
                        );
                    }
                    let tool_use = self.tool(at, &mut tool)?;
                    match tool.left_over() {
                        None => Ok(tool_use),
                        Some(field) => {
                            Err(self.complaint(at, format!("`{field}` does not belong to a tool use")))
                        }
                    }
                });
                Act::Tools {
                    tools: tools.collect::<Result<_, _>>()?,
                    parallel: table.parallel.take().unwrap_or(false),
                }
            }
            "structured_output" => {
                table.tool = Some("StructuredOutput".to_owned());
                table.input = table.structured_output.take();
                Act::Tools { tools: vec![self.tool(at, table)?], parallel: false }
            }
            "api_error" => Act::ApiError(ApiError {
                status: table.api_error.take().ok_or_else(missing)?,
                message: table.message.take(),
                kind: table.error_type.take(),
                retries: table.retries.take(),
                recover: table.recover.take().unwrap_or(false),
            }),
            "compact" => Act::Compact {
                trigger: table.compact.take().ok_or_else(missing)?,
                fields: table.fields.take().unwrap_or_default(),
            },
            "mode" => Act::Mode(table.mode.take().ok_or_else(missing)?),
            "wait" => {
                Act::Wait(self.wait(at, &table.wait.take().ok_or_else(missing)?, table.count.take())?)
            }
            "hook" => Act::Hook {
                event: table.hook.take().ok_or_else(missing)?,
                input: match table.input.take() {
                    Some(Value::Object(input)) => input,
                    None => Fields::new(),
                    Some(_) => return Err(self.complaint(at, "the `input` of a hook is a table")),
                },
            },
            "elicitation" => Act::Elicitation(table.elicitation.take().ok_or_else(missing)?.into()),
            "request" => Act::Request {
                request: table.request.take().ok_or_else(missing)?,
                cancel_after: millis(table.cancel_after_ms.take()),
                forget: table.forget.take().unwrap_or(false),
            },
            "raw" => Act::Raw(Value::Object(table.raw.take().ok_or_else(missing)?)),
            "line" => Act::Line {
                line: table.line.take().ok_or_else(missing)?,
                repeat: table.repeat.take().unwrap_or(1),
            },
            "bytes" => Act::Bytes(self.bytes(at, &table.bytes.take().ok_or_else(missing)?)?),
            "stderr" => Act::Stderr {
                text: table.stderr.take().ok_or_else(missing)?,
                repeat: table.repeat.take().unwrap_or(1),
            },
            "play" => Act::Play(table.play.take().ok_or_else(missing)?),
            "end" => Act::End(table.end.take().ok_or_else(missing)?),
            "exit" => match table.exit.take().ok_or_else(missing)? {
                code @ 0..=255 => Act::Exit(code),
                _ => return Err(self.complaint(at, "an `exit` code is a number from 0 to 255")),
            },
            "kill" => self.switch(at, name, table.kill.take(), Act::Kill)?,
            "stop_reading" => self.switch(at, name, table.stop_reading.take(), Act::StopReading)?,
            _ => self.switch(at, name, table.close_stdout.take(), Act::CloseStdout)?,
        };
        Ok(act)
    }

    fn switch(&self, at: usize, name: &str, on: Option<bool>, act: Act) -> Result<Act, Error> {
        match on {
            Some(true) => Ok(act),
            _ => Err(self.complaint(at, format!("`{name}` can only be true; leave the step out instead"))),
        }
    }

    fn tool(&self, at: usize, table: &mut StepTable) -> Result<ToolUse, Error> {
        let name = table.tool.take().unwrap_or_default();
        let is_table = table.input.as_ref().is_none_or(Value::is_object);
        if !is_table && name != "StructuredOutput" {
            return Err(
                self.complaint(at, "the `input` of a tool is a table: `input = { command = \"ls\" }`")
            );
        }
        Ok(ToolUse {
            name,
            id: table.id.take(),
            input: table.input.take().unwrap_or_else(|| Value::Object(Fields::new())),
            output: table.output.take(),
            error: table.error.take(),
            result: table.result.take(),
            ask: table.ask.take(),
            request: table.ask_fields.take().unwrap_or_default(),
            lasts: Duration::from_millis(table.lasts_ms.take().unwrap_or(0)),
            elicit: table.elicit.take().map(Into::into),
            steps: self.steps(table.steps.take().unwrap_or_default())?,
            then: table.then.take().map(|then| self.steps(then)).transpose()?,
        })
    }

    fn wait(&self, at: usize, what: &str, count: Option<usize>) -> Result<Wait, Error> {
        Ok(match what {
            "interrupt" => Wait::Interrupt,
            "message" => Wait::Messages(count.unwrap_or(1)),
            "end_of_input" => Wait::EndOfInput,
            other => match other.strip_prefix("request ") {
                Some(subtype) => Wait::Request(subtype.trim().to_owned()),
                None => {
                    let what = format!(
                        "nothing to wait for is called {other:?}; \
                         take \"interrupt\", \"message\", \"end_of_input\" or \"request SUBTYPE\""
                    );
                    return Err(self.complaint(at, what));
                }
            },
        })
    }

    fn bytes(&self, at: usize, hex: &str) -> Result<Vec<u8>, Error> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> =
            digits.chunks(2).map(|pair| if pair.len() == 2 { byte(pair) } else { None }).collect();
        bytes.ok_or_else(|| {
            self.complaint(at, "`bytes` are pairs of hexadecimal digits, for example \"ff fe 0a\"")
        })
    }
}

impl From<ElicitationTable> for Elicitation {
    fn from(table: ElicitationTable) -> Self {
        let schema = match table.schema {
            Value::Null => serde_json::json!({ "type": "object", "properties": {} }),
            schema => schema,
        };
        Self { server: table.server, message: table.message, schema, url: table.url }
    }
}

/// Names of those of the fields that are set.
macro_rules! set_fields {
    ($table:ident: $($field:ident)*) => {
        [$($table.$field.is_some().then_some(stringify!($field)),)*].into_iter().flatten()
    };
}

impl StepTable {
    /// The fields that say what the step does.
    fn acts(&self) -> Vec<&'static str> {
        set_fields!(self: text thinking tool tools structured_output api_error compact mode wait hook elicitation request raw
            line bytes stderr play end exit kill stop_reading close_stdout)
        .collect()
    }

    /// A field that nobody took.
    fn left_over(&self) -> Option<&'static str> {
        set_fields!(self: repeat delta delta_ms signature id input output error result ask ask_fields lasts_ms elicit steps
            then parallel message error_type retries recover fields count cancel_after_ms forget)
        .next()
    }
}
