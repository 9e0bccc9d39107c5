//! SDK options that clients of the reference adapter send along, as `_meta.claudeCode.options` of a session's setup.
//!
//! Their names and shapes are the SDK's. Mode and model are [choices](crate::choices), and are read there. What is ours to
//! decide (the program, the directory, hooks and callbacks, which session) is passed over.

use oarlock_agent::Options;
use oarlock_agent::options::{McpServerConfig, SystemPrompt, Thinking, ThinkingDisplay};
use oarlock_proto::acp::Meta;
use serde_json::Value;

/// Adds what the client gives.
pub(super) fn add(mut options: Options, given: &Value) -> Options {
    for (name, value) in given.as_object().into_iter().flatten() {
        options = add_one(options, name, value);
    }
    options
}

/// Does what the client gives leave the settings as they are?
pub(super) fn leaves_settings(meta: Option<&Meta>) -> bool {
    const OTHERS: [&str; 6] = ["settings", "settingSources", "agent", "effort", "extraArgs", "env"];
    let given = meta.and_then(|meta| meta.get("claudeCode")?.get("options"));
    !given.is_some_and(|given| OTHERS.iter().any(|name| given.get(name).is_some()))
}

fn add_one(options: Options, name: &str, value: &Value) -> Options {
    match (name, value) {
        ("allowedTools", Value::Array(_)) => options.allowed_tools(words(value)),
        ("disallowedTools", Value::Array(_)) => options.disallowed_tools(words(value)),
        ("tools", Value::Array(_)) => options.tools(words(value)),
        ("additionalDirectories", Value::Array(_)) => {
            words(value).into_iter().fold(options, Options::add_dir)
        }
        ("settingSources", Value::Array(_)) => {
            options.setting_sources(words(value).iter().map(String::as_str))
        }
        ("betas", Value::Array(_)) => options.betas(words(value)),
        ("fallbackModel", Value::String(model)) => options.fallback_models([model]),
        ("effort", Value::String(effort)) => options.effort(effort.as_str()),
        ("agent", Value::String(agent)) => options.agent(agent),
        ("thinking", Value::Object(_)) => match thinking(value) {
            Some(thinking) => options.thinking(thinking),
            None => options,
        },
        ("maxThinkingTokens", Value::Number(_)) => match small(value) {
            Some(0) => options.thinking(Thinking::disabled()),
            Some(tokens) => options.thinking(Thinking::enabled(tokens)),
            None => options,
        },
        ("maxTurns", Value::Number(_)) => match small(value) {
            Some(turns) => options.max_turns(turns),
            None => options,
        },
        ("maxBudgetUsd", Value::Number(dollars)) => match dollars.as_f64() {
            Some(dollars) => options.max_budget_usd(dollars),
            None => options,
        },
        ("systemPrompt", Value::String(prompt)) => options.system_prompt(SystemPrompt::Text(prompt.clone())),
        ("systemPrompt", Value::Object(prompt)) => match prompt.get("append") {
            Some(Value::String(append)) => options.append_system_prompt(append),
            _ => options,
        },
        ("appendSystemPrompt", Value::String(append)) => options.append_system_prompt(append),
        ("settings", Value::Object(_)) => options.settings(value.clone()),
        ("settings", Value::String(file)) => options.settings_file(file),
        ("mcpServers", Value::Object(servers)) => servers
            .iter()
            .filter(|(_, server)| server.is_object())
            .fold(options, |options, (name, server)| {
                options.mcp_server(name, McpServerConfig::from(server.clone()))
            }),
        ("env", Value::Object(variables)) => variables
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
            .fold(options, |options, (name, value)| options.env(name, value)),
        ("extraArgs", Value::Object(arguments)) => {
            arguments.iter().fold(options, |options, (name, value)| options.extra_arg(name, value.as_str()))
        }
        ("model" | "permissionMode", _) | (_, Value::Null) => options,
        _ => {
            tracing::info!(name, "an option of the client's was passed over");
            options
        }
    }
}

/// The words of a list; what is no word is passed over.
pub(super) fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn small(number: &Value) -> Option<u32> {
    number.as_u64().map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn thinking(value: &Value) -> Option<Thinking> {
    let thinking = match value.get("type")?.as_str()? {
        "adaptive" => Thinking::adaptive(),
        "disabled" => Thinking::disabled(),
        "enabled" => match value.get("budgetTokens").and_then(small).filter(|budget| *budget > 0) {
            Some(budget) => Thinking::enabled(budget),
            None => Thinking::adaptive(),
        },
        _ => return None,
    };
    Some(match value.get("display").and_then(Value::as_str) {
        Some(display) => thinking.display(ThinkingDisplay::from(display)),
        None => thinking,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(given: &Value) -> Vec<String> {
        let launch = add(Options::new().program("/bin/true"), given).launch().unwrap();
        launch.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn zed_56375_a_client_can_ask_for_thinking() {
        // This is what agent-shell sends.
        let args = arguments(&json!({ "thinking": { "display": "summarized", "type": "adaptive" } }));
        assert!(args.contains(&"--thinking=adaptive".to_owned()), "{args:?}");
        assert!(args.contains(&"--thinking-display=summarized".to_owned()), "{args:?}");
        let args = arguments(&json!({ "thinking": { "type": "enabled", "budgetTokens": 2048 } }));
        assert!(args.contains(&"--max-thinking-tokens=2048".to_owned()), "{args:?}");
        let args = arguments(&json!({ "maxThinkingTokens": 0 }));
        assert!(args.contains(&"--thinking=disabled".to_owned()), "{args:?}");
    }

    #[test]
    fn options_of_the_sdk_become_flags() {
        let args = arguments(&json!({
            "allowedTools": ["Read"], "disallowedTools": ["Bash", 5], "maxTurns": 3, "maxBudgetUsd": 1.5,
            "additionalDirectories": ["/srv"], "settingSources": ["user"], "fallbackModel": "haiku",
            "effort": "high", "agent": "mine", "extraArgs": { "brief": null, "name": "x" },
        }));
        for part in
            ["Read", "Bash", "=3", "1.5", "/srv", "user", "haiku", "high", "mine", "--brief", "--name=x"]
        {
            assert!(args.iter().any(|arg| arg.ends_with(part)), "{part}: {args:?}");
        }
    }

    #[test]
    fn thinking_is_no_setting() {
        let with = |options: Value| {
            let meta = json!({ "claudeCode": { "options": options } });
            leaves_settings(meta.as_object())
        };
        assert!(leaves_settings(None) && with(json!({ "thinking": { "type": "adaptive" } })));
        assert!(!with(json!({ "settings": { "fastMode": true } })) && !with(json!({ "agent": "mine" })));
    }

    #[test]
    fn what_is_unknown_or_wrong_is_passed_over() {
        let plain = arguments(&json!({}));
        let odd = json!({ "hooks": {}, "cwd": "/", "thinking": 5, "tools": { "type": "preset" }, "maxTurns": "3",
            "model": "opus", "permissionMode": "plan", "env": { "A": 1 }, "mcpServers": { "x": 1 } });
        assert_eq!(arguments(&odd), plain);
        assert_eq!(arguments(&json!("nothing")), plain);
    }
}
