//! A host that plays the other side, over in-memory pipes.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::time::Duration;

use oarlock_script::{Launch, Outcome, Script, play};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;

/// Nothing here takes this long, unless it hangs.
const LONG: Duration = Duration::from_secs(20);

pub(crate) struct Host {
    input: Option<DuplexStream>,
    output: BufReader<DuplexStream>,
    stderr: DuplexStream,
    play: JoinHandle<Outcome>,
    requests: u64,
    /// Every frame so far.
    pub(crate) seen: Vec<Value>,
}

/// The script of that name in `examples`.
pub(crate) fn example(name: &str) -> Script {
    let path = format!("{}/examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Script::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A script whose only turn has these steps.
pub(crate) fn steps(steps: &str) -> Script {
    Script::parse(&format!("[[turn]]\nsteps = [{steps}]")).expect("a script")
}

impl Host {
    pub(crate) fn start(script: Script, launch: Launch) -> Self {
        // Small pipes, so that a side that stops reading is felt.
        let (input, theirs_in) = tokio::io::duplex(4096);
        let (theirs_out, output) = tokio::io::duplex(4096);
        let (theirs_err, stderr) = tokio::io::duplex(1 << 20);
        let play =
            tokio::spawn(async move { play(&script, &launch, theirs_in, theirs_out, theirs_err).await });
        Self {
            input: Some(input),
            output: BufReader::new(output),
            stderr,
            play,
            requests: 0,
            seen: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_line(frame.to_string().as_bytes()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("open input");
        // A CLI that has ended reads no more; what it did is seen in its output.
        let _ = input.write_all(line).await;
        let _ = input.write_all(b"\n").await;
    }

    pub(crate) async fn prompt(&mut self, text: &str) {
        self.send(json!({ "type": "user", "message": { "role": "user", "content": text } })).await;
    }

    /// Sends a prompt that has a uuid.
    pub(crate) async fn prompt_as(&mut self, text: &str, uuid: &str) {
        self.send(json!({ "type": "user", "message": { "role": "user", "content": text }, "uuid": uuid }))
            .await;
    }

    /// Sends a request and gives its id.
    pub(crate) async fn ask(&mut self, request: Value) -> String {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        self.send(json!({ "type": "control_request", "request_id": id, "request": request })).await;
        id
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&mut self, request: Value) -> Value {
        let id = self.ask(request).await;
        let mut answer = self.until(|frame| frame["response"]["request_id"] == *id).await;
        answer["response"].take()
    }

    pub(crate) async fn initialize(&mut self, fields: Value) -> Value {
        let mut request = json!({ "subtype": "initialize" });
        request.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        self.request(request).await
    }

    /// Answers a request of the CLI.
    pub(crate) async fn answer(&mut self, request: &Value, body: Value) {
        let response = json!({ "subtype": "success", "request_id": request["request_id"], "response": body });
        self.send(json!({ "type": "control_response", "response": response })).await;
    }

    /// The next line, as it is; `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = tokio::time::timeout(LONG, self.output.read_until(b'\n', &mut line)).await;
        match read.unwrap_or_else(|_| panic!("nothing came; seen: {:#?}", self.seen)) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line),
        }
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.line().await?;
        let frame: Value = serde_json::from_slice(&line).expect("a frame");
        self.seen.push(frame.clone());
        Some(frame)
    }

    /// The next frame that is wanted. Frames before it are passed over.
    pub(crate) async fn until(&mut self, mut is_wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let Some(frame) = self.next().await else { panic!("it never came; seen: {:#?}", self.seen) };
            if is_wanted(&frame) {
                return frame;
            }
        }
    }

    pub(crate) async fn until_request(&mut self, subtype: &str) -> Value {
        self.until(|frame| frame["type"] == "control_request" && frame["request"]["subtype"] == subtype).await
    }

    pub(crate) async fn until_assistant(&mut self) -> Value {
        self.until(|frame| frame["type"] == "assistant").await
    }

    pub(crate) async fn until_tool_result(&mut self) -> Value {
        self.until(|frame| frame["message"]["content"][0]["type"] == "tool_result").await
    }

    pub(crate) async fn until_result(&mut self) -> Value {
        self.until(|frame| frame["type"] == "result").await
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the input, reads to the end, and gives the outcome with what was on stderr.
    pub(crate) async fn end(mut self) -> (Outcome, String) {
        self.close_input();
        while self.line().await.is_some() {}
        let outcome = tokio::time::timeout(LONG, self.play).await.expect("it ends").expect("no panic");
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).await.expect("stderr");
        (outcome, stderr)
    }

    /// Waits for an end that the CLI chose by itself.
    pub(crate) async fn end_of_its_own(mut self) -> (Outcome, String) {
        while self.line().await.is_some() {}
        let outcome = tokio::time::timeout(LONG, &mut self.play).await.expect("it ends").expect("no panic");
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).await.expect("stderr");
        (outcome, stderr)
    }
}

/// What frames are, for comparing their order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    frames.iter().map(kind).collect()
}

fn kind(frame: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&frame["type"]);
    let detail = match kind.as_str() {
        "stream_event" => text(&frame["event"]["type"]),
        "assistant" | "user" => text(&frame["message"]["content"][0]["type"]),
        "control_request" => text(&frame["request"]["subtype"]),
        "command_lifecycle" => text(&frame["state"]),
        "system" if frame["subtype"] == "status" => format!("status {}", text(&frame["status"])),
        _ => text(&frame["subtype"]),
    };
    if detail.is_empty() { kind } else { format!("{kind} {}", detail.trim()) }
}
