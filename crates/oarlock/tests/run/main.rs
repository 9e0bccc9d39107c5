//! `oarlock run` with the scripted CLI in place of `claude`: as a program uses it, and as a person does.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod feed;
mod piped;
mod stage;
mod terminal;
