//! Nothing outlives us, however we end.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A `claude` with a child in a session of its own, as the real one's shells are.
const CLAUDE: &str = r#"#!/bin/sh
read -r _
echo '{"type":"control_response","response":{"subtype":"success","request_id":"oarlock_0","response":{}}}'
here=$(dirname "$0")
setsid sh -c 'echo $$ > "$1/child.new"; mv "$1/child.new" "$1/child"; exec sleep 1000' sh "$here" &
echo $$ > "$here/claude.new"; mv "$here/claude.new" "$here/pid"
while read -r _; do :; done
sleep 1000
"#;

fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} takes too long");
        // Another process is watched; it sends no event.
        thread::sleep(Duration::from_millis(10));
    }
}

fn pid(file: &Path) -> u32 {
    soon("the pid", || fs::read_to_string(file).ok()?.trim().parse().ok())
}

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

#[test]
fn hl_proc_04_the_whole_tree_ends_when_we_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let claude = dir.path().join("claude");
    fs::write(&claude, CLAUDE).unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    let mut oarlock = Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .args(["run", "hello"])
        .env("CLAUDE_CODE_EXECUTABLE", &claude)
        .env("HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let tree = [pid(&dir.path().join("pid")), pid(&dir.path().join("child"))];
    assert!(tree.into_iter().all(lives));
    // SIGKILL: nothing of ours can run any more.
    oarlock.kill().unwrap();
    oarlock.wait().unwrap();
    soon("the end of the tree", || (!tree.into_iter().any(lives)).then_some(()));
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What this process has in memory, in kilobytes.
fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hl_proc_05_two_hundred_sessions_at_once_leave_nothing_behind() {
    use oarlock_agent::Options;
    let dir = tempfile::tempdir().unwrap();
    let (script, claude) = (dir.path().join("script.toml"), dir.path().join("claude"));
    fs::write(&script, "[[turn]]\nsteps = [{ text = \"Hello there.\" }]\n").unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .arg("script")
        .arg(&script)
        .arg("--as")
        .arg(&claude)
        .status();
    assert!(made.unwrap().success());
    let round = async |count: usize| {
        let sessions = (0..count).map(|_| async {
            let options = Options::new().program(&claude).include_partial_messages(true);
            let (session, mut events) = options.connect().await.unwrap();
            session.send("hi").await.unwrap();
            let result = events.turn(|_| {}).await.unwrap().unwrap();
            assert_eq!(result.result.as_deref(), Some("Hello there."));
            (session, events)
        });
        let sessions = futures_util::future::join_all(sessions).await;
        let pids: Vec<u32> = sessions.iter().filter_map(|(session, _)| session.pid()).collect();
        assert_eq!(pids.len(), count);
        let closing = sessions.into_iter().enumerate().map(|(index, (session, events))| async move {
            match index % 3 {
                0 => assert!(session.close().await.unwrap().success()),
                1 => drop(session.kill().await),
                _ => drop((session, events)),
            }
        });
        futures_util::future::join_all(closing).await;
        pids
    };
    // Some first, so that what stays for good (the guard, the runtime's own) is there.
    round(5).await;
    let before = (descriptors(), memory());
    let pids = round(200).await;
    soon("the end of 200 processes", || (!pids.iter().copied().any(lives)).then_some(()));
    soon("the end of their pipes", || (descriptors() <= before.0).then_some(()));
    let grown = memory().saturating_sub(before.1);
    assert!(grown < 60_000, "memory has grown by {grown} kB");
}
