//! Drive Claude Code from Rust.
//!
//! The crate starts the user's own `claude`, speaks its headless protocol (stream-json with control requests), and gives
//! what it says as typed messages ([`oarlock_proto::stream`], re-exported as [`stream`]).

#![forbid(unsafe_code)]

pub use oarlock_proto::stream;

mod error;
pub mod history;
pub mod options;
pub mod program;
pub mod reduce;
pub mod store;
pub mod tool;
pub mod transport;

pub use error::Error;
pub use options::Options;
