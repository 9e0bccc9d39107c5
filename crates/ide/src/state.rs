//! What is remembered of each engine: its port and token, so that a quick restart finds its clients again, and its
//! control token, by which our own commands reach it.
//!
//! A CLI that lost its engine tries the same port with the same token again for about 15 seconds; one that gave up
//! only takes a changed port or token. So both are kept for that long and not longer.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    discover::Environment,
    private, process,
    token::{self, Token},
};

/// How long after an engine's end its port and token are taken again.
pub const MEMORY: Duration = Duration::from_secs(15);

/// How often an engine should call [`Record::touch`]. After a crash nothing else tells when it ended.
pub const TOUCH_INTERVAL: Duration = Duration::from_secs(5);

/// The version of the record's form. Records of another form are left alone.
const VERSION: u32 = 1;

/// What an engine tells about itself.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its canonical workspace folders.
    pub workspace: Vec<PathBuf>,
    /// The address that it listens on.
    pub address: IpAddr,
    /// The port that it listens on.
    pub port: u16,
    /// The token that is in its lock file.
    pub token: Token,
    /// The second token, which only our own commands know.
    pub control: Token,
    /// Its lock file.
    pub lock: PathBuf,
}

/// What a new engine takes over from the last one of its workspace.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The port to listen on. Somebody else may have it by now; then take another port and a new token.
    pub port: u16,
    /// The token that waiting clients will send.
    pub token: Token,
}

/// An engine that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Where to reach it: the address that it listens on, or loopback if it listens on all.
    pub address: IpAddr,
    /// The port that it listens on.
    pub port: u16,
    /// Its process.
    pub pid: u32,
    /// Its canonical workspace folders.
    pub workspace: Vec<PathBuf>,
    /// The token for our own commands.
    pub control: Token,
    /// Its lock file.
    pub lock: PathBuf,
}

impl Running {
    /// Where to connect to it.
    #[must_use]
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// One engine's record, as it is in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Contents {
    version: u32,
    workspace: Vec<PathBuf>,
    #[serde(default = "loopback")]
    address: IpAddr,
    port: u16,
    pid: u32,
    #[serde(serialize_with = "token::write", deserialize_with = "token::read")]
    token: Token,
    #[serde(serialize_with = "token::write", deserialize_with = "token::read")]
    control: Token,
    lock: PathBuf,
    /// When the engine ended, in milliseconds of Unix time; null while it runs, and for ever after a crash.
    ended: Option<u64>,
}

fn loopback() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

impl Contents {
    /// An engine that listens everywhere is reached by loopback.
    fn reachable(&self) -> IpAddr {
        if self.address.is_unspecified() { loopback() } else { self.address }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().filter(|contents: &Self| contents.version == VERSION)
    }

    /// Whether the engine is over: it said so, or its process is gone. An engine that said so may still be in a living
    /// process, which is on its way out or has other things to do.
    fn is_over(&self) -> bool {
        self.ended.is_some() || !process::is_alive(self.pid)
    }

    fn end(&self, changed: SystemTime) -> SystemTime {
        self.ended.map_or(changed, |ended| UNIX_EPOCH + Duration::from_millis(ended))
    }
}

/// The records of this user's engines: one file each, mode 0600, in a directory of mode 0700.
#[derive(Clone, Debug)]
pub struct Engines {
    dir: PathBuf,
}

impl Engines {
    /// Opens the directory of records, and makes it if it is not there.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        private::create_dir(&dir)?;
        Ok(Self { dir })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes port and token of the engine of this workspace that ended last, if that is less than 15 seconds ago.
    /// Forgets every record whose engine is over for longer.
    ///
    /// Taking removes the record, and only one process can remove it (`private::take` says how): of two engines that start
    /// at once in one workspace, the second gets the record before that, or none.
    #[must_use]
    pub fn resume(&self, folders: &[PathBuf], now: SystemTime) -> Option<Resumed> {
        let workspace = sorted(folders);
        let mut candidates = Vec::new();
        for path in self.files() {
            let Ok((text, changed)) = private::read(&path) else { continue };
            let Some(contents) = Contents::parse(&text) else { continue };
            if !contents.is_over() {
                continue;
            }
            let end = contents.end(changed);
            if distance(now, end) >= MEMORY {
                let too_old = |text: &[u8], changed| {
                    let contents = Contents::parse(text)?;
                    (contents.is_over() && distance(now, contents.end(changed)) >= MEMORY).then_some(())
                };
                let _ = private::take(&path, too_old);
            } else if contents.workspace == workspace {
                candidates.push((end, path));
            }
        }
        candidates.sort();
        let over = |text: &[u8], _| Contents::parse(text).filter(Contents::is_over);
        let contents = candidates.iter().rev().find_map(|(_, path)| private::take(path, over))?;
        Some(Resumed { port: contents.port, token: contents.token })
    }

    /// Writes the record of an engine of this process. Keep the value for as long as the engine runs.
    pub fn record(&self, engine: Engine) -> Result<Record> {
        let workspace = sorted(&engine.workspace);
        let path = self.dir.join(format!("{}-{}.json", fingerprint(&workspace), engine.port));
        let contents = Contents {
            version: VERSION,
            workspace,
            address: engine.address,
            port: engine.port,
            pid: std::process::id(),
            token: engine.token,
            control: engine.control,
            lock: engine.lock,
            ended: None,
        };
        let record = Record { path, contents };
        record.write()?;
        Ok(record)
    }

    /// The engines that run now, by port. After a crash and a reuse of the process id one of them may be a ghost, which
    /// shows when nothing answers at its port.
    #[must_use]
    pub fn running(&self) -> Vec<Running> {
        let mut running: Vec<Running> = self
            .files()
            .filter_map(|path| Contents::parse(&private::read(&path).ok()?.0))
            .filter(|contents| !contents.is_over())
            .map(|contents| Running {
                address: contents.reachable(),
                port: contents.port,
                pid: contents.pid,
                workspace: contents.workspace,
                control: contents.control,
                lock: contents.lock,
            })
            .collect();
        running.sort_by_key(|engine| engine.port);
        running
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten();
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
    }
}

/// The record of a running engine. Dropping it notes the engine's end.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    contents: Contents,
}

impl Record {
    /// Where the record is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the engine still runs; call it every [`TOUCH_INTERVAL`]. A record that somebody deleted is written
    /// again.
    pub fn touch(&self) -> Result<()> {
        let touched = fs::File::options()
            .write(true)
            .open(&self.path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        match touched {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.path.parent().map_or(Ok(()), private::create_dir)?;
                self.write()
            }
            other => other.map_err(Error::file("refresh engine record", &self.path)),
        }
    }

    /// Notes that the engine has ended, now. Call it when the port is free again.
    pub fn end(mut self) -> Result<()> {
        self.note_end()
    }

    fn note_end(&mut self) -> Result<()> {
        if self.contents.ended.is_some() {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.contents.ended = Some(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_vec(&self.contents)
            .map_err(|error| Error::file("write engine record", &self.path)(std::io::Error::other(error)))?;
        private::replace(&self.path, &text)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Err(error) = self.note_end() {
            tracing::warn!(%error, "an engine's end is not noted");
        }
    }
}

/// The directory of records: `$XDG_STATE_HOME/oarlock/engines`, else `~/.local/state/oarlock/engines`; on Windows the
/// user's local application data.
pub fn engines_dir(environment: &Environment) -> Result<PathBuf> {
    let base = if cfg!(windows) {
        use etcetera::BaseStrategy as _;
        etcetera::choose_base_strategy().ok().map(|strategy| strategy.cache_dir())
    } else {
        let home = || environment.home.as_ref().map(|home| home.join(".local/state"));
        environment.xdg_state_home.clone().or_else(home)
    };
    let base = base.ok_or(Error::NoHome { wanted: "state directory", remedy: "HOME or XDG_STATE_HOME" })?;
    Ok(base.join("oarlock").join("engines"))
}

/// The order of folders makes no other workspace.
fn sorted(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = folders.to_vec();
    folders.sort();
    folders
}

/// Sixteen hexadecimal digits that stand for a workspace in a file name.
fn fingerprint(workspace: &[PathBuf]) -> String {
    let mut hash = Sha256::new();
    for folder in workspace {
        hash.update(folder.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The time between two moments. A clock that was set back makes an end lie in the future; that counts the same.
fn distance(a: SystemTime, b: SystemTime) -> Duration {
    a.duration_since(b).unwrap_or_else(|error| error.duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _dir: tempfile::TempDir,
        engines: Engines,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let engines = Engines::open(dir.path().join("oarlock/engines")).unwrap();
        Place { _dir: dir, engines }
    }

    fn engine(folder: &str, port: u16) -> Engine {
        Engine {
            address: loopback(),
            workspace: vec![folder.into()],
            port,
            token: Token::from_text(format!("token-{port}")),
            control: Token::from_text(format!("control-{port}")),
            lock: format!("/locks/{port}.lock").into(),
        }
    }

    /// Leaves a record as a crash does: not ended, of a process that is gone, last touched at `changed`.
    fn crash(engines: &Engines, folder: &str, port: u16, changed: SystemTime) -> PathBuf {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let mut record = engines.record(engine(folder, port)).unwrap();
        record.contents.pid = child.id();
        record.write().unwrap();
        record.contents.ended = Some(0);
        fs::File::options().write(true).open(record.path()).unwrap().set_modified(changed).unwrap();
        record.path().to_owned()
    }

    fn w() -> [PathBuf; 1] {
        [PathBuf::from("/w")]
    }

    #[test]
    fn ide_lock_06_soon_after_the_end_port_and_token_are_kept() {
        let Place { engines, .. } = &place();
        let record = engines.record(engine("/w", 4711)).unwrap();
        assert!(engines.resume(&w(), SystemTime::now()).is_none(), "a running engine keeps its own");
        record.end().unwrap();
        assert!(
            engines.resume(&["/other".into()], SystemTime::now()).is_none(),
            "another workspace's are not taken"
        );
        let resumed = engines.resume(&w(), SystemTime::now()).unwrap();
        assert_eq!((resumed.port, resumed.token.reveal()), (4711, "token-4711"));
        assert!(engines.resume(&w(), SystemTime::now()).is_none(), "they are taken once");
    }

    #[test]
    fn ide_lock_06_after_fifteen_seconds_they_are_forgotten() {
        let Place { engines, .. } = &place();
        let record = engines.record(engine("/w", 4711)).unwrap();
        let path = record.path().to_owned();
        drop(record);
        assert!(engines.resume(&w(), SystemTime::now() + Duration::from_secs(16)).is_none());
        assert!(!path.exists());
        let end = SystemTime::now();
        crash(engines, "/w", 1, end);
        assert!(engines.resume(&w(), end + Duration::from_secs(15)).is_none());
    }

    #[test]
    fn ide_lock_06_a_crash_counts_from_the_last_touch() {
        let Place { engines, .. } = &place();
        let now = SystemTime::now();
        let old = crash(engines, "/w", 1, now - Duration::from_secs(20));
        crash(engines, "/w", 2, now - Duration::from_secs(10));
        crash(engines, "/w", 3, now - Duration::from_secs(3));
        let foreign = crash(engines, "/other", 4, now - Duration::from_secs(20));
        assert_eq!(engines.resume(&w(), now).unwrap().port, 3, "the newest first");
        assert!(!old.exists() && !foreign.exists());
        assert_eq!(engines.resume(&w(), now).unwrap().port, 2);
        assert!(engines.resume(&w(), now).is_none());
    }

    #[test]
    fn two_engines_that_start_at_once_never_take_the_same_record() {
        let Place { engines, .. } = &place();
        for _ in 0..30 {
            crash(engines, "/w", 1, SystemTime::now());
            crash(engines, "/w", 2, SystemTime::now());
            let mut ports: Vec<u16> = std::thread::scope(|scope| {
                let starts: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| engines.resume(&w(), SystemTime::now()))).collect();
                starts
                    .into_iter()
                    .filter_map(|start| start.join().unwrap())
                    .map(|resumed| resumed.port)
                    .collect()
            });
            ports.sort_unstable();
            assert_eq!(ports, [1, 2]);
        }
    }

    #[test]
    fn running_lists_the_living_with_their_control_token() {
        let Place { engines, .. } = &place();
        crash(engines, "/w", 1, SystemTime::now());
        drop(engines.record(engine("/w", 2)).unwrap());
        let _b = engines.record(engine("/v", 9)).unwrap();
        let _a = engines.record(engine("/w", 3)).unwrap();
        let running = engines.running();
        assert_eq!(running.iter().map(|engine| engine.port).collect::<Vec<_>>(), [3, 9]);
        assert_eq!(running[0].pid, std::process::id());
        assert_eq!(running[0].workspace, w());
        assert_eq!(running[0].control.reveal(), "control-3");
        assert_eq!(running[0].lock, Path::new("/locks/3.lock"));
    }

    #[test]
    fn touch_moves_the_time_and_heals_a_deleted_record() {
        let Place { engines, .. } = &place();
        let record = engines.record(engine("/w", 3)).unwrap();
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000);
        fs::File::options().write(true).open(record.path()).unwrap().set_modified(long_ago).unwrap();
        record.touch().unwrap();
        assert!(
            distance(fs::metadata(record.path()).unwrap().modified().unwrap(), SystemTime::now()) < MEMORY
        );
        fs::remove_dir_all(record.path().parent().unwrap()).unwrap();
        record.touch().unwrap();
        assert_eq!(engines.running().len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn records_are_private_and_named_after_workspace_and_port() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let Place { engines, .. } = &place();
        let record = engines.record(engine("/w", 3)).unwrap();
        assert_eq!((mode(&engines.dir), mode(record.path())), (0o700, 0o600));
        let name = record.path().file_name().unwrap().to_str().unwrap().to_owned();
        let (hash, rest) = name.split_at(16);
        assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(rest, "-3.json");
        let both = |a: &str, b: &str| fingerprint(&sorted(&[a.into(), b.into()]));
        assert_eq!(both("/a", "/b"), both("/b", "/a"));
        assert_ne!(both("/a", "/b"), fingerprint(&["/a/b".into()]));
    }

    #[test]
    fn broken_records_and_those_of_another_version_are_left_alone() {
        let Place { engines, .. } = &place();
        for (name, text) in [("a.json", "{"), ("b.json", r#"{"version":2}"#), ("c.txt", "x")] {
            fs::write(engines.dir.join(name), text).unwrap();
        }
        assert!(engines.resume(&w(), SystemTime::now()).is_none());
        assert!(engines.running().is_empty());
        assert_eq!(fs::read_dir(&engines.dir).unwrap().count(), 3);
    }

    #[test]
    fn ide_auth_05_no_token_in_the_debug_text() {
        let Place { engines, .. } = &place();
        let record = engines.record(engine("/w", 3)).unwrap();
        let text = format!("{record:?} {:?} {:?}", engines.running(), engine("/w", 3));
        assert!(!text.contains("token-3") && !text.contains("control-3"), "{text}");
    }

    #[cfg(not(windows))]
    #[test]
    fn the_directory_follows_the_xdg_variable() {
        let mut environment = Environment { home: Some("/home/u".into()), ..Environment::default() };
        assert_eq!(engines_dir(&environment).unwrap(), Path::new("/home/u/.local/state/oarlock/engines"));
        environment.xdg_state_home = Some("/s".into());
        assert_eq!(engines_dir(&environment).unwrap(), Path::new("/s/oarlock/engines"));
        assert!(engines_dir(&Environment::default()).is_err());
    }
}
