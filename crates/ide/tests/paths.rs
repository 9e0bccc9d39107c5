//! The path guard against files, links and devices, and against whatever a client may think of.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use oarlock_ide::{
    Error,
    paths::{
        Refusal::{self, *},
        Rooted, Workspace,
    },
};
use proptest::prelude::*;

/// `root` is the workspace, `outside` beside it must never be touched.
struct World {
    _dir: tempfile::TempDir,
    base: PathBuf,
    workspace: Workspace,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(dir.path()).unwrap();
        for sub in ["root/src", "root/~dir", "rootless", "outside", "second/lib"] {
            fs::create_dir_all(base.join(sub)).unwrap();
        }
        for file in ["root/a.txt", "root/src/Main.rs", "outside/secret.txt", "rootless/x", "second/lib/b.txt"]
        {
            fs::write(base.join(file), file).unwrap();
        }
        let root = base.join("root");
        symlink("a.txt", root.join("inner")).unwrap();
        symlink("src", root.join("dir")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink(base.join("outside/secret.txt"), root.join("leak")).unwrap();
        symlink(base.join("outside/new.txt"), root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(&root, base.join("way-in")).unwrap();
        let workspace = Workspace::new(&[root, base.join("second")]).unwrap();
        Self { _dir: dir, base, workspace }
    }

    fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    fn read(&self, path: &str) -> Result<PathBuf, Option<Refusal>> {
        self.workspace.resolve_read(Path::new(path), Rooted::No).map_err(|error| refusal(&error))
    }

    fn write(&self, path: &str) -> Result<PathBuf, Option<Refusal>> {
        self.workspace.resolve_write(Path::new(path), Rooted::No).map_err(|error| refusal(&error))
    }

    fn outside(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        for dir in ["outside", "rootless", "."] {
            for entry in fs::read_dir(self.base.join(dir)).unwrap() {
                let path = entry.unwrap().path();
                files.push((path.display().to_string(), fs::read_to_string(&path).unwrap_or_default()));
            }
        }
        files.sort();
        files
    }
}

fn refusal(error: &Error) -> Option<Refusal> {
    match error {
        Error::Refused { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[test]
fn files_inside_are_found_by_every_honest_path() {
    let world = World::new();
    let root = world.root();
    for (path, real) in [
        ("a.txt", "root/a.txt"),
        ("./a.txt", "root/a.txt"),
        ("src//./Main.rs", "root/src/Main.rs"),
        ("inner", "root/a.txt"),
        ("dir/Main.rs", "root/src/Main.rs"),
        ("lib/b.txt", "second/lib/b.txt"),
    ] {
        assert_eq!(world.read(path), Ok(world.base.join(real)), "{path}");
    }
    assert_eq!(world.read(root.join("a.txt").to_str().unwrap()), Ok(root.join("a.txt")));
    assert_eq!(world.read(world.base.join("way-in/a.txt").to_str().unwrap()), Ok(root.join("a.txt")));
    assert_eq!(world.write("src/new/deep.rs"), Ok(root.join("src/new/deep.rs")));
    assert_eq!(world.write("inner"), Ok(root.join("a.txt")));
    assert_eq!(world.write("./~x"), Ok(root.join("~x")));
    assert_eq!(world.write("src/~x"), Ok(root.join("src/~x")));
}

#[test]
fn everything_else_is_refused_with_its_reason() {
    let world = World::new();
    let base = world.base.to_str().unwrap().to_owned();
    for (path, reason) in [
        ("", Empty),
        ("a\0b", Character),
        ("..", Parent),
        ("src/../a.txt", Parent),
        ("../outside/secret.txt", Parent),
        ("~", Home),
        ("~/a.txt", Home),
        ("~root/a.txt", Home),
        ("/etc/passwd", Outside),
        (&format!("{base}/outside/secret.txt"), Outside),
        (&format!("{base}/rootless/x"), Outside),
        (&format!("{base}/root/../outside/secret.txt"), Parent),
        ("out/secret.txt", Outside),
        ("out/new.txt", Outside),
        ("leak", Outside),
        ("leak/", Outside),
        ("leak/.", Outside),
        ("leak/x", Outside),
        ("dangling/.", DanglingLink),
        ("loop/x", Unreachable),
        ("dangling", DanglingLink),
        ("loop", DanglingLink),
        ("src", Directory),
        (".", Directory),
    ] {
        assert_eq!(world.read(path), Err(Some(reason)), "reading {path:?}");
        assert_eq!(world.write(path), Err(Some(reason)), "writing {path:?}");
    }
    assert_eq!(world.read("missing.txt"), Err(None), "not there is not refused");
    assert_eq!(world.write("a.txt/b"), Err(None), "a file is no directory");
    let text = world.workspace.resolve_read(Path::new("../x"), Rooted::No).unwrap_err().to_string();
    assert_eq!(text, "refused path ../x: `..` is not allowed; give the path from the workspace's root");
}

#[test]
fn devices_pipes_and_sockets_are_refused() {
    let world = World::new();
    let root = world.root();
    #[cfg(target_os = "linux")]
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let special: &[&str] = if cfg!(target_os = "linux") { &["pipe", "socket"] } else { &["socket"] };
    for name in special {
        assert_eq!(world.read(name), Err(Some(Special)));
        assert_eq!(world.write(name), Err(Some(Special)));
    }
    let dev = Workspace::new(&["/dev".into()]).unwrap();
    let error = dev.resolve_read(Path::new("null"), Rooted::No).unwrap_err();
    assert_eq!(refusal(&error), Some(Special));
}

#[test]
fn in_a_vault_a_leading_slash_is_the_workspace() {
    let world = World::new();
    let vault = |path: &str| world.workspace.resolve_read(Path::new(path), Rooted::Yes);
    assert_eq!(vault("/a.txt").unwrap(), world.root().join("a.txt"));
    assert_eq!(vault("//src/Main.rs").unwrap(), world.root().join("src/Main.rs"));
    for (path, reason) in [("/../a.txt", Parent), ("/~/a.txt", Home), ("/leak", Outside), ("/", Directory)] {
        assert_eq!(refusal(&vault(path).unwrap_err()), Some(reason), "{path}");
    }
    assert_eq!(refusal(&vault("/etc/passwd").unwrap_err()), None, "there is no etc in the workspace");
}

#[test]
fn names_that_only_look_new_are_refused_for_writing() {
    let world = World::new();
    fs::write(world.root().join("caf\u{e9}"), "composed").unwrap();
    fs::write(world.root().join("straße"), "").unwrap();
    for path in [
        "A.TXT",
        "SRC/new.rs",
        "src/main.rs",
        "cafe\u{301}",
        "CAFÉ",
        "STRASSE",
        "dir/main.RS",
        "Dir/x",
        "DANGLING",
    ] {
        assert_eq!(world.write(path), Err(Some(Alike)), "{path}");
    }
    let absolute = world.base.join("way-in/A.txt");
    assert_eq!(world.write(absolute.to_str().unwrap()), Err(Some(Alike)));
    for path in ["caf\u{e9}", "cafe", "src/Main.rs2", "src/deeper/Main.rs"] {
        assert!(world.write(path).is_ok(), "{path}");
    }
    // Where both exist, each is itself.
    fs::write(world.root().join("A.txt"), "").unwrap();
    assert!(world.write("a.txt").is_ok() && world.write("A.txt").is_ok());
}

#[test]
fn writing_keeps_the_mode_and_makes_directories() {
    let world = World::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let save = |path: &str, text: &str| {
        let real = world.write(path).unwrap();
        world.workspace.write_atomic(&real, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), text);
        real
    };
    let script = world.root().join("run.sh");
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    assert_eq!(mode(&save("run.sh", "new")), 0o751);

    let plain = world.root().join("plain");
    fs::File::create(&plain).unwrap();
    assert_eq!(mode(&save("new/deep/file", "x")), mode(&plain) & 0o644, "a new file is as usual");

    assert_eq!(save("inner", "through the link"), world.root().join("a.txt"));
    assert!(world.root().join("inner").symlink_metadata().unwrap().is_symlink());

    fs::set_permissions(&script, fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(world.write("run.sh"), Err(Some(ReadOnly)));
    assert!(world.workspace.write_atomic(&script, b"x").is_err());
}

#[test]
fn a_reader_never_sees_a_part() {
    let world = World::new();
    let path = world.write("big").unwrap();
    let (done, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Relaxed) {
                if let Ok(text) = fs::read(&path) {
                    assert_eq!(text.len(), 200_000);
                    assert!(text.iter().all(|byte| *byte == text[0]));
                    seen.fetch_add(1, Relaxed);
                }
            }
        });
        for byte in 0..40 {
            world.workspace.write_atomic(&path, &vec![byte; 200_000]).unwrap();
        }
        while seen.load(Relaxed) == 0 && !reader.is_finished() {
            std::thread::yield_now();
        }
        done.store(true, Relaxed);
        reader.join().unwrap();
    });
    let leftovers = fs::read_dir(world.root())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("oarlock"));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn a_link_planted_after_the_check_is_not_followed() {
    let world = World::new();
    let before = world.outside();
    let file = world.write("src/new.rs").unwrap();
    symlink(world.base.join("outside/secret.txt"), &file).unwrap();
    assert!(world.workspace.write_atomic(&file, b"x").is_err());

    let file = world.write("fresh/new.rs").unwrap();
    symlink(world.base.join("outside"), world.root().join("fresh")).unwrap();
    assert!(world.workspace.write_atomic(&file, b"x").is_err());
    assert!(world.workspace.write_atomic(&world.base.join("outside/y"), b"x").is_err());
    assert_eq!(world.outside(), before);
}

/// Names that are in the world, names that are not, and names that mean mischief.
fn soup() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => proptest::sample::select(vec![
            "a.txt", "src", "Main.rs", "inner", "dir", "out", "leak", "dangling", "loop", "secret.txt", "lib", "b.txt",
            "root", "outside", "second", "rootless", "way-in", "new.txt",
        ]).prop_map(str::to_owned),
        3 => proptest::sample::select(vec!["..", ".", "", "~", "~root", "...", "..\\", "\\", "C:", "\0", " ", "A.TXT", "é"])
            .prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    proptest::collection::vec(name, 0..6).prop_map(|names| names.join("/"))
}

/// The soup as a relative path, from the file system's root, from above the workspace, and from inside it.
fn served(world: &World, soup: &str, start: u8) -> PathBuf {
    let base = world.base.to_str().unwrap();
    PathBuf::from(match start {
        0 => soup.to_owned(),
        1 => format!("/{soup}"),
        2 => format!("{base}/{soup}"),
        _ => format!("{base}/root/{soup}"),
    })
}

fn rooted() -> impl Strategy<Value = Rooted> {
    proptest::sample::select(vec![Rooted::No, Rooted::Yes])
}

fn is_inside(world: &World, real: &Path) -> bool {
    world.workspace.roots().iter().any(|root| real.starts_with(root))
}

#[test]
fn whatever_is_asked_for_the_answer_is_inside() {
    let world = World::new();
    proptest!(ProptestConfig::with_cases(2000), |(soup in soup(), start in 0_u8..4, rooted in rooted())| {
        let path = served(&world, &soup, start);
        if let Ok(real) = world.workspace.resolve_read(&path, rooted) {
            prop_assert!(is_inside(&world, &real), "{path:?} gave {real:?}");
            prop_assert_eq!(&dunce::canonicalize(&real).unwrap(), &real);
            prop_assert!(real.is_file());
        }
        if let Ok(real) = world.workspace.resolve_write(&path, rooted) {
            prop_assert!(is_inside(&world, &real), "{path:?} gave {real:?}");
        }
    });
}

#[test]
fn whatever_is_written_nothing_outside_changes() {
    proptest!(ProptestConfig::with_cases(150), |(soup in soup(), start in 0_u8..4, rooted in rooted())| {
        let world = World::new();
        let before = world.outside();
        if let Ok(real) = world.workspace.resolve_write(&served(&world, &soup, start), rooted)
            && world.workspace.write_atomic(&real, b"written").is_ok()
        {
            prop_assert_eq!(&dunce::canonicalize(&real).unwrap(), &real);
            prop_assert_eq!(fs::read(&real).unwrap(), b"written");
        }
        // The path as it is, without the check before it, must not get out either.
        let _ = world.workspace.write_atomic(&served(&world, &soup, start.max(2)), b"written");
        prop_assert_eq!(world.outside(), before, "{:?} touched something outside", soup);
    });
}
