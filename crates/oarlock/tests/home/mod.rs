//! A throw-away home and a workspace, in which the program runs and touches nothing else.
#![allow(dead_code, reason = "not every test file needs all of it")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oarlock_ide::headless::{HeadlessEditor, OnDiff};
use oarlock_ide::{Options, Server};

pub(crate) struct Home {
    dir: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Self {
            dir,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        };
        fs::create_dir_all(home.workspace()).unwrap();
        home
    }

    /// A path below the home directory; real, as the program sees it.
    pub(crate) fn at(&self, rest: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(rest)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.at("w")
    }

    pub(crate) fn write(&self, rest: &str, text: &str) -> PathBuf {
        let path = self.at(rest);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A `claude` that is a shell script.
    #[cfg(unix)]
    pub(crate) fn claude(&self, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.write(".local/bin/claude", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
        command.args(args).current_dir(self.workspace()).env_clear();
        command.env("HOME", self.at("")).env("PATH", "/usr/bin:/bin");
        command.env("XDG_CONFIG_HOME", self.at("config")).env("XDG_STATE_HOME", self.at("state"));
        command.stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// An engine of this process, seen by the program as one of this home.
    pub(crate) fn engine(&self, folder: &Path) -> Server {
        fs::create_dir_all(folder).unwrap();
        let options = Options {
            workspace: vec![folder.to_owned()],
            lock_dir: Some(self.at(".claude/ide")),
            state_dir: Some(self.at("state/oarlock/engines")),
            ..Options::default()
        };
        let editor = std::sync::Arc::new(HeadlessEditor::new(OnDiff::Wait));
        self.runtime.block_on(Server::start(editor, options)).unwrap()
    }

    pub(crate) fn locks(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at(".claude/ide")).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "lock"))
            .collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr))
    }
}
