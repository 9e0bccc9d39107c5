use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;

use super::{Answer, Call, Tool, failed, same};
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "get_all_opened_file_paths",
    about: "List the paths of all open files",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |abilities| abilities.documents,
    for_clis: false,
    replies: same!("absolute paths, one a line"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        match editor.documents().await {
            Ok(documents) => {
                let paths: Vec<_> =
                    documents.iter().filter(|d| !d.is_untitled).map(|d| paths::wire_path(&d.path)).collect();
                CallResult::text(paths.join("\n"))
            }
            Err(error) => failed(&error),
        }
    })
}
