//! Playing a script: the one entry point.

use std::pin::pin;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::player::Player;
use crate::{Launch, Script};

/// How a play ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The exit code.
    pub code: i32,
    /// The script asked for a death by SIGKILL. In a process of its own the caller kills itself; in-process, both ends
    /// of the pipes are simply dropped.
    pub killed: bool,
}

impl Outcome {
    pub(crate) const fn exit(code: i32) -> Self {
        Self { code, killed: false }
    }
}

/// Plays a script as `claude` would run: reads the host's lines, writes frames, until the input ends or the script says
/// so.
pub async fn play(
    script: &Script,
    launch: &Launch,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
    stderr: impl AsyncWrite + Send + Unpin,
) -> Outcome {
    let player = Player::new(&script.scenario, launch, Box::new(writer), Box::new(stderr));
    if launch.wants_version() {
        let line = format!("{}\n", script.version());
        let _ = player.write(line.as_bytes()).await;
        return Outcome::exit(0);
    }
    if let Some(outcome) = player.refuse_launch().await {
        return outcome;
    }
    if let Some(trace) = &script.trace {
        return player.replay(trace, reader).await;
    }
    let mut host = pin!(player.read(reader));
    let mut turns = pin!(player.take_turns());
    let mut tasks = pin!(player.run_tasks());
    let mut is_open = true;
    let interrupt = launch.interrupt();
    loop {
        tokio::select! {
            biased;
            end = &mut host, if is_open => match end {
                Ok(()) => is_open = false,
                Err(outcome) => return outcome,
            },
            outcome = &mut turns => return outcome,
            outcome = &mut tasks => return outcome,
            () = interrupt.notified() => player.interrupt_for_good(),
        }
    }
}
