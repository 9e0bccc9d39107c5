//! Messages over a WebSocket: tungstenite's frames, with small buffers and bounded writes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, Utf8Bytes};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error as WsError};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{Close, Frames, ReadError};

/// A large message goes out in frames of this size. Otherwise tungstenite would copy all of it into its write buffer,
/// keep that buffer for as long as the connection lives, and move its rest at every partial write.
const FRAGMENT: usize = 64 * 1024;
/// tungstenite's own default of 128 KiB for each direction would be most of an idle client's memory.
const READ_BUFFER: usize = 16 * 1024;
const WRITE_BUFFER: usize = 4 * 1024;
/// How long a goodbye may take.
const LINGER: Duration = Duration::from_secs(1);

/// What a WebSocket connection may do.
#[derive(Debug, Clone, Copy)]
pub struct WsOptions {
    /// The largest message taken.
    pub max_message: usize,
}

impl Default for WsOptions {
    fn default() -> Self {
        Self { max_message: 64 << 20 }
    }
}

/// A WebSocket after its handshake.
pub struct Ws<S> {
    inner: WebSocketStream<Counted<S>>,
    max_message: usize,
    /// The rest of a large message, and whether its first frame is out.
    rest: Option<(Bytes, bool)>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Ws<S> {
    /// The server's end; `read_ahead` is what was read behind the HTTP head.
    pub async fn server(stream: S, read_ahead: Vec<u8>, options: WsOptions) -> Self {
        let counted = Counted { inner: stream, read: read_ahead.len() as u64 };
        let config = Some(config(options));
        let inner = WebSocketStream::from_partially_read(counted, read_ahead, Role::Server, config).await;
        Self { inner, max_message: options.max_message, rest: None }
    }

    /// The client's end: asks for the upgrade, offering a subprotocol and sending some headers.
    ///
    /// # Errors
    /// [`DialError`] when the server refuses or is no WebSocket server.
    pub async fn dial(
        stream: S,
        url: &str,
        subprotocol: &'static str,
        headers: &[(&'static str, &str)],
        options: WsOptions,
    ) -> Result<Self, DialError> {
        let mut request = url.into_client_request().map_err(DialError::from)?;
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| DialError::Failed("a header value is not text".into()))
        };
        request.headers_mut().insert("Sec-WebSocket-Protocol", value(subprotocol)?);
        for (name, text) in headers {
            request.headers_mut().insert(*name, value(text)?);
        }
        let counted = Counted { inner: stream, read: 0 };
        let (inner, _) = client_async_with_config(request, counted, Some(config(options))).await?;
        Ok(Self { inner, max_message: options.max_message, rest: None })
    }

    fn classify(&self, error: WsError) -> ReadError {
        match error {
            WsError::Capacity(_) => ReadError::TooLarge { limit: self.max_message },
            WsError::Io(error) => ReadError::Io(error),
            // A process that was killed says no goodbye; that is no fault in what it said before.
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                ReadError::Io(io::ErrorKind::ConnectionReset.into())
            }
            other => ReadError::Protocol(other.to_string()),
        }
    }
}

fn config(options: WsOptions) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message))
}

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The server answered with an HTTP error.
    #[error("refused with HTTP {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the server said.
        message: String,
    },
    /// There is no WebSocket server, or the connection broke.
    #[error("{0}")]
    Failed(String),
}

impl From<WsError> for DialError {
    fn from(error: WsError) -> Self {
        match error {
            WsError::Http(response) => {
                let body = response.body().as_deref().unwrap_or_default();
                let message = String::from_utf8_lossy(body).trim().to_owned();
                Self::Refused { status: response.status().as_u16(), message }
            }
            other => Self::Failed(other.to_string()),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Frames for Ws<S> {
    type Text = Utf8Bytes;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Utf8Bytes, ReadError>>> {
        loop {
            return Poll::Ready(match ready!(self.inner.poll_next_unpin(cx)) {
                Some(Ok(Message::Text(text))) => Some(Ok(text)),
                // Some clients send text in binary frames; what is UTF-8 is welcome.
                Some(Ok(Message::Binary(bytes))) => {
                    Some(Utf8Bytes::try_from(bytes).map_err(|_| ReadError::NotText))
                }
                // Pings are answered by tungstenite; the answer leaves with the next flush. A close is answered too,
                // and then the stream ends.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_))) => {
                    continue;
                }
                Some(Err(error)) => Some(Err(self.classify(error))),
                None => None,
            });
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.inner.poll_ready_unpin(cx)).map_err(into_io)?;
            let Some((rest, started)) = self.rest.as_mut() else { return Poll::Ready(Ok(())) };
            let part = rest.split_to(rest.len().min(FRAGMENT));
            let opcode = if *started { Data::Continue } else { Data::Text };
            *started = true;
            let last = rest.is_empty();
            if last {
                self.rest = None;
            }
            let frame = Frame::message(part, OpCode::Data(opcode), last);
            self.inner.start_send_unpin(Message::Frame(frame)).map_err(into_io)?;
        }
    }

    fn start_send(&mut self, text: String) -> io::Result<()> {
        if text.len() > FRAGMENT {
            self.rest = Some((text.into(), false));
            return Ok(());
        }
        self.inner.start_send_unpin(Message::text(text)).map_err(into_io)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(cx))?;
        self.inner.poll_flush_unpin(cx).map_err(into_io)
    }

    fn start_close(&mut self, close: &Close) {
        let reason = &close.reason[..close.reason.floor_char_boundary(123)];
        let frame = CloseFrame { code: close.code.into(), reason: reason.into() };
        // A connection that is already gone needs no goodbye.
        let _ = self.inner.start_send_unpin(Message::Close(Some(frame)));
    }

    async fn close(&mut self, close: Close) {
        let goodbye = async {
            self.start_close(&close);
            let _ = self.inner.flush().await;
            let stream = self.inner.get_mut();
            let _ = stream.shutdown().await;
            // Closing a socket with unread bytes resets it, and the other side would never see why: read them.
            let mut sink = [0; 4096];
            while matches!(stream.read(&mut sink).await, Ok(1..)) {}
        };
        let _ = tokio::time::timeout(LINGER, goodbye).await;
    }

    fn heard(&self) -> u64 {
        self.inner.get_ref().read
    }
}

fn into_io(error: WsError) -> io::Error {
    match error {
        WsError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::NotConnected, other.to_string()),
    }
}

/// A stream that counts what it reads, so that half a message is a sign of life too.
struct Counted<S> {
    inner: S,
    read: u64,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.read += (buf.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
