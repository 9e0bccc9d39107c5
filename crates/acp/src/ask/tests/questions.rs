use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::{Value, json};

use super::client::FakeClient;
use super::{is_interrupt, is_plain_no, request, selected, situation};
use crate::ask::permission;

fn questions() -> PermissionRequest {
    request(json!({
        "tool_name": "AskUserQuestion",
        "tool_use_id": "toolu_1",
        "input": { "questions": [
            { "question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
                { "label": "Red", "description": "Warm" }, { "label": "Blue", "preview": "# Blue" } ] },
            { "question": "Which sizes?", "header": "Size", "multiSelect": true, "options": [
                { "label": "S" }, { "label": "M" }, { "label": "L, or so" } ] },
        ] },
    }))
}

fn answers(decision: &Decision) -> Value {
    match decision {
        Decision::Allow(allow) => allow.updated_input.clone().expect("input").value(),
        decision => panic!("{decision:?}"),
    }
}

#[tokio::test]
async fn questions_are_a_form_where_there_are_forms() {
    let mut client = FakeClient::with_forms(|_, _| {
        Ok(json!({ "action": "accept", "content": {
            "question_0": "Red", "question_0_custom": "dark",
            "question_1": ["S", "L, or so"], "question_1_custom": " XXL ",
        } }))
    });
    let input = answers(&permission(&client.asker, &questions(), &situation()).await);
    assert_eq!(input["answers"], json!({ "Which colour?": "Red", "Which sizes?": "S, \"L, or so\", XXL" }));
    assert_eq!(input["annotations"], json!({ "Which colour?": { "notes": "dark" } }));
    assert_eq!(input["questions"][1]["header"], "Size");
    let (method, form) = client.asked().await;
    assert_eq!(method, "elicitation/create");
    assert_eq!(form["mode"], "form");
    assert_eq!(form["toolCallId"], "toolu_1");
    let fields = &form["requestedSchema"]["properties"];
    assert_eq!(fields["question_0"]["title"], "Colour");
    assert_eq!(fields["question_0"]["description"], "Which colour?");
    assert_eq!(
        fields["question_0"]["oneOf"],
        json!([
            { "const": "Red", "title": "Red", "description": "Warm" },
            { "const": "Blue", "title": "Blue",
              "_meta": { "_claude/askUserQuestionOption": { "preview": "# Blue" } } },
        ])
    );
    assert_eq!(fields["question_1"]["items"]["anyOf"][2]["const"], "L, or so");
    assert_eq!(fields["question_1_custom"]["title"], "Other");
    assert_eq!(form["requestedSchema"]["required"], Value::Null);
}

#[tokio::test]
async fn own_words_are_an_answer() {
    let client = FakeClient::with_forms(|_, _| {
        Ok(json!({ "action": "accept", "content": { "question_0": null, "question_0_custom": "green" } }))
    });
    let input = answers(&permission(&client.asker, &questions(), &situation()).await);
    assert_eq!(input["answers"], json!({ "Which colour?": "green" }));
    assert_eq!(input.get("annotations"), None);
}

#[tokio::test]
async fn a_form_that_is_not_filled_in_is_a_no() {
    for (answer, interrupts) in [
        (Ok(json!({ "action": "decline" })), false),
        (Ok(json!({ "action": "accept" })), false),
        (Ok(json!({ "action": "accept", "content": { "question_0": "", "question_1": [] } })), false),
        (Ok(json!({ "action": "cancel" })), true),
        (Ok(json!({ "action": "_later" })), false),
        (Ok(json!("yes")), false),
        (Err(ErrorObject::internal("no window")), false),
        (Err(ErrorObject::new(-32800, "cancelled")), true),
    ] {
        let shown = format!("{answer:?}");
        let client = FakeClient::with_forms(move |_, _| answer.clone());
        let decision = permission(&client.asker, &questions(), &situation()).await;
        assert!(if interrupts { is_interrupt(&decision) } else { is_plain_no(&decision) }, "{shown}");
    }
}

#[tokio::test]
async fn acp_init_03_questions_without_forms_are_asked_one_by_one() {
    let mut picks = vec!["option-1", "option-2", "option-0", "done"].into_iter();
    let mut client = FakeClient::plain(move |_, _| Ok(selected(picks.next().unwrap_or("skip"))));
    let input = answers(&permission(&client.asker, &questions(), &situation()).await);
    assert_eq!(input["answers"], json!({ "Which colour?": "Blue", "Which sizes?": "S, \"L, or so\"" }));
    let asked = client.asked_all();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|(method, _)| method == "session/request_permission"));
    assert_eq!(asked[0].1["toolCall"], json!({ "toolCallId": "toolu_1", "title": "Colour: Which colour?" }));
    assert_eq!(
        asked[0].1["options"],
        json!([
            { "optionId": "option-0", "name": "Red (Warm)", "kind": "allow_once" },
            { "optionId": "option-1", "name": "Blue", "kind": "allow_once" },
            { "optionId": "skip", "name": "Skip", "kind": "reject_once" },
        ])
    );
    let last: Vec<&Value> =
        asked[3].1["options"].as_array().expect("options").iter().map(|o| &o["name"]).collect();
    assert_eq!(last, ["Done: S, L, or so", "Also M", "Skip"]);
}

#[tokio::test]
async fn questions_without_forms_can_be_skipped_and_cancelled() {
    let mut client = FakeClient::plain(|_, _| Ok(selected("skip")));
    assert!(is_plain_no(&permission(&client.asker, &questions(), &situation()).await));
    assert_eq!(client.asked_all().len(), 2);
    let mut client = FakeClient::plain(|_, _| Ok(json!({ "outcome": { "outcome": "cancelled" } })));
    assert!(is_interrupt(&permission(&client.asker, &questions(), &situation()).await));
    assert_eq!(client.asked_all().len(), 1);
    // Not an answer to the first question: the second is not asked.
    let mut client = FakeClient::plain(|_, _| Ok(selected("option-7")));
    assert!(is_plain_no(&permission(&client.asker, &questions(), &situation()).await));
    assert_eq!(client.asked_all().len(), 1);
}

#[tokio::test]
async fn a_call_without_questions_is_not_shown() {
    let mut client = FakeClient::plain(|_, _| Ok(selected("allow-once")));
    for input in [
        json!({}),
        json!({ "questions": [] }),
        json!({ "questions": [{ "question": "Why?", "options": [] }] }),
    ] {
        let ask = request(json!({ "tool_name": "AskUserQuestion", "input": input }));
        assert!(is_plain_no(&permission(&client.asker, &ask, &situation()).await));
    }
    assert!(client.asked_all().is_empty());
}
