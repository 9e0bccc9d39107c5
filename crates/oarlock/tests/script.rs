//! `oarlock script`: the scripted CLI as a process.

mod home;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use home::Home;
use serde_json::{Value, json};

const HELLO: &str = "version = \"2.1.300\"\n[[turn]]\nsteps = [{ text = \"Hello ${arg.model}.\" }]\n";

/// A host of a scripted CLI.
struct Host {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let output = BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, output }
    }

    fn prompt(&mut self, text: &str) {
        let frame = json!({ "type": "user", "message": { "role": "user", "content": text } });
        let mut input = self.child.stdin.as_ref().expect("stdin");
        writeln!(input, "{frame}").expect("written");
    }

    /// The first frame of that type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "the output ended");
            let frame: Value = serde_json::from_str(&line).expect("a frame");
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// How it ended, within some seconds.
    fn wait(&mut self) -> std::process::ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it goes on and on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(home: &Home, text: &str, args: &[&str]) -> Command {
    let path = home.write("script.toml", text);
    let path = path.to_str().expect("a path").to_owned();
    let mut all = vec!["script", path.as_str(), "--"];
    all.extend(args);
    home.command(&all)
}

#[test]
fn it_plays_until_the_input_ends() {
    let home = Home::new();
    let mut host = Host::start(script(&home, HELLO, &["--verbose", "--model", "haiku"]));
    host.prompt("hi");
    assert_eq!(host.until("assistant")["message"]["content"][0]["text"], "Hello haiku.");
    assert_eq!(host.until("result")["is_error"], false);
    host.close();
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn an_error_result_and_an_exit_step_give_the_code() {
    let home = Home::new();
    for (steps, code) in [("{ api_error = 400 }", 1), ("{ exit = 7 }", 7)] {
        let mut host = Host::start(script(&home, &format!("[[turn]]\nsteps = [{steps}]"), &[]));
        host.prompt("hi");
        host.close();
        assert_eq!(host.wait().code(), Some(code));
    }
}

#[test]
fn a_launcher_stands_for_claude() {
    let home = Home::new();
    let path = home.write("a folder/it's.toml", HELLO);
    let launcher = home.at("claude");
    let (path, launcher) = (path.to_str().expect("a path"), launcher.to_str().expect("a path"));
    let ran = home.command(&["script", path, "--as", launcher]).output().expect("it ran");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let version = Command::new(launcher).arg("-v").output().expect("it ran");
    assert_eq!(String::from_utf8_lossy(&version.stdout), "2.1.300 (Claude Code)\n");
    let mut command = Command::new(launcher);
    command.args(["--output-format", "stream-json", "--model", "a model"]);
    let mut host = Host::start(command);
    host.prompt("hi");
    assert_eq!(host.until("assistant")["message"]["content"][0]["text"], "Hello a model.");
}

#[test]
fn a_mistake_is_told_with_file_and_line() {
    let home = Home::new();
    let ran = script(&home, "[[turn]]\nsteps = [\n  { txet = \"x\" },\n]", &[]).output().expect("it ran");
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("script.toml: line 3: unknown field `txet`, did you mean `text`?"), "{stderr}");
    let help = home.run(&["script", "--help"]).stdout;
    assert!(help.contains("on_stop_blocked"), "the format is in the help: {help}");
    let ran = home.run(&["script", "no-such.toml"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr.matches("no-such.toml").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_launcher_takes_the_place_of_a_launcher_only() {
    let home = Home::new();
    let (path, launcher) = (home.write("a.toml", HELLO), home.at("claude"));
    let (path, launcher) = (path.to_str().expect("a path"), launcher.to_str().expect("a path"));
    for _ in 0..2 {
        assert_eq!(home.run(&["script", path, "--as", launcher]).code, Some(0));
    }
    let ran = home.run(&["script", path, "--as", path]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(path).expect("the script"), HELLO);
}

#[test]
fn a_speed_that_is_none_is_refused() {
    let home = Home::new();
    let path = home.write("a.toml", HELLO);
    for speed in ["0", "-1", "nan"] {
        let ran = home.run(&["script", path.to_str().expect("a path"), "--speed", speed]);
        assert_eq!(ran.code, Some(2), "{speed}");
        assert!(ran.stderr.contains("--speed"), "{}", ran.stderr);
    }
}

#[test]
fn a_trace_is_played_too() {
    let home = Home::new();
    let trace = r#"{"t":0,"dir":"in","msg":{"type":"user"}}
{"t":0.1,"dir":"out","msg":{"type":"result","result":"recorded"}}
{"t":0.2,"dir":"meta","msg":{"event":"close_stdin"}}
{"t":0.3,"dir":"meta","msg":{"event":"exit","rc":5}}"#;
    let mut host = Host::start(script(&home, trace, &[]));
    host.prompt("hi");
    assert_eq!(host.until("result")["result"], "recorded");
    host.close();
    assert_eq!(host.wait().code(), Some(5));
}

#[cfg(unix)]
fn signal(host: &Host, signal: rustix::process::Signal) {
    let id = i32::try_from(host.child.id()).expect("a pid");
    let id = rustix::process::Pid::from_raw(id).expect("a pid");
    rustix::process::kill_process(id, signal).expect("sent");
}

#[cfg(unix)]
const WAITING: &str = "[[turn]]\nsteps = [{ text = \"x\" }, { wait = \"interrupt\" }]";

#[cfg(unix)]
#[test]
fn signals_do_what_they_do_to_claude() {
    use rustix::process::Signal;
    let home = Home::new();
    let mut host = Host::start(script(&home, WAITING, &[]));
    host.prompt("hi");
    host.until("assistant");
    signal(&host, Signal::TERM);
    assert_eq!(host.wait().code(), Some(143));

    let mut host = Host::start(script(&home, WAITING, &[]));
    host.prompt("hi");
    host.until("assistant");
    signal(&host, Signal::INT);
    assert_eq!(host.until("result")["subtype"], "error_during_execution");
    assert_eq!(host.wait().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn it_can_be_deaf_and_it_can_die() {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal;
    let home = Home::new();
    let text = format!("ignore_signals = true\n{WAITING}");
    let mut host = Host::start(script(&home, &text, &[]));
    host.prompt("hi");
    host.until("assistant");
    signal(&host, Signal::TERM);
    std::thread::sleep(Duration::from_millis(100));
    assert!(host.child.try_wait().expect("a status").is_none(), "it does not mind");

    let mut host = Host::start(script(&home, "[[turn]]\nsteps = [{ kill = true }]", &[]));
    host.prompt("hi");
    assert_eq!(host.wait().signal(), Some(9));
}

#[test]
fn a_big_file_is_copied_whole() {
    let home = Home::new();
    let line = format!("{{\"type\":\"filler\",\"text\":\"{}\"}}\n", "x".repeat(200));
    home.write("big.jsonl", &line.repeat(50_000));
    let mut host = Host::start(script(&home, "[[turn]]\nsteps = [{ play = \"big.jsonl\" }]", &[]));
    host.prompt("hi");
    let mut copied = 0;
    loop {
        let mut frame = String::new();
        host.output.read_line(&mut frame).expect("a line");
        if frame.contains("\"result\"") {
            break;
        }
        copied += usize::from(frame == line);
    }
    assert_eq!(copied, 50_000);
}
