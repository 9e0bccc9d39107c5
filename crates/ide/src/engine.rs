//! What all sessions of a server share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oarlock_proto::ide::Dialect;
use oarlock_proto::mcp::Implementation;

use crate::Result;
use crate::clients::Clients;
use crate::consent::Consent;
use crate::control::Watchers;
use crate::diffs::Diffs;
use crate::editor::Editor;
use crate::event::{Event, Observer};
use crate::keepalive::Keepalive;
use crate::paths::Workspace;
use crate::share::Share;

/// How an engine behaves; see [`Options`](crate::Options) for what each means.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) info: Implementation,
    pub(crate) dialect: Dialect,
    pub(crate) keepalive: Option<Keepalive>,
    pub(crate) debounce: Duration,
    pub(crate) settle: Duration,
    pub(crate) diagnostics: DiagnosticsTimes,
    pub(crate) allow_write: bool,
}

/// How long `getDiagnostics` may take before it answers `[]`.
///
/// 2.1.325 ignores what comes later than 0.4 s for one file and 2 s for all; 2.1.197 waits for ever, with a frozen turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagnosticsTimes {
    /// For one file.
    pub file: Duration,
    /// For all files.
    pub all: Duration,
    /// For a call that the model asked for.
    pub model: Duration,
}

impl Default for DiagnosticsTimes {
    fn default() -> Self {
        Self {
            file: Duration::from_millis(350),
            all: Duration::from_millis(1800),
            model: Duration::from_secs(10),
        }
    }
}

pub(crate) struct Engine {
    pub(crate) editor: Arc<dyn Editor>,
    pub(crate) settings: Settings,
    pub(crate) workspace: Workspace,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) diffs: Diffs,
    pub(crate) clients: Clients,
    pub(crate) share: Share,
    observer: Option<Arc<dyn Observer>>,
    /// Control connections that watch events.
    pub(crate) watchers: Watchers,
}

impl Engine {
    pub(crate) fn new(
        editor: Arc<dyn Editor>,
        settings: Settings,
        folders: Vec<PathBuf>,
        consent: Consent,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Self> {
        Ok(Self {
            editor,
            settings,
            workspace: Workspace::new(&folders)?,
            folders,
            diffs: Diffs::default(),
            clients: Clients::default(),
            share: Share::new(consent),
            observer,
            watchers: Watchers::default(),
        })
    }

    /// Somebody wants to know what happens.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some() || self.watchers.any()
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
        self.watchers.tell(event);
    }
}
