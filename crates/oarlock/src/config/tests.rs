use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;

/// A place with a user file, a project file and variables.
struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new(user: &str, project: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.toml"), user).unwrap();
        fs::write(dir.path().join(PROJECT_FILE), project).unwrap();
        Self { dir }
    }

    fn read(&self, variables: &[(&str, &str)]) -> anyhow::Result<Config> {
        let find = |name: &str| {
            Ok(variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        Config::layered(
            Some(self.dir.path().join("config.toml")),
            vec![self.dir.path().join(PROJECT_FILE)],
            find,
        )
    }

    fn error(&self, variables: &[(&str, &str)]) -> String {
        let error = self.read(variables).err().expect("an error");
        assert!(matches!(error.downcast_ref::<Failure>(), Some(Failure::Usage(_))), "exit code 2: {error}");
        error.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }
}

fn reasons(config: &Config) -> Vec<String> {
    let text = |ignored: &Ignored| {
        format!(
            "{}:{} {}",
            ignored.place.file.file_name().unwrap().display(),
            ignored.place.line,
            ignored.key
        )
    };
    config.sources.ignored.iter().map(text).collect()
}

#[test]
fn without_files_every_key_has_its_default() {
    let config = Config::layered(None, vec!["/nowhere/.oarlock.toml".into()], |_| Ok(None)).unwrap();
    for key in KEYS {
        assert_eq!((key.origin)(&config), &Origin::Default, "{}", key.name);
    }
    let options = config.options(vec!["/w".into()]).unwrap();
    let plain = Options::default();
    assert_eq!(options.name, plain.name);
    assert_eq!(options.limits, plain.limits);
    assert_eq!(options.keepalive, plain.keepalive);
    assert_eq!(options.diagnostics, plain.diagnostics);
    assert_eq!(options.debounce, plain.debounce);
    assert_eq!(options.listen, plain.listen);
    assert_eq!(options.workspace, [Path::new("/w")]);
}

#[test]
fn each_layer_counts_more_than_the_one_before() {
    let desk = Desk::new("[ide]\nname = 'user'\nport = 1\n", "[ide]\nname = 'project'\n");
    let mut config = desk.read(&[]).unwrap();
    assert_eq!(config.ide_name.value, "project");
    assert_eq!(config.ide_port.value, Some(1));
    let place = Place { file: desk.dir.path().join("config.toml"), line: 3 };
    assert_eq!(config.ide_port.origin, Origin::User(place));
    let place = Place { file: desk.dir.path().join(PROJECT_FILE), line: 2 };
    assert_eq!(config.ide_name.origin, Origin::Project(place));

    let named = desk.read(&[("OARLOCK_IDE_NAME", "variable")]).unwrap();
    assert_eq!(named.ide_name.value, "variable");
    assert_eq!(named.ide_name.origin, Origin::Environment { variable: "OARLOCK_IDE_NAME".into() });

    config.ide_name.override_with(None);
    assert_eq!(config.ide_name.value, "project");
    config.ide_name.override_with(Some("flag".into()));
    assert_eq!((config.ide_name.value.as_str(), &config.ide_name.origin), ("flag", &Origin::Flag));
}

#[test]
fn every_key_can_be_set_by_the_user_and_by_a_variable() {
    let user = r#"
        ide = { name = "n", port = 2, listen = "::1", allow_hosts = ["h"], dialect = "vault", on_diff = "reject",
            lock_dir = "/l", allow_write = true, formatter = ["f", "-x"], keepalive = 0, ping_timeout = 1.5,
            debounce_ms = 7, handshake_timeout = 8, max_message = 9, max_clients = 10, max_pending = 11,
            max_queued = 12, diagnostics_file_ms = 13, diagnostics_all_ms = 14, diagnostics_model_ms = 15 }
        share = { ignore = ["s"], git_ignored = true, max_bytes = 16 }
        claude = { program = "/c" }
    "#;
    let desk = Desk::new(user, "");
    let config = desk.read(&[]).unwrap();
    assert!(config.sources.ignored.is_empty());
    let default = Config::default();
    for key in KEYS {
        assert!(matches!((key.origin)(&config), Origin::User(_)), "{}", key.name);
        assert_ne!((key.show)(&config), (key.show)(&default), "{}", key.name);
        // What is shown can be given back as a variable.
        let shown = (key.show)(&config);
        let text = shown.as_str().map_or(shown.to_string(), str::to_owned);
        let variable = key.variable();
        let again = Desk::new("", "").read(&[(&variable, &text)]).unwrap();
        assert_eq!((key.show)(&again), shown, "{}", key.name);
    }
    let options = config.options(vec!["/w".into()]).unwrap();
    assert_eq!(options.keepalive, None, "0 is never");
    assert_eq!(options.limits.handshake, Duration::from_secs(8));
    assert_eq!((options.limits.message, options.limits.clients), (9, 10));
    assert_eq!((options.limits.pending, options.limits.queued), (11, 12));
    assert_eq!(options.diagnostics.all, Duration::from_millis(14));
    assert!(options.allow_write);
    assert!(matches!(config.on_diff_without_terminal(), OnDiff::Reject));
}

#[test]
fn a_project_may_not_relax_anything() {
    // Every key but those that a project may tighten is refused, whatever it says.
    let project = r#"
        ide = { port = "of any type", listen = "0.0.0.0", allow_hosts = ["h"], dialect = "vault", on_diff = "accept",
            lock_dir = "/l", allow_write = true, formatter = ["f"], keepalive = 0, ping_timeout = 1.5,
            debounce_ms = 7, handshake_timeout = 8, max_message = 9, max_clients = 10, max_pending = 11,
            max_queued = 12, diagnostics_file_ms = 13, diagnostics_all_ms = 14, diagnostics_model_ms = 15 }
        claude = { program = "/c" }
    "#;
    let config = Desk::new("", project).read(&[]).unwrap();
    let refused = KEYS.iter().filter(|key| key.project == Project::Refused);
    assert_eq!(config.sources.ignored.len(), refused.clone().count());
    for key in refused {
        assert_eq!((key.origin)(&config), &Origin::Default, "{}", key.name);
        let ignored = config.sources.ignored.iter().find(|ignored| ignored.key == key.name).unwrap();
        assert!(ignored.to_string().contains("config.toml"), "it says where the key belongs: {ignored}");
    }
}

#[test]
fn a_project_may_tighten() {
    let project = "[share]\nignore = ['a', '!b', 'c']\ngit_ignored = true\nmax_bytes = 10\n";
    let config = Desk::new("[share]\nignore = ['u', '!.env.example']\n", project).read(&[]).unwrap();
    let rules = config.consent_rules();
    assert_eq!(rules.user, ["u", "!.env.example"]);
    assert_eq!(rules.project, ["a", "c"]);
    assert!(rules.git_ignored);
    assert_eq!(rules.limit, 10);
    assert_eq!(reasons(&config), [".oarlock.toml:2 share.ignore: !b"]);
    config.options(vec!["/w".into()]).unwrap();
}

#[test]
fn a_project_may_not_undo_what_the_user_tightened() {
    let user = "[share]\ngit_ignored = true\nmax_bytes = 10\n";
    let desk = Desk::new(user, "[share]\ngit_ignored = false\nmax_bytes = 11\n");
    let config = desk.read(&[]).unwrap();
    assert!(config.share_git_ignored.value);
    assert_eq!(config.share_max_bytes.value, 10);
    assert_eq!(reasons(&config), [".oarlock.toml:2 share.git_ignored", ".oarlock.toml:3 share.max_bytes"]);
    let config = desk.read(&[("OARLOCK_SHARE_GIT_IGNORED", "false")]).unwrap();
    assert!(!config.share_git_ignored.value, "the user's own variable may");
    let config = Desk::new("", "[share]\ngit_ignored = false\n").read(&[]).unwrap();
    assert!(config.sources.ignored.is_empty(), "it says what is so anyway");
}

#[test]
fn unknown_keys_are_passed_over_with_a_hint() {
    let config = Desk::new("top = 1\n[ide]\nprot = 1\n[nowhere]\nx = 1\n", "[share]\nignored = []\n")
        .read(&[])
        .unwrap();
    assert_eq!(
        reasons(&config),
        [
            "config.toml:1 top",
            "config.toml:3 ide.prot",
            "config.toml:5 nowhere.x",
            ".oarlock.toml:2 share.ignored"
        ]
    );
    assert!(config.sources.ignored[1].why.contains("did you mean `ide.port`?"));
    assert!(!config.sources.ignored[2].why.contains("did you mean"));
    let config = Desk::new("", "\"a\\u001b[2J\" = 1\n").read(&[]).unwrap();
    assert!(!config.sources.ignored[0].to_string().contains('\u{1b}'), "it does not steer the terminal");
}

#[test]
fn a_wrong_type_says_file_line_key_and_what_is_expected() {
    let error = Desk::new("\n[ide]\nport = 'x'\n", "").error(&[]);
    assert_eq!(
        error,
        "config.toml:3: `ide.port` is wrong: expected a port, from 1 to 65535, or 0 for any free one, found string \"x\""
    );
    let error = Desk::new("", "[share]\nignore = '*.key'\n").error(&[]);
    assert!(
        error.starts_with(".oarlock.toml:2: `share.ignore` is wrong: expected a list of texts"),
        "{error}"
    );
    let error = Desk::new("[ide]\nname = \"a\\u001b[2J\"\n", "").error(&[]);
    assert!(!error.contains('\u{1b}'), "{error:?}");
    let error = Desk::new("", "").error(&[("OARLOCK_IDE_DIALECT", "emacs")]);
    assert_eq!(error, "OARLOCK_IDE_DIALECT=emacs is wrong: expected \"vscode\", \"jetbrains\" or \"vault\"");
    let error = Desk::new("", "[ide\n").error(&[]);
    assert!(error.starts_with(".oarlock.toml:1: not TOML"), "{error}");
}

#[test]
fn a_rule_that_cannot_be_used_is_an_error() {
    let config = Desk::new("[share]\nignore = ['a{b']\n", "").read(&[]).unwrap();
    let error = config.options(vec!["/w".into()]).err().expect("an error");
    assert!(error.to_string().contains("a{b"), "{error}");
}

#[test]
fn the_table_is_sound() {
    for (index, key) in KEYS.iter().enumerate() {
        assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{} is twice", key.name);
        assert_eq!(key.name.split('.').count(), 2, "{}", key.name);
        assert!(!key.help.is_empty() && !key.help.ends_with('.') && !key.help.contains('\n'), "{}", key.help);
    }
}

#[test]
fn every_folder_and_what_is_above_it_in_its_repository_adds_its_rules() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let write = |folder: &str, rule: &str| {
        fs::create_dir_all(root.join(folder)).unwrap();
        let text = format!("[share]\nignore = ['{rule}']\n[ide]\nname = '{rule}'\n");
        fs::write(root.join(folder).join(PROJECT_FILE), text).unwrap();
    };
    write("", "outside");
    write("repo", "repo");
    fs::create_dir(root.join("repo/.git")).unwrap();
    write("repo/part", "part");
    write("other", "other");
    let files = project_files(&[root.join("repo/part"), root.join("other")]);
    let config = Config::layered(None, files, |_| Ok(None)).unwrap();
    let mut rules = config.consent_rules().project;
    rules.sort();
    assert_eq!(rules, ["other", "part", "repo"]);
    assert_eq!(config.ide_name.value, "part");
}
