//! A scripted stand-in for the Claude Code CLI in stream-json mode.
//!
//! It plays a scenario as if it were `claude`, so that an integration can be tested with no account, no network and
//! no model. It behaves like the real CLI where a client can tell: frames and their order, permissions, hooks,
//! in-process MCP tools, interrupts, queued messages, exit codes.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), oarlock_script::Error> {
//! use oarlock_script::{Launch, Script, play};
//!
//! let script = Script::parse(
//!     r#"
//!     [[turn]]
//!     steps = [{ text = "Hello there." }]
//!     "#,
//! )?;
//! let prompt = br#"{"type":"user","message":{"role":"user","content":"hi"}}"#;
//! let mut out = Vec::new();
//! let outcome = play(&script, &Launch::default(), prompt.as_slice(), &mut out, tokio::io::sink()).await;
//! assert_eq!(outcome.code, 0);
//! assert!(String::from_utf8_lossy(&out).contains("Hello there."));
//! # Ok(())
//! # }
//! ```
//!
#![doc = include_str!("../README.md")]

mod answer;
mod command;
mod ending;
mod error;
mod hook;
mod host;
mod launch;
mod mcp;
mod message;
mod parse;
mod permission;
mod play;
mod player;
mod result;
mod script;
mod step;
mod task;
mod template;
mod tool;
mod trace;
mod turn;

pub use error::Error;
pub use launch::Launch;
pub use play::{Outcome, play};
pub use script::Script;

/// The page about the format of scripts, for programs that show it to their users.
pub const FORMAT: &str = include_str!("../README.md");
