use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde_json::json;

use super::{Answer, Call, Tool, same};
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "getWorkspaceFolders",
    about: "List the folders of the workspace",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |_| true,
    for_clis: false,
    replies: same!("JSON `{success, folders: [PATH], rootPath}`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let folders: Vec<String> = call.engine.folders.iter().map(|folder| paths::wire_path(folder)).collect();
    let root = folders.first();
    Ok(Answer::Now(CallResult::json(&json!({ "success": true, "folders": folders, "rootPath": root }))))
}
