//! The CLI's transcripts, on files like its own.
#![allow(clippy::unwrap_used, reason = "a test")]

mod chain;
mod change;
mod desk;
mod export;
mod list;
mod scale;
mod search;
