//! The output of commands that run long, as it comes: the CLI writes it to a file.

use std::path::PathBuf;

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// The call that the command belongs to.
    pub(crate) tool_use_id: String,
    /// What is new.
    pub(crate) text: String,
}

/// The files that are being written, by call.
#[derive(Debug, Default)]
pub(crate) struct Tails {}

impl Tails {
    /// The command of this call writes to this file.
    pub(crate) fn add(&mut self, tool_use_id: &str, file: PathBuf) {
        let _ = (tool_use_id, file);
    }

    /// Is nothing being written?
    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    /// Waits until it is worth looking again.
    pub(crate) async fn changed(&mut self) {
        std::future::pending::<()>().await;
    }

    /// What is new in all files.
    pub(crate) fn read(&mut self) -> Vec<Output> {
        Vec::new()
    }

    /// The command has ended: what is left in its file.
    pub(crate) fn finish(&mut self, tool_use_id: &str) -> Option<Output> {
        let _ = tool_use_id;
        None
    }
}
