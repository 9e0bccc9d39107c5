//! The HTTP head that opens a WebSocket, read by hand so that every check happens in the order we want, and a stranger
//! who speaks plain HTTP gets a helpful answer.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// A request's head.
#[derive(Debug)]
pub struct Head {
    /// Such as `GET`.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    headers: Vec<(String, Vec<u8>)>,
    /// What was read behind the head.
    pub rest: Vec<u8>,
}

/// An answer that is not an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// One line for people: what is wrong, and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal with a status and a line for people.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl Head {
    /// Every value of a header, in order. Names are compared without case.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_slice())
    }

    /// The first value of a header.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Whether a comma-separated header has a word, without case.
    #[must_use]
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|found| found.eq_ignore_ascii_case(word))
    }

    /// The words of a comma-separated header, over all its lines.
    pub fn words<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.all(name)
            .filter_map(|value| std::str::from_utf8(value).ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|word| !word.is_empty())
    }

    /// Reads a head from bytes; `None` when it is not complete yet.
    ///
    /// # Errors
    /// A [`Refusal`] when it is not HTTP, or too large.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => {
                let target = request.path.unwrap_or("/");
                let path = target.split(['?', '#']).next().unwrap_or("/").to_owned();
                let method = request.method.unwrap_or_default().to_owned();
                let headers = request
                    .headers
                    .iter()
                    .map(|h| (h.name.to_owned(), h.value.trim_ascii().to_vec()))
                    .collect();
                Ok(Some(Self { method, path, headers, rest: bytes[length..].to_vec() }))
            }
            Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => {
                Err(Refusal::new(431, format!("the request's head is larger than {MAX_HEAD} bytes")))
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                Err(Refusal::new(431, format!("the request has more than {MAX_HEADERS} headers")))
            }
            Err(error) => Err(Refusal::new(400, format!("not an HTTP request: {error}"))),
        }
    }

    /// Reads a head from a stream.
    ///
    /// # Errors
    /// `Ok(Err)` when it deserves an answer, `Err` when the connection broke.
    pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<Self, Refusal>> {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match Self::parse(&bytes) {
                Ok(Some(head)) => return Ok(Ok(head)),
                Ok(None) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
    }
}

/// Checks what RFC 6455 wants of an upgrade, and gives the value of `Sec-WebSocket-Accept`.
///
/// # Errors
/// A [`Refusal`] that tells a plain HTTP client what this port is for.
pub fn accept_key(head: &Head) -> Result<String, Refusal> {
    if !head.has_word("upgrade", "websocket") || !head.has_word("connection", "upgrade") {
        return Err(Refusal::new(426, "this port speaks MCP over WebSocket; plain HTTP is not served"));
    }
    if head.method != "GET" {
        return Err(Refusal::new(405, "a WebSocket is opened with GET"));
    }
    if head.first("sec-websocket-version") != Some(b"13") {
        return Err(Refusal::new(426, "only WebSocket version 13 is spoken"));
    }
    let key = head.first("sec-websocket-key").filter(|key| !key.is_empty());
    key.map(derive_accept_key).ok_or_else(|| Refusal::new(400, "the header Sec-WebSocket-Key is missing"))
}

/// Writes the answer that turns the connection into a WebSocket.
///
/// # Errors
/// When the connection broke.
pub async fn write_upgrade(
    stream: &mut (impl AsyncWrite + Unpin),
    accept_key: &str,
    subprotocol: Option<&str>,
) -> io::Result<()> {
    let subprotocol =
        subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept_key}\r\n{subprotocol}\r\n"
    );
    stream.write_all(text.as_bytes()).await
}

/// Writes a refusal and ends the connection.
///
/// # Errors
/// When the connection broke.
pub async fn write_refusal(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    refusal: &Refusal,
) -> io::Result<()> {
    let reason = match refusal.status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let upgrade =
        if refusal.status == 426 { "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" } else { "" };
    let body = format!("oarlock: {}\n", refusal.message);
    let text = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         {upgrade}Connection: close\r\n\r\n{body}",
        refusal.status,
        body.len(),
    );
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await?;
    // Unread bytes would turn the close into a reset that swallows the answer.
    let mut sink = [0; 4096];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}
