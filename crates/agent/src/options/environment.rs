//! The environment of the CLI.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::{Options, refuse};
use crate::Error;

/// Says that the CLI runs inside a CLI's tool. What we start is a session of its own.
const NESTED: &str = "CLAUDECODE";
/// Says in transcripts and to the API who drives the CLI.
const ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";

/// What nobody can change.
const FIXED: [(&str, &str); 3] = [
    ("CLAUDE_AGENT_SDK_VERSION", env!("CARGO_PKG_VERSION")),
    // stdin closes by the events that these ask for. 2.1.197 knows only the first; official SDKs set the second.
    ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
    ("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1"),
];

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Environment {
    clear: bool,
    changes: BTreeMap<OsString, Option<OsString>>,
}

impl Options {
    /// A variable of the CLI's environment, which otherwise is this program's own.
    ///
    /// `CLAUDECODE` is taken away and `CLAUDE_CODE_ENTRYPOINT` is `sdk-rs` unless they are set here.
    /// `CLAUDE_AGENT_SDK_VERSION`, `CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS` and `CLAUDE_CODE_SDK_READS_SESSION_STATE` are
    /// ours whatever is set here.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.changes.insert(name.into(), Some(value.into()));
        self
    }

    /// Variables of the CLI's environment, as [`env`](Self::env).
    #[must_use]
    pub fn envs<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        vars: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.environment
            .changes
            .extend(vars.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
        self
    }

    /// Takes a variable away, so that the CLI does not inherit it.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.environment.changes.insert(name.into(), None);
        self
    }

    /// Lets the CLI inherit nothing, and forgets what was set before. It will want `PATH` and `HOME`.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.environment = Environment { clear: true, ..Environment::default() };
        self
    }

    /// The CLI's configuration directory in place of `~/.claude` (variable `CLAUDE_CONFIG_DIR`). Transcripts are there,
    /// too.
    #[must_use]
    pub fn config_dir(self, path: impl Into<PathBuf>) -> Self {
        self.env("CLAUDE_CONFIG_DIR", path.into())
    }

    /// Who drives the CLI, as transcripts and the API are told, in place of `sdk-rs` (variable
    /// `CLAUDE_CODE_ENTRYPOINT`).
    #[must_use]
    pub fn entrypoint(self, name: impl Into<String>) -> Self {
        self.env(ENTRYPOINT, name.into())
    }

    /// The name and version of this program, as the API is told: `my-app/1.0` (variable `CLAUDE_AGENT_SDK_CLIENT_APP`).
    #[must_use]
    pub fn client_app(self, name: impl Into<String>) -> Self {
        self.env("CLAUDE_AGENT_SDK_CLIENT_APP", name.into())
    }

    /// The key for the API (variable `ANTHROPIC_API_KEY`). Without it the CLI uses the user's login.
    #[must_use]
    pub fn api_key(self, key: impl Into<String>) -> Self {
        self.env("ANTHROPIC_API_KEY", key.into())
    }

    /// Where the API is (variable `ANTHROPIC_BASE_URL`).
    #[must_use]
    pub fn base_url(self, url: impl Into<String>) -> Self {
        self.env("ANTHROPIC_BASE_URL", url.into())
    }

    /// How often a failed call of the API is tried again, 10 times if this does not say otherwise (variable
    /// `CLAUDE_CODE_MAX_RETRIES`). The waits double, so that 10 can mean minutes.
    #[must_use]
    pub fn max_retries(self, times: u32) -> Self {
        self.env("CLAUDE_CODE_MAX_RETRIES", times.to_string())
    }
}

impl Environment {
    /// The configuration directory that the CLI will use, as far as variables tell.
    pub(super) fn config_dir(&self) -> Option<PathBuf> {
        let home = || self.get(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let given = self.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        given.or_else(|| home().map(|home| PathBuf::from(home).join(".claude")))
    }

    /// A variable, as the CLI will see it.
    fn get(&self, name: &str) -> Option<OsString> {
        let value = match self.changes.get(OsStr::new(name)) {
            Some(change) => change.clone(),
            None if self.clear => None,
            None => std::env::var_os(name),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The changes to what is inherited.
    pub(super) fn changes(&self) -> Result<BTreeMap<OsString, Option<OsString>>, Error> {
        let mut changes = BTreeMap::new();
        if self.clear {
            changes.extend(std::env::vars_os().map(|(name, _)| (name, None)));
        }
        changes.insert(NESTED.into(), None);
        changes.insert(ENTRYPOINT.into(), Some("sdk-rs".into()));
        for (name, value) in &self.changes {
            check(name, value.as_deref())?;
            changes.insert(name.clone(), value.clone());
        }
        changes.extend(FIXED.map(|(name, value)| (name.into(), Some(value.into()))));
        Ok(changes)
    }

    /// The names of what is set or taken away: what may be shown.
    pub(super) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.changes.keys().map(OsString::as_os_str)
    }
}

/// The system takes no such variable, or takes it for another.
fn check(name: &OsStr, value: Option<&OsStr>) -> Result<(), Error> {
    let bytes = name.as_encoded_bytes();
    if bytes.is_empty() || bytes.iter().any(|byte| matches!(byte, 0 | b'=')) {
        return refuse("env", format!("{name:?} is no name of a variable"));
    }
    if value.is_some_and(|value| value.as_encoded_bytes().contains(&0)) {
        return refuse("env", format!("the value of {name:?} holds a NUL character"));
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_where_the_cli_will_look_for_it() {
        let dir = |options: Options| options.environment.config_dir();
        let home = Options::new().env_remove("CLAUDE_CONFIG_DIR").env("HOME", "/srv/me");
        assert_eq!(dir(home.clone()), Some("/srv/me/.claude".into()));
        assert_eq!(dir(home.clone().config_dir("/srv/other")), Some("/srv/other".into()));
        assert_eq!(dir(home.config_dir("")), Some("/srv/me/.claude".into()), "an empty one is none");
        assert_eq!(dir(Options::new().env_clear()), None, "nothing is inherited");
    }
}
