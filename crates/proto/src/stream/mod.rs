//! Claude Code's headless protocol (stream-json): every line that a host and the CLI say to each other.
//!
//! [`decode`] reads a line into a [`Message`]; `serde_json::to_string` writes one. The names are the protocol's own; a
//! field whose name had to change says in its documentation how it is written on the wire.
//!
//! # Nothing is lost, nothing is fatal
//!
//! The CLI learns new words every week, so every type here is open:
//!
//! - An enum has a variant for what it does not know: `Unknown` keeps the whole object, `Other` the word.
//! - A struct has a field [`extra`](Extra) with the fields that it does not know. It is empty, and costs nothing, when
//!   there are none.
//! - A known field whose value has the wrong type is in `extra` too, and reads as missing.
//! - Only what the protocol always sends is not an `Option`. When such a field is missing all the same it reads as
//!   empty, and `is_complete()` tells. Whether a field was missing or `null` is remembered.
//! - So what was read is written as the same JSON value. The order of fields and blanks between them may change.
//!
//! # How it is read
//!
//! A line is read once, from the text straight into its type: a tag (`type`, `subtype`) comes first on the wire, and
//! what follows is read as the kind it names. Fields that come before the tag are kept as text until it is known, and only when something has the wrong type is the line read a second time, field by field. Bodies that
//! few readers need ([`Json`]) are not looked into before somebody asks.

mod content;
mod control;
mod decode;
mod event;
pub mod hook;
mod json;
mod macros;
mod message;
mod permission;
mod record;
pub mod reply;
mod request;
mod result;
mod system;
mod thinking;
mod tool;
mod usage;

pub use content::*;
pub use control::*;
pub use decode::*;
pub use event::*;
pub use json::Json;
pub use message::*;
pub use permission::*;
pub use record::{Extra, Unknown};
pub use request::*;
pub use result::*;
pub use system::*;
pub use thinking::*;
pub use tool::*;
pub use usage::*;
