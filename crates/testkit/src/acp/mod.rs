//! A client of the Agent Client Protocol for tests, and what every agent must keep in every run.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`client`](Client) | a process that is spoken to in lines; all of them are recorded |
//! | [`abilities`](Abilities) | what a client says it can do: like Zed, everything, nothing |
//! | [`picture`](Picture) | what a user would see now: the updates folded together |
//! | [`laws`] | what a recording must keep, whatever it is about |
//! | [`schema`] | the published JSON schemas |
//! | [`mcp`] | a server of the Model Context Protocol, over HTTP |
//! | [`peers`] | other clients: the Python SDK, `acpx`, the Rust SDK |

mod abilities;
mod client;
pub mod laws;
pub mod mcp;
pub mod peers;
mod picture;
pub mod reference;
pub mod schema;

pub use abilities::Abilities;
pub use client::{Answer, Ask, Client, Ended, Line, Reply};
pub use picture::{Call, Item, Picture};
