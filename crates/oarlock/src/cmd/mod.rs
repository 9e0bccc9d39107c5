//! The commands, one file each.

pub(crate) mod acp;
pub(crate) mod claude;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod ide;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod serve;
pub(crate) mod sessions;

/// Runs a command: one thread, because everything here waits much more than it works. What cannot be interrupted (a read
/// of a terminal or a slow disk) is left behind at the end.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(16).build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}
