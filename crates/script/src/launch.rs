//! What the command line and the environment of `claude` say.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Notify;

/// How the scripted CLI was started: what `claude` would read from its command line and environment.
///
/// The default is what a client with all the trimmings passes: partial messages, and permissions asked on stdio.
#[derive(Debug, Clone)]
pub struct Launch {
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: PathBuf,
    /// Told when the process gets SIGINT.
    interrupt: Arc<Notify>,
}

impl Default for Launch {
    fn default() -> Self {
        Self::new([
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool",
            "stdio",
        ])
    }
}

impl Launch {
    /// Started with these arguments (without the program's name), an empty environment and the current directory.
    pub fn new(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: std::env::current_dir().unwrap_or_default(),
            interrupt: Arc::default(),
        }
    }

    /// One argument more.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// A variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The environment of this process.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        // A variable that is no UTF-8 means nothing to a script.
        self.env.extend(
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        );
        self
    }

    /// The working directory, which frames report; files of a script are found from the script's own folder.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// What SIGINT does to `claude`: notify this, and the running turn is interrupted, and the process ends after its result.
    pub fn interrupt(&self) -> Arc<Notify> {
        Arc::clone(&self.interrupt)
    }

    pub(crate) fn directory(&self) -> String {
        self.cwd.to_string_lossy().into_owned()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.args.iter().any(|arg| arg == name)
    }

    /// The value of `--name value` or `--name=value`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.args.iter().enumerate().filter_map(move |(at, arg)| {
            if arg == name {
                return self.args.get(at + 1).map(String::as_str).filter(|value| !value.starts_with("--"));
            }
            arg.strip_prefix(name)?.strip_prefix('=')
        })
    }

    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.value(name)?.parse().ok()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// A variable that is switched on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        matches!(self.variable(name), Some("1" | "true"))
    }

    pub(crate) fn wants_version(&self) -> bool {
        self.flag("--version") || self.flag("-v")
    }

    pub(crate) fn is_partial(&self) -> bool {
        self.flag("--include-partial-messages")
    }

    pub(crate) fn replays(&self) -> bool {
        self.flag("--replay-user-messages")
    }

    pub(crate) fn asks(&self) -> bool {
        self.value("--permission-prompt-tool") == Some("stdio")
    }

    /// Whether a tool is allowed by `--allowedTools`. Rules with contents, `Bash(git *)`, count for the whole tool.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        let mut rules = self.values("--allowedTools").chain(self.values("--allowed-tools"));
        rules.any(|rules| {
            let mut rules = rules.split([',', ' ']).map(|rule| rule.split('(').next().unwrap_or(rule));
            rules.any(|rule| !rule.is_empty() && (rule == tool || tool.starts_with(&format!("{rule}__"))))
        })
    }

    /// Names of the in-process MCP servers in `--mcp-config`, which is JSON or a file with JSON.
    pub(crate) fn sdk_servers(&self) -> Vec<String> {
        let configs = self.values("--mcp-config").filter_map(|config| {
            let config: Value = serde_json::from_str(config)
                .ok()
                .or_else(|| serde_json::from_slice(&std::fs::read(self.cwd.join(config)).ok()?).ok())?;
            config.get("mcpServers")?.as_object().cloned()
        });
        configs.flatten().filter(|(_, server)| server["type"] == "sdk").map(|(name, _)| name).collect()
    }

    /// Every `--name value` by its name, for `${arg.name}`.
    pub(crate) fn named(&self) -> Value {
        let named = self.args.iter().filter_map(|arg| {
            let name = arg.strip_prefix("--")?.split('=').next()?;
            let value = self.value(&format!("--{name}")).unwrap_or_default();
            Some((name.to_owned(), Value::from(value)))
        });
        Value::Object(named.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_values_in_both_forms() {
        let launch = Launch::new(["--resume=abc", "--max-turns", "3", "--verbose", "--model"]);
        assert_eq!(launch.value("--resume"), Some("abc"));
        assert_eq!(launch.number("--max-turns"), Some(3));
        assert_eq!(launch.value("--model"), None);
        assert!(launch.flag("--verbose"));
    }

    #[test]
    fn allows_a_tool_by_name_by_rule_and_by_server() {
        let launch = Launch::new(["--allowedTools", "Bash(git *),mcp__calc"]);
        assert!(launch.allows("Bash"));
        assert!(launch.allows("mcp__calc__add"));
        assert!(!launch.allows("Write"));
        assert!(!Launch::default().allows("Bash"));
    }

    #[test]
    fn finds_in_process_servers() {
        let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"},"other":{"command":"x"}}}"#;
        assert_eq!(Launch::new(["--mcp-config", config]).sdk_servers(), ["calc"]);
    }
}
