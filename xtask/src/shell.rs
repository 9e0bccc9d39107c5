//! Running other programs from the root of the repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // xtask lies directly below the root, and cargo tells where xtask lies.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    // One that is not absolute counts from the root, as cargo is started there.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The same cargo that runs us, started in the root.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs cargo with its output passed through.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<()> {
    let mut command = cargo_command();
    check(command.args(arguments))
}

/// Runs `command` and fails when it does.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("failed to start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs `command` and returns what it wrote to stdout; stderr passes through.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} wrote no UTF-8", shown(command)))
}

/// The command as one would type it; the program without its directory.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Today, as `2026-01-31`, in UTC.
pub(crate) fn today() -> Result<String> {
    Ok(read(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}
