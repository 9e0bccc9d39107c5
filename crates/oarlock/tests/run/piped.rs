//! Without a terminal.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Instant;

use serde_json::Value;

use crate::stage::{PATIENCE, Stage, ended, signal};

const HELLO: &str = r#"{ thinking = "Hm." }, { text = "Hello **you**.\u001b[2J" }"#;

#[test]
fn the_answer_and_nothing_else_is_on_stdout() {
    let stage = Stage::turn(HELLO);
    let ran = stage.run(&["hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello **you**.\u{1b}[2J\n"), "{ran:?}");
    assert_eq!(ran.stderr, "");
    let ran = stage.run(&["hi", "-v", "--thinking", "show"]);
    assert_eq!(ran.stdout, "Hello **you**.\u{1b}[2J\n");
    assert!(ran.stderr.contains("Hm.") && ran.stderr.contains("session "), "{}", ran.stderr);
}

#[test]
fn stdin_is_the_prompt_or_a_part_of_it() {
    let stage = Stage::new("");
    assert_eq!(stage.run_with("from a pipe\n", &[]).stdout, "You said: from a pipe\n");
    assert_eq!(stage.run_with("from a pipe\n", &["-"]).stdout, "You said: from a pipe\n");
    assert_eq!(stage.run_with("of a pipe\n", &["this:"]).stdout, "You said: this:\n\nof a pipe\n");
    assert_eq!(stage.run(&["--", "--debug"]).code, Some(2), "no prompt");
    let ran = stage.run(&[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("there is no prompt"), "{}", ran.stderr);
}

#[test]
fn a_silent_stdin_is_not_waited_for() {
    let stage = Stage::new("");
    let mut child = stage.command(&["hi"]).spawn().unwrap();
    let open = child.stdin.take();
    let ran = ended(child);
    drop(open);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "You said: hi\n"));
    assert!(ran.stderr.contains("nothing comes from stdin"), "{}", ran.stderr);
}

#[test]
fn json_is_the_result_as_the_cli_gives_it() {
    let ran = Stage::turn(r#"{ text = "Hello." }, { end = { brand_new = { x = [1] } } }"#)
        .run(&["--output", "json", "hi"]);
    let [result] = &ran.frames()[..] else { panic!("{ran:?}") };
    assert_eq!(result["type"], "result");
    assert_eq!(result["result"], "Hello.");
    assert_eq!(result["brand_new"]["x"][0], 1, "what is not known is there too");
    assert_eq!(ran.stderr, "");
}

#[test]
fn stream_json_passes_everything_on() {
    let stage = Stage::turn(
        r#"{ raw = { type = "brand_new", number = 12345678901234567890.5, x = { y = 1 } } }, { line = "no json at all" }, { text = "Hello." }"#,
    );
    let ran = stage.run(&["--output", "stream-json", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.contains(&"no json at all"), "{lines:?}");
    let frames: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).count();
    assert_eq!(
        (of("brand_new"), of("assistant"), of("result"), of("stream_event")),
        (1, 1, 1, 0),
        "{lines:?}"
    );
    let ran = stage.run(&["--output", "stream-json", "--include-partial-messages", "hi"]);
    assert!(ran.stdout.contains("\"stream_event\""), "{}", ran.stdout);
}

#[test]
fn a_schema_gives_its_value() {
    let stage = Stage::turn(r#"{ structured_output = { name = "bob", age = 7 } }"#);
    let schema = stage.sandbox.write("schema.json", r#"{"type": "object"}"#).unwrap();
    let schema = schema.to_str().unwrap();
    let ran = stage.run(&["--schema", schema, "who?"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value, serde_json::json!({"name": "bob", "age": 7}));
    let ran = stage.run(&["--schema", schema, "--output", "json", "who?"]);
    assert_eq!(ran.frames()[0]["structured_output"]["age"], 7);
    for (schema, want) in [
        ("no-such-file", "failed to read"),
        ("{x", "not JSON"),
        ("[1]", "a JSON object is wanted"),
        ("a.json", "a JSON object is wanted"),
    ] {
        stage.sandbox.write("a.json", "[]").unwrap();
        let ran = stage.run(&["--schema", schema, "who?"]);
        assert_eq!(ran.code, Some(2), "{schema}");
        assert!(ran.stderr.contains("--schema") && ran.stderr.contains(want), "{}", ran.stderr);
    }
}

#[test]
fn what_needs_a_permission_is_refused_and_said_so() {
    let stage = Stage::turn(
        r#"{ tool = "Write", input = { file_path = "a.txt", content = "alpha" } }, { text = "Well." }"#,
    );
    let ran = stage.run(&["write"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"));
    assert!(
        ran.stderr.contains("refused, because nobody could be asked: Write a.txt; see --allow"),
        "{}",
        ran.stderr
    );
    assert_eq!(stage.file("a.txt"), None);
    let ran = stage.run(&["write", "--allow", "Write"]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn each_failure_has_its_code() {
    let api = Stage::turn("{ api_error = 529, retries = 0 }");
    let ran = api.run(&["hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:?}");
    assert!(ran.stderr.contains("the API failed with status 529"), "{}", ran.stderr);
    let ran = api.run(&["hi", "--output", "json"]);
    assert_eq!((ran.code, &ran.frames()[0]["is_error"]), (Some(5), &Value::Bool(true)));
    let ran = Stage::turn("{ api_error = 401, retries = 0 }").run(&["hi"]);
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("not logged in"), "{}", ran.stderr);

    let limited =
        Stage::turn(r#"{ tool = "Bash", input = { command = "ls" }, output = "x" }, { text = "Done." }"#);
    let ran = limited.run(&["hi", "--max-turns", "1"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("--max-turns"), "{}", ran.stderr);

    let ran = Stage::new("sessions = [\"known\"]").run(&["--resume", "unknown", "hi"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("unknown"), "{}", ran.stderr);
    let ran = Stage::new("sessions = [\"known\"]").run(&["--resume", "known", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let ran = Stage::turn(r#"{ text = "Half an ans" }, { stderr = "Error: out of paper\n" }, { exit = 3 }"#)
        .run(&["hi"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("out of paper"), "{}", ran.stderr);
}

#[test]
fn without_claude_it_says_where_it_looked() {
    let stage = Stage::new("");
    let ran = stage.run(&["--claude", "/no/such/claude", "hi"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("/no/such/claude"), "{}", ran.stderr);
    std::fs::remove_file(&stage.claude).unwrap();
    let mut command = stage.command(&["hi"]);
    command.env("PATH", "/nowhere");
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    let ran = ended(child);
    // A machine may have one where installers put it.
    if ran.code == Some(3) {
        assert!(ran.stderr.contains("no `claude` found; looked in the PATH"), "{}", ran.stderr);
    }
    let ran = Stage::new("").run(&["--cwd", "no/such/dir", "hi"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn pictures_go_with_the_prompt() {
    let stage = Stage::new("");
    stage.sandbox.write("a.png", b"\x89PNG\r\n\x1a\nrest").unwrap();
    let ran = stage.run(&["--output", "stream-json", "--image", "a.png", "what is it?"]);
    let frames = ran.frames();
    let replay = frames.iter().find(|frame| frame["type"] == "user").unwrap();
    let content = &replay["message"]["content"];
    assert_eq!(content[0]["source"]["media_type"], "image/png");
    assert_eq!(content[1]["text"], "what is it?");
    let ran = stage.run(&["--image", "b.png", "what is it?"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn time_that_is_up_ends_it() {
    let stage = Stage::turn(r#"{ text = "Part one" }, { wait = "interrupt" }, { text = "Never." }"#);
    let start = Instant::now();
    let ran = stage.run(&["hi", "--timeout", "0.5"]);
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("--timeout"), "{}", ran.stderr);
    assert!(start.elapsed() < PATIENCE / 3);
    assert_eq!(stage.run(&["hi", "--timeout", "-1"]).code, Some(2));
}

/// Starts it, and waits until its turn runs.
fn running(stage: &Stage) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let mut child =
        stage.command(&["hi", "--output", "stream-json", "--include-partial-messages"]).spawn().unwrap();
    drop(child.stdin.take());
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("content_block_delta") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "it ended");
    }
    (child, out)
}

#[test]
fn sigint_interrupts_and_sigterm_ends_politely() {
    let waits = r#"{ text = "Part one" }, { wait = "interrupt" }, { text = "Never." }"#;
    let stage = Stage::turn(waits);
    let (child, mut out) = running(&stage);
    assert!(signal(child.id(), "INT"));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("error_during_execution"), "{rest}");
    assert_eq!(ended(child).code, Some(130));

    let (child, _out) = running(&stage);
    assert!(signal(child.id(), "TERM"));
    assert_eq!(ended(child).code, Some(143));
}

#[test]
fn a_second_sigint_leaves_at_once() {
    let stage = Stage::new(
        "ignore = [\"interrupt\"]\n[[turn]]\nsteps = [{ text = \"Part one\" }, { wait = \"interrupt\" }, { text = \"x\" }]\n",
    );
    let (mut child, _out) = running(&stage);
    let start = Instant::now();
    assert!(signal(child.id(), "INT"));
    // The first is heard when nothing comes of it.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "one is not enough");
    assert!(signal(child.id(), "INT"));
    assert_eq!(ended(child).code, Some(130));
    assert!(start.elapsed() < PATIENCE / 3);
    assert_eq!(stage.left_behind(), "");
}

#[test]
fn ctrl_c_works_also_when_nobody_reads() {
    let stage = Stage::turn(r#"{ text = "A line of text.\n", repeat = 200000 }"#);
    let (child, out) = running(&stage);
    // The pipe is full by then, or will be: nobody reads on.
    for _ in 0..2 {
        std::thread::sleep(std::time::Duration::from_millis(300));
        signal(child.id(), "INT");
    }
    assert_eq!(ended(child).code, Some(130));
    drop(out);
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let stage = Stage::turn(r#"{ text = "A line of text.\n", repeat = 20000 }"#);
    let (child, out) = running(&stage);
    drop(out);
    let ran = ended(child);
    assert_eq!((ran.code, ran.signal), (Some(0), None), "{ran:?}");
    assert_eq!(stage.left_behind(), "");
}

#[test]
fn a_prompt_that_begins_with_a_dash_comes_after_two() {
    let stage = Stage::new("");
    for prompt in ["- one\n- two", "-x", "--- so", "--not an option"] {
        let ran = stage.run(&["--", prompt]);
        assert_eq!(
            (ran.code, ran.stdout.trim_end()),
            (Some(0), format!("You said: {prompt}").as_str()),
            "{ran:?}"
        );
    }
    let ran = stage.run(&["--", "- one", "--brand-new", "value"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "You said: - one\n"), "{ran:?}");
    let ran = stage.run(&["hi", "--", "- one"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn what_is_wrong_with_an_option_is_said_under_the_name_it_has_here() {
    let stage = Stage::new("");
    stage.sandbox.write("bad.json", "{x").unwrap();
    stage.sandbox.write("good.json", "\u{feff}{}").unwrap();
    for (arguments, want) in [
        (["--fork", "hi"].as_slice(), "--fork: there is nothing to copy; say --resume or --continue"),
        (&["--max-turns", "0", "hi"], "--max-turns: "),
        (&["--max-budget-usd", "-1", "hi"], "--max-budget-usd: "),
        (&["--timeout", "-1", "hi"], "--timeout: "),
        (&["--session-id", "x", "hi"], "--session-id: it is no UUID"),
        (&["--settings", "no-such.json", "hi"], "--settings: failed to read"),
        (&["--settings", "bad.json", "hi"], "--settings: not JSON"),
        (&["--mcp-config", "no-such.json", "hi"], "--mcp-config: failed to read"),
        (&["--setting-sources", "user,usr", "hi"], "--setting-sources: \"usr\" is none of user, project"),
    ] {
        let ran = stage.run(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
    assert_eq!(stage.run(&["--settings", "good.json", "hi"]).code, Some(0));
    let ran = stage.run(&["--effort", "hihg", "hi"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("may not know the effort"), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let stage = Stage::new("");
    let mut command = stage.command(&["hi"]);
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("failed to write the answer to stdout"), "{stderr}");
}
