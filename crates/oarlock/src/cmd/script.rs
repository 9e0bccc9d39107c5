//! `oarlock script`: plays a scenario as if it were `claude` in stream-json mode.

use std::path::{Path, PathBuf};

use anyhow::Context;
use oarlock_script::{Error, Launch, Outcome, Script, play};
use tokio::sync::Notify;

use crate::exit::Failure;
#[cfg(unix)]
use crate::exit::TERMINATED;

/// Play a script as if it were `claude`, to test an integration with no account
///
/// Reads and writes what `claude --output-format stream-json --input-format stream-json --verbose` would. FILE is a script,
/// or a recorded trace. The format is below.
///
/// A program that starts `claude` itself needs a program to start: `oarlock script FILE --as PATH` writes one.
#[derive(clap::Args)]
#[command(after_help = "The format of scripts: `oarlock script --help`", after_long_help = oarlock_script::FORMAT)]
pub(crate) struct Args {
    /// The script (TOML) or a recorded trace (JSON lines)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a small program to PATH that plays FILE, to be given to SDKs as the path of `claude`
    #[arg(long = "as", value_name = "PATH", conflicts_with = "args")]
    launcher: Option<PathBuf>,
    /// Play a trace with its pauses, so many times as fast; without this, there are none
    #[arg(long, value_name = "TIMES", allow_negative_numbers = true)]
    speed: Option<f64>,
    /// What `claude` is called with
    #[arg(last = true, value_name = "CLAUDE'S ARGUMENTS")]
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut script = Script::read(&self.file).map_err(|error| match error {
            // It names the file itself.
            Error::Read { .. } => Failure::usage(error),
            error => Failure::usage(format_args!("{}: {error}", self.file.display())),
        })?;
        if let Some(speed) = self.speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
            return Err(Failure::usage(format_args!(
                "--speed: {speed} is no number of times greater than 0; leave it out for no pauses"
            )));
        }
        if let Some(launcher) = &self.launcher {
            return write_launcher(launcher, &self.file, self.speed);
        }
        if let Some(speed) = self.speed {
            script = script.at_speed(speed);
        }
        let launch = Launch::new(self.args).inherit_env();
        super::block_on(async move {
            let ignores_signals = script.ignores_signals();
            let interrupt = launch.interrupt();
            // Before the first frame is written: a host may send a signal as soon as it has read it.
            let signals = signals(&interrupt, ignores_signals)?;
            let play = play(&script, &launch, tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
            tokio::select! {
                outcome = play => end(outcome),
                code = signals => Err(Failure::Code(code).into()),
            }
        })
    }
}

/// Ends as `claude` does: 143 by SIGTERM. SIGINT only interrupts the turn.
#[cfg(unix)]
fn signals(interrupt: &Notify, are_ignored: bool) -> std::io::Result<impl Future<Output = u8>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        loop {
            tokio::select! {
                _ = term.recv() => if !are_ignored { return TERMINATED },
                _ = int.recv() => if !are_ignored { interrupt.notify_one() },
            }
        }
    })
}

#[cfg(not(unix))]
fn signals(_: &Notify, _: bool) -> std::io::Result<impl Future<Output = u8>> {
    Ok(std::future::pending())
}

fn end(outcome: Outcome) -> anyhow::Result<()> {
    if outcome.killed {
        #[cfg(unix)]
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    }
    match u8::try_from(outcome.code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::Code(code).into()),
        Err(_) => Err(Failure::Code(1).into()),
    }
}

/// Writes a program that calls us with the script and passes its own arguments on.
fn write_launcher(launcher: &Path, script: &Path, speed: Option<f64>) -> anyhow::Result<()> {
    let speed = speed.map_or_else(String::new, |speed| format!(" --speed {speed}"));
    let oarlock = std::env::current_exe().context("failed to find this program")?;
    let script = std::path::absolute(script)?;
    // A real `claude`, or the script itself, is not to be lost by a slip.
    if std::fs::read(launcher).is_ok_and(|there| !is_launcher(&there)) {
        return Err(Failure::usage(format_args!(
            "--as: {} is there already, and not written by --as; remove it, or take another name",
            launcher.display()
        )));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let quote = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        let text =
            format!("#!/bin/sh\nexec {} script {}{speed} -- \"$@\"\n", quote(&oarlock), quote(&script));
        std::fs::write(launcher, text).with_context(|| format!("failed to write {}", launcher.display()))?;
        std::fs::set_permissions(launcher, std::fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    {
        let text = format!("@\"{}\" script \"{}\"{speed} -- %*\r\n", oarlock.display(), script.display());
        std::fs::write(launcher, text).with_context(|| format!("failed to write {}", launcher.display()))?;
    }
    Ok(())
}

/// Is this a program that `--as` has written?
fn is_launcher(program: &[u8]) -> bool {
    let begins = program.starts_with(b"#!/bin/sh\nexec '") || program.starts_with(b"@\"");
    begins && program.windows(b" script ".len()).any(|words| words == b" script ")
}
