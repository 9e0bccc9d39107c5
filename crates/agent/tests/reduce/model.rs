//! Made-up sessions, and all the orders in which their messages may come.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A message of the model's, or of a subagent's.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) blocks: Vec<Saying>,
}

#[derive(Debug, Clone)]
pub(crate) enum Saying {
    Text(String),
    Thinking(String),
    Call(Calling),
}

#[derive(Debug, Clone)]
pub(crate) struct Calling {
    tool: &'static str,
    asks: bool,
    fails: bool,
    /// The host tells the reducer that it has answered.
    told: bool,
    subagent: Option<Subagent>,
}

#[derive(Debug, Clone)]
pub(crate) struct Subagent {
    said: Vec<Said>,
    is_background: bool,
    /// Newer CLIs say at once whether it is.
    says_so: bool,
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", "\\PC{1,20}"]
}

fn any_call(depth: u32) -> BoxedStrategy<Calling> {
    let tool = prop::sample::select(vec!["Bash", "Read", "mcp__calc__add", "Brand New"]);
    let plain = (tool, any::<bool>(), any::<bool>(), any::<bool>());
    let plain =
        plain.prop_map(|(tool, asks, fails, told)| Calling { tool, asks, fails, told, subagent: None });
    if depth == 0 {
        return plain.boxed();
    }
    let subagent = (vec(any_said(depth - 1), 0..3), any::<bool>(), any::<bool>(), any::<bool>());
    let task = subagent.prop_map(|(said, is_background, says_so, fails)| Calling {
        tool: "Task",
        asks: false,
        fails: fails && !is_background,
        told: false,
        subagent: Some(Subagent { said, is_background, says_so }),
    });
    prop_oneof![3 => plain, 1 => task].boxed()
}

fn any_said(depth: u32) -> BoxedStrategy<Said> {
    let block = prop_oneof![
        2 => any_text().prop_map(Saying::Text),
        1 => any_text().prop_map(Saying::Thinking),
        2 => any_call(depth).prop_map(Saying::Call),
    ];
    vec(block, 0..5).prop_map(|blocks| Said { blocks }).boxed()
}

/// Turns, each of some messages.
pub(crate) fn any_session() -> impl Strategy<Value = Vec<Vec<Said>>> {
    vec(vec(any_said(1), 0..4), 1..4)
}

/// A line, and the lines that come before it.
struct Step {
    line: Spoken,
    after: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) enum Spoken {
    Cli(Value),
    Answered(String),
}

/// The lines of a session, and what must come before what.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    ids: usize,
    /// Where a text is cut into deltas.
    chunk: usize,
}

impl Script {
    /// `chunk` characters a delta.
    pub(crate) fn of(session: &[Vec<Said>], chunk: usize) -> Self {
        let mut script = Self { chunk: chunk.max(1), ..Self::default() };
        let (mut last, mut cost) = (Vec::new(), 0.0);
        for turn in session {
            let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m",
                "permissionMode": "default", "cwd": "/w", "claude_code_version": "1"});
            let mut before = vec![script.push(init, &last)];
            for said in turn {
                before = script.message(said, None, &before);
            }
            cost += 0.25;
            let result = json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
                "result": "", "total_cost_usd": cost, "usage": {"input_tokens": 1, "output_tokens": 1},
                "modelUsage": {}});
            last = vec![script.push(result, &before)];
        }
        script
    }

    fn push(&mut self, message: Value, after: &[usize]) -> usize {
        self.steps.push(Step { line: Spoken::Cli(message), after: after.to_vec() });
        self.steps.len() - 1
    }

    fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}{}", self.ids)
    }

    fn event(&mut self, event: Value, after: usize) -> usize {
        self.push(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}), &[after])
    }

    /// A message with all that its tools do. Gives what must be over before the next one.
    fn message(&mut self, said: &Said, parent: Option<&str>, before: &[usize]) -> Vec<usize> {
        let id = self.id("msg_");
        // Subagents are not streamed.
        let streams = parent.is_none();
        // The lines of one speaker come in order; what they set off has a life of its own.
        let mut at = if streams {
            let usage = json!({"input_tokens": 3, "output_tokens": 1});
            let message = json!({"id": id, "model": "m", "content": [], "usage": usage});
            let start = json!({"type": "message_start", "message": message});
            let start = json!({"type": "stream_event", "event": start, "parent_tool_use_id": null});
            vec![self.push(start, before)]
        } else {
            before.to_vec()
        };
        let (mut ends, mut index) = (Vec::new(), 0);
        for saying in &said.blocks {
            let (whole, start, deltas) = self.block(saying);
            // An empty block is no frame, and no block to anybody.
            if matches!(saying, Saying::Text(text) | Saying::Thinking(text) if text.is_empty()) {
                continue;
            }
            if streams {
                let start = json!({"type": "content_block_start", "index": index, "content_block": start});
                let mut last = self.event(start, at[0]);
                for delta in deltas {
                    let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
                    last = self.event(delta, last);
                }
                at = vec![last];
            }
            let uuid = self.id("uuid_");
            let frame = json!({"type": "assistant", "uuid": uuid, "parent_tool_use_id": parent,
                "message": {"id": id, "model": "m", "role": "assistant", "content": [whole]}});
            let frame = self.push(frame, &at);
            at = vec![frame];
            if let Saying::Call(call) = saying {
                let id = whole["id"].as_str().expect("an id").to_owned();
                // In a subagent the question may come before the message that makes the call.
                let asked_after = if streams { vec![frame] } else { before.to_vec() };
                ends.extend(self.call(call, &id, parent, frame, &asked_after));
            }
            if streams {
                at = vec![self.event(json!({"type": "content_block_stop", "index": index}), at[0])];
            }
            index += 1;
        }
        if streams {
            let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 9}});
            let last = self.event(delta, at[0]);
            at = vec![self.event(json!({"type": "message_stop"}), last)];
        }
        ends.extend(at);
        ends
    }

    /// A block: whole, as it begins, and its deltas.
    fn block(&mut self, saying: &Saying) -> (Value, Value, Vec<Value>) {
        let pieces = |text: &str| {
            let letters: Vec<_> = text.chars().collect();
            letters.chunks(self.chunk).map(|piece| piece.iter().collect::<String>()).collect::<Vec<_>>()
        };
        match saying {
            Saying::Text(text) => (
                json!({"type": "text", "text": text}),
                json!({"type": "text", "text": ""}),
                pieces(text).iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
            ),
            Saying::Thinking(text) => (
                json!({"type": "thinking", "thinking": text, "signature": "sig"}),
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                pieces(text)
                    .iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                    .chain([json!({"type": "signature_delta", "signature": "sig"})])
                    .collect(),
            ),
            Saying::Call(call) => {
                let id = self.id("toolu_");
                let input = json!({"command": id, "description": "d", "prompt": "p", "file_path": "/w/f"});
                let text = input.to_string();
                let letters: Vec<_> = text.chars().collect();
                (
                    json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}),
                    json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}}),
                    letters
                        .chunks(self.chunk + 7)
                        .map(|piece| {
                            json!({"type": "input_json_delta", "partial_json": piece.iter().collect::<String>()})
                        })
                        .collect(),
                )
            }
        }
    }

    /// A call from its message to its result. Gives what must be over before the turn goes on.
    fn call(
        &mut self,
        call: &Calling,
        id: &str,
        parent: Option<&str>,
        frame: usize,
        asked_after: &[usize],
    ) -> Vec<usize> {
        let mut before = vec![frame];
        if call.asks {
            let request_id = self.id("req_");
            let agent = parent.map(|parent| format!("agent_{parent}"));
            let question = self.push(
                json!({"type": "control_request", "request_id": request_id, "request": {
                    "subtype": "can_use_tool", "tool_name": call.tool, "tool_use_id": id, "agent_id": agent,
                    "input": {"command": id, "description": "d", "prompt": "p", "file_path": "/w/f"}}}),
                asked_after,
            );
            before.push(question);
            if call.told {
                self.steps.push(Step { line: Spoken::Answered(request_id), after: vec![question] });
                before.push(self.steps.len() - 1);
            }
        }
        let mut output = json!(format!("output of {id}"));
        let mut launched = Vec::new();
        if let Some(subagent) = &call.subagent {
            let task = format!("agent_{id}");
            let mut started = json!({"type": "system", "subtype": "task_started", "task_id": task, "tool_use_id": id,
                "description": "d", "task_type": "local_agent"});
            if subagent.says_so {
                started["is_backgrounded"] = json!(subagent.is_background);
            }
            let started = self.push(started, &[frame]);
            let mut last = vec![started];
            for said in &subagent.said {
                last = self.message(said, Some(id), &last);
            }
            launched = vec![started];
            if subagent.is_background {
                before = launched.clone();
                output = json!({"status": "async_launched", "agentId": task});
            }
            let ended = json!({"type": "system", "subtype": "task_notification", "task_id": task, "tool_use_id": id,
                "status": "completed", "output_file": "", "summary": "done"});
            // A subagent that goes on in the background ends after its call has the answer that it does.
            let answered = self.steps.len() + 1;
            let ended = self.push(ended, &last);
            if subagent.is_background {
                self.steps[ended].after.push(answered);
            } else {
                before = vec![ended];
            }
        }
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": format!("result of {id}"),
            "is_error": call.fails});
        let result = json!({"type": "user", "parent_tool_use_id": parent, "uuid": format!("result_{id}"),
            "message": {"role": "user", "content": [result]}, "tool_use_result": output});
        let result = self.push(result, &before);
        launched.push(result);
        launched
    }

    /// The lines in an order that is allowed: each choice takes one of those that may come next.
    pub(crate) fn order(&self, choices: &[usize]) -> Vec<Spoken> {
        let mut waits: Vec<usize> = self.steps.iter().map(|step| step.after.len()).collect();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for (step, Step { after, .. }) in self.steps.iter().enumerate() {
            after.iter().for_each(|&before| next[before].push(step));
        }
        let mut ready: Vec<usize> = (0..self.steps.len()).filter(|&step| waits[step] == 0).collect();
        let mut lines = Vec::new();
        while !ready.is_empty() {
            let choice = choices.get(lines.len() % choices.len().max(1)).copied().unwrap_or(0);
            let step = ready.remove(choice % ready.len());
            lines.push(self.steps[step].line.clone());
            for &later in &next[step] {
                waits[later] -= 1;
                if waits[later] == 0 {
                    let place = ready.partition_point(|&other| other < later);
                    ready.insert(place, later);
                }
            }
        }
        assert_eq!(lines.len(), self.steps.len(), "every line can be said");
        lines
    }
}
