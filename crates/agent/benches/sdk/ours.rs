//! Our SDK under the benchmark: its public interface, as a program would use it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use oarlock_agent::Options;
use oarlock_agent::stream::Message;

use crate::client;

/// Runs as a client in a process of its own.
pub(crate) fn run(fake: &Path, pause: Duration) -> Result<()> {
    // What `#[tokio::main]` gives.
    let runtime = tokio::runtime::Runtime::new().context("failed to start tokio")?;
    runtime.block_on(session(fake, pause))
}

async fn session(fake: &Path, pause: Duration) -> Result<()> {
    let (session, mut events) = Options::new().program(fake).connect().await?;
    client::wait_for_go()?;
    session.send("go").await?;
    let mut messages = 0;
    loop {
        let message = events.next().await.context("the stream ended before its last message")??;
        // The CLI's echo of the prompt, which the other clients have not asked for.
        if matches!(&message, Message::User(user) if user.is_replay == Some(true)) {
            continue;
        }
        messages += 1;
        if messages == 1 && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if matches!(message, Message::Result(_)) {
            break;
        }
    }
    client::report_done(messages)?;
    let exit = session.close().await?;
    if !exit.success() {
        bail!("the fake CLI failed: {exit}");
    }
    Ok(())
}
