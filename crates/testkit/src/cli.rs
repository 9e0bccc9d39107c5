//! The real Claude Code CLI in a chosen version, and the bare surroundings it runs in.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use crate::install::Availability;
use crate::install::{self};
use crate::model::Model;

/// The versions that the tests run, oldest first. They differ, so both count.
pub const VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];

/// The npm package of the native Linux program.
const PACKAGE: &str = "@anthropic-ai/claude-code-linux-x64";

/// The program of one version on disk.
#[derive(Debug, Clone)]
pub struct Cli {
    /// The version.
    pub version: String,
    /// The program.
    pub program: PathBuf,
}

impl Cli {
    /// Where a version lies under `store`, whether it is there or not.
    #[must_use]
    pub fn at(store: &Path, version: &str) -> Self {
        Self { version: version.to_owned(), program: store.join(version).join("claude") }
    }

    /// Whether the program is there. It appears whole or not at all.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.program.is_file()
    }

    /// Brings a version from npm into `store`, unless it is there already. Needs the network, so it comes before
    /// [`cage::enter`](crate::cage::enter). Several processes may call it at once.
    pub fn obtain(store: &Path, version: &str) -> Result<Availability<Self>> {
        let cli = Self::at(store, version);
        if !cli.exists()
            && let Err(why) = install::require(&[&["npm", "--version"]], &["npm"])
        {
            return Ok(Availability::Missing(why));
        }
        let what = format!("{PACKAGE} {version}");
        let lock = store.join(format!("{version}.lock"));
        install::once(&what, &lock, || cli.exists(), || download(store, version))?;
        Ok(Availability::Ready(cli))
    }
}

/// Which `claude` a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `oarlock script`.
    Scripted,
    /// The oldest real CLI.
    Oldest,
    /// The newest real CLI.
    Newest,
}

impl Program {
    /// The version of a real CLI.
    pub fn version(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::Oldest => Some(VERSIONS[0]),
            Self::Newest => Some(VERSIONS[1]),
        }
    }

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        self.version().unwrap_or("scripted")
    }
}

/// Downloads beside the final place and moves the result there in one step.
fn download(store: &Path, version: &str) -> Result<()> {
    let scratch = TempDir::with_prefix_in(".unpack-", store)?;
    let package = install::npm_pack(&format!("{PACKAGE}@{version}"), scratch.path())?;
    let manifest: Value = serde_json::from_slice(&fs::read(package.join("package.json"))?)?;
    ensure!(manifest["version"] == version, "the package says it is {}", manifest["version"]);
    ensure!(package.join("claude").is_file(), "the package has no program `claude`");
    fs::rename(&package, store.join(version)).context("failed to move the unpacked CLI into place")
}

/// A throw-away place to run in: a HOME in which the CLI has nothing left to ask, a working directory, and a `bin`
/// at the head of PATH in which `claude` is the chosen version. Removed when dropped.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
    home: PathBuf,
    work: PathBuf,
    bin: PathBuf,
    scratch: PathBuf,
}

impl Sandbox {
    /// Makes one; with a CLI, `claude` on its PATH is that one.
    pub fn new(cli: Option<&Cli>) -> Result<Self> {
        let root = TempDir::with_prefix("oarlock-").context("failed to make a temporary directory")?;
        // Canonical, because the CLI matches workspaces by canonical paths.
        let canonical = fs::canonicalize(root.path())?;
        let place = |name: &str| -> Result<PathBuf> {
            let path = canonical.join(name);
            fs::create_dir(&path)?;
            Ok(path)
        };
        let sandbox = Self {
            home: place("home")?,
            work: place("work")?,
            bin: place("bin")?,
            scratch: place("tmp")?,
            root,
        };
        fs::create_dir(sandbox.home.join(".claude"))?;
        if let Some(cli) = cli {
            symlink(&cli.program, sandbox.bin.join("claude"))?;
            sandbox.settle(cli, &sandbox.work)?;
        }
        Ok(sandbox)
    }

    /// The throw-away HOME.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The working directory: the workspace of engine and CLI.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The directory that holds all of it.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The directory at the head of PATH.
    #[must_use]
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// Puts a program there: the text of a shell script.
    pub fn program(&self, name: &str, script: &str) -> Result<PathBuf> {
        let path = self.bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// Makes `claude` the scripted CLI of `oarlock`, with this script.
    pub fn play(&self, oarlock: &Path, script: &str) -> Result<()> {
        let file = self.root().join("script.toml");
        fs::write(&file, script)?;
        let claude = self.bin.join("claude");
        install::run(Command::new(oarlock).arg("script").arg(&file).arg("--as").arg(claude))
    }

    /// Writes a file below the working directory and returns its path.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.work.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, contents).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }

    /// The command lines of the processes that run in this sandbox, known by the HOME in their environment.
    pub fn processes(&self) -> Result<Vec<String>> {
        Ok(self.process_table()?.into_iter().map(|(_, line)| line).collect())
    }

    /// The processes that run in this sandbox: their ids and command lines.
    pub fn process_table(&self) -> Result<Vec<(i32, String)>> {
        let home = [b"HOME=", self.home.as_os_str().as_bytes()].concat();
        let mut table = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let folder = entry?.path();
            let id = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
            // What is no process has no environment, and one that has ended an empty one.
            let (Some(id), Ok(environment)) = (id, fs::read(folder.join("environ"))) else { continue };
            if environment.split(|byte| *byte == 0).any(|variable| variable == home) {
                let line = fs::read(folder.join("cmdline")).unwrap_or_default();
                table.push((id, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        Ok(table)
    }

    /// The whole environment of a program in this sandbox: nothing of ours but PATH gets in.
    pub fn environment(&self, model: Option<&Model>) -> Result<Vec<(OsString, OsString)>> {
        let outer = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.bin.clone()].into_iter().chain(std::env::split_paths(&outer)))?;
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.home.clone().into()),
            ("PATH".into(), path),
            ("TMPDIR".into(), self.scratch.clone().into()),
            ("CLAUDE_CODE_TMPDIR".into(), self.scratch.clone().into()),
            ("SHELL".into(), "/bin/sh".into()),
            ("TERM".into(), "xterm-256color".into()),
            ("LANG".into(), "C.UTF-8".into()),
        ];
        if let Some(model) = model {
            let names = [
                ("ANTHROPIC_API_KEY", API_KEY),
                ("ANTHROPIC_BASE_URL", model.base_url()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_TELEMETRY", "1"),
            ];
            environment.extend(names.map(|(name, value)| (name.into(), value.into())));
        }
        Ok(environment)
    }

    /// Answers every question that the CLI asks only once, so that none comes up in `folder`.
    pub fn settle(&self, cli: &Cli, folder: &Path) -> Result<()> {
        let path = self.home.join(".claude.json");
        let mut state: Value = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(_) => json!({
                "hasCompletedOnboarding": true,
                "theme": "dark",
                "numStartups": 3,
                "hasIdeAutoConnectDialogBeenShown": true,
                "hasIdeOnboardingBeenShown": {"Oarlock": true},
                "customApiKeyResponses": {"approved": [&API_KEY[API_KEY.len() - 20..]], "rejected": []},
            }),
        };
        state["lastOnboardingVersion"] = json!(cli.version);
        state["lastReleaseNotesSeen"] = json!(cli.version);
        let folder = folder.to_str().context("a test folder's path is not UTF-8")?;
        state["projects"][folder] = json!({
            "allowedTools": [], "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            "projectOnboardingSeenCount": 9,
        });
        Ok(fs::write(path, state.to_string())?)
    }
}

/// A key in form only. The CLI asks once whether to use it, and remembers the answer by its last 20 characters.
const API_KEY: &str = "sk-ant-this-is-not-a-key-00000000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_a_sandbox_are_those_with_its_home() {
        let (sandbox, other) = (Sandbox::new(None).unwrap(), Sandbox::new(None).unwrap());
        let environment = sandbox.environment(None).unwrap();
        let mut child = Command::new("sleep").arg("60").env_clear().envs(environment).spawn().unwrap();
        assert_eq!(sandbox.processes().unwrap(), ["sleep 60 "]);
        assert!(other.processes().unwrap().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(sandbox.processes().unwrap().is_empty());
    }
}
