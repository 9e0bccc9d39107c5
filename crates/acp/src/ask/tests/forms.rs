use oarlock_agent::stream::reply::ElicitationAction;
use oarlock_agent::stream::{Elicitation, Json, RequestUserDialog};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::{Value, json};

use super::client::FakeClient;
use crate::ask::{dialog, elicitation, elicitation_complete, form};

fn elicited(fields: Value) -> Elicitation {
    serde_json::from_value(fields).expect("a question")
}

#[tokio::test]
async fn forms_of_mcp_servers_are_flat_and_in_order() {
    let mut client =
        FakeClient::with_forms(|_, _| Ok(json!({ "action": "accept", "content": { "name": "x", "n": 2 } })));
    let request = elicited(json!({
        "mcp_server_name": "db", "message": "Which?", "mode": "form",
        "property_order": ["n", "name"],
        "requested_schema": { "type": "object", "$schema": "x", "required": ["name"], "properties": {
            "name": { "type": ["string", "null"], "title": "Name", "format": "hostname", "x-odd": 1, "maxLength": 9 },
            "n": { "type": "integer", "minimum": 1, "default": "two" },
            "kind": { "type": "string", "enum": ["a", "b"], "enumNames": ["A"] },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "maxItems": 2 },
            "deep": { "type": "object", "properties": {} },
        } },
    }));
    let reply = elicitation(&client.asker, request).await;
    assert_eq!(reply.action, ElicitationAction::Accept);
    assert_eq!(reply.content.map(|content| content.value()), Some(json!({ "name": "x", "n": 2 })));
    let (_, asked) = client.asked().await;
    assert_eq!(asked["message"], "db: Which?");
    assert_eq!(
        asked["requestedSchema"],
        json!({ "type": "object", "required": ["name"], "properties": {
            "n": { "type": "integer", "minimum": 1 },
            "name": { "type": "string", "title": "Name", "maxLength": 9 },
            "kind": { "type": "string", "oneOf": [
                { "const": "a", "title": "A" }, { "const": "b", "title": "b" } ] },
            "tags": { "type": "array", "maxItems": 2, "items": { "type": "string", "enum": ["x", "y"] } },
        } })
    );
}

#[test]
fn the_order_of_fields_is_kept() {
    let schema: Json = serde_json::from_str(
        r#"{"properties":{"z":{"type":"string"},"a":{"type":"boolean"},"m":{"type":"number"}}}"#,
    )
    .expect("JSON");
    let order = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let flat = form::flatten(&schema, &wanted).expect("a form").text().to_owned();
        let mut at: Vec<(usize, &str)> = ["z", "a", "m"]
            .map(|name| (flat.find(&format!("\"{name}\":")).expect("the field"), name))
            .to_vec();
        at.sort_unstable();
        at.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(order(&[]), ["z", "a", "m"]);
    assert_eq!(order(&["m", "a"]), ["m", "a", "z"]);
}

#[tokio::test]
async fn questions_of_mcp_servers_that_cannot_be_put_are_cancelled() {
    let form = json!({ "mcp_server_name": "db", "message": "?", "requested_schema": { "properties": {} } });
    let url = json!({ "mcp_server_name": "db", "message": "?", "mode": "url", "url": "https://x.org" });
    let mut client = FakeClient::plain(|_, _| Ok(json!({ "action": "accept" })));
    for request in [form.clone(), url.clone()] {
        assert_eq!(elicitation(&client.asker, elicited(request)).await.action, ElicitationAction::Cancel);
    }
    assert!(client.asked_all().is_empty(), "nothing that the client does not have");

    let mut client = FakeClient::with_forms(|_, _| Ok(json!({ "action": "accept" })));
    let mut odd = form.clone();
    odd["requested_schema"] = json!({ "properties": { "a": { "type": "object" } }, "required": ["a"] });
    let mut script = url.clone();
    script["url"] = json!("javascript:alert(1)");
    for request in [odd, script] {
        assert_eq!(elicitation(&client.asker, elicited(request)).await.action, ElicitationAction::Cancel);
    }
    assert!(client.asked_all().is_empty());

    for (answer, action) in [
        (Ok(json!({ "action": "decline" })), ElicitationAction::Decline),
        (Ok(json!({ "action": "cancel" })), ElicitationAction::Cancel),
        (Ok(json!({ "action": "_odd" })), ElicitationAction::Cancel),
        (Err(ErrorObject::internal("no window")), ElicitationAction::Cancel),
    ] {
        let client = FakeClient::with_forms(move |_, _| answer.clone());
        assert_eq!(elicitation(&client.asker, elicited(form.clone())).await.action, action);
    }
}

#[tokio::test]
async fn addresses_of_mcp_servers_are_opened_and_closed() {
    let mut client = FakeClient::with_forms(|_, _| Ok(json!({ "action": "accept" })));
    let reply = elicitation(
        &client.asker,
        elicited(
            json!({ "mcp_server_name": "db", "message": "Log in", "mode": "url", "url": "https://x.org/l",
            "elicitation_id": "e1" }),
        ),
    )
    .await;
    assert_eq!((reply.action, reply.content), (ElicitationAction::Accept, None));
    let (_, asked) = client.asked().await;
    assert_eq!(
        asked,
        json!({ "sessionId": "s1", "message": "db: Log in", "mode": "url", "url": "https://x.org/l",
            "elicitationId": "e1" })
    );
    elicitation_complete(&client.asker.context, "e1".into());
    assert_eq!(client.asked().await, ("elicitation/complete".to_owned(), json!({ "elicitationId": "e1" })));
}

#[tokio::test]
async fn another_model_only_after_a_clear_yes() {
    let ask = |kind: &str, payload: Value| RequestUserDialog {
        dialog_kind: kind.into(),
        payload: payload.into(),
        ..Default::default()
    };
    let refusal = json!({ "originalModel": "opus", "fallbackModel": "sonnet", "apiRefusalCategory": "x" });
    let kind = "refusal_fallback_prompt";
    for (answer, reply) in [
        (json!({ "action": "accept", "content": { "choice": "retry_fallback" } }), json!("retry_fallback")),
        (json!({ "action": "accept", "content": { "choice": "yes" } }), json!("cancelled")),
        (json!({ "action": "accept" }), json!("cancelled")),
        (json!({ "action": "decline" }), json!("cancelled")),
        (json!({ "action": "cancel" }), Value::Null),
        (json!([]), Value::Null),
    ] {
        let client = FakeClient::with_forms(move |_, _| Ok(answer.clone()));
        let given = dialog(&client.asker, ask(kind, refusal.clone())).await.expect("an answer").value();
        assert_eq!(given.get("result").cloned().unwrap_or_default(), reply);
        assert_eq!(given["behavior"], if reply.is_null() { "cancelled" } else { "completed" });
    }
    let mut client = FakeClient::with_forms(|_, _| Ok(json!({ "action": "accept" })));
    for request in [ask("other", refusal.clone()), ask(kind, json!({})), ask(kind, json!("x"))] {
        let given = dialog(&client.asker, request).await.expect("an answer");
        assert_eq!(given.value(), json!({ "behavior": "cancelled" }));
    }
    assert!(client.asked_all().is_empty());
}
