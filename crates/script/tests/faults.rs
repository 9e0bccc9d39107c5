//! What a bad CLI does: ends early, prints garbage, floods, falls silent.

mod host;

use std::time::Duration;

use host::{Host, example, steps};
use oarlock_script::{Launch, Script};
use serde_json::json;

fn plain() -> Launch {
    Launch::new(["--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio"])
}

#[tokio::test]
async fn it_ends_with_a_code_and_without_a_result() {
    let mut host = Host::start(steps(r#"{ text = "x" }, { exit = 3 }"#), plain());
    host.prompt("hi").await;
    host.until_assistant().await;
    let (outcome, _) = host.end_of_its_own().await;
    assert_eq!((outcome.code, outcome.killed), (3, false));
}

#[tokio::test]
async fn it_dies() {
    let mut host = Host::start(steps("{ kill = true }"), plain());
    host.prompt("hi").await;
    assert!(host.end_of_its_own().await.0.killed);
}

#[tokio::test]
async fn it_prints_garbage_and_goes_on() {
    let script = steps(r#"{ line = "[debug] hello" }, { bytes = "ff fe 0a" }, { text = "fine" }"#);
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    assert_eq!(host.next().await.expect("init")["subtype"], "init");
    assert_eq!(host.line().await.expect("garbage"), b"[debug] hello\n");
    assert_eq!(host.line().await.expect("bytes"), b"\xff\xfe\n");
    assert_eq!(host.until_result().await["result"], "fine");
}

#[tokio::test]
async fn it_sends_any_frame_signed_as_its_own() {
    let script = steps(
        r#"{ raw = { type = "brand_new", x = 1 } }, { raw = { type = "old", uuid = "u" } },
           { line = '{"type":"null","x":null,"s":"${session_id}"}' }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let frame = host.until(|frame| frame["type"] == "brand_new").await;
    assert!(frame["uuid"].is_string() && frame["session_id"].is_string());
    assert_eq!(host.next().await.expect("old")["uuid"], "u");
    assert_eq!(host.next().await.expect("null")["s"], frame["session_id"]);
}

#[tokio::test]
async fn it_writes_huge_lines() {
    let mut host = Host::start(steps(r#"{ text = "0123456789", repeat = 300000 }"#), plain());
    host.prompt("hi").await;
    let text = host.until_assistant().await["message"]["content"][0]["text"].as_str().map(str::len);
    assert_eq!(text, Some(3_000_000));
}

#[tokio::test]
async fn it_floods_stderr() {
    let mut host =
        Host::start(steps(r#"{ stderr = "warning: ${prompt}", repeat = 1000 }, { text = "x" }"#), plain());
    host.prompt("hi").await;
    host.until_result().await;
    let (_, stderr) = host.end().await;
    assert_eq!(stderr.lines().filter(|line| *line == "warning: hi").count(), 1000);
}

#[tokio::test]
async fn it_never_reads_again_and_does_not_see_the_end_of_the_input() {
    let mut host = Host::start(steps(r#"{ stop_reading = true }, { text = "x" }"#), plain());
    host.prompt("hi").await;
    host.until_result().await;
    host.close_input();
    let ended = tokio::time::timeout(Duration::from_millis(200), host.line()).await;
    assert!(ended.is_err(), "it stays");
}

#[tokio::test]
async fn it_closes_stdout_early_and_lives_on() {
    let mut host =
        Host::start(steps(r#"{ text = "x" }, { close_stdout = true }, { wait = "end_of_input" }"#), plain());
    host.prompt("hi").await;
    host.until_assistant().await;
    assert!(host.line().await.is_none());
    assert_eq!(host.end().await.0.code, 0);
}

#[tokio::test]
async fn it_asks_what_no_host_knows() {
    let script = steps(
        r#"{ request = { subtype = "brand_new", x = "${prompt}" } }, { text = "answer: ${answer.y}" },
           { request = { subtype = "withdrawn" }, cancel_after_ms = 1 }, { request = { subtype = "lost" }, forget = true }"#,
    );
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    let request = host.until_request("brand_new").await;
    assert_eq!(request["request"]["x"], "hi");
    host.answer(&request, json!({ "y": 7 })).await;
    assert_eq!(host.until_assistant().await["message"]["content"][0]["text"], "answer: 7");
    let withdrawn = host.until_request("withdrawn").await;
    let cancel = host.until(|frame| frame["type"] == "control_cancel_request").await;
    assert_eq!(cancel["request_id"], withdrawn["request_id"]);
    host.until_request("lost").await;
    host.until_result().await;
}

#[tokio::test]
async fn it_waits_for_a_request_and_for_a_time() {
    let mut host =
        Host::start(steps(r#"{ wait = "request mcp_status" }, { text = "late", after_ms = 30 }"#), plain());
    host.prompt("hi").await;
    let asked = tokio::time::Instant::now();
    host.request(json!({ "subtype": "mcp_status" })).await;
    host.until_result().await;
    assert!(asked.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn it_ends_a_turn_with_any_result() {
    let end = r#"{ end = { subtype = "error_brand_new", is_error = true, errors = ["${prompt}"] } }, { text = "never" }"#;
    let mut host = Host::start(steps(end), plain());
    host.prompt("hi").await;
    let result = host.until_result().await;
    assert_eq!((&result["subtype"], &result["errors"]), (&json!("error_brand_new"), &json!(["hi"])));
    assert_eq!(host.end().await.0.code, 1, "an error result makes an error of the process");
}

#[tokio::test]
async fn it_copies_a_file() {
    let folder = std::env::temp_dir().join(format!("oarlock-script-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let line = format!("{{\"type\":\"filler\",\"text\":\"{}\"}}\n", "x".repeat(100));
    std::fs::write(folder.join("frames.jsonl"), line.repeat(20_000)).expect("frames");
    std::fs::write(folder.join("script.toml"), "[[turn]]\nsteps = [{ play = \"frames.jsonl\" }]")
        .expect("a script");
    let mut host = Host::start(Script::read(folder.join("script.toml")).expect("a script"), plain());
    host.prompt("hi").await;
    host.until_result().await;
    assert_eq!(host.seen.iter().filter(|frame| frame["type"] == "filler").count(), 20_000);
    std::fs::remove_dir_all(&folder).expect("removed");

    let mut host = Host::start(steps(r#"{ play = "missing.jsonl" }"#), plain());
    host.prompt("hi").await;
    let (outcome, stderr) = host.end_of_its_own().await;
    assert_eq!(outcome.code, 1);
    assert!(stderr.contains("failed to play missing.jsonl"), "{stderr}");
}

#[tokio::test]
async fn a_copy_leaves_gaps_for_answers() {
    let path = std::env::temp_dir().join(format!("oarlock-copy-{}.jsonl", std::process::id()));
    std::fs::write(&path, "{\"type\":\"filler\"}\n".repeat(400_000)).expect("frames");
    let script = steps(&format!("{{ play = {path:?} }}, {{ text = \"never\" }}"));
    let mut host = Host::start(script, plain());
    host.prompt("hi").await;
    host.until(|frame| frame["type"] == "filler").await;
    host.request(json!({ "subtype": "interrupt" })).await;
    let result = host.until_result().await;
    assert_eq!(result["subtype"], "error_during_execution");
    assert!(host.seen.len() < 400_000, "cut short");
    std::fs::remove_file(&path).expect("removed");
}

#[tokio::test]
async fn lines_that_are_no_frames_end_it_and_others_are_passed_over() {
    for bad in ["{not json", "null", r#"{"type":"control_request"}"#] {
        let mut host = Host::start(example("text"), plain());
        host.send_line(bad.as_bytes()).await;
        let (outcome, stderr) = host.end_of_its_own().await;
        assert_eq!(outcome.code, 1, "{bad}");
        assert!(stderr.starts_with("Error parsing streaming input line"), "{stderr}");
    }
    let mut host = Host::start(example("text"), plain());
    host.send(json!({ "type": "user", "message": { "role": "assistant", "content": "x" } })).await;
    assert_eq!(host.end_of_its_own().await.0.code, 1);

    let mut host = Host::start(example("text"), plain());
    for fine in ["", "  ", "[]", "42", "{}", r#"{"type":"keep_alive"}"#, r#"{"type":"control_response"}"#] {
        host.send_line(fine.as_bytes()).await;
    }
    host.send_line(b"\xef\xbb\xbf{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"interrupt\"}}").await;
    assert_eq!(host.next().await.expect("an answer")["response"]["request_id"], "r");
    assert_eq!(host.end().await.0.code, 0);
}

#[tokio::test]
async fn a_signal_interrupts_the_turn_and_ends_the_process_well() {
    let launch = plain();
    let signal = launch.interrupt();
    let mut host = Host::start(example("tool-deny"), launch);
    host.prompt("hi").await;
    host.until_request("can_use_tool").await;
    signal.notify_one();
    assert_eq!(host.until_result().await["terminal_reason"], "aborted_tools");
    assert_eq!(host.end_of_its_own().await.0.code, 0);
}

#[tokio::test]
async fn the_version_is_printed_and_nothing_else() {
    let script = Script::parse("version = \"2.0.1\"").expect("a script");
    for flag in ["-v", "--version"] {
        let mut host = Host::start(script.clone(), Launch::new([flag]));
        assert_eq!(host.line().await.as_deref(), Some(b"2.0.1 (Claude Code)\n".as_slice()));
        assert_eq!(host.end_of_its_own().await.0.code, 0);
    }
}

#[test]
fn mistakes_are_told_with_their_line() {
    let mistakes: [(&str, usize, &str); 16] = [
        (
            "[[turn]]\nsteps = [\n  { text = \"a\", tool = \"b\" },\n]",
            3,
            "both `text` and `tool`; make two steps",
        ),
        ("[[turn]]\nsteps = [{ txet = \"a\" }]", 2, "unknown field `txet`, did you mean `text`?"),
        ("[[turns]]\nsteps = []", 1, "did you mean `turn`?"),
        ("[turn]\nsteps = []", 1, "invalid type: a table, expected a list"),
        ("[[turn]]\nsteps = [{ tool = \"Bash\", input = \"ls\" }]", 2, "the `input` of a tool is a table"),
        ("[[turn]]\nsteps = [{ exit = 999 }]", 2, "from 0 to 255"),
        ("[[turn]]\nsteps = [{ text = 5 }]", 2, "invalid type"),
        ("version = 5", 1, "invalid type"),
        ("[[turn]]\n\nsteps = [{ text = \"a\", output = \"b\" }]", 3, "`output` does not belong"),
        ("[[turn]]\nsteps = [{ output = \"b\" }]", 2, "`output` alone does nothing"),
        ("[[turn]]\nsteps = [{ wait = \"godot\" }]", 2, "nothing to wait for is called \"godot\""),
        ("[[turn]]\nsteps = [{ bytes = \"xyz\" }]", 2, "pairs of hexadecimal digits"),
        ("[[turn]]\nsteps = [{ kill = false }]", 2, "can only be true"),
        ("[[turn]]\nsteps = [{ tools = [{ text = \"a\" }] }]", 2, "holds tool uses only"),
        (
            "[[turn]]\nsteps = [\n{ tool = \"Task\", steps = [\n{ tool = \"X\", repeat = 3 }] }]",
            4,
            "`repeat` does not belong",
        ),
        ("turn = [", 1, ""),
    ];
    for (text, line, what) in mistakes {
        let error = Script::parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(what), "{text}\n{error}");
    }
    let error = Script::read("no/such/file.toml").expect_err("no file").to_string();
    assert!(error.contains("failed to read the script no/such/file.toml"), "{error}");
}
