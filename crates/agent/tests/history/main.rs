//! The CLI's transcripts, on files like its own.

mod chain;
mod change;
mod desk;
mod export;
mod list;
mod scale;
mod search;
