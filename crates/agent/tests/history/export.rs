//! Markdown and JSON.

use oarlock_agent::history::{Export, Format};
use serde_json::{Value, json};

use crate::desk::{Desk, assistant, call, lines, result, user, with};

fn desk() -> Desk {
    let desk = Desk::new();
    let hunk = json!({ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-x", "+`y`"] });
    let edit = json!({ "file_path": "/w/a.rs", "old_string": "x", "new_string": "`y`" });
    let edited = json!({ "filePath": "/w/a.rs", "structuredPatch": [hunk] });
    let long: String = (0..30).map(|line| format!("line {line}\n")).collect();
    let thinking = with(
        assistant("th", Some("fix it")),
        json!({ "message": { "id": "m1", "model": "opus", "content": [{ "type": "thinking", "thinking": "hm" }] } }),
    );
    let path = desk.write(
        1,
        &[
            user("fix it", None),
            thinking,
            call("c1", "th", "m1", "Edit", "t1", edit),
            with(result("r1", "c1", "t1", "The file was changed"), json!({ "toolUseResult": edited })),
            call("c2", "r1", "m2", "Bash", "t2", json!({ "command": "cargo test" })),
            result("r2", "c2", "t2", &long),
            call("c3", "r2", "m3", "Agent", "t3", json!({ "description": "look around", "prompt": "Please look" })),
            result("r3", "c3", "t3", "it is ```fine```"),
            json!({ "type": "api-request", "uuid": "x", "parentUuid": "r3", "params": "the system prompt" }),
            json!({ "type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "logicalParentUuid": "r3",
                "compactMetadata": { "trigger": "auto", "preTokens": 1234 } }),
            with(user("summary of it all", Some("b")), json!({ "isCompactSummary": true })),
            assistant("All **done**.", Some("summary of it all")),
            json!({ "type": "custom-title", "customTitle": "Fix # it" }),
        ],
    );
    let folder = path.with_extension("").join("subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let side = |record: Value| with(record, json!({ "isSidechain": true }));
    std::fs::write(
        folder.join("agent-a1.jsonl"),
        lines(&[side(user("Please look", None)), side(assistant("I looked", Some("Please look")))]),
    )
    .unwrap();
    std::fs::write(
        folder.join("agent-a1.meta.json"),
        r#"{"agentType":"Explore","description":"look <around>","toolUseId":"t3"}"#,
    )
    .unwrap();
    desk
}

fn export(desk: &Desk, export: Export) -> String {
    let mut out = Vec::new();
    desk.open(1).export(&export, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("system prompt"), "what was sent to the API stays where it is");
    text
}

#[test]
fn markdown_reads_well() {
    let desk = desk();
    let text = export(&desk, Export::new(Format::Markdown));
    // The time of the file is the only thing that differs from run to run.
    let text: String =
        text.lines().filter(|line| !line.starts_with("- Time:")).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!("markdown", text);
}

#[test]
fn markdown_shows_thinking_and_subagents_when_asked() {
    let desk = desk();
    let text = export(&desk, Export::new(Format::Markdown).thinking(true).subagents(true));
    assert!(text.contains("<summary>Thinking</summary>\n\nhm\n"), "{text}");
    let (before, after) = text.split_once("<b>Subagent (Explore): look &lt;around&gt;</b>").unwrap();
    assert!(before.contains("**Agent** `look around`") && !before.contains("All **done**"), "{before}");
    let (subagent, rest) = after.split_once("</details>").unwrap();
    assert!(subagent.contains("### User") && subagent.contains("I looked"), "{subagent}");
    assert!(rest.contains("All **done**"), "{rest}");
}

#[test]
fn json_is_for_programs() {
    let desk = desk();
    let value: Value = serde_json::from_str(&export(&desk, Export::new(Format::Json))).unwrap();
    assert_eq!(value["session"]["title"], "Fix # it");
    let messages = value["messages"].as_array().unwrap();
    let types: Vec<_> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(types.len(), 10, "{types:?}");
    assert_eq!(messages[0]["message"]["content"], "fix it");
    assert_eq!(messages[2]["toolUseResult"]["filePath"], "/w/a.rs");
    assert!(messages.iter().any(|message| message["subtype"] == "compact_boundary"));
    assert!(value.get("subagents").is_none());
    let whole = export(&desk, Export::new(Format::Json).thinking(true).subagents(true));
    let value: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(value["messages"].as_array().unwrap().len(), 11, "the thinking is there");
    assert_eq!(value["subagents"][0]["agentType"], "Explore");
    assert_eq!(value["subagents"][0]["messages"][1]["message"]["content"][0]["text"], "I looked");
}
