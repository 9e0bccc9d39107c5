//! Settings, plugins, and which of the user's customisations count.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::args::Args;
use super::word::word;
use super::{Options, refuse};
use crate::Error;
use crate::stream::{Initialize, Json};

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Settings {
    settings: Option<Json>,
    file: Option<PathBuf>,
    sandbox: Option<Json>,
    managed: Option<Json>,
    sources: Option<Vec<SettingSource>>,
    project_config_root: Option<PathBuf>,
    plugins: Vec<Plugin>,
    delivery: PluginDelivery,
    bare: bool,
    safe_mode: bool,
    restricted: bool,
    disable_slash_commands: bool,
    setup_hooks: Option<SetupHooks>,
}

word! {
    /// Where settings are read from.
    pub enum SettingSource {
        /// The user's own, for all projects.
        User = "user",
        /// The project's, which others share. Without it `CLAUDE.md` is not read.
        Project = "project",
        /// The user's own for the project.
        Local = "local",
    }
}

/// A plugin for one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin(Source);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Local { path: PathBuf, mcp: bool },
    Url(String),
}

impl Plugin {
    /// A directory, or a .zip file, on the CLI's machine.
    #[must_use]
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self(Source::Local { path: path.into(), mcp: true })
    }

    /// A directory of which everything counts but the MCP servers, because this program serves them itself.
    #[must_use]
    pub fn local_without_mcp(path: impl Into<PathBuf>) -> Self {
        Self(Source::Local { path: path.into(), mcp: false })
    }

    /// A .zip file that the CLI fetches.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self(Source::Url(url.into()))
    }
}

/// How plugins are told to the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PluginDelivery {
    /// On the command line, which every CLI understands.
    #[default]
    Arguments,
    /// In the first message, so that the command line stays short however many there are.
    Initialize,
}

/// Which occasion the `Setup` hooks run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupHooks {
    /// The project is set up (`--init`).
    Init,
    /// The project is looked after (`--maintenance`).
    Maintenance,
}

impl Options {
    /// Settings for this session, as in `settings.json`; they count more than the user's and the project's (`--settings`
    /// with a private file, because there may be keys in them). It may be said more than once: what is said later about
    /// a key counts.
    #[must_use]
    pub fn settings(mut self, settings: impl Into<Json>) -> Self {
        let new = settings.into();
        self.settings.settings =
            Some(match self.settings.settings.take().map(|old| (old.value(), new.value())) {
                Some((Value::Object(mut old), Value::Object(new))) => {
                    old.extend(new);
                    Value::Object(old).into()
                }
                _ => new,
            });
        self
    }

    /// A file with settings for this session (`--settings`). It must stay while the session lasts: CLIs read it again.
    #[must_use]
    pub fn settings_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.file = Some(path.into());
        self
    }

    /// The sandbox for commands, as in the setting `sandbox` (`--settings`). Where it is `enabled` but the system has
    /// none, the session fails instead of running commands without it, unless `failIfUnavailable` is false.
    #[must_use]
    pub fn sandbox(mut self, sandbox: impl Into<Json>) -> Self {
        self.settings.sandbox = Some(sandbox.into());
        self
    }

    /// Settings that the user cannot loosen, for programs that enforce a policy (`--managed-settings`). The CLI takes
    /// them from the command line only, so everybody on the machine can read them.
    #[must_use]
    pub fn managed_settings(mut self, settings: impl Into<Json>) -> Self {
        self.settings.managed = Some(settings.into());
        self
    }

    /// Where settings are read from (`--setting-sources`). An empty list is nowhere; without this option it is
    /// everywhere.
    #[must_use]
    pub fn setting_sources(mut self, sources: impl IntoIterator<Item = impl Into<SettingSource>>) -> Self {
        self.settings.sources = Some(sources.into_iter().map(Into::into).collect());
        self
    }

    /// The trusted checkout whose settings, hooks, skills and MCP servers count instead of those of the working
    /// directory, an absolute path (`--project-config-root`; 2.1.197 does not know it).
    #[must_use]
    pub fn project_config_root(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.project_config_root = Some(path.into());
        self
    }

    /// A plugin for this session (`--plugin-dir`, `--plugin-dir-no-mcp`, `--plugin-url`). It may be said more than once.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.settings.plugins.push(plugin);
        self
    }

    /// How plugins are told to the CLI (`initialize.plugins` needs `--await-initialize`; 2.1.197 does not know it).
    #[must_use]
    pub fn plugin_delivery(mut self, delivery: PluginDelivery) -> Self {
        self.settings.delivery = delivery;
        self
    }

    /// The smallest session: no hooks, plugins, memory, `CLAUDE.md` or key store (`--bare`). The key must come from
    /// `ANTHROPIC_API_KEY` or the settings.
    #[must_use]
    pub fn bare(mut self, on: bool) -> Self {
        self.settings.bare = on;
        self
    }

    /// Leaves out all customisations, to find out which of them is broken (`--safe-mode`).
    #[must_use]
    pub fn safe_mode(mut self, on: bool) -> Self {
        self.settings.safe_mode = on;
        self
    }

    /// Takes away the tools that run commands, keeps the file tools in the working directories and ignores the user's
    /// and the project's settings (`--restricted`; 2.1.197 does not know it).
    #[must_use]
    pub fn restricted(mut self, on: bool) -> Self {
        self.settings.restricted = on;
        self
    }

    /// Leaves out all slash commands and skills (`--disable-slash-commands`).
    #[must_use]
    pub fn disable_slash_commands(mut self, disable: bool) -> Self {
        self.settings.disable_slash_commands = disable;
        self
    }

    /// Runs the `Setup` hooks of the settings before the session begins (`--init`, `--maintenance`).
    #[must_use]
    pub fn setup_hooks(mut self, occasion: SetupHooks) -> Self {
        self.settings.setup_hooks = Some(occasion);
        self
    }
}

impl Settings {
    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        match (&self.file, self.text()?) {
            (Some(_), Some(_)) => {
                // The CLI would silently take the last of two.
                return refuse(
                    "settings_file",
                    "there are settings or a sandbox too; put all into one of them",
                );
            }
            (Some(path), None) => args.path("--settings", path)?,
            (None, Some(text)) => args.file("--settings", "settings.json", text),
            (None, None) => {}
        }
        if let Some(managed) = &self.managed {
            object("managed_settings", managed)?;
            args.value("--managed-settings", managed.text())?;
        }
        if let Some(sources) = &self.sources {
            if sources.iter().any(|source| source.as_str().is_empty() || source.as_str().contains(',')) {
                return refuse("setting_sources", "a source is one word: user, project or local");
            }
            let sources: Vec<&str> = sources.iter().map(SettingSource::as_str).collect();
            args.value_or_empty("--setting-sources", sources.join(","))?;
        }
        if let Some(root) = &self.project_config_root {
            if !root.is_absolute() {
                return refuse("project_config_root", "it must be an absolute path");
            }
            args.value("--project-config-root", root)?;
        }
        let by_initialize = self.delivery == PluginDelivery::Initialize;
        for Plugin(source) in &self.plugins {
            match source {
                Source::Local { path, .. } if by_initialize => {
                    if path.to_str().is_none_or(str::is_empty) {
                        return refuse("plugin", format!("{path:?} cannot be said in JSON"));
                    }
                }
                Source::Local { path, mcp: true } => args.value("--plugin-dir", path)?,
                Source::Local { path, mcp: false } => args.value("--plugin-dir-no-mcp", path)?,
                Source::Url(url) => args.value("--plugin-url", url)?,
            }
        }
        args.switch("--await-initialize", self.local_plugins().is_some());
        args.switch("--bare", self.bare);
        args.switch("--safe-mode", self.safe_mode);
        args.switch("--restricted", self.restricted);
        args.switch("--disable-slash-commands", self.disable_slash_commands);
        args.switch("--init", self.setup_hooks == Some(SetupHooks::Init));
        args.switch("--maintenance", self.setup_hooks == Some(SetupHooks::Maintenance));
        Ok(())
    }

    pub(super) fn initialize(&self, hello: &mut Initialize) {
        hello.plugins = self.local_plugins();
    }

    /// The plugins that go into the first message, if any do.
    fn local_plugins(&self) -> Option<Vec<Json>> {
        if self.delivery != PluginDelivery::Initialize {
            return None;
        }
        let plugins = self.plugins.iter().filter_map(|Plugin(source)| {
            let Source::Local { path, mcp } = source else { return None };
            let mut plugin = json!({"type": "local", "path": path.to_string_lossy()});
            if !mcp {
                plugin["skipMcpDiscovery"] = true.into();
            }
            Some(plugin)
        });
        let plugins: Vec<Json> = plugins.map(Json::from).collect();
        (!plugins.is_empty()).then_some(plugins)
    }

    /// Settings and sandbox as one JSON text.
    fn text(&self) -> Result<Option<String>, Error> {
        let Some(sandbox) = &self.sandbox else {
            let settings = self.settings.as_ref();
            return settings
                .map(|settings| object("settings", settings).map(|_| settings.text().to_owned()))
                .transpose();
        };
        let mut sandbox = object("sandbox", sandbox)?;
        if sandbox.get("enabled") == Some(&Value::Bool(true)) {
            sandbox.entry("failIfUnavailable").or_insert(Value::Bool(true));
        }
        let mut settings =
            self.settings.as_ref().map_or(Ok(Map::new()), |settings| object("settings", settings))?;
        if settings.insert("sandbox".into(), sandbox.into()).is_some() {
            return refuse("sandbox", "the settings have a sandbox already; put all into one of them");
        }
        Ok(Some(Value::Object(settings).to_string()))
    }
}

/// A JSON object, or the reason why it is none.
fn object(option: &'static str, json: &Json) -> Result<Map<String, Value>, Error> {
    json.read().or_else(|_| refuse(option, "it is no JSON object"))
}
