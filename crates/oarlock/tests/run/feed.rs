//! `--input stream-json`.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::stage::{Ran, Stage, ended};

const BOTH: &[&str] = &["--input", "stream-json", "--output", "stream-json"];

fn user(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
}

fn results(ran: &Ran) -> Vec<Value> {
    ran.frames().into_iter().filter(|frame| frame["type"] == "result").collect()
}

#[test]
fn messages_are_sent_and_the_end_of_stdin_waits_for_the_answers() {
    let stage = Stage::new("");
    let ran = stage.run_with(&format!("{}\n", user("one")), BOTH);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(results(&ran)[0]["result"], "You said: one");
    let ran = stage.run_with(&user("one"), &["--input", "stream-json"]);
    assert_eq!(ran.stdout, "You said: one\n", "the last line may have no end");
}

#[test]
fn wrong_lines_are_told_with_their_numbers_and_the_others_count() {
    let lines = [
        "{nonsense",
        "",
        r#"{"type": "user"}"#,
        r#"{"type": "user", "message": {"role": "assistant", "content": "x"}}"#,
        "[1]",
        r#"{"type": "result"}"#,
        &user("still here"),
    ];
    let ran = Stage::new("").run_with(&lines.join("\n"), BOTH);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(results(&ran)[0]["result"], "You said: still here");
    for part in [
        "stdin, line 1: the line is not JSON",
        "stdin, line 3: a user message needs `message.content`",
        "stdin, line 4: the role of a user message must be `user`",
        "stdin, line 5: the line is no JSON object",
        "stdin, line 6: a message of the type \"result\" is not for claude",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.lines().count(), 5, "{}", ran.stderr);
}

#[test]
fn a_prompt_on_the_command_line_does_not_go_with_it() {
    let ran = Stage::new("").run_with("", &["--input", "stream-json", "hi"]);
    assert_eq!(ran.code, Some(2));
    let ran = Stage::new("").run_with("", &["--permission-prompt-tool", "stdio", "hi"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn control_requests_are_answered_under_their_ids() {
    let lines = [
        json!({"type": "control_request", "request_id": "mine", "request": {"subtype": "set_model", "model": "opus"}}),
        json!({"type": "control_request", "request_id": "odd", "request": {"subtype": "brand_new"}}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).chain([user("hi")]).collect();
    let ran = Stage::new("").run_with(&lines.join("\n"), BOTH);
    let answers: Vec<Value> =
        ran.frames().into_iter().filter(|frame| frame["type"] == "control_response").collect();
    let of = |id: &str| {
        answers.iter().find(|answer| answer["response"]["request_id"] == id).unwrap()["response"].clone()
    };
    assert_eq!(of("mine")["subtype"], "success", "{answers:?}");
    assert_eq!(of("odd")["subtype"], "error", "{answers:?}");
    assert_eq!(results(&ran).len(), 1);
}

#[test]
fn permission_questions_are_passed_on_when_asked_for() {
    let stage = Stage::turn(
        r#"{ tool = "Bash", input = { command = "mkdir x" }, output = "ran: ${input.command}" }, { text = "Done." }"#,
    );
    let mut arguments = BOTH.to_vec();
    arguments.extend(["--permission-prompt-tool", "stdio"]);
    let mut child = stage.command(&arguments).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", user("hi")).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let question: Value = loop {
        let frame: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
        if frame["type"] == "control_request" {
            break frame;
        }
    };
    assert_eq!(question["request"]["tool_name"], "Bash");
    let answer = json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": question["request_id"],
        "response": {"behavior": "allow", "updatedInput": {"command": "mkdir y"}}}});
    writeln!(input, "{answer}").unwrap();
    drop(input);
    let rest: Vec<String> = out.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("ran: mkdir y")), "{rest:?}");
    assert_eq!(ended(child).code, Some(0));
}
