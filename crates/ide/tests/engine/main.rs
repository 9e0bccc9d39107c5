//! The engine from outside: a server in this process, clients over real sockets, and an editor that does what each
//! test says. The names of tests begin with the clause they prove, as `PROTOCOL.md` numbers them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/mod.rs"]
mod support;

mod control;
mod diagnostics;
mod dialects;
mod diff_property;
mod diffs;
mod gate;
mod headless;
mod keepalive;
mod lifecycle;
mod mcp;
mod replay;
mod rmcp_client;
mod selection;
mod vault;
