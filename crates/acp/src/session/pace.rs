//! Reading what the CLI streams in larger pieces.
//!
//! The CLI writes each delta by itself, thousands in a second. Whoever wakes up for every one pays more for waking than
//! for reading, and the client pays for a message each. So after a piece of a stream the next look is a moment later, and
//! finds what has come meanwhile. The first piece after a silence is never held.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use oarlock_agent::transport::{Launch, Reader, Transport};
use oarlock_agent::{Error, Options};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Less than a frame of a fast screen, and at its usual speed the CLI does not fill its pipe in it.
const PAUSE: Duration = Duration::from_millis(8);
/// What a line of a stream begins with.
const STREAM: &[u8] = br#"{"type":"stream_event","#;
/// What is in one that has a piece of a block. What opens a message or a block has not: the first words come next.
const DELTA: &[u8] = br#""content_block_delta""#;

/// Has the CLI's output read in larger pieces.
pub(super) fn pace(options: Options) -> Options {
    options.spawn_with(|launch: Launch| -> Result<Transport, Error> {
        let mut transport = launch.start()?;
        transport.stdout = Box::pin(Paced::new(transport.stdout));
        Ok(transport)
    })
}

struct Paced {
    inner: Reader,
    /// Set after a piece of a stream: nothing is read before it is over.
    pause: Pin<Box<Sleep>>,
    pausing: bool,
}

impl Paced {
    fn new(inner: Reader) -> Self {
        Self { inner, pause: Box::pin(sleep(Duration::ZERO)), pausing: false }
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.pausing {
            ready!(self.pause.as_mut().poll(cx));
            self.pausing = false;
        }
        let before = buffer.filled().len();
        ready!(self.inner.as_mut().poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        // Whole lines only: what is large comes in parts, and the next part is there already.
        if is_delta(read) && read.ends_with(b"\n") {
            self.pause.as_mut().reset(Instant::now() + PAUSE);
            self.pausing = true;
        }
        Poll::Ready(Ok(()))
    }
}

/// Is the first line a piece of a block?
fn is_delta(read: &[u8]) -> bool {
    let line = read.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(STREAM) && line.windows(DELTA.len()).any(|part| part == DELTA)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const LINE: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\"}}\n";
    const START: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\"}}\n";

    #[tokio::test(start_paused = true)]
    async fn only_what_follows_a_delta_is_held() {
        let (mut cli, ours) = tokio::io::duplex(1 << 16);
        let mut paced = Paced::new(Box::pin(ours));
        let mut buffer = [0; 1 << 12];
        let start = Instant::now();
        // The first is read at once; the second and third wait, and come as one.
        cli.write_all(LINE).await.unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), LINE.len());
        assert_eq!(start.elapsed(), Duration::ZERO);
        cli.write_all(LINE).await.unwrap();
        cli.write_all(LINE).await.unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), 2 * LINE.len());
        assert!((PAUSE..2 * PAUSE).contains(&start.elapsed()));
        // After a silence it is a first one again.
        tokio::time::sleep(4 * PAUSE).await;
        let start = Instant::now();
        cli.write_all(LINE).await.unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), LINE.len());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_delta_or_not_whole_is_not_waited_after() {
        let (mut cli, ours) = tokio::io::duplex(1 << 16);
        let mut paced = Paced::new(Box::pin(ours));
        let mut buffer = [0; 1 << 12];
        let start = Instant::now();
        for part in [&b"{\"type\":\"result\"}\n"[..], START, &LINE[..LINE.len() - 1]] {
            cli.write_all(part).await.unwrap();
            assert_eq!(paced.read(&mut buffer).await.unwrap(), part.len());
        }
        drop(cli);
        assert_eq!(paced.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
