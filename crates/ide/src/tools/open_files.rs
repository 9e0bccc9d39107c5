use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Call, Tool, same};
use crate::editor::OpenFile;
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "open_files",
    about: "Open several files in the editor",
    schema: r#"{"type":"object","properties":{
        "file_paths":{"type":"array","items":{"type":"string"},"description":"Absolute paths of the files"}},
        "required":["file_paths"]}"#,
    offered: |abilities| abilities.open_file,
    for_clis: false,
    replies: same!("JSON `{opened_files: [PATH]}`, with those that could be opened"),
    call,
};

#[derive(Deserialize)]
struct Params {
    file_paths: Vec<String>,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    let mut files = Vec::with_capacity(params.file_paths.len());
    for path in &params.file_paths {
        files.push(call.absolute("file_paths", path)?);
    }
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        let mut opened = Vec::new();
        for path in files.into_iter().filter(|path| path.exists()) {
            if editor.open_file(OpenFile::new(&path)).await.is_ok() {
                opened.push(paths::wire_path(&path));
            }
        }
        CallResult::json(&json!({ "opened_files": opened }))
    })
}
