//! A client under observation: a process of its own, whichever SDK and language it is.
//!
//! It starts the fake CLI, initialises the session and prints `ready`; at a line on its stdin it sends the prompt, counts
//! all messages up to the result, prints `done N`, and stays until its stdin has another line or ends.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use oarlock_testkit::bench;

use crate::fake;
use crate::traffic::Recording;

/// What one run cost the client. The fake CLI is not in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Prompt to result, in seconds.
    pub(crate) wall: f64,
    /// CPU time over that, in seconds.
    pub(crate) cpu: f64,
    /// The most memory it ever had, in bytes.
    pub(crate) peak: u64,
}

/// Runs a client once, to its end.
pub(crate) fn observe(mut command: Command, recording: &Recording) -> Result<Cost> {
    let mut stderr = tempfile::tempfile()?;
    command.env(fake::RECORDING, &recording.path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.try_clone()?);
    run(command, recording).with_context(|| {
        let mut words = String::new();
        let _ = stderr.rewind().and_then(|()| stderr.read_to_string(&mut words));
        // The end of it: some print half a program before they say what is wrong.
        let words: Vec<char> = words.trim().chars().rev().take(1000).collect();
        format!("stderr: {}", words.into_iter().rev().collect::<String>())
    })
}

fn run(command: Command, recording: &Recording) -> Result<Cost> {
    let mut client = Client::start(command)?;
    client.expect("ready")?;
    let pid = client.child.id();
    let cpu = bench::cpu(pid)?;
    let start = Instant::now();
    client.stdin.write_all(b"go\n")?;
    let done = client.expect("done ")?;
    let wall = start.elapsed();
    let cpu = bench::cpu(pid)? - cpu;
    let peak = bench::peak(pid)?;
    ensure!(
        done.parse() == Ok(recording.messages),
        "it saw {done} of the {} messages of {}",
        recording.messages,
        recording.path.display()
    );
    Ok(Cost { wall: wall.as_secs_f64(), cpu: cpu.as_secs_f64(), peak })
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
        let stdin = child.stdin.take().context("stdin is a pipe")?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
        Ok(Self { child, stdin, stdout })
    }

    /// What follows a word on the next line.
    fn expect(&mut self, word: &str) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        match line.trim_end().strip_prefix(word) {
            Some(rest) => Ok(rest.to_owned()),
            None if line.is_empty() => bail!("the client ended before it said `{}`", word.trim_end()),
            None => bail!("the client said {line:?} and not `{}`", word.trim_end()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client's side: the session is up.
pub(crate) fn wait_for_go() -> Result<()> {
    say("ready")?;
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

/// The client's side: the result is there.
pub(crate) fn report_done(messages: u64) -> Result<()> {
    say(&format!("done {messages}"))?;
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
