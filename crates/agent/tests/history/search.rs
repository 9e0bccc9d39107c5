//! Finding a text.

use oarlock_agent::history::{Filter, Hit, Part, Search};
use serde_json::json;

use crate::desk::{Desk, assistant, call, id, lines, result, user, with};

fn hits(desk: &Desk, search: &Search) -> Vec<Hit> {
    desk.library.search(&Filter::default(), search).unwrap().map(Result::unwrap).collect()
}

fn desk() -> Desk {
    let desk = Desk::new();
    let thinking = with(
        assistant("t", Some("r")),
        json!({ "message": { "id": "m2", "content": [{ "type": "thinking", "thinking": "Where is the Needle?" }] } }),
    );
    let path = desk.write(
        1,
        &[
            user("find the \"needle\"\nplease", None),
            call("c", "find the \"needle\"\nplease", "m", "Grep", "t1", json!({ "pattern": "needle", "-n": true })),
            result("r", "c", "t1", "src/hay.rs:1: needle"),
            thinking,
            json!({ "type": "api-request-blob", "uuid": "x", "message": { "content": "a needle for the model" } }),
            with(user("a meta needle", None), json!({ "isMeta": true })),
        ],
    );
    let folder = path.with_extension("").join("subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let side = with(user("a subagent's needle", None), json!({ "isSidechain": true }));
    std::fs::write(folder.join("agent-a1.jsonl"), lines(&[side])).unwrap();
    desk.write(2, &[user("nothing to see", None), assistant("ÜBER", Some("nothing to see"))]);
    desk
}

#[test]
fn a_text_is_found_in_every_part_that_people_see() {
    let desk = desk();
    let found = hits(&desk, &Search::new("needle"));
    let parts: Vec<_> = found.iter().map(|hit| (hit.part.clone(), hit.agent.as_deref())).collect();
    assert_eq!(
        parts,
        [
            (Part::Prompt, None),
            (Part::Call("Grep".into()), None),
            (Part::Result, None),
            (Part::Prompt, Some("a1")),
        ]
    );
    assert_eq!(found[0].excerpt, "find the \"needle\" please");
    assert_eq!(&found[0].excerpt[found[0].at.clone()], "needle");
    assert_eq!(found[0].session.id, id(1));
    assert_eq!(found[2].message, "r");
    assert_eq!(hits(&desk, &Search::new("needle").subagents(false)).len(), 3);
    assert_eq!(hits(&desk, &Search::new("needle").ignore_case(true)).len(), 5, "the thinking has a capital");
}

#[test]
fn escapes_and_other_scripts_are_no_obstacle() {
    let desk = desk();
    assert_eq!(hits(&desk, &Search::new("\"needle\"\nplease")).len(), 1);
    assert_eq!(hits(&desk, &Search::new("über").ignore_case(true))[0].session.id, id(2));
    assert_eq!(hits(&desk, &Search::new("über")).len(), 0);
    assert_eq!(hits(&desk, &Search::new("")).len(), 0);
    // As other programs write it.
    let text = r#"{"type":"user","uuid":"u","message":{"role":"user","content":"sm\u00f8rrebr\u00f8d"}}"#;
    desk.write_text(3, &format!("{text}\n"));
    assert_eq!(hits(&desk, &Search::new("smørrebrød")).len(), 1);
}

#[test]
fn one_session_can_be_searched_alone() {
    let desk = desk();
    assert_eq!(desk.open(2).search(&Search::new("e")).count(), 1);
    assert_eq!(desk.open(2).search(&Search::new("needle")).count(), 0);
}
