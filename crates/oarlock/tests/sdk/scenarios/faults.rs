//! Errors of the API.

use oarlock_testkit::model::{Block, Script, text};
use serde_json::json;

use crate::plan::Session;
use crate::scenario::{OLDEST, PYTHON, Reach, Scenario, TYPESCRIPT};

/// Every request is refused with this status. The CLI tries once more and then gives up.
fn refused(name: &'static str, status: u16, retry: &str) -> Scenario {
    Scenario::new(name)
        .environment("CLAUDE_CODE_MAX_RETRIES", "1")
        .model("main", Script::new().turn([Block::Error { error: status, times: None }]))
        .session(
            Session::query("hello {{script main}}"),
            json!({
                "types": ["system/init", "system/api_retry", "assistant", "result"],
                "systems": {"$some": [{"subtype": "api_retry", "attempt": 1, "error_status": status, "error": retry}]},
                "results": [{
                    // An API failure is a success that is an error.
                    "subtype": "success", "is_error": true, "api_error_status": status,
                    "terminal_reason": "api_error",
                }],
            }),
        )
        .except(OLDEST, "it calls a failure completed", json!({"results": [{
            "subtype": "success", "is_error": true, "api_error_status": status, "terminal_reason": "completed",
        }]}))
        .except(PYTHON, "it raises when the CLI ends after an error", json!({"error": {"kind": "ResultError"}}))
        .except(TYPESCRIPT, "it throws when the CLI ends after an error", json!({"error": {"kind": "Error"}}))
}

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        refused("error_401", 401, "authentication_failed").reach(Reach::Core),
        refused("error_429", 429, "rate_limit"),
        refused("error_500", 500, "server_error"),
        refused("error_529", 529, "overloaded"),
        Scenario::new("overload_passes")
            .model(
                "main",
                Script::new().turn([Block::Error { error: 529, times: Some(1) }, text("Now I can.")]),
            )
            .session(
                Session::query("hello {{script main}}"),
                json!({
                    "types": ["system/init", "system/api_retry", "assistant", "result"],
                    "blocks": [{"text": "Now I can."}],
                    "results": [{"subtype": "success", "is_error": false, "text": "Now I can."}],
                }),
            ),
    ]
}
