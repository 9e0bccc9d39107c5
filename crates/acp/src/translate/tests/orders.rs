//! Whatever comes in whatever order, the client's rules hold: the fold checks them at every update.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fold::Picture;
use super::{Stage, bare, full, values, zed};

const TOOLS: [&str; 6] = ["Bash", "Edit", "Read", "Agent", "TodoWrite", "mcp__a__b"];

/// Something that happens, to one of the calls there are.
#[derive(Debug, Clone)]
enum Step {
    Announce(usize),
    Call(usize),
    Asked(usize),
    Answer { call: usize, is_error: bool, goes_on: bool },
    TaskStarts(usize),
    TaskEnds { call: usize, fails: bool },
    Output(usize, String),
    Allowed(usize),
    Progress(usize),
    Text,
    TurnEnds,
    Take,
    Abandon,
    Dies,
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0..5usize;
    prop_oneof![
        2 => (0..TOOLS.len()).prop_map(Step::Announce),
        4 => (0..TOOLS.len()).prop_map(Step::Call),
        2 => call.clone().prop_map(Step::Asked),
        4 => (call.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(call, is_error, goes_on)| Step::Answer { call, is_error, goes_on }),
        2 => call.clone().prop_map(Step::TaskStarts),
        2 => (call.clone(), any::<bool>()).prop_map(|(call, fails)| Step::TaskEnds { call, fails }),
        3 => (call.clone(), "[a-c\n]{0,3}").prop_map(|(call, text)| Step::Output(call, text)),
        1 => call.clone().prop_map(Step::Allowed),
        1 => call.prop_map(Step::Progress),
        1 => Just(Step::Text),
        1 => Just(Step::TurnEnds),
        5 => Just(Step::Take),
        1 => Just(Step::Abandon),
        1 => Just(Step::Dies),
    ]
}

struct Play {
    stage: Stage,
    picture: Picture,
    /// The tools of the calls so far; the newest are spoken of most.
    calls: Vec<&'static str>,
}

impl Play {
    fn id(&self, back: usize) -> Option<(String, &'static str)> {
        let at = self.calls.len().checked_sub(back + 1)?;
        Some((format!("t{at}"), self.calls[at]))
    }

    fn begin(&mut self, tool: usize) -> (String, &'static str) {
        self.calls.push(TOOLS[tool]);
        (format!("t{}", self.calls.len() - 1), TOOLS[tool])
    }

    fn take(&mut self) {
        for update in values(&self.stage.screen.take()) {
            self.picture.apply(&update);
        }
    }

    fn step(&mut self, step: Step) -> Option<()> {
        let task = |subtype: &str, id: &str, status: &str| {
            json!({ "type": "system", "subtype": subtype, "task_id": format!("b{id}"), "tool_use_id": id,
                "description": "d", "task_type": "local_bash", "status": status, "summary": "exit code 1" })
        };
        match step {
            Step::Announce(tool) => {
                let (id, tool) = self.begin(tool);
                let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": {} });
                let start = json!({ "type": "content_block_start", "index": self.calls.len(), "content_block": block });
                self.stage.hear(&json!({ "type": "stream_event", "event": start }));
            }
            Step::Call(tool) => {
                let (id, tool) = self.begin(tool);
                self.stage.call(&id, tool, &input(tool));
            }
            Step::Asked(back) => {
                let (id, tool) = self.id(back)?;
                // Nobody asks about a call that is over.
                if self.stage.reducer.state().calls.contains_key(&id) {
                    let mut input = input(tool);
                    input["changed"] = true.into();
                    self.stage.hear(
                        &json!({ "type": "control_request", "request_id": format!("r{id}"), "request": {
                        "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": id } }),
                    );
                }
            }
            Step::Answer { call, is_error, goes_on } => {
                let (id, tool) = self.id(call)?;
                let output = match (tool, goes_on) {
                    ("Bash", true) => json!({ "stdout": "a", "stderr": "", "backgroundTaskId": "b" }),
                    ("Agent", true) => json!({ "status": "async_launched", "agentId": "a" }),
                    ("Bash", false) => json!({ "stdout": "abc", "stderr": "" }),
                    _ => Value::Null,
                };
                self.stage.answer(&id, &json!("Exit code 1\nabc"), is_error, &output);
            }
            Step::TaskStarts(call) => {
                let (id, _) = self.id(call)?;
                self.stage.hear(&task("task_started", &id, "running"));
            }
            Step::TaskEnds { call, fails } => {
                let (id, _) = self.id(call)?;
                self.stage.hear(&task("task_notification", &id, if fails { "failed" } else { "completed" }));
            }
            Step::Output(call, text) => {
                let (id, _) = self.id(call)?;
                self.stage.screen.output(&id, &text);
            }
            Step::Allowed(call) => self.stage.screen.allowed(&self.id(call)?.0),
            Step::Progress(call) => {
                let (id, tool) = self.id(call)?;
                self.stage.hear(&json!({ "type": "tool_progress", "tool_use_id": id, "tool_name": tool,
                    "elapsed_time_seconds": 3 }));
            }
            Step::Text => {
                let block = json!({ "type": "text", "text": "hello" });
                self.stage
                    .hear(&json!({ "type": "assistant", "message": { "id": "m1", "content": [block] } }));
            }
            Step::TurnEnds => {
                self.stage.hear(
                    &json!({ "type": "result", "subtype": "success", "result": "", "is_error": false }),
                );
            }
            Step::Take => self.take(),
            Step::Abandon => self.stage.screen.abandon(),
            Step::Dies => {
                let events: Vec<_> = self.stage.reducer.close().collect();
                events.into_iter().for_each(|event| self.stage.screen.show(event));
            }
        }
        Some(())
    }
}

fn input(tool: &str) -> Value {
    match tool {
        "Bash" => json!({ "command": "make" }),
        "Edit" => json!({ "file_path": "/nowhere/a", "old_string": "a", "new_string": "b" }),
        "Read" => json!({ "file_path": "a" }),
        "Agent" => json!({ "description": "d", "prompt": "p" }),
        "TodoWrite" => json!({ "todos": [] }),
        _ => json!({ "x": 1 }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn acp_tool_02_every_order_of_events_is_shown_by_the_rules(
        steps in prop::collection::vec(step(), 0..60),
        client in 0..3usize,
    ) {
        let client = [zed(), bare(), full()][client].clone();
        let mut play = Play { stage: Stage::new(client), picture: Picture::default(), calls: Vec::new() };
        for step in steps {
            play.step(step);
        }
        play.step(Step::Dies);
        play.step(Step::Abandon);
        play.take();
        prop_assert_eq!(play.picture.open(), [""; 0]);
        prop_assert!(play.stage.screen.calls.is_empty());
    }
}
