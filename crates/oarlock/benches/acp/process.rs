//! A process under observation that speaks in lines: an adapter, or the CLI.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek as _, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use oarlock_testkit::bench;
use serde_json::Value;

/// Nothing that is measured takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a process may take to end by itself.
const GOODBYE: Duration = Duration::from_secs(8);

/// A line and when it came.
pub(crate) struct Line {
    pub(crate) at: Instant,
    pub(crate) text: String,
}

pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
    stderr: File,
    pub(crate) started: Instant,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let stderr = tempfile::tempfile()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.try_clone()?);
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
        let stdin = child.stdin.take();
        let mut stdout = BufReader::with_capacity(1 << 16, child.stdout.take().context("stdout is a pipe")?);
        // The time of a line is taken where it is read; whoever looks at it may be late.
        let (sender, lines) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            loop {
                let mut text = String::new();
                match stdout.read_line(&mut text) {
                    Ok(1..) if sender.send(Line { at: Instant::now(), text }).is_ok() => {}
                    _ => return,
                }
            }
        });
        Ok(Self { child, stdin, lines, stderr, started })
    }

    /// Writes a message; the time is that before.
    pub(crate) fn send(&mut self, message: &Value) -> Result<Instant> {
        let text = format!("{message}\n");
        let at = Instant::now();
        self.stdin.as_mut().context("stdin is closed")?.write_all(text.as_bytes())?;
        Ok(at)
    }

    pub(crate) fn next(&mut self) -> Result<Line> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("no line for {PATIENCE:?}; {}", self.words()),
            Err(RecvTimeoutError::Disconnected) => bail!("it ended; {}", self.words()),
        }
    }

    /// The end of what it said on stderr.
    fn words(&mut self) -> String {
        let mut words = Vec::new();
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut words));
        let start = words.len().saturating_sub(1000);
        format!("stderr: {}", String::from_utf8_lossy(&words[start..]).trim())
    }

    /// CPU time of all its threads, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64> {
        Ok(bench::cpu(self.child.id())?.as_secs_f64())
    }

    /// Resident memory, in bytes.
    pub(crate) fn memory(&self) -> Result<f64> {
        Ok(bench::resident(self.child.id())? as f64)
    }
}

impl Drop for Process {
    /// Lets it end as a client would: its stdin ends.
    fn drop(&mut self) {
        drop(self.stdin.take());
        let limit = Instant::now() + GOODBYE;
        while Instant::now() < limit {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
