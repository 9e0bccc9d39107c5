//! Messages of the CLI, and what a person reads of them.

use oarlock_agent::reduce::Reducer;
use oarlock_agent::stream::decode;
use serde_json::{Value, json};

use super::*;

struct Stage {
    reducer: Reducer,
    show: Show,
    now: Instant,
    pieces: Vec<Piece>,
}

impl Stage {
    fn new(look: Look) -> Self {
        Self { reducer: Reducer::default(), show: Show::new(look), now: Instant::now(), pieces: vec![] }
    }

    fn live(thinking: ThinkingShown) -> Self {
        Self::new(Look { is_live: true, is_interactive: true, thinking, ..Look::default() })
    }

    fn says(&mut self, message: Value) {
        let message = decode(message.to_string().as_bytes()).unwrap();
        let events: Vec<Event> = self.reducer.apply(message).collect();
        let cwd = self.reducer.state().cwd.clone();
        for event in events {
            self.pieces.extend(self.show.event(&event, cwd.as_deref(), self.now));
        }
    }

    fn stream(&mut self, event: Value) {
        self.says(json!({"type": "stream_event", "event": event}));
    }

    fn delta(&mut self, index: u32, delta: Value) {
        self.stream(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    fn starts(&mut self, index: u32, block: Value) {
        self.stream(json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn block(&mut self, block: Value) {
        self.says(
            json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [block]}}),
        );
    }

    fn tool(&mut self, id: &str, name: &str, input: Value) {
        self.block(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }

    fn answers(&mut self, id: &str, text: &str, output: Value, is_error: bool) {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
        self.says(json!({"type": "user", "message": {"role": "user", "content": [block]}, "tool_use_result": output}));
    }

    fn ends(&mut self, more: Value) {
        let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "All done.",
            "num_turns": 2, "duration_ms": 1500, "session_id": "s-1", "total_cost_usd": 0.25,
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 1500, "output_tokens": 20}});
        for (name, value) in more.as_object().unwrap() {
            result[name] = value.clone();
        }
        self.says(result);
    }

    /// All there is, without styles; the kind of each piece by a sign.
    fn read(&mut self) -> String {
        let mut text = String::new();
        for piece in self.pieces.drain(..) {
            let (sign, piece) = match piece {
                Piece::Answer(piece) if piece.is_empty() => continue,
                Piece::Answer(piece) => ("A ", piece),
                Piece::Raw(piece) => ("R ", piece),
                Piece::Aside(piece) => ("a ", piece),
                Piece::Line(piece) => ("- ", piece),
                Piece::Warning(piece) => ("! ", piece),
                Piece::Break => continue,
            };
            let piece = anstream::adapter::strip_str(&piece).to_string();
            text.push_str(&format!("{sign}{}\n", piece.trim_end_matches('\n')));
        }
        text
    }
}

fn thinks(stage: &mut Stage) {
    stage.stream(json!({"type": "message_start", "message": {"id": "m1"}}));
    stage.starts(0, json!({"type": "thinking", "thinking": ""}));
    stage.delta(0, json!({"type": "thinking_delta", "thinking": "Hm.\nPerhaps\u{1b}[2J"}));
    stage.now += Duration::from_secs(4);
    stage.block(json!({"type": "thinking", "thinking": "Hm.\nPerhaps\u{1b}[2J", "signature": "x"}));
    stage.starts(1, json!({"type": "text", "text": ""}));
    stage.delta(1, json!({"type": "text_delta", "text": "Yes, **in"}));
    stage.delta(1, json!({"type": "text_delta", "text": "deed**."}));
    stage.block(json!({"type": "text", "text": "Yes, **indeed**."}));
}

#[test]
fn thinking_is_shown_summed_up_or_hidden_and_never_an_answer() {
    let answer = "A Yes, \nA indeed.\n".to_owned();
    for (mode, want) in [
        (ThinkingShown::Show, "a Hm.\nPerhaps\\u{1b}[2J\n"),
        (ThinkingShown::Summary, "- thought for 4 s\n"),
        (ThinkingShown::Hide, ""),
    ] {
        let mut stage = Stage::live(mode);
        thinks(&mut stage);
        assert_eq!(stage.read(), format!("{want}{answer}"), "{mode:?}");
    }
}

#[test]
fn without_a_terminal_the_answer_comes_once_at_the_end_and_as_it_is() {
    let mut stage = Stage::new(Look::default());
    thinks(&mut stage);
    stage.ends(json!({"result": "Yes, **indeed**.\u{1b}"}));
    assert_eq!(
        stage.read(),
        "- thought for 4 s\nR Yes, **indeed**.\u{1b}\n- 1.5 s · 2 turns · 1.5k tokens in (1.5k cached) · 20 out · $0.2500 · session s-1\n"
            .replace('\u{1b}', "")
    );
    assert!(stage.pieces.is_empty());
}

#[test]
fn the_answer_of_a_schema_is_its_json() {
    let mut stage = Stage::new(Look { is_live: true, has_schema: true, ..Look::default() });
    stage.tool("t1", "StructuredOutput", json!({"a": 1}));
    stage.ends(json!({"result": "x", "structured_output": {"a": 1}}));
    let shown = stage.read();
    assert!(shown.starts_with("R {\"a\":1}\n- "), "{shown}");
}

#[test]
fn tools_are_shown_with_their_results_and_diffs() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.says(json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s"}));
    stage.tool("t1", "Bash", json!({"command": "make\u{1b}", "description": "Builds"}));
    let output: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    stage.answers("t1", &output, json!({"stdout": output, "stderr": ""}), false);
    assert_eq!(
        stage.read(),
        "- ● $ make\\u{1b}  Builds\n-   └ line 1\n-     line 2\n-     line 3\n-     line 4\n-     … 13 lines\n-     line 18\n-     line 19\n-     line 20\n"
    );
    stage.tool("t2", "Read", json!({"file_path": "/w/a.rs"}));
    stage.tool("t3", "Edit", json!({"file_path": "/w/a.rs", "old_string": "1", "new_string": "2"}));
    stage.answers(
        "t2",
        "1\tx",
        json!({"type": "text", "file": {"filePath": "/w/a.rs", "content": "x\ny\n"}}),
        false,
    );
    let patch =
        json!([{"oldStart": 7, "oldLines": 2, "newStart": 7, "newLines": 2, "lines": [" x", "-1", "+2"]}]);
    let edit = json!({"filePath": "/w/a.rs", "structuredPatch": patch, "originalFile": "x\n1\n"});
    stage.answers("t3", "ok", edit, false);
    assert_eq!(
        stage.read(),
        "- ● Read a.rs\n- ● Edit a.rs\n- ● Read a.rs\n-   └ 2 lines\n- ● Edit a.rs\n-   └ @@ line 7 @@\n-       x\n-     - 1\n-     + 2\n"
    );
    stage.tool("t4", "Bash", json!({"command": "false"}));
    stage.answers("t4", "Exit code 1", json!("Error: Exit code 1"), true);
    assert_eq!(stage.read(), "- ● $ false\n-   └ Exit code 1\n");
}

#[test]
fn a_change_that_was_asked_about_is_not_shown_twice() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.tool("t1", "Write", json!({"file_path": "/w/n", "content": "x\n"}));
    stage.show.asked("t1");
    let written = json!({"type": "create", "filePath": "/w/n", "content": "x\n", "structuredPatch": []});
    stage.answers("t1", "ok", written, false);
    assert_eq!(stage.read(), "- ● Write /w/n\n-   └ done\n");
}

#[test]
fn the_list_of_things_to_do_is_shown_and_its_tool_is_not() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    let todos = json!([
        {"content": "one", "status": "completed", "activeForm": "doing one"},
        {"content": "two", "status": "in_progress", "activeForm": "doing two"},
        {"content": "three\u{1b}", "status": "pending", "activeForm": "doing three"},
    ]);
    stage.tool("t1", "TodoWrite", json!({"todos": todos}));
    stage.answers("t1", "ok", json!({"oldTodos": [], "newTodos": todos}), false);
    assert_eq!(stage.read(), "- to do:\n-   ☑ one\n-   ▶ doing two\n-   ☐ three\\u{1b}\n");
}

#[test]
fn what_was_refused_because_nobody_could_be_asked_is_said() {
    let denials = json!({"permission_denials": [
        {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm x"}}]});
    let mut stage = Stage::new(Look::default());
    stage.ends(denials.clone());
    assert!(stage.read().contains("! refused, because nobody could be asked: $ rm x; see --allow"));
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.ends(denials);
    assert!(!stage.read().contains("nobody"));
}

#[test]
fn a_failure_is_no_answer() {
    for look in [Look::default(), Look { is_live: true, ..Look::default() }] {
        let mut stage = Stage::new(look);
        stage.ends(json!({"is_error": true, "result": "API Error: 529"}));
        let shown = stage.read();
        assert!(!shown.contains("API Error"), "{shown}");
    }
}

#[test]
fn what_a_slash_command_says_is_the_answer() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.ends(json!({"result": "Unknown command: /x", "num_turns": 0}));
    assert!(stage.read().starts_with("A Unknown command: /x\n"));
}

#[test]
fn of_subagents_their_work_is_shown_indented() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.tool("t1", "Task", json!({"description": "look around", "prompt": "p", "subagent_type": "x"}));
    stage.says(json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "m2", "content": [
        {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "/w/a"}}]}}));
    stage.says(json!({"type": "user", "parent_tool_use_id": "t1", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t2", "content": "1\tx"}]}}));
    assert_eq!(stage.read(), "- ● look around\n-   ● Read /w/a\n");
}

#[test]
fn of_a_subagents_report_only_its_words_are_shown() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.tool("t1", "Task", json!({"description": "look", "prompt": "p", "subagent_type": "x"}));
    let report =
        json!({"status": "completed", "agentId": "a1", "content": [{"type": "text", "text": "Found it."}]});
    stage.answers("t1", "[Subagent hand-back] Not for people.\n  Found it.\nagentId: a1", report, false);
    assert_eq!(stage.read(), "- ● look\n-   └ Found it.\n");
}

#[test]
fn a_call_that_ctrl_c_stopped_is_cancelled_and_the_models_instructions_are_not_shown() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.tool("t1", "Bash", json!({"command": "sleep 9"}));
    let words = "The user doesn't want to proceed with this tool use. STOP what you are doing.";
    stage.answers("t1", words, json!("User rejected tool use"), true);
    assert_eq!(stage.read(), "- ● $ sleep 9\n-   └ cancelled\n");
}

#[test]
fn a_call_that_goes_on_in_the_background_is_not_done() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    let output = json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"});
    stage.tool("t1", "Bash", json!({"command": "make"}));
    stage.answers("t1", "Command running in background with ID: b1.", output, false);
    assert_eq!(stage.read(), "- ● $ make\n-   └ goes on in the background\n");
}

#[test]
fn a_tool_that_is_shown_in_another_way_is_named_when_it_fails() {
    let mut stage = Stage::live(ThinkingShown::Hide);
    stage.tool("t1", "TodoWrite", json!({"todos": []}));
    stage.read();
    stage.answers("t1", "No such tool available", json!("Error"), true);
    let shown = stage.read();
    assert!(shown.lines().count() == 2 && shown.starts_with("- ● "), "{shown}");
}
