//! Work beside the conversation: background commands and subagents.

use oarlock_testkit::model::{Script, text, tool};
use serde_json::json;

use crate::plan::{Rule, Session};
use crate::scenario::{OLDEST, Reach, Scenario, Sdk};

/// Ends once the driver has given the signal `go`.
const BACKGROUND: &str = "until [ -e go.signal ]; do sleep 0.05; done; echo finished";

pub(crate) fn all() -> Vec<Scenario> {
    let bash = || {
        let input = json!({"command": BACKGROUND, "description": "wait", "run_in_background": true});
        Script::new()
            .turn([tool("Bash", input)])
            .turn([text("Started.")])
            // The turn that the CLI starts by itself asks the host something, so its stdin must still be open.
            .turn([tool("Write", json!({"file_path": "$WORK/note.txt", "content": "noticed"}))])
            .turn([text("Noticed.")])
    };
    let task = |background: bool| {
        let input = json!({
            "description": "look", "prompt": "look around {{script agent}}",
            "subagent_type": "general-purpose", "run_in_background": background,
        });
        tool("Task", input)
    };
    let agent = || {
        Script::new()
            .turn([tool("Write", json!({"file_path": "$WORK/agent.txt", "content": "here"}))])
            .turn([text("The agent is done.")])
    };
    let background = json!({
        "types": [
            "system/init", "assistant", "system/background_tasks_changed", "system/task_started", "user", "assistant",
            "result", "system/task_updated", "system/task_notification", "system/background_tasks_changed",
            "system/init", "assistant", "user", "assistant", "result",
        ],
        "asks": [{"tool": "Write", "input": {"file_path": "$WORK/note.txt"}}],
        "systems": {"$some": [
            {"subtype": "task_started", "task_type": "local_bash"},
            {"subtype": "task_notification", "status": "completed"},
        ]},
        "blocks": [{"tool": "Bash"}, {"text": "Started."}, {"tool": "Write"}, {"text": "Noticed."}],
        "tool_results": [{"is_error": false}, {"text": "~created successfully", "is_error": false}],
        "results": [
            {"subtype": "success", "text": "Started.", "origin": null},
            {"subtype": "success", "text": "Noticed.", "origin": "task-notification"},
        ],
    });
    let no_list = "it does not tell the list of background tasks";
    let background_without_list = json!({"types": [
        "system/init", "assistant", "system/task_started", "user", "assistant", "result",
        "system/task_updated", "system/task_notification", "system/init", "assistant", "user", "assistant", "result",
    ]});
    vec![
        Scenario::new("background_task").model("main", bash()).file("note.txt", Some("noticed")).session(
            Session::dialogue()
                .permissions([Rule::allow()])
                .send("wait in the background {{script main}}")
                .wait("result", 1)
                .signal("go")
                .wait("result", 2),
            background.clone(),
        )
        .except(OLDEST, no_list, background_without_list.clone()),
        // A one-shot question must not close stdin at the first result.
        Scenario::new("background_task_one_shot").script("background_task").reach(Reach::Core).model("main", bash()).session(
            Session::query("wait in the background {{script main}}")
                .permissions([Rule::allow()])
                .wait("result", 1)
                .signal("go"),
            background,
        )
        .except(OLDEST, no_list, background_without_list)
            .except(
                |cell| cell.sdk != Sdk::Ours,
                "it closes stdin at the first result, so a later question of the CLI's cannot be answered",
                json!({
                    "asks": {},
                    "tool_results": [{"is_error": false}, {"text": "~Tool permission request failed", "is_error": true}],
                }),
            ),
        Scenario::new("subagent")
            .reach(Reach::Core)
            .model("main", Script::new().turn([task(false)]).turn([text("The agent said so.")]))
            .model("agent", agent())
            .file("agent.txt", Some("here"))
            .session(
                Session::dialogue()
                    .with(|options| options.forward_subagent_text = true)
                    .permissions([Rule::allow()])
                    .send("send an agent {{script main}}")
                    .wait("result", 1),
                json!({
                    "types": {"$order": [
                        "system/init", "assistant", "system/task_started", "user", "assistant", "user", "assistant",
                        "system/task_updated", "system/task_notification", "user", "assistant", "result",
                    ]},
                    "asks": [{"tool": "Write", "in_subagent": true}],
                    "blocks": [{"tool": "Task"}, {"text": "The agent said so."}],
                    "subagent": [
                        {"tool": "Write"},
                        {"tool_result": {"text": "~created successfully"}},
                        {"text": "The agent is done."},
                    ],
                    "tool_results": [{"text": "~The agent is done.", "is_error": false}],
                    "systems": {"$some": [{"subtype": "task_started", "task_type": "local_agent"}]},
                    "results": [{"subtype": "success", "text": "The agent said so."}],
                }),
            ),
        Scenario::new("background_subagent")
            .model(
                "main",
                Script::new()
                    .turn([task(true)])
                    .turn([text("The agent is off.")])
                    .turn([text("It is back.")]),
            )
            .model("agent", agent())
            .file("agent.txt", Some("here"))
            .session(
                Session::dialogue()
                    .permissions([Rule::allow()])
                    .send("send an agent off {{script main}}")
                    .wait("result", 2),
                json!({
                    // The agent's frames come whenever they come.
                    "types": {"$order": [
                        "system/init", "assistant", "system/task_started", "user", "result",
                        "system/task_updated", "system/task_notification", "system/init", "assistant", "result",
                    ]},
                    "subagent": {"$order": [{"tool": "Write"}, {"tool_result": {"text": "~created successfully"}}]},
                    "asks": [{"tool": "Write", "in_subagent": true}],
                    "blocks": [{"tool": "Task"}, {"text": "The agent is off."}, {"text": "It is back."}],
                    "tool_results": [{"text": "~launched", "is_error": false}],
                    "systems": {"$some": [{"subtype": "task_notification", "status": "completed"}]},
                    "results": [
                        {"subtype": "success", "text": "The agent is off.", "origin": null},
                        {"subtype": "success", "text": "It is back.", "origin": "task-notification"},
                    ],
                }),
            ),
    ]
}
