//! The reference ACP adapter from npm, and a node that is new enough for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::install::{self, Availability};

/// The version of `@agentclientprotocol/claude-agent-acp` on npm.
pub const VERSION: &str = "0.99.0";
const PACKAGE: &str = "@agentclientprotocol/claude-agent-acp";
/// The oldest node that it runs on.
const NODE: u32 = 22;

/// The reference adapter on disk.
#[derive(Debug, Clone)]
pub struct Adapter {
    node: PathBuf,
    script: PathBuf,
}

impl Adapter {
    /// Installs it under `target`, unless it is there already, without the CLI that it bundles; and node, if the one on
    /// PATH is too old. Needs the network, so it comes before [`cage::enter`](crate::cage::enter).
    pub fn obtain(target: &Path) -> Result<Availability<Self>> {
        let folder = target.join(format!("acp-reference-{VERSION}"));
        let script = folder.join("node_modules").join(PACKAGE).join("dist/index.js");
        if let Some(why) = packages(&folder, &format!("{PACKAGE}@{VERSION}"), &script)? {
            return Ok(Availability::Missing(why));
        }
        let mut node = PathBuf::from("node");
        if node_version() < Some(NODE) {
            let folder = target.join(format!("node-{NODE}"));
            node = folder.join("node_modules/node/bin/node");
            if let Some(why) = packages(&folder, &format!("node@{NODE}"), &node)? {
                return Ok(Availability::Missing(why));
            }
        }
        Ok(Availability::Ready(Self { node, script }))
    }

    /// Starts it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        command
    }
}

/// The major version of the node on PATH.
fn node_version() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    major(&String::from_utf8(output.stdout).ok()?)
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs an npm package into a folder of its own, unless `proof` is there. Gives the reason why it cannot.
fn packages(folder: &Path, package: &str, proof: &Path) -> Result<Option<String>> {
    // Written last: a folder without it is the ruin of an attempt.
    let seal = folder.join("complete");
    if !seal.exists()
        && let Err(why) = install::require(&[&["npm", "--version"]], &["npm"])
    {
        return Ok(Some(why));
    }
    install::once(
        package,
        &folder.with_added_extension("lock"),
        || seal.exists(),
        || {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
            install::npm_install(folder, &["--omit=optional", package], proof)?;
            Ok(fs::write(&seal, "")?)
        },
    )?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_its_first_number() {
        assert_eq!(major("v22.23.3\n"), Some(22));
        assert_eq!(major("nonsense"), None);
    }
}
