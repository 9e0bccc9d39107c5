//! What options come to.

use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::flags::FLAGS;
use super::*;
use crate::stream::{AgentDefinition, PermissionMode};

/// Options that find a program.
fn options() -> Options {
    Options::new().program(std::env::current_exe().unwrap())
}

/// The arguments without those that are always there.
fn args(options: &Options) -> Vec<String> {
    let launch = options.launch().unwrap();
    let mut args = launch.args.into_iter().map(|arg| arg.into_string().unwrap());
    let fixed: Vec<String> = args.by_ref().take(4).collect();
    assert_eq!(fixed[..3], ["--output-format=stream-json", "--input-format=stream-json", "--verbose"]);
    assert_eq!(fixed[3], "--replay-user-messages");
    args.collect()
}

fn hello(options: &Options) -> Value {
    serde_json::to_value(options.initialize()).unwrap()
}

fn refused(options: &Options) -> (&'static str, String) {
    match options.launch() {
        Err(Error::Option { option, reason }) => (option, reason),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn options_can_be_shared_between_threads() {
    fn check<T: Send + Sync + Clone + 'static>() {}
    check::<Options>();
}

#[test]
fn no_option_is_nothing_but_the_protocol() {
    assert_eq!(args(&options()), [""; 0]);
    assert_eq!(hello(&options()), json!({}));
}

#[test]
fn each_flag_has_its_form() {
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    let table: &[(Options, &[&str])] = &[
        (options().model("opus"), &["--model=opus"]),
        (options().fallback_models(["a", "b"]), &["--fallback-model=a,b"]),
        (options().effort(Effort::High), &["--effort=high"]),
        (options().effort("huge"), &["--effort=huge"]),
        (options().thinking(Thinking::adaptive()), &["--thinking=adaptive"]),
        (
            options().thinking(Thinking::enabled(2000).display("omitted")),
            &["--max-thinking-tokens=2000", "--thinking-display=omitted"],
        ),
        (options().thinking(Thinking::disabled()), &["--thinking=disabled"]),
        (options().betas(["a", "b"]), &["--betas=a", "--betas=b"]),
        (options().max_turns(3), &["--max-turns=3"]),
        (options().max_budget_usd(0.00001), &["--max-budget-usd=0.00001"]),
        (options().task_budget(5000), &["--task-budget=5000"]),
        (options().autocompact_tokens(200_000), &["--autocompact=200000"]),
        (options().fast_mode(false), &["--fast-mode=off"]),
        (options().system_prompt(SystemPrompt::File("p".into())), &["--system-prompt-file=p"]),
        (options().append_system_prompt_file("p"), &["--append-system-prompt-file=p"]),
        (options().tools([""; 0]), &["--tools="]),
        (options().tools(["Read", "Bash"]), &["--tools=Read", "--tools=Bash"]),
        (options().allowed_tools([""; 0]), &[]),
        (
            options().allowed_tools(["Bash(a, b)", "Read"]),
            &["--allowedTools=Bash(a, b)", "--allowedTools=Read"],
        ),
        (
            options().disallowed_tools(["Bash(", "Read"]),
            &["--disallowedTools=Bash(", "--disallowedTools=Read"],
        ),
        (
            options().skills(["pdf", "my:doc x"]),
            &["--allowedTools=Skill(pdf)", "--allowedTools=Skill(my:doc x)"],
        ),
        (options().all_skills(), &["--allowedTools=Skill"]),
        (options().agent("lead"), &["--agent=lead"]),
        (options().permission_mode(PermissionMode::Plan), &["--permission-mode=plan"]),
        (options().permission_mode("manual"), &["--permission-mode=default"]),
        (options().allow_bypass_permissions(true), &["--allow-dangerously-skip-permissions"]),
        (options().permission_prompt_tool("mcp__a__b"), &["--permission-prompt-tool=mcp__a__b"]),
        (options().permission_prompts(PermissionPrompts::None), &["--permission-prompts=none"]),
        (
            options().mcp_config_file("m.json").strict_mcp_config(true),
            &["--mcp-config=./m.json", "--strict-mcp-config"],
        ),
        (options().settings_file("/s.json"), &["--settings=/s.json"]),
        (options().managed_settings(json!({"a": 1})), &[r#"--managed-settings={"a":1}"#]),
        (
            options().setting_sources([SettingSource::User, SettingSource::Project]),
            &["--setting-sources=user,project"],
        ),
        (options().setting_sources([""; 0]), &["--setting-sources="]),
        (options().project_config_root("/p"), &["--project-config-root=/p"]),
        (
            options()
                .plugin(Plugin::local("a"))
                .plugin(Plugin::local_without_mcp("b"))
                .plugin(Plugin::url("u")),
            &["--plugin-dir=a", "--plugin-dir-no-mcp=b", "--plugin-url=u"],
        ),
        (options().plugin_delivery(PluginDelivery::Initialize), &[]),
        (
            options().bare(true).safe_mode(true).restricted(true).disable_slash_commands(true),
            &["--bare", "--safe-mode", "--restricted", "--disable-slash-commands"],
        ),
        (options().setup_hooks(SetupHooks::Init), &["--init"]),
        (options().setup_hooks(SetupHooks::Maintenance), &["--maintenance"]),
        (options().resume("-x"), &["--resume=-x"]),
        (options().continue_conversation(true).fork_session(true), &["--continue", "--fork-session"]),
        (options().session_id(uuid), &["--session-id=01234567-89ab-cdef-0123-456789abcdef"]),
        (
            options().resume("a").resume_session_at("b").resume_drops_turn("c"),
            &["--resume=a", "--resume-session-at=b", "--resume-drops-turn=c"],
        ),
        (options().persist_session(false), &["--no-session-persistence"]),
        (options().session_mirror(true), &["--session-mirror"]),
        (options().add_dir("-a").add_dir("b"), &["--add-dir=-a", "--add-dir=b"]),
        (options().worktree(None), &["--worktree"]),
        (options().worktree(Some("-w")), &["--worktree=-w"]),
        (
            options().include_partial_messages(true).include_hook_events(true),
            &["--include-partial-messages", "--include-hook-events"],
        ),
        (options().auth_status(true).brief(true), &["--enable-auth-status", "--brief"]),
        (options().debug(""), &["--debug"]),
        (options().debug("!mcp").debug_file("d"), &["--debug=!mcp", "--debug-file=d"]),
        (options().debug_to_stderr(true), &["--debug-to-stderr"]),
        (options().extra_arg("new-thing", None).extra_arg("x", Some("-y")), &["--new-thing", "--x=-y"]),
        (options().verbatim_prompts(true).on_stderr(|_| {}).line_limit(1), &[]),
    ];
    for (options, want) in table {
        assert_eq!(&args(options), want);
        assert_eq!(hello(options).as_object().unwrap().keys().find(|key| *key != "skills"), None);
    }
}

#[test]
fn each_field_of_initialize_has_its_value() {
    let agent = AgentDefinition { description: "d".into(), prompt: "p".into(), ..Default::default() };
    let plugins = options().plugin(Plugin::local("a")).plugin(Plugin::local_without_mcp("b"));
    let table: &[(Options, Value)] = &[
        (options().system_prompt(""), json!({"systemPrompt": [""]})),
        (options().system_prompt("x".to_owned()), json!({"systemPrompt": ["x"]})),
        (
            options().system_prompt(vec!["a".into(), SystemPrompt::DYNAMIC_BOUNDARY.into(), "b".into()]),
            json!({"systemPrompt": ["a", "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__", "b"]}),
        ),
        (options().append_system_prompt("a"), json!({"appendSystemPrompt": "a"})),
        (options().exclude_dynamic_sections(true), json!({"excludeDynamicSections": true})),
        (options().system_prompt_snapshot(false), json!({"systemPromptSnapshot": false})),
        (options().plan_mode_instructions("p"), json!({"planModeInstructions": "p"})),
        (options().output_schema(json!({"type": "object"})), json!({"jsonSchema": {"type": "object"}})),
        (options().tool_alias("Bash", "mcp__a__b"), json!({"toolAliases": {"Bash": "mcp__a__b"}})),
        (
            options().agent_definition("a", agent),
            json!({"agents": {"a": {"description": "d", "prompt": "p"}}}),
        ),
        (options().title("-t"), json!({"title": "-t"})),
        (options().forward_subagent_text(true), json!({"forwardSubagentText": true})),
        (options().prompt_suggestions(true), json!({"promptSuggestions": true})),
        (options().agent_progress_summaries(true), json!({"agentProgressSummaries": true})),
        (options().per_task_stop(true), json!({"perTaskStopAffordance": true})),
        (options().supported_dialog_kinds(["k"]), json!({"supportedDialogKinds": ["k"]})),
        (options().initialize_field("newField", json!(1)), json!({"newField": 1})),
        (options().title("a").initialize_field("title", json!("b")), json!({"title": "b"})),
    ];
    for (options, want) in table {
        assert_eq!(&hello(options), want);
        assert_eq!(args(options), [""; 0]);
    }
    assert_eq!(hello(&options().skills([""; 0])), json!({"skills": []}));
    assert_eq!(hello(&options().skills(["a"])), json!({"skills": ["a"]}));
    assert_eq!(hello(&plugins), json!({}));
    let plugins = plugins.plugin(Plugin::url("u")).plugin_delivery(PluginDelivery::Initialize);
    assert_eq!(args(&plugins), ["--plugin-url=u", "--await-initialize"]);
    assert_eq!(
        hello(&plugins),
        json!({"plugins": [
            {"type": "local", "path": "a"},
            {"type": "local", "path": "b", "skipMcpDiscovery": true},
        ]})
    );
}

#[test]
fn a_field_given_by_name_is_read_as_its_type() {
    let options = options().initialize_field("title", json!("t")).initialize_field("odd", json!([1]));
    let hello = options.initialize();
    assert_eq!(hello.title.as_deref(), Some("t"));
    assert_eq!(hello.extra.get("odd").unwrap().value(), json!([1]));
}

#[test]
fn the_host_is_asked_when_it_wants_to_be() {
    let mut options = options();
    options.ask_host();
    assert_eq!(args(&options), ["--permission-prompt-tool=stdio"]);
    assert_eq!(refused(&options.permission_prompt_tool("x")).0, "permission_prompt_tool");
}

/// The JSON in the file that one argument names.
fn file(options: &Options, flag: &str) -> Value {
    let launch = options.launch().unwrap();
    let arg = launch.args.iter().find_map(|arg| arg.to_str()?.strip_prefix(flag)?.strip_prefix('=')).unwrap();
    assert!(launch.files.iter().any(|file| **file == *OsStr::new(arg)), "{arg} is no file of ours");
    serde_json::from_str(&fs::read_to_string(arg).unwrap()).unwrap()
}

#[test]
fn settings_and_servers_are_in_files() {
    let settings = options().settings(json!({"model": "x"}));
    assert_eq!(file(&settings, "--settings"), json!({"model": "x"}));
    let both = settings.sandbox(json!({"enabled": true}));
    assert_eq!(
        file(&both, "--settings"),
        json!({"model": "x", "sandbox": {"enabled": true, "failIfUnavailable": true}})
    );
    let off = options().sandbox(json!({"enabled": true, "failIfUnavailable": false}));
    assert_eq!(file(&off, "--settings"), json!({"sandbox": {"enabled": true, "failIfUnavailable": false}}));
    let servers = options()
        .mcp_server("a", StdioServer::new("run"))
        .mcp_server("b", RemoteServer::http("u"))
        .mcp_server("c", json!({"type": "odd"}));
    let want = json!({"mcpServers": {
        "a": {"type": "stdio", "command": "run"},
        "b": {"type": "http", "url": "u"},
        "c": {"type": "odd"},
    }});
    assert_eq!(file(&servers, "--mcp-config"), want);
    let inline = servers.inline_config(true).launch().unwrap();
    assert!(inline.files.is_empty());
    assert!(inline.args[4].to_str().unwrap().starts_with(r#"--mcp-config={"mcpServers":"#));
}

#[test]
fn files_go_when_the_launch_goes() {
    let launch = options().settings(json!({"gone": true})).launch().unwrap();
    let path = launch.files[0].to_path_buf();
    assert!(path.exists());
    drop(launch);
    assert!(!path.exists());
}

#[test]
fn the_environment_has_its_rules() {
    let get = |options: Options, name: &str| {
        let launch = options.launch().unwrap();
        launch.env.get(OsStr::new(name)).cloned().map(|value| value.map(|value| value.into_string().unwrap()))
    };
    let set = |value: &str| Some(Some(value.to_owned()));
    assert_eq!(get(options(), "CLAUDECODE"), Some(None));
    assert_eq!(get(options().env("CLAUDECODE", "1"), "CLAUDECODE"), set("1"));
    assert_eq!(get(options(), "CLAUDE_CODE_ENTRYPOINT"), set("sdk-rs"));
    assert_eq!(get(options().entrypoint("mine"), "CLAUDE_CODE_ENTRYPOINT"), set("mine"));
    for name in ["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE"] {
        assert_eq!(get(options().env(name, "0"), name), set("1"));
    }
    let version = get(options().env_remove("CLAUDE_AGENT_SDK_VERSION"), "CLAUDE_AGENT_SDK_VERSION");
    assert_eq!(version, set(env!("CARGO_PKG_VERSION")));
    let checkpoints = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
    assert_eq!(get(options(), checkpoints), None);
    assert_eq!(get(options().file_checkpointing(true), checkpoints), set("true"));
    assert_eq!(get(options().config_dir("/c"), "CLAUDE_CONFIG_DIR"), set("/c"));
    assert_eq!(get(options().max_retries(2), "CLAUDE_CODE_MAX_RETRIES"), set("2"));
    assert_eq!(get(options().client_app("a/1"), "CLAUDE_AGENT_SDK_CLIENT_APP"), set("a/1"));
    assert_eq!(get(options().tool_use_summaries(true), "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES"), set("1"));
    let html = options().question_preview(QuestionPreview::Html);
    assert_eq!(get(html, "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT"), set("html"));
    assert_eq!(get(options().mcp_timeout(Duration::from_secs(2)), "MCP_TIMEOUT"), set("2000"));
    assert_eq!(get(options().mcp_tool_timeout(Duration::from_secs(2)), "MCP_TOOL_TIMEOUT"), set("2000"));
    assert_eq!(get(options().api_key("k").base_url("u"), "ANTHROPIC_API_KEY"), set("k"));
    assert_eq!(get(options().envs([("A", "1")]).env_remove("A"), "A"), Some(None));
    // Cargo sets it for tests, so that it would be inherited.
    assert_eq!(get(options(), "CARGO_PKG_NAME"), None);
    assert_eq!(get(options().env("A", "1").env_clear(), "CARGO_PKG_NAME"), Some(None));
    assert_eq!(get(options().env("A", "1").env_clear(), "A"), None);
    assert_eq!(get(options().env_clear().env("A", "1"), "A"), set("1"));
}

#[test]
fn what_cannot_be_used_is_named() {
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    for (options, option) in [
        (options().resume("a").continue_conversation(true), "continue_conversation"),
        (options().fork_session(true), "fork_session"),
        (options().session_id("-x"), "session_id"),
        (options().session_id(uuid.replace('-', "")), "session_id"),
        (options().session_id(uuid).resume("a"), "session_id"),
        (options().continue_conversation(true).resume_session_at("b"), "resume_session_at"),
        (options().resume("a").resume_drops_turn("c"), "resume_drops_turn"),
        (options().resume(""), "resume"),
        (options().session_mirror(true).persist_session(false), "session_mirror"),
        (options().max_turns(0), "max_turns"),
        (options().max_budget_usd(0.0), "max_budget_usd"),
        (options().max_budget_usd(f64::NAN), "max_budget_usd"),
        (options().task_budget(0), "task_budget"),
        (options().autocompact_tokens(200), "autocompact_tokens"),
        (options().thinking(Thinking::enabled(0)), "thinking"),
        (options().model("a\0"), "model"),
        (options().model(""), "model"),
        (options().allowed_tools([""]), "allowed_tools"),
        (options().append_system_prompt("a").append_system_prompt_file("b"), "append_system_prompt_file"),
        (options().output_schema(json!([])), "output_schema"),
        (options().settings(json!("a path?")), "settings"),
        (options().settings(json!({"sandbox": {}})).sandbox(json!({})), "sandbox"),
        (options().settings_file("a").sandbox(json!({})), "settings_file"),
        (options().managed_settings(json!(1)), "managed_settings"),
        (options().managed_settings(json!({"a": "x".repeat(200_000)})), "managed_settings"),
        (options().setting_sources(["user,local"]), "setting_sources"),
        (options().project_config_root("here"), "project_config_root"),
        (options().mcp_server("", StdioServer::new("x")), "mcp_server"),
        (options().mcp_server("a", json!("x")), "mcp_server"),
        (options().env("A=B", "c"), "env"),
        (options().env("A", "c\0"), "env"),
        (options().env_remove(""), "env"),
        (options().extra_arg("-p", None), "extra_arg"),
        (options().extra_arg("", None), "extra_arg"),
        (options().extra_arg("x=--bare", None), "extra_arg"),
        (options().extra_arg("output-format", Some("text")), "extra_arg"),
        (options().extra_arg("verbose", None), "extra_arg"),
        (options().initialize_field("subtype", json!("x")), "initialize_field"),
    ] {
        let (named, reason) = refused(&options);
        assert_eq!(named, option, "{reason}");
    }
    for name in ["", " a", "a ", "a)", "a,Bash", "*", "a*", "/a", "a\\", "a\n", "\u{feff}a"] {
        assert_eq!(refused(&options().skills([name])).0, "skills", "{name:?}");
    }
}

#[test]
fn a_directory_and_a_program_must_be_there() {
    assert!(matches!(options().cwd("/no/such/place").launch(), Err(Error::NoDirectory { .. })));
    let gone = Options::new().program("/no/such/claude").launch().unwrap_err();
    assert!(gone.to_string().starts_with("the option `program` says /no/such/claude"), "{gone}");
}

#[test]
fn a_wrapper_comes_first_and_is_trusted_with_the_program() {
    let options = Options::new().wrapper(["nice", "-n5"]).program("cli.js").model("x");
    let launch = options.launch().unwrap();
    assert_eq!(launch.program, PathBuf::from("nice"));
    assert_eq!(launch.args[..2], ["-n5", "cli.js"]);
    assert_eq!(launch.args.last().unwrap(), "--model=x");
}

#[test]
fn debug_shows_no_value() {
    let secret = "s3cr3t";
    let options = options()
        .env("TOKEN", secret)
        .api_key(secret)
        .settings(json!({"env": {"A": secret}}))
        .managed_settings(json!({"a": secret}))
        .mcp_server("a", RemoteServer::http("u").header("Authorization", secret))
        .mcp_server("b", StdioServer::new("run").args([secret]).env("KEY", secret))
        .plugin(Plugin::url(format!("https://u:{secret}@h/")))
        .extra_arg("token", Some(secret))
        .initialize_field("token", json!(secret))
        .system_prompt(secret);
    for text in [
        format!("{options:?}"),
        format!("{:?}", McpServerConfig::from(RemoteServer::http(secret).header("A", secret))),
        format!("{:?}", McpServerConfig::from(StdioServer::new("x").args([secret]).env("A", secret))),
        format!("{:?}", McpServerConfig::from(json!({"a": secret}))),
    ] {
        assert!(!text.contains(secret), "{text}");
    }
    let text = format!("{options:?}");
    for name in ["ANTHROPIC_API_KEY", "TOKEN", "--settings", "--mcp-config", "--token", "systemPrompt"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn large_configuration_is_not_on_the_command_line() {
    let big = "x".repeat(1 << 20);
    let agent = AgentDefinition { description: big.clone(), prompt: big.clone(), ..Default::default() };
    let options = options()
        .system_prompt(big.as_str())
        .append_system_prompt(&big)
        .append_subagent_system_prompt(&big)
        .plan_mode_instructions(&big)
        .agent_definition("a", agent)
        .output_schema(json!({"description": big}))
        .settings(json!({"a": big}))
        .sandbox(json!({"a": big}))
        .mcp_server("a", StdioServer::new("x").env("A", &big))
        .plugin_delivery(PluginDelivery::Initialize);
    let options =
        (0..5000).fold(options, |options, n| options.plugin(Plugin::local(format!("/plugins/{n}"))));
    let launch = options.launch().unwrap();
    let total: usize = launch.args.iter().map(|arg| arg.len()).sum();
    assert!(total < 1000, "{total}");
    assert_eq!(launch.files.len(), 3);
    let stored: u64 = launch.files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(stored > 4 << 20, "{stored}");
    assert!(hello(&options).to_string().len() > 6 << 20);
    // Somebody insists: then it is refused before the system refuses it.
    assert_eq!(refused(&options.inline_config(true)).0, "settings");
}

/// Every method that takes words of the user's, each with one word in all its places.
const METHODS: &[fn(Options, String) -> Options] = &[
    |o, s| o.model(s),
    |o, s| o.fallback_models([s.clone(), s]),
    |o, s| o.effort(s),
    |o, s| o.thinking(Thinking::adaptive().display(s)),
    |o, s| o.betas([s.clone(), s]),
    |o, s| o.system_prompt(SystemPrompt::File(s.into())),
    |o, s| o.system_prompt(s),
    |o, s| o.append_system_prompt(s),
    |o, s| o.append_system_prompt_file(s),
    |o, s| o.append_subagent_system_prompt(s),
    |o, s| o.plan_mode_instructions(s),
    |o, s| o.output_schema(json!({ s: 1 })),
    |o, s| o.tools([s.clone(), s]),
    |o, s| o.allowed_tools([s.clone(), s]),
    |o, s| o.disallowed_tools([s.clone(), s]),
    |o, s| o.tool_alias(s.clone(), s),
    |o, s| o.skills([s]),
    |o, s| o.agent(s),
    |o, s| o.agent_definition(s, AgentDefinition::default()),
    |o, s| o.permission_mode(s.as_str()),
    |o, s| o.permission_prompt_tool(s),
    |o, s| o.permission_prompts(s),
    |o, s| o.question_preview(s),
    |o, s| o.mcp_server(s.clone(), StdioServer::new(s.clone()).args([s.clone()]).env(s.clone(), s)),
    |o, s| o.mcp_config_file(s),
    |o, s| o.settings(json!({ s: 1 })),
    |o, s| o.settings_file(s),
    |o, s| o.sandbox(json!({ s: 1 })),
    |o, s| o.managed_settings(json!({ s: 1 })),
    |o, s| o.setting_sources([s.clone(), s]),
    |o, s| o.project_config_root(PathBuf::from("/").join(s)),
    |o, s| {
        o.plugin(Plugin::local(s.clone())).plugin(Plugin::local_without_mcp(s.clone())).plugin(Plugin::url(s))
    },
    |o, s| o.plugin(Plugin::local(s)).plugin_delivery(PluginDelivery::Initialize),
    |o, s| o.resume(s.clone()).resume_session_at(s.clone()).resume_drops_turn(s),
    |o, s| o.session_id(s),
    |o, s| o.title(s),
    |o, s| o.add_dir(s.clone()).add_dir(s),
    |o, s| o.worktree(Some(&s)),
    |o, s| o.supported_dialog_kinds([s]),
    |o, s| o.debug(s),
    |o, s| o.debug_file(s),
    |o, s| o.env(s.clone(), s),
    |o, s| o.config_dir(s.clone()).entrypoint(s.clone()).client_app(s.clone()).api_key(s.clone()).base_url(s),
    |o, s| o.initialize_field(s, json!(1)),
    |o, s| o.extra_arg("x", Some(&s)),
    |o, s| o.inline_config(!s.is_empty()),
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("--dangerously-skip-permissions".to_owned()),
        Just("-p".to_owned()),
        Just("--model=x".to_owned()),
        Just("=--bare".to_owned()),
        "-{1,2}[a-z-]{1,12}( .*)?",
        "[ -~]{0,12}",
        ".{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_value_becomes_a_flag(choices in proptest::collection::vec((0..METHODS.len(), word()), 1..6)) {
        let options = choices.into_iter().fold(options(), |options, (at, word)| METHODS[at](options, word));
        if let Ok(launch) = options.launch() {
            for arg in launch.args {
                let arg = arg.into_string().unwrap();
                let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
                prop_assert!(flag == "--x" || FLAGS.iter().any(|(known, _)| *known == flag), "{arg}");
                // Alone there are only those that take no value, or may go without.
                let alone = ["--verbose", "--replay-user-messages", "--debug", "--await-initialize"];
                prop_assert!(arg.contains('=') || alone.contains(&flag), "{arg}");
            }
        }
    }
}

#[test]
fn every_flag_of_the_table_has_an_option() {
    let everything = METHODS.iter().map(|method| method(options(), "user".into())).chain([
        options().thinking(Thinking::enabled(1)).max_turns(1).max_budget_usd(1.0).task_budget(1),
        options()
            .autocompact_tokens(100_000)
            .fast_mode(true)
            .allow_bypass_permissions(true)
            .strict_mcp_config(true),
        options().bare(true).safe_mode(true).restricted(true).disable_slash_commands(true),
        options().setup_hooks(SetupHooks::Init),
        options().setup_hooks(SetupHooks::Maintenance),
        options().continue_conversation(true).fork_session(true),
        options().session_id("01234567-89ab-cdef-0123-456789abcdef").persist_session(false),
        options().session_mirror(true).include_partial_messages(true).include_hook_events(true),
        options().replay_user_messages(true).auth_status(true).brief(true).debug_to_stderr(true),
        options().append_subagent_system_prompt("x").inline_config(true),
    ]);
    let launches: Vec<Launch> = everything.filter_map(|options| options.launch().ok()).collect();
    let flags = launches.iter().flat_map(|launch| &launch.args).map(|arg| arg.to_str().unwrap());
    let flags: Vec<&str> = flags.map(|arg| arg.split('=').next().unwrap()).collect();
    for (flag, option) in FLAGS {
        assert!(flags.contains(flag), "no option makes {flag} ({option})");
    }
}
