//! Moving JSON-RPC messages. This crate knows sockets, frames and envelopes; it knows no method name.
//!
//! - [`frame`]: one message at a time over a WebSocket, over lines, or in memory.
//! - [`Connection`]: drives one peer: reads, hands messages to a [`Service`], writes what it and others answer.
//! - [`Peer`]: a handle to the other side: notify, request, close.
//! - [`Responder`]: the right, and the duty, to answer one request.
//! - [`relay`]: passes messages on between two framings, unread.
//! - [`listen`]: accepts WebSockets, after the checks that keep strangers out.
//!
//! Everything of one connection happens in one task: a request that can be answered at once is answered without a
//! channel, a lock that is fought over, or a wake-up in between.
#![forbid(unsafe_code)]

mod connection;
pub mod frame;
pub mod http;
pub mod listen;
mod outbox;
mod peer;
mod relay;
mod responder;

pub use connection::{Connection, Ended, Limits, Service, Tasks};
pub use frame::{Close, Frames, ReadError};
pub use peer::{CallError, Peer};
pub use relay::relay;
pub use responder::Responder;
