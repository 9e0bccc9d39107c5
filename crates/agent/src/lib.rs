//! Drive Claude Code from Rust.
//!
//! The crate starts the user's own `claude`, speaks its headless protocol (stream-json with control requests), and gives
//! what it says as typed messages ([`oarlock_proto::stream`], re-exported as [`stream`]).

#![forbid(unsafe_code)]

pub use oarlock_proto::stream;

mod ask;
#[cfg(feature = "blocking")]
pub mod blocking;
mod control;
mod dialog;
mod error;
pub mod guide;
pub mod history;
pub mod hook;
mod limits;
pub mod options;
pub mod permission;
mod pool;
mod process;
pub mod program;
pub mod reduce;
mod session;
pub mod store;
pub mod tool;
pub mod transport;

pub use ask::{Answer, Ask, AskStream, ask};
pub use dialog::Question;
pub use error::Error;
pub use options::Options;
pub use pool::Pool;
pub use session::{Buffer, Events, Exit, Phase, Prompt, Session, State, Task};
