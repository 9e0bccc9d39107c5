//! A copy of the session in a store of the program's own.

use std::path::PathBuf;
use std::sync::Arc;

use super::Options;
use crate::Error;
use crate::history::{Library, Project};
use crate::store::{Existing, Key, Mirror, Pace, Store, materialise};

/// The options of this file.
#[derive(Clone, Default)]
pub(crate) struct Storing {
    store: Option<Arc<dyn Store>>,
    pace: Pace,
}

impl Options {
    /// Keeps a copy of the transcript in a store (`--session-mirror`), and [resumes](Self::resume) a session from there when the
    /// CLI does not have it. A store that fails does not hurt the session; [`Session::close`](crate::Session::close) waits
    /// until it has taken everything.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.storing.store = Some(store);
        self.session_mirror(true)
    }

    /// When the store is given what is new: after each turn, or at once.
    #[must_use]
    pub fn store_pace(mut self, pace: Pace) -> Self {
        self.storing.pace = pace;
        self
    }

    /// The mirror of a session that begins.
    pub(crate) fn mirror(&self) -> Option<Mirror> {
        let store = self.storing.store.clone()?;
        let library = self.library().inspect_err(|error| tracing::warn!(%error, "nothing is stored")).ok()?;
        Some(Mirror::new(store, library.projects_dir()).pace(self.storing.pace))
    }

    /// Brings the session to resume from the store, if it is only there.
    pub(crate) async fn bring_back(&self) -> Result<(), Error> {
        let (Some(store), Some(session)) = (&self.storing.store, &self.conversation.resume) else {
            return Ok(());
        };
        let cwd = self.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let library = self.library()?;
        // A title is looked for by the CLI itself.
        let is_id = uuid::Uuid::try_parse(session).is_ok();
        if is_id && !library.exists(session, &cwd) {
            let key = Key::new(Project::of(cwd).name(), session);
            let load = materialise(store.as_ref(), &key, &library, Existing::Keep);
            let limit = self.limits.start;
            tokio::time::timeout(limit, load).await.map_err(|late| Error::Store {
                action: format!("load session {session} within {limit:?} (see start_timeout)"),
                source: late.into(),
            })??;
        }
        Ok(())
    }

    /// The transcripts of the CLI that these options start.
    fn library(&self) -> Result<Library, Error> {
        match self.environment.config_dir() {
            Some(dir) => Ok(Library::at(dir)),
            None => Library::new(),
        }
    }
}
