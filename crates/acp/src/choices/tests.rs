use oarlock_agent::stream::{Message, Response, decode, reply};
use oarlock_proto::jsonrpc::INVALID_PARAMS;

use super::*;

/// What CLIs of these versions said, shortened.
fn info(text: &str) -> reply::Initialize {
    let line = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"1","response":{text}}}}}"#
    );
    let Ok(Message::ControlResponse(answer)) = decode(line.as_bytes()) else { panic!("an answer") };
    let Response::Success(success) = answer.response else { panic!("a good one") };
    success.response.unwrap().read().unwrap()
}

fn new_cli() -> reply::Initialize {
    info(
        r#"{"commands":[{"name":"compact","description":"Free up context","argumentHint":"<what to keep>"},
            {"name":"clear","description":"Start anew","argumentHint":"[name]"},
            {"name":"__remote-workflow","description":"x","argumentHint":""},
            {"name":"doctor","description":"Health-check","argumentHint":""},
            {"name":"my-probe:greet (MCP)","description":"Greets","argumentHint":""},
            {"name":"mcp__my-probe__greet","description":"Greets","argumentHint":""},
            {"name":"init","description":"Initialize","argumentHint":" "}],
        "agents":[{"name":"claude"},{"name":"Explore","model":"haiku"},{"name":"general-purpose"},{"name":"Plan"},
            {"name":"statusline-setup"},{"name":"tester","description":"Tests things"},{"name":"default"}],
        "models":[
            {"value":"default","resolvedModel":"claude-opus-5-5","displayName":"Default (recommended)",
             "description":"Opus","supportsEffort":true,"supportedEffortLevels":["low","high","max"],
             "supportsFastMode":true,"supportsAutoMode":true},
            {"value":"opus","resolvedModel":"claude-opus-5-5","displayName":"Opus","supportsEffort":true,
             "supportedEffortLevels":["low","high","max"],"supportsFastMode":true,"supportsAutoMode":true},
            {"value":"sonnet","resolvedModel":"claude-sonnet-5-5","displayName":"Sonnet","supportsEffort":true,
             "supportedEffortLevels":["low","xhigh"],"supportsAutoMode":true},
            {"value":"haiku","resolvedModel":"claude-haiku-4-5","displayName":"Haiku"}],
        "account":{"email":"somebody@example.com","organization":"Org","tokenSource":"none"}}"#,
    )
}

fn settings(effective: &Value, sources: &[(&str, Value)]) -> reply::GetSettings {
    let sources = sources.iter();
    let sources = sources.map(|(source, settings)| json!({ "source": source, "settings": settings }));
    let text = json!({ "effective": effective, "sources": sources.collect::<Vec<_>>(),
        "applied": { "model": "claude-opus-5-5", "effort": "high" } });
    Json::from(text).read().unwrap()
}

fn choices() -> Choices {
    let known = Known::new(&new_cli(), Some(&settings(&json!({}), &[])));
    Choices { may_bypass: true, ..Choices::new(&known, None, None) }
}

fn bare() -> ClientCapabilities {
    ClientCapabilities::default()
}

fn with_switches() -> ClientCapabilities {
    serde_json::from_value(json!({ "session": { "configOptions": { "boolean": {} } } })).unwrap()
}

fn current(choices: &Choices, id: &str) -> Option<String> {
    let option = choices.options(&bare()).into_iter().find(|option| option.id == id)?;
    let ConfigValue::Select { current_value, options } = option.value else { panic!("a list") };
    assert!(options.iter().any(|choice| choice.value == current_value), "{id}: the value is in the list");
    Some(current_value)
}

fn values(choices: &Choices, id: &str) -> Vec<String> {
    let option = choices.options(&bare()).into_iter().find(|option| option.id == id).unwrap();
    let ConfigValue::Select { options, .. } = option.value else { panic!("a list") };
    options.into_iter().map(|choice| choice.value).collect()
}

fn choose(choices: &mut Choices, id: &str, value: Value) -> Result<(), ErrorObject> {
    let order = choices.order(id, &value.into())?;
    choices.done(&order);
    Ok(())
}

#[track_caller]
fn refused(choices: &mut Choices, id: &str, value: Value) {
    let before = choices.options(&bare());
    let error = choose(choices, id, value).unwrap_err();
    assert_eq!(error.code, i64::from(INVALID_PARAMS), "{error}");
    assert_eq!(choices.options(&bare()), before, "the old value is kept");
}

fn args(choices: &Choices) -> Vec<String> {
    let options = choices.launch(Options::new().program("/bin/sh").inline_config(true));
    let launch = options.launch().unwrap();
    launch.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

#[test]
fn options_are_in_the_order_of_their_priority() {
    let options = choices().options(&with_switches());
    let shown: Vec<_> =
        options.iter().map(|option| (option.id.as_str(), option.category.as_deref())).collect();
    assert_eq!(
        shown,
        [
            ("mode", Some("mode")),
            ("model", Some("model")),
            ("effort", Some("thought_level")),
            ("fast", Some("model_config")),
            ("agent", None)
        ]
    );
    assert_eq!(options[3].value, ConfigValue::Boolean { current_value: false });
}

#[test]
fn acp_init_03_a_client_without_switches_gets_a_list() {
    let mut choices = choices();
    assert_eq!(values(&choices, "fast"), ["off", "on"]);
    choose(&mut choices, "fast", json!("on")).unwrap();
    assert_eq!(current(&choices, "fast").unwrap(), "on");
    choose(&mut choices, "fast", json!(false)).unwrap();
    assert_eq!(current(&choices, "fast").unwrap(), "off");
}

#[test]
fn modes_have_the_names_that_clients_know() {
    let modes = choices().modes();
    let shown: Vec<_> =
        modes.available_modes.iter().map(|mode| (mode.id.as_str(), mode.name.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("default", "Manual"),
            ("acceptEdits", "Accept edits"),
            ("plan", "Plan"),
            ("auto", "Auto"),
            ("bypassPermissions", "Bypass permissions")
        ]
    );
    assert_eq!(modes.available_modes[0].description.as_deref(), Some("Always ask before making changes"));
}

#[test]
fn acp_new_03_modes_and_the_mode_option_agree_whatever_happens() {
    let mut choices = choices();
    let check = |choices: &Choices| {
        let modes = choices.modes();
        assert_eq!(current(choices, "mode").unwrap(), modes.current_mode_id);
        let ids: Vec<_> = modes.available_modes.into_iter().map(|mode| mode.id).collect();
        assert_eq!(values(choices, "mode"), ids);
        assert!(ids.contains(&modes.current_mode_id));
    };
    check(&choices);
    for mode in ["plan", "dontAsk", "bypassPermissions", "auto", "manual"] {
        choose(&mut choices, "mode", json!(mode)).unwrap();
        check(&choices);
    }
    for mode in ["nonsense", "dontAsk", "plan"] {
        assert!(choices.set_mode(&mode.into()));
        assert!(!choices.set_mode(&mode.into()), "the same is no news");
        check(&choices);
    }
    choose(&mut choices, "model", json!("haiku")).unwrap();
    check(&choices);
    check(&Choices::default());
    check(&Choices::new(&Known::default(), Some(PermissionMode::Plan), None));
}

#[test]
fn dont_ask_is_accepted_and_listed_only_while_it_is_in_force() {
    let mut choices = choices();
    assert!(!values(&choices, "mode").contains(&"dontAsk".into()));
    choose(&mut choices, "mode", json!("dontAsk")).unwrap();
    assert!(values(&choices, "mode").contains(&"dontAsk".into()));
    choose(&mut choices, "mode", json!("default")).unwrap();
    assert!(!values(&choices, "mode").contains(&"dontAsk".into()));
}

#[test]
fn acp_conf_01_unknown_values_are_refused_and_the_old_ones_kept() {
    let mut choices = choices();
    choose(&mut choices, "effort", json!("low")).unwrap();
    choose(&mut choices, "agent", json!("tester")).unwrap();
    for (id, value) in [
        ("mode", json!("nonsense")),
        ("mode", json!(true)),
        ("effort", json!("enormous")),
        ("effort", json!(null)),
        ("agent", json!("Explore")),
        ("fast", json!("perhaps")),
        ("fast", json!(1)),
        ("model", json!("  ")),
        ("model", json!(7)),
        ("colour", json!("red")),
    ] {
        refused(&mut choices, id, value);
    }
    assert_eq!(current(&choices, "effort").unwrap(), "low");
    assert_eq!(current(&choices, "agent").unwrap(), "tester");
}

#[test]
fn caa_441_any_model_can_be_chosen_and_is_then_in_the_list() {
    let mut choices = choices();
    choose(&mut choices, "model", json!("claude-next-1")).unwrap();
    assert_eq!(current(&choices, "model").unwrap(), "claude-next-1");
    assert_eq!(values(&choices, "model"), ["default", "opus", "sonnet", "haiku", "claude-next-1"]);
    assert!(!choices.set_model("claude-next-1-20261101"), "this is what the name stands for");
    assert_eq!(current(&choices, "model").unwrap(), "claude-next-1");
    assert!(choices.set_model("claude-sonnet-5-5"));
    assert_eq!(current(&choices, "model").unwrap(), "sonnet");
    assert_eq!(values(&choices, "model").len(), 4);
    choose(&mut choices, "model", json!("claude-haiku-4-5")).unwrap();
    assert_eq!(current(&choices, "model").unwrap(), "haiku", "a full name is the alias's");
}

#[test]
fn the_models_full_name_is_no_news_when_it_is_what_the_alias_means() {
    let mut choices = choices();
    assert!(!choices.set_model("claude-opus-5-5"));
    assert_eq!(current(&choices, "model").unwrap(), "default");
    choose(&mut choices, "model", json!("opus")).unwrap();
    assert!(!choices.set_model("claude-opus-5-5"));
    assert_eq!(current(&choices, "model").unwrap(), "opus");
}

#[test]
fn effort_and_fast_follow_the_model() {
    let mut choices = choices();
    choose(&mut choices, "effort", json!("max")).unwrap();
    assert_eq!(values(&choices, "effort"), ["default", "low", "high", "max"]);
    choose(&mut choices, "model", json!("sonnet")).unwrap();
    assert_eq!(values(&choices, "effort"), ["default", "low", "xhigh"]);
    assert_eq!(current(&choices, "effort").unwrap(), "default", "it has no such level");
    assert_eq!(current(&choices, "fast"), None);
    refused(&mut choices, "fast", json!(true));
    choose(&mut choices, "model", json!("haiku")).unwrap();
    assert_eq!(current(&choices, "effort"), None);
    assert!(!values(&choices, "mode").contains(&"auto".into()));
    refused(&mut choices, "mode", json!("auto"));
    choose(&mut choices, "model", json!("opus")).unwrap();
    assert_eq!(current(&choices, "effort").unwrap(), "max", "it was only set aside");
}

#[test]
fn settings_can_forbid_modes() {
    let forbidden = settings(
        &json!({ "permissions": { "disableBypassPermissionsMode": "disable", "disableAutoMode": "disable" } }),
        &[],
    );
    let known = Known::new(&new_cli(), Some(&forbidden));
    let mut choices = Choices { may_bypass: true, ..Choices::new(&known, None, None) };
    assert_eq!(values(&choices, "mode"), ["default", "acceptEdits", "plan"]);
    refused(&mut choices, "mode", json!("bypassPermissions"));
    refused(&mut choices, "mode", json!("auto"));
    assert!(!args(&choices).iter().any(|arg| arg.contains("skip-permissions")));
}

#[test]
fn caa_108_root_is_not_offered_what_the_cli_would_die_of() {
    let mut choices = Choices { may_bypass: false, ..choices() };
    assert!(!values(&choices, "mode").contains(&"bypassPermissions".into()));
    refused(&mut choices, "mode", json!("bypassPermissions"));
    // Should the CLI be in that mode all the same, it is shown, and the next one is started without it.
    choices.set_mode(&PermissionMode::BypassPermissions);
    assert_eq!(current(&choices, "mode").unwrap(), "bypassPermissions");
    let args = args(&choices);
    assert!(!args.iter().any(|arg| arg.contains("skip-permissions") || arg.contains("bypass")), "{args:?}");
}

#[test]
fn the_settings_say_what_is_in_force_at_first() {
    let user = json!({ "permissions": { "defaultMode": "plan" } });
    let project = json!({ "permissions": { "defaultMode": "bypassPermissions" } });
    let effective = json!({ "model": "sonnet", "agent": "tester", "fastMode": true });
    let given = settings(&effective, &[("userSettings", user), ("projectSettings", project)]);
    let known = Known::new(&new_cli(), Some(&given));
    let choices = Choices::new(&known, None, None);
    assert_eq!(current(&choices, "mode").unwrap(), "plan", "a repository cannot escalate");
    assert_eq!(current(&choices, "model").unwrap(), "sonnet");
    assert_eq!(current(&choices, "agent").unwrap(), "tester");
    let args = args(&choices);
    for flag in ["--model", "--permission-mode=", "--agent", "--effort", "--settings"] {
        assert!(!args.iter().any(|arg| arg.starts_with(flag)), "the CLI knows its settings: {args:?}");
    }
    let wished = Choices::new(&known, Some(PermissionMode::AcceptEdits), Some("haiku".into()));
    assert_eq!(current(&wished, "mode").unwrap(), "acceptEdits");
    assert_eq!(current(&wished, "model").unwrap(), "haiku");
}

#[test]
fn caa_495_a_mode_that_nobody_knows_does_not_reach_the_cli() {
    let known = Known::new(&new_cli(), None);
    let choices = Choices::new(&known, Some("yolo".into()), None);
    assert_eq!(current(&choices, "mode").unwrap(), "default");
    assert!(!args(&choices).iter().any(|arg| arg.starts_with("--permission-mode=")));
}

#[test]
fn what_is_chosen_is_chosen_again_at_the_next_start() {
    let mut choices = choices();
    for (id, value) in [
        ("mode", json!("plan")),
        ("model", json!("opus")),
        ("effort", json!("high")),
        ("fast", json!(true)),
        ("agent", json!("tester")),
    ] {
        choose(&mut choices, id, value).unwrap();
    }
    let args = args(&choices);
    for flag in [
        "--permission-mode=plan",
        "--model=opus",
        "--effort=high",
        "--agent=tester",
        r#"--settings={"fastMode":true}"#,
        "--allow-dangerously-skip-permissions",
    ] {
        assert!(args.iter().any(|arg| arg == flag), "{flag}: {args:?}");
    }
}

#[test]
fn learning_tells_whether_there_is_news() {
    let known = Known::new(&new_cli(), Some(&settings(&json!({}), &[])));
    let mut choices = Choices::new(&Known::default(), None, None);
    assert!(choices.learn(&known));
    assert!(!choices.learn(&known));
    assert!(!choices.learn(&Known::new(&new_cli(), None)), "what the settings said still holds");
    choose(&mut choices, "agent", json!("tester")).unwrap();
    let without = Known { agents: Vec::new(), ..known.clone() };
    assert!(choices.learn(&without));
    assert_eq!(current(&choices, "agent"), None);
    assert!(!args(&choices).iter().any(|arg| arg.starts_with("--agent")), "it is not there any more");
}

#[test]
fn commands_of_the_terminal_are_left_out_and_those_of_mcp_renamed() {
    let mut choices = choices();
    let commands = choices.commands();
    let names: Vec<_> = commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(names, ["compact", "mcp:my-probe:greet", "init"]);
    assert_eq!(commands[0].input.as_ref().unwrap().hint, "<what to keep>");
    assert_eq!(commands[2].input, None);
    assert!(!choices.set_commands(&new_cli().commands));
    assert!(choices.set_commands(&new_cli().commands[..1]));
    assert_eq!(choices.commands().len(), 1);
    assert!(!choices.set_commands(&new_cli().commands[..1]));
}

#[test]
fn acp_sec_01_what_is_remembered_has_nothing_about_the_account() {
    let text = serde_json::to_string(&Known::new(&new_cli(), None)).unwrap();
    for secret in ["somebody", "example.com", "Org", "tokenSource"] {
        assert!(!text.contains(secret), "{text}");
    }
    let again: Known = serde_json::from_str(&text).unwrap();
    assert_eq!(again, Known::new(&new_cli(), None));
}
