//! What Oarlock's tests stand on: a scripted model API, a network cage, the real Claude Code CLI in a
//! pseudo terminal, and raw clients for the engine.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`model`] | a stand-in for the Anthropic Messages API that plays scripts and remembers every request |
//! | [`cage`] | a network namespace that has nothing but loopback, for the whole test process |
//! | [`cli`] | the real CLI in a chosen version, and the bare environment it runs in |
//! | [`sdk`] | the official Python and TypeScript SDKs |
//! | [`acp`] | a client of the Agent Client Protocol, and the laws that every run of an agent must keep |
//! | [`tui`] | the interactive CLI behind a pseudo terminal: type, press, wait for text |
//! | [`engine`] | a running `oarlock serve --json`: its events, its commands |
//! | [`ws`], [`mcp`] | a raw WebSocket client, and an ordinary MCP client on top of it |
//! | [`fuzz`] | fuzz targets as plain functions |
//! | [`install`], [`report`] | what the end-to-end programs share: getting things, and saying how it went |
//! | [`mod@bench`] | what the benchmarks share: bars, and what a process costs |
//! | [`record`] | the one way to wait: an append-only record that wakes whoever waits for an entry |
//!
//! Every wait is driven by an event and bounded by a time limit, and its error shows what did happen.

pub mod acp;
pub mod bench;
pub mod cage;
pub mod cli;
pub mod engine;
pub mod fuzz;
pub mod install;
pub mod mcp;
pub mod model;
pub mod record;
pub mod report;
pub mod sdk;
pub mod tui;
pub mod ws;
