//! A server process under observation.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use oarlock_testkit::bench;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};

/// Which of the three servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Floor,
    Rmcp,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Ours, Kind::Floor, Kind::Rmcp];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Ours => "ours",
            Kind::Floor => "floor",
            Kind::Rmcp => "rmcp",
        })
    }
}

/// How our server is started, beyond what every start has.
pub(crate) const FOR_BENCH: &[&str] = &["--on-diff", "reject", "--keepalive", "0", "--max-clients", "2000"];

/// A running server. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
    pub(crate) lock: PathBuf,
    /// From the start of the process to the moment the lock file was seen.
    pub(crate) start: Duration,
    /// Home, workspace and lock directory, all of this server only.
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts our server with `flags`.
    pub(crate) fn ours(flags: &[&str]) -> Result<Server> {
        Server::spawn(|folder, lock_dir| {
            let mut command = Command::new(bench::program(env!("CARGO_BIN_EXE_oarlock")));
            command.arg("serve").arg("--workspace").arg(folder.join("workspace"));
            command.arg("--lock-dir").arg(lock_dir).args(flags);
            command
        })
    }

    /// Starts this program again as the floor or the rmcp server.
    pub(crate) fn peer(kind: Kind, reply: &str) -> Result<Server> {
        let program = std::env::current_exe()?;
        Server::spawn(|_, lock_dir| {
            let mut command = Command::new(program);
            command.args(["--serve", &kind.to_string()]).arg(lock_dir).arg(reply);
            command
        })
    }

    fn spawn(command: impl FnOnce(&Path, &Path) -> Command) -> Result<Server> {
        let folder = tempfile::tempdir().context("failed to make a temporary directory")?;
        let lock_dir = folder.path().join("ide");
        for made in [&lock_dir, &folder.path().join("workspace")] {
            fs::create_dir(made)?;
        }
        let mut command = command(folder.path(), &lock_dir);
        at_home(&mut command, folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
        let lock = match wait_for_lock(&lock_dir, &mut child) {
            Ok(lock) => lock,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.context(format!("{command:?} wrote no lock file")));
            }
        };
        let start = started.elapsed();
        let text = fs::read_to_string(&lock).context("failed to read the lock file")?;
        let fields: serde_json::Value = serde_json::from_str(&text).context("the lock file is not JSON")?;
        let token = fields["authToken"].as_str().context("the lock file has no authToken")?.to_owned();
        let port = lock.file_stem().and_then(|stem| stem.to_str()).context("the lock file has no name")?;
        Ok(Server { child, port: port.parse()?, token, lock, start, folder })
    }

    /// A command of ours for this server, such as `ide select`, run to its end.
    pub(crate) fn tell(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(bench::program(env!("CARGO_BIN_EXE_oarlock")));
        command.args(arguments).args(["--engine", &self.port.to_string()]);
        command.current_dir(self.workspace());
        at_home(&mut command, self.folder.path());
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The folder that our server serves.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.child.id()))
    }

    /// CPU time that all threads have used, user and system, in nanoseconds.
    pub(crate) fn cpu(&self) -> Result<u64> {
        Ok(u64::try_from(bench::cpu(self.child.id())?.as_nanos())?)
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        bench::resident(self.child.id())
    }

    /// Number of open file descriptors.
    pub(crate) fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(self.proc("fd"))?.count())
    }

    /// Sends SIGTERM and waits for the end; `None` when the process outlives the deadline.
    pub(crate) fn terminate(&mut self, deadline: Duration) -> Result<Option<std::process::ExitStatus>> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("failed to send SIGTERM")?;
        let end = Instant::now() + deadline;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }

    /// Whether the process still runs.
    pub(crate) fn is_alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps state, configuration and locks of the user who runs the benchmark out of it.
fn at_home(command: &mut Command, folder: &Path) {
    for home in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR"] {
        command.env(home, folder);
    }
    command.env_remove("RUST_LOG");
}

/// Looks five times a millisecond: exact enough for a start that may take fifteen of them.
fn wait_for_lock(lock_dir: &Path, child: &mut Child) -> Result<PathBuf> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        for entry in fs::read_dir(lock_dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "lock") {
                return Ok(path);
            }
        }
        if let Some(status) = child.try_wait()? {
            bail!("the server ended at once: {status}");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    bail!("waited for ten seconds")
}

/// A thousand clients are a thousand descriptors, here and, inherited, in each server.
pub(crate) fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("failed to raise the limit of open files")
}
