//! A WebSocket client written out by hand: every header and every frame is the test's to choose, and it shares no code
//! with the engine.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::within;

pub(crate) const CONTINUE: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// The answer to the key that every handshake of these tests sends (RFC 6455, section 1.3).
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A request to upgrade, whose every line can be changed.
#[derive(Debug, Clone)]
pub(crate) struct Upgrade {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Upgrade {
    /// What the real CLI sends, with everything in its order.
    pub(crate) fn like_the_cli(port: u16, token: &str) -> Self {
        let headers = [
            ("Host", format!("127.0.0.1:{port}")),
            ("Connection", "Upgrade".into()),
            ("Upgrade", "websocket".into()),
            ("Sec-WebSocket-Version", "13".into()),
            ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits".into()),
            ("Sec-WebSocket-Key", KEY.into()),
            ("Sec-WebSocket-Protocol", "mcp".into()),
            ("User-Agent", "claude-code/2.1.325 (cli)".into()),
            ("X-Claude-Code-Ide-Authorization", token.to_owned()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { line: "GET / HTTP/1.1".into(), headers }
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.line = format!("GET {path} HTTP/1.1");
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// One more header, also when there is one of that name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub(crate) fn text(&self) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}\r\n", self.line)
    }
}

/// What a server answered to a request.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) last: bool,
    pub(crate) opcode: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code and reason of a close frame.
    pub(crate) fn close(&self) -> (u16, String) {
        assert_eq!(self.opcode, CLOSE, "{self:?}");
        let (code, reason) = self.payload.split_at(2);
        (u16::from_be_bytes([code[0], code[1]]), String::from_utf8(reason.to_vec()).unwrap())
    }
}

/// A connection to the engine, before or after its upgrade.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    unread: Vec<u8>,
    /// The frames of a message that is not complete, kept here so that waiting for it can be given up.
    partial: Vec<u8>,
}

impl Socket {
    pub(crate) async fn connect(port: u16) -> Self {
        let stream = within("connect", TcpStream::connect(("127.0.0.1", port))).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, unread: Vec::new(), partial: Vec::new() }
    }

    /// Asks for an upgrade; what comes back says whether it was given.
    pub(crate) async fn upgrade(&mut self, request: &Upgrade) -> Response {
        self.write(request.text().as_bytes()).await;
        self.response().await
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within("write", self.stream.write_all(bytes)).await.unwrap();
    }

    /// As [`write`](Self::write), for a server that may be gone by now.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> bool {
        within("write", self.stream.write_all(bytes)).await.is_ok()
    }

    /// Writes as much as the server takes in a while, for one that has stopped reading.
    pub(crate) async fn write_for(&mut self, bytes: &[u8], time: Duration) -> bool {
        tokio::time::timeout(time, self.stream.write_all(bytes)).await.is_ok_and(|written| written.is_ok())
    }

    async fn fill(&mut self) -> bool {
        // A reset is an end too: a server need not read what a stranger has to say.
        within("read", self.stream.read_buf(&mut self.unread)).await.unwrap_or(0) > 0
    }

    /// The head of a response, and the body of one that is no upgrade.
    pub(crate) async fn response(&mut self) -> Response {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill().await, "the server closed without an answer: {:?}", self.unread);
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = String::new();
        if status != 101 {
            while self.fill().await {}
            body = String::from_utf8(std::mem::take(&mut self.unread)).unwrap();
        }
        Response { status, head, body }
    }

    pub(crate) async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let frame = frame(true, opcode, payload);
        self.write(&frame).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send(TEXT, text.as_bytes()).await;
    }

    /// The next frame; `None` when the connection is over.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, length)) = parse(&self.unread) {
                self.unread.drain(..length);
                return Some(frame);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// The next message as a whole; pings on the way are answered. `Err` with the close frame when that comes.
    pub(crate) async fn message(&mut self) -> Result<String, Option<Frame>> {
        loop {
            let frame = self.frame().await.ok_or(None)?;
            match frame.opcode {
                TEXT | CONTINUE => {
                    self.partial.extend_from_slice(&frame.payload);
                    if frame.last {
                        return Ok(String::from_utf8(std::mem::take(&mut self.partial)).unwrap());
                    }
                }
                PING => self.send(PONG, &frame.payload).await,
                PONG => {}
                CLOSE => return Err(Some(frame)),
                opcode => panic!("a frame with opcode {opcode}"),
            }
        }
    }

    /// Cuts the connection without a goodbye, with a reset if the system does one.
    pub(crate) fn cut(self) {
        let _ = self.stream.set_zero_linger();
    }
}

/// A client's frame, masked as it must be.
pub(crate) fn frame(last: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![opcode | if last { 0x80 } else { 0 }];
    match payload.len() {
        length @ 0..126 => bytes.push(0x80 | length as u8),
        length @ 126..65536 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A server's frame and its length, if all of it is there.
fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    assert_eq!(second & 0x80, 0, "a server's frame must not be masked");
    assert_eq!(first & 0x70, 0, "no extension was agreed on");
    let (length, start) = match second {
        126 => (u16::from_be_bytes(bytes.get(2..4)?.try_into().unwrap()).into(), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().unwrap()), 10),
        short => (short.into(), 2),
    };
    let end = start + usize::try_from(length).unwrap();
    let payload = bytes.get(start..end)?.to_vec();
    Some((Frame { last: first & 0x80 != 0, opcode: first & 0x0f, payload }, end))
}
