//! Sessions of the past, from the CLI's own transcripts: list, replay, fork, delete, titles.

use oarlock_agent::history::Transcript;
use oarlock_proto::acp::{ListSessionsRequest, ListSessionsResponse, SessionUpdate, SetTitleRequest};
use oarlock_proto::jsonrpc::ErrorObject;

use crate::context::Context;
use crate::translate::Screen;

/// `session/list`.
pub(crate) fn list(
    context: &Context,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, ErrorObject> {
    let _ = (context, request);
    Ok(ListSessionsResponse { sessions: Vec::new(), next_cursor: None })
}

/// The transcript of a session. `-32002` when there is none.
pub(crate) fn open(
    context: &Context,
    session_id: &str,
    cwd: Option<&str>,
) -> Result<Transcript, ErrorObject> {
    let _ = (context, cwd);
    Err(crate::fault::no_session(session_id))
}

/// What a transcript shows, message by message: the same as the session showed when it ran.
pub(crate) struct Replay {}

impl Replay {
    /// Begins at the first message.
    pub(crate) fn new(transcript: &Transcript, screen: Screen) -> Result<Self, ErrorObject> {
        let _ = (transcript, screen);
        Ok(Self {})
    }
}

impl Iterator for Replay {
    type Item = Vec<SessionUpdate>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

/// `session/fork`: a copy, up to a message if one is named. Gives the new session's id.
pub(crate) fn fork(
    context: &Context,
    session_id: &str,
    cwd: &str,
    at: Option<&str>,
) -> Result<String, ErrorObject> {
    let _ = (context, cwd, at);
    Err(crate::fault::no_session(session_id))
}

/// `session/delete`. One that is not there is deleted already.
pub(crate) fn delete(context: &Context, session_id: &str) -> Result<(), ErrorObject> {
    let _ = (context, session_id);
    Ok(())
}

/// `session/set_title`, `_session/rename`. Gives the title it has now.
pub(crate) fn rename(context: &Context, request: &SetTitleRequest) -> Result<String, ErrorObject> {
    let _ = context;
    Ok(request.title.clone())
}
