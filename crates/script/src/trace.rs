//! Recorded traces: what the CLI wrote is written again, what the host wrote is waited for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::Instant;

use crate::play::Outcome;
use crate::player::Player;

/// A recording.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    entries: Vec<Entry>,
    pub(crate) speed: Option<f64>,
    code: i32,
    /// The CLI ended by itself, with its input still open.
    ends_alone: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Seconds since the start.
    at: f64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// The host wrote this; `Null` for what is no JSON.
    In(Value),
    /// The CLI wrote this, on stdout or stderr.
    Out(String),
    Err(String),
}

/// A line of a recording.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(default)]
    t: f64,
    dir: String,
    #[serde(borrow)]
    msg: Option<&'l RawValue>,
    raw: Option<String>,
}

impl Trace {
    pub(crate) fn parse(text: &str) -> Self {
        let mut trace = Self { entries: Vec::new(), speed: None, code: 0, ends_alone: false };
        let (mut is_closed, mut is_recorded) = (false, false);
        for text in text.split('\n') {
            let Ok(line) = serde_json::from_str::<Line<'_>>(text) else {
                // A bare frame, or whatever else the CLI printed.
                if !is_recorded && !text.is_empty() {
                    trace.entries.push(Entry { at: 0.0, what: What::Out(text.to_owned()) });
                }
                continue;
            };
            is_recorded = true;
            let body =
                || line.msg.map(|msg| msg.get().to_owned()).or_else(|| line.raw.clone()).unwrap_or_default();
            let what = match line.dir.as_str() {
                "in" => What::In(serde_json::from_str(&body()).unwrap_or_default()),
                "out" => What::Out(body()),
                "err" => What::Err(line.raw.clone().unwrap_or_else(body)),
                _ => {
                    let event: Value = serde_json::from_str(&body()).unwrap_or_default();
                    match event["event"].as_str() {
                        Some("close_stdin") => is_closed = true,
                        Some("eof") => trace.ends_alone |= !is_closed,
                        Some("exit") => {
                            trace.ends_alone |= !is_closed;
                            trace.code =
                                event["rc"].as_i64().and_then(|code| code.try_into().ok()).unwrap_or(0);
                        }
                        _ => {}
                    }
                    continue;
                }
            };
            // What came after the CLI had ended, it neither read nor wrote.
            if !trace.ends_alone {
                trace.entries.push(Entry { at: line.t, what });
            }
        }
        if !is_recorded {
            // Bare frames answer the first prompt.
            let prompt = serde_json::json!({ "type": "user" });
            trace.entries.insert(0, Entry { at: 0.0, what: What::In(prompt) });
        }
        trace
    }

    /// The version of the CLI that was recorded.
    pub(crate) fn version(&self) -> Option<String> {
        self.entries.iter().find_map(|entry| {
            let What::Out(line) = &entry.what else { return None };
            let frame: Value = serde_json::from_str(line).ok()?;
            let version = frame.get("claude_code_version")?;
            version.as_str().map(ToOwned::to_owned)
        })
    }
}

/// A replay under way.
struct Replay<'r, 'p, R> {
    player: &'r Player<'p>,
    lines: BufReader<R>,
    /// What the host still has to write.
    expected: VecDeque<Value>,
    /// How many expected frames came already, in the order of the recording, or out of it.
    came: VecDeque<bool>,
    /// Ids of the requests that the recorded host made.
    asked: BTreeSet<String>,
    /// Ids of the recording, and what this host uses instead.
    ids: BTreeMap<String, String>,
    is_closed: bool,
}

impl Player<'_> {
    /// Plays a trace to a host that behaves more or less like the recorded one.
    pub(crate) async fn replay(&self, trace: &Trace, reader: impl AsyncRead + Send + Unpin) -> Outcome {
        let expected: VecDeque<Value> = trace
            .entries
            .iter()
            .filter_map(|entry| match &entry.what {
                What::In(frame) => Some(frame.clone()),
                _ => None,
            })
            .collect();
        let mut replay = Replay {
            player: self,
            lines: BufReader::with_capacity(64 * 1024, reader),
            asked: expected
                .iter()
                .filter_map(|frame| frame["request_id"].as_str().map(ToOwned::to_owned))
                .collect(),
            came: expected.iter().map(|_| false).collect(),
            expected,
            ids: BTreeMap::new(),
            is_closed: false,
        };
        match replay.run(trace).await {
            Ok(()) => Outcome::exit(trace.code),
            Err(outcome) => outcome,
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Replay<'_, '_, R> {
    async fn run(&mut self, trace: &Trace) -> Result<(), Outcome> {
        let gone = |_| Outcome::exit(1);
        let mut clock = Instant::now();
        let mut last = 0.0;
        for entry in &trace.entries {
            if let (Some(speed), What::Out(_) | What::Err(_)) = (trace.speed, &entry.what) {
                let wait = Duration::try_from_secs_f64((entry.at - last) / speed).unwrap_or_default();
                tokio::time::sleep_until(clock + wait).await;
            }
            match &entry.what {
                What::In(_) => self.await_next().await?,
                What::Out(line) => {
                    if let Some(mut line) = self.translate(line) {
                        line.push('\n');
                        self.player.write(line.as_bytes()).await.map_err(gone)?;
                    }
                }
                What::Err(line) => self.player.complain(line).await.map_err(gone)?,
            }
            (clock, last) = (Instant::now(), entry.at);
        }
        while !self.is_closed && !trace.ends_alone {
            self.read_line().await?;
        }
        Ok(())
    }

    /// Waits for the frame that comes next in the recording, unless it came already.
    async fn await_next(&mut self) -> Result<(), Outcome> {
        while !self.is_closed && self.came.front() == Some(&false) {
            self.read_line().await?;
        }
        self.expected.pop_front();
        self.came.pop_front();
        Ok(())
    }

    async fn read_line(&mut self) -> Result<(), Outcome> {
        let mut line = Vec::new();
        match self.lines.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => {
                self.is_closed = true;
                return Ok(());
            }
            Ok(_) => {}
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        let frame: Value = serde_json::from_slice(text).unwrap_or_default();
        let fits = |(expected, came): (&Value, &bool)| !came && is_alike(expected, &frame);
        match self.expected.iter().zip(&self.came).position(fits) {
            Some(at) => {
                self.came[at] = true;
                let expected = &self.expected[at];
                for name in ["request_id", "uuid"] {
                    if let (Some(recorded), Some(actual)) = (expected[name].as_str(), frame[name].as_str()) {
                        self.ids.insert(recorded.to_owned(), actual.to_owned());
                    }
                }
                Ok(())
            }
            // A request that was never recorded still gets an answer.
            None if frame["type"] == "control_request" => self.player.take_request(&frame).await,
            None => Ok(()),
        }
    }

    /// A recorded line with this host's ids. `None` for an answer to a request that this host never made.
    fn translate(&self, line: &str) -> Option<String> {
        if line.contains("\"control_response\"")
            && let Ok(frame) = serde_json::from_str::<Value>(line)
            && let Some(id) = frame["response"]["request_id"].as_str()
            && self.asked.contains(id)
            && !self.ids.contains_key(id)
        {
            return None;
        }
        let mut line = line.to_owned();
        for (recorded, actual) in &self.ids {
            if recorded != actual {
                line = line.replace(&format!("\"{recorded}\""), &format!("\"{actual}\""));
            }
        }
        Some(line)
    }
}

/// Whether a frame of the host stands for a recorded one: the same type, and where requests are concerned the same
/// subtype or the same id.
fn is_alike(recorded: &Value, frame: &Value) -> bool {
    if recorded["type"] != frame["type"] {
        return false;
    }
    match recorded["type"].as_str() {
        Some("control_request") => recorded["request"]["subtype"] == frame["request"]["subtype"],
        Some("control_response") => recorded["response"]["request_id"] == frame["response"]["request_id"],
        _ => true,
    }
}
