//! Questions to a client that answers as it is told.

pub(crate) mod client;
mod forms;
mod permissions;
mod questions;

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::CanUseTool;
use serde_json::{Value, json};

use super::Situation;
fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

pub(crate) fn request(fields: Value) -> PermissionRequest {
    let mut request: CanUseTool = serde_json::from_value(fields).expect("a request");
    if request.tool_use_id.is_empty() {
        request.tool_use_id = "toolu_1".into();
    }
    PermissionRequest::new("r1", request)
}

fn situation() -> Situation {
    Situation { cwd: "/w".into(), ..Default::default() }
}

fn is_interrupt(decision: &Decision) -> bool {
    matches!(decision, Decision::Deny(deny) if deny.interrupt == Some(true))
}

fn is_plain_no(decision: &Decision) -> bool {
    matches!(decision, Decision::Deny(deny) if deny.interrupt.is_none() && !deny.message.is_empty())
}
