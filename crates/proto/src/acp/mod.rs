//! The Agent Client Protocol, version 1, as an agent speaks it.
//!
//! What a client sends is read liberally: unknown fields are passed over, unknown kinds are values. What an agent sends has
//! exactly the fields of the published schema; the tests hold every line against it.
//!
//! ```
//! use oarlock_proto::acp::{ContentBlock, ContentChunk, SessionUpdate};
//!
//! let chunk = ContentChunk { content: ContentBlock::text("Hello"), message_id: Some("m1".into()), meta: None };
//! let update = SessionUpdate::AgentMessageChunk(chunk);
//! assert_eq!(
//!     serde_json::to_string(&update).expect("JSON"),
//!     r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"},"messageId":"m1"}"#,
//! );
//! ```

mod client;
mod config;
mod content;
mod elicitation;
mod initialize;
mod session;
mod tool;
mod update;

pub use client::*;
pub use config::*;
pub use content::*;
pub use elicitation::*;
pub use initialize::*;
pub use session::*;
pub use tool::*;
pub use update::*;

/// The version of the protocol that this module speaks.
pub const VERSION: u16 = 1;

/// The client must log in first.
pub const AUTH_REQUIRED: i32 = -32000;
/// There is no such session or file.
pub const NOT_FOUND: i32 = -32002;
/// The request was cancelled by `$/cancel_request`.
pub const CANCELLED: i32 = -32800;

/// A bag for what the protocol does not know (`_meta`).
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// An object without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Empty {}
