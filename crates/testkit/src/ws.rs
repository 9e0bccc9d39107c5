//! A raw WebSocket client for protocol tests: every header, every frame bit, half-open sockets.
//!
//! It is written by hand on purpose: the engine uses a library, and a test with the same library on both ends would
//! share its mistakes.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// The header that carries the token of the lock file.
pub const TOKEN_HEADER: &str = "X-Claude-Code-Ide-Authorization";
/// The key of RFC 6455, section 1.3, whose accept value is known without computing it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(15);

/// A handshake to be sent, at first exactly as the CLI sends it.
#[derive(Debug, Clone)]
pub struct Handshake {
    port: u16,
    request_line: String,
    headers: Vec<(String, String)>,
}

/// The server's answer to a handshake.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body of a refusal.
    pub body: String,
    socket: Option<Socket>,
}

impl Handshake {
    /// What the CLI sends to a server on `port`, with this token.
    #[must_use]
    pub fn new(port: u16, token: &str) -> Self {
        let headers = [
            ("Host", format!("127.0.0.1:{port}")),
            ("Connection", "Upgrade".to_owned()),
            ("Upgrade", "websocket".to_owned()),
            ("Sec-WebSocket-Version", "13".to_owned()),
            ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits".to_owned()),
            ("Sec-WebSocket-Key", KEY.to_owned()),
            ("Sec-WebSocket-Protocol", "mcp".to_owned()),
            ("User-Agent", "claude-code/2.1.325 (cli)".to_owned()),
            (TOKEN_HEADER, token.to_owned()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { port, request_line: "GET / HTTP/1.1".to_owned(), headers }
    }

    /// Replaces the request line.
    #[must_use]
    pub fn request_line(mut self, line: &str) -> Self {
        line.clone_into(&mut self.request_line);
        self
    }

    /// Leaves out every header of this name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces every header of this name by one.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Adds a header, also if there is one of this name.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The bytes of the request.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.request_line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// Sends it and reads the answer, whatever that is.
    pub async fn send(&self) -> Result<Answer> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .with_context(|| format!("failed to connect to 127.0.0.1:{}", self.port))?;
        socket.set_nodelay(true)?;
        socket.write_all(&self.bytes()).await?;
        timeout(HANDSHAKE_LIMIT, read_answer(socket)).await.context("the handshake was not answered")?
    }

    /// Sends it and expects to be let in.
    pub async fn connect(&self) -> Result<Socket> {
        let answer = self.send().await?;
        let (status, body) = (answer.status, answer.body.clone());
        answer.accepted().with_context(|| format!("the handshake was refused: {status} {body}"))
    }
}

impl Answer {
    /// The value of a header, whose name is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The open WebSocket, if the answer was 101 with the right accept key.
    #[must_use]
    pub fn accepted(self) -> Option<Socket> {
        self.socket
    }
}

async fn read_answer(mut socket: TcpStream) -> Result<Answer> {
    let mut bytes = Vec::new();
    let (status, headers, length) = loop {
        ensure!(socket.read_buf(&mut bytes).await? > 0, "the server hung up without an answer");
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        if let httparse::Status::Complete(length) =
            response.parse(&bytes).context("the answer is not HTTP/1.1")?
        {
            let headers: Vec<(String, String)> = response
                .headers
                .iter()
                .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
                .collect();
            break (response.code.unwrap_or(0), headers, length);
        }
    };
    let rest = bytes.split_off(length);
    let mut answer = Answer { status, headers, body: String::new(), socket: None };
    if status == 101 {
        ensure!(answer.header("sec-websocket-accept") == Some(ACCEPT), "wrong Sec-WebSocket-Accept");
        let (read, write) = socket.into_split();
        answer.socket = Some(Socket {
            reader: FrameReader { read, buffer: rest, begun: None },
            writer: FrameWriter { write },
        });
        return Ok(answer);
    }
    let mut body = rest;
    // A reset after the body is how a server says that it does not want the rest of a request.
    let _ = socket.read_to_end(&mut body).await;
    answer.body = String::from_utf8_lossy(&body).into_owned();
    Ok(answer)
}

/// One WebSocket frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whether it ends its message.
    pub fin: bool,
    /// 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong.
    pub opcode: u8,
    /// Reserved bits, as they stand in the first byte (0x40, 0x20, 0x10).
    pub reserved: u8,
    /// The payload, unmasked.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A whole text message.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { fin: true, opcode: 1, reserved: 0, payload: text.as_bytes().to_vec() }
    }

    /// Any frame that ends its message.
    #[must_use]
    pub fn new(opcode: u8, payload: impl Into<Vec<u8>>) -> Self {
        Self { fin: true, opcode, reserved: 0, payload: payload.into() }
    }

    /// The same, with more to come.
    #[must_use]
    pub fn unfinished(mut self) -> Self {
        self.fin = false;
        self
    }

    /// The bytes on the wire; clients must mask.
    #[must_use]
    pub fn bytes(&self, mask: Option<[u8; 4]>) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.fin) << 7 | self.reserved | self.opcode];
        let masked = u8::from(mask.is_some()) << 7;
        let length = self.payload.len();
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(length @ 0..=125), _) => bytes.push(masked | length),
            (_, Ok(length)) => {
                bytes.push(masked | 126);
                bytes.extend(length.to_be_bytes());
            }
            _ => {
                bytes.push(masked | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        match mask {
            None => bytes.extend(&self.payload),
            Some(mask) => {
                bytes.extend(mask);
                bytes.extend(self.payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
            }
        }
        bytes
    }
}

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// A ping; [`Socket::next`] answers it and goes on.
    Ping(Vec<u8>),
    /// The server closes, with code and reason if it gave them.
    Close(Option<(u16, String)>),
    /// The connection ended without a close frame.
    End,
}

/// An open WebSocket.
#[derive(Debug)]
pub struct Socket {
    reader: FrameReader<OwnedReadHalf>,
    writer: FrameWriter<OwnedWriteHalf>,
}

impl Socket {
    /// Sends a text message.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        self.send(&Frame::text(text)).await
    }

    /// Sends one frame, masked.
    pub async fn send(&mut self, frame: &Frame) -> Result<()> {
        self.writer.send(frame).await
    }

    /// Sends bytes as they are.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.send_raw(bytes).await
    }

    /// Ends our half of the TCP connection without a close frame; reading goes on.
    pub async fn half_close(&mut self) -> Result<()> {
        Ok(self.writer.write.shutdown().await?)
    }

    /// The next frame, whatever it is; none at the end of the connection.
    pub async fn next_frame(&mut self, within: Duration) -> Result<Option<Frame>> {
        timeout(within, self.reader.next()).await.context("no frame came")?
    }

    /// The next whole message; pings on the way are answered.
    pub async fn next(&mut self, within: Duration) -> Result<Message> {
        let read = async {
            loop {
                match self.reader.next_message().await? {
                    Message::Ping(payload) => self.writer.send(&Frame::new(10, payload)).await?,
                    message => return Ok(message),
                }
            }
        };
        timeout(within, read).await.with_context(|| format!("no message came within {within:?}"))?
    }

    /// Both directions, apart.
    #[must_use]
    pub(crate) fn split(self) -> (FrameReader<OwnedReadHalf>, FrameWriter<OwnedWriteHalf>) {
        (self.reader, self.writer)
    }
}

#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    read: R,
    buffer: Vec<u8>,
    /// The message whose end has not come yet.
    begun: Option<Frame>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// The next whole message. Safe to cancel: what has been read is kept.
    pub(crate) async fn next_message(&mut self) -> Result<Message> {
        loop {
            let Some(frame) = self.next().await? else { return Ok(Message::End) };
            let ends = frame.fin;
            match frame.opcode {
                0 => self.begun.as_mut().context("a continuation of nothing")?.payload.extend(frame.payload),
                1 | 2 => self.begun = Some(frame),
                8 => {
                    let reason = frame.payload.split_first_chunk::<2>().map(|(code, reason)| {
                        (u16::from_be_bytes(*code), String::from_utf8_lossy(reason).into_owned())
                    });
                    return Ok(Message::Close(reason));
                }
                9 => return Ok(Message::Ping(frame.payload)),
                10 => continue,
                other => bail!("a frame with the unknown opcode {other}"),
            }
            if let Some(whole) = self.begun.take_if(|_| ends) {
                return Ok(match whole.opcode {
                    1 => Message::Text(String::from_utf8(whole.payload).context("a text that is not UTF-8")?),
                    _ => Message::Binary(whole.payload),
                });
            }
        }
    }

    /// The next frame. Safe to cancel: bytes already read stay in the buffer.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some((frame, length)) = parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(Some(frame));
            }
            match self.read.read_buf(&mut self.buffer).await {
                Ok(0) => {
                    ensure!(self.buffer.is_empty(), "the connection ended within a frame");
                    return Ok(None);
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error).context("failed to read from the WebSocket"),
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct FrameWriter<W> {
    write: W,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) async fn send(&mut self, frame: &Frame) -> Result<()> {
        self.send_raw(&frame.bytes(Some([0x12, 0x34, 0x56, 0x78]))).await
    }

    async fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.write.write_all(bytes).await.context("failed to write to the WebSocket")
    }
}

/// The first whole frame of `bytes` and its length. Server frames must not be masked.
fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    ensure!(second & 0x80 == 0, "the server masked a frame");
    let (length, head) = match second & 0x7f {
        126 => match rest.first_chunk::<2>() {
            Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
            None => return Ok(None),
        },
        127 => match rest.first_chunk::<8>() {
            Some(length) => (u64::from_be_bytes(*length), 10),
            None => return Ok(None),
        },
        short => (u64::from(short), 2),
    };
    let end = head + usize::try_from(length).context("a frame longer than memory")?;
    let Some(payload) = bytes.get(head..end) else { return Ok(None) };
    let frame = Frame {
        fin: first & 0x80 != 0,
        opcode: first & 0x0f,
        reserved: first & 0x70,
        payload: payload.to_vec(),
    };
    Ok(Some((frame, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_class_are_read_as_written() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let frame = Frame::new(2, vec![7; length]).unfinished();
            let bytes = frame.bytes(None);
            assert_eq!(parse(&bytes).unwrap(), Some((frame, bytes.len())));
            assert_eq!(parse(&bytes[..bytes.len() - 1]).unwrap(), None);
        }
    }

    #[test]
    fn a_masked_frame_is_the_one_of_the_rfc() {
        let bytes = Frame::text("Hello").bytes(Some([0x37, 0xfa, 0x21, 0x3d]));
        assert_eq!(bytes, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
        assert!(parse(&bytes).is_err(), "a server must not mask");
    }

    #[test]
    fn headers_can_be_left_out_replaced_and_doubled() {
        let handshake = Handshake::new(1, "t").without("origin").with("HOST", "evil").and("Host", "two");
        let text = String::from_utf8(handshake.bytes()).unwrap();
        assert!(text.starts_with("GET / HTTP/1.1\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(text.contains("HOST: evil\r\nHost: two\r\n") && !text.contains("127.0.0.1"), "{text}");
    }
}
