//! Plain JSON-RPC methods on files, which exist only in the dialect `vault`.
//!
//! Paths are relative to the workspace, with or without a leading `/`. Nothing outside it can be named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::text::Text;
use oarlock_wire::{Responder, Tasks};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Error;
use crate::editor::OpenDiff;
use crate::engine::Engine;
use crate::paths::{self, Rooted};
use crate::session::{Registered, read};
use crate::tools::{Verdict, review};

/// `listFiles` and `fileCount` stop here.
const MAX_FILES: usize = 50_000;

/// Every method, with what it answers, for the reference.
pub const METHODS: [(&str, &str); 6] = [
    ("readFile", "the file's text"),
    ("writeFile", "`{success: true}` after the review said yes (or at once with `--allow-write`)"),
    ("listFiles", "relative paths that match the glob `pattern`, sorted"),
    ("getWorkspaceInfo", "`{name, path, fileCount, type}`"),
    ("getOpenFiles", "relative paths"),
    ("getCurrentFile", "`{path, name}`, or null"),
];

pub(crate) fn knows(method: &str) -> bool {
    METHODS.iter().any(|(name, _)| *name == method)
}

#[derive(Deserialize)]
struct ReadFile {
    path: String,
}

#[derive(Deserialize)]
struct WriteFile {
    path: String,
    content: String,
}

#[derive(Deserialize)]
struct ListFiles {
    pattern: Option<String>,
}

pub(crate) fn request(
    engine: &Arc<Engine>,
    client: u64,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
    registered: Registered,
    tasks: &mut Tasks,
) {
    let engine = engine.clone();
    match method {
        "readFile" => with(params, responder, |ReadFile { path }, responder| {
            tasks.add(answer(responder, blocking(move || read_file(&engine, &path))));
        }),
        "writeFile" => with(params, responder, |params, responder| {
            tasks.add(answer(responder, write_file(engine, client, params, registered)));
        }),
        "listFiles" => with(params, responder, |ListFiles { pattern }, responder| {
            let list = move || list_files(&engine, pattern.as_deref()).map(|files| json!(files));
            tasks.add(answer(responder, blocking(list)));
        }),
        "getWorkspaceInfo" => tasks.add(answer(responder, blocking(move || workspace_info(&engine)))),
        "getOpenFiles" => tasks.add(answer(responder, open_files(engine))),
        "getCurrentFile" => tasks.add(answer(responder, current_file(engine))),
        _ => responder.error(&ErrorObject::method_not_found(method)),
    }
}

fn with<'a, T: Deserialize<'a>>(
    params: Option<&'a RawValue>,
    responder: Responder,
    work: impl FnOnce(T, Responder),
) {
    match read(params) {
        Ok(params) => work(params, responder),
        Err(error) => responder.error(&error),
    }
}

async fn answer(responder: Responder, work: impl Future<Output = Result<Value, ErrorObject>> + Send) {
    match work.await {
        Ok(result) => responder.reply(&result),
        Err(error) => responder.error(&error),
    }
}

/// Files are read off the engine's thread.
async fn blocking(
    work: impl FnOnce() -> Result<Value, ErrorObject> + Send + 'static,
) -> Result<Value, ErrorObject> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ErrorObject::internal(format!("failed: {error}"))))
}

fn refuse(error: impl std::fmt::Display) -> ErrorObject {
    ErrorObject::invalid_params(error.to_string())
}

/// Asks about the name as it was given; its real path is then looked at too, so a link hides nothing either way.
fn allow(engine: &Engine, given: &str) -> Result<(), ErrorObject> {
    let asked = engine.workspace.asked(Path::new(given), Rooted::Yes).map_err(refuse)?;
    engine.share.allows(&asked).map_err(refuse)
}

fn read_file(engine: &Engine, given: &str) -> Result<Value, ErrorObject> {
    let failed = |why: String| ErrorObject::internal(format!("failed to read file: {why}"));
    let path = engine.workspace.resolve_read(Path::new(given), Rooted::Yes).map_err(|error| match error {
        Error::File { cause, .. } => failed(cause.to_string()),
        other => refuse(other),
    })?;
    allow(engine, given)?;
    let length = std::fs::metadata(&path).map_err(|error| failed(error.to_string()))?.len();
    let limit = engine.share.max_bytes() as u64;
    if length > limit {
        return Err(failed(format!("it has {length} bytes, more than the limit of {limit}")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    Ok(Value::String(text))
}

async fn write_file(
    engine: Arc<Engine>,
    client: u64,
    params: WriteFile,
    registered: Registered,
) -> Result<Value, ErrorObject> {
    let path = engine.workspace.resolve_write(Path::new(&params.path), Rooted::Yes).map_err(refuse)?;
    // What must not leave must not be overwritten either: `.git/hooks` would run what is written there.
    allow(&engine, &params.path)?;
    let mut contents: Text = params.content.into();
    let mut after = None;
    if !engine.settings.allow_write {
        let request = OpenDiff {
            old_path: path.clone(),
            new_path: path.clone(),
            new_contents: contents.clone(),
            tab: format!("writeFile {}", relative(&engine, &path)),
            client: engine.clients.label(client),
        };
        let reviewed = review(engine.clone(), request, registered.cancelled.clone()).await;
        after = reviewed.after;
        contents = match reviewed.verdict {
            Verdict::Accepted { contents } => contents,
            Verdict::Rejected => return Err(refuse("the person rejected this change")),
            Verdict::Failed { why } => return Err(ErrorObject::internal(why)),
        };
    }
    let given = params.path;
    let written = blocking(move || {
        // The review may have taken minutes: what the path means now must be what was reviewed.
        let now = engine.workspace.resolve_write(Path::new(&given), Rooted::Yes).map_err(refuse)?;
        if now != path {
            return Err(refuse(format!("{given} led elsewhere when it was reviewed; nothing was written")));
        }
        allow(&engine, &given)?;
        let failed = |error: crate::Error| ErrorObject::internal(error.to_string());
        engine.workspace.write_atomic(&path, contents.as_bytes()).map_err(failed)?;
        Ok(json!({ "success": true }))
    })
    .await;
    if let Some(after) = after {
        after.await;
    }
    written
}

fn list_files(engine: &Engine, pattern: Option<&str>) -> Result<Vec<String>, ErrorObject> {
    let glob = match pattern {
        Some(pattern) => {
            // `*.js` means any folder, as it does in an ignore file.
            let rooted = pattern.trim_start_matches('/');
            let pattern = if rooted.contains('/') { rooted.to_owned() } else { format!("**/{rooted}") };
            let glob = globset::GlobBuilder::new(&pattern).literal_separator(true).build();
            Some(glob.map_err(|error| refuse(format!("field `pattern`: {error}")))?.compile_matcher())
        }
        None => None,
    };
    let mut files = Vec::new();
    for root in &engine.folders {
        let walk = ignore::WalkBuilder::new(root).standard_filters(false).follow_links(false).build();
        for entry in walk.flatten() {
            if files.len() == MAX_FILES {
                break;
            }
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let name = relative(engine, entry.path());
            let wanted = glob.as_ref().is_none_or(|glob| glob.is_match(&name));
            if wanted && engine.share.allows(entry.path()).is_ok() {
                files.push(name);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn workspace_info(engine: &Engine) -> Result<Value, ErrorObject> {
    let root = engine.folders.first().cloned().unwrap_or_default();
    let is_vault = root.join(".obsidian").is_dir();
    Ok(json!({
        "name": root.file_name().map(|name| name.to_string_lossy()),
        "path": paths::wire_path(&root),
        "fileCount": list_files(engine, None)?.len(),
        "type": if is_vault { "obsidian-vault" } else { "folder" },
    }))
}

async fn open_files(engine: Arc<Engine>) -> Result<Value, ErrorObject> {
    let documents = engine.editor.documents().await.map_err(refuse)?;
    let names: Vec<String> = documents.iter().map(|document| relative(&engine, &document.path)).collect();
    Ok(json!(names))
}

async fn current_file(engine: Arc<Engine>) -> Result<Value, ErrorObject> {
    let documents = engine.editor.documents().await.map_err(refuse)?;
    let active = documents.into_iter().find(|document| document.is_active);
    let shared = active.filter(|document| engine.share.allows(&document.path).is_ok());
    Ok(shared.map_or(Value::Null, |document| {
        let name = document.path.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({ "path": relative(&engine, &document.path), "name": name })
    }))
}

/// A path as clients of this dialect see it: relative to its workspace folder, with `/`.
fn relative(engine: &Engine, path: &Path) -> String {
    let inside: Option<PathBuf> =
        engine.folders.iter().find_map(|root| path.strip_prefix(root).ok().map(Path::to_owned));
    paths::wire_path(inside.as_deref().unwrap_or(path))
}
