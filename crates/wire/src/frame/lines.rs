//! Messages as lines: one JSON text a line, as on stdin and stdout.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader};

use super::{Close, Frames, ReadError};

/// So much may be gathered before it is written: one system call for several messages.
const GATHERED: usize = 16 * 1024;
/// How long the last lines may take to be read.
const GOODBYE: Duration = Duration::from_secs(1);

/// Messages over a reader and a writer, one a line. `\r\n` ends a line too, empty lines are passed over, and a last
/// line without an end counts.
pub struct Lines<R, W> {
    reader: BufReader<R>,
    writer: W,
    line: Vec<u8>,
    /// Set while the rest of a line that was too large is thrown away.
    skipping: bool,
    ended: bool,
    out: Vec<u8>,
    written: usize,
    heard: u64,
    max_message: usize,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// Lines of at most `max_message` bytes.
    pub fn new(reader: R, writer: W, max_message: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            writer,
            line: Vec::new(),
            skipping: false,
            ended: false,
            out: Vec::new(),
            written: 0,
            heard: 0,
            max_message,
        }
    }

    /// Writes all that was taken.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, &self.out[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.written = 0;
        // A large message must not leave its buffer behind.
        if self.out.capacity() > 4 * GATHERED {
            self.out = Vec::new()
        } else {
            self.out.clear()
        }
        Poll::Ready(Ok(()))
    }

    fn take_line(&mut self) -> Option<Result<String, ReadError>> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipping) {
            return Some(Err(ReadError::Skipped { limit: self.max_message }));
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(String::from_utf8(line).map_err(|_| ReadError::NotText))
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> Frames for Lines<R, W> {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<String, ReadError>>> {
        while !self.ended {
            let bytes = ready!(Pin::new(&mut self.reader).poll_fill_buf(cx)).map_err(ReadError::Io)?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > self.max_message {
                self.skipping = true;
                self.line = Vec::new();
            }
            if !self.skipping {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.ended = bytes.is_empty();
            self.heard += used as u64;
            Pin::new(&mut self.reader).consume(used);
            if (end.is_some() || self.ended)
                && let Some(line) = self.take_line()
            {
                return Poll::Ready(Some(line));
            }
        }
        Poll::Ready(None)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.len() < GATHERED { Poll::Ready(Ok(())) } else { self.poll_out(cx) }
    }

    fn start_send(&mut self, text: String) -> io::Result<()> {
        let start = self.out.len();
        if start == 0 {
            self.out = text.into_bytes();
        } else {
            self.out.extend_from_slice(text.as_bytes());
        }
        // Between JSON tokens a line end is as good as a blank; inside a string there is none.
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.out.push(b'\n');
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(cx))?;
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn start_close(&mut self, _close: &Close) {}

    async fn close(&mut self, _close: Close) {
        let goodbye = async {
            let _ = std::future::poll_fn(|cx| self.poll_flush(cx)).await;
            let _ = std::future::poll_fn(|cx| Pin::new(&mut self.writer).poll_shutdown(cx)).await;
        };
        // A reader that has stopped reading cannot hold us.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }

    fn heard(&self) -> u64 {
        self.heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn read_all(bytes: &[u8], max: usize) -> Vec<Result<String, String>> {
        let mut lines = Lines::new(bytes, tokio::io::sink(), max);
        let mut all = Vec::new();
        while let Some(line) = std::future::poll_fn(|cx| lines.poll_next(cx)).await {
            all.push(line.map_err(|error| error.to_string()));
        }
        all
    }

    #[tokio::test]
    async fn every_kind_of_line_end_is_read() {
        let all = read_all(b"{\"a\":1}\r\n\n  \n{}\n\xff\nlast", 100).await;
        assert_eq!(
            all,
            [Ok("{\"a\":1}".into()), Ok("{}".into()), Err("not UTF-8 text".into()), Ok("last".into())]
        );
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_one_error_and_the_next_is_read() {
        let all = read_all(b"0123456789\nok\n", 5).await;
        assert_eq!(
            all,
            [Err("message larger than the limit of 5 bytes; it was passed over".into()), Ok("ok".into())]
        );
    }

    #[tokio::test]
    async fn a_message_never_spans_lines() {
        let mut wire = Vec::new();
        let mut lines = Lines::new(&b""[..], &mut wire, 1000);
        lines.start_send("{\n  \"a\":\r\n1}".to_owned()).unwrap();
        std::future::poll_fn(|cx| lines.poll_flush(cx)).await.unwrap();
        drop(lines);
        assert_eq!(read_all(&wire, 1000).await, [Ok("{   \"a\":  1}".into())]);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(texts in proptest::collection::vec("[^\r\n\\s][^\r\n]{0,40}[^\r\n\\s]", 0..20)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut wire = Vec::new();
                let mut lines = Lines::new(&b""[..], &mut wire, 1000);
                for text in &texts {
                    std::future::poll_fn(|cx| lines.poll_ready(cx)).await.unwrap();
                    lines.start_send(text.clone()).unwrap();
                }
                std::future::poll_fn(|cx| lines.poll_flush(cx)).await.unwrap();
                drop(lines);
                let read: Vec<_> = read_all(&wire, 1000).await.into_iter().map(Result::unwrap).collect();
                assert_eq!(read, texts);
            });
        }
    }
}
