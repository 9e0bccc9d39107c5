//! `session/list`: a page at a time, the newest first.
//!
//! A cursor names the last session of a page by its time and its id, and the list it belongs to. So it holds however many
//! sessions have come and gone since, and a cursor of another list is told from one of this.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oarlock_agent::history::{Filter, Library, Summary};
use oarlock_proto::acp::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use oarlock_proto::jsonrpc::ErrorObject;
use sha2::{Digest as _, Sha256};

use crate::fault;

/// How many sessions are on a page.
const PAGE: usize = 100;
/// How much of a title is shown.
const TITLE: usize = 120;

pub(super) fn list(
    library: Option<&Library>,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, ErrorObject> {
    let cwd = request.cwd.as_deref();
    if let Some(cwd) = cwd.filter(|cwd| !Path::new(cwd).is_absolute()) {
        return Err(ErrorObject::invalid_params(format!("cwd: `{cwd}` is not an absolute path")));
    }
    let mut filter = cwd.map_or_else(Filter::default, Filter::project);
    if let Some(text) = &request.cursor {
        let Some((modified, id)) = read_cursor(text, cwd) else {
            let why = "cursor: it is none of this list's; begin without one";
            return Err(ErrorObject::invalid_params(why));
        };
        filter = filter.after(modified, id);
    }
    let Some(library) = library else {
        return Ok(ListSessionsResponse { sessions: Vec::new(), next_cursor: None });
    };
    let mut found = library.list(&filter).map_err(|error| fault::cli(&error))?;
    let mut sessions = Vec::new();
    let mut last = None;
    while sessions.len() < PAGE
        && let Some(summary) = found.next()
    {
        last = Some(cursor(&summary, cwd));
        sessions.extend(info(summary, cwd));
    }
    let next_cursor = last.filter(|_| found.next().is_some());
    Ok(ListSessionsResponse { sessions, next_cursor })
}

/// What a list shows of a session; `None` when nobody knows where it was.
fn info(summary: Summary, cwd: Option<&str>) -> Option<SessionInfo> {
    let Summary { id, title, cwd: own, modified, .. } = summary;
    let cwd = own.filter(|cwd| Path::new(cwd).is_absolute()).or_else(|| cwd.map(str::to_owned))?;
    Some(SessionInfo { session_id: id, cwd, title: Some(one_line(&title)), updated_at: iso(modified) })
}

/// A title for a list: titles may be whole prompts.
fn one_line(title: &str) -> String {
    let mut words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(TITLE) {
        words.truncate(end);
        words.push('…');
    }
    words
}

fn iso(at: SystemTime) -> Option<String> {
    let millis = at.duration_since(UNIX_EPOCH).ok()?.as_millis();
    let at = jiff::Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()?;
    Some(format!("{at:.3}"))
}

fn cursor(last: &Summary, cwd: Option<&str>) -> String {
    let since = last.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:09}.{}.{}", since.as_secs(), since.subsec_nanos(), last.id, list_name(cwd))
}

fn read_cursor(text: &str, cwd: Option<&str>) -> Option<(SystemTime, String)> {
    let mut parts = text.split('.');
    let mut part = || parts.next();
    let (seconds, nanos, id, name) = (part()?, part()?, part()?, part()?);
    if part().is_some() || name != list_name(cwd) || uuid::Uuid::try_parse(id).is_err() {
        return None;
    }
    let nanos = nanos.parse().ok().filter(|nanos| *nanos < 1_000_000_000)?;
    let since = Duration::new(seconds.parse().ok()?, nanos);
    Some((UNIX_EPOCH.checked_add(since)?, id.to_owned()))
}

/// Tells the lists of two directories apart.
fn list_name(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else { return "all".into() };
    Sha256::digest(cwd.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
