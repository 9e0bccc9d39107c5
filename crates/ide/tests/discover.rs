//! Discovery against planted lock files: the tables of what the CLI does, case by case.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use oarlock_ide::discover::{
    Candidate, Connects, DirectoryKind, Discovery, Environment, Match, Reason, discover,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A home directory with a working directory, and real listeners behind the locks.
struct World {
    _dir: tempfile::TempDir,
    base: PathBuf,
    environment: Environment,
    listeners: Vec<TcpListener>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(dir.path()).unwrap();
        for sub in ["home/.claude/ide", "config/ide", "w/sub", "elsewhere"] {
            fs::create_dir_all(base.join(sub)).unwrap();
        }
        let environment =
            Environment { home: Some(base.join("home")), pid: std::process::id(), ..Environment::default() };
        Self { _dir: dir, base, environment, listeners: Vec::new() }
    }

    fn w(&self) -> PathBuf {
        self.base.join("w")
    }

    fn ide_dir(&self) -> PathBuf {
        self.base.join("home/.claude/ide")
    }

    fn listen(&mut self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        self.listeners.push(listener);
        port
    }

    /// A lock as a good engine writes it, with `changes` laid over it; null removes a field.
    fn lock_in(&mut self, dir: &Path, changes: &Value) -> u16 {
        let port = self.listen();
        self.lock_at(dir, port, changes);
        port
    }

    fn lock_at(&self, dir: &Path, port: u16, changes: &Value) {
        let mut lock = json!({
            "pid": std::process::id(), "workspaceFolders": [self.w()], "ideName": "Test",
            "transport": "ws", "authToken": "very-secret",
        });
        for (key, value) in changes.as_object().unwrap() {
            lock[key] = value.clone();
        }
        lock.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(format!("{port}.lock")), lock.to_string()).unwrap();
    }

    fn lock(&mut self, changes: &Value) -> u16 {
        self.lock_in(&self.ide_dir(), changes)
    }

    fn discover(&self) -> Discovery {
        discover(&self.environment, &self.w())
    }

    /// The only candidate.
    fn one(&self) -> Candidate {
        let mut candidates = self.discover().candidates;
        assert_eq!(candidates.len(), 1);
        candidates.remove(0)
    }
}

fn codes(candidate: &Candidate) -> Vec<&'static str> {
    candidate.would_connect.reasons.iter().map(Reason::code).collect()
}

/// A port where nothing listens. It is below the range that systems give out, so no other test gets it meanwhile.
fn closed_port() -> u16 {
    1
}

fn dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn one_good_lock_is_taken() {
    let mut world = World::new();
    let port = world.lock(&json!({"oarlock": {"version": "9.9.9"}}));
    let candidate = world.one();
    assert_eq!(candidate.would_connect.connects, Connects::Yes);
    assert_eq!(candidate.would_connect.reasons, []);
    assert_eq!((candidate.port, candidate.port_open, candidate.alive), (Some(port), true, Some(true)));
    assert_eq!((candidate.name.as_deref(), candidate.ours.as_deref()), (Some("Test"), Some("9.9.9")));
    assert!(candidate.has_token);
    let verdict = world.discover().verdict;
    assert_eq!((verdict.ide_flag.connects, verdict.ide_flag.port), (Connects::Yes, Some(port)));
    assert!(verdict.port_variable.is_none());
}

#[test]
fn no_lock_says_how_to_start_one() {
    let outcome = World::new().discover().verdict.ide_flag;
    assert_eq!((outcome.connects, outcome.port), (Connects::No, None));
    assert!(outcome.text.contains("oarlock serve"));
}

#[test]
fn workspace_match_by_the_table() {
    let world = World::new();
    let w = world.w().to_str().unwrap().to_owned();
    let other = world.base.join("elsewhere").to_str().unwrap().to_owned();
    for (folders, cwd, expected) in [
        (vec![w.clone()], w.clone(), true),
        (vec![w.clone()], format!("{w}/sub"), true),
        (vec![format!("{w}/")], w.clone(), true),
        (vec![other.clone(), w.clone()], w.clone(), true),
        (vec![format!("{w}/sub")], w.clone(), false),
        (vec![w.clone()], format!("{w}s"), false),
        (vec!["sub".to_owned()], w.clone(), false),
        (vec![".".to_owned()], w.clone(), true),
        (vec![format!("{w}/./sub/../../w")], w.clone(), true),
        (vec![String::new()], w.clone(), false),
    ] {
        let port = closed_port();
        world.lock_at(&world.ide_dir(), port, &json!({ "workspaceFolders": folders }));
        let discovery = discover(&world.environment, Path::new(&cwd));
        let matches = matches!(discovery.candidates[0].matches_cwd, Match::Folder { .. });
        assert_eq!(matches, expected, "{folders:?} {cwd}");
        fs::remove_file(world.ide_dir().join(format!("{port}.lock"))).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn real_paths_count_on_both_sides() {
    let mut world = World::new();
    let link = world.base.join("link");
    std::os::unix::fs::symlink(world.w(), &link).unwrap();
    world.lock(&json!({}));
    let entered = discover(&world.environment, &link);
    assert_eq!(
        entered.candidates[0].would_connect.connects,
        Connects::Yes,
        "real folder, directory by a link"
    );

    let mut world = World::new();
    let link = world.base.join("link");
    std::os::unix::fs::symlink(world.w(), &link).unwrap();
    world.lock(&json!({"workspaceFolders": [link]}));
    for cwd in [world.w(), link.clone()] {
        let candidate = discover(&world.environment, &cwd).candidates.remove(0);
        assert_eq!(codes(&candidate), ["symlinked_folder"]);
        assert!(candidate.would_connect.reasons[0].to_string().contains(world.w().to_str().unwrap()));
    }
}

#[test]
fn the_root_folder_depends_on_the_version() {
    let mut world = World::new();
    let root = world.lock(&json!({"workspaceFolders": ["/"]}));
    let candidate = world.one();
    assert_eq!(candidate.matches_cwd, Match::Root);
    assert_eq!(
        (candidate.would_connect.connects, codes(&candidate)),
        (Connects::Depends, vec!["root_folder"])
    );
    assert_eq!(world.discover().verdict.ide_flag.connects, Connects::Depends);

    let good = world.lock(&json!({}));
    let by_port = |port| world.discover().candidates.into_iter().find(|c| c.port == Some(port)).unwrap();
    assert_eq!(by_port(good).would_connect.connects, Connects::Depends, "newer CLIs see two");
    assert_eq!(by_port(good).would_connect.reasons, [Reason::Ambiguous(vec![root.into()])]);
    assert_eq!(
        by_port(root).would_connect.connects,
        Connects::No,
        "older ones do not match, newer ones see two"
    );
}

#[test]
fn two_that_match_are_ambiguous_wherever_they_are() {
    let mut world = World::new();
    world.environment.claude_config_dir = Some(world.base.join("config"));
    let first = world.lock(&json!({}));
    let second = world.lock_in(&world.base.join("config/ide"), &json!({}));
    let candidates = world.discover().candidates;
    assert_eq!(candidates[0].directory, DirectoryKind::Claude);
    assert_eq!(candidates[0].would_connect.reasons, [Reason::Ambiguous(vec![second.into()])]);
    assert_eq!(candidates[1].directory, DirectoryKind::Config);
    assert_eq!(candidates[1].would_connect.reasons, [Reason::Ambiguous(vec![first.into()])]);
    let outcome = world.discover().verdict.ide_flag;
    assert_eq!(outcome.connects, Connects::No);
    assert!(outcome.text.contains(&first.to_string()) && outcome.text.contains(&second.to_string()));

    world.environment.port = Some(second);
    let Discovery { candidates, verdict, .. } = world.discover();
    assert_eq!(candidates[0].would_connect.reasons, [Reason::OtherPort(second)]);
    assert_eq!(candidates[1].would_connect.connects, Connects::Yes, "the variable ends the ambiguity");
    assert_eq!(verdict.port_variable.unwrap().connects, Connects::Yes);
}

#[test]
fn the_same_directory_twice_is_one() {
    let mut world = World::new();
    world.lock(&json!({}));
    #[cfg(unix)]
    std::os::unix::fs::symlink(world.base.join("home/.claude"), world.base.join("link")).unwrap();
    for dir in if cfg!(unix) { vec!["home/.claude", "home/.claude/", "link"] } else { vec!["home/.claude"] } {
        world.environment.claude_config_dir = Some(world.base.join(dir));
        assert_eq!(world.one().would_connect.connects, Connects::Yes, "{dir}");
    }
}

#[test]
fn a_lock_that_matches_but_leads_nowhere_still_makes_two() {
    let mut world = World::new();
    let good = world.lock(&json!({}));
    let ghost = closed_port();
    world.lock_at(&world.ide_dir(), ghost, &json!({}));
    let reasons = |port| {
        world.discover().candidates.into_iter().find(|c| c.port == Some(port)).unwrap().would_connect.reasons
    };
    assert_eq!(reasons(good), [Reason::Ambiguous(vec![ghost.into()])]);
    assert_eq!(reasons(ghost), [Reason::PortClosed(ghost), Reason::Ambiguous(vec![good.into()])]);

    world.lock_at(&world.ide_dir(), ghost, &json!({"pid": null}));
    assert_eq!(reasons(good), [], "without a pid the CLI clears it away");
    assert_eq!(reasons(ghost), [Reason::PortClosed(ghost)]);
    world.lock_at(&world.ide_dir(), ghost, &json!({"pid": dead_pid()}));
    assert_eq!(reasons(good), [], "with a dead pid too");
}

#[test]
fn each_fault_has_its_reason() {
    let dead = dead_pid();
    for (changes, expected) in [
        (json!({"pid": dead}), vec!["dead_pid"]),
        (json!({"pid": "12x"}), vec!["bad_pid"]),
        (json!({"pid": 1.5}), vec!["bad_pid"]),
        (json!({"pid": std::process::id().to_string()}), vec![]),
        (json!({"pid": -1}), vec![]),
        (json!({"pid": null}), vec![]),
        (json!({"transport": "sse"}), vec!["wrong_transport"]),
        (json!({"transport": null}), vec!["wrong_transport"]),
        (json!({"workspaceFolders": []}), vec!["no_folders"]),
        (json!({"workspaceFolders": null}), vec!["no_folders"]),
        (json!({"workspaceFolders": [""]}), vec!["no_folders"]),
        (json!({"workspaceFolders": [1, "/"]}), vec!["unreadable"]),
        (json!({"workspaceFolders": ["/nowhere"]}), vec!["no_match"]),
        (json!({"workspaceFolders": "/nowhere"}), vec!["no_match"]),
        (json!({"authToken": null}), vec![]),
        (json!({"ideName": null}), vec![]),
    ] {
        let mut world = World::new();
        world.lock(&changes);
        let candidate = world.one();
        assert_eq!(codes(&candidate), expected, "{changes}");
        assert_eq!(candidate.would_connect.connects == Connects::Yes, expected.is_empty(), "{changes}");
    }
}

#[test]
fn files_that_are_no_lock_are_listed_with_the_reason() {
    let mut world = World::new();
    let dir = world.ide_dir();
    let w = world.w();
    let port = world.listen();
    let lock = dir.join(format!("{port}.lock"));
    for (contents, expected) in [
        ("{broken".to_owned(), vec!["unreadable"]),
        (String::new(), vec!["unreadable"]),
        ("[1]".to_owned(), vec!["unreadable"]),
        (" ".repeat(65 * 1024), vec!["unreadable"]),
        (format!("{}\n", w.display()), vec!["wrong_transport"]),
    ] {
        fs::write(&lock, &contents).unwrap();
        assert_eq!(codes(&world.one()), expected, "{:.20}", contents);
    }
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    assert_eq!(codes(&world.one())[0], "unreadable");
    fs::remove_dir(&lock).unwrap();
    fs::write(dir.join("abc.lock"), "{}").unwrap();
    fs::write(dir.join("notes.txt"), "{}").unwrap();
    let candidate = world.one();
    assert_eq!((candidate.port, codes(&candidate)[0]), (None, "foreign_name"));
}

#[test]
fn xdg_locks_are_shown_but_not_read() {
    let mut world = World::new();
    let xdg = world.base.join("home/.config/claude/ide");
    world.lock_in(&xdg, &json!({}));
    let good = world.lock(&json!({}));
    let candidates = world.discover().candidates;
    assert_eq!(candidates[0].port, Some(good));
    assert_eq!(candidates[0].would_connect.connects, Connects::Yes, "an unread lock makes nothing ambiguous");
    assert_eq!((candidates[1].directory, codes(&candidates[1])), (DirectoryKind::Xdg, vec!["not_read"]));
}

#[test]
fn the_port_variable_skips_the_workspace_but_needs_a_live_lock() {
    let mut world = World::new();
    let port = world.lock(&json!({"workspaceFolders": ["/nowhere"]}));
    assert_eq!(world.one().with_port_variable.connects, Connects::Yes);
    world.environment.port = Some(port);
    assert_eq!(world.one().would_connect.connects, Connects::Yes);
    world.environment.auto_connect = Some(false);
    assert_eq!(codes(&world.one()), ["auto_connect_off"]);
    world.environment.auto_connect = None;
    world.environment.port = Some(closed_port());
    let outcome = world.discover().verdict.port_variable.unwrap();
    assert_eq!(outcome.connects, Connects::No);
    assert!(outcome.text.contains("no lock file"));
}

#[test]
fn a_port_variable_that_leads_nowhere_changes_nothing_for_the_flag() {
    let mut world = World::new();
    let good = world.lock(&json!({}));
    world.environment.port = Some(closed_port());
    assert_eq!(world.discover().verdict.ide_flag.port, Some(good), "no lock has that port");
    let other = world.lock(&json!({"pid": dead_pid()}));
    world.environment.port = Some(other);
    assert_eq!(world.discover().verdict.ide_flag.port, Some(good), "its process is dead");
    world.lock_at(&world.ide_dir(), other, &json!({"transport": "sse"}));
    assert_eq!(world.discover().verdict.ide_flag.connects, Connects::No, "it lives, and is tried in vain");
}

#[test]
fn names_are_read_as_the_cli_reads_them() {
    let mut world = World::new();
    let port = world.lock(&json!({}));
    let lock = |name: String| world.ide_dir().join(name);
    for name in [format!("{port}x.lock"), format!("0{port}.lock")] {
        fs::rename(lock(format!("{port}.lock")), lock(name.clone())).unwrap();
        assert_eq!(
            (world.one().port, world.one().would_connect.connects),
            (Some(port), Connects::Yes),
            "{name}"
        );
        fs::rename(lock(name), lock(format!("{port}.lock"))).unwrap();
    }
    fs::copy(lock(format!("{port}.lock")), lock("99999.lock".into())).unwrap();
    let candidates = world.discover().candidates;
    assert_eq!((candidates[0].port, codes(&candidates[0])), (None, vec!["bad_port", "ambiguous"]));
    assert_eq!(
        candidates[1].would_connect.reasons,
        [Reason::Ambiguous(vec![99999])],
        "even that counts as an IDE"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_zombie_counts_as_running() {
    let mut world = World::new();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    world.lock(&json!({"pid": child.id()}));
    while oarlock_ide::process::is_alive(child.id()) {
        std::thread::yield_now();
    }
    assert_eq!(world.one().alive, Some(true));
    child.wait().unwrap();
    assert_eq!(world.one().alive, Some(false));
}

#[test]
fn switches_are_obeyed() {
    let mut world = World::new();
    world.lock(&json!({"workspaceFolders": ["/nowhere"]}));
    world.environment.skip_valid_check = true;
    assert_eq!(world.one().would_connect.connects, Connects::Yes);
    world.environment.auto_connect = Some(false);
    assert_eq!(codes(&world.one()), ["auto_connect_off"]);
}

#[cfg(target_os = "linux")]
#[test]
fn in_an_ide_terminal_only_an_ancestor_counts() {
    for terminal in [
        Environment { term_program: Some("vscode".into()), ..Environment::default() },
        Environment { terminal_emulator: Some("JetBrains-JediTerm".into()), ..Environment::default() },
    ] {
        let mut world = World::new();
        world.environment =
            Environment { home: world.environment.home.clone(), pid: std::process::id(), ..terminal };
        let port = world.lock(&json!({}));
        assert_eq!(codes(&world.one()), ["not_an_ancestor"], "this very process is not its own ancestor");
        world.environment.port = Some(port);
        assert_eq!(world.one().would_connect.connects, Connects::Yes, "the variable skips the check");
        world.environment.port = None;
        world.lock_at(&world.ide_dir(), port, &json!({"pid": std::os::unix::process::parent_id()}));
        assert_eq!(codes(&world.one()), [""; 0]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_host_override_is_where_the_port_is_looked_for() {
    let mut world = World::new();
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    world.lock_at(&world.ide_dir(), port, &json!({}));
    assert!(!world.one().port_open);
    world.environment.host_override = Some("127.0.0.2".into());
    assert!(world.one().port_open);
}

#[test]
fn ide_auth_05_json_and_debug_never_hold_the_token() {
    let mut world = World::new();
    world.lock(&json!({}));
    world.lock(&json!({"transport": "sse"}));
    let discovery = world.discover();
    let text = serde_json::to_string(&discovery).unwrap();
    assert!(!text.contains("very-secret") && !format!("{discovery:?}").contains("very-secret"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["candidates"][0]["has_token"], true);
    assert_eq!(value["candidates"][0]["directory"], "claude");
    assert_eq!(value["candidates"][0]["matches_cwd"]["kind"], "folder");
    assert_eq!(value["candidates"][0]["would_connect"]["connects"], "no");
    assert!(value["candidates"][0]["would_connect"]["reasons"][0]["text"].is_string());
    assert_eq!(value["verdict"]["ide_flag"]["connects"], "no");
}

fn junk() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        proptest::sample::select(vec!["/", "//", "/a/../b", "~", "\0", "C:\\x"]).prop_map(Value::from),
    ];
    let field = prop_oneof![scalar.clone(), proptest::collection::vec(scalar, 0..4).prop_map(Value::from)];
    let key = proptest::sample::select(vec![
        "pid",
        "workspaceFolders",
        "ideName",
        "transport",
        "authToken",
        "oarlock",
        "runningInWindows",
    ]);
    let object =
        proptest::collection::hash_map(key, field, 0..7).prop_map(|map| json!(map).to_string().into_bytes());
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        object,
        ".{0,80}".prop_map(String::into_bytes)
    ]
}

#[test]
fn arbitrary_locks_never_panic() {
    let world = World::new();
    proptest!(ProptestConfig::with_cases(500), |(contents in junk())| {
        fs::write(world.ide_dir().join("1.lock"), contents).unwrap();
        let candidate = world.one();
        prop_assert_eq!(candidate.port, Some(1));
        prop_assert_eq!(candidate.would_connect.connects == Connects::Yes, candidate.would_connect.reasons.is_empty());
        prop_assert!(serde_json::to_string(&candidate).is_ok());
    });
}

#[test]
fn a_directory_that_cannot_be_read_is_named() {
    let world = World::new();
    // Root may read everything, so the directory is something else than one.
    fs::remove_dir(world.ide_dir()).unwrap();
    fs::write(world.ide_dir(), "").unwrap();
    let unreadable = world.discover().unreadable;
    assert!(unreadable.len() == 1 && unreadable[0].contains("home/.claude/ide"), "{unreadable:?}");
}
