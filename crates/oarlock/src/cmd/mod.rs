//! The commands, one file each.

pub(crate) mod demo;
pub(crate) mod ide;
pub(crate) mod mcp;
pub(crate) mod reference;
pub(crate) mod serve;

/// The runtime of a command: one thread, because everything here waits much more than it works.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
