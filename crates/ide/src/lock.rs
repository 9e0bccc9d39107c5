//! The lock file by which a CLI finds an engine: `<port>.lock`, holding who listens there and the token to get in.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Error, Result,
    discover::Environment,
    private, process,
    token::{self, Token},
};

/// The one transport that an engine of ours speaks, as the lock names it.
pub const TRANSPORT: &str = "ws";

/// What a lock file says. Reading is liberal, because other programs write these files too: unknown fields are passed
/// over, and a field of the wrong type counts as absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockFile {
    /// The engine's process.
    #[serde(default, deserialize_with = "process_id")]
    pub pid: Option<u32>,
    /// The folders that the engine is for; the CLI compares them as text, so they must be canonical.
    #[serde(default, deserialize_with = "texts")]
    pub workspace_folders: Vec<String>,
    /// The name that the CLI shows.
    #[serde(default, deserialize_with = "if_fitting")]
    pub ide_name: Option<String>,
    /// How to talk to the engine; anything but `ws` makes the CLI ask for server-sent events.
    #[serde(default, deserialize_with = "if_fitting")]
    pub transport: Option<String>,
    /// Whether the engine runs on Windows (a CLI in WSL then translates paths).
    #[serde(default, deserialize_with = "if_fitting")]
    pub running_in_windows: bool,
    /// The secret that a client must send.
    #[serde(
        default,
        serialize_with = "token::write_option",
        deserialize_with = "secret",
        skip_serializing_if = "Option::is_none"
    )]
    pub auth_token: Option<Token>,
    /// Our mark; clients pass over it.
    #[serde(default, deserialize_with = "if_fitting", skip_serializing_if = "Option::is_none")]
    pub oarlock: Option<Mark>,
}

/// The field that says that a lock is ours, so that we clear away our own and nobody else's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The version of Oarlock that wrote the lock.
    pub version: String,
}

impl LockFile {
    /// What an engine in this process writes. `folders` come from [`canonical_folders`].
    #[must_use]
    pub fn new(name: &str, folders: &[PathBuf], token: Token) -> Self {
        Self {
            pid: Some(std::process::id()),
            workspace_folders: folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect(),
            ide_name: Some(name.to_owned()),
            transport: Some(TRANSPORT.to_owned()),
            running_in_windows: cfg!(windows),
            auth_token: Some(token),
            oarlock: Some(Mark { version: env!("CARGO_PKG_VERSION").to_owned() }),
        }
    }

    /// Reads the contents of a lock file; `None` if they are not a JSON object.
    #[must_use]
    pub fn parse(contents: &[u8]) -> Option<Self> {
        // By way of a `Value`, so that a key that occurs twice is no error; the last one counts, as for the CLI.
        let value: Value = serde_json::from_slice(contents).ok()?;
        value.is_object().then(|| serde_json::from_value(value).ok())?
    }

    /// Whether both were written by the same engine.
    fn is_same_engine(&self, other: &Self) -> bool {
        let same_token = match (&self.auth_token, &other.auth_token) {
            (Some(ours), Some(theirs)) => ours.matches(theirs.reveal().as_bytes()),
            (None, None) => true,
            _ => false,
        };
        self.pid == other.pid && same_token
    }
}

/// A lock file of ours. It is removed when this value is dropped, so also when a panic unwinds.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    contents: LockFile,
}

impl Lock {
    /// Writes `<port>.lock` into `dir` (mode 0700, made if need be): mode 0600, at once as a whole. Call it when the
    /// port listens already: a CLI may connect the moment the file is there.
    pub fn create(dir: &Path, port: u16, contents: &LockFile) -> Result<Self> {
        private::create_dir(dir)?;
        let path = dir.join(format!("{port}.lock"));
        let text = serde_json::to_vec(contents)
            .map_err(|error| Error::file("write lock file", &path)(std::io::Error::other(error)))?;
        private::replace(&path, &text)?;
        Ok(Self { path, contents: contents.clone() })
    }

    /// Where the lock file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the lock file, unless it is already gone or somebody else's by now.
    pub fn withdraw(&self) -> Result<()> {
        let ours = private::read(&self.path)
            .ok()
            .and_then(|(contents, _)| LockFile::parse(&contents))
            .is_some_and(|found| found.is_same_engine(&self.contents));
        if !ours {
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(Error::file("remove lock file", &self.path))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.withdraw() {
            tracing::warn!(%error, "a lock file is left behind");
        }
    }
}

/// The directory for our lock files: the one that was asked for, else `$CLAUDE_CONFIG_DIR/ide`, else `~/.claude/ide`.
pub fn lock_dir(explicit: Option<&Path>, environment: &Environment) -> Result<PathBuf> {
    if let Some(dir) = explicit {
        return Ok(dir.to_owned());
    }
    environment.claude_lock_dir().ok_or(Error::NoHome {
        wanted: "lock directory",
        remedy: "HOME or CLAUDE_CONFIG_DIR, or use --lock-dir",
    })
}

/// Removes the locks of our own dead engines, and returns their paths. Locks of other programs, locks that cannot be
/// read and locks of living processes stay.
pub fn sweep(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let dead_and_ours = |contents: &[u8], _| {
        let lock = LockFile::parse(contents)?;
        (lock.oarlock.is_some() && !process::is_alive(lock.pid?)).then_some(())
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| port_of(path).is_some())
        .filter(|path| private::take(path, dead_and_ours).is_some())
        .collect()
}

/// The port that a lock file's name gives, if its name is `<port>.lock`.
pub(crate) fn port_of(path: &Path) -> Option<u16> {
    let name = path.file_name()?.to_str()?.strip_suffix(".lock")?;
    if !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    name.parse().ok().filter(|port| *port != 0)
}

/// The real paths of workspace folders, each once, in the given order. The CLI compares them with its own real
/// directory, so a symbolic link would never match, and `/` matches nothing or everything, depending on its version.
pub fn canonical_folders(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut real = Vec::new();
    for folder in folders {
        let refuse = |why: &str| Error::Folder { path: folder.clone(), why: why.to_owned() };
        let found = dunce::canonicalize(folder)
            .map_err(|error| refuse(&format!("{error}; name an existing directory")))?;
        if !found.is_dir() {
            return Err(refuse("not a directory; name the directory that holds it"));
        }
        if found.parent().is_none() {
            return Err(refuse("the root of the file system is too wide; name a project directory"));
        }
        if found.to_str().is_none() {
            return Err(refuse("its name is not UTF-8, and a lock file cannot hold it; rename it"));
        }
        if !real.contains(&found) {
            real.push(found);
        }
    }
    if real.is_empty() { Err(Error::NoFolders) } else { Ok(real) }
}

fn if_fitting<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// A number, or a number as text, which the CLI takes as well.
fn process_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    Ok(number.and_then(|number| number.try_into().ok()).filter(|pid| *pid != 0))
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = match Value::deserialize(deserializer)? {
        Value::Array(entries) => entries,
        // The CLI takes a single text for a list of one.
        other => vec![other],
    };
    Ok(entries.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Token>, D::Error> {
    Ok(if_fitting::<D, Option<String>>(deserializer)?.map(Token::from_text))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    use super::*;

    fn ours(dir: &Path) -> LockFile {
        LockFile::new("Test", &[dir.to_owned()], Token::random().unwrap())
    }

    /// A process id that was given out and is free again.
    fn dead_pid() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn ide_lock_02_the_file_holds_what_the_cli_needs() {
        let dir = tempfile::tempdir().unwrap();
        let contents = ours(dir.path());
        let lock = Lock::create(&dir.path().join("ide"), 4711, &contents).unwrap();
        assert_eq!(lock.path(), dir.path().join("ide/4711.lock"));
        let value: Value = serde_json::from_slice(&fs::read(lock.path()).unwrap()).unwrap();
        assert_eq!(value["transport"], "ws");
        assert_eq!(value["pid"], std::process::id());
        assert_eq!(value["ideName"], "Test");
        assert_eq!(value["runningInWindows"], cfg!(windows));
        assert_eq!(value["workspaceFolders"][0], dir.path().to_str().unwrap());
        assert_eq!(value["authToken"], contents.auth_token.as_ref().unwrap().reveal());
        assert_eq!(value["oarlock"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[cfg(unix)]
    #[test]
    fn ide_lock_04_only_the_owner_may_look() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".claude/ide");
        let lock = Lock::create(&dir, 1, &ours(home.path())).unwrap();
        assert_eq!((mode(&dir), mode(lock.path())), (0o700, 0o600));
        assert_ne!(mode(&home.path().join(".claude")), 0o700, "the parent is not ours to close");

        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let _second = Lock::create(&dir, 2, &ours(home.path())).unwrap();
        assert_eq!(mode(&dir), 0o700, "an open directory is closed");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o500)).unwrap();
        private::create_dir(&dir).unwrap();
        assert_eq!(mode(&dir), 0o500, "a closed one is not opened");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn ide_lock_04_reader_never_sees_a_partial_file() {
        let dir = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> =
            (0..500).map(|n| PathBuf::from(format!("/a/folder/with/a/number/{n}"))).collect();
        let contents = || LockFile::new("x", &folders, Token::random().unwrap());
        let (done, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !done.load(Relaxed) {
                    for entry in fs::read_dir(dir.path()).unwrap() {
                        let path = entry.unwrap().path();
                        if path.extension().is_none_or(|end| end != "lock") {
                            continue;
                        }
                        assert_eq!(port_of(&path), Some(4711), "no other name ends in .lock");
                        // The file may be gone by now; what can be read must be whole.
                        if let Ok(text) = fs::read(&path) {
                            let lock = LockFile::parse(&text).expect("a whole file");
                            assert_eq!(lock.workspace_folders.len(), 500);
                            seen.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
            for _ in 0..300 {
                Lock::create(dir.path(), 4711, &contents()).unwrap().withdraw().unwrap();
            }
            let _last = Lock::create(dir.path(), 4711, &contents()).unwrap();
            while seen.load(Relaxed) == 0 && !reader.is_finished() {
                std::thread::yield_now();
            }
            done.store(true, Relaxed);
            reader.join().unwrap();
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "no temporary file is left");
    }

    #[test]
    fn ide_lock_05_dropping_or_panicking_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::create(dir.path(), 4711, &ours(dir.path())).unwrap();
        let path = lock.path().to_owned();
        assert!(path.exists());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _lock = lock;
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        assert!(!path.exists());
    }

    #[test]
    fn ide_lock_07_a_lock_that_is_no_longer_ours_stays() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::create(dir.path(), 4711, &ours(dir.path())).unwrap();
        let second = Lock::create(dir.path(), 4711, &ours(dir.path())).unwrap();
        first.withdraw().unwrap();
        assert!(second.path().exists());
        fs::write(second.path(), "somebody else's").unwrap();
        let path = second.path().to_owned();
        drop(second);
        assert_eq!(fs::read_to_string(path).unwrap(), "somebody else's");
    }

    #[test]
    fn ide_lock_05_07_sweep_takes_only_our_own_dead_ones() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, contents: &str| fs::write(dir.path().join(name), contents).unwrap();
        let dead = dead_pid();
        write("1.lock", &format!(r#"{{"pid":{dead},"oarlock":{{"version":"0.0.1"}},"new":[1]}}"#));
        write("2.lock", &format!(r#"{{"pid":{dead}}}"#));
        write("3.lock", &format!(r#"{{"pid":{},"oarlock":{{"version":"0.0.1"}}}}"#, std::process::id()));
        write("4.lock", "{broken");
        write("5.lock", r#"{"oarlock":{"version":"0.0.1"}}"#);
        write("abc.lock", &format!(r#"{{"pid":{dead},"oarlock":{{"version":"0.0.1"}}}}"#));
        assert_eq!(sweep(dir.path()), [dir.path().join("1.lock")]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
        assert!(sweep(&dir.path().join("missing")).is_empty());
    }

    #[test]
    fn reading_is_liberal() {
        let lock = LockFile::parse(
            r#"{"pid":"x","pid":"7","workspaceFolders":["/a",1,null],"ideName":null,"transport":5,"x":{},"authToken":"t"}"#
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(lock.pid, Some(7));
        assert_eq!(lock.workspace_folders, ["/a"]);
        assert_eq!((lock.ide_name, lock.transport, lock.oarlock), (None, None, None));
        assert!(lock.auth_token.unwrap().matches(b"t"));
        for not_a_lock in ["", "[]", "7", "null", "/a/b", "{"] {
            assert!(LockFile::parse(not_a_lock.as_bytes()).is_none(), "{not_a_lock}");
        }
        assert!(LockFile::parse(b"{}").unwrap().workspace_folders.is_empty());
    }

    #[test]
    fn ide_auth_05_no_token_in_the_debug_text() {
        let dir = tempfile::tempdir().unwrap();
        let contents = ours(dir.path());
        let secret = contents.auth_token.clone().unwrap();
        let lock = Lock::create(dir.path(), 4711, &contents).unwrap();
        assert!(!format!("{contents:?} {lock:#?}").contains(secret.reveal()));
    }

    #[test]
    fn only_port_numbers_are_names() {
        for (name, port) in [
            ("1.lock", Some(1)),
            ("65535.lock", Some(65535)),
            ("65536.lock", None),
            ("0.lock", None),
            ("+5.lock", None),
            (".lock", None),
            ("abc.lock", None),
            ("5.json", None),
        ] {
            assert_eq!(port_of(Path::new("/x").join(name).as_path()), port, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn ide_lock_03_folders_are_real_and_each_once() {
        let dir = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(dir.path()).unwrap();
        fs::create_dir(base.join("a")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        std::os::unix::fs::symlink(base.join("a"), base.join("link")).unwrap();
        let folders =
            canonical_folders(&[base.join("link"), base.join("a/"), base.join("a/../a"), base.clone()]);
        assert_eq!(folders.unwrap(), [base.join("a"), base.clone()]);
        for wrong in ["/", "missing", "file"] {
            assert!(canonical_folders(&[base.join(wrong)]).is_err(), "{wrong}");
        }
        assert!(matches!(canonical_folders(&[]), Err(Error::NoFolders)));
    }

    #[test]
    fn the_directory_follows_flag_variable_home() {
        let mut environment = Environment { home: Some("/home/u".into()), ..Environment::default() };
        assert_eq!(lock_dir(None, &environment).unwrap(), Path::new("/home/u/.claude/ide"));
        environment.claude_config_dir = Some("/c".into());
        assert_eq!(lock_dir(None, &environment).unwrap(), Path::new("/c/ide"));
        assert_eq!(lock_dir(Some(Path::new("/d")), &environment).unwrap(), Path::new("/d"));
        assert!(lock_dir(None, &Environment::default()).is_err());
    }
}
