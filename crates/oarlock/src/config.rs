//! The configuration: defaults, then the user's file, the project's file, the environment, and flags, each over the
//! one before.

use std::fmt;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use oarlock_ide::consent::{Consent, Rules};
use oarlock_ide::headless::OnDiff;
use oarlock_ide::{DiagnosticsTimes, Keepalive, Limits, Options};
use serde::Serialize;

use crate::exit::Failure;

mod file;
mod keys;
mod value;

pub(crate) use keys::{Config, KEYS, Key, Project};
pub(crate) use value::{DiffPolicy, Millis, Seconds};

use file::File;

/// The project's file, in a folder of the workspace or above it in the same repository.
pub(crate) const PROJECT_FILE: &str = ".oarlock.toml";

/// A value and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    /// The value that counts.
    pub(crate) value: T,
    /// Who set it.
    pub(crate) origin: Origin,
}

impl<T> Setting<T> {
    fn new(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// A flag of the command line counts more than anything else.
    pub(crate) fn override_with(&mut self, flag: Option<T>) {
        if let Some(value) = flag {
            *self = Self { value, origin: Origin::Flag };
        }
    }
}

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Origin {
    /// Nobody.
    Default,
    /// The user's file.
    User(Place),
    /// The project's file.
    Project(Place),
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A flag of the command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(place) => write!(f, "user file {place}"),
            Self::Project(place) => write!(f, "project file {place}"),
            Self::Environment { variable } => write!(f, "variable {variable}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The file.
    pub(crate) file: PathBuf,
    /// The line, from 1.
    pub(crate) line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Where settings were looked for, and what of them does not count.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The user's file, whether it exists or not; none without a home directory.
    pub(crate) user: Option<PathBuf>,
    /// The projects' files, whether they exist or not, the most important first.
    pub(crate) projects: Vec<PathBuf>,
    /// What the projects add to `share.ignore`, and where they say so.
    pub(crate) project_ignore: Vec<(Vec<String>, Place)>,
    /// What was passed over.
    pub(crate) ignored: Vec<Ignored>,
}

/// A setting that does not count.
#[derive(Debug, Serialize)]
pub(crate) struct Ignored {
    /// Its key, and if only a part of its value does not count, that part.
    pub(crate) key: String,
    /// Where it is.
    pub(crate) place: Place,
    /// Why it does not count, and what to do.
    pub(crate) why: String,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` does not count: {}", self.place, self.key, self.why)
    }
}

/// The user's file: `$XDG_CONFIG_HOME/oarlock/config.toml`, else `~/.config/oarlock/config.toml`.
pub(crate) fn user_file() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("oarlock").join("config.toml"))
}

/// For each folder its own file and those above it, up to the root of its repository: a part of a project keeps the rules
/// of the whole.
fn project_files(workspace: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in workspace {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let root = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(&folder).to_owned();
        for above in folder.ancestors().take_while(|above| above.starts_with(&root)) {
            let file = above.join(PROJECT_FILE);
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

impl Config {
    /// Reads all layers for a workspace, and warns of settings that do not count.
    pub(crate) fn load(workspace: &[PathBuf]) -> anyhow::Result<Self> {
        let config = Self::read(workspace)?;
        for ignored in &config.sources.ignored {
            crate::output::warn(&ignored.to_string());
        }
        Ok(config)
    }

    /// Reads all layers for a workspace. What does not count is in [`Sources::ignored`].
    pub(crate) fn read(workspace: &[PathBuf]) -> anyhow::Result<Self> {
        let variable = |name: &str| match std::env::var(name) {
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(Failure::usage(format!("{name} is not UTF-8"))),
        };
        Self::layered(user_file(), project_files(workspace), variable)
    }

    fn layered(
        user: Option<PathBuf>,
        projects: Vec<PathBuf>,
        variable: impl Fn(&str) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<Self> {
        let sources = Sources { user, projects, ..Sources::default() };
        let mut config = Self { sources, ..Self::default() };
        if let Some(file) = config.sources.user.as_deref().map(File::read).transpose()?.flatten() {
            config.take_user(&file)?;
        }
        // The nearest file of the first folder comes last: what it says counts most.
        for path in config.sources.projects.clone().iter().rev() {
            if let Some(file) = File::read(path)? {
                config.take_project(&file)?;
            }
        }
        for key in KEYS {
            let name = key.variable();
            let Some(text) = variable(&name)? else { continue };
            let value = value::from_variable(&text, key.accepts).ok_or_else(|| {
                Failure::usage(format!("{name}={text} is wrong: expected {}", key.expected))
            })?;
            (key.set)(&mut config, &value, Origin::Environment { variable: name });
        }
        Ok(config)
    }

    fn take_user(&mut self, file: &File) -> anyhow::Result<()> {
        for entry in &file.entries {
            match entry.known() {
                Ok(key) => {
                    entry.check(key)?;
                    (key.set)(self, &entry.value, Origin::User(entry.place.clone()));
                }
                Err(unknown) => self.sources.ignored.push(unknown),
            }
        }
        Ok(())
    }

    /// A project file may only tighten. What it may not do is refused, and the rest goes on.
    fn take_project(&mut self, file: &File) -> anyhow::Result<()> {
        for entry in &file.entries {
            let key = match entry.known() {
                Ok(key) => key,
                Err(unknown) => {
                    self.sources.ignored.push(unknown);
                    continue;
                }
            };
            // What is refused anyway may be of any type.
            if key.project != Project::Refused {
                entry.check(key)?;
            }
            let refusal = match key.project {
                Project::Free => None,
                Project::Refused => {
                    Some("a project file may come from somebody else, so it may not set this")
                }
                Project::Adds => {
                    self.add_ignore_rules(entry);
                    continue;
                }
                Project::TurnsOn => match (entry.value.as_bool(), self.share_git_ignored.value) {
                    (Some(true), _) => None,
                    (_, true) => Some("a project file may only turn this on"),
                    // It is off already.
                    (_, false) => continue,
                },
                Project::Lowers => {
                    let limit = self.share_max_bytes.value;
                    let given = entry.value.as_integer().and_then(|given| usize::try_from(given).ok());
                    let lower = given.is_some_and(|given| given <= limit);
                    (!lower).then_some("a project file may only lower this")
                }
            };
            match refusal {
                Some(why) => self.sources.refuse(entry, entry.key.clone(), why),
                None => (key.set)(self, &entry.value, Origin::Project(entry.place.clone())),
            }
        }
        Ok(())
    }

    /// Takes the project's rules, but for those that take a rule back.
    fn add_ignore_rules(&mut self, entry: &file::Entry) {
        let rules = entry.value.as_array().into_iter().flatten().filter_map(toml::Value::as_str);
        let (back, rules): (Vec<&str>, Vec<&str>) = rules.partition(|rule| rule.starts_with('!'));
        for rule in back {
            let key = format!("{}: {rule}", entry.key);
            self.sources.refuse(entry, key, "a project file may not take a rule back");
        }
        let rules = rules.into_iter().map(str::to_owned).collect();
        self.sources.project_ignore.push((rules, entry.place.clone()));
    }

    /// What may be shared.
    pub(crate) fn consent_rules(&self) -> Rules {
        Rules {
            user: self.share_ignore.value.clone(),
            project: self.sources.project_ignore.iter().flat_map(|(rules, _)| rules).cloned().collect(),
            git_ignored: self.share_git_ignored.value,
            limit: self.share_max_bytes.value,
        }
    }

    /// What a server for these folders is set up with.
    pub(crate) fn options(&self, workspace: Vec<PathBuf>) -> anyhow::Result<Options> {
        let consent = Consent::new(&workspace, &self.consent_rules()).map_err(Failure::usage)?;
        let every = self.ide_keepalive.value.0;
        Ok(Options {
            name: self.ide_name.value.clone(),
            port: self.ide_port.value,
            listen: self.ide_listen.value,
            allow_hosts: self.ide_allow_hosts.value.clone(),
            dialect: self.ide_dialect.value,
            lock_dir: self.ide_lock_dir.value.clone(),
            limits: Limits {
                handshake: self.ide_handshake_timeout.value.0,
                message: self.ide_max_message.value,
                clients: self.ide_max_clients.value,
                pending: self.ide_max_pending.value,
                queued: self.ide_max_queued.value,
            },
            keepalive: (!every.is_zero())
                .then_some(Keepalive { every, dead_after: self.ide_ping_timeout.value.0 }),
            debounce: self.ide_debounce_ms.value.0,
            diagnostics: DiagnosticsTimes {
                file: self.ide_diagnostics_file_ms.value.0,
                all: self.ide_diagnostics_all_ms.value.0,
                model: self.ide_diagnostics_model_ms.value.0,
            },
            allow_write: self.ide_allow_write.value,
            consent: Some(consent),
            workspace,
            ..Options::default()
        })
    }

    /// What decides a diff where no terminal is free to ask: `ask` waits for a command.
    pub(crate) fn on_diff_without_terminal(&self) -> OnDiff {
        match self.ide_on_diff.value {
            DiffPolicy::Ask => OnDiff::Wait,
            DiffPolicy::Accept => OnDiff::Accept,
            DiffPolicy::Reject => OnDiff::Reject,
        }
    }
}

impl Sources {
    fn refuse(&mut self, entry: &file::Entry, key: String, why: &str) {
        let user = self.user.as_ref().map_or("the user's file".into(), |file| file.display().to_string());
        let why = format!("{why}; if you want it, put it into {user}");
        self.ignored.push(Ignored { key, place: entry.place.clone(), why });
    }
}

#[cfg(test)]
mod tests;
