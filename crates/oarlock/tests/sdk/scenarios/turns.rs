//! Turns: what the model says and how a turn ends.

use oarlock_testkit::model::{Script, hold, text, thinking, tool};
use serde_json::json;

use crate::plan::Session;
use crate::scenario::{OLDEST, Reach, Scenario, TYPESCRIPT};

/// One white pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEANl9ngAAAAABJRU5ErkJggg==";

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        Scenario::new("text")
            .reach(Reach::Core)
            .model("main", Script::new().turn([text("Hello, this is a short answer.")]))
            .session(
                Session::query("say hello {{script main}}").with(|options| options.partial = true),
                json!({
                    "types": ["system/init", "system/status", "stream_event", "assistant", "stream_event", "result"],
                    "deltas": "Hello, this is a short answer.",
                    "blocks": [{"text": "Hello, this is a short answer."}],
                    "results": [{
                        "subtype": "success", "is_error": false, "num_turns": 1,
                        "text": "Hello, this is a short answer.", "terminal_reason": "completed",
                    }],
                }),
            ),
        Scenario::new("thinking")
            .reach(Reach::Core)
            .model("main", Script::new().turn([thinking("Let me see what is asked."), text("Seen.")]))
            .told("\"model\":\"claude-sonnet-4-5\"")
            .told("\"budget_tokens\":4000")
            .session(
                Session::dialogue()
                    .with(|options| {
                        options.partial = true;
                        // A model that takes a budget; newer ones decide for themselves.
                        options.model = Some("claude-sonnet-4-5".to_owned());
                        options.thinking = Some(4000);
                    })
                    .send("think {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "system/status", "stream_event", "system/thinking_tokens", "stream_event", "system/thinking_tokens", "stream_event", "system/thinking_tokens", "stream_event", "assistant", "stream_event", "assistant", "stream_event", "result"],
                    "thinking_deltas": "Let me see what is asked.",
                    "deltas": "Seen.",
                    "blocks": [
                        {"thinking": "Let me see what is asked.", "signature": "c2lnbmF0dXJl"},
                        {"text": "Seen."},
                    ],
                    "results": [{"subtype": "success", "text": "Seen."}],
                }),
            ),
        Scenario::new("image")
            .model("main", Script::new().turn([text("A white pixel.")]))
            .told(PIXEL)
            .session(
                Session::dialogue()
                    .send(json!([
                        {"type": "text", "text": "what is this? {{script main}}"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    ]))
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "result"],
                    "blocks": [{"text": "A white pixel."}],
                    "results": [{"subtype": "success", "text": "A white pixel."}],
                }),
            ),
        Scenario::new("structured_output")
            .model("main", Script::new().turn([tool("StructuredOutput", json!({"name": "Ann", "age": 7}))]))
            .session(
                Session::query("who is it? {{script main}}").with(|options| {
                    options.schema = Some(json!({
                        "type": "object", "required": ["name", "age"],
                        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                    }));
                }),
                json!({
                    "types": ["system/init", "assistant", "user", "result"],
                    "blocks": [{"tool": "StructuredOutput", "input": {"name": "Ann", "age": 7}}],
                    "results": [{"subtype": "success", "structured_output": {"name": "Ann", "age": 7}}],
                }),
            ),
        Scenario::new("max_turns")
            .model("main", Script::new().turn([tool("Bash", json!({"command": "echo one"}))]).turn([text("never")]))
            .session(
                Session::dialogue()
                    .with(|options| options.max_turns = Some(1))
                    .send("go on and on {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "result"],
                    "tool_results": [{"text": "one", "is_error": false}],
                    "results": [{
                        "subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns",
                        "errors": ["~maximum number of turns"],
                    }],
                }),
            )
            .except(
                TYPESCRIPT,
                "it throws when the CLI ends after an error",
                json!({"error": {"message": "~maximum number of turns"}}),
            ),
        Scenario::new("interrupt")
            .reach(Reach::All)
            .model("first", Script::new().turn([text("I begin to tell you"), hold("never")]))
            .model("second", Script::new().turn([text("Still here.")]))
            .session(
                Session::dialogue()
                    .with(|options| options.partial = true)
                    .send("tell me everything {{script first}}")
                    .wait("delta", 2)
                    .interrupt()
                    .wait("result", 1)
                    .send("are you there? {{script second}}")
                    .wait("result", 2),
                json!({
                    "types": ["system/init", "system/status", "stream_event", "assistant", "stream_event", "user", "stream_event", "result", "system/init", "system/status", "stream_event", "assistant", "stream_event", "result"],
                    "blocks": [{"text": "I begin to tell you"}, {"text": "Still here."}],
                    "results": [
                        {"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming"},
                        {"subtype": "success", "is_error": false, "text": "Still here."},
                    ],
                }),
            )
            .except(
                OLDEST,
                "it does not close the abandoned stream with a message_stop",
                json!({"types": [
                    "system/init", "system/status", "stream_event", "assistant", "stream_event", "user", "result",
                    "system/init", "system/status", "stream_event", "assistant", "stream_event", "result",
                ]}),
            ),
        Scenario::new("queued_messages")
            .model("first", Script::new().turn([text("One, "), hold("go"), text("two.")]))
            .model("third", Script::new().turn([text("Both answered.")]))
            .told("second message\\nthird message")
            .session(
                Session::dialogue()
                    .with(|options| options.partial = true)
                    .send("count {{script first}}")
                    .wait("delta", 1)
                    .send("second message")
                    .send("third message {{script third}}")
                    .settle()
                    .signal("go")
                    .wait("result", 2),
                json!({
                    "types": ["system/init", "system/status", "stream_event", "assistant", "stream_event", "assistant", "stream_event", "result", "system/init", "system/status", "stream_event", "assistant", "stream_event", "result"],
                    "blocks": [{"text": "One, "}, {"text": "two."}, {"text": "Both answered."}],
                    "results": [{"subtype": "success", "text": "two."}, {"subtype": "success", "text": "Both answered."}],
                }),
            ),
    ]
}
