//! Conversations that go on: resumed, forked, compacted.

use oarlock_testkit::model::{Script, text};
use serde_json::{Value, json};

use crate::plan::Session;
use crate::scenario::{Reach, Scenario};

pub(crate) fn all() -> Vec<Scenario> {
    let say = |prompt: &str| Session::dialogue().send(prompt).wait("result", 1);
    let said = |words: &str| -> Value {
        json!({
            "types": ["system/init", "assistant", "result"],
            "blocks": [{"text": words}],
            "results": [{"subtype": "success", "text": words, "num_turns": 1}],
        })
    };
    vec![
        Scenario::new("resume")
            .reach(Reach::Core)
            .model("first", Script::new().turn([text("I will remember the heron.")]))
            .model("second", Script::new().turn([text("It was a heron.")]))
            .told("I will remember the heron.")
            .session(say("remember the heron {{script first}}"), said("I will remember the heron."))
            .session(
                say("what was it? {{script second}}").with(|options| options.resume = true),
                said("It was a heron."),
            )
            .same_session(true),
        Scenario::new("fork").script("resume")
            .model("first", Script::new().turn([text("I will remember the heron.")]))
            .model("second", Script::new().turn([text("It was a heron.")]))
            .told("I will remember the heron.")
            .session(say("remember the heron {{script first}}"), said("I will remember the heron."))
            .session(
                say("what was it? {{script second}}").with(|options| {
                    options.resume = true;
                    options.fork = true;
                }),
                said("It was a heron."),
            )
            .same_session(false),
        Scenario::new("compaction")
            .model("first", Script::new().turn([text("A long story.")]))
            .model("more", Script::new().turn([text("Longer still.")]))
            .model("summary", Script::new().turn([text("<summary>There was a story.</summary>")]))
            .model("second", Script::new().turn([text("I go on.")]))
            .told("There was a story.")
            .session(
                Session::dialogue()
                    .send("tell a story {{script first}}")
                    .wait("result", 1)
                    .send("more {{script more}}")
                    .wait("result", 2)
                    .send("/compact keep the end {{script summary}}")
                    .wait("result", 3)
                    .send("go on {{script second}}")
                    .wait("result", 4),
                json!({
                    "types": ["system/init", "assistant", "result", "system/init", "assistant", "result", "system/status", "system/init", "system/compact_boundary", "user", "result", "system/init", "assistant", "result"],
                    "systems": {"$order": [
                        {"subtype": "status", "status": "compacting"},
                        {"subtype": "status", "compact_result": "success"},
                        {"subtype": "compact_boundary"},
                    ]},
                    "blocks": [{"text": "A long story."}, {"text": "Longer still."}, {"text": "I go on."}],
                    "results": [
                        {"subtype": "success", "text": "A long story."},
                        {"subtype": "success", "text": "Longer still."},
                        {"subtype": "success", "num_turns": 0},
                        {"subtype": "success", "text": "I go on."},
                    ],
                }),
            ),
    ]
}
