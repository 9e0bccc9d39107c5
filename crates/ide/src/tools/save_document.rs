use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde_json::json;

use super::{Answer, Call, FilePath, Tool, same};
use crate::paths::{self, Rooted};

pub(super) const TOOL: Tool = Tool {
    name: "saveDocument",
    about: "Save a document that is open in the editor",
    schema: r#"{"type":"object","properties":{
        "filePath":{"type":"string","description":"Absolute path of a file in the workspace"}},
        "required":["filePath"]}"#,
    offered: |abilities| abilities.save,
    for_clis: false,
    replies: same!("JSON `{success, filePath, saved, message}`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: FilePath = call.read()?;
    let path = call.absolute("filePath", &params.file_path)?;
    let path = match call.engine.workspace.resolve_write(&path, Rooted::No) {
        Ok(path) => path,
        Err(error) => return Ok(Answer::Now(CallResult::error(error.to_string()))),
    };
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        let shown = paths::wire_path(&path);
        let (saved, message) = match editor.save(&path).await {
            Ok(true) => (true, "Document saved".to_owned()),
            Ok(false) => (false, format!("Document not open: {shown}")),
            Err(error) => (false, error.to_string()),
        };
        let result = json!({ "success": saved, "filePath": shown, "saved": saved, "message": message });
        CallResult::json(&result)
    })
}
