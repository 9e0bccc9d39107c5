//! The handle by which an editor talks to its engine.

use std::path::Path;
use std::sync::{Arc, Weak};

use oarlock_proto::ide::FileDiagnostics;

use crate::clients::ClientInfo;
use crate::consent::Consent;
use crate::diffs::{Decision, PendingDiff};
use crate::editor::{FileProblems, Selection};
use crate::engine::Engine;
use crate::event::Event;
use crate::share::Mentioned;
use crate::{Error, Result, paths, tools};

/// A handle to a running engine, for the editor behind it. Clones are cheap and mean the same engine.
///
/// It does not keep the engine alive: once the server has stopped, its methods do nothing or say so.
#[derive(Debug, Clone)]
pub struct Ide {
    engine: Weak<Engine>,
}

impl Ide {
    pub(crate) fn new(engine: &Arc<Engine>) -> Self {
        Self { engine: Arc::downgrade(engine) }
    }

    fn running(&self) -> Result<Arc<Engine>> {
        self.engine.upgrade().ok_or(Error::Stopped)
    }

    /// The person selected something, or moved the cursor. Call it as often as you like: it is debounced, equal ones
    /// are dropped, and what the consent rules withhold never leaves.
    pub fn selection_changed(&self, selection: Selection) {
        if let Ok(engine) = self.running() {
            engine.share.select(Some(selection));
        }
    }

    /// Nothing is selected and no file is active any more.
    pub fn selection_cleared(&self) {
        if let Ok(engine) = self.running() {
            engine.share.select(None);
        }
    }

    /// A file was closed: a selection in it is taken back.
    pub fn file_closed(&self, path: &Path) {
        if let Ok(engine) = self.running() {
            engine.share.file_closed(path);
        }
    }

    /// Mentions a file, or lines of it (zero-based, inclusive), in the prompt of every CLI or of the one with a pid.
    ///
    /// # Errors
    /// When the consent rules withhold the file, no client has that pid, or the engine has stopped.
    pub fn mention(&self, path: &Path, lines: Option<(u32, u32)>, to: Option<u32>) -> Result<Mentioned> {
        let engine = self.running()?;
        engine.share.mention(&engine.clients, path, lines, to)
    }

    /// Diagnostics changed. Only some dialects have a word for it; the CLI asks by itself.
    pub fn diagnostics_changed(&self, changed: Vec<FileProblems>) {
        let Ok(engine) = self.running() else { return };
        let files: Vec<FileDiagnostics> = changed
            .into_iter()
            .map(|file| FileDiagnostics { uri: paths::file_uri(&file.path), diagnostics: file.diagnostics })
            .collect();
        engine.share.diagnostics_changed(&engine.clients, engine.settings.dialect, &files);
    }

    /// [`Editor::abilities`](crate::Editor::abilities) gives something else now: clients are told to list the tools
    /// again.
    pub fn abilities_changed(&self) {
        let Ok(engine) = self.running() else { return };
        engine.clients.each(|client| {
            if client.initialized {
                client.peer.notify(tools::LIST_CHANGED, &());
            }
        });
    }

    /// Stops or resumes the sharing of selections and mentions.
    pub fn pause(&self, paused: bool) {
        if let Ok(engine) = self.running() {
            engine.share.pause(&engine.clients, paused);
            engine.emit(&Event::Paused { paused });
        }
    }

    /// Whether sharing is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.running().is_ok_and(|engine| engine.share.is_paused())
    }

    /// Other consent rules; what they newly cover is taken back.
    pub fn set_consent(&self, consent: Consent) {
        if let Ok(engine) = self.running() {
            engine.share.set_consent(consent);
        }
    }

    /// Who is connected.
    #[must_use]
    pub fn clients(&self) -> Vec<ClientInfo> {
        self.running().map(|engine| engine.clients.list()).unwrap_or_default()
    }

    /// The diffs that wait for a decision.
    #[must_use]
    pub fn diffs(&self) -> Vec<PendingDiff> {
        self.running().map(|engine| engine.diffs.list()).unwrap_or_default()
    }

    /// Accepts a diff by its short id, its path or its full name; with other contents if they are given.
    ///
    /// # Errors
    /// When no diff, or more than one, has that name, or the engine has stopped.
    pub fn accept(&self, name: &str, contents: Option<String>) -> Result<()> {
        self.decide(name, &Decision::Accept { contents: contents.map(Into::into), by: "command" })
    }

    /// Rejects a diff by its short id, its path or its full name.
    ///
    /// # Errors
    /// When no diff, or more than one, has that name, or the engine has stopped.
    pub fn reject(&self, name: &str) -> Result<()> {
        self.decide(name, &Decision::Reject { by: "command" })
    }

    fn decide(&self, name: &str, decision: &Decision) -> Result<()> {
        let engine = self.running()?;
        let (id, _) = engine.diffs.find(name)?;
        if engine.diffs.decide(id, decision) {
            return Ok(());
        }
        Err(Error::WhichDiff { name: name.to_owned(), ambiguous: false, waiting: engine.diffs.list() })
    }
}
