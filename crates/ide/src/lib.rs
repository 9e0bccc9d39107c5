//! The IDE side of Claude Code's IDE integration, for any editor.
//!
//! An editor announces itself by a lock file and serves MCP over a WebSocket on this machine; the interactive CLI
//! connects to it, shows its diffs there, reads diagnostics and learns of the selection. This crate is all of that but
//! the editor: implement [`Editor`], give it to [`Server::start`], and keep the [`Ide`] handle to tell it what the
//! person does.
//!
//! - [`editor`]: the seam, with an example that the real CLI accepts.
//! - [`server`]: the engine on a socket; [`lock`], [`state`] and [`token`] are how it is announced and found again.
//! - [`tools`]: what clients can call; [`vault`]: the plain methods of one dialect.
//! - [`consent`]: what may leave; [`paths`]: what may be touched.
//! - [`discover`]: discovery as the CLI does it; [`client`]: the other end of the connection.
//! - [`headless`]: an editor without a screen.
//!
//! Three promises. A pending diff is only ever accepted by an explicit accept. The engine never writes a file that a
//! diff proposes. Every request is answered exactly once.
#![forbid(unsafe_code)]

pub mod client;
mod clients;
pub mod consent;
mod control;
mod diffs;
pub mod discover;
pub mod editor;
mod engine;
mod error;
pub mod event;
mod handle;
pub mod headless;
mod keepalive;
pub mod lock;
pub mod paths;
mod private;
pub mod process;
pub mod server;
mod session;
mod share;
pub mod state;
pub mod token;
pub mod tools;
pub mod vault;

pub use clients::ClientInfo;
pub use diffs::PendingDiff;
pub use editor::Editor;
pub use engine::DiagnosticsTimes;
pub use error::{Error, Result};
pub use event::{Event, Observer};
pub use handle::Ide;
pub use keepalive::Keepalive;
pub use server::{Limits, Options, Server};
pub use share::Mentioned;
