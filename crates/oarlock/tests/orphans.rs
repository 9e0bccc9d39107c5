//! Nothing outlives us, however we end.
#![cfg(target_os = "linux")]

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
