//! Questions to the host: tool permissions, questions, plans.

use oarlock_testkit::model::{Script, text, tool};
use serde_json::json;

use crate::plan::{Rule, Session};
use crate::scenario::{Reach, SCRIPTED, Scenario, TYPESCRIPT};

pub(crate) fn all() -> Vec<Scenario> {
    let write = |name: &str, content: &str| {
        tool("Write", json!({"file_path": format!("$WORK/{name}"), "content": content}))
    };
    let write_then_done = || Script::new().turn([write("a.txt", "as the model wants")]).turn([text("Done.")]);
    let asked =
        json!([{"tool": "Write", "input": {"file_path": "$WORK/a.txt", "content": "as the model wants"}}]);
    vec![
        Scenario::new("tool_allow").script("write")
            .model("main", write_then_done())
            .file("a.txt", Some("as the model wants"))
            .session(
                Session::query("write {{script main}}").permissions([Rule::allow()]),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "asks": [{
                        "tool": "Write", "suggestions": ["setMode"], "in_subagent": false,
                        "input": {"file_path": "$WORK/a.txt", "content": "as the model wants"},
                    }],
                    "blocks": [{"tool": "Write"}, {"text": "Done."}],
                    "tool_results": [{"text": "~created successfully", "is_error": false}],
                    "results": [{"subtype": "success", "num_turns": 2, "text": "Done.", "denials": []}],
                }),
            ),
        Scenario::new("tool_rewrite").script("write")
            .reach(Reach::All)
            .model("main", write_then_done())
            .file("a.txt", Some("as the user wants"))
            .session(
                Session::dialogue()
                    .permissions([Rule::allow().input("content", "as the user wants")])
                    .send("write {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "asks": asked,
                    "blocks": [{"tool": "Write", "input": {"content": "as the model wants"}}, {"text": "Done."}],
                    "tool_results": [{"text": "~created successfully", "is_error": false}],
                    "results": [{"subtype": "success", "denials": []}],
                }),
            )
            .except(
                SCRIPTED,
                "its tool says what it was given",
                json!({"tool_results": [{"text": "File created successfully: as the user wants"}]}),
            ),
        Scenario::new("tool_deny").script("write")
            .reach(Reach::Core)
            .model("main", write_then_done())
            .file("a.txt", None)
            .told("Rather not.")
            .session(
                Session::dialogue()
                    .permissions([Rule::deny("Rather not.")])
                    .send("write {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "asks": asked,
                    "blocks": [{"tool": "Write"}, {"text": "Done."}],
                    "tool_results": [{"text": "Rather not.", "is_error": true}],
                    "results": [{"subtype": "success", "num_turns": 2, "denials": ["Write"]}],
                }),
            ),
        Scenario::new("tool_interrupt").script("write")
            .model("main", write_then_done())
            .file("a.txt", None)
            .session(
                Session::dialogue()
                    .permissions([Rule { interrupt: true, ..Rule::deny("Stop it.") }])
                    .send("write {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "result"],
                    "asks": asked,
                    "blocks": [{"tool": "Write"}],
                    "tool_results": [{"is_error": true}],
                    "results": [{"subtype": "error_during_execution", "is_error": true, "terminal_reason": "~aborted"}],
                }),
            )
            .except(
                TYPESCRIPT,
                "it throws when the CLI ends after an error",
                json!({"error": {"kind": "Error", "message": "~returned an error result"}}),
            ),
        Scenario::new("tool_always")
            .model("main", Script::new().turn([write("a.txt", "1")]).turn([write("b.txt", "2")]).turn([text("Done.")]))
            .file("a.txt", Some("1"))
            .file("b.txt", Some("2"))
            .session(
                Session::dialogue()
                    .permissions([Rule { always: true, ..Rule::allow() }])
                    .send("write twice {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "system/status", "user", "assistant", "user", "assistant", "result"],
                    "asks": [{"tool": "Write", "input": {"file_path": "$WORK/a.txt"}, "suggestions": ["setMode"]}],
                    "systems": {"$some": [{"subtype": "status", "permissionMode": "acceptEdits"}]},
                    "tool_results": [{"is_error": false}, {"is_error": false}],
                    "results": [{"subtype": "success", "num_turns": 3}],
                }),
            ),
        Scenario::new("parallel_permissions")
            .reach(Reach::Core)
            .given("../outside/1.txt", "first")
            .given("../outside/2.txt", "second")
            .given("../outside/3.txt", "third")
            .model(
                "main",
                Script::new()
                    .turn([1, 2, 3].map(|n| tool("Read", json!({"file_path": format!("$ROOT/outside/{n}.txt")}))))
                    .turn([text("Read.")]),
            )
            .session(
                Session::dialogue()
                    .permissions([Rule { together: Some(3), ..Rule::allow() }])
                    .send("read all three {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "asks": {"$some": [
                        {"tool": "Read", "input": {"file_path": "$ROOT/outside/1.txt"}},
                        {"tool": "Read", "input": {"file_path": "$ROOT/outside/2.txt"}},
                        {"tool": "Read", "input": {"file_path": "$ROOT/outside/3.txt"}},
                    ]},
                    "tool_results": {"$some": [{"text": "~first"}, {"text": "~second"}, {"text": "~third"}]},
                    "results": [{"subtype": "success", "num_turns": 4, "text": "Read."}],
                }),
            ),
        Scenario::new("permission_withdrawn").script("write")
            .model("main", write_then_done())
            .file("a.txt", None)
            .session(
                Session::dialogue()
                    .permissions([Rule::never()])
                    .send("write {{script main}}")
                    .wait("ask", 1)
                    .interrupt()
                    .wait("result", 1)
                    .wait("withdrawn", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "result"],
                    "asks": asked,
                    "withdrawn": 1,
                    "tool_results": [{"is_error": true}],
                    "results": [{"subtype": "error_during_execution", "is_error": true, "terminal_reason": "~aborted"}],
                }),
            )
            .except(
                TYPESCRIPT,
                "it throws when the CLI ends after an error",
                json!({"error": {"kind": "Error", "message": "~returned an error result"}}),
            ),
        Scenario::new("question")
            .reach(Reach::Core)
            .model(
                "main",
                Script::new()
                    .turn([tool("AskUserQuestion", json!({"questions": [{
                        "question": "Which colour?", "header": "Colour", "multiSelect": false,
                        "options": [
                            {"label": "Blue", "description": "cold"},
                            {"label": "Red", "description": "warm"},
                        ],
                    }]}))])
                    .turn([text("Blue it is.")]),
            )
            .told("\\\"Which colour?\\\"=\\\"Blue\\\"")
            .session(
                Session::dialogue()
                    .permissions([Rule::allow().input("answers", json!({"Which colour?": "Blue"}))])
                    .send("ask me {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "asks": [{"tool": "AskUserQuestion", "input": {"questions": [{"question": "Which colour?"}]}, "suggestions": []}],
                    "tool_results": [{"text": "~\"Which colour?\"=\"Blue\"", "is_error": false}],
                    "results": [{"subtype": "success", "text": "Blue it is."}],
                }),
            ),
        Scenario::new("plan_mode")
            .model(
                "main",
                Script::new()
                    .turn([tool("Write", json!({"file_path": "$PLAN_FILE", "content": "1. do it"}))])
                    .turn([tool("ExitPlanMode", json!({}))])
                    .turn([text("On it.")]),
            )
            .session(
                Session::dialogue()
                    .with(|options| options.permission_mode = Some("plan".to_owned()))
                    .permissions([Rule::allow()])
                    .send("make a plan {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "system/status", "user", "assistant", "result"],
                    // Writing the plan's own file is not asked.
                    "asks": [{"tool": "ExitPlanMode", "input": {"plan": "1. do it"}, "suggestions": []}],
                    "systems": {"$order": [
                        {"subtype": "init", "permissionMode": "plan"},
                        {"subtype": "status", "permissionMode": "default"},
                    ]},
                    "tool_results": [{"is_error": false}, {"text": "~approved your plan", "is_error": false}],
                    "results": [{"subtype": "success", "text": "On it."}],
                }),
            ),
    ]
}
