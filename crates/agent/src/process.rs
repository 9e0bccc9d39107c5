//! The CLI as a process: its group, its descendants, and nothing left behind.
//!
//! The CLI starts the shells of its Bash tool in sessions of their own, so a signal to its process group does not reach
//! them, and when it is killed they stay. Every process is therefore found by a mark in its environment, which all
//! descendants inherit: by [`Child::kill`] while we live, by the guard (see [`guard`]) when we do not.

use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tempfile::TempPath;
use tokio::process::{ChildStdout, Command};

use crate::Error;
use crate::transport::{Process, Reader, Transport};

mod guard;
#[cfg(target_os = "linux")]
mod marked;
#[cfg(unix)]
mod paced;

/// The variable whose value marks every process of one session.
const MARK: &str = "OARLOCK_AGENT_PROCESS";

/// Starts a command as the CLI of a session: with pipes, in a process group of its own, and such that nothing of it
/// outlives us.
///
/// # Errors
/// When it cannot be started.
pub fn spawn(command: Command, files: Vec<TempPath>) -> Result<Transport, Error> {
    start(command, files, Manner::default())
}

/// What becomes of what a CLI has left running when it ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Leftovers {
    /// It was meant to stay.
    #[default]
    Stay,
    /// It ends, too.
    End,
}

/// How a CLI is watched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    pub(crate) leftovers: Leftovers,
    /// How long its output rests after a piece of a stream.
    pub(crate) pause: Option<Duration>,
}

pub(crate) fn start(mut command: Command, files: Vec<TempPath>, manner: Manner) -> Result<Transport, Error> {
    let mark = uuid::Uuid::new_v4().to_string();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env(MARK, &mark);
    let program = command.as_std().get_program().to_os_string();
    let mut wrap = CommandWrap::from(command);
    wrap.wrap(process_wrap::tokio::KillOnDrop);
    #[cfg(unix)]
    wrap.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    wrap.wrap(process_wrap::tokio::JobObject);
    let mut child =
        wrap.spawn().map_err(|source| Error::Spawn { program: program.clone().into(), source })?;
    let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        unreachable!("all three were asked for as pipes")
    };
    let pid = child.id();
    let guard = guard::watch(&mark, pid);
    let child = Child { child, pid, mark, guard, leftovers: manner.leftovers, ended: false };
    Ok(Transport {
        stdout: watched(stdout, manner.pause)
            .map_err(|source| Error::Spawn { program: program.into(), source })?,
        stdin: Box::pin(stdin),
        stderr: Some(Box::pin(stderr)),
        process: Some(Box::new(child)),
        files,
    })
}

/// The CLI's output, as it is to be read.
fn watched(stdout: ChildStdout, pause: Option<Duration>) -> io::Result<Reader> {
    #[cfg(unix)]
    if let Some(pause) = pause {
        return Ok(Box::pin(paced::Paced::new(stdout.into_owned_fd()?, pause)?));
    }
    let _ = pause;
    Ok(Box::pin(stdout))
}

/// The CLI's process, and those it has started.
struct Child {
    child: Box<dyn ChildWrapper>,
    pid: Option<u32>,
    mark: String,
    guard: Option<guard::Watch>,
    leftovers: Leftovers,
    /// It has ended, and what it left behind is dealt with.
    ended: bool,
}

impl Process for Child {
    fn id(&self) -> Option<u32> {
        self.pid
    }

    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(async {
            let status = self.child.wait().await?;
            // One that was killed has cleaned up nothing.
            #[cfg(target_os = "linux")]
            if !self.ended && (status.code().is_none() || self.leftovers == Leftovers::End) {
                marked::kill(&self.mark);
            }
            if !std::mem::replace(&mut self.ended, true)
                && let Some(guard) = self.guard.take()
            {
                guard.release();
            }
            Ok(status)
        })
    }

    fn terminate(&mut self) {
        #[cfg(unix)]
        // Its number is nobody's, or somebody else's, once it has been waited for.
        if let Some(pid) = self.child.id().and_then(pid_of) {
            // Not to the group: the CLI ends its children itself, and better.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        #[cfg(not(unix))]
        self.kill();
    }

    fn kill(&mut self) {
        // First the marked ones: once the CLI is gone a new child could no longer be told from a stranger's.
        #[cfg(target_os = "linux")]
        marked::kill(&self.mark);
        if !self.ended {
            let _ = self.child.start_kill();
        }
        #[cfg(target_os = "linux")]
        marked::kill(&self.mark);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
        if let Some(guard) = self.guard.take() {
            guard.release();
        }
    }
}

#[cfg(unix)]
fn pid_of(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}
