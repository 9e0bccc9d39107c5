//! Sessions of the past, from the CLI's own transcripts: list, replay, fork, delete, titles.

mod mark;
mod outputs;
mod page;
mod replay;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oarlock_agent::Error;
use oarlock_agent::history::{Fork, Library, Record, Transcript};
use oarlock_agent::stream::{ContentBlock, Message};
use oarlock_proto::acp::{ListSessionsRequest, ListSessionsResponse, SetTitleRequest};
use oarlock_proto::jsonrpc::ErrorObject;
use tokio::time::{Instant, sleep};

pub(crate) use mark::{Mark, PATIENCE};
pub(crate) use replay::Replay;

use crate::context::Context;
use crate::fault;

/// A session may be in several folders; no session is in more than this.
const COPIES: usize = 16;

/// How long a list waits for the transcripts of open sessions. One that does not come keeps nobody from the others.
const LIST: Duration = Duration::from_secs(2);

/// `session/list`, when what was shown in these open sessions is written down.
pub(crate) async fn list(
    context: Arc<Context>,
    request: ListSessionsRequest,
    open: Vec<Mark>,
) -> Result<ListSessionsResponse, ErrorObject> {
    let deadline = Instant::now() + LIST;
    for mark in open.iter().filter(|mark| mark.record.is_some()) {
        if let Err(error) = mark.written(&context, None, deadline).await {
            tracing::debug!(%error, "the list goes without it");
        }
    }
    aside(move || page::list(context.library.as_ref(), &request)).await
}

/// Work that reads or writes much happens beside.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    let work = tokio::task::spawn_blocking(work).await;
    work.unwrap_or_else(|error| Err(ErrorObject::internal(format!("reading transcripts: {error}"))))
}

/// The transcript of a session. `-32002` when there is none.
pub(crate) fn open(
    context: &Context,
    session_id: &str,
    cwd: Option<&str>,
) -> Result<Transcript, ErrorObject> {
    match &context.library {
        Some(library) => find(library, session_id, cwd).map_err(|error| fault::cli(&error)),
        None => Err(fault::no_session(session_id)),
    }
}

/// The one of the directory, or else of any other.
fn find(library: &Library, session_id: &str, cwd: Option<&str>) -> Result<Transcript, Error> {
    if let Some(transcript) = cwd.and_then(|cwd| library.open(session_id, Some(Path::new(cwd))).ok()) {
        return Ok(transcript);
    }
    library.open(session_id, None)
}

/// `session/fork`: a copy under a new id, up to a message if one is named; made when what was shown is written down.
pub(crate) async fn fork(
    context: Arc<Context>,
    of: Mark,
    cwd: String,
    at: Option<String>,
    id: String,
) -> Result<Transcript, ErrorObject> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (library, at, id) = (context.library.clone(), at.clone(), id.clone());
        let copy = match (of.written(&context, Some(&cwd), deadline).await, library) {
            (Ok(transcript), Some(library)) => {
                aside(move || fork_of(&library, &transcript, at.as_deref(), &id)).await
            }
            (outcome, _) => outcome,
        };
        // A message that is being said is in the transcript when it is said.
        if copy.is_ok() || !of.is_running || Instant::now() >= deadline {
            return copy;
        }
        sleep(mark::PAUSE).await;
    }
}

fn fork_of(
    library: &Library,
    transcript: &Transcript,
    at: Option<&str>,
    id: &str,
) -> Result<Transcript, ErrorObject> {
    let told = |error: Error| match error {
        Error::NoMessage { .. } | Error::NoMessages { .. } => {
            ErrorObject::invalid_params(format!("messageId: {error}"))
        }
        error => fault::cli(&error),
    };
    let mut fork = Fork::new().id(id);
    if let Some(at) = at {
        let end = end_of(transcript, at).map_err(told)?;
        fork = fork.at(end.unwrap_or_else(|| at.to_owned()));
    }
    library.fork(transcript, &fork).map_err(told)
}

/// The last record of a message that the API has named: an answer is several records, and its tools' results belong to it.
/// `None` when there is no such message; then it may be the name of a record.
fn end_of(transcript: &Transcript, message: &str) -> Result<Option<String>, Error> {
    let (mut end, mut calls) = (None, Vec::new());
    for record in transcript.messages()? {
        let record = record?;
        let is_part = match &record.message {
            Message::Assistant(assistant) => assistant.message.id == message,
            _ => results(&record).any(|id| calls.iter().any(|call| call == id)),
        };
        if is_part {
            calls.extend(
                record.blocks().iter().filter_map(ContentBlock::as_tool_use).map(|call| call.id.clone()),
            );
            end = Some(record.uuid);
        }
    }
    Ok(end)
}

/// The calls that a record has the results of.
fn results(record: &Record) -> impl Iterator<Item = &str> {
    record.blocks().iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result.tool_use_id.as_str()),
        _ => None,
    })
}

/// `session/delete`. One that is not there is deleted already.
pub(crate) fn delete(context: &Context, session_id: &str) -> Result<(), ErrorObject> {
    context.library.as_ref().map_or(Ok(()), |library| delete_in(library, session_id))
}

fn delete_in(library: &Library, session_id: &str) -> Result<(), ErrorObject> {
    for _ in 0..COPIES {
        let deleted = library.open(session_id, None).and_then(|session| {
            match library.delete(&session, false) {
                // It was ours, and is just going.
                Err(Error::SessionOpen { pid, .. }) if is_ours(pid) => library.delete(&session, true),
                deleted => deleted,
            }
        });
        match deleted {
            Ok(()) => {}
            Err(Error::NoSession { .. } | Error::NoSessionId { .. }) => return Ok(()),
            Err(error) => return Err(fault::cli(&error)),
        }
    }
    Ok(())
}

/// Was this process started by this program? The sessions of this program are closed before they are deleted, but a process
/// that was killed may take a moment to be gone.
fn is_ours(mut pid: u32) -> bool {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything; behind it are the state and the parent.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    for _ in 0..8 {
        match parent(pid) {
            Some(parent) if parent == std::process::id() => return true,
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// `session/set_title`, `_session/rename`. Gives the title it has now.
pub(crate) fn rename(context: &Context, request: &SetTitleRequest) -> Result<String, ErrorObject> {
    match &context.library {
        Some(library) => rename_in(library, request),
        None => Err(fault::no_session(&request.session_id)),
    }
}

fn rename_in(library: &Library, request: &SetTitleRequest) -> Result<String, ErrorObject> {
    let session = library.open(&request.session_id, None).map_err(|error| fault::cli(&error))?;
    library.rename(&session, &request.title).map_err(|error| match error {
        Error::Blank { .. } => ErrorObject::invalid_params(format!("title: {error}")),
        error => fault::cli(&error),
    })?;
    let title = session.summary().and_then(|summary| summary.custom_title);
    Ok(title.unwrap_or_else(|| request.title.clone()))
}
