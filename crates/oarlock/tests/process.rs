//! The engine as a process: how it comes, how it goes, and what it leaves behind.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::{Duration, Instant};

use oarlock_testkit::cli::Sandbox;
use oarlock_testkit::engine::{Engine, Oarlock};
use oarlock_testkit::ws::Handshake;
use rustix::process::Signal;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

fn sandbox() -> (Sandbox, Oarlock) {
    let sandbox = Sandbox::new(None).unwrap();
    let oarlock = Oarlock::new(env!("CARGO_BIN_EXE_oarlock"), &sandbox).unwrap();
    (sandbox, oarlock)
}

fn lock_files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn lock_of(engine: &Engine) -> Value {
    serde_json::from_slice(&std::fs::read(engine.lock()).unwrap()).unwrap()
}

#[tokio::test]
async fn ide_lock_01_whoever_sees_the_lock_can_connect() {
    let (sandbox, oarlock) = sandbox();
    let dir = sandbox.home().join(".claude/ide");
    std::fs::create_dir_all(&dir).unwrap();
    for _ in 0..100 {
        let start = oarlock.serve(&[]);
        // Looks at the directory itself, not at what the engine says of it.
        let seen = tokio::task::spawn_blocking({
            let dir = dir.clone();
            move || {
                let deadline = Instant::now() + SOON;
                while Instant::now() < deadline {
                    let named = lock_files(&dir).into_iter().find(|name| name.ends_with(".lock"));
                    if let Some(name) = named {
                        let lock: Value =
                            serde_json::from_slice(&std::fs::read(dir.join(&name)).unwrap()).unwrap();
                        let port: u16 = name.trim_end_matches(".lock").parse().unwrap();
                        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
                        return (port, lock["authToken"].as_str().unwrap().to_owned());
                    }
                    std::thread::yield_now();
                }
                panic!("no lock file came");
            }
        });
        let (engine, seen) = tokio::join!(start, seen);
        let (mut engine, (port, token)) = (engine.unwrap(), seen.unwrap());
        assert_eq!(port, engine.port());
        Handshake::new(port, &token).connect().await.unwrap();
        engine.stop().await.unwrap();
        assert_eq!(lock_files(&dir), Vec::<String>::new());
    }
}

#[tokio::test]
async fn ide_lock_02_the_lock_names_the_process_that_listens() {
    let (_sandbox, oarlock) = sandbox();
    let engine = oarlock.serve(&["--name", "My Editor"]).await.unwrap();
    let lock = lock_of(&engine);
    assert_eq!(lock["pid"], engine.pid().unwrap());
    assert_eq!(lock["transport"], "ws");
    assert_eq!(lock["ideName"], "My Editor");
    assert!(lock["authToken"].as_str().unwrap().len() >= 22);
    // The process owns a socket that listens on the port of the file's name.
    let inode = listening_inode(engine.port()).unwrap();
    let fds = std::fs::read_dir(format!("/proc/{}/fd", engine.pid().unwrap())).unwrap();
    let owned = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    assert!(owned.into_iter().any(|link| link.to_string_lossy() == format!("socket:[{inode}]")));
}

#[tokio::test]
async fn ide_net_01_it_listens_on_loopback_alone() {
    let (_sandbox, oarlock) = sandbox();
    let engine = oarlock.serve(&[]).await.unwrap();
    let tcp = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let tcp6 = std::fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let suffix = format!(":{:04X}", engine.port());
    let listening: Vec<_> = tcp
        .lines()
        .chain(tcp6.lines())
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(3) == Some(&"0A") && words[1].ends_with(&suffix))
        .map(|words| words[1].to_owned())
        .collect();
    assert_eq!(listening, [format!("0100007F{suffix}")]);
}

fn listening_inode(port: u16) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let wanted = format!("0100007F:{port:04X}");
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find_map(|words| {
        (words.get(1) == Some(&wanted.as_str()) && words[3] == "0A").then(|| words[9].to_owned())
    })
}

#[tokio::test]
async fn ide_lock_05_the_lock_goes_on_every_way_out() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (_sandbox, oarlock) = sandbox();
        let mut engine = oarlock.serve(&[]).await.unwrap();
        let client = engine.client().await.unwrap();
        client.initialize().await.unwrap();
        let lock = engine.lock().to_owned();
        let start = Instant::now();
        engine.signal(signal).await.unwrap();
        assert!(!lock.exists(), "{signal:?} left {}", lock.display());
        assert!(start.elapsed() < Duration::from_secs(3), "{signal:?} took {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn ide_lock_05_after_a_kill_the_next_start_sweeps_and_leaves_others_alone() {
    let (sandbox, oarlock) = sandbox();
    let dir = sandbox.home().join(".claude/ide");
    std::fs::create_dir_all(&dir).unwrap();
    let foreign = dir.join("4.lock");
    let dead = json!({ "pid": 999_999_999, "workspaceFolders": ["/w"], "transport": "ws" }).to_string();
    std::fs::write(&foreign, &dead).unwrap();
    let other = sandbox.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut engine = oarlock.serve(&["--workspace", other.to_str().unwrap()]).await.unwrap();
    let old = engine.lock().to_owned();
    engine.kill().await.unwrap();
    assert!(old.exists());
    let _next = oarlock.serve(&[]).await.unwrap();
    assert!(!old.exists());
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), dead);
}

#[tokio::test]
async fn ide_lock_06_a_quick_restart_keeps_port_and_token_also_after_a_kill() {
    for killed in [false, true] {
        let (_sandbox, oarlock) = sandbox();
        let mut first = oarlock.serve(&[]).await.unwrap();
        let before = (first.port(), lock_of(&first)["authToken"].clone());
        if killed {
            first.kill().await.unwrap()
        } else {
            first.stop().await.unwrap()
        }
        let second = oarlock.serve(&[]).await.unwrap();
        assert_eq!(before, (second.port(), lock_of(&second)["authToken"].clone()), "killed: {killed}");
        // A second engine in the same workspace must not take what the running one has.
        let third = oarlock.serve(&[]).await.unwrap();
        assert_ne!(before.0, third.port());
        assert_ne!(before.1, lock_of(&third)["authToken"]);
    }
}

#[tokio::test]
async fn ide_diff_10_a_stopping_server_answers_with_an_error_and_says_goodbye() {
    let (sandbox, oarlock) = sandbox();
    let file = sandbox.write("a.txt", "old\n").unwrap();
    let mut engine = oarlock.serve(&[]).await.unwrap();
    let client = engine.client().await.unwrap();
    client.initialize().await.unwrap();
    client.ide_connected().await.unwrap();
    let arguments = json!({ "old_file_path": file, "new_file_path": file, "new_file_contents": "new\n", "tab_name": "t" });
    let call = json!({ "name": "openDiff", "arguments": arguments });
    let id = client.start("tools/call", call).await.unwrap();
    engine.event("diff_opened", SOON).await.unwrap();
    engine.stop().await.unwrap();
    let answer = client.answer(id, SOON).await.unwrap();
    assert_eq!(answer["isError"], true, "{answer}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
    let decided = engine.event("diff_decided", SOON).await.unwrap();
    assert_eq!(decided["decision"], "failed");
}

#[tokio::test]
async fn ide_auth_05_the_token_is_in_no_output() {
    let (_sandbox, oarlock) = sandbox();
    let mut engine = oarlock.serve(&["-vv"]).await.unwrap();
    let token = engine.token().unwrap();
    let client = engine.client().await.unwrap();
    client.initialize().await.unwrap();
    client.ide_connected().await.unwrap();
    assert!(Handshake::new(engine.port(), &format!("{token}x")).connect().await.is_err());
    let listed = oarlock.run(&["ide", "list"]).await.unwrap();
    let tools = client.request("tools/list", json!({})).await.unwrap().to_string();
    engine.stop().await.unwrap();
    let account = engine.account();
    assert!(account.contains("DEBUG"), "no log was written: {account}");
    assert!(!account.contains(&token) && !tools.contains(&token) && !listed.contains(&token));
}

#[tokio::test]
async fn a_second_engine_on_a_fixed_port_says_what_to_do() {
    let (_sandbox, oarlock) = sandbox();
    let engine = oarlock.serve(&[]).await.unwrap();
    let port = engine.port().to_string();
    let output = oarlock.output(&["serve", "--json", "--port", &port]).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("take another --port"), "{said}");
}
