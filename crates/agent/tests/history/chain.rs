//! Which records are the conversation.

use oarlock_agent::history::Reading;
use oarlock_agent::stream::{Message, System, ToolOutput};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{Desk, assistant, call, id, lines, record, result, texts, user, with};

fn uuids(desk: &Desk, reading: Reading) -> Vec<String> {
    let messages = desk.open(1).read(reading).unwrap();
    messages.map(|record| record.unwrap().uuid).collect()
}

fn read(records: &[Value]) -> Vec<String> {
    let desk = Desk::new();
    desk.write(1, records);
    uuids(&desk, Reading::Whole)
}

#[test]
fn what_is_no_message_links_messages() {
    let attachment = with(record("attachment", "x", Some("a"), json!(null)), json!({ "attachment": {} }));
    let other = json!({ "type": "api-request-blob", "uuid": "secret", "parentUuid": "a", "message": { "content": "system" } });
    assert_eq!(read(&[user("a", None), attachment, other, assistant("b", Some("x"))]), ["a", "b"]);
}

#[test]
fn of_several_branches_the_last_is_the_conversation() {
    let branch = [
        user("a", None),
        assistant("b", Some("a")),
        user("taken back", Some("b")),
        assistant("old", Some("taken back")),
        user("instead", Some("b")),
        assistant("new", Some("instead")),
    ];
    assert_eq!(read(&branch), ["a", "b", "instead", "new"]);
}

#[test]
fn side_chains_meta_messages_and_teams_are_left_out() {
    let side = |uuid: &str, parent: &str| with(user(uuid, Some(parent)), json!({ "isSidechain": true }));
    let meta = with(user("meta", Some("a")), json!({ "isMeta": true }));
    let team = with(user("team", Some("b")), json!({ "teamName": "t" }));
    assert_eq!(
        read(&[user("a", None), meta, assistant("b", Some("meta")), team, side("s1", "b"), side("s2", "s1")]),
        ["a", "b"]
    );
}

#[test]
fn all_calls_of_an_answer_and_all_their_results_are_there() {
    // As the CLI writes it: each result hangs on the record of its own call.
    let bash = |command: &str| json!({ "command": command });
    let parallel = [
        user("a", None),
        call("c1", "a", "m", "Bash", "t1", bash("one")),
        call("c2", "c1", "m", "Bash", "t2", bash("two")),
        call("c3", "c2", "m", "Bash", "t3", bash("three")),
        result("r1", "c1", "t1", "1"),
        result("r3", "c3", "t3", "3"),
        result("r2", "c2", "t2", "2"),
        assistant("end", Some("r2")),
    ];
    assert_eq!(read(&parallel), ["a", "c1", "c2", "c3", "r1", "r3", "r2", "end"]);
    // Ended in the middle.
    assert_eq!(read(&parallel[..6]), ["a", "c1", "c2", "c3", "r1", "r3"]);
}

#[test]
fn a_result_that_hangs_elsewhere_is_taken_only_for_an_open_call() {
    let stray = |uuid: &str, id: &str| result(uuid, "lost", id, "late");
    let records = [
        user("a", None),
        call("c1", "a", "m", "Bash", "t1", json!({})),
        call("c2", "c1", "m", "Bash", "t2", json!({})),
        result("r2", "c2", "t2", "2"),
        stray("s1", "t1"),
        stray("s2", "t2"),
        stray("s3", "unknown"),
        assistant("end", Some("r2")),
    ];
    assert_eq!(read(&records), ["a", "c1", "c2", "s1", "r2", "end"]);
}

fn compacted() -> Vec<Value> {
    vec![
        user("a", None),
        assistant("b", Some("a")),
        json!({ "type": "system", "subtype": "compact_boundary", "uuid": "x", "parentUuid": null, "isSidechain": false,
            "logicalParentUuid": "b", "timestamp": "2026-11-15T01:03:38.855Z",
            "compactMetadata": { "trigger": "manual", "preTokens": 30, "preservedMessages": { "uuids": ["b"] } } }),
        with(user("summary", Some("x")), json!({ "isCompactSummary": true })),
        user("c", Some("summary")),
        assistant("d", Some("c")),
    ]
}

#[test]
fn a_compaction_hides_nothing_unless_that_is_asked_for() {
    let desk = Desk::new();
    desk.write(1, &compacted());
    assert_eq!(uuids(&desk, Reading::Whole), ["a", "b", "x", "summary", "c", "d"]);
    assert_eq!(uuids(&desk, Reading::SinceCompaction), ["summary", "c", "d"]);
    let records: Vec<_> = desk.open(1).messages().unwrap().map(Result::unwrap).collect();
    let Message::System(System::CompactBoundary(boundary)) = &records[2].message else {
        panic!("{records:?}")
    };
    assert_eq!(
        (boundary.compact_metadata.trigger.as_str(), boundary.compact_metadata.pre_tokens),
        ("manual", Some(30))
    );
    assert!(records[3].is_summary && !records[3].is_prompt() && records[4].is_prompt());
}

#[test]
fn a_circle_ends() {
    assert_eq!(
        read(&[user("a", Some("b")), assistant("b", Some("a"))]),
        Vec::<String>::new(),
        "no end, no chain"
    );
    // As a fork of a compacted session by the CLI: what was kept hangs on the summary, which hangs on it.
    let mut records = compacted();
    records[1]["parentUuid"] = json!("summary");
    records[4]["parentUuid"] = json!("b");
    assert_eq!(read(&records), ["x", "summary", "b", "c", "d"]);
}

#[test]
fn of_records_with_one_name_the_last_counts() {
    let first = user("a", None);
    let again = with(user("a", None), json!({ "message": { "role": "user", "content": "again" } }));
    let desk = Desk::new();
    desk.write(1, &[first, again, assistant("b", Some("a"))]);
    assert_eq!(desk.texts(1), ["again", "b"]);
}

#[test]
fn lines_that_are_no_records_are_counted() {
    let desk = Desk::new();
    let text = format!(
        "\n  \nno JSON\n{}[1]\n{}{{\"type\":\"user\",\"uu",
        lines(&[user("a", None)]),
        lines(&[assistant("b", Some("a"))])
    );
    desk.write_text(1, &text);
    let messages = desk.open(1).messages().unwrap();
    assert_eq!((messages.len(), messages.skipped()), (2, 3));
    assert_eq!(texts(messages), ["a", "b"]);
}

#[test]
fn records_read_as_the_protocol_s_own_messages() {
    let desk = Desk::new();
    let output = json!({ "stdout": "one\n", "stderr": "", "interrupted": false, "isImage": false });
    desk.write(
        1,
        &[
            user("a", None),
            call("c", "a", "m", "Bash", "t", json!({ "command": "echo one" })),
            with(result("r", "c", "t", "one"), json!({ "toolUseResult": output })),
        ],
    );
    let records: Vec<_> = desk.open(1).messages().unwrap().map(Result::unwrap).collect();
    let Message::User(user) = &records[2].message else { panic!("a result") };
    assert_eq!(user.session_id.as_deref(), Some("s"));
    let ToolOutput::Bash(bash) = ToolOutput::of("Bash", user.tool_use_result.as_ref().unwrap()) else {
        panic!("typed")
    };
    assert_eq!(bash.stdout, "one\n");
    assert_eq!(records[2].parent.as_deref(), Some("c"));
    assert!(records[2].time().is_some());
    assert_eq!(records[0].text(), "a");
}

#[test]
fn subagents_are_found_with_what_they_were_for() {
    let desk = Desk::new();
    desk.write(1, &[user("a", None)]);
    let folder = desk.folder(&desk.cwd()).join(id(1)).join("subagents");
    std::fs::create_dir_all(folder.join("runs/r1")).unwrap();
    let side = |record: Value| with(record, json!({ "isSidechain": true, "agentId": "x" }));
    let mut records = vec![side(user("task", None)), side(assistant("done", Some("task")))];
    std::fs::write(folder.join("agent-a1.jsonl"), lines(&records)).unwrap();
    std::fs::write(
        folder.join("agent-a1.meta.json"),
        r#"{"agentType":"Explore","description":"look","toolUseId":"t","spawnDepth":1}"#,
    )
    .unwrap();
    records.push(side(user("more", Some("done"))));
    std::fs::write(folder.join("runs/r1/agent-b2.jsonl"), lines(&records)).unwrap();
    std::fs::write(folder.join("other.jsonl"), "").unwrap();
    let subagents = desk.open(1).subagents().unwrap();
    let ids: Vec<_> = subagents.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["a1", "b2"]);
    assert_eq!(subagents[0].agent_type.as_deref(), Some("Explore"));
    assert_eq!(subagents[0].tool_use_id.as_deref(), Some("t"));
    assert_eq!(subagents[1].description, None);
    assert_eq!(texts(subagents[0].messages().unwrap()), ["task", "done"]);
    let found = desk.open(1).subagent("b2").unwrap().unwrap();
    assert_eq!(texts(found.messages().unwrap()), ["task", "done", "more"]);
    assert_eq!(desk.open(1).subagent("../a1").unwrap(), None);
}

/// A record of a made-up tree: which earlier record it hangs on, and what it is.
#[derive(Debug, Clone)]
struct Node {
    parent: Option<usize>,
    is_link: bool,
    is_aside: bool,
}

fn trees() -> impl Strategy<Value = Vec<Node>> {
    let node = (any::<prop::sample::Index>(), 0..10_u8, 0..10_u8, 0..10_u8);
    prop::collection::vec(node, 0..40).prop_map(|nodes| {
        let node = |(at, (parent, how, link, aside)): (usize, (prop::sample::Index, u8, u8, u8))| Node {
            // Mostly the one before, sometimes any earlier one, now and then none.
            parent: match how {
                0 => None,
                1..=2 if at > 0 => Some(parent.index(at)),
                _ => at.checked_sub(1),
            },
            is_link: link < 2,
            is_aside: aside < 1,
        };
        nodes.into_iter().enumerate().map(node).collect()
    })
}

/// The same question, answered in the plainest way.
fn expected(nodes: &[Node]) -> Vec<String> {
    let is_parent = |at: usize| nodes.iter().any(|node| node.parent == Some(at));
    let message = |mut at: usize| loop {
        if !nodes[at].is_link {
            return Some(at);
        }
        at = nodes[at].parent?;
    };
    let leaves: Vec<usize> = (0..nodes.len()).filter(|at| !is_parent(*at)).filter_map(message).collect();
    let main = leaves.iter().copied().filter(|at| !nodes[*at].is_aside).max();
    let Some(leaf) = main.or_else(|| leaves.iter().copied().max()) else { return Vec::new() };
    let mut chain = Vec::new();
    let mut next = Some(leaf);
    while let Some(at) = next {
        chain.push(at);
        next = nodes[at].parent;
    }
    chain.reverse();
    let shown = |at: &usize| !nodes[*at].is_link && !nodes[*at].is_aside;
    chain.into_iter().filter(shown).map(|at| format!("n{at}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_tree_is_read_along_its_last_branch(nodes in trees(), broken in prop::collection::vec(any::<bool>(), 40)) {
        let mut text = String::new();
        for (at, node) in nodes.iter().enumerate() {
            let name = format!("n{at}");
            let parent = node.parent.map(|parent| format!("n{parent}"));
            let kind = if node.is_link { "attachment" } else { "user" };
            let line = with(record(kind, &name, parent.as_deref(), json!({ "role": "user", "content": name })),
                json!({ "isMeta": node.is_aside }));
            text.push_str(&lines(&[line]));
            if broken[at] {
                text.push_str("{\"type\":\"us\n");
            }
        }
        let desk = Desk::new();
        desk.write_text(1, &format!("{text}\n"));
        prop_assert_eq!(uuids(&desk, Reading::Whole), expected(&nodes));
    }

    #[test]
    fn no_file_makes_reading_panic(lines in prop::collection::vec(odd_line(), 0..20)) {
        let desk = Desk::new();
        desk.write_text(1, &format!("{} ", lines.join("\n")));
        let transcript = desk.open(1);
        let _ = transcript.summary();
        let messages: Vec<_> = transcript.messages().unwrap().collect();
        prop_assert!(messages.into_iter().all(|record| record.is_ok()));
    }
}

/// Lines with the right words in the wrong places.
fn odd_line() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "\"user\"",
        "\"assistant\"",
        "\"system\"",
        "\"compact_boundary\"",
        "\"a\"",
        "\"b\"",
        "\"c\"",
        "null",
        "true",
        "[]",
        "{}",
        "7",
        "[{\"type\":\"tool_use\",\"id\":\"t\"}]",
        "[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]",
        "{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\"}]}",
        "{\"content\":\"\\ud800\"}",
    ]);
    let key = prop::sample::select(vec![
        "type",
        "subtype",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "message",
        "isSidechain",
        "isMeta",
        "timestamp",
        "sourceToolAssistantUUID",
        "compactMetadata",
        "toolUseResult",
    ]);
    prop::collection::vec((key, word), 0..8).prop_map(|fields| {
        let fields: Vec<String> =
            fields.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    })
}
