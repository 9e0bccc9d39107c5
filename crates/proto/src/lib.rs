//! The words of Claude Code's protocols: serde types without I/O, without a runtime, without a clock.
//!
//! - [`jsonrpc`]: the envelope that all three protocols share, read without copying and without loss.
//! - [`mcp`]: the part of the Model Context Protocol that an IDE speaks.
//! - [`ide`]: what is special to the IDE integration: notifications, diagnostics, dialects.
//! - [`acp`]: the Agent Client Protocol, as an agent speaks it.
//! - [`stream`]: the headless protocol (stream-json): every message a host and the CLI exchange.
//! - [`text`]: large text, shared and read without a detour.
//! - [`pos`]: positions, always UTF-16, and the ways to get there from what an editor counts in.
#![forbid(unsafe_code)]

pub mod acp;
pub mod ide;
pub mod jsonrpc;
pub mod mcp;
pub mod pos;
pub mod stream;
pub mod text;
