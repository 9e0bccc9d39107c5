//! The commands, one file each.

pub(crate) mod claude;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod ide;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod reference;
pub(crate) mod serve;

/// The runtime of a command: one thread, because everything here waits much more than it works.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
