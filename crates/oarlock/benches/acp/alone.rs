//! The CLI alone: what no adapter can be faster than.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use oarlock_testkit::cli::{Cli, Sandbox};
use serde_json::{Value, json};

use crate::process::Process;

/// How our adapter starts the CLI, read off a running one, so that both have the same flags.
#[derive(Clone)]
pub(crate) struct Recipe {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Recipe {
    /// Finds the CLI that runs in the sandbox.
    pub(crate) fn observe(sandbox: &Sandbox, cli: &Cli) -> Result<Self> {
        let home = [b"HOME=", sandbox.home().as_os_str().as_bytes()].concat();
        for entry in fs::read_dir("/proc")? {
            let folder = entry?.path();
            let Ok(program) = fs::read_link(folder.join("exe")) else { continue };
            let Ok(environment) = fs::read(folder.join("environ")) else { continue };
            let mut variables = environment.split(|byte| *byte == 0);
            if program != fs::canonicalize(&cli.program)? || !variables.any(|variable| variable == home) {
                continue;
            }
            let arguments = fs::read(folder.join("cmdline"))?;
            let arguments = arguments.strip_suffix(b"\0").unwrap_or(&arguments);
            let variables = environment.split(|byte| *byte == 0).filter_map(|variable| {
                let at = variable.iter().position(|byte| *byte == b'=')?;
                Some((to_os(&variable[..at]), to_os(&variable[at + 1..])))
            });
            return Ok(Self {
                program,
                arguments: arguments.split(|byte| *byte == 0).skip(1).map(to_os).collect(),
                environment: variables.collect(),
                cwd: sandbox.work().to_owned(),
            });
        }
        anyhow::bail!("no CLI runs in the sandbox")
    }

    /// The command, for a session of its own.
    fn command(&self, session: &str, url: Option<&str>) -> Command {
        let mut command = Command::new(&self.program);
        for argument in &self.arguments {
            match argument.to_str() {
                Some(text) if text.starts_with("--session-id=") => {
                    command.arg(format!("--session-id={session}"));
                }
                _ => {
                    command.arg(argument);
                }
            }
        }
        command.env_clear().envs(self.environment.iter().cloned()).current_dir(&self.cwd);
        if let Some(url) = url {
            command.env("ANTHROPIC_BASE_URL", url);
        }
        command
    }
}

fn to_os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

/// The CLI alone, initialised; it may still be starting.
pub(crate) struct Alone {
    pub(crate) process: Process,
    pub(crate) session: String,
}

/// When a prompt's first words and its result came.
pub(crate) struct Turn {
    pub(crate) sent: Instant,
    pub(crate) first_text: Option<Instant>,
    pub(crate) ended: Instant,
}

static SESSIONS: AtomicU64 = AtomicU64::new(1);

impl Alone {
    /// Starts it, with another model than the recipe's if one is named.
    pub(crate) fn start(recipe: &Recipe, url: Option<&str>) -> Result<Self> {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let session = format!("00000000-0000-4000-8000-{number:012}");
        let mut process = Process::start(recipe.command(&session, url))?;
        let initialize = json!({"subtype": "initialize"});
        process.send(&json!({"type": "control_request", "request_id": "1", "request": initialize}))?;
        Ok(Self { process, session })
    }

    pub(crate) fn prompt(&mut self, text: &str) -> Result<Turn> {
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let sent =
            self.process.send(&json!({"type": "user", "message": message, "parent_tool_use_id": null}))?;
        let mut first_text = None;
        loop {
            let line = self.process.next().context("waiting for the CLI's result")?;
            if first_text.is_none() && line.text.contains("\"text_delta\"") {
                first_text = Some(line.at);
            }
            // Its place in the line differs from version to version.
            let is_result = line.text.contains("\"type\":\"result\"")
                && serde_json::from_str::<Value>(&line.text)?["type"] == "result";
            if is_result {
                return Ok(Turn { sent, first_text, ended: line.at });
            }
        }
    }
}
