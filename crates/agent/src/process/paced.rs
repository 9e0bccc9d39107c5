//! Reading what the CLI streams in larger pieces.
//!
//! The CLI writes each delta by itself, thousands in a second. Whoever wakes up for every one pays more for waking than
//! for reading. So after a piece of a stream the pipe is not watched for a moment, and then it has all that has come
//! meanwhile. The first piece after a silence is never held.

use std::future::Future as _;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, Sleep, sleep};

/// What a line of a stream begins with.
const STREAM: &[u8] = br#"{"type":"stream_event","#;
/// What is in one that has a piece of a block. What opens a message or a block has not: the first words come next.
const DELTA: &[u8] = br#""content_block_delta""#;

/// A pipe that rests after a piece of a stream.
pub(super) struct Paced {
    pipe: Pipe,
    pause: Duration,
    rest: Pin<Box<Sleep>>,
}

enum Pipe {
    Watched(Receiver),
    /// Taken out of the runtime's watch, which would wake up for every write.
    Resting(OwnedFd),
    /// It could not be watched again.
    Broken,
}

impl Paced {
    pub(super) fn new(pipe: OwnedFd, pause: Duration) -> io::Result<Self> {
        let pipe = Pipe::Watched(Receiver::from_owned_fd(pipe)?);
        Ok(Self { pipe, pause, rest: Box::pin(sleep(Duration::ZERO)) })
    }

    fn rest(&mut self) -> io::Result<()> {
        if let Pipe::Watched(receiver) = std::mem::replace(&mut self.pipe, Pipe::Broken) {
            self.pipe = Pipe::Resting(receiver.into_nonblocking_fd()?);
            self.rest.as_mut().reset(Instant::now() + self.pause);
        }
        Ok(())
    }

    fn wake(&mut self) -> io::Result<()> {
        if let Pipe::Resting(pipe) = std::mem::replace(&mut self.pipe, Pipe::Broken) {
            self.pipe = Pipe::Watched(Receiver::from_owned_fd(pipe)?);
        }
        Ok(())
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if matches!(self.pipe, Pipe::Resting(_)) {
            ready!(self.rest.as_mut().poll(cx));
            self.wake()?;
        }
        let Pipe::Watched(receiver) = &mut self.pipe else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let before = buffer.filled().len();
        ready!(Pin::new(receiver).poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        // Whole lines only: what is large comes in parts, and the next part is there already.
        if is_delta(read) && read.ends_with(b"\n") {
            self.rest()?;
        }
        Poll::Ready(Ok(()))
    }
}

/// Is the first line a piece of a block?
fn is_delta(read: &[u8]) -> bool {
    if !read.starts_with(STREAM) {
        return false;
    }
    let end = memchr::memchr(b'\n', read).unwrap_or(read.len());
    memchr::memmem::find(&read[..end], DELTA).is_some()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(40);
    const LINE: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\"}}\n";
    const START: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\"}}\n";

    fn pipe() -> (std::io::PipeWriter, Paced) {
        let (reader, writer) = std::io::pipe().unwrap();
        (writer, Paced::new(reader.into(), PAUSE).unwrap())
    }

    #[tokio::test]
    async fn only_what_follows_a_delta_is_held() {
        let (mut cli, mut paced) = pipe();
        let mut buffer = [0; 1 << 12];
        let start = Instant::now();
        // The first is read at once; the second and third wait, and come as one.
        cli.write_all(LINE).unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), LINE.len());
        let first = Instant::now();
        cli.write_all(LINE).unwrap();
        cli.write_all(LINE).unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), 2 * LINE.len());
        assert!(start.elapsed() >= PAUSE && first >= start, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn what_is_no_delta_or_not_whole_is_not_waited_after() {
        let (mut cli, mut paced) = pipe();
        let mut buffer = [0; 1 << 12];
        for part in [&b"{\"type\":\"result\"}\n"[..], START, &LINE[..LINE.len() - 1]] {
            cli.write_all(part).unwrap();
            assert_eq!(paced.read(&mut buffer).await.unwrap(), part.len());
            assert!(matches!(paced.pipe, Pipe::Watched(_)));
        }
        drop(cli);
        assert_eq!(paced.read(&mut buffer).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_pipe_that_ends_while_it_rests_is_read_to_its_end() {
        let (mut cli, mut paced) = pipe();
        let mut buffer = [0; 1 << 12];
        cli.write_all(LINE).unwrap();
        assert_eq!(paced.read(&mut buffer).await.unwrap(), LINE.len());
        cli.write_all(START).unwrap();
        drop(cli);
        assert_eq!(paced.read(&mut buffer).await.unwrap(), START.len());
        assert_eq!(paced.read(&mut buffer).await.unwrap(), 0);
    }
}
