//! The seam: an editor, as the protocol sees it.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use oarlock_proto::ide::Diagnostic;
use oarlock_proto::mcp::Content;
use oarlock_proto::pos::Range;
use oarlock_proto::text::Text;
pub use tokio_util::sync::CancellationToken as Cancelled;

use crate::handle::Ide;

/// What an editor's method gives, in time.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, EditorError>>;

/// An editor, or anything that stands in for one.
///
/// Methods may be called from several clients at once. Each has a default that says "not supported"; implement those
/// that your editor has and name them in [`abilities`](Editor::abilities): what is not named there is not offered to
/// clients at all.
///
/// Positions are zero-based and UTF-16; [`oarlock_proto::pos`] converts from whatever your editor counts in.
///
/// This is an IDE that the real CLI accepts (it is `examples/minimal_ide.rs`):
///
/// ```no_run
#[doc = include_str!("../examples/minimal_ide.rs")]
/// ```
pub trait Editor: Send + Sync + 'static {
    /// The engine runs, and this is how to tell it of selections and mentions. Keep the handle if you have any.
    fn attach(&self, ide: Ide) {
        let _ = ide;
    }

    /// What this editor can do. When it changes, call [`Ide::abilities_changed`].
    fn abilities(&self) -> Abilities;

    /// Shows a file and selects in it.
    fn open_file(&self, request: OpenFile) -> Reply<'_, Opened> {
        let _ = request;
        unsupported("opening files")
    }

    /// Shows a proposed change and waits for the person's decision, however long that takes.
    ///
    /// Never write the file: the client does that, with the contents of [`DiffOutcome::Accepted`]. When `cancelled`
    /// fires (decided elsewhere, client gone), close the view and return anything; the value is not used. The engine
    /// gives the future about two seconds for that and then drops it.
    fn open_diff(&self, request: OpenDiff, cancelled: Cancelled) -> Reply<'_, DiffOutcome> {
        let _ = (request, cancelled);
        unsupported("showing diffs")
    }

    /// Closes an ordinary tab by its name or its file's path; false when there is none. Diffs are closed through
    /// `cancelled`, not here.
    fn close_tab<'a>(&'a self, tab: &'a str) -> Reply<'a, bool> {
        let _ = tab;
        Box::pin(async { Ok(false) })
    }

    /// The problems that are known now, for one file or for all. Files without any may be left out.
    fn diagnostics(&self, scope: Scope) -> Reply<'_, Vec<FileProblems>> {
        let _ = scope;
        unsupported("diagnostics")
    }

    /// Takes problems that something else found (a build, a linter), replacing what was known of the same files.
    fn publish_diagnostics(&self, files: Vec<FileProblems>) -> Reply<'_, ()> {
        let _ = files;
        unsupported("diagnostics from outside")
    }

    /// What is selected in the active editor, or where its cursor is.
    fn selection(&self) -> Reply<'_, Option<Selection>> {
        unsupported("selections")
    }

    /// The open documents.
    fn documents(&self) -> Reply<'_, Vec<Document>> {
        unsupported("listing documents")
    }

    /// Saves an open document; false when it is not open.
    fn save<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        let _ = path;
        unsupported("saving")
    }

    /// Formats a file; false when there is no formatter for it.
    fn format<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        let _ = path;
        unsupported("formatting")
    }

    /// Runs code in a kernel and gives its output.
    fn execute(&self, code: String) -> Reply<'_, Vec<Content>> {
        let _ = code;
        unsupported("running code")
    }
}

fn unsupported<'a, T: Send + 'a>(what: &str) -> Reply<'a, T> {
    let error = EditorError::new(format!("this editor does not support {what}"));
    Box::pin(async { Err(error) })
}

/// A failure, in words that a person can use.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct EditorError(String);

impl EditorError {
    /// A failure with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// What an editor can do; everything else is not offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// `openFile`, `open_files`.
    pub open_file: bool,
    /// `openDiff`, `close_tab`, `closeAllDiffTabs`.
    pub open_diff: bool,
    /// `getDiagnostics` for the model. The CLI's own calls are answered in any case, with `[]`.
    pub diagnostics: bool,
    /// `getCurrentSelection`, `getLatestSelection`.
    pub selection: bool,
    /// `getOpenEditors`, `get_all_opened_file_paths`, `checkDocumentDirty`.
    pub documents: bool,
    /// `saveDocument`.
    pub save: bool,
    /// `reformat_file`.
    pub format: bool,
    /// `executeCode`. It runs what the model wrote: offer it only when the user asked for it.
    pub execute: bool,
}

/// A request to show a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Absolute; it exists.
    pub path: PathBuf,
    /// What to select.
    pub select: Select,
    /// In a tab that the next file may replace.
    pub preview: bool,
    /// Take the focus.
    pub make_frontmost: bool,
}

impl OpenFile {
    /// Just show it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), select: Select::Nothing, preview: false, make_frontmost: true }
    }
}

/// What to select in a file that is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Select {
    /// Leave the cursor where it is.
    Nothing,
    /// A range.
    Range(Range),
    /// By text patterns, in the editor's text of the file; see [`Select::find`].
    Text {
        /// Where the selection begins.
        start: String,
        /// What it ends with.
        end: Option<String>,
        /// Whether it goes on to the end of the line.
        to_end_of_line: bool,
    },
}

impl Select {
    /// The range to select in a file with this `text`.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Range> {
        match self {
            Self::Nothing => None,
            Self::Range(range) => Some(*range),
            Self::Text { start, end, to_end_of_line } => {
                oarlock_proto::pos::find(text, start, end.as_deref(), *to_end_of_line)
            }
        }
    }
}

/// What became of an [`OpenFile`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// Such as `rust`; empty when unknown.
    pub language_id: String,
    /// How many lines the file has.
    pub line_count: usize,
    /// Whether what was to be selected was found.
    pub selected: bool,
}

/// A request to show a change.
#[derive(Debug, Clone)]
pub struct OpenDiff {
    /// The file as it is now; it may not exist yet.
    pub old_path: PathBuf,
    /// The file that the change is for; the CLI always sends the same path.
    pub new_path: PathBuf,
    /// All of the proposed contents.
    pub new_contents: Text,
    /// What the client calls the diff: show it, do not take it apart.
    pub tab: String,
    /// Which client asks, for labels when there are several.
    pub client: ClientLabel,
}

/// Who a client is, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientLabel {
    /// The number this engine gave it.
    pub id: u64,
    /// Its process.
    pub pid: Option<u32>,
    /// Where that process runs.
    pub directory: Option<PathBuf>,
}

/// What a person decided about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffOutcome {
    /// Take it, with these final contents.
    Accepted {
        /// The proposal, or what the person made of it.
        contents: Text,
    },
    /// Do not take it.
    Rejected,
    /// The view was closed without a word, which means the same.
    Closed,
}

/// Which diagnostics are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One file's.
    File(PathBuf),
    /// All that the editor knows of.
    All,
}

/// The problems of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblems {
    /// Absolute.
    pub path: PathBuf,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// A selection, or a cursor when the range is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Absolute, or a name for a document that has no file.
    pub path: PathBuf,
    /// Zero-based, UTF-16.
    pub range: Range,
    /// The selected text, also of unsaved changes.
    pub text: String,
}

/// An open document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Absolute, or a name for a document that has no file.
    pub path: PathBuf,
    /// Such as `rust`; empty when unknown.
    pub language_id: String,
    /// It has the focus.
    pub is_active: bool,
    /// It has unsaved changes.
    pub is_dirty: bool,
    /// It has no file.
    pub is_untitled: bool,
}
