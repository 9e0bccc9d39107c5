//! `cargo xtask gen` and `cargo xtask dist`: what is generated from the binary, and the archive of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{reference, shell};

/// Each shell and the file name that it looks for.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "oarlock.bash"),
    ("zsh", "_oarlock"),
    ("fish", "oarlock.fish"),
    ("powershell", "_oarlock.ps1"),
    ("elvish", "oarlock.elv"),
];

/// The files of the root that belong into an archive.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "PROTOCOL.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Writes completions and man pages under `target/gen`, and the reference tables into `PROTOCOL.md`.
pub(crate) fn generate() -> Result<()> {
    shell::cargo(["build", "-p", "oarlock"])?;
    let folder = shell::root().join("target/gen");
    generate_with(&binary("debug"), &folder)?;
    println!("completions and man pages: target/gen");
    reference::update()
}

/// Builds the program as it ships, and keeps it in `target/bench`.
pub(crate) fn release() -> Result<PathBuf> {
    shell::cargo(["build", "--release", "-p", "oarlock"])?;
    let (binary, folder) = (binary("release"), shell::target().join("bench"));
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    copy(&binary, &folder)?;
    Ok(folder.join(binary.file_name().unwrap_or_default()))
}

/// Makes `target/dist/oarlock-VERSION-TARGET.tar.gz`.
pub(crate) fn archive() -> Result<()> {
    shell::cargo(["build", "--release", "-p", "oarlock"])?;
    let binary = binary("release");
    let name = format!("oarlock-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let dist = shell::root().join("target/dist");
    let folder = dist.join(&name);
    generate_with(&binary, &folder)?;
    copy(&binary, &folder)?;
    for document in DOCUMENTS {
        copy(&shell::root().join(document), &folder)?;
    }

    let mut tar = Command::new("tar");
    tar.current_dir(&dist);
    if cfg!(target_os = "linux") {
        // The builder's account has no business in the archive.
        tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name"]);
    }
    shell::check(tar.arg("-czf").arg(format!("{name}.tar.gz")).arg(&name))?;
    println!("target/dist/{name}.tar.gz");
    Ok(())
}

fn generate_with(binary: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    let completions = folder.join("completions");
    let man = folder.join("man").join("man1");
    for folder in [&completions, &man] {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    }
    for (shell_name, file) in COMPLETIONS {
        let script = shell::read(Command::new(binary).args(["completions", shell_name]))?;
        fs::write(completions.join(file), script).with_context(|| format!("failed to write {file}"))?;
    }
    shell::check(Command::new(binary).arg("man").arg(&man))
}

fn binary(profile: &str) -> PathBuf {
    shell::target().join(profile).join(format!("oarlock{}", std::env::consts::EXE_SUFFIX))
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
    fs::copy(file, folder.join(name)).with_context(|| format!("failed to copy {}", file.display()))?;
    Ok(())
}

/// The target triple that rustc builds for when it is not told another.
fn host() -> Result<String> {
    let text = shell::read(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}
