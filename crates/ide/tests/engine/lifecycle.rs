//! Starting, stopping and starting again: the lock file, the record, port and token.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oarlock_ide::{Error, Options, Server};
use serde_json::{Value, json};

use crate::support::{Home, Rig, TestEditor, within};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The one record of an engine that has ended.
fn record(home: &Home) -> PathBuf {
    let mut files = std::fs::read_dir(home.state_dir()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    file
}

/// Makes an engine's end longer ago.
fn age(home: &Home, by: Duration) {
    let path = record(home);
    let mut contents: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let then = SystemTime::now() - by;
    contents["ended"] = json!(u64::try_from(then.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap());
    std::fs::write(&path, contents.to_string()).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
}

/// Starts an engine and stops it; its port and token.
async fn one_life(home: &Home, change: impl FnOnce(&mut Options)) -> (u16, String) {
    let rig = home.start(change).await;
    let known = (rig.port(), rig.token());
    rig.stop().await;
    known
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ide_lock_01_whoever_sees_the_file_can_connect() {
    let home = Home::new();
    std::fs::create_dir(home.lock_dir()).unwrap();
    for start in 0..100 {
        let dir = home.lock_dir();
        // Looks for the file without a pause, and connects the moment it is there.
        let watcher = std::thread::spawn(move || {
            let deadline = std::time::Instant::now() + Duration::from_secs(10);
            loop {
                assert!(std::time::Instant::now() < deadline, "no lock file");
                let Some(entry) = std::fs::read_dir(&dir).unwrap().next() else { continue };
                let name = entry.unwrap().file_name().into_string().unwrap();
                if let Some(port) = name.strip_suffix(".lock").and_then(|port| port.parse::<u16>().ok()) {
                    return (port, std::net::TcpStream::connect(("127.0.0.1", port)).map(drop));
                }
            }
        });
        let rig = home.start(|_| {}).await;
        let (port, connected) = tokio::task::spawn_blocking(|| watcher.join().unwrap()).await.unwrap();
        assert_eq!(port, rig.port());
        assert!(connected.is_ok(), "start {start}: {connected:?}");
        drop(rig);
        assert_eq!(std::fs::read_dir(home.lock_dir()).unwrap().count(), 0, "start {start}");
        std::fs::remove_dir_all(home.state_dir()).unwrap();
    }
}

#[tokio::test]
async fn ide_lock_02_the_lock_is_what_the_cli_needs_and_its_own_process() {
    let rig = Rig::with(|options| options.name = "My Editor".into()).await;
    let lock = rig.lock();
    assert_eq!((&lock["transport"], &lock["ideName"]), (&json!("ws"), &json!("My Editor")));
    assert_eq!((&lock["pid"], &lock["runningInWindows"]), (&json!(std::process::id()), &json!(false)));
    assert_eq!(lock["workspaceFolders"], json!([rig.home.workspace]));
    assert!(rig.token().len() >= 22, "128 bits at least");
    assert!(lock["oarlock"].is_object(), "our mark");
    assert_eq!(rig.server.lock_path(), rig.home.lock_dir().join(format!("{}.lock", rig.port())));
    // This process owns the socket: one of its descriptors is the inode that listens.
    let wanted = format!(":{:04X}", rig.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let listens = |words: &Vec<String>| words[1].ends_with(&wanted) && words[3] == "0A";
    let inode = table.lines().skip(1).map(words).find(listens).unwrap()[9].clone();
    let descriptors = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().read_link().ok());
    assert!(descriptors.into_iter().any(|link| link.to_string_lossy() == format!("socket:[{inode}]")));
}

#[tokio::test]
async fn ide_lock_03_folders_are_real_paths_and_never_the_root() {
    let home = Home::new();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&home.workspace, &link).unwrap();
    let rig = home.start(|options| options.workspace = vec![link.join("."), home.workspace.clone()]).await;
    assert_eq!(rig.lock()["workspaceFolders"], json!([home.workspace]));
    assert_eq!(rig.server.folders(), std::slice::from_ref(&home.workspace));
    let file = home.file("a.py", "");
    for wrong in [vec![], vec!["/".into()], vec![home.path().join("none")], vec![file]] {
        let options = Options { workspace: wrong.clone(), ..home.options() };
        let started = Server::start(Arc::new(TestEditor::default()), options).await;
        assert!(matches!(started.err(), Some(Error::Folder { .. } | Error::NoFolders)), "{wrong:?}");
    }
    assert_eq!(std::fs::read_dir(home.lock_dir()).unwrap().count(), 1, "a failed start leaves nothing");
}

#[tokio::test]
async fn ide_lock_04_directory_and_files_are_private() {
    let rig = Rig::start().await;
    assert_eq!((mode(&rig.home.lock_dir()), mode(rig.server.lock_path())), (0o700, 0o600));
    assert_eq!((mode(&rig.home.state_dir()), mode(&record(&rig.home))), (0o700, 0o600));
}

#[tokio::test]
async fn ide_lock_05_the_lock_goes_with_the_server_and_before_the_goodbye() {
    let home = Home::new();
    let rig = home.start(|_| {}).await;
    let lock = rig.server.lock_path().to_owned();
    let mut client = rig.cli().await;
    rig.stop().await;
    assert!(!lock.exists());
    assert_eq!(client.closed().await.unwrap().0, 1001);
    let rig = home.start(|_| {}).await;
    let lock = rig.server.lock_path().to_owned();
    drop(rig);
    assert!(!lock.exists(), "dropped without a word");
    let start = home.clone();
    let panicked = tokio::spawn(async move {
        let rig = start.start(|_| {}).await;
        assert!(rig.server.lock_path().exists());
        panic!("on purpose");
    });
    assert!(panicked.await.is_err());
    assert_eq!(std::fs::read_dir(home.lock_dir()).unwrap().count(), 0, "a panic unwinds");
}

#[tokio::test]
async fn ide_lock_05_07_a_start_sweeps_our_dead_locks_and_no_other() {
    let home = Home::new();
    std::fs::create_dir(home.lock_dir()).unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let lock = |pid: u32, ours: bool| {
        let mut lock = json!({ "pid": pid, "workspaceFolders": ["/w"], "ideName": "X", "transport": "ws", "authToken": "t" });
        if ours {
            lock["oarlock"] = json!({ "version": "0.0.1" });
        }
        lock.to_string()
    };
    let own = std::process::id();
    let planted = [
        ("1.lock", lock(child.id(), true), false),
        ("2.lock", lock(child.id(), false), true),
        ("3.lock", lock(own, false), true),
        ("4.lock", lock(own, true), true),
        ("5.lock", "not JSON".to_owned(), true),
        ("abc.lock", lock(child.id(), true), true),
        ("notes.txt", "x".to_owned(), true),
    ];
    for (name, contents, _) in &planted {
        std::fs::write(home.lock_dir().join(name), contents).unwrap();
    }
    let before = std::fs::metadata(home.lock_dir().join("3.lock")).unwrap().modified().unwrap();
    home.start(|_| {}).await.stop().await;
    for (name, contents, stays) in &planted {
        let found = std::fs::read_to_string(home.lock_dir().join(name)).ok();
        assert_eq!(found.as_ref(), stays.then_some(contents), "{name}");
    }
    assert_eq!(std::fs::metadata(home.lock_dir().join("3.lock")).unwrap().modified().unwrap(), before);
}

#[tokio::test]
async fn ide_lock_06_a_quick_restart_keeps_port_and_token_and_clients_come_back() {
    let home = Home::new();
    let rig = home.start(|_| {}).await;
    let handshake = rig.handshake();
    let (port, token) = (rig.port(), rig.token());
    let mut client = rig.cli().await;
    rig.stop().await;
    assert_eq!(client.closed().await.unwrap().0, 1001);
    let rig = home.start(|_| {}).await;
    assert_eq!((rig.port(), rig.token()), (port, token));
    let mut again = crate::support::Client::connect(port, &handshake).await;
    again.initialize().await;
    again.ping().await;
}

#[tokio::test]
async fn ide_lock_06_after_fifteen_seconds_both_are_new() {
    let home = Home::new();
    let (port, token) = one_life(&home, |_| {}).await;
    age(&home, Duration::from_secs(14));
    let same = one_life(&home, |_| {}).await;
    assert_eq!(same, (port, token.clone()), "14 s is soon enough");
    age(&home, Duration::from_secs(16));
    let (new_port, new_token) = one_life(&home, |_| {}).await;
    assert_ne!(new_token, token);
    assert_ne!(new_port, port);
}

#[tokio::test]
async fn ide_lock_06_a_fixed_port_stays_and_its_token_changes_after_fifteen_seconds() {
    let home = Home::new();
    let (port, token) = one_life(&home, |_| {}).await;
    let fixed = |options: &mut Options| options.port = Some(port);
    assert_eq!(one_life(&home, fixed).await, (port, token.clone()), "sooner, both are kept");
    age(&home, Duration::from_secs(16));
    let (same_port, new_token) = one_life(&home, fixed).await;
    assert_eq!(same_port, port);
    assert_ne!(new_token, token);
}

#[tokio::test]
async fn ide_lock_06_another_workspace_or_another_port_takes_nothing_over() {
    let home = Home::new();
    let (port, token) = one_life(&home, |_| {}).await;
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let rig = home.start(|options| options.workspace = vec![other]).await;
    assert!(rig.port() != port && rig.token() != token);
}

#[tokio::test]
async fn ide_lock_06_a_port_that_is_taken_by_now_means_a_new_port_and_token() {
    let home = Home::new();
    let (port, token) = one_life(&home, |_| {}).await;
    let _somebody = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let rig = home.start(|_| {}).await;
    assert!(rig.port() != port && rig.token() != token);
}

#[tokio::test]
async fn ide_lock_06_two_engines_of_one_workspace_share_nothing() {
    let home = Home::new();
    let (one, two) = (home.start(|_| {}).await, home.start(|_| {}).await);
    assert!(one.port() != two.port() && one.token() != two.token());
    assert_ne!(one.control_token(), two.control_token());
}

#[tokio::test]
async fn ide_lock_07_a_foreign_lock_in_our_place_is_left_alone() {
    let rig = Rig::start().await;
    let lock = rig.server.lock_path().to_owned();
    let foreign = json!({ "pid": std::process::id(), "workspaceFolders": ["/x"], "transport": "ws", "authToken": "other" });
    std::fs::write(&lock, foreign.to_string()).unwrap();
    let _home = rig.stop().await;
    assert_eq!(std::fs::read_to_string(lock).unwrap(), foreign.to_string());
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_says_what_to_do() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let options = Options { port: Some(port), ..home.options() };
    let error = Server::start(Arc::new(TestEditor::default()), options).await.err().unwrap().to_string();
    assert!(error.contains(&port.to_string()) && error.contains("--port"), "{error}");
    assert_eq!(std::fs::read_dir(home.lock_dir()).map(Iterator::count).unwrap_or(0), 0);
}

#[tokio::test]
async fn a_stop_takes_no_longer_than_a_moment_whatever_hangs() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    rig.editor.set("open_diff", crate::support::Mood::Hanging);
    rig.editor.set("execute", crate::support::Mood::Hanging);
    let mut client = rig.cli().await;
    client.ask_tool("openDiff", crate::support::diff(&file, "y\n", "tab")).await;
    client.ask_tool("executeCode", json!({ "code": "1" })).await;
    rig.events.wait("diff_opened", 1).await;
    let start = std::time::Instant::now();
    within("the stop", rig.server.stop()).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(client.closed().await.is_some());
}
