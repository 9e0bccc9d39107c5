//! How the agent is to behave: what the user may set.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarlock_agent::Error;
use oarlock_agent::options::ThinkingDisplay;

/// Finds the `claude` to start, when it is needed.
pub type Find = Arc<dyn Fn() -> Result<PathBuf, Error> + Send + Sync>;

/// How the agent is to behave.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Finds the `claude` to start. It is asked when a session begins, not before.
    pub program: Find,
    /// A session that has been idle for so long lets its `claude` go; the next prompt brings it back. `None`: never.
    pub park_after: Option<Duration>,
    /// Do edits go through the editor (`fs/write_text_file`), so that it can review them?
    pub review_edits: bool,
    /// Shall thinking be shown, and how? `None` leaves it to the CLI.
    pub thinking: Option<ThinkingDisplay>,
    /// Where models, commands and modes are remembered, so that a session opens at once. `None`: in the user's cache
    /// directory.
    pub cache_dir: Option<PathBuf>,
    /// Called when a prompt has been answered: what it needed may be given back.
    pub on_rest: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The command that starts this agent, for logging in by a terminal: `oarlock acp`.
    pub command: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            program: Arc::new(oarlock_agent::program::find),
            park_after: Some(Duration::from_secs(30 * 60)),
            review_edits: false,
            thinking: None,
            cache_dir: None,
            on_rest: None,
            command: vec!["oarlock".into(), "acp".into()],
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("park_after", &self.park_after)
            .field("review_edits", &self.review_edits)
            .finish_non_exhaustive()
    }
}
