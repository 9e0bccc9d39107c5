//! `oarlock script`: plays a scenario as if it were `claude` in stream-json mode.

use std::path::{Path, PathBuf};

use anyhow::Context;
use oarlock_script::{Launch, Outcome, Script, play};

use crate::exit::Failure;

/// Play a script as if it were `claude`, to test an integration with no account
///
/// Reads and writes what `claude --output-format stream-json --input-format stream-json --verbose` would. FILE is a script
/// (TOML; docs/script.md has the format).
///
/// A program that starts `claude` itself needs a program to start: `oarlock script FILE --as PATH` writes one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The script
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a small program to PATH that plays FILE, to be given to SDKs as the path of `claude`
    #[arg(long = "as", value_name = "PATH", conflicts_with = "args")]
    launcher: Option<PathBuf>,
    /// What `claude` is called with
    #[arg(last = true, value_name = "CLAUDE'S ARGUMENTS")]
    args: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let script = Script::read(&self.file)
            .map_err(|error| Failure::usage(format_args!("{}: {error}", self.file.display())))?;
        if let Some(launcher) = &self.launcher {
            return write_launcher(launcher, &self.file);
        }
        let launch = Launch::new(self.args).inherit_env();
        super::block_on(async move {
            let outcome =
                play(&script, &launch, tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr()).await;
            end(outcome)
        })
    }
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
fn write_launcher(launcher: &Path, script: &Path) -> anyhow::Result<()> {
    let oarlock = std::env::current_exe().context("failed to find this program")?;
    let script = std::path::absolute(script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let quote = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
        let text = format!("#!/bin/sh\nexec {} script {} -- \"$@\"\n", quote(&oarlock), quote(&script));
        std::fs::write(launcher, text).with_context(|| format!("failed to write {}", launcher.display()))?;
        std::fs::set_permissions(launcher, std::fs::Permissions::from_mode(0o755))?;
    }
    #[cfg(not(unix))]
    {
        let text = format!("@\"{}\" script \"{}\" -- %*\r\n", oarlock.display(), script.display());
        std::fs::write(launcher, text).with_context(|| format!("failed to write {}", launcher.display()))?;
    }
    Ok(())
}
