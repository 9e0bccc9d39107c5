//! An agent of the Agent Client Protocol (version 1) that drives the user's own Claude Code.
//!
//! An editor starts `oarlock acp` and speaks JSON-RPC with it, a message a line. Each session is a task (`session`) that
//! starts a `claude`, reads what it says as events, and shows them to the editor.
//!
//! | what | where |
//! | --- | --- |
//! | which method is which | `server` |
//! | a session's life: start, park, die, come back | `session` |
//! | which prompt is answered when, and with what | `turn` |
//! | events to `session/update` | `translate` |
//! | permissions, questions, forms | `ask` |
//! | modes, models, and other choices | `choices`, `cache` |
//! | a prompt's content | `prompt` |
//! | sessions of the past | `history` |
//! | live output of commands | `tail` |
//! | edits that go through the editor | `review` |
//! | recording | `trace` |

#![forbid(unsafe_code)]

mod ask;
mod auth;
mod cache;
mod choices;
mod context;
mod fault;
mod history;
mod prompt;
mod review;
mod server;
mod session;
mod settings;
mod tail;
mod trace;
mod translate;
mod turn;

pub use server::serve;
pub use settings::{Find, Settings};
pub use trace::{Recorder, Tap};
