//! The host's own tools and callbacks: hooks, in-process MCP servers, elicitation.

use oarlock_testkit::model::{Script, text, tool};
use serde_json::json;

use crate::ELICIT_MODE;
use crate::plan::{Rule, Session};
use crate::scenario::{PYTHON, Reach, Scenario};

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        Scenario::new("hook")
            .reach(Reach::All)
            .model(
                "main",
                Script::new()
                    .turn([tool("Bash", json!({"command": "touch never.txt"}))])
                    .turn([tool("Write", json!({"file_path": "$WORK/a.txt", "content": "hooked"}))])
                    .turn([text("Done.")]),
            )
            .file("never.txt", None)
            .file("a.txt", Some("hooked"))
            .told("no shell today")
            .session(
                Session::dialogue()
                    .hook("UserPromptSubmit", None, json!({}))
                    .hook(
                        "PreToolUse",
                        Some("Bash"),
                        json!({"hookSpecificOutput": {
                            "hookEventName": "PreToolUse", "permissionDecision": "deny",
                            "permissionDecisionReason": "no shell today",
                        }}),
                    )
                    .hook(
                        "PreToolUse",
                        Some("Write"),
                        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}),
                    )
                    .hook("PostToolUse", None, json!({}))
                    .hook("Stop", None, json!({}))
                    .permissions([Rule::deny("the hooks decide")])
                    .send("work {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "user", "assistant", "result"],
                    "asks": [],
                    "hooks": [
                        {"event": "UserPromptSubmit"},
                        {"event": "PreToolUse", "tool": "Bash"},
                        {"event": "PreToolUse", "tool": "Write"},
                        {"event": "PostToolUse", "tool": "Write"},
                        {"event": "Stop"},
                    ],
                    "tool_results": [
                        {"text": "~no shell today", "is_error": true},
                        {"text": "~created successfully", "is_error": false},
                    ],
                    "results": [{"subtype": "success", "text": "Done."}],
                }),
            ),
        Scenario::new("mcp_tool")
            .reach(Reach::Core)
            .model(
                "main",
                Script::new()
                    .turn([tool("mcp__calc__add", json!({"a": 2, "b": 3}))])
                    .turn([tool("mcp__calc__fail", json!({}))])
                    .turn([text("Five.")]),
            )
            .told("the sum is 5")
            .told("always fails")
            .session(
                Session::query("calculate {{script main}}").with(|options| {
                    options.calculator = true;
                    options.allowed_tools = vec!["mcp__calc__add".to_owned(), "mcp__calc__fail".to_owned()];
                }),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "user", "assistant", "result"],
                    "calls": [{"tool": "add", "input": {"a": 2, "b": 3}}, {"tool": "fail", "input": {}}],
                    "tool_results": [
                        {"text": "the sum is 5", "is_error": false},
                        {"text": "~always fails", "is_error": true},
                    ],
                    "results": [{"subtype": "success", "num_turns": 3, "text": "Five."}],
                }),
            ),
        Scenario::new("elicitation")
            .model("main", Script::new().turn([tool("mcp__form__ask", json!({}))]).turn([text("Thanks.")]))
            .session(
                Session::dialogue()
                    .with(|options| {
                        let server = json!({"type": "stdio", "command": "$SELF", "args": [ELICIT_MODE]});
                        options.mcp_servers.insert("form".to_owned(), server);
                        options.allowed_tools = vec!["mcp__form__ask".to_owned()];
                    })
                    .elicitation(json!({"action": "accept", "content": {"colour": "green"}}))
                    .send("ask me {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": ["system/init", "assistant", "user", "assistant", "result"],
                    "elicitations": [{"server": "form", "message": "Which colour?"}],
                    "tool_results": [{"text": "~\"colour\":\"green\"", "is_error": false}],
                    "results": [{"subtype": "success", "text": "Thanks."}],
                }),
            )
            .except(
                PYTHON,
                "it has no callback for elicitations and answers with an error, which the server sees as a cancel",
                json!({"elicitations": [], "tool_results": [{"text": "~cancel"}]}),
            ),
    ]
}
