//! A running `oarlock serve --json`: its events, and the commands that talk to it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::cli::Sandbox;
use crate::mcp::McpClient;
use crate::record::Record;

const START_LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(15);
const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// The `oarlock` program in a sandbox: runs its commands, starts its engines.
#[derive(Debug, Clone)]
pub struct Oarlock {
    program: PathBuf,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

impl Oarlock {
    /// The program at `program`, in the sandbox's working directory and environment.
    pub fn new(program: impl Into<PathBuf>, sandbox: &Sandbox) -> Result<Self> {
        let environment = sandbox.environment(None)?;
        Ok(Self { program: program.into(), environment, directory: sandbox.work().to_owned() })
    }

    /// The program's path.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs a command to its end and returns what it printed; a failing one is an error with what it said.
    pub async fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String> {
        let output = self.output(arguments).await?;
        let shown: Vec<_> = arguments.iter().map(|a| a.as_ref().to_string_lossy()).collect();
        let command = shown.join(" ");
        ensure!(
            output.status.success(),
            "`oarlock {command}` failed ({}): {}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout),
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command to its end, whatever it is.
    pub async fn output<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Output> {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("failed to start {}", self.program.display()))?;
        tokio::time::timeout(COMMAND_LIMIT, child.wait_with_output())
            .await
            .with_context(|| {
                format!("`oarlock` with {:?} did not end", arguments.first().map(AsRef::as_ref))
            })?
            .context("failed to wait for oarlock")
    }

    /// Starts `oarlock serve --json` with more arguments, and waits until it is ready.
    pub async fn serve(&self, arguments: &[&str]) -> Result<Engine> {
        Engine::start(self.clone(), arguments).await
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// A running engine. It is killed when dropped.
#[derive(Debug)]
pub struct Engine {
    oarlock: Oarlock,
    child: Child,
    events: Record<Value>,
    complaints: Record<String>,
    port: u16,
    lock: PathBuf,
}

impl Engine {
    async fn start(oarlock: Oarlock, arguments: &[&str]) -> Result<Self> {
        let mut command = oarlock.command(&["serve", "--json"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child =
            command.spawn().with_context(|| format!("failed to start {}", oarlock.program.display()))?;
        let (events, complaints) = (Record::default(), Record::default());
        let stdout = child.stdout.take().context("the engine has no stdout")?;
        let stderr = child.stderr.take().context("the engine has no stderr")?;
        // The two readers end with the engine's pipes.
        tokio::spawn(read_lines(stdout, events.clone(), |line| {
            serde_json::from_str(&line).unwrap_or_else(|_| Value::String(format!("not JSON: {line}")))
        }));
        tokio::spawn(read_lines(stderr, complaints.clone(), |line| line));
        let mut engine = Self { oarlock, child, events, complaints, port: 0, lock: PathBuf::new() };
        let ready = engine.event("ready", START_LIMIT).await?;
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        engine.port = port.with_context(|| format!("no port in {ready}"))?;
        engine.lock = ready["lock"].as_str().with_context(|| format!("no lock in {ready}"))?.into();
        Ok(engine)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its lock file.
    #[must_use]
    pub fn lock(&self) -> &Path {
        &self.lock
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// The token in its lock file.
    pub fn token(&self) -> Result<String> {
        let text = std::fs::read(&self.lock)
            .with_context(|| format!("failed to read lock file {}", self.lock.display()))?;
        let lock: Value = serde_json::from_slice(&text).context("the lock file is not JSON")?;
        Ok(lock["authToken"].as_str().context("the lock file has no authToken")?.to_owned())
    }

    /// Connects an MCP client with the right token.
    pub async fn client(&self) -> Result<McpClient> {
        McpClient::connect(self.port, &self.token()?).await
    }

    /// Runs `oarlock` with this engine chosen by `--engine`; see [`Oarlock::run`].
    pub async fn ide<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String> {
        let port = self.port.to_string();
        let mut all: Vec<&OsStr> = vec!["ide".as_ref()];
        all.extend(arguments.iter().map(AsRef::as_ref));
        all.extend(["--engine".as_ref(), OsStr::new(&port)]);
        self.oarlock.run(&all).await.map_err(|error| error.context(self.account()))
    }

    /// All events so far.
    #[must_use]
    pub fn events(&self) -> &Record<Value> {
        &self.events
    }

    /// The first event of this name, past or future.
    pub async fn event(&self, name: &str, within: Duration) -> Result<Value> {
        self.event_where(name, within, |_| true).await
    }

    /// The first event of this name, past or future, for which `wanted` holds.
    pub async fn event_where(
        &self,
        name: &str,
        within: Duration,
        wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        self.event_after(0, name, within, wanted).await
    }

    /// The first such event after the mark (the length of [`Engine::events`] at some time).
    pub async fn event_after(
        &self,
        mark: usize,
        name: &str,
        within: Duration,
        mut wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let what = format!("the engine's event {name:?}");
        let found =
            self.events.wait_after(mark, &what, within, |event| event["event"] == name && wanted(event));
        found.await.map_err(|error| error.context(self.complaint()))
    }

    /// The first line on its stderr, past or future, that contains `text`.
    pub async fn complaint_with(&self, text: &str, within: Duration) -> Result<String> {
        self.complaints
            .wait_for(&format!("a complaint about {text:?}"), within, |line| line.contains(text))
            .await
    }

    /// Asks it to stop (SIGTERM) and waits until it has.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM).await
    }

    /// Kills it at once (SIGKILL) and waits until it is gone.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL).await
    }

    /// Sends it a signal that ends it, and waits until it has ended.
    pub async fn signal(&mut self, signal: Signal) -> Result<()> {
        let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else {
            bail!("the engine has already ended; {}", self.account());
        };
        kill_process(pid, signal).context("failed to signal the engine")?;
        let ended = tokio::time::timeout(STOP_LIMIT, self.child.wait()).await;
        ended.with_context(|| format!("the engine outlived {signal:?}; {}", self.account()))??;
        Ok(())
    }

    /// Its events and what it printed on stderr, for failure messages.
    #[must_use]
    pub fn account(&self) -> String {
        format!("the engine's events:\n{}\n{}", self.events.tail(), self.complaint())
    }

    fn complaint(&self) -> String {
        format!("the engine's stderr:\n{}", self.complaints.tail())
    }
}

async fn read_lines<T: Clone + std::fmt::Debug>(
    pipe: impl AsyncRead + Unpin,
    record: Record<T>,
    parse: impl Fn(String) -> T,
) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        record.push(parse(line));
    }
    record.end();
}
