//! How the agent is to behave: what the user may set.

use std::path::PathBuf;
use std::time::Duration;

use oarlock_agent::options::ThinkingDisplay;

/// How the agent is to behave.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The `claude` to start; it is looked for when there is none.
    pub program: Option<PathBuf>,
    /// A session that has been idle for so long lets its `claude` go; the next prompt brings it back. `None`: never.
    pub park_after: Option<Duration>,
    /// Do edits go through the editor (`fs/write_text_file`), so that it can review them?
    pub review_edits: bool,
    /// Shall thinking be shown, and how? `None` leaves it to the CLI.
    pub thinking: Option<ThinkingDisplay>,
    /// Where models, commands and modes are remembered, so that a session opens at once. `None`: in the user's cache
    /// directory.
    pub cache_dir: Option<PathBuf>,
    /// The command that starts this agent, for logging in by a terminal: `oarlock acp`.
    pub command: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            program: None,
            park_after: Some(Duration::from_secs(30 * 60)),
            review_edits: false,
            thinking: None,
            cache_dir: None,
            command: vec!["oarlock".into(), "acp".into()],
        }
    }
}
