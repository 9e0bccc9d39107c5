//! How the CLI is reached: a process on this machine, another way to start one (ssh, a container), or any pair of pipes.
//!
//! ```no_run
//! use oarlock_agent::{Options, transport::Launch};
//!
//! // The CLI of another machine: the same arguments, started by ssh.
//! let options = Options::new().spawn_with(|launch: Launch| {
//!     let mut command = tokio::process::Command::new("ssh");
//!     command.arg("build-host").arg("claude").args(&launch.args);
//!     oarlock_agent::transport::spawn(command, launch.files)
//! });
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitStatus;

use tempfile::TempPath;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

use crate::Error;
use crate::process::Manner;
pub use crate::process::spawn;

/// A command line that is ready to be started: what [`Options`](crate::Options) come to.
///
/// `Debug` shows names, no values: they may hold keys.
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Changes to the environment; `None` takes a variable away.
    pub env: BTreeMap<OsString, Option<OsString>>,
    /// Where it runs; the current directory when there is none.
    pub cwd: Option<PathBuf>,
    /// Files that the arguments name. They are removed when the session ends.
    pub files: Vec<TempPath>,
    pub(crate) manner: Manner,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only flags have names; the arguments of a wrapper may be anything.
        let flag = |arg: &OsString| {
            let arg = arg.to_string_lossy();
            arg.starts_with("--").then(|| arg.split('=').next().unwrap_or_default().to_owned())
        };
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("flags", &self.args.iter().filter_map(flag).collect::<Vec<_>>())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl Launch {
    /// Starts it on this machine: what happens without [`spawn_with`](crate::Options::spawn_with).
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(self) -> Result<Transport, Error> {
        crate::process::start(self.command(), self.files, self.manner)
    }

    /// The command that starts it on this machine.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }
}

/// What the CLI says, as bytes.
pub type Reader = Pin<Box<dyn AsyncRead + Send>>;
/// What it hears, as bytes.
pub type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// A CLI that runs: its pipes, and the process behind them if there is one.
pub struct Transport {
    /// Its standard output.
    pub stdout: Reader,
    /// Its standard input.
    pub stdin: Writer,
    /// Its standard error. It is read at all times; a tail is kept for errors.
    pub stderr: Option<Reader>,
    /// The process. Without one the session is over when `stdout` ends.
    pub process: Option<Box<dyn Process>>,
    /// Files to remove when the session ends.
    pub files: Vec<TempPath>,
}

impl Transport {
    /// Pipes without a process.
    pub fn new(stdout: impl AsyncRead + Send + 'static, stdin: impl AsyncWrite + Send + 'static) -> Self {
        Self {
            stdout: Box::pin(stdout),
            stdin: Box::pin(stdin),
            stderr: None,
            process: None,
            files: Vec::new(),
        }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("pid", &self.process.as_ref().and_then(|process| process.id()))
            .finish()
    }
}

/// The process behind a transport. Dropping it must end it, with all that it has started.
pub trait Process: Send {
    /// Its id, while it runs.
    fn id(&self) -> Option<u32>;
    /// Waits for its end. Called again after a cancelled wait.
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>>;
    /// Asks it to end (SIGTERM).
    fn terminate(&mut self);
    /// Ends it, and all that it has started.
    fn kill(&mut self);
}

/// Another way to start the CLI.
pub(crate) type SpawnWith = dyn Fn(Launch) -> Result<Transport, Error> + Send + Sync;
