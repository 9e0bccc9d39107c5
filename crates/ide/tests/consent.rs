//! What is shared and what is withheld, on real files and links.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use oarlock_ide::{
    Error,
    consent::{Consent, DEFAULT_LIMIT, Origin, Rules, Withheld},
};
use proptest::prelude::*;

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(dir.path()).unwrap().join("w");
        fs::create_dir(&root).unwrap();
        Self { _dir: dir, root }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn consent(&self, rules: &Rules) -> Consent {
        Consent::new(std::slice::from_ref(&self.root), rules).unwrap()
    }

    /// The rule that withholds a file of the workspace.
    fn rule(&self, consent: &Consent, name: &str) -> Option<(String, Origin)> {
        rule(consent, &self.root.join(name))
    }
}

fn rule(consent: &Consent, path: &Path) -> Option<(String, Origin)> {
    match consent.allows(path) {
        Ok(()) => None,
        Err(Withheld::Rule { rule, origin, .. }) => Some((rule, origin)),
        Err(other) => panic!("{other}"),
    }
}

fn list(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

#[test]
fn ide_sel_06_secrets_are_withheld_by_default() {
    let world = World::new();
    let consent = world.consent(&Rules::default());
    for name in [
        ".env",
        ".env.local",
        ".envrc",
        "deep/down/.env",
        ".ENV",
        "server.pem",
        "Server.PEM",
        "tls/a.key",
        "x.p12",
        "x.pfx",
        "id_rsa",
        "id_rsa.bak",
        "keys/id_ed25519",
        "id_ecdsa_sk",
        "id_dsa",
        "my.keystore",
        ".git/config",
        ".git",
        "sub/.git/HEAD",
        ".GIT/config",
        ".ssh/config",
        ".aws/credentials",
        "sub/.aws/credentials",
        ".netrc",
    ] {
        let (_, origin) = world.rule(&consent, name).unwrap_or_else(|| panic!("{name} is shared"));
        assert_eq!(origin, Origin::Default, "{name}");
    }
    for name in
        ["main.rs", "environment.py", "env", "keys.txt", "monkey", ".gitignore", ".github/x.yml", "a.pem.txt"]
    {
        assert_eq!(world.rule(&consent, name), None, "{name}");
    }
    let text = consent.allows(&world.root.join("sub/.env")).unwrap_err().to_string();
    assert_eq!(text, format!("{}/sub/.env is withheld by `.env*`, a built-in rule", world.root.display()));
}

#[test]
fn ide_sel_06_outside_the_workspace_the_full_path_counts() {
    let world = World::new();
    let consent = world.consent(&Rules { user: list(&["/etc/shadow", "private/"]), ..Rules::default() });
    for path in [
        "/home/u/.ssh/known_hosts",
        "/srv/x/.env",
        "/home/u/.claude/ide/1.lock",
        "/etc/shadow",
        "/a/private/b",
    ] {
        assert!(consent.allows(Path::new(path)).is_err(), "{path}");
    }
    for path in ["/etc/hostname", "Untitled-1", "/a/b/private"] {
        assert_eq!(consent.allows(Path::new(path)), Ok(()), "{path}");
    }
    assert!(consent.allows(Path::new(".env")).is_err(), "an unsaved buffer's name counts too");
}

#[test]
fn ide_sel_06_a_link_shares_no_more_than_its_target() {
    let world = World::new();
    world.write(".env", "SECRET=1");
    world.write("open/readme", "");
    world.write("vault/data", "");
    symlink(".env", world.root.join("notes.txt")).unwrap();
    symlink("notes.txt", world.root.join("twice")).unwrap();
    symlink("vault", world.root.join("pub")).unwrap();
    symlink("open/readme", world.root.join("x.pem")).unwrap();
    let consent = world.consent(&Rules { user: list(&["/vault/"]), ..Rules::default() });
    for name in [
        "notes.txt",
        "twice",
        "pub/data",
        "pub/new-file",
        "x.pem",
        "notes.txt/.",
        "open/../.env",
        "open/../notes.txt",
    ] {
        assert!(world.rule(&consent, name).is_some(), "{name}");
    }
    assert_eq!(world.rule(&consent, "open/readme"), None);
    // Allowing the link by name does not open what is behind it.
    let consent = world.consent(&Rules { user: list(&["!notes.txt"]), ..Rules::default() });
    assert!(world.rule(&consent, "notes.txt").is_some());
}

#[test]
fn a_workspace_entered_by_a_link_has_the_same_rules() {
    let world = World::new();
    let link = world.root.with_file_name("link");
    symlink(&world.root, &link).unwrap();
    let rules = Rules { user: list(&["/only/here"]), ..Rules::default() };
    for roots in [[world.root.clone()], [link.clone()]] {
        let consent = Consent::new(&roots, &rules).unwrap();
        for root in [&world.root, &link] {
            assert!(consent.allows(&root.join("only/here")).is_err());
            assert!(consent.allows(&root.join("not/only/here")).is_ok());
        }
    }
}

#[test]
fn the_user_may_take_back_and_the_project_may_only_add() {
    let world = World::new();
    let rules = Rules {
        user: list(&["# a comment", "", "!.env.example", "*.draft", "secrets/", "!secrets/public.txt"]),
        project: list(&["generated/", "/notes.txt", r"\!odd"]),
        ..Rules::default()
    };
    let consent = world.consent(&rules);
    for (name, expected) in [
        (".env.example", None),
        (".env", Some((".env*", Origin::Default))),
        ("a.draft", Some(("*.draft", Origin::User))),
        ("secrets/a", Some(("secrets/", Origin::User))),
        ("secrets/public.txt", None),
        ("generated/deep/x", Some(("generated/", Origin::Project))),
        ("notes.txt", Some(("/notes.txt", Origin::Project))),
        ("sub/notes.txt", None),
        ("!odd", Some((r"\!odd", Origin::Project))),
    ] {
        let expected = expected.map(|(rule, origin)| (rule.to_owned(), origin));
        assert_eq!(world.rule(&consent, name), expected, "{name}");
    }
    let over = Rules { user: list(&["!x"]), project: list(&["x"]), ..Rules::default() };
    assert!(world.rule(&world.consent(&over), "x").is_some(), "a project's rule is not taken back");
}

#[test]
fn rules_that_cannot_work_are_refused_with_a_message() {
    let refused = |user: &[&str], project: &[&str]| {
        let rules = Rules { user: list(user), project: list(project), ..Rules::default() };
        Consent::new(&["/w".into()], &rules).unwrap_err()
    };
    let error = refused(&[], &["ok", "!.env"]);
    assert!(
        matches!(&error, Error::Rule { rule, origin: Origin::Project, .. } if rule == "!.env"),
        "{error}"
    );
    assert!(error.to_string().contains("only add"));
    assert!(matches!(refused(&["[z-a]"], &[]), Error::Rule { origin: Origin::User, .. }));
    assert!(matches!(refused(&[], &["a\n!b"]), Error::Rule { origin: Origin::Project, .. }));
}

#[test]
fn git_ignored_files_stay_only_if_asked_for() {
    let world = World::new();
    world.write(".gitignore", "target/\n*.log\n!keep.log\n/only-top\n");
    world.write("sub/.gitignore", "!*.log\nlocal\n");
    world.write("target/debug/x", "");
    let top = Origin::Git(world.root.join(".gitignore"));
    let sub = Origin::Git(world.root.join("sub/.gitignore"));
    let rules = Rules { git_ignored: true, user: list(&["!wanted.log"]), ..Rules::default() };
    let consent = world.consent(&rules);
    for (name, expected) in [
        ("target/debug/x", Some(("target/", &top))),
        ("a.log", Some(("*.log", &top))),
        ("keep.log", None),
        ("wanted.log", None),
        ("only-top", Some(("/only-top", &top))),
        ("sub/only-top", None),
        ("sub/a.log", None),
        ("sub/deep/a.log", None),
        ("sub/local", Some(("local", &sub))),
        ("local", None),
        ("main.rs", None),
    ] {
        let expected = expected.map(|(rule, origin)| (rule.to_owned(), origin.clone()));
        assert_eq!(world.rule(&consent, name), expected, "{name}");
    }
    assert_eq!(world.rule(&world.consent(&Rules::default()), "a.log"), None, "not asked for");
    world.write(".gitignore", "main.rs\n");
    assert!(world.rule(&consent, "main.rs").is_some(), "an edit counts at once");
}

#[test]
fn a_workspace_inside_a_repository_obeys_its_upper_rules() {
    let world = World::new();
    fs::create_dir_all(world.root.join(".git/info")).unwrap();
    world.write(".git/info/exclude", "mine\n");
    world.write(".gitignore", "/part/dist\n");
    world.write("part/x", "");
    let consent =
        Consent::new(&[world.root.join("part")], &Rules { git_ignored: true, ..Rules::default() }).unwrap();
    assert!(world.rule(&consent, "part/dist/a.js").is_some());
    assert!(world.rule(&consent, "part/mine").is_some());
    assert_eq!(world.rule(&consent, "part/x"), None);
}

#[test]
fn what_belongs_to_the_engine_stays_back_whatever_the_rules_say() {
    let world = World::new();
    let own = world.root.join("state");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("record.json"), "token").unwrap();
    let mut consent = world.consent(&Rules { user: vec!["!*".into()], ..Rules::default() });
    assert_eq!(consent.allows(&own.join("record.json")), Ok(()));
    consent.keep_back(&own);
    assert!(matches!(consent.allows(&own.join("record.json")), Err(Withheld::Own { .. })));
    std::os::unix::fs::symlink(own.join("record.json"), world.root.join("notes.txt")).unwrap();
    assert!(matches!(consent.allows(&world.root.join("notes.txt")), Err(Withheld::Own { .. })));
}

#[test]
fn pausing_and_the_size_limit() {
    let world = World::new();
    let consent = world.consent(&Rules::default());
    let file = world.root.join("a.rs");
    assert_eq!(consent.limit(), DEFAULT_LIMIT);
    consent.pause(true);
    assert!(consent.is_paused());
    assert_eq!(consent.allows(&file), Err(Withheld::Paused));
    consent.pause(false);
    assert_eq!(consent.allows(&file), Ok(()));
}

proptest! {
    #[test]
    fn no_path_panics_and_no_way_of_writing_opens_a_secret(
        names in proptest::collection::vec("[^/\0]{1,6}", 0..4), dots in 0_usize..4, outside in any::<bool>(),
    ) {
        let world = World::new();
        let consent = world.consent(&Rules { git_ignored: true, ..Rules::default() });
        let mut path = if outside { PathBuf::from("/") } else { world.root.clone() };
        path.extend(&names);
        let _ = consent.allows(&path);
        let _ = consent.allows(Path::new(&names.join("/")));
        for _ in 0..dots {
            path.push("x/..");
        }
        path.push("./.env.production");
        prop_assert!(consent.allows(&path).is_err(), "{path:?}");
    }
}
