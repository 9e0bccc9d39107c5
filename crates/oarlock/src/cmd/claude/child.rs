//! Running `claude` to its end as if we were not there.

use std::process::{Command, ExitStatus};

use crate::exit::Failure;

/// Becomes `claude`. Where that is not possible, it is run to its end.
pub(super) fn become_it(mut command: Command) -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        let error = command.exec();
        Err(failed(&command, &error))
    }
    #[cfg(not(unix))]
    {
        let status = command.status().map_err(|error| failed(&command, &error))?;
        pass_on(status)
    }
}

fn failed(command: &Command, error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("failed to start {}: {error}", command.get_program().display())
}

/// The child's exit code becomes ours; a signal is 128 and its number, as in a shell.
pub(super) fn pass_on(status: ExitStatus) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or_else(|| signal.map(|signal| 128 + signal)).unwrap_or(1);
    Err(Failure::Code(u8::try_from(code).unwrap_or(1)).into())
}

/// The signals that this process gets instead of its child. Made before anything is started, so that none ends us
/// while a lock file is there.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn catch() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    /// Runs a command with our own terminal to its end.
    pub(super) async fn run(&mut self, command: Command) -> anyhow::Result<ExitStatus> {
        use rustix::process::{Pid, Signal, kill_process};
        let mut command = tokio::process::Command::from(command);
        // A child never outlives us, not even when we panic.
        command.kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(command.as_std(), &error))?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let forward = |signal| {
            // Until `wait` has answered, the id is the child's.
            if let Some(pid) = pid {
                let _ = kill_process(pid, signal);
            }
        };
        loop {
            tokio::select! {
                status = child.wait() => return Ok(status?),
                // The terminal sends these to the child as well, and it decides.
                _ = self.interrupt.recv() => {}
                _ = self.quit.recv() => {}
                _ = self.terminate.recv() => forward(Signal::TERM),
                _ = self.hangup.recv() => forward(Signal::HUP),
                _ = self.child.recv() => stop_if_stopped(pid),
            }
        }
    }
}

/// With Ctrl-Z the child stops; the shell takes the terminal back only when we stop too. `fg` wakes both.
#[cfg(unix)]
fn stop_if_stopped(pid: Option<rustix::process::Pid>) {
    use std::io::IsTerminal as _;

    use rustix::process::{Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
    let Some(pid) = pid.filter(|_| std::io::stdin().is_terminal()) else { return };
    let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
    if matches!(stopped, Ok(Some(status)) if status.stopped()) {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Elsewhere Ctrl-C reaches both, and the child decides.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn catch() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn run(&mut self, command: Command) -> anyhow::Result<ExitStatus> {
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(command.as_std(), &error))?;
        loop {
            tokio::select! {
                status = child.wait() => return Ok(status?),
                interrupted = tokio::signal::ctrl_c() => interrupted?,
            }
        }
    }
}
