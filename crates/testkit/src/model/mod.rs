//! A scripted stand-in for the Anthropic Messages API, on loopback.
//!
//! The prompt says which script to play: `{{script NAME}}` names one that the test registered with
//! [`Model::script`], `{{script [[…]]}}` carries it (see [`Script::inline`]). Each API request of the
//! conversation takes the next turn of the newest script; requests without tools (titles, summaries) get a plain
//! answer. Every request is recorded before it is answered.
//!
//! ```
//! # use std::time::Duration;
//! use oarlock_testkit::model::{Model, Script, text, tool};
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let model = Model::start().await?;
//! let marker = model.script("greet", Script::new().turn([text("hello")]));
//! let prompt = format!("say hello {marker}"); // typed into a CLI that has `model.base_url()` as its API
//! # assert_eq!(prompt, "say hello {{script greet}}");
//! // let request = model.turn("greet", 0, Duration::from_secs(20)).await?;
//! # anyhow::Ok(()) })?; anyhow::Ok(())
//! ```

pub(crate) mod http;
mod request;
mod script;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use request::{Request, ToolResult};
pub use script::{Block, Script, Turn, hold, pieces, text, thinking, tool};

use crate::record::Record;

/// A running model API. It stops when dropped.
#[derive(Debug)]
pub struct Model {
    base_url: String,
    stage: Arc<Stage>,
    server: AbortHandle,
}

/// What the connections share.
#[derive(Debug, Default)]
struct Stage {
    scripts: Mutex<HashMap<String, Script>>,
    /// How often each turn has already been refused by its `Error` block.
    errors: Mutex<HashMap<(String, usize), usize>>,
    released: watch::Sender<HashSet<String>>,
    requests: Record<Request>,
}

impl Model {
    /// Starts listening on a free port of 127.0.0.1.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("failed to bind the model API")?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let stage = Arc::new(Stage::default());
        let server = tokio::spawn(accept(listener, Arc::clone(&stage))).abort_handle();
        Ok(Self { base_url, stage, server })
    }

    /// What `ANTHROPIC_BASE_URL` must be.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Registers a script and returns the marker to put into a prompt.
    pub fn script(&self, name: &str, script: Script) -> String {
        lock(&self.stage.scripts).insert(name.to_owned(), script);
        script::marker(name)
    }

    /// Lets every [`hold`] block of this name go on, now and later.
    pub fn release(&self, name: &str) {
        self.stage.released.send_modify(|released| {
            released.insert(name.to_owned());
        });
    }

    /// Every request so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.stage.requests.entries()
    }

    /// The first request, past or future, for which `wanted` holds.
    pub async fn wait_for(
        &self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&Request) -> bool,
    ) -> Result<Request> {
        self.stage.requests.wait_for(what, within, wanted).await
    }

    /// The request that asked for turn `number` (from 0) of the script `script`.
    pub async fn turn(&self, script: &str, number: usize, within: Duration) -> Result<Request> {
        let what = format!("turn {number} of script {script:?}");
        self.wait_for(&what, within, |request| request.is_turn(script, number)).await
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Owns the connections: they end with it.
async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((socket, _)) = accepted {
                connections.spawn(http::serve(socket, Arc::clone(&stage)));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
