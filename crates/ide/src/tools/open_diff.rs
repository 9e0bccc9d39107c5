use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use oarlock_proto::text::Text;
use serde::Deserialize;

use super::{Answer, Call, Settled, Tool, panicked, same};
use crate::diffs::Decision;
use crate::editor::{Cancelled, DiffOutcome, EditorError, OpenDiff};
use crate::engine::Engine;
use crate::event::Event;

pub(super) const TOOL: Tool = Tool {
    name: "openDiff",
    about: "Show a proposed change of a file and wait for the person's decision",
    schema: r#"{"type":"object","properties":{
        "old_file_path":{"type":"string","description":"Absolute path of the file as it is"},
        "new_file_path":{"type":"string","description":"Absolute path of the file that the change is for"},
        "new_file_contents":{"type":"string","description":"All of the proposed contents"},
        "tab_name":{"type":"string","description":"Name of the diff, for close_tab"}},
        "required":["old_file_path","new_file_contents"]}"#,
    offered: |abilities| abilities.open_diff,
    for_clis: true,
    replies: same!(
        "accepted: `FILE_SAVED` and the final contents as second text; rejected or closed: \
                    `DIFF_REJECTED`; anything else: a tool error"
    ),
    call,
};

/// How long an editor may take to close a view that was decided elsewhere.
const CLOSING: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Params {
    old_file_path: String,
    // `new_file_contents` is read apart, because it may be large.
    // Descriptions of the protocol leave out one or the other; the real CLI always sends both.
    new_file_path: Option<String>,
    tab_name: Option<String>,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let new_contents = call.take_text("new_file_contents")?;
    let params: Params = call.read()?;
    let old_path = call.absolute("old_file_path", &params.old_file_path)?;
    let new_path = match &params.new_file_path {
        Some(path) => call.absolute("new_file_path", path)?,
        None => old_path.clone(),
    };
    if !call.engine.editor.abilities().open_diff {
        // The CLI does not look at the list of tools; an error leaves the question in its terminal.
        return Ok(Answer::Now(CallResult::error("this editor does not show diffs")));
    }
    let request = OpenDiff {
        tab: params.tab_name.unwrap_or_else(|| tab_name(&new_path)),
        old_path,
        new_path,
        new_contents,
        client: call.engine.clients.label(call.client),
    };
    let (engine, cancelled) = (call.engine.clone(), call.cancelled.clone());
    Ok(Answer::Later(Box::pin(async move {
        let Reviewed { verdict, after } = review(engine, request, cancelled).await;
        let result = match verdict {
            Verdict::Accepted { contents } => CallResult::texts([Text::from("FILE_SAVED"), contents]),
            // Never TAB_CLOSED: both CLI versions take that for a yes.
            Verdict::Rejected => CallResult::text("DIFF_REJECTED"),
            Verdict::Failed { why } => CallResult::error(why),
        };
        Settled { result, after }
    })))
}

fn tab_name(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// What a review came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// A person said yes to these contents.
    Accepted { contents: Text },
    /// A person said no, or closed the view; or the client did, because it was decided there.
    Rejected,
    /// Nobody decided.
    Failed { why: String },
}

pub(crate) struct Reviewed {
    pub(crate) verdict: Verdict,
    /// Lets the editor close its view; to be run after the answer.
    pub(crate) after: Option<futures_util::future::BoxFuture<'static, ()>>,
}

/// Shows a change in the editor and waits until it is decided: there, by a command, by its client, or not at all.
pub(crate) async fn review(engine: Arc<Engine>, request: OpenDiff, cancelled: Cancelled) -> Reviewed {
    let proposed = request.new_contents.clone();
    let (path, tab): (PathBuf, String) = (request.new_path.clone(), request.tab.clone());
    let (place, mut decided) = match engine.diffs.open(request.clone()) {
        Ok(opened) => opened,
        Err(error) => {
            return Reviewed { verdict: Verdict::Failed { why: error.to_string() }, after: None };
        }
    };
    let (id, client) = (place.id.to_string(), request.client.id);
    engine.emit(&Event::DiffOpened { diff: &id, client, path: &path, tab: &tab });

    let close = Cancelled::new();
    let mut view = {
        let (editor, close) = (engine.editor.clone(), close.clone());
        let shown = async move { editor.open_diff(request, close).await };
        std::panic::AssertUnwindSafe(shown).catch_unwind().boxed()
    };
    let (decision, taken, seen) = tokio::select! {
        biased;
        decision = &mut decided => (decision.unwrap_or_else(|_| lost()), true, false),
        () = cancelled.cancelled() => {
            (Decision::Failed { why: "cancelled by the client".into(), by: "client" }, false, false)
        }
        outcome = &mut view => (by_view(outcome), false, true),
    };
    // A diff is decided once: whoever takes it out of the table has the say.
    let decision = if taken || place.claim() { decision } else { decided.await.unwrap_or_else(|_| lost()) };
    drop(place);
    let (word, by, verdict) = match decision {
        Decision::Accept { contents, by } => {
            ("accepted", by, Verdict::Accepted { contents: contents.unwrap_or(proposed) })
        }
        Decision::Reject { by } => ("rejected", by, Verdict::Rejected),
        Decision::Closed { by } => ("closed", by, Verdict::Rejected),
        Decision::Failed { why, by } => ("failed", by, Verdict::Failed { why }),
    };
    let why = match &verdict {
        Verdict::Failed { why } => Some(why.as_str()),
        _ => None,
    };
    engine.emit(&Event::DiffDecided { diff: &id, decision: word, by, why });
    let after = (!seen).then(|| {
        close.cancel();
        async move {
            let _ = tokio::time::timeout(CLOSING, view).await;
        }
        .boxed()
    });
    Reviewed { verdict, after }
}

/// What a view's outcome means.
fn by_view(outcome: std::thread::Result<Result<DiffOutcome, EditorError>>) -> Decision {
    match outcome {
        Ok(Ok(DiffOutcome::Accepted { contents })) => {
            Decision::Accept { contents: Some(contents), by: "editor" }
        }
        Ok(Ok(DiffOutcome::Rejected)) => Decision::Reject { by: "editor" },
        Ok(Ok(DiffOutcome::Closed)) => Decision::Closed { by: "editor" },
        Ok(Err(error)) => Decision::Failed { why: error.to_string(), by: "editor" },
        Err(_) => {
            let why = panicked(TOOL.name).text_at(0).unwrap_or_default().to_owned();
            Decision::Failed { why, by: "editor" }
        }
    }
}

fn lost() -> Decision {
    Decision::Failed { why: "the engine lost track of this diff".into(), by: "engine" }
}
