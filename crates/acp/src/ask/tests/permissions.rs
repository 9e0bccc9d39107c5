use std::sync::Arc;

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{PermissionMode, PermissionUpdate};
use oarlock_proto::acp::{PermissionOptionKind, PermissionOutcome};
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::frame::{Frames as _, memory};
use oarlock_wire::{Connection, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::client::{Deaf, FakeClient};
use super::{is_interrupt, is_plain_no, request, selected, situation};
use crate::ask::scope::{self, Place};
use crate::ask::{Situation, menu, permission, settle, tool};
use crate::context::{Asker, Context};

fn edit(more: Value) -> PermissionRequest {
    let mut fields = json!({
        "tool_name": "Edit",
        "input": { "file_path": "/w/a.txt", "old_string": "a", "new_string": "b" },
        "tool_use_id": "toolu_1",
        "permission_suggestions": [{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }],
    });
    for (name, value) in more.as_object().expect("fields") {
        fields[name] = value.clone();
    }
    request(fields)
}

const PLACE: Place<'_> = Place { cwd: "/home/u/w", home: Some("/home/u") };

/// Ids, names and kinds of what is offered.
fn offered(
    request: &PermissionRequest,
    modes: &[PermissionMode],
) -> Vec<(String, String, PermissionOptionKind)> {
    let suggested = request.permission_suggestions.clone().unwrap_or_default();
    let offers = tool::offers(request, suggested, modes, PLACE);
    offers
        .iter()
        .map(|offer| {
            let (id, name, kind) = offer.parts();
            (id.to_owned(), name.to_owned(), kind)
        })
        .collect()
}

fn ids(request: &PermissionRequest) -> Vec<String> {
    offered(request, &[]).into_iter().map(|(id, ..)| id).collect()
}

fn names(request: &PermissionRequest, modes: &[PermissionMode]) -> Vec<String> {
    offered(request, modes).into_iter().map(|(_, name, _)| name).collect()
}

#[tokio::test]
async fn acp_perm_01_the_question_names_the_call_and_repeats_nothing() {
    let mut client = FakeClient::plain(|_, _| Ok(selected("allow-once")));
    let situation = Situation { parent_tool_use_id: Some("toolu_0".into()), ..situation() };
    let decision = permission(&client.asker, &edit(json!({})), &situation).await;
    let Decision::Allow(allow) = decision else { panic!("{decision:?}") };
    assert_eq!(allow.updated_input.map(|input| input.value()["old_string"].clone()), Some(json!("a")));
    assert_eq!(allow.updated_permissions, None);
    let (method, params) = client.asked().await;
    assert_eq!(method, "session/request_permission");
    assert_eq!(
        params,
        json!({
            "sessionId": "s1",
            "toolCall": {
                "toolCallId": "toolu_1",
                "title": "Edit a.txt",
                "_meta": { "claudeCode": { "parentToolUseId": "toolu_0" } },
            },
            "options": [
                { "optionId": "allow-once", "name": "Yes", "kind": "allow_once" },
                { "optionId": "allow-with-updates", "name": "Yes, allow all edits during this session",
                  "kind": "allow_always" },
                { "optionId": "reject", "name": "No", "kind": "reject_once" },
            ],
        })
    );
}

#[tokio::test]
async fn acp_perm_01_always_gives_back_the_suggestion() {
    let client = FakeClient::plain(|_, _| Ok(selected("allow-with-updates")));
    let request = edit(json!({}));
    let Decision::Allow(allow) = permission(&client.asker, &request, &situation()).await else {
        panic!("no")
    };
    assert_eq!(allow.updated_permissions, request.permission_suggestions);
}

#[tokio::test]
async fn acp_perm_01_no_lets_the_model_go_on() {
    let client = FakeClient::plain(|_, _| Ok(selected("reject")));
    assert!(is_plain_no(&permission(&client.asker, &edit(json!({})), &situation()).await));
}

#[tokio::test]
async fn acp_cancel_02_a_cancelled_question_ends_the_turn() {
    let client = FakeClient::plain(|_, _| Ok(json!({ "outcome": { "outcome": "cancelled" } })));
    assert!(is_interrupt(&permission(&client.asker, &edit(json!({})), &situation()).await));
    let client = FakeClient::plain(|_, _| Err(ErrorObject::new(-32800, "cancelled")));
    assert!(is_interrupt(&permission(&client.asker, &edit(json!({})), &situation()).await));
}

#[tokio::test]
async fn acp_perm_02_answers_that_are_none_are_a_no() {
    for answer in [
        selected("allow-always"),
        selected("exit-plan-bypass"),
        selected(""),
        json!({ "outcome": { "outcome": "allowed", "optionId": "allow-once" } }),
        json!({ "outcome": { "outcome": "selected" } }),
        json!({ "outcome": "allow-once" }),
        json!({ "optionId": "allow-once" }),
        json!(true),
        Value::Null,
    ] {
        let shown = answer.to_string();
        let client = FakeClient::plain(move |_, _| Ok(answer.clone()));
        let decision = permission(&client.asker, &edit(json!({})), &situation()).await;
        assert!(is_plain_no(&decision), "{shown}: {decision:?}");
    }
    let client = FakeClient::plain(|_, _| Err(ErrorObject::internal("no window")));
    assert!(is_plain_no(&permission(&client.asker, &edit(json!({})), &situation()).await));
}

#[tokio::test]
async fn acp_perm_02_a_question_that_is_dropped_is_withdrawn() {
    let (ours, theirs) = memory(8);
    let connection = Connection::new(ours, Limits::default());
    let context = Context {
        settings: Arc::default(),
        peer: connection.peer(),
        client: Arc::default(),
        client_info: None,
        library: None,
    };
    tokio::spawn(connection.run(Deaf));
    let mut theirs = theirs;
    let asker = Asker { context: Arc::new(context), session_id: "s1".into() };
    let asking = tokio::spawn(async move { permission(&asker, &edit(json!({})), &situation()).await });
    let mut next = async || {
        let frame = std::future::poll_fn(|cx| theirs.poll_next(cx)).await;
        serde_json::from_str::<Value>(&frame.expect("open").expect("text")).expect("JSON")
    };
    let asked = next().await;
    asking.abort();
    let withdrawn = next().await;
    assert_eq!(withdrawn["method"], "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
}

#[test]
fn acp_perm_03_nothing_for_ever_when_the_cli_says_so() {
    let always = ["allow-once", "allow-with-updates", "reject"];
    let once = ["allow-once", "reject"];
    assert_eq!(ids(&edit(json!({}))), always);
    assert_eq!(ids(&edit(json!({ "suppress_always_allow_rule": true }))), once);
    assert_eq!(ids(&edit(json!({ "matched_ask_rule": { "source": "projectSettings" } }))), once);
    // This only says why it asks: a rule of the user's counts all the same.
    assert_eq!(ids(&edit(json!({ "server_policy_ask_only": true }))), always);
    assert_eq!(ids(&edit(json!({ "permission_suggestions": [] }))), once);
    assert_eq!(ids(&edit(json!({ "permission_suggestions": null }))), once);
    assert_eq!(ids(&edit(json!({ "default_to_no": true }))), ["reject", "allow-once", "allow-with-updates"]);
}

#[test]
fn acp_perm_03_skills() {
    let skill = |name: &str| request(json!({ "tool_name": "Skill", "input": { "skill": name } }));
    assert_eq!(ids(&skill("review")), ["allow-once", "allow-skill-exact", "reject"]);
    assert_eq!(
        names(&skill("review now"), &[]),
        [
            "Yes",
            "Yes, and don't ask again for the skill review now in ~/w",
            "Yes, and don't ask again for skills that begin with review in ~/w",
            "No"
        ]
    );
    assert_eq!(ids(&skill("")), ["allow-once", "reject"]);
}

#[tokio::test]
async fn acp_perm_03_plans() {
    let plan = request(json!({ "tool_name": "ExitPlanMode", "input": { "plan": "# Plan" } }));
    let modes =
        [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan, PermissionMode::Auto];
    assert_eq!(
        offered(&plan, &modes).into_iter().map(|(id, name, _)| (id, name)).collect::<Vec<_>>(),
        [
            ("exit-plan-default", "Yes, manually approve edits"),
            ("exit-plan-auto", "Yes, and use auto mode"),
            ("exit-plan-accept-edits", "Yes, auto-accept edits"),
            ("reject", "No, keep planning"),
        ]
        .map(|(id, name)| (id.to_owned(), name.to_owned()))
    );
    assert!(
        names(&plan, &[PermissionMode::BypassPermissions])
            .contains(&"Yes, and bypass permissions".to_owned())
    );

    let client = FakeClient::plain(|_, _| Ok(selected("reject")));
    assert!(is_interrupt(&permission(&client.asker, &plan, &situation()).await));
    let client = FakeClient::plain(|_, _| Ok(selected("exit-plan-auto")));
    let known = Situation { modes: modes.to_vec(), ..situation() };
    let Decision::Allow(allow) = permission(&client.asker, &plan, &known).await else { panic!("no") };
    let updates = allow.updated_permissions.expect("a mode");
    assert!(
        matches!(&updates[..], [PermissionUpdate::SetMode(update)] if update.mode == PermissionMode::Auto)
    );
    // A mode that is not there is not to be had.
    let client = FakeClient::plain(|_, _| Ok(selected("exit-plan-auto")));
    let known = Situation { modes: vec![PermissionMode::AcceptEdits], ..situation() };
    assert!(is_plain_no(&permission(&client.asker, &plan, &known).await));
}

#[test]
fn acp_perm_03_entering_a_plan() {
    let enter = request(json!({ "tool_name": "EnterPlanMode", "input": {} }));
    assert_eq!(names(&enter, &[]), ["Yes, enter plan mode", "No, start implementing now"]);
}

/// What a suggestion is called.
fn label(suggestions: Value) -> Option<String> {
    let updates: Vec<PermissionUpdate> = serde_json::from_value(suggestions).expect("updates");
    scope::label(&updates, PLACE)
}

fn rules(destination: &str, rules: &[(&str, Option<&str>)]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|(tool, content)| json!({ "toolName": tool, "ruleContent": content })).collect();
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|mut rule| {
            if rule["ruleContent"].is_null() {
                drop(rule.as_object_mut().map(|rule| rule.remove("ruleContent")));
            }
            rule
        })
        .collect();
    json!({ "type": "addRules", "rules": rules, "behavior": "allow", "destination": destination })
}

#[test]
fn acp_perm_03_the_reach_of_always_is_in_its_name() {
    let mode = json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" });
    let directory =
        json!({ "type": "addDirectories", "directories": ["/srv/data"], "destination": "session" });
    let cases = [
        (json!([mode]), "Yes, allow all edits during this session"),
        (json!([mode, directory]), "Yes, allow all edits and access to /srv/data/ during this session"),
        (
            json!([rules("session", &[("Read", Some("//etc/**"))])]),
            "Yes, allow reading from /etc/ during this session",
        ),
        (
            json!([rules("session", &[("Read", Some("//home/u/w/sub/**"))])]),
            "Yes, allow reading from sub/ during this session",
        ),
        (
            json!([rules("localSettings", &[("Bash", Some("npm test:*"))])]),
            "Yes, and don't ask again for npm test commands in ~/w",
        ),
        (
            json!([rules("localSettings", &[("Bash", Some("touch a")), ("Bash", Some("rm -f a *"))])]),
            "Yes, and don't ask again for touch a and rm -f a commands in ~/w",
        ),
        (
            json!([rules("localSettings", &[("Bash", Some("cat *"))]), directory, mode]),
            "Yes, and don't ask again for cat commands in ~/w, and allow access to /srv/data/ and all edits during this session",
        ),
        (
            json!([rules("localSettings", &[("WebFetch", Some("domain:example.com"))])]),
            "Yes, and don't ask again for example.com in ~/w",
        ),
        (
            json!([rules("projectSettings", &[("WebSearch", None)])]),
            "Yes, and don't ask again for WebSearch commands in ~/w, for everyone who works there (.claude/settings.json)",
        ),
        (
            json!([rules("userSettings", &[("mcp__db__query", None)])]),
            "Yes, and don't ask again for query of db in all projects",
        ),
        (
            json!([rules("session", &[("Bash", None)])]),
            "Yes, and don't ask again for any Bash command during this session",
        ),
    ];
    for (suggestions, name) in cases {
        assert_eq!(label(suggestions.clone()).as_deref(), Some(name), "{suggestions}");
    }
}

#[test]
fn acp_perm_03_what_cannot_be_said_is_not_offered() {
    let mut deny = rules("session", &[("Bash", Some("ls"))]);
    deny["behavior"] = json!("deny");
    let mut remove = rules("session", &[("Bash", Some("ls"))]);
    remove["type"] = json!("removeRules");
    let long = "x".repeat(161);
    for suggestions in [
        json!([]),
        json!([deny]),
        json!([remove]),
        json!([{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }]),
        json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "cloud" }]),
        json!([{ "type": "removeDirectories", "directories": ["/x"], "destination": "session" }]),
        json!([{ "type": "grantAll", "destination": "session" }]),
        json!([rules("session", &[("Bash", Some("ls\nrm -rf /"))])]),
        json!([rules("session", &[("Bash", Some("ls \u{202e}txt"))])]),
        json!([rules("session", &[("Bash", Some("l\u{ad}s"))])]),
        json!([rules("session", &[("Bash", Some("ls\u{e0041}\u{e0042}"))])]),
        json!([rules("session", &[("Bash", Some("ls\u{3164}"))])]),
        json!([rules("session", &[("Bash", Some(&long))])]),
        json!([rules("session", &[("WebFetch", Some("regex:.*"))])]),
        // One part that cannot be said spoils the rest.
        json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }, deny]),
    ] {
        assert_eq!(label(suggestions.clone()), None, "{suggestions}");
    }
}

fn any_update() -> impl Strategy<Value = Value> {
    let destination =
        prop::sample::select(vec!["session", "localSettings", "projectSettings", "userSettings", "x"]);
    let tool = prop::sample::select(vec!["Bash", "Read", "Edit", "WebFetch", "Skill", "mcp__a__b", "Odd"]);
    let content = prop::option::of("[a-z*/ :.]{0,12}");
    let kind = prop::sample::select(vec!["addRules", "replaceRules", "removeRules"]);
    let behavior = prop::sample::select(vec!["allow", "deny", "ask"]);
    let mode =
        prop::sample::select(vec!["default", "acceptEdits", "bypassPermissions", "plan", "auto", "odd"]);
    prop_oneof![
        (kind, tool, content, behavior, destination.clone()).prop_map(
            |(kind, tool, content, behavior, to)| {
                let mut rule = json!({ "toolName": tool });
                if let Some(content) = content {
                    rule["ruleContent"] = json!(content);
                }
                json!({ "type": kind, "rules": [rule], "behavior": behavior, "destination": to })
            }
        ),
        (mode, destination.clone())
            .prop_map(|(mode, to)| json!({ "type": "setMode", "mode": mode, "destination": to })),
        ("/[a-z/]{0,8}", destination)
            .prop_map(|(at, to)| json!({ "type": "addDirectories", "directories": [at], "destination": to })),
    ]
}

fn any_request() -> impl Strategy<Value = PermissionRequest> {
    let tool = prop::sample::select(vec![
        "Bash",
        "Edit",
        "Write",
        "Read",
        "WebFetch",
        "Skill",
        "ExitPlanMode",
        "EnterPlanMode",
        "mcp__a__b",
    ]);
    let flag = || prop::option::of(any::<bool>());
    (tool, prop::collection::vec(any_update(), 0..4), flag(), flag(), flag(), flag()).prop_map(
        |(tool, suggestions, no_first, suppress, ask_only, asked)| {
            request(json!({
                "tool_name": tool,
                "input": { "command": "ls", "skill": "a b", "plan": "p", "file_path": "/w/x" },
                "tool_use_id": "toolu_1",
                "permission_suggestions": suggestions,
                "default_to_no": no_first,
                "suppress_always_allow_rule": suppress,
                "server_policy_ask_only": ask_only,
                "matched_ask_rule": asked.filter(|asked| *asked).map(|_| "Bash(ls)"),
            }))
        },
    )
}

fn any_modes() -> impl Strategy<Value = Vec<PermissionMode>> {
    let words = vec!["default", "acceptEdits", "plan", "auto", "bypassPermissions", "dontAsk", "odd"];
    prop::sample::subsequence(words.clone(), 0..words.len())
        .prop_map(|words| words.into_iter().map(PermissionMode::from).collect())
}

proptest! {
    /// A wrong word must never let a tool run.
    #[test]
    fn acp_perm_01_only_an_offered_yes_is_a_yes(
        request in any_request(),
        modes in any_modes(),
        pick in any::<prop::sample::Index>(),
        stray in "[a-z-]{0,24}|allow-once|allow-with-updates|allow-always|exit-plan-(auto|bypass|default)|reject|done",
        outcome in 0..4,
    ) {
        let suggested = request.permission_suggestions.clone().unwrap_or_default();
        let offers = tool::offers(&request, suggested, &modes, PLACE);
        let known: Vec<(String, PermissionOptionKind)> =
            offers.iter().map(|offer| (offer.parts().0.to_owned(), offer.parts().2)).collect();
        // An id means one thing; a name is there; what is offered as a no is one, and so is a yes.
        for offer in &offers {
            let (id, name, kind) = offer.parts();
            prop_assert_eq!(known.iter().filter(|(other, _)| other == id).count(), 1);
            prop_assert!(!name.is_empty());
            let is_yes = matches!(kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways);
            prop_assert_eq!(matches!(offer.meaning(), Decision::Allow(_)), is_yes);
        }
        prop_assert!(known.iter().any(|(_, kind)| *kind == PermissionOptionKind::RejectOnce));

        let chosen = known[pick.index(known.len())].0.clone();
        let outcome = match outcome {
            0 => PermissionOutcome::Selected { option_id: chosen },
            1 => PermissionOutcome::Selected { option_id: stray },
            2 => PermissionOutcome::Cancelled,
            _ => PermissionOutcome::Unknown,
        };
        let yes = match &outcome {
            PermissionOutcome::Selected { option_id } => known.iter().any(|(id, kind)| {
                id == option_id && matches!(kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
            }),
            _ => false,
        };
        let decision = settle(&request, menu::choose(offers, outcome));
        prop_assert_eq!(matches!(decision, Decision::Allow(_)), yes);
    }

    /// A rule is kept only by an answer whose name says so.
    #[test]
    fn acp_perm_01_a_plain_yes_keeps_nothing(request in any_request(), modes in any_modes()) {
        let suggested = request.permission_suggestions.clone().unwrap_or_default();
        for offer in tool::offers(&request, suggested, &modes, PLACE) {
            let (id, name, kind) = offer.parts();
            let keeps = matches!(offer.meaning(), Decision::Allow(allow) if allow.updated_permissions.is_some());
            if kind == PermissionOptionKind::AllowOnce && id != "exit-plan-default" {
                prop_assert!(!keeps);
            }
            if kind == PermissionOptionKind::AllowAlways {
                prop_assert!(keeps && name.len() > "Yes".len());
            }
        }
    }
}
