use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde_json::json;

use super::{Answer, Call, FilePath, Tool, failed, same};
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "checkDocumentDirty",
    about: "Check whether a document has unsaved changes",
    schema: r#"{"type":"object","properties":{
        "filePath":{"type":"string","description":"Absolute path of the file"}},
        "required":["filePath"]}"#,
    offered: |abilities| abilities.documents,
    for_clis: false,
    replies: same!("JSON `{success, filePath, isDirty, isUntitled}`, or `{success: false, message}`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: FilePath = call.read()?;
    let path = call.absolute("filePath", &params.file_path)?;
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        let documents = match editor.documents().await {
            Ok(documents) => documents,
            Err(error) => return failed(&error),
        };
        let shown = paths::wire_path(&path);
        CallResult::json(&match documents.into_iter().find(|document| document.path == path) {
            Some(document) => json!({
                "success": true,
                "filePath": shown,
                "isDirty": document.is_dirty,
                "isUntitled": document.is_untitled,
            }),
            None => json!({ "success": false, "message": format!("Document not open: {shown}") }),
        })
    })
}
