use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;

use super::{Answer, Call, Tool, same};

pub(super) const TOOL: Tool = Tool {
    name: "closeAllDiffTabs",
    about: "Close all diffs that this client has opened",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |abilities| abilities.open_diff,
    for_clis: true,
    replies: same!("`CLOSED_n_DIFF_TABS`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let closed = call.engine.diffs.close_all(call.client);
    Ok(Answer::Now(CallResult::text(format!("CLOSED_{closed}_DIFF_TABS"))))
}
