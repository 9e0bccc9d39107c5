//! `oarlock claude`, with a shell script in place of `claude`.
#![cfg(unix)]

mod home;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use home::{Home, Ran};
use serde_json::json;

/// Tells its arguments and what connects it.
const TELL: &str = r#"for arg in "$@"; do echo "arg $arg"; done
echo "port $CLAUDE_CODE_SSE_PORT"
echo "proxy $NO_PROXY $no_proxy"
ls "$HOME/.claude/ide" 2>/dev/null | sed 's/^/lock /'"#;

fn lines<'a>(ran: &'a Ran, word: &str) -> Vec<&'a str> {
    ran.stdout.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
}

#[test]
fn without_an_engine_one_runs_for_as_long_as_claude() {
    let home = Home::new();
    home.claude(&format!("{TELL}\nexit 7"));
    let ran = home.run(&["claude", "fix it"]);
    assert_eq!(ran.code, Some(7), "its exit code is passed on: {}", ran.stderr);
    assert_eq!(lines(&ran, "arg"), ["--permission-mode", "default", "fix it"]);
    let port = lines(&ran, "port")[0];
    assert_eq!(lines(&ran, "lock"), [format!("{port}.lock")], "the lock is there while it runs");
    assert_eq!(lines(&ran, "proxy"), ["127.0.0.1 127.0.0.1"]);
    assert_eq!(home.locks(), Vec::<std::path::PathBuf>::new(), "and gone afterwards");
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said.len(), 1, "one calm line: {said:?}");
    assert!(
        said[0].contains(&format!("CLAUDE_CODE_SSE_PORT={port}"))
            && said[0].contains("--permission-mode default")
    );
}

#[test]
fn a_running_engine_is_taken() {
    let home = Home::new();
    home.claude(TELL);
    let engine = home.engine(&home.workspace());
    home.engine(&home.at("elsewhere"));
    let ran = home.run(&["claude"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(lines(&ran, "port"), [engine.port().to_string()]);
}

#[test]
fn the_engine_flag_works_from_anywhere() {
    let home = Home::new();
    home.claude(TELL);
    let engine = home.engine(&home.at("elsewhere"));
    let port = engine.port().to_string();
    let ran = home.run(&["claude", "--engine", &port]);
    assert_eq!(lines(&ran, "port"), [port]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(home.run(&["claude", "--engine", "1"]).code, Some(3));
}

#[test]
fn without_a_match_or_with_two_the_engines_are_listed() {
    let home = Home::new();
    home.claude(TELL);
    let elsewhere = home.engine(&home.at("elsewhere"));
    let ran = home.run(&["claude"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains(&format!("--engine {}", elsewhere.port())), "{}", ran.stderr);
    let (_a, _b) = (home.engine(&home.workspace()), home.engine(&home.workspace()));
    let ran = home.run(&["claude"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("several engines"), "{}", ran.stderr);
}

#[test]
fn print_and_subcommands_are_left_alone() {
    let home = Home::new();
    home.claude(TELL);
    // Not even an engine that does not fit is in their way.
    let _elsewhere = home.engine(&home.at("elsewhere"));
    for args in [&["-p", "hi", "--engine", "5"][..], &["mcp", "list"], &["--version"]] {
        let ran = home.run(&[&["claude"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(lines(&ran, "arg"), args);
        assert_eq!(lines(&ran, "port"), [""]);
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn arguments_go_through_as_they_are() {
    let home = Home::new();
    home.claude(TELL);
    let args = ["claude", "--permission-mode=plan", "--", "a b", "--engine", "5", "--dry-run", "-v", ""];
    let ran = home.run(&args);
    assert_eq!(lines(&ran, "arg"), args[1..]);
    let ran = home.run(&["claude", "--", "--help"]);
    assert_eq!(lines(&ran, "arg"), ["--help"]);
}

#[test]
fn a_dry_run_starts_nothing() {
    let home = Home::new();
    let program = home.claude("exit 9");
    let ran = home.run(&["claude", "--dry-run", "hi"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let plan = ran.json();
    assert_eq!(plan["program"], json!(program));
    assert_eq!(plan["args"], json!(["--permission-mode", "default", "hi"]));
    assert_eq!(plan["engine"], json!({ "kind": "own" }));
    assert_eq!(plan["interactive"], true);
    assert!(home.locks().is_empty());

    home.write("w/.claude/settings.json", r#"{"permissions":{"defaultMode":"plan"}}"#);
    let engine = home.engine(&home.workspace());
    let output = home
        .command(&["claude", "--dry-run"])
        .env("NO_PROXY", "corp,127.0.0.1")
        .env("CLAUDE_CODE_AUTO_CONNECT_IDE", "false")
        .output()
        .unwrap();
    let plan = Ran::from(output).json();
    assert_eq!(plan["args"], json!([]));
    assert_eq!(plan["mode_chosen_by"], json!(home.at("w/.claude/settings.json")));
    assert_eq!(plan["engine"]["port"], engine.port());
    let variables =
        json!({ "CLAUDE_CODE_SSE_PORT": engine.port().to_string(), "no_proxy": "corp,127.0.0.1" });
    assert_eq!(plan["added"]["variables"], variables);
    assert!(plan["warnings"][0].as_str().unwrap().contains("CLAUDE_CODE_AUTO_CONNECT_IDE=false"));
}

#[test]
fn a_blocked_connection_is_reported() {
    let home = Home::new();
    home.claude("");
    let output = home.command(&["claude"]).env("CLAUDE_CODE_AUTO_CONNECT_IDE", "0").output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("warning: CLAUDE_CODE_AUTO_CONNECT_IDE=0"), "{}", ran.stderr);
}

#[test]
fn a_lock_where_claude_does_not_look_is_reported() {
    let home = Home::new();
    home.claude("");
    let output = home.command(&["claude"]).env("OARLOCK_IDE_LOCK_DIR", home.at("locks")).output().unwrap();
    let ran = Ran::from(output);
    assert!(ran.stderr.contains("has no lock file"), "{}", ran.stderr);
}

#[test]
fn a_project_cannot_choose_the_program() {
    let home = Home::new();
    home.claude("echo right");
    let evil = home.write("w/evil", "#!/bin/sh\necho evil\n");
    home.write("w/.oarlock.toml", &format!("[claude]\nprogram = '{}'\n", evil.display()));
    let ran = home.run(&["claude", "-p"]);
    assert_eq!(ran.stdout, "right\n");
    assert!(ran.stderr.contains(".oarlock.toml:2: `claude.program` does not count"), "{}", ran.stderr);
}

#[test]
fn a_program_that_is_not_there_is_explained() {
    let home = Home::new();
    home.claude("");
    let output = home.command(&["claude"]).env("CLAUDE_CODE_EXECUTABLE", "/nowhere/claude").output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("CLAUDE_CODE_EXECUTABLE says /nowhere/claude"), "{}", ran.stderr);
}

#[test]
fn signals_reach_claude_and_its_end_becomes_ours() {
    let home = Home::new();
    // The shell's `wait` ends as soon as a trapped signal comes.
    let wait = "echo ready; while :; do sleep 1 >/dev/null 2>&1 & wait $!; done";
    for (script, signal, code) in [
        (format!("trap 'exit 42' TERM; {wait}"), rustix::process::Signal::TERM, 42),
        (format!("trap 'exit 43' HUP; {wait}"), rustix::process::Signal::HUP, 43),
        ("echo ready; kill -9 $$".to_owned(), rustix::process::Signal::INT, 137),
    ] {
        home.claude(&script);
        let mut oarlock =
            home.command(&["claude"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(oarlock.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let pid = rustix::process::Pid::from_child(&oarlock);
        // An interrupt is the child's business: the terminal sends it there too.
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let status = oarlock.wait().unwrap();
        let mut stderr = String::new();
        oarlock.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{stderr}");
        assert!(home.locks().is_empty());
    }
}
