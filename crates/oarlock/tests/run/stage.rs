//! A sandbox in which `claude` is a script.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use oarlock_testkit::cli::Sandbox;
use oarlock_testkit::tui::{Launch, Tui};
use serde_json::Value;

/// How long anything may take. Waiting ends with the event, so this is only met by failures.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
    pub(crate) claude: PathBuf,
}

/// What a run has left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The lines of stdout, each a JSON object.
    pub(crate) fn frames(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Stage {
    /// With a script for `claude`.
    pub(crate) fn new(script: &str) -> Self {
        let sandbox = Sandbox::new(None).unwrap();
        let file = sandbox.home().join("script.toml");
        std::fs::write(&file, script).unwrap();
        let claude = sandbox.root().join("bin/claude");
        let made = Command::new(env!("CARGO_BIN_EXE_oarlock"))
            .arg("script")
            .arg(&file)
            .arg("--as")
            .arg(&claude)
            .status();
        assert!(made.unwrap().success());
        Self { sandbox, claude }
    }

    /// One turn with these steps.
    pub(crate) fn turn(steps: &str) -> Self {
        Self::new(&format!("[[turn]]\nsteps = [{steps}]\n"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
        command.arg("run").args(arguments).current_dir(self.sandbox.work()).env_clear();
        command.envs(self.sandbox.environment(None).unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end, with nothing on stdin.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with("", arguments)
    }

    /// Runs it to its end.
    pub(crate) fn run_with(&self, stdin: &str, arguments: &[&str]) -> Ran {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A run that needs no input may be gone before.
        let _ = input.write_all(stdin.as_bytes());
        drop(input);
        ended(child)
    }

    /// Starts it in a terminal, below a shell that says with what code it ended.
    pub(crate) fn open(&self, arguments: &str) -> Tui {
        self.open_with(arguments, "cat")
    }

    /// The same, with an editor.
    pub(crate) fn open_with(&self, arguments: &str, editor: &str) -> Tui {
        let program = env!("CARGO_BIN_EXE_oarlock");
        let editor_file = self.sandbox.home().join("editor.sh");
        std::fs::write(&editor_file, editor).unwrap();
        // The shell must outlive Ctrl-C, which reaches it too.
        let script = format!("trap : INT; '{program}' run {arguments}; echo \"ended with $?\"; read line");
        Launch::new("/bin/sh", self.sandbox.work(), self.sandbox.environment(None).unwrap())
            .args(["-c", &script])
            .env("EDITOR", format!("sh {}", editor_file.display()))
            .start()
            .unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.sandbox.work().join(name)).ok()
    }
}

/// Waits for the end, but not for ever.
pub(crate) fn ended(child: Child) -> Ran {
    let pid = child.id();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let output = is_done.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = signal(pid, "KILL");
        panic!("it did not end")
    });
    let output = output.unwrap();
    Ran {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a signal by name.
pub(crate) fn signal(pid: u32, name: &str) -> bool {
    Command::new("kill").args(["-s", name, &pid.to_string()]).status().is_ok_and(|status| status.success())
}
