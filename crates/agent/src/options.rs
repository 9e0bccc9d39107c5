//! Everything that a session can be started with.

use std::sync::Arc;

use crate::Error;
use crate::session::{Callbacks, Limits};
use crate::stream::{Initialize, TranscriptMirror};
use crate::transport::{Launch, SpawnWith};

/// Everything that a session can be started with.
#[derive(Clone, Default)]
pub struct Options {
    program: Option<std::path::PathBuf>,
    pub(crate) callbacks: Callbacks,
    pub(crate) limits: Limits,
    pub(crate) on_stderr: Option<Arc<dyn Fn(&str) + Send + Sync>>,
    pub(crate) mirror: Option<Arc<dyn Fn(&TranscriptMirror) + Send + Sync>>,
    pub(crate) spawn_with: Option<Arc<SpawnWith>>,
}

impl Options {
    /// As the CLI does it by itself.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// The program.
    #[must_use]
    pub fn program(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }
    /// schema
    #[must_use]
    pub fn json_schema(self, _schema: crate::stream::Json) -> Self {
        self
    }
    /// launch
    ///
    /// # Errors
    /// none
    pub fn launch(&self) -> Result<Launch, Error> {
        let args = "--output-format=stream-json --input-format=stream-json --verbose --include-partial-messages --replay-user-messages";
        let mut args: Vec<std::ffi::OsString> = args.split(' ').map(Into::into).collect();
        if self.callbacks.can_use_tool.is_some() {
            args.push("--permission-prompt-tool=stdio".into());
        }
        Ok(Launch {
            program: self.program.clone().unwrap_or_default(),
            args,
            env: [("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS".into(), Some("1".into()))].into(),
            env_clear: false,
            cwd: None,
            files: Vec::new(),
        })
    }
    pub(crate) fn initialize(&self) -> Initialize {
        Initialize::default()
    }
    pub(crate) fn replays_messages(&self) -> bool {
        true
    }
}

pub(crate) fn explain_unknown_option(_stderr: &str) -> Option<Error> {
    None
}
