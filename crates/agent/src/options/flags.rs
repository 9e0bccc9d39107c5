//! The flags of the CLI that options become, and what the CLI says about those it does not know.

use crate::Error;

/// Every flag that an option can become, and the method of [`Options`](crate::Options) behind it.
///
/// 2.1.197 does not know those marked "new"; 2.1.325 knows all.
pub(super) const FLAGS: &[(&str, &str)] = &[
    ("--add-dir", "add_dir"),
    ("--agent", "agent"),
    ("--allow-dangerously-skip-permissions", "allow_bypass_permissions"),
    ("--allowedTools", "allowed_tools"),
    ("--append-subagent-system-prompt", "append_subagent_system_prompt"), // new
    ("--append-subagent-system-prompt-file", "append_subagent_system_prompt"), // new
    ("--append-system-prompt-file", "append_system_prompt_file"),
    ("--autocompact", "autocompact_tokens"),   // new
    ("--await-initialize", "plugin_delivery"), // new
    ("--bare", "bare"),
    ("--betas", "betas"),
    ("--brief", "brief"),
    ("--continue", "continue_conversation"),
    ("--debug", "debug"),
    ("--debug-file", "debug_file"),
    ("--debug-to-stderr", "debug_to_stderr"),
    ("--disable-slash-commands", "disable_slash_commands"),
    ("--disallowedTools", "disallowed_tools"),
    ("--effort", "effort"),
    ("--enable-auth-status", "auth_status"),
    ("--fallback-model", "fallback_models"),
    ("--fast-mode", "fast_mode"), // new
    ("--fork-session", "fork_session"),
    ("--include-hook-events", "include_hook_events"),
    ("--include-partial-messages", "include_partial_messages"),
    ("--init", "setup_hooks"),
    ("--input-format", INTERNAL),
    ("--maintenance", "setup_hooks"),
    ("--managed-settings", "managed_settings"),
    ("--max-budget-usd", "max_budget_usd"),
    ("--max-thinking-tokens", "thinking"),
    ("--max-turns", "max_turns"),
    ("--mcp-config", "mcp_server"),
    ("--model", "model"),
    ("--no-session-persistence", "persist_session"),
    ("--output-format", INTERNAL),
    ("--permission-mode", "permission_mode"),
    ("--permission-prompt-tool", "permission_prompt_tool"),
    ("--permission-prompts", "permission_prompts"), // new
    ("--plugin-dir", "plugin"),
    ("--plugin-dir-no-mcp", "plugin"),
    ("--plugin-url", "plugin"),
    ("--project-config-root", "project_config_root"), // new
    ("--replay-user-messages", "replay_user_messages"),
    ("--restricted", "restricted"), // new
    ("--resume", "resume"),
    ("--resume-drops-turn", "resume_drops_turn"), // new
    ("--resume-session-at", "resume_session_at"),
    ("--safe-mode", "safe_mode"),
    ("--session-id", "session_id"),
    ("--session-mirror", "session_mirror"),
    ("--setting-sources", "setting_sources"),
    ("--settings", "settings"),
    ("--strict-mcp-config", "strict_mcp_config"),
    ("--system-prompt-file", "system_prompt"),
    ("--task-budget", "task_budget"),
    ("--thinking", "thinking"),
    ("--thinking-display", "thinking"),
    ("--tools", "tools"),
    ("--verbose", INTERNAL),
    ("--worktree", "worktree"),
];

/// Flags that the protocol itself needs.
pub(super) const INTERNAL: &str = "(the protocol's own)";

/// The method behind a flag; a flag that none makes came by `extra_arg`.
pub(super) fn option_of(flag: &str) -> &'static str {
    FLAGS.iter().find(|(known, _)| *known == flag).map_or("extra_arg", |(_, option)| option)
}

/// What the CLI's stderr says about its command line: an option that it does not know, or a word that it does not know
/// as an option's value. It then ends with exit code 1 before it has read anything.
#[allow(dead_code, reason = "the session asks it when the CLI ends at once")]
pub(crate) fn explain_unknown_option(stderr: &str) -> Option<Error> {
    stderr.lines().find_map(|line| {
        let complaint = line.strip_prefix("error: ")?;
        if let Some(rest) = complaint.strip_prefix("unknown option '") {
            // The value may be a secret; only the flag is repeated.
            let flag = rest.split(['=', '\'']).next()?;
            return Some(Error::TooOld { option: option_of(flag), flag: flag.to_owned() });
        }
        // error: option '--effort <level>' argument 'VALUE' is invalid. REASON
        let rest = complaint.strip_prefix("option '")?;
        let flag = rest.split([' ', '\'']).find(|word| word.starts_with("--"))?;
        let (_, reason) = rest.rsplit_once("' is invalid.")?;
        let reason = match reason.trim() {
            "" => "this CLI does not take that value".to_owned(),
            reason => format!("this CLI does not take that value: {reason}"),
        };
        Some(Error::Option { option: option_of(flag), reason })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_option_names_the_method_and_not_its_value() {
        for (stderr, option, flag) in [
            (
                "error: unknown option '--permission-prompts=none'\n",
                "permission_prompts",
                "--permission-prompts",
            ),
            ("noise\nerror: unknown option '--restricted'\n", "restricted", "--restricted"),
            ("error: unknown option '--modell=s3cret'\n(Did you mean --model?)", "extra_arg", "--modell"),
        ] {
            let error = explain_unknown_option(stderr).unwrap();
            let text = error.to_string();
            assert!(text.contains(option) && !text.contains("s3cret"), "{text}");
            let Error::TooOld { option: named, flag: told } = error else { panic!("{error:?}") };
            assert_eq!((named, told.as_str()), (option, flag));
        }
    }

    #[test]
    fn a_refused_value_names_the_method_and_what_is_allowed() {
        let stderr = "error: option '--thinking-display <display>' argument 'it's highlights' is invalid. Allowed \
                      choices are summarized, omitted.";
        let Some(Error::Option { option, reason }) = explain_unknown_option(stderr) else { panic!() };
        assert_eq!(option, "thinking");
        assert!(reason.ends_with("Allowed choices are summarized, omitted."), "{reason}");
        assert!(!reason.contains("highlights"));
    }

    #[test]
    fn other_noise_is_no_explanation() {
        for stderr in ["", "Error: Settings file not found: x", "error: something else", "error: option 'x"] {
            assert!(explain_unknown_option(stderr).is_none(), "{stderr}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_has_no_flag_twice() {
        assert!(FLAGS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
