//! The raw limits: the least a client could do with the stream, with no SDK around it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{client, plain};

/// What a raw client does with each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// Finds its end.
    Lines,
    /// Reads it with derived, internally tagged, owned types.
    Tagged,
    /// Looks for its `type` first, then reads it as that type.
    Peek,
}

/// Runs as a client in a process of its own.
pub(crate) fn run(raw: Raw, fake: &Path) -> Result<()> {
    let mut child = Command::new(fake)
        .args(["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start {}", fake.display()))?;
    let mut stdin = child.stdin.take().context("stdin is a pipe")?;
    let mut stdout = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
    stdin.write_all(
        b"{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"initialize\"}}\n",
    )?;
    ensure!(stdout.read_line(&mut String::new())? > 0, "the fake CLI ended");

    client::wait_for_go()?;
    stdin.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"},\"parent_tool_use_id\":null}\n")?;
    let stdout = stdout.into_inner();
    let messages = match raw {
        Raw::Lines => count(stdout, |line| Ok(line.starts_with(br#"{"type":"result""#))),
        Raw::Tagged => count(stdout, plain::read_tagged),
        Raw::Peek => count(stdout, plain::peek_and_read),
    }?;
    client::report_done(messages)?;
    drop(stdin);
    child.wait()?;
    Ok(())
}

/// Counts lines up to the one that is the last.
fn count(mut stdout: ChildStdout, mut is_last: impl FnMut(&[u8]) -> Result<bool>) -> Result<u64> {
    let mut buffer = vec![0; 256 << 10];
    let (mut filled, mut messages) = (0, 0);
    loop {
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
        let read = stdout.read(&mut buffer[filled..])?;
        ensure!(read > 0, "the stream ended before its last message");
        let (mut start, mut from) = (0, filled);
        filled += read;
        while let Some(end) = memchr::memchr(b'\n', &buffer[from..filled]) {
            messages += 1;
            if is_last(&buffer[start..from + end])? {
                return Ok(messages);
            }
            start = from + end + 1;
            from = start;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
}
