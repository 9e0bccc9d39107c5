//! Reading the arguments of `claude`, only as far as needed: is it an interactive start, and who chooses the mode?
//!
//! The lists below are those of `claude --help` of 2.1.197 and 2.1.325, with the hidden options that were found to be
//! accepted. An option that is not listed counts as one without a value.

use std::ffi::OsString;

/// The subcommands of either version. `claude mcp` is one; `claude "mcp?"` is a prompt.
#[rustfmt::skip]
const SUBCOMMANDS: &[&str] = &[
    "agents", "attach", "auth", "auto-mode", "doctor", "gateway", "import", "install", "kill", "logs",
    "mcp", "plugin", "plugins", "project", "purge", "respawn", "rm", "setup-token", "stop", "ultrareview",
    "update", "upgrade",
];

/// Options with one value, which may begin with a dash.
#[rustfmt::skip]
const ONE: &[&str] = &[
    "--agent", "--agents", "--agent-id", "--agent-name", "--append-system-prompt",
    "--append-system-prompt-file", "--autocompact", "--debug-file", "--effort", "--environment",
    "--fallback-model", "--input-format", "--json-schema", "--managed-settings", "--max-budget-usd",
    "--max-thinking-tokens", "--max-turns", "--model", "--name", "-n", "--output-format",
    "--parent-session-id", "--permission-mode", "--permission-prompt-tool", "--permission-prompts",
    "--plugin-dir", "--plugin-dir-no-mcp", "--plugin-url", "--prefill",
    "--remote-control-session-name-prefix", "--resume-session-at", "--rewind-files", "--sdk-url",
    "--session-id", "--setting-sources", "--settings", "--system-prompt", "--system-prompt-file",
    "--system-prompt-snapshot", "--task-budget", "--thinking", "--thinking-display", "--workload",
];

/// Options with a value if the next argument does not begin with a dash.
#[rustfmt::skip]
const OPTIONAL: &[&str] = &[
    "--cloud", "--debug", "-d", "--from-pr", "--prompt-suggestions", "--remote-control", "--resume", "-r",
    "--teleport", "--worktree", "-w",
];

/// Options that take every argument up to the next dash.
#[rustfmt::skip]
const MANY: &[&str] = &[
    "--add-dir", "--allowed-tools", "--allowedTools", "--betas", "--disallowed-tools", "--disallowedTools",
    "--file", "--mcp-config", "--tools",
];

/// Options with which no conversation starts in this terminal.
#[rustfmt::skip]
const NOT_INTERACTIVE: &[&str] = &[
    "--background", "--bg", "--cloud", "--desktop", "--environment", "--help", "-h", "--init-only",
    "--print", "-p", "--version", "-v",
];

/// What matters of a command line of `claude`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// Why it is not an interactive start: an option or a subcommand.
    pub(super) not_interactive: Option<String>,
    /// The option that chooses the permission mode.
    pub(super) mode: Option<String>,
    /// The last `--settings`: a file or JSON.
    pub(super) settings: Option<String>,
    /// `--setting-sources`.
    pub(super) setting_sources: Option<String>,
    /// `--restricted`, with which settings files do not count.
    pub(super) restricted: bool,
}

impl CommandLine {
    pub(super) fn parse(args: &[OsString]) -> Self {
        let mut line = Self::default();
        let mut args = args.iter().map(|arg| arg.to_string_lossy()).peekable();
        let mut operand = None;
        while let Some(arg) = args.next() {
            if arg == "--" {
                operand = operand.or_else(|| args.next().map(|arg| arg.into_owned()));
                break;
            }
            if !is_option(&arg) {
                operand.get_or_insert(arg.into_owned());
                continue;
            }
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (arg.into_owned(), None),
            };
            for name in spread(name) {
                if value.is_none() && ONE.contains(&name.as_str()) {
                    value = args.next().map(|arg| arg.into_owned());
                } else if value.is_none() && OPTIONAL.contains(&name.as_str()) {
                    args.next_if(|arg| !is_option(arg));
                } else if value.is_none() && MANY.contains(&name.as_str()) {
                    while args.next_if(|arg| !is_option(arg)).is_some() {}
                }
                line.note(name, value.take());
            }
        }
        // Only the first word can be a subcommand, also after `--`.
        if let Some(word) = operand.filter(|word| SUBCOMMANDS.contains(&word.as_str())) {
            line.not_interactive.get_or_insert(word);
        }
        line
    }

    fn note(&mut self, name: String, value: Option<String>) {
        match name.as_str() {
            "--permission-mode" | "--dangerously-skip-permissions" => self.mode = Some(name),
            "--settings" => self.settings = value,
            "--setting-sources" => self.setting_sources = value,
            "--restricted" => self.restricted = true,
            name if NOT_INTERACTIVE.contains(&name) => {
                self.not_interactive.get_or_insert(name.to_owned());
            }
            _ => {}
        }
    }

    /// Whether settings of this source count: `user`, `project` or `local`.
    pub(super) fn reads(&self, source: &str) -> bool {
        let listed = |list: &String| list.split(',').any(|listed| listed.trim() == source);
        !self.restricted && self.setting_sources.as_ref().is_none_or(listed)
    }
}

/// A single dash is a word, as everywhere.
fn is_option(arg: &str) -> bool {
    arg.len() > 1 && arg.starts_with('-')
}

/// `-cp` is `-c -p`; in `-nmcp` the rest is the value of `-n`.
fn spread(name: String) -> Vec<String> {
    if name.starts_with("--") {
        return vec![name];
    }
    let mut names = Vec::new();
    let mut letters = name.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        let name = format!("-{letter}");
        let takes_value = ONE.contains(&name.as_str()) || OPTIONAL.contains(&name.as_str());
        if takes_value && letters.peek().is_some() {
            break;
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> CommandLine {
        CommandLine::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn prompts_and_session_options_are_interactive() {
        for args in [
            &[][..],
            &["fix the tests"],
            &["mcp is broken"],
            &["--ide"],
            &["-c"],
            &["-"],
            &["--resume", "mcp"],
            &["-n", "mcp"],
            &["-nmcp"],
            &["-d2ph"],
            &["--model", "-p"],
            &["--model", "opus", "fix it"],
            &["--add-dir", "a", "mcp"],
            &["--allowedTools", "Edit", "agents"],
            &["explain", "mcp"],
            &["--system-prompt", "--print"],
            &["--", "-p"],
            &["--name=-p"],
            &["--verbose", "--worktree", "update"],
            &["--unheard-of", "x"],
        ] {
            assert_eq!(parse(args).not_interactive, None, "{args:?}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for (args, why) in [
            (&["-p", "hello"][..], "-p"),
            (&["hello", "--print"], "--print"),
            (&["-cp"], "-p"),
            (&["--help"], "--help"),
            (&["-v"], "-v"),
            (&["mcp", "list"], "mcp"),
            (&["--model", "opus", "mcp"], "mcp"),
            (&["--model=opus", "mcp"], "mcp"),
            (&["--", "mcp"], "mcp"),
            (&["--debug", "--ide", "doctor"], "doctor"),
            (&["--bg", "do it"], "--bg"),
            (&["--cloud=x"], "--cloud"),
            (&["--desktop", "-c"], "--desktop"),
            (&["--add-dir", "a", "--ide", "update"], "update"),
        ] {
            assert_eq!(parse(args).not_interactive.as_deref(), Some(why), "{args:?}");
        }
    }

    #[test]
    fn who_chooses_the_mode() {
        let mode = |args: &[&str]| parse(args).mode;
        assert_eq!(mode(&["--permission-mode", "plan"]).as_deref(), Some("--permission-mode"));
        assert_eq!(mode(&["hi", "--permission-mode=plan"]).as_deref(), Some("--permission-mode"));
        let skip = "--dangerously-skip-permissions";
        assert_eq!(mode(&[skip]).as_deref(), Some(skip));
        assert_eq!(mode(&["--allow-dangerously-skip-permissions"]), None);
        assert_eq!(mode(&["--name", "--permission-mode"]), None);
        assert_eq!(mode(&["--", "--permission-mode", "plan"]), None);
    }

    #[test]
    fn which_settings_count() {
        let line = parse(&["--settings", "a.json", "--settings={}", "--setting-sources", "user, local"]);
        assert_eq!(line.settings.as_deref(), Some("{}"));
        assert!(line.reads("user") && line.reads("local") && !line.reads("project"));
        assert!(parse(&[]).reads("project"));
        assert!(!parse(&["--restricted"]).reads("user"));
    }

    #[test]
    fn lists_are_sorted_and_do_not_overlap() {
        assert!(SUBCOMMANDS.is_sorted());
        for name in ONE {
            assert!(!OPTIONAL.contains(name) && !MANY.contains(name), "{name}");
        }
    }
}
