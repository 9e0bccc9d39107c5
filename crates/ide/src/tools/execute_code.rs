use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Deserialize;

use super::{Answer, Call, Tool, failed, same};

pub(super) const TOOL: Tool = Tool {
    name: "executeCode",
    about: "Run Python code in the editor's notebook kernel",
    schema: r#"{"type":"object","properties":{
        "code":{"type":"string","description":"The code to run"}},
        "required":["code"]}"#,
    offered: |abilities| abilities.execute,
    for_clis: false,
    replies: same!("text and image blocks, as the kernel gives them"),
    call,
};

#[derive(Deserialize)]
struct Params {
    code: String,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    if !call.engine.editor.abilities().execute {
        return Ok(Answer::Now(CallResult::error("this editor does not run code")));
    }
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        match editor.execute(params.code).await {
            Ok(content) => CallResult { content, is_error: false },
            Err(error) => failed(&error),
        }
    })
}
