//! An editor whose every answer the test decides.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use oarlock_ide::editor::{
    Abilities, Cancelled, DiffOutcome, Document, Editor, EditorError, FileProblems, OpenDiff, OpenFile,
    Opened, Reply, Scope, Selection,
};
use oarlock_ide::{Ide, editor};
use oarlock_proto::mcp::Content;
use tokio::sync::{mpsc, oneshot};

use super::within;

/// A call that reached the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    OpenFile(OpenFile),
    /// A diff was to be shown, by its tab's name.
    OpenDiff(String),
    /// The engine asked for a view to be closed, and it was.
    CloseDiff(String),
    /// A view's future was dropped before it had ended.
    DropDiff(String),
    CloseTab(String),
    Diagnostics(Scope),
    Publish,
    Selection,
    Documents,
    Save(PathBuf),
    Format(PathBuf),
    Execute(String),
}

/// How the editor's methods go, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// At once.
    Ready,
    /// After a while.
    Slow(Duration),
    /// With an error.
    Failing,
    /// With a panic.
    Panicking,
    /// Never.
    Hanging,
}

/// What the person does with a diff.
#[derive(Debug)]
pub(crate) enum Act {
    Decide(DiffOutcome),
    Fail(&'static str),
    Panic,
}

/// A diff on the screen.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) request: OpenDiff,
    act: oneshot::Sender<Act>,
}

impl Shown {
    pub(crate) fn act(self, act: Act) {
        // A diff that was decided elsewhere takes no act any more.
        let _ = self.act.send(act);
    }

    pub(crate) fn accept(self) {
        let contents = self.request.new_contents.clone();
        self.act(Act::Decide(DiffOutcome::Accepted { contents }));
    }

    pub(crate) fn accept_as(self, contents: &str) {
        self.act(Act::Decide(DiffOutcome::Accepted { contents: contents.into() }));
    }

    pub(crate) fn reject(self) {
        self.act(Act::Decide(DiffOutcome::Rejected));
    }

    pub(crate) fn close(self) {
        self.act(Act::Decide(DiffOutcome::Closed));
    }
}

/// What the editor has; a test sets what it needs.
pub(crate) struct Scene {
    pub(crate) abilities: Abilities,
    pub(crate) moods: HashMap<&'static str, Mood>,
    pub(crate) problems: Vec<FileProblems>,
    pub(crate) selection: Option<Selection>,
    pub(crate) documents: Vec<Document>,
    pub(crate) opened: Opened,
    /// Whether a tab, an open document or a formatter is found.
    pub(crate) found: bool,
}

pub(crate) struct TestEditor {
    scene: Mutex<Scene>,
    calls: Mutex<Vec<Call>>,
    shown: mpsc::Sender<Shown>,
    screen: tokio::sync::Mutex<mpsc::Receiver<Shown>>,
    ide: OnceLock<Ide>,
}

pub(crate) const ALL: Abilities = Abilities {
    open_file: true,
    open_diff: true,
    diagnostics: true,
    selection: true,
    documents: true,
    save: true,
    format: true,
    execute: true,
};

impl Default for TestEditor {
    fn default() -> Self {
        let (shown, screen) = mpsc::channel(4096);
        let scene = Scene {
            abilities: ALL,
            moods: HashMap::new(),
            problems: Vec::new(),
            selection: None,
            documents: Vec::new(),
            opened: Opened { language_id: "rust".into(), line_count: 3, selected: true },
            found: true,
        };
        Self {
            scene: Mutex::new(scene),
            calls: Mutex::default(),
            shown,
            screen: screen.into(),
            ide: OnceLock::new(),
        }
    }
}

impl TestEditor {
    pub(crate) fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the method of this name goes like this.
    pub(crate) fn set(&self, method: &'static str, mood: Mood) {
        self.scene().moods.insert(method, mood);
    }

    pub(crate) fn ide(&self) -> &Ide {
        self.ide.get().unwrap()
    }

    /// The next diff that comes up on the screen.
    pub(crate) async fn shown(&self) -> Shown {
        let mut screen = self.screen.lock().await;
        within("a diff to be shown", screen.recv()).await.unwrap()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    /// Waits until a call was made, for those that come after an answer.
    pub(crate) async fn called(&self, wanted: &Call) {
        super::eventually(&format!("{wanted:?}"), || self.calls.lock().unwrap().contains(wanted)).await;
    }

    async fn go<T>(&self, method: &'static str, value: impl FnOnce(&Scene) -> T) -> Result<T, EditorError> {
        let mood = self.scene().moods.get(method).copied().unwrap_or(Mood::Ready);
        match mood {
            Mood::Ready => {}
            Mood::Slow(time) => tokio::time::sleep(time).await,
            Mood::Failing => return Err(EditorError::new(format!("{method} is broken"))),
            Mood::Panicking => panic!("{method} panics on purpose"),
            Mood::Hanging => std::future::pending().await,
        }
        Ok(value(&self.scene()))
    }
}

/// Notes when a view is dropped before it has ended.
struct View<'a> {
    editor: &'a TestEditor,
    tab: Option<String>,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if let Some(tab) = self.tab.take() {
            self.editor.note(Call::DropDiff(tab));
        }
    }
}

impl Editor for TestEditor {
    fn attach(&self, ide: Ide) {
        let _ = self.ide.set(ide);
    }

    fn abilities(&self) -> Abilities {
        let scene = self.scene();
        if scene.moods.get("abilities") == Some(&Mood::Panicking) {
            drop(scene);
            panic!("abilities panics on purpose");
        }
        scene.abilities
    }

    fn open_file(&self, request: OpenFile) -> Reply<'_, Opened> {
        self.note(Call::OpenFile(request));
        Box::pin(self.go("open_file", |scene| scene.opened.clone()))
    }

    fn open_diff(&self, request: OpenDiff, cancelled: Cancelled) -> Reply<'_, DiffOutcome> {
        self.note(Call::OpenDiff(request.tab.clone()));
        Box::pin(async move {
            let mut view = View { editor: self, tab: Some(request.tab.clone()) };
            self.go("open_diff", |_| ()).await?;
            let (act, acted) = oneshot::channel();
            self.shown.try_send(Shown { request, act }).unwrap();
            let act = async {
                match acted.await {
                    Ok(act) => act,
                    // Nobody looks at it any more; it stays on the screen.
                    Err(_) => std::future::pending().await,
                }
            };
            let act = tokio::select! {
                act = act => Some(act),
                () = cancelled.cancelled() => None,
            };
            let tab = view.tab.take().unwrap();
            match act {
                Some(Act::Decide(outcome)) => Ok(outcome),
                Some(Act::Fail(why)) => Err(EditorError::new(why)),
                Some(Act::Panic) => panic!("the view panics on purpose"),
                None => {
                    self.note(Call::CloseDiff(tab));
                    Ok(DiffOutcome::Closed)
                }
            }
        })
    }

    fn close_tab<'a>(&'a self, tab: &'a str) -> Reply<'a, bool> {
        self.note(Call::CloseTab(tab.to_owned()));
        Box::pin(self.go("close_tab", |scene| scene.found))
    }

    fn diagnostics(&self, scope: Scope) -> Reply<'_, Vec<FileProblems>> {
        self.note(Call::Diagnostics(scope.clone()));
        Box::pin(self.go("diagnostics", move |scene| {
            let asked = |file: &&FileProblems| scope == Scope::All || scope == Scope::File(file.path.clone());
            scene.problems.iter().filter(asked).cloned().collect()
        }))
    }

    fn publish_diagnostics(&self, files: Vec<FileProblems>) -> Reply<'_, ()> {
        self.note(Call::Publish);
        self.scene().problems = files;
        Box::pin(self.go("publish_diagnostics", |_| ()))
    }

    fn selection(&self) -> Reply<'_, Option<Selection>> {
        self.note(Call::Selection);
        Box::pin(self.go("selection", |scene| scene.selection.clone()))
    }

    fn documents(&self) -> Reply<'_, Vec<Document>> {
        self.note(Call::Documents);
        Box::pin(self.go("documents", |scene| scene.documents.clone()))
    }

    fn save<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        self.note(Call::Save(path.to_owned()));
        Box::pin(self.go("save", |scene| scene.found))
    }

    fn format<'a>(&'a self, path: &'a Path) -> Reply<'a, bool> {
        self.note(Call::Format(path.to_owned()));
        Box::pin(self.go("format", |scene| scene.found))
    }

    fn execute(&self, code: String) -> Reply<'_, Vec<Content>> {
        self.note(Call::Execute(code));
        Box::pin(self.go("execute", |_| {
            let image = Content::Image { data: "iVBORw0KGgo=".into(), mime_type: "image/png".into() };
            vec![Content::Text { text: "1\n".into() }, image]
        }))
    }
}

/// A document that is open and saved.
pub(crate) fn document(path: impl Into<PathBuf>, is_active: bool) -> Document {
    editor::Document {
        path: path.into(),
        language_id: "python".into(),
        is_active,
        is_dirty: false,
        is_untitled: false,
    }
}
