//! An editor without a screen: files on disk, and a policy or a reviewer that decides diffs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use oarlock_proto::pos::{self, Range};

use crate::editor::{
    Abilities, Cancelled, DiffOutcome, Document, Editor, EditorError, FileProblems, OpenDiff, OpenFile,
    Opened, Reply, Scope, Select, Selection,
};
use crate::handle::Ide;
use crate::paths;

/// The largest file that is opened.
const MAX_FILE: u64 = 64 << 20;
/// How long a formatter may take.
const FORMATTING: Duration = Duration::from_secs(30);

/// What decides a diff.
#[derive(Clone, Default)]
pub enum OnDiff {
    /// It waits for `oarlock ide accept` or `reject`, or for the CLI's own terminal.
    #[default]
    Wait,
    /// It is accepted as proposed. Only for people who asked for it.
    Accept,
    /// It is rejected.
    Reject,
    /// A person is asked.
    Ask(Arc<dyn Reviewer>),
    /// Nobody can be asked, for this reason; the question stays with the client.
    Nobody(&'static str),
}

/// Someone who can be asked about a change.
pub trait Reviewer: Send + Sync + 'static {
    /// Shows a change and waits for a decision; gives up when `cancelled` fires.
    fn review(
        &self,
        request: OpenDiff,
        cancelled: Cancelled,
    ) -> BoxFuture<'_, Result<DiffOutcome, EditorError>>;
}

/// The headless editor.
///
/// A file is "open" once a client or a command opened it; its text is what is on disk, so nothing is ever dirty.
/// Diagnostics are those that were published to it.
#[derive(Default)]
pub struct HeadlessEditor {
    on_diff: OnDiff,
    formatter: Option<Vec<String>>,
    state: Mutex<State>,
    ide: OnceLock<Ide>,
}

#[derive(Default)]
struct State {
    /// Open files; the last one is active.
    open: Vec<PathBuf>,
    selection: Option<Selection>,
    problems: BTreeMap<PathBuf, FileProblems>,
    /// Set by the first published diagnostics, and never unset: an empty list is an answer too.
    has_diagnostics: bool,
}

impl HeadlessEditor {
    /// A headless editor that decides diffs in this way.
    #[must_use]
    pub fn new(on_diff: OnDiff) -> Self {
        Self { on_diff, ..Self::default() }
    }

    /// Formats files by running a program with the file's path as its last argument.
    #[must_use]
    pub fn with_formatter(mut self, command: Vec<String>) -> Self {
        self.formatter = Some(command).filter(|command| !command.is_empty());
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, request: OpenFile) -> Result<Opened, EditorError> {
        let failed = |error| EditorError::new(format!("failed to open {}: {error}", request.path.display()));
        let path = request.path.clone();
        // Off the engine's thread: a file may be slow, and must not hold up other clients.
        let read = tokio::task::spawn_blocking(move || paths::read_regular(&path, MAX_FILE)).await;
        let bytes = read.map_err(io::Error::other).and_then(|read| read).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let range = request.select.find(&text);
        let selection = Selection {
            path: request.path.clone(),
            range: range.unwrap_or_default(),
            text: range.map(|range: Range| pos::slice(&text, range).to_owned()).unwrap_or_default(),
        };
        let mut state = self.state();
        state.open.retain(|path| *path != request.path);
        state.open.push(request.path.clone());
        state.selection = Some(selection.clone());
        drop(state);
        if let Some(ide) = self.ide.get() {
            ide.selection_changed(selection);
        }
        Ok(Opened {
            language_id: language_id(&request.path).to_owned(),
            line_count: pos::lines(&text).count(),
            selected: range.is_some() || request.select == Select::Nothing,
        })
    }

    fn close(&self, tab: &str) -> bool {
        let mut state = self.state();
        let Some(at) = state.open.iter().position(|path| path.as_os_str() == tab) else { return false };
        let path = state.open.remove(at);
        if state.selection.as_ref().is_some_and(|selection| selection.path == path) {
            state.selection = None;
        }
        drop(state);
        if let Some(ide) = self.ide.get() {
            ide.file_closed(&path);
        }
        true
    }

    async fn run_formatter(&self, path: &Path) -> Result<bool, EditorError> {
        let Some([program, arguments @ ..]) = self.formatter.as_deref() else { return Ok(false) };
        let mut command = tokio::process::Command::new(program);
        // It ends with the call: cancelled, timed out, or the engine stopped.
        command.args(arguments).arg(path).stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(FORMATTING, command.output()).await;
        let output =
            output.map_err(|_| EditorError::new(format!("{program} took longer than {FORMATTING:?}")))?;
        let output = output.map_err(|error| EditorError::new(format!("failed to run {program}: {error}")))?;
        if output.status.success() {
            return Ok(true);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or_default();
        Err(EditorError::new(format!("{program} failed ({}): {said}", output.status)))
    }
}

impl Editor for HeadlessEditor {
    fn attach(&self, ide: Ide) {
        // An editor serves one engine; the first one it is given to.
        let _ = self.ide.set(ide);
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            open_file: true,
            open_diff: true,
            diagnostics: self.state().has_diagnostics,
            selection: true,
            documents: true,
            save: true,
            format: self.formatter.is_some(),
            execute: false,
        }
    }

    fn open_file(&self, request: OpenFile) -> Reply<'_, Opened> {
        Box::pin(self.open(request))
    }

    fn open_diff(&self, request: OpenDiff, cancelled: Cancelled) -> Reply<'_, DiffOutcome> {
        Box::pin(async move {
            match &self.on_diff {
                OnDiff::Accept => Ok(DiffOutcome::Accepted { contents: request.new_contents }),
                OnDiff::Reject => Ok(DiffOutcome::Rejected),
                OnDiff::Nobody(why) => Err(EditorError::new(*why)),
                OnDiff::Ask(reviewer) => reviewer.review(request, cancelled).await,
                OnDiff::Wait => {
                    cancelled.cancelled().await;
                    Ok(DiffOutcome::Closed)
                }
            }
        })
    }

    fn close_tab<'a>(&'a self, tab: &'a str) -> Reply<'a, bool> {
        Box::pin(async move { Ok(self.close(tab)) })
    }

    fn diagnostics(&self, scope: Scope) -> Reply<'_, Vec<FileProblems>> {
        Box::pin(async move {
            let state = self.state();
            Ok(match scope {
                Scope::File(path) => state.problems.get(&path).cloned().into_iter().collect(),
                Scope::All => state.problems.values().cloned().collect(),
            })
        })
    }

    fn publish_diagnostics(&self, files: Vec<FileProblems>) -> Reply<'_, ()> {
        Box::pin(async move {
            let mut state = self.state();
            state.has_diagnostics = true;
            for file in files {
                if file.diagnostics.is_empty() {
                    state.problems.remove(&file.path);
                } else {
                    state.problems.insert(file.path.clone(), file);
                }
            }
            Ok(())
        })
    }

    fn selection(&self) -> Reply<'_, Option<Selection>> {
        Box::pin(async move { Ok(self.state().selection.clone()) })
    }

    fn documents(&self) -> Reply<'_, Vec<Document>> {
        Box::pin(async move {
            let state = self.state();
            let active = state.open.last();
            let document = |path: &PathBuf| Document {
                path: path.clone(),
                language_id: language_id(path).to_owned(),
                is_active: Some(path) == active,
                is_dirty: false,
                is_untitled: false,
            };
            Ok(state.open.iter().map(document).collect())
        })
    }

    fn save<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        // What is open is what is on disk.
        Box::pin(async move { Ok(self.state().open.iter().any(|open| open == path)) })
    }

    fn format<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        Box::pin(self.run_formatter(path))
    }
}

/// The language of a file by its name; empty when unknown.
fn language_id(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" => "cpp",
        "cs" => "csharp",
        "css" => "css",
        "ex" | "exs" => "elixir",
        "go" => "go",
        "hs" => "haskell",
        "htm" | "html" => "html",
        "java" => "java",
        "js" | "cjs" | "mjs" => "javascript",
        "json" => "json",
        "jsx" => "javascriptreact",
        "kt" => "kotlin",
        "lua" => "lua",
        "md" => "markdown",
        "ml" => "ocaml",
        "php" => "php",
        "py" => "python",
        "rb" => "ruby",
        "rs" => "rust",
        "scala" => "scala",
        "sh" | "bash" => "shellscript",
        "sql" => "sql",
        "swift" => "swift",
        "toml" => "toml",
        "ts" => "typescript",
        "tsx" => "typescriptreact",
        "txt" => "plaintext",
        "xml" => "xml",
        "yaml" | "yml" => "yaml",
        "zig" => "zig",
        _ => "",
    }
}
