//! What our own commands may ask of a running engine: methods that begin with `oarlock/`.
//!
//! They need the second token, which is in the engine's state file and never in the lock file, so that no MCP client
//! can decide another's diff.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_proto::ide::FileDiagnostics;
use oarlock_proto::jsonrpc::{self, ErrorObject, INVALID_PARAMS};
use oarlock_proto::pos::Range;
use oarlock_wire::{Peer, Responder, Tasks};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::NOT_FOUND;
use crate::editor::{FileProblems, OpenFile, Select};
use crate::engine::Engine;
use crate::event::Event;
use crate::handle::Ide;
use crate::session::read;
use crate::{Error, paths};

/// The header that carries the second token.
pub(crate) const HEADER: &str = "x-oarlock-control";
/// The notification that carries an event to those who watch.
pub(crate) const EVENT: &str = "oarlock/event";

const METHODS: [&str; 10] = [
    "oarlock/status",
    "oarlock/diffs",
    "oarlock/diff",
    "oarlock/accept",
    "oarlock/reject",
    "oarlock/open",
    "oarlock/mention",
    "oarlock/pause",
    "oarlock/publishDiagnostics",
    "oarlock/watch",
];

pub(crate) fn knows(method: &str) -> bool {
    METHODS.contains(&method)
}

#[derive(Deserialize)]
struct Tab {
    tab: String,
    contents: Option<String>,
}

#[derive(Deserialize)]
struct Open {
    path: PathBuf,
    range: Option<Range>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MentionParams {
    path: PathBuf,
    line_start: Option<u32>,
    line_end: Option<u32>,
    to: Option<u32>,
}

#[derive(Deserialize)]
struct Pause {
    paused: bool,
}

#[derive(Deserialize)]
struct Publish {
    files: Vec<FileDiagnostics>,
}

pub(crate) fn request(
    engine: &Arc<Engine>,
    peer: &Peer,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
    tasks: &mut Tasks,
) {
    let ide = Ide::new(engine);
    let answer = match method {
        "oarlock/status" => Ok(status(engine)),
        "oarlock/diffs" => Ok(json!({ "diffs": ide.diffs() })),
        "oarlock/diff" => read(params).and_then(|Tab { tab, .. }| diff(engine, &tab)),
        "oarlock/accept" => read(params).and_then(|Tab { tab, contents }| {
            let found = diff_named(engine, &tab)?;
            done(found, "accepted", ide.accept(&tab, contents))
        }),
        "oarlock/reject" => read(params).and_then(|Tab { tab, .. }| {
            let found = diff_named(engine, &tab)?;
            done(found, "rejected", ide.reject(&tab))
        }),
        "oarlock/mention" => read(params).and_then(|params| mention(&ide, &params)),
        "oarlock/pause" => read(params).map(|Pause { paused }| {
            ide.pause(paused);
            json!({ "paused": paused })
        }),
        "oarlock/watch" => {
            engine.watchers.add(peer.clone());
            Ok(status(engine))
        }
        "oarlock/open" => match read(params) {
            Ok(params) => return open(engine, params, responder, tasks),
            Err(error) => Err(error),
        },
        "oarlock/publishDiagnostics" => match read(params) {
            Ok(Publish { files }) => return publish(engine, files, responder, tasks),
            Err(error) => Err(error),
        },
        _ => Err(ErrorObject::method_not_found(method)),
    };
    match answer {
        Ok(result) => responder.reply(&result),
        Err(error) => responder.error(&error),
    }
}

fn diff_named(engine: &Engine, tab: &str) -> Result<Value, ErrorObject> {
    let (id, request) = engine.diffs.find(tab).map_err(refuse)?;
    Ok(json!({ "diff": id.to_string(), "path": request.new_path, "tab": request.tab }))
}

fn done(mut diff: Value, decision: &str, outcome: Result<(), Error>) -> Result<Value, ErrorObject> {
    outcome.map_err(refuse)?;
    diff["decision"] = decision.into();
    Ok(diff)
}

/// What is not there has a code of its own, so that commands can tell.
fn refuse(error: Error) -> ErrorObject {
    let code = match error {
        Error::WhichDiff { .. } | Error::NoSuchClient { .. } => NOT_FOUND,
        _ => INVALID_PARAMS,
    };
    ErrorObject::new(code, error.to_string())
}

fn status(engine: &Engine) -> Value {
    json!({
        "pid": std::process::id(),
        "name": engine.settings.info.name,
        "version": engine.settings.info.version,
        "workspace": engine.folders,
        "dialect": engine.settings.dialect,
        "paused": engine.share.is_paused(),
        "clients": engine.clients.list(),
        "diffs": engine.diffs.list(),
    })
}

fn diff(engine: &Engine, tab: &str) -> Result<Value, ErrorObject> {
    let (id, request) = engine.diffs.find(tab).map_err(refuse)?;
    Ok(json!({
        "diff": id.to_string(),
        "path": request.new_path,
        "oldPath": request.old_path,
        "tab": request.tab,
        "contents": &*request.new_contents,
    }))
}

fn mention(ide: &Ide, params: &MentionParams) -> Result<Value, ErrorObject> {
    let lines = match (params.line_start, params.line_end) {
        (Some(first), last) => Some((first, last.unwrap_or(first))),
        (None, _) => None,
    };
    absolute(&params.path)?;
    let mentioned = ide.mention(&params.path, lines, params.to).map_err(refuse)?;
    Ok(json!({ "clients": mentioned.clients }))
}

fn absolute(path: &Path) -> Result<(), ErrorObject> {
    if path.is_absolute() { Ok(()) } else { Err(ErrorObject::invalid_params("`path` must be absolute")) }
}

fn open(engine: &Arc<Engine>, params: Open, responder: Responder, tasks: &mut Tasks) {
    if let Err(error) = absolute(&params.path) {
        return responder.error(&error);
    }
    let select = params.range.map_or(Select::Nothing, Select::Range);
    let request = OpenFile { select, ..OpenFile::new(&params.path) };
    let engine = engine.clone();
    tasks.add(async move {
        // A person who says it again means it again: the CLI takes a selection only once.
        engine.clients.each(|client| client.selection = None);
        match engine.editor.open_file(request).await {
            Ok(opened) => {
                let withheld = engine.share.allows(&params.path).err().map(|withheld| withheld.to_string());
                responder.reply(&json!({ "lineCount": opened.line_count, "withheld": withheld }));
            }
            Err(error) => responder.error(&ErrorObject::invalid_params(error.to_string())),
        }
    });
}

fn publish(engine: &Arc<Engine>, files: Vec<FileDiagnostics>, responder: Responder, tasks: &mut Tasks) {
    let mut problems = Vec::with_capacity(files.len());
    for file in files {
        let Some(path) = paths::path_from_uri(&file.uri) else {
            let why = format!("`{}` is not a file:// uri", file.uri);
            return responder.error(&ErrorObject::invalid_params(why));
        };
        problems.push(FileProblems { path, diagnostics: file.diagnostics });
    }
    let engine = engine.clone();
    tasks.add(async move {
        let before = engine.editor.abilities();
        match engine.editor.publish_diagnostics(problems.clone()).await {
            Ok(()) => {
                let ide = Ide::new(&engine);
                if engine.editor.abilities() != before {
                    ide.abilities_changed();
                }
                responder.reply(&json!({ "files": problems.len() }));
                ide.diagnostics_changed(problems);
            }
            Err(error) => responder.error(&ErrorObject::invalid_params(error.to_string())),
        }
    });
}

/// Control connections that want to see events. One that does not read is closed by its own bound.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    peers: Mutex<Vec<Peer>>,
    any: AtomicBool,
}

impl Watchers {
    fn add(&self, peer: Peer) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
        self.any.store(true, Ordering::Relaxed);
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        if !self.any() {
            return;
        }
        let text = jsonrpc::write_notification(EVENT, event);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| !peer.is_closed() && peer.send(text.clone()));
        self.any.store(!peers.is_empty(), Ordering::Relaxed);
    }
}
