//! What the model says: texts, thoughts, images, structured output.

use oarlock_testkit::model::{Script, text, thinking};
use serde_json::json;

use crate::plan::Session;
use crate::scenario::{Reach, Scenario};

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        Scenario::new("text")
            .reach(Reach::Core)
            .model("main", Script::new().turn([text("Hello, this is a short answer.")]))
            .session(
                Session::query("say hello {{script main}}").with(|options| options.partial = true),
                json!({
                    "types": {"$order": ["system/init", "stream_event", "assistant", "stream_event", "result"]},
                    "deltas": "Hello, this is a short answer.",
                    "blocks": [{"text": "Hello, this is a short answer."}],
                    "results": [{
                        "subtype": "success", "is_error": false, "num_turns": 1,
                        "text": "Hello, this is a short answer.", "terminal_reason": "completed",
                    }],
                }),
            ),
        Scenario::new("thinking")
            .model("main", Script::new().turn([thinking("Let me see what is asked."), text("Seen.")]))
            .session(
                Session::dialogue()
                    .with(|options| {
                        options.partial = true;
                        options.thinking = Some(json!({"type": "enabled", "budget_tokens": 4000}));
                    })
                    .send("think {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": {"$order": ["system/init", "system/thinking_tokens", "stream_event", "assistant", "result"]},
                    "thinking_deltas": "Let me see what is asked.",
                    "deltas": "Seen.",
                    "blocks": [
                        {"thinking": "Let me see what is asked.", "signature": "c2lnbmF0dXJl"},
                        {"text": "Seen."},
                    ],
                    "results": [{"subtype": "success", "text": "Seen."}],
                }),
            ),
    ]
}
