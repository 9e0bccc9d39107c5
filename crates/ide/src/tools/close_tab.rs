use oarlock_proto::ide::Dialect;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Deserialize;

use super::{Answer, Call, Tool};

pub(super) const TOOL: Tool = Tool {
    name: "close_tab",
    about: "Close a tab by its name or by the path of its file",
    schema: r#"{"type":"object","properties":{
        "tab_name":{"type":"string","description":"Name of the tab (from openDiff) or absolute path of a file"}},
        "required":["tab_name"]}"#,
    offered: |abilities| abilities.open_diff,
    for_clis: true,
    replies: |dialect| match dialect {
        Dialect::Jetbrains => "`OK`, or `Tab not found`",
        _ => "`TAB_CLOSED`, also when there is no such tab",
    },
    call,
};

#[derive(Deserialize)]
struct Params {
    tab_name: String,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    let dialect = call.dialect();
    // The CLI closes its tab when the question was answered in the terminal: that diff ends without an accept.
    if call.engine.diffs.close_tab(call.client, &params.tab_name) > 0 {
        return Ok(Answer::Now(reply(dialect, true)));
    }
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        let closed = editor.close_tab(&params.tab_name).await.unwrap_or(false);
        reply(dialect, closed)
    })
}

fn reply(dialect: Dialect, closed: bool) -> CallResult {
    CallResult::text(match (dialect, closed) {
        (Dialect::Jetbrains, true) => "OK",
        (Dialect::Jetbrains, false) => "Tab not found",
        // The CLI usually closes twice; the second time is no failure.
        _ => "TAB_CLOSED",
    })
}
