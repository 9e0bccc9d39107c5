//! The CLI as a process that behaves badly: nothing hangs, nothing is left behind, and errors say why.
#![allow(clippy::unwrap_used, reason = "a test")]
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_agent::{Error, Options, Pool};
use support::{soon, tags};

/// Answers the handshake; what follows is the test's own.
const HELLO: &str = r#"#!/bin/sh
read -r _
echo '{"type":"control_response","response":{"subtype":"success","request_id":"oarlock_0","response":{}}}'
"#;

const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'"#;

struct Fake {
    dir: tempfile::TempDir,
}

impl Fake {
    fn new(script: &str) -> Self {
        Self::raw(&format!("{HELLO}{script}\n"))
    }

    fn raw(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("claude");
        // Written under another name first: a fork of another test must not hold it open for writing.
        fs::write(dir.path().join("new"), script).unwrap();
        fs::set_permissions(dir.path().join("new"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(dir.path().join("new"), &path).unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("claude")
    }

    fn options(&self) -> Options {
        Options::new().program(self.path()).close_grace(Duration::from_millis(300))
    }

    /// Waits for a file that the script writes, and gives the pid in it.
    async fn pid(&self, name: &str) -> u32 {
        let path = self.dir.path().join(name);
        soon(async {
            loop {
                if let Ok(pid) = fs::read_to_string(&path).unwrap_or_default().trim().parse() {
                    return pid;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

async fn dies(pid: u32) {
    soon(async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn hl_proc_01_a_flood_on_stderr_stops_nothing_and_its_end_is_kept() {
    let fake = Fake::new(&format!(
        "i=0; while [ $i -lt 4000 ]; do echo 'noise noise noise noise noise noise noise noise' >&2; i=$((i+1)); done
         echo 'Error: the last word' >&2; {RESULT}; exit 3"
    ));
    let (session, events) = fake.options().connect().await.unwrap();
    let tags = soon(tags(events)).await;
    assert_eq!(tags[0], "result");
    assert_eq!(tags[1], "! claude has ended: exit status: 3; it said: Error: the last word");
    let exit = session.wait().await;
    assert_eq!(exit.code(), Some(3));
    assert!(exit.stderr().len() <= 32 << 10 && exit.stderr().ends_with("Error: the last word\n"));
}

#[tokio::test]
async fn hl_proc_02_a_cli_that_never_reads_holds_the_sender_back_and_is_ended() {
    let fake = Fake::new("trap '' TERM; echo $$ > \"$(dirname \"$0\")/pid\"; while :; do sleep 0.05; done");
    let (session, _events) = fake.options().connect().await.unwrap();
    let large = "x".repeat(200_000);
    let send = async {
        for _ in 0..100 {
            session.send(large.as_str()).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_millis(500), send).await.expect_err("held back");
    let pid = fake.pid("pid").await;
    let begin = Instant::now();
    let exit = soon(session.close()).await.unwrap();
    assert!(exit.code().is_none(), "killed: {exit}");
    assert!(begin.elapsed() >= Duration::from_millis(600), "it had its time: {:?}", begin.elapsed());
    dies(pid).await;
}

#[tokio::test]
async fn a_polite_cli_ends_at_the_end_of_its_input() {
    let fake = Fake::new("while read -r _; do :; done; exit 0");
    let (session, _events) = fake.options().close_grace(Duration::from_secs(30)).connect().await.unwrap();
    let exit = soon(session.close()).await.unwrap();
    assert!(exit.success());
}

#[tokio::test]
async fn one_that_closes_its_output_is_ended() {
    let fake = Fake::new("echo $$ > \"$(dirname \"$0\")/pid\"; exec 1>&-; exec sleep 1000");
    let (_session, events) = fake.options().connect().await.unwrap();
    let pid = fake.pid("pid").await;
    assert!(soon(tags(events)).await.is_empty());
    dies(pid).await;
}

#[tokio::test]
async fn garbage_is_told_line_by_line() {
    let fake = Fake::new(&format!("printf 'garbage\\n\\377\\376\\n{{\\n'; {RESULT}"));
    let (session, events) = fake.options().connect().await.unwrap();
    session.finish().await;
    let tags = soon(tags(events)).await;
    assert_eq!(tags.len(), 4, "{tags:?}");
    assert!(tags[..3].iter().all(|tag| tag.starts_with("! the line is not JSON")), "{tags:?}");
    assert_eq!(tags[3], "result");
}

#[tokio::test]
async fn one_that_dies_at_once_says_why() {
    let fake = Fake::raw("#!/bin/sh\necho 'Error: bad day' >&2\nexit 7\n");
    let error = soon(fake.options().connect()).await.err().unwrap();
    assert_eq!(error.to_string(), "claude has ended: exit status: 7; it said: Error: bad day");
    let fake = Fake::raw("#!/bin/sh\nread -r _\nkill -9 $$\n");
    let error = soon(fake.options().connect()).await.err().unwrap();
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[tokio::test]
async fn one_that_never_answers_is_given_up_and_ended() {
    let fake = Fake::raw(
        "#!/bin/sh\ntrap '' TERM\necho $$ > \"$(dirname \"$0\")/pid\"\nwhile :; do sleep 0.05; done\n",
    );
    let options = fake.options().start_timeout(Duration::from_millis(500));
    let error = soon(options.connect()).await.err().unwrap();
    assert!(matches!(error, Error::NoAnswer { silent: true, .. }), "{error}");
    dies(fake.pid("pid").await).await;
}

/// Shells of the Bash tool have sessions of their own, so no signal to the group reaches them.
const GRANDCHILD: &str =
    "setsid sh -c 'echo $$ > \"$1/grandchild\"; exec sleep 1000' sh \"$(dirname \"$0\")\" &
    echo $$ > \"$(dirname \"$0\")/pid\"; while read -r _; do :; done; sleep 1000";

#[tokio::test]
async fn hl_proc_03_dropping_a_session_ends_the_whole_tree() {
    let fake = Fake::new(GRANDCHILD);
    let (session, events) = fake.options().connect().await.unwrap();
    let (pid, grandchild) = (fake.pid("pid").await, fake.pid("grandchild").await);
    assert_eq!(session.pid(), Some(pid));
    drop(session);
    tokio::task::yield_now().await;
    assert!(lives(pid), "somebody still reads");
    drop(events);
    dies(pid).await;
    dies(grandchild).await;
}

#[tokio::test]
async fn killing_a_session_ends_the_whole_tree() {
    let fake = Fake::new(GRANDCHILD);
    let (session, _events) = fake.options().connect().await.unwrap();
    let (pid, grandchild) = (fake.pid("pid").await, fake.pid("grandchild").await);
    soon(session.kill()).await;
    dies(pid).await;
    dies(grandchild).await;
}

#[test]
fn a_runtime_that_goes_down_takes_its_sessions_along() {
    let fake = Fake::new(GRANDCHILD);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (pid, grandchild) = runtime.block_on(async {
        let (session, events) = fake.options().connect().await.unwrap();
        std::mem::forget((session, events));
        (fake.pid("pid").await, fake.pid("grandchild").await)
    });
    drop(runtime);
    let waiting = tokio::runtime::Runtime::new().unwrap();
    waiting.block_on(async {
        dies(pid).await;
        dies(grandchild).await;
    });
}

#[tokio::test]
async fn a_child_that_holds_the_pipes_does_not_hold_us() {
    let fake = Fake::new(&format!("{RESULT}; sleep 1000 & echo $! > \"$(dirname \"$0\")/pid\"; exit 0"));
    let (session, events) = fake.options().connect().await.unwrap();
    let begin = Instant::now();
    assert_eq!(soon(tags(events)).await, ["result"]);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(session.wait().await.success());
    // What a CLI that ended by itself has left is left alone.
    let pid = fake.pid("pid").await;
    assert!(lives(pid));
    let _ = std::process::Command::new("kill").arg(pid.to_string()).status();
}

#[tokio::test]
async fn kill_9_at_any_point_ends_the_stream_with_an_error_and_nothing_hangs() {
    for delay in [0, 1, 3, 7, 15, 30] {
        let fake = Fake::new(&format!(
            "while :; do {RESULT}; echo '{{\"type\":\"system\",\"subtype\":\"init\"}}'; done"
        ));
        let (session, mut events) = fake.options().connect().await.unwrap();
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let pid = session.pid().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        let last = soon(async {
            let mut last = None;
            while let Some(item) = events.next().await {
                last = Some(item);
            }
            last
        })
        .await;
        let error = last.unwrap().unwrap_err();
        assert!(support::is_exited(&error) || !error.is_fatal(), "{error}");
    }
}

#[tokio::test]
async fn what_a_killed_cli_has_started_is_ended_too() {
    // In a session of its own, as the CLI starts its shells.
    let fake =
        Fake::new("setsid sh -c 'echo $$ > \"$(dirname \"$0\")/shell\"; exec sleep 1000' \"$0\" & wait");
    let (session, events) = fake.options().connect().await.unwrap();
    let (pid, shell) = (session.pid().unwrap().to_string(), fake.pid("shell").await);
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    assert_eq!(soon(tags(events)).await.len(), 1);
    dies(shell).await;
}

#[tokio::test]
async fn hl_proc_06_the_last_words_reach_a_reader_that_is_away_and_has_no_file() {
    let fake = Fake::new(&format!(
        "i=0; while [ $i -lt 300 ]; do echo '{{\"type\":\"stream_event\",\"x\":\"0123456789012345678901234567890123456789\"}}'; i=$((i+1)); done; {RESULT}"
    ));
    let options = fake.options().buffer(oarlock_agent::Buffer { memory: 1000, file: 0 });
    let (session, events) = options.connect().await.unwrap();
    soon(session.wait()).await;
    let tags = soon(tags(events)).await;
    assert_eq!((tags.len(), tags.last().map(String::as_str)), (301, Some("result")));
}

#[tokio::test]
async fn a_listener_on_stderr_that_panics_harms_nobody() {
    let fake = Fake::new(&format!("echo oh >&2; read -r _; {RESULT}; cat > /dev/null"));
    let options = fake.options().on_stderr(|_| panic!("this panic is part of the test"));
    let (session, mut events) = options.connect().await.unwrap();
    session.send("x").await.unwrap();
    assert!(soon(events.turn(drop)).await.unwrap().is_some());
    let exit = soon(session.close()).await.unwrap();
    assert_eq!(exit.stderr(), "oh\n");
}

#[tokio::test]
async fn one_that_closes_its_output_in_a_turn_is_told() {
    let fake = Fake::new("echo '{\"type\":\"system\",\"subtype\":\"init\"}'; exec >&-; sleep 1000");
    let (_session, events) = fake.options().connect().await.unwrap();
    let tags = soon(tags(events)).await;
    assert!(tags.len() == 2 && tags[1].starts_with("! claude has ended"), "{tags:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hl_proc_05_many_sessions_leave_no_process_and_no_descriptor() {
    let fake = Fake::new(&format!("while read -r line; do {RESULT}; done"));
    // The first one starts the guard, which stays.
    let (session, _) = fake.options().connect().await.unwrap();
    soon(session.close()).await.unwrap();
    let before = descriptors();
    let mut pids = Vec::new();
    for _ in 0..5 {
        let mut sessions = Vec::new();
        for _ in 0..20 {
            let (session, mut events) = fake.options().connect().await.unwrap();
            session.send("x").await.unwrap();
            assert_eq!(events.next().await.unwrap().unwrap().tag(), "result");
            pids.push(session.pid().unwrap());
            sessions.push((session, events));
        }
        for (index, (session, events)) in sessions.into_iter().enumerate() {
            match index % 3 {
                0 => drop(soon(session.close()).await.unwrap()),
                1 => drop(soon(session.kill()).await),
                _ => drop((session, events)),
            }
        }
    }
    for pid in pids {
        dies(pid).await;
    }
    soon(async {
        while descriptors() > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_pool_has_sessions_ready_and_replaces_those_that_died() {
    let fake = Fake::new(&format!("while read -r line; do {RESULT}; done"));
    let pool = Pool::new(fake.options(), 2);
    let (first, _events) = soon(pool.take()).await.unwrap();
    soon(async {
        while pool.ready() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // Both that wait are killed by somebody.
    let mark = fake.path();
    let waiting = processes_of(&mark).into_iter().filter(|pid| Some(*pid) != first.pid());
    let killed: Vec<u32> = waiting.collect();
    assert_eq!(killed.len(), 2);
    for pid in &killed {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        dies(*pid).await;
    }
    soon(async {
        loop {
            let (session, mut events) = pool.take().await.unwrap();
            if session.send("x").await.is_ok() && events.next().await.is_some_and(|item| item.is_ok()) {
                return;
            }
        }
    })
    .await;
    drop(pool);
    drop(first);
    soon(async {
        while !processes_of(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_pool_whose_way_to_start_panics_says_so() {
    let fake = Fake::new("cat > /dev/null");
    let options = fake.options().spawn_with(|_| panic!("this panic is part of the test"));
    assert!(soon(Pool::new(options, 1).take()).await.is_err());
}

#[tokio::test]
async fn a_launch_shows_no_argument_of_a_wrapper() {
    let fake = Fake::new("");
    let launch = fake.options().wrapper(["sshpass", "-p", "s3cret"]).model("m0del").launch().unwrap();
    let shown = format!("{launch:?}");
    assert!(shown.contains("--model") && !shown.contains("s3cret") && !shown.contains("m0del"), "{shown}");
}

#[tokio::test]
async fn a_session_that_was_taken_answers_before_the_next_one_is_started() {
    let init = r#"echo '{"type":"system","subtype":"init","session_id":"s"}'"#;
    let fake = Fake::new(&format!("while read -r line; do {init}; {RESULT}; done"));
    let pool = Pool::new(fake.options(), 1);
    let (session, mut events) = soon(pool.take()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(processes_of(&fake.path()).len(), 1, "no other session is started meanwhile");
    session.send("x").await.unwrap();
    assert!(soon(events.next()).await.unwrap().is_ok());
    let ready = async {
        while pool.ready() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Much sooner than courtesy ends by itself.
    tokio::time::timeout(Duration::from_millis(700), ready).await.expect("the next one is started");

    // Nobody waits for courtesy's sake.
    let (_first, _events) = soon(pool.take()).await.unwrap();
    let second = tokio::time::timeout(Duration::from_millis(700), pool.take()).await;
    assert!(second.expect("started at once").is_ok());
}

/// The processes that run a script.
fn processes_of(script: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let script = script.to_string_lossy().into_owned();
    pids.filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains(&script)
    })
    .collect()
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let error = Options::new().program("/no/such/claude").connect().await.err().unwrap();
    assert!(error.to_string().contains("/no/such/claude"), "{error}");
}
