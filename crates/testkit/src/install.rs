//! Getting what the tests need onto the machine: Debian packages by name, and things from registries, once for all
//! processes and in spite of hiccups.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

const ATTEMPTS: u32 = 4;

/// Whether something could be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Availability<T> {
    /// Here it is.
    Ready(T),
    /// It cannot be had on this machine, for the reason given.
    Missing(String),
}

/// Installs something unless `is_there` says that it is. A process that meets another at it waits for that one.
pub(crate) fn once(
    what: &str,
    lock: &Path,
    is_there: impl Fn() -> bool,
    install: impl Fn() -> Result<()>,
) -> Result<()> {
    if is_there() {
        return Ok(());
    }
    if let Some(folder) = lock.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    }
    let lock = File::create(lock).with_context(|| format!("failed to make {}", lock.display()))?;
    lock.lock().with_context(|| format!("failed to wait for another installation of {what}"))?;
    let mut failure = None;
    for attempt in 1..=ATTEMPTS {
        // Whoever held the lock before us may have done the work.
        if is_there() {
            return Ok(());
        }
        match install() {
            Ok(()) => return Ok(()),
            Err(error) => failure = Some(error),
        }
        // A registry that hiccups wants a moment; there is no event to wait for.
        std::thread::sleep(Duration::from_secs(u64::from(2 * attempt)));
    }
    Err(failure.unwrap_or_else(|| anyhow::anyhow!("no attempt was made")))
        .with_context(|| format!("failed to install {what} in {ATTEMPTS} attempts"))
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("failed to start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Brings an npm package (`name@version`) into `scratch` as it was published, without what it needs. Gives its folder.
pub(crate) fn npm_pack(package: &str, scratch: &Path) -> Result<PathBuf> {
    run(Command::new("npm")
        .args(["pack", "--silent", package, "--pack-destination"])
        .arg(scratch)
        .current_dir(scratch))?;
    let archive = fs::read_dir(scratch)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .context("npm pack left no archive")?;
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(scratch))?;
    Ok(scratch.join("package"))
}

/// Installs npm packages, with what they need, into a folder of their own. `proof` is a file that must be there then.
pub(crate) fn npm_install(folder: &Path, arguments: &[&str], proof: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    // A manifest of its own, or npm would look for one in the folders above.
    fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
    run(Command::new("npm")
        .args(["install", "--silent", "--no-audit", "--no-fund"])
        .args(arguments)
        .current_dir(folder))?;
    ensure!(proof.is_file(), "npm install left no {}", proof.display());
    Ok(())
}

/// Makes sure that every probe, a program with its arguments, can be run; else installs the packages where we may:
/// as root, on a system with apt. Returns what is missing.
pub(crate) fn require(probes: &[&[&str]], packages: &[&str]) -> Result<(), String> {
    let broken = || probes.iter().find(|probe| !succeeds(probe));
    if broken().is_none() {
        return Ok(());
    }
    let may_install = rustix::process::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists();
    let install = || {
        let wanted = [&["apt-get", "install", "-y", "-q"], packages].concat();
        succeeds(&wanted) || (succeeds(&["apt-get", "update", "-q"]) && succeeds(&wanted))
    };
    // A second round, because package mirrors do hiccup.
    if may_install && (install() || install()) && broken().is_none() {
        return Ok(());
    }
    let program = broken().map_or("a program", |probe| probe[0]);
    Err(format!("the program `{program}` is missing or broken; install {}", packages.join(" and ")))
}

fn succeeds(command: &[&str]) -> bool {
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    process.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_there_is_not_installed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (there, installed) = (Cell::new(false), Cell::new(0));
        for _ in 0..2 {
            let install = || {
                there.set(true);
                installed.set(installed.get() + 1);
                Ok(())
            };
            once("it", &folder.path().join("x/it.lock"), || there.get(), install).unwrap();
        }
        assert_eq!(installed.get(), 1);
    }

    #[test]
    fn a_hiccup_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = Cell::new(0);
        let install = || {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 { bail!("hiccup") } else { Ok(()) }
        };
        once("it", &folder.path().join("it.lock"), || false, install).unwrap();
        assert_eq!(attempts.get(), 2);
    }

    #[test]
    fn a_program_that_is_there_needs_no_package() {
        require(&[&["true"]], &["no-such-package"]).unwrap();
    }
}
