//! Who takes part, and how each is started.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oarlock_testkit::install::Availability;
use oarlock_testkit::sdk::{PYTHON_VERSION, Sdk, TYPESCRIPT_VERSION};

use crate::raw::Raw;
use crate::{ours, raw};

/// A client of the fake CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    Ours,
    Python,
    TypeScript,
    /// No SDK: a limit to compare with.
    Raw(Raw),
}

impl Contender {
    pub(crate) const ALL: [Contender; 6] = [
        Contender::Ours,
        Contender::Python,
        Contender::TypeScript,
        Contender::Raw(Raw::Tagged),
        Contender::Raw(Raw::Peek),
        Contender::Raw(Raw::Lines),
    ];
    /// Those that can be slow: a raw client has no queue that could grow.
    pub(crate) const SDKS: [Contender; 3] = [Contender::Ours, Contender::Python, Contender::TypeScript];

    /// Installs what is not ours, below `target`.
    pub(crate) fn install(target: &Path) -> Result<()> {
        for sdk in [Sdk::Python, Sdk::TypeScript] {
            if let Availability::Missing(why) = sdk.obtain(target)? {
                bail!("the official {sdk:?} SDK cannot be had: {why}");
            }
        }
        Ok(())
    }

    /// The client as a process. It starts this program as its CLI, and pauses after its first message.
    pub(crate) fn command(self, target: &Path, pause: Duration) -> Result<Command> {
        let fake = std::env::current_exe().context("failed to find this program's own path")?;
        let mut command = match self {
            Self::Python => {
                let mut command = Sdk::Python.interpreter(target);
                command.args(["-c", include_str!("peer.py")]);
                command
            }
            Self::TypeScript => {
                let mut command = Sdk::TypeScript.interpreter(target);
                command.args(["--input-type=module", "--eval", include_str!("peer.mjs"), "--"]);
                command
            }
            Self::Ours | Self::Raw(_) => {
                let mut command = Command::new(&fake);
                command.args(["--client", self.name()]);
                command
            }
        };
        command.arg(&fake).arg(pause.as_secs_f64().to_string());
        Ok(command)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::Raw(Raw::Tagged) => "tagged",
            Self::Raw(Raw::Peek) => "peek",
            Self::Raw(Raw::Lines) => "lines",
        }
    }

    /// Is one of them, in this process.
    pub(crate) fn impersonate(name: &str, fake: &Path, pause: &str) -> Result<()> {
        let pause = Duration::from_secs_f64(pause.parse().context("the pause is not a number of seconds")?);
        match Self::ALL.into_iter().find(|contender| contender.name() == name) {
            Some(Self::Ours) => ours::run(fake, pause),
            Some(Self::Raw(raw)) => raw::run(raw, fake),
            _ => bail!("--client {name}: no such client is in this program"),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("Oarlock"),
            Self::Python => write!(f, "Python SDK {PYTHON_VERSION}"),
            Self::TypeScript => write!(f, "TypeScript SDK {TYPESCRIPT_VERSION}"),
            Self::Raw(Raw::Tagged) => f.write_str("raw: serde_json, internally tagged"),
            Self::Raw(Raw::Peek) => f.write_str("raw: serde_json, `type` first"),
            Self::Raw(Raw::Lines) => f.write_str("raw: lines only"),
        }
    }
}
