//! The official SDKs of Claude Code, from PyPI and npm, each in a folder of its own.
//!
//! Without the CLI that they bundle: the Python package is built from its source archive, which has none, and npm
//! leaves optional packages out. The tests name the CLI to use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::install::{self, Availability};

/// The version of `claude-agent-sdk` on PyPI.
pub const PYTHON_VERSION: &str = "0.2.182";
/// The version of `@anthropic-ai/claude-agent-sdk` on npm.
pub const TYPESCRIPT_VERSION: &str = "0.3.325";

/// An official SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// `claude-agent-sdk` from PyPI, in a virtual environment.
    Python,
    /// `@anthropic-ai/claude-agent-sdk` from npm, in `node_modules`.
    TypeScript,
}

impl Sdk {
    /// Its folder under `target`; the name holds the version, so that a new version is a new folder.
    #[must_use]
    pub fn folder(self, target: &Path) -> PathBuf {
        target.join(match self {
            Self::Python => format!("sdk-python-{PYTHON_VERSION}"),
            Self::TypeScript => format!("sdk-typescript-{TYPESCRIPT_VERSION}"),
        })
    }

    /// A command that runs programs of the language with the SDK under `target` in reach.
    #[must_use]
    pub fn interpreter(self, target: &Path) -> Command {
        let folder = self.folder(target);
        match self {
            Self::Python => Command::new(folder.join("bin").join("python")),
            Self::TypeScript => {
                let mut node = Command::new("node");
                // Node looks for the packages of a program without a file in its working directory.
                node.current_dir(folder);
                node
            }
        }
    }

    /// Installs it under `target`, unless it is there already. Needs the network, so it comes before
    /// [`cage::enter`](crate::cage::enter). Several processes may call it at once.
    pub fn obtain(self, target: &Path) -> Result<Availability<()>> {
        let folder = self.folder(target);
        // Written last: a folder without it is the ruin of an attempt.
        let seal = folder.join("complete");
        if !seal.exists()
            && let Err(why) = self.require_programs()
        {
            return Ok(Availability::Missing(why));
        }
        install::once(
            &format!("the {self:?} SDK"),
            &folder.with_added_extension("lock"),
            || seal.exists(),
            || {
                if folder.exists() {
                    fs::remove_dir_all(&folder)?;
                }
                self.install(&folder)?;
                Ok(fs::write(&seal, "")?)
            },
        )?;
        Ok(Availability::Ready(()))
    }

    fn install(self, folder: &Path) -> Result<()> {
        match self {
            Self::Python => {
                install::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
                install::run(
                    Command::new(folder.join("bin").join("python"))
                        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                        .args(["--no-binary", "claude-agent-sdk"])
                        .arg(format!("claude-agent-sdk=={PYTHON_VERSION}")),
                )
            }
            Self::TypeScript => {
                fs::create_dir_all(folder)?;
                // A manifest of its own, or npm would look for one in the folders above.
                fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
                install::run(
                    Command::new("npm")
                        .args(["install", "--silent", "--no-audit", "--no-fund", "--omit=optional"])
                        .arg(format!("@anthropic-ai/claude-agent-sdk@{TYPESCRIPT_VERSION}"))
                        .current_dir(folder),
                )?;
                let package = folder.join("node_modules/@anthropic-ai/claude-agent-sdk/package.json");
                ensure!(package.is_file(), "npm install left no {}", package.display());
                Ok(())
            }
        }
    }

    fn require_programs(self) -> Result<(), String> {
        match self {
            // Debian has the modules of virtual environments in a package of their own.
            Self::Python => install::require(
                &[&["python3", "-c", "import venv, ensurepip"]],
                &["python3", "python3-venv"],
            ),
            Self::TypeScript => {
                install::require(&[&["node", "--version"], &["npm", "--version"]], &["nodejs", "npm"])
            }
        }
    }
}
