use oarlock_proto::jsonrpc::ErrorObject;

use super::get_current_selection::{nothing, reply};
use super::{Answer, Call, Tool, same};

pub(super) const TOOL: Tool = Tool {
    name: "getLatestSelection",
    about: "Get the most recent selection, also when its editor is no longer active",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |abilities| abilities.selection,
    for_clis: false,
    replies: same!("as `getCurrentSelection`"),
    call,
};

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    Ok(Answer::Now(match call.engine.share.latest() {
        Some(selection) => reply(&selection),
        None => nothing("No selection available"),
    }))
}
