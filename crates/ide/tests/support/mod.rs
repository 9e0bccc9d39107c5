//! An engine under test: started in this process, with a scripted editor and clients written by hand.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarlock_ide::editor::Selection;
use oarlock_ide::state::Engines;
use oarlock_ide::{Event, Options, Server};
use oarlock_proto::ide::Dialect;
use oarlock_proto::pos::{Position, Range};
use serde_json::{Value, json};
use tempfile::TempDir;

mod client;
mod editor;
mod socket;

pub(crate) use client::{Client, error_code, is_tool_error, text, texts};
pub(crate) use editor::{ALL, Act, Call, Mood, Shown, TestEditor, document};
pub(crate) use socket::{
    ACCEPT, BINARY, CLOSE, CONTINUE, PING, PONG, Response, Socket, TEXT, Upgrade, frame,
};

/// Nothing that is promised takes this long; a test that waits longer fails.
const DEADLINE: Duration = Duration::from_secs(10);

/// Waits for something that must come.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

/// Waits for something that can only be looked at.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// What the engine reported, as it would be printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Value>>>);

impl Events {
    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn named(&self, name: &str) -> Vec<Value> {
        self.all().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// Waits for the `count`th event of this name.
    pub(crate) async fn wait(&self, name: &str, count: usize) -> Value {
        eventually(&format!("event {name} {count}"), || self.named(name).len() >= count).await;
        self.named(name).swap_remove(count - 1)
    }
}

/// A running engine with its directories.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) editor: Arc<TestEditor>,
    pub(crate) events: Events,
    pub(crate) home: Home,
}

/// The directories of an engine; it outlives the engine when a test needs it to.
#[derive(Clone)]
pub(crate) struct Home {
    dir: Arc<TempDir>,
    pub(crate) workspace: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().canonicalize().unwrap().join("w");
        std::fs::create_dir(&workspace).unwrap();
        Self { dir: Arc::new(dir), workspace }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn lock_dir(&self) -> PathBuf {
        self.dir.path().join("ide")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.workspace.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Options that touch nothing outside this directory and are quick, but otherwise the defaults.
    pub(crate) fn options(&self) -> Options {
        Options {
            workspace: vec![self.workspace.clone()],
            lock_dir: Some(self.lock_dir()),
            state_dir: Some(self.state_dir()),
            settle: Duration::from_millis(5),
            debounce: Duration::from_millis(5),
            keepalive: None,
            ..Options::default()
        }
    }

    pub(crate) async fn start(&self, change: impl FnOnce(&mut Options)) -> Rig {
        let events = Events::default();
        let mut options = self.options();
        let seen = events.clone();
        options.observer = Some(Arc::new(move |event: &Event<'_>| {
            seen.0.lock().unwrap().push(serde_json::to_value(event).unwrap());
        }));
        change(&mut options);
        let editor = Arc::new(TestEditor::default());
        let server = within("the start", Server::start(editor.clone(), options)).await.unwrap();
        Rig { server, editor, events, home: self.clone() }
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        Home::new().start(change).await
    }

    pub(crate) async fn speaking(dialect: Dialect) -> Self {
        Self::with(|options| options.dialect = dialect).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(crate) fn lock(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.server.lock_path()).unwrap()).unwrap()
    }

    pub(crate) fn token(&self) -> String {
        self.lock()["authToken"].as_str().unwrap().to_owned()
    }

    pub(crate) fn control_token(&self) -> String {
        let engines = Engines::open(self.home.state_dir()).unwrap();
        let running = engines.running();
        let ours = running.iter().find(|engine| engine.port == self.port()).unwrap();
        ours.control.reveal().to_owned()
    }

    pub(crate) fn handshake(&self) -> Upgrade {
        Upgrade::like_the_cli(self.port(), &self.token())
    }

    /// A connection that has passed the gate and said nothing.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.port(), &self.handshake()).await
    }

    /// An ordinary MCP client.
    pub(crate) async fn mcp(&self) -> Client {
        let mut client = self.client().await;
        client.initialize().await;
        client
    }

    /// A Claude Code session, ready to be told of selections.
    pub(crate) async fn cli(&self) -> Client {
        self.cli_with_pid(std::process::id()).await
    }

    pub(crate) async fn cli_with_pid(&self, pid: u32) -> Client {
        let mut client = self.mcp().await;
        client.notify("ide_connected", json!({ "pid": pid })).await;
        client.ping().await;
        let id = self.server.ide().clients().last().unwrap().client;
        eventually("the client to settle", || {
            self.server.ide().clients().iter().any(|client| client.client == id && client.ready)
        })
        .await;
        client
    }

    /// One of our own commands.
    pub(crate) async fn control(&self) -> Client {
        let handshake = self.handshake().without("X-Claude-Code-Ide-Authorization");
        let handshake = handshake.and("X-Oarlock-Control", &self.control_token());
        Client::connect(self.port(), &handshake).await
    }

    /// Stops the engine; its directories stay for as long as what is returned.
    pub(crate) async fn stop(self) -> Home {
        within("the stop", self.server.stop()).await;
        self.home
    }
}

pub(crate) fn range(start: (u32, u32), end: (u32, u32)) -> Range {
    Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1))
}

pub(crate) fn selection(path: &Path, text: &str) -> Selection {
    let end = u32::try_from(text.encode_utf16().count()).unwrap();
    Selection { path: path.to_owned(), range: range((0, 0), (0, end)), text: text.to_owned() }
}

/// The arguments of an `openDiff`, as the CLI sends them.
pub(crate) fn diff(path: &Path, contents: &str, tab: &str) -> Value {
    json!({ "old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": tab })
}
