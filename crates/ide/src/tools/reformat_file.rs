use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Deserialize;

use super::{Answer, Call, Tool, failed, same};
use crate::paths::Rooted;

pub(super) const TOOL: Tool = Tool {
    name: "reformat_file",
    about: "Format a file with the editor's formatter",
    schema: r#"{"type":"object","properties":{
        "file_path":{"type":"string","description":"Absolute path of a file in the workspace"}},
        "required":["file_path"]}"#,
    offered: |abilities| abilities.format,
    for_clis: false,
    replies: same!("`OK`, or `File not found`"),
    call,
};

#[derive(Deserialize)]
struct Params {
    file_path: String,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    let path = call.absolute("file_path", &params.file_path)?;
    let path = match call.engine.workspace.resolve_write(&path, Rooted::No) {
        Ok(path) if path.is_file() => path,
        Ok(_) => return Ok(Answer::Now(CallResult::error("File not found"))),
        Err(error) => return Ok(Answer::Now(CallResult::error(error.to_string()))),
    };
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        match editor.format(&path).await {
            Ok(true) => CallResult::text("OK"),
            Ok(false) => CallResult::error(format!("no formatter for {}", path.display())),
            Err(error) => failed(&error),
        }
    })
}
