use oarlock_proto::ide::SelectionRange;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde_json::json;

use super::{Answer, Call, Tool, failed, same};
use crate::editor::Selection;
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "getCurrentSelection",
    about: "Get what is selected in the active editor",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |abilities| abilities.selection,
    for_clis: false,
    replies: same!("JSON `{success, text, filePath, fileUrl, selection}`, or `{success: false, message}`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let engine = call.engine.clone();
    Answer::later(call, async move {
        match engine.editor.selection().await {
            Ok(Some(selection)) => match engine.share.filter(selection) {
                Ok(selection) => reply(&selection),
                Err(withheld) => nothing(&withheld.to_string()),
            },
            Ok(None) => nothing("No active editor found"),
            Err(error) => failed(&error),
        }
    })
}

pub(super) fn reply(selection: &Selection) -> CallResult {
    CallResult::json(&json!({
        "success": true,
        "text": selection.text,
        "filePath": paths::wire_path(&selection.path),
        "fileUrl": paths::file_uri(&selection.path),
        "selection": SelectionRange::from(selection.range),
    }))
}

pub(super) fn nothing(message: &str) -> CallResult {
    CallResult::json(&json!({ "success": false, "message": message }))
}
