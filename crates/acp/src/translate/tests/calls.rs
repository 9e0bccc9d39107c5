//! Tool calls, one kind after the other.

use serde_json::{Value, json};

use super::{Stage, bare, full, text, zed};
use crate::translate::{Pass, Screen};

/// The content of a call.
fn content(stage: &mut Stage, id: &str) -> Vec<Value> {
    let picture = stage.picture();
    picture.call(id).get("content").and_then(Value::as_array).cloned().unwrap_or_default()
}

#[test]
fn a_call_takes_two_messages_before_its_result() {
    let mut stage = Stage::new(zed());
    let event = |event: Value| json!({ "type": "stream_event", "event": event });
    stage.hear(&event(json!({ "type": "message_start", "message": { "id": "m1" } })));
    let block = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": {} });
    stage.hear(&event(json!({ "type": "content_block_start", "index": 0, "content_block": block })));
    let mut all = stage.take();
    for piece in ["{\"command\": ", "\"make\\n", "test\"}"] {
        let delta = json!({ "type": "input_json_delta", "partial_json": piece });
        stage.hear(&event(json!({ "type": "content_block_delta", "index": 0, "delta": delta })));
        all.extend(stage.take());
    }
    stage.call("t1", "Bash", &json!({ "command": "make\ntest" }));
    all.extend(stage.take());
    assert_eq!(all.len(), 2, "{all:#?}");
    let info = json!({ "terminal_id": "t1", "cwd": "/w" });
    assert_eq!(all[0]["_meta"], json!({ "claudeCode": { "toolName": "Bash" }, "terminal_info": info }));
    assert_eq!(all[0]["status"], "pending");
    assert_eq!(all[0]["content"], json!([{ "type": "terminal", "terminalId": "t1" }]));
    assert_eq!(all[1]["title"], "make\ntest", "nothing of a command is hidden");
    assert!(all[1].get("content").is_none(), "the terminal is there already");
    stage.answer("t1", &json!("ok"), false, &json!({ "stdout": "ok", "stderr": "" }));
    let end = stage.take();
    assert_eq!(end[0]["_meta"], json!({ "terminal_output": { "terminal_id": "t1", "data": "ok" } }));
    let exit = json!({ "terminal_id": "t1", "exit_code": 0, "signal": null });
    assert_eq!(end[1]["_meta"], json!({ "terminal_exit": exit }));
    assert_eq!((end.len(), &end[1]["status"]), (2, &json!("completed")));
}

#[test]
fn what_is_ready_together_is_one_message() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "Read", &json!({ "file_path": "a.rs", "offset": 3 }));
    let output = json!({ "type": "text", "file": { "filePath": "/w/a.rs", "content": "fn a() {}\n" } });
    stage.answer("t1", &json!("3\tfn a() {}"), false, &output);
    let updates = stage.take();
    let [call] = &updates[..] else { panic!("{updates:#?}") };
    assert_eq!(call["sessionUpdate"], "tool_call");
    assert_eq!(
        (&call["status"], &call["kind"], &call["name"]),
        (&json!("completed"), &json!("read"), &json!("Read"))
    );
    assert_eq!(call["locations"], json!([{ "path": "/w/a.rs", "line": 3 }]));
    assert_eq!(text(&call["content"][0]), "```\nfn a() {}\n```");
    assert!(call.get("rawInput").is_none() && call.get("rawOutput").is_none(), "everything is said once");
}

#[test]
fn acp_tool_04_a_call_is_in_progress_after_its_permission() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "Bash", &json!({ "command": "ls", "description": "List" }));
    assert_eq!(text(&stage.take()[0]["content"][0]), "List");
    stage.screen.allowed("t1");
    stage.screen.allowed("t1");
    stage.screen.allowed("unknown");
    let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress" });
    assert_eq!(stage.take(), [update]);
    stage.hear(&json!({ "type": "tool_progress", "tool_use_id": "t1", "tool_name": "Bash", "elapsed_time_seconds": 30 }));
    assert_eq!(stage.take()[0]["_meta"]["claudeCode"]["elapsedTimeSeconds"], 30.0);
    stage.answer("t1", &json!("Exit code 2\nno such file"), true, &json!("Error: Exit code 2\nno such file"));
    let end = stage.take();
    assert_eq!(end[0]["status"], "failed");
    assert_eq!(text(&end[0]["content"][0]), "```console\nExit code 2\nno such file\n```");
}

#[test]
fn acp_tool_03_a_diff_is_the_whole_file_before_it_changes_and_is_not_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cwd, path) = (folder.path().to_string_lossy().into_owned(), folder.path().join("a.txt"));
    std::fs::write(&path, "one\ntwo\nthree\n").expect("written");
    let mut stage = Stage::at(bare(), &cwd, Pass::Live);
    let file = path.to_string_lossy();
    stage.call("t1", "Edit", &json!({ "file_path": "a.txt", "old_string": "two", "new_string": "TWO" }));
    let call = stage.take().remove(0);
    let diff = json!({ "type": "diff", "path": file, "oldText": "one\ntwo\nthree\n", "newText": "one\nTWO\nthree\n" });
    assert_eq!(call["content"], json!([diff]));
    assert_eq!(call["locations"], json!([{ "path": file, "line": 2 }]));
    let hunk = json!({ "oldStart": 1, "newStart": 1, "lines": [" one", "-two", "+TWO", " three"] });
    let output = json!({ "filePath": file, "originalFile": "one\ntwo\nthree\n", "structuredPatch": [hunk] });
    stage.answer("t1", &json!("done"), false, &output);
    let end = stage.take().remove(0);
    assert_eq!((&end["status"], end.get("content")), (&json!("completed"), None), "{end}");

    stage.call("t2", "Write", &json!({ "file_path": file, "content": "new\n" }));
    assert_eq!(stage.take()[0]["content"][0]["oldText"], "one\ntwo\nthree\n");
    let output = json!({ "type": "update", "filePath": file, "content": "new\n", "originalFile": "other\n" });
    stage.answer("t2", &json!("done"), false, &output);
    let end = stage.take().remove(0);
    assert_eq!(end["content"][0]["oldText"], "other\n", "it was another file by then");

    stage.call("t3", "Write", &json!({ "file_path": "fresh.txt", "content": "x" }));
    assert_eq!(stage.take()[0]["content"][0]["oldText"], Value::Null);
    let hidden = "The user doesn't want to proceed with this tool use. STOP what you are doing";
    stage.answer("t3", &json!(hidden), true, &json!("User rejected tool use"));
    let end = stage.take().remove(0);
    assert_eq!(end["content"][0]["newText"], "x");
    assert_eq!(text(&end["content"][1]), "Rejected by the user.");
}

#[test]
fn a_large_file_is_shown_where_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.txt");
    let lines: Vec<_> = (0..40_000).map(|number| format!("line {number}\n")).collect();
    std::fs::write(&path, lines.concat()).expect("written");
    let mut stage = Stage::new(bare());
    let input = json!({ "file_path": path, "old_string": "line 20000\n", "new_string": "changed\n" });
    stage.call("t1", "Edit", &input);
    let call = stage.take().remove(0);
    let old = "line 19997\nline 19998\nline 19999\nline 20000\nline 20001\nline 20002\nline 20003\n";
    assert_eq!(call["content"][0]["oldText"], old);
    assert_eq!(call["content"][0]["newText"], old.replace("line 20000", "changed"));
    assert_eq!(call["locations"][0]["line"], 20_001);
}

#[test]
fn a_cell_of_a_notebook_is_an_edit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("n.ipynb");
    std::fs::write(&path, r#"{"cells":[{"id":"c1","source":["a = 1\n","a"]}]}"#).expect("written");
    let mut stage = Stage::new(bare());
    stage.call(
        "t1",
        "NotebookEdit",
        &json!({ "notebook_path": path, "cell_id": "c1", "new_source": "a = 2" }),
    );
    let call = stage.take().remove(0);
    assert_eq!((&call["kind"], &call["content"][0]["oldText"]), (&json!("edit"), &json!("a = 1\na")));
    let output = json!({ "notebook_path": path, "old_source": "a = 1\na", "new_source": "a = 2", "error": "",
        "original_file": "{}", "updated_file": "{ }" });
    stage.answer("t1", &json!("Updated"), false, &output);
    assert!(stage.take()[0].get("content").is_none(), "it was as proposed");
}

#[test]
fn live_output_is_shown_as_it_comes_and_not_again() {
    let mut stage = Stage::new(zed());
    stage.call("t1", "Bash", &json!({ "command": "make" }));
    stage.screen.output("t1", "one\n");
    stage.screen.output("t1", "two\n");
    let updates = stage.take();
    assert_eq!(updates.len(), 2, "the status, and both pieces: {updates:#?}");
    assert_eq!(updates[1]["_meta"]["terminal_output"]["data"], "one\ntwo\n");
    stage.answer(
        "t1",
        &json!("one\ntwo\nthree"),
        false,
        &json!({ "stdout": "one\ntwo\nthree", "stderr": "" }),
    );
    let end = stage.take();
    assert_eq!(end[0]["_meta"]["terminal_output"]["data"], "three");
    assert_eq!(end.len(), 2);
    stage.screen.output("t1", "late");
    assert_eq!(stage.take(), [""; 0], "a call that is over is silent");

    for (whole, rest) in [("one\ntwo", None), ("one\n[cut]", None), ("one\ntwo\n", None)] {
        stage.call("t2", "Bash", &json!({ "command": "make" }));
        stage.screen.output("t2", "one\ntwo\n");
        stage.take();
        stage.answer("t2", &json!(whole), false, &json!({ "stdout": whole, "stderr": "" }));
        let data = stage.take()[0]["_meta"].get("terminal_output").map(|it| it["data"].clone());
        assert_eq!(data, rest, "{whole}");
        stage.screen.calls.clear();
    }
}

#[test]
fn a_command_in_the_background_is_over_when_its_task_is() {
    for (client, is_bare) in [(zed(), false), (bare(), true)] {
        let mut stage = Stage::new(client);
        stage.call("t1", "Bash", &json!({ "command": "make", "run_in_background": true }));
        let task = |subtype: &str| {
            json!({ "type": "system", "subtype": subtype, "task_id": "b1", "tool_use_id": "t1",
            "description": "make", "task_type": "local_bash" })
        };
        stage.hear(&task("task_started"));
        let words =
            "Command running in background with ID: b1. Output is being written to: /t/b1.output. You will";
        stage.answer(
            "t1",
            &json!(words),
            false,
            &json!({ "stdout": "", "stderr": "", "backgroundTaskId": "b1" }),
        );
        stage.screen.output("t1", "built\n");
        stage.hear(&json!({ "type": "result", "subtype": "success", "result": "" }));
        let picture = stage.picture();
        assert_eq!(picture.call("t1")["status"], "in_progress");
        let mut ended = task("task_notification");
        ended["status"] = "failed".into();
        ended["summary"] = "Background command \"make\" failed with exit code 4".into();
        stage.hear(&ended);
        let end = stage.take().pop().expect("the end");
        assert_eq!(end["status"], "failed");
        if is_bare {
            assert_eq!(text(&picture.call("t1")["content"][0]), "```console\nbuilt\n```");
        } else {
            assert_eq!(picture.terminal("t1"), ("built\n", None));
            assert_eq!(end["_meta"]["terminal_exit"]["exit_code"], 4);
        }
    }
}

#[test]
fn a_bare_client_s_running_output_does_not_cost_more_than_twice() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "Bash", &json!({ "command": "make" }));
    let mut bytes = 0;
    for number in 0..2000 {
        stage.screen.output("t1", &format!("line {number}\n"));
        bytes += stage.take().iter().map(|update| update.to_string().len()).sum::<usize>();
    }
    assert!(bytes < 60_000, "{bytes}");
}

#[test]
fn a_cancelled_command_does_not_show_what_the_model_is_told() {
    let mut stage = Stage::new(zed());
    stage.call("t1", "Bash", &json!({ "command": "sleep 30" }));
    let words = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit)";
    stage.answer("t1", &json!(words), true, &json!("User rejected tool use"));
    let picture = stage.picture();
    assert_eq!((picture.terminal("t1"), &picture.call("t1")["status"]), (("", None), &json!("failed")));
}

#[test]
fn a_subagent_reports_and_its_calls_name_it() {
    let mut stage = Stage::new(zed());
    stage.call("t1", "Agent", &json!({ "description": "Look", "prompt": "Look around" }));
    let child = json!({ "type": "tool_use", "id": "t2", "name": "Read", "input": { "file_path": "/w/a" } });
    let talk = json!({ "type": "text", "text": "I look." });
    stage.hear(&json!({ "type": "assistant", "parent_tool_use_id": "t1",
        "message": { "id": "m2", "content": [talk, child] } }));
    stage.hear(&json!({ "type": "user", "parent_tool_use_id": "t1", "message": { "role": "user", "content":
        [{ "type": "tool_result", "tool_use_id": "t2", "content": "     1→one\n     2→two" }] } }));
    let report =
        json!({ "status": "completed", "agentId": "a1", "content": [{ "type": "text", "text": "Seen." }] });
    let frame = json!([{ "type": "text", "text": "Seen." }, { "type": "text", "text": "agentId: a1 (use SendMessage)" }]);
    stage.answer("t1", &frame, false, &report);
    let picture = stage.picture();
    assert_eq!(
        (&picture.call("t1")["kind"], &picture.call("t1")["title"]),
        (&json!("think"), &json!("Look"))
    );
    assert_eq!(picture.call("t1")["content"].as_array().map(Vec::len), Some(1));
    assert_eq!(text(&picture.call("t1")["content"][0]), "Seen.");
    assert_eq!(picture.call("t2")["parent"], "t1");
    assert_eq!(text(&picture.call("t2")["content"][0]), "```\none\ntwo\n```");
    assert_eq!(picture.said(), "", "a subagent's text is for clients that ask for it");
}

#[test]
fn a_subagent_in_the_background_is_over_when_its_task_is() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "Task", &json!({ "description": "Look", "prompt": "Look around" }));
    let task = |subtype: &str| {
        json!({ "type": "system", "subtype": subtype, "task_id": "a1", "tool_use_id": "t1",
        "description": "Look", "task_type": "local_agent", "status": "completed", "summary": "All seen." })
    };
    stage.hear(&task("task_started"));
    stage.answer(
        "t1",
        &json!("Async agent launched"),
        false,
        &json!({ "status": "async_launched", "agentId": "a1" }),
    );
    assert_eq!(stage.picture().call("t1")["status"], "in_progress");
    stage.hear(&task("task_notification"));
    let end = stage.take().remove(0);
    assert_eq!((&end["status"], text(&end["content"][0])), (&json!("completed"), "All seen."));
}

#[test]
fn other_tools_show_what_matters() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "mcp__calc__add", &json!({ "a": 1 }));
    stage.answer("t1", &json!([{ "type": "text", "text": "2" }]), false, &Value::Null);
    let picture = stage.picture();
    let call = picture.call("t1");
    assert_eq!((&call["title"], &call["kind"]), (&json!("calc: add"), &json!("other")));
    assert_eq!((&call["rawInput"], text(&call["content"][0])), (&json!({ "a": 1 }), "2"));

    stage.call("t2", "Read", &json!({ "file_path": "/w/a.png" }));
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    stage.answer("t2", &json!([{ "type": "image", "source": source }]), false, &Value::Null);
    let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    assert_eq!(content(&mut stage, "t2"), [json!({ "type": "content", "content": image })]);

    stage.call("t3", "WebSearch", &json!({ "query": "rust" }));
    let hit = json!({ "content": [{ "title": "Rust", "url": "https://rust-lang.org" }] });
    stage.answer("t3", &json!("…"), false, &json!({ "query": "rust", "results": [hit, "Read more."] }));
    assert_eq!(text(&content(&mut stage, "t3")[0]), "- Rust (https://rust-lang.org)\nRead more.");

    stage.call("t4", "Glob", &json!({ "pattern": "*.rs" }));
    stage.answer("t4", &json!("a.rs"), false, &json!({ "filenames": ["/w/a.rs", "/w/b.rs"] }));
    assert_eq!(text(&content(&mut stage, "t4")[0]), "```\n/w/a.rs\n/w/b.rs\n```");

    let question = json!({ "question": "Which?", "options": [{ "label": "A", "description": "first" }, { "label": "B" }] });
    stage.call("t5", "AskUserQuestion", &json!({ "questions": [question] }));
    let picture = stage.picture();
    let call = picture.call("t5");
    assert_eq!((&call["title"], text(&call["content"][0])), (&json!("Which?"), "- A: first\n- B\n"));
    let output = json!({ "questions": [question], "answers": { "Which?": "A" } });
    stage.answer("t5", &json!("User has answered"), false, &output);
    assert_eq!(text(&stage.take()[0]["content"][0]), "**Which?** A");

    let finding = json!({ "file": "src/a.rs", "line": 3, "summary": "off by one" });
    stage.call("t6", "ReportFindings", &json!({ "findings": [finding] }));
    let picture = stage.picture();
    assert_eq!(text(&picture.call("t6")["content"][0]), "- `src/a.rs:3` off by one\n");
    assert_eq!(picture.call("t6")["locations"], json!([{ "path": "/w/src/a.rs", "line": 3 }]));

    stage.call("t7", "WebFetch", &json!({ "url": "https://a.b", "prompt": "sum up" }));
    stage.answer("t7", &json!("<tool_use_error>no ```net```</tool_use_error>"), true, &json!("Error"));
    assert_eq!(text(&content(&mut stage, "t7")[0]), "````\nno ```net```\n````");
}

#[test]
fn a_plan_is_told_as_a_call_and_as_a_plan() {
    let mut stage = Stage::new(full());
    stage.call("t1", "ExitPlanMode", &json!({ "plan": "# Plan\n1. Do it" }));
    let picture = stage.picture();
    assert_eq!(picture.call("t1")["kind"], "switch_mode");
    assert_eq!(text(&picture.call("t1")["content"][0]), "# Plan\n1. Do it");
    let plan = json!({ "type": "markdown", "planId": "t1", "content": "# Plan\n1. Do it" });
    assert_eq!(picture.others, [json!({ "sessionUpdate": "plan_update", "plan": plan })]);
    stage.answer("t1", &json!("User has approved your plan."), false, &json!({ "plan": "# Plan\n1. Do it" }));
    assert!(stage.take()[0].get("content").is_none(), "the plan is the same");
    stage.call("t2", "ExitPlanMode", &json!({ "plan": "# Other" }));
    let words = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nmore tests";
    stage.answer("t2", &json!(words), true, &json!("User rejected tool use"));
    let content = content(&mut stage, "t2");
    assert_eq!((text(&content[0]), text(&content[1])), ("# Other", "Rejected by the user: more tests"));
}

#[test]
fn acp_plan_01_things_to_do_are_a_plan_and_no_calls() {
    let mut stage = Stage::new(bare());
    let todos = json!([{ "content": "a", "status": "in_progress", "activeForm": "doing a" }, { "content": "b", "status": "pending" }]);
    for id in ["t1", "t2"] {
        stage.call(id, "TodoWrite", &json!({ "todos": todos }));
        stage.answer(id, &json!("ok"), false, &json!({ "oldTodos": [], "newTodos": todos }));
    }
    let entries = json!([
        { "content": "doing a", "priority": "medium", "status": "in_progress" },
        { "content": "b", "priority": "medium", "status": "pending" },
    ]);
    assert_eq!(stage.take(), [json!({ "sessionUpdate": "plan", "entries": entries })]);
}

#[test]
fn what_is_abandoned_has_failed_and_says_no_more() {
    let mut stage = Stage::new(zed());
    stage.call("t1", "Bash", &json!({ "command": "sleep 9" }));
    stage.call("t2", "Edit", &json!({ "file_path": "/w/none", "old_string": "a", "new_string": "b" }));
    stage.screen.abandon();
    let picture = stage.picture();
    assert_eq!(
        (&picture.call("t1")["status"], &picture.call("t2")["status"]),
        (&json!("failed"), &json!("failed"))
    );
    stage.answer("t1", &json!("late"), false, &json!({ "stdout": "late", "stderr": "" }));
    stage.screen.output("t1", "late");
    stage.screen.abandon();
    assert_eq!(stage.take(), [""; 0]);
}

#[test]
fn an_edit_whose_result_has_no_data_keeps_its_diff() {
    let mut stage = Stage::new(bare());
    stage.call("t1", "Write", &json!({ "file_path": "/w/none.txt", "content": "x" }));
    let call = stage.take().remove(0);
    assert_eq!((&call["kind"], &call["title"]), (&json!("edit"), &json!("Write none.txt")));
    stage.answer("t1", &json!([{ "type": "text", "text": "written" }]), false, &Value::Null);
    let end = stage.take().remove(0);
    assert_eq!((&end["status"], end.get("content")), (&json!("completed"), None));
}

#[test]
fn another_shell_is_a_shell() {
    let mut stage = Stage::new(zed());
    stage.call("t1", "PowerShell", &json!({ "command": "dir" }));
    let call = stage.take().remove(0);
    assert_eq!((&call["kind"], &call["title"]), (&json!("execute"), &json!("dir")));
    assert_eq!(call["content"][0]["type"], "terminal");
}

#[test]
fn a_memory_is_a_read() {
    let mut screen = Screen::new(bare(), "/w".into(), Pass::Live);
    let message = json!({ "type": "system", "subtype": "memory_recall", "uuid": "u1",
        "memories": [{ "path": "/h/memory.md", "content": "likes Rust" }] });
    let message = oarlock_agent::stream::decode(message.to_string().as_bytes()).expect("a message");
    screen.show(oarlock_agent::reduce::Event::Other(Box::new(message)));
    let call = super::values(&screen.take()).remove(0);
    assert_eq!(
        (&call["status"], &call["kind"], &call["toolCallId"]),
        (&json!("completed"), &json!("read"), &json!("u1"))
    );
    assert_eq!(call["locations"], json!([{ "path": "/h/memory.md" }]));
}
