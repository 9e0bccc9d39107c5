//! What a CLI says about itself, in the form that is remembered from one start to the next.
//!
//! There is nothing about the account in it, and no path.

use oarlock_agent::stream::{PermissionMode, reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commands::{self, Command};
use super::modes;
use crate::translate::Windows;

/// Agents that every CLI has. They are made for tasks, not for conversations.
const BUILT_IN: &[&str] = &["claude", "general-purpose", "Explore", "Plan", "statusline-setup"];

/// What a CLI says about itself: which choices there are. This is what is remembered from one start to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(super) models: Vec<Model>,
    pub(super) commands: Vec<Command>,
    /// The user's own agents.
    pub(super) agents: Vec<Agent>,
    /// `None`: the CLI was not asked for its settings yet.
    pub(super) defaults: Option<Defaults>,
    /// What fits into each model. The CLI says so only with the results of turns.
    #[serde(default)]
    pub(crate) windows: Windows,
}

/// A model there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Model {
    /// The CLI's short name for it.
    pub(super) alias: String,
    /// The name that the API knows it by.
    pub(super) resolved: Option<String>,
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// The levels of effort it can make.
    pub(super) efforts: Vec<String>,
    pub(super) has_fast: bool,
    pub(super) has_auto: bool,
}

/// An agent of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) description: Option<String>,
}

/// What is in force when nothing is chosen: the settings say so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Defaults {
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
    pub(super) fast: bool,
    pub(super) agent: Option<String>,
    pub(super) forbids_bypass: bool,
    pub(super) forbids_auto: bool,
}

impl Known {
    /// From what the CLI says at its start, and from the settings in force (which not every CLI needs to be asked for).
    pub(crate) fn new(info: &reply::Initialize, settings: Option<&reply::GetSettings>) -> Self {
        let models: Vec<Model> = info.models.iter().map(Model::from).collect();
        let is_own = |agent: &&reply::AgentInfo| {
            let name = agent.name.as_str();
            !name.is_empty() && name != super::DEFAULT && !BUILT_IN.contains(&name)
        };
        let agents = info.agents.iter().filter(is_own);
        let agents = agents.map(|agent| Agent {
            name: agent.name.clone(),
            description: agent.description.clone().filter(|text| !text.is_empty()),
        });
        Self {
            agents: agents.collect(),
            commands: commands::read(&info.commands),
            defaults: settings.map(|settings| Defaults::new(&models, settings)),
            windows: Windows::new(),
            models,
        }
    }

    /// Without the settings, when they are those of one session.
    pub(crate) fn without_defaults(self) -> Self {
        Self { defaults: None, ..self }
    }

    /// What this CLI has not said yet is as it was before.
    pub(crate) fn or_else(mut self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        if self.defaults.is_none() {
            self.defaults.clone_from(&before.defaults);
        }
        for (model, window) in &before.windows {
            self.windows.entry(model.clone()).or_insert(*window);
        }
        self
    }
}

impl From<&reply::ModelInfo> for Model {
    fn from(info: &reply::ModelInfo) -> Self {
        let name = info.display_name.clone().filter(|name| !name.is_empty());
        let efforts = info.supported_effort_levels.clone().unwrap_or_default();
        Self {
            alias: info.value.clone(),
            resolved: info.resolved_model.clone(),
            name: name.unwrap_or_else(|| info.value.clone()),
            description: info.description.clone().filter(|text| !text.is_empty()),
            efforts: if info.supports_effort == Some(false) { Vec::new() } else { efforts },
            has_fast: info.supports_fast_mode == Some(true),
            has_auto: info.supports_auto_mode == Some(true),
        }
    }
}

impl Defaults {
    fn new(models: &[Model], settings: &reply::GetSettings) -> Self {
        let effective = settings.effective.value();
        let word = |value: &Value| value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
        let is_disabled = |value: &Value| value == "disable" || value == &Value::Bool(true);
        let permissions = &effective["permissions"];
        // A model that was named by a variable or a flag is not among the settings.
        let applied = settings.applied.as_ref().map(|applied| applied.value()).unwrap_or_default();
        let applied = word(&applied["model"]);
        let model = word(&effective["model"]).or(applied).map(|model| alias(models, &model));
        Self {
            mode: mode(settings),
            model,
            fast: effective["fastMode"] == true,
            agent: word(&effective["agent"]),
            forbids_bypass: is_disabled(&permissions["disableBypassPermissionsMode"]),
            forbids_auto: is_disabled(&permissions["disableAutoMode"])
                || is_disabled(&effective["disableAutoMode"]),
        }
    }
}

/// The alias of a model that may be named in full. A name that is not known is its own alias.
pub(super) fn alias(models: &[Model], model: &str) -> String {
    let by_alias = models.iter().find(|known| known.alias == model);
    let by_name = || models.iter().find(|known| known.resolved.as_deref() == Some(model));
    by_alias.or_else(by_name).map_or_else(|| model.to_owned(), |known| known.alias.clone())
}

/// The mode that sessions begin in. A repository cannot give itself more rights than the user would.
fn mode(settings: &reply::GetSettings) -> Option<String> {
    const BY_WEIGHT: [&str; 5] =
        ["policySettings", "flagSettings", "localSettings", "projectSettings", "userSettings"];
    BY_WEIGHT.iter().find_map(|name| {
        let source = settings.sources.iter().find(|source| source.source == *name)?;
        let settings = source.settings.value();
        let mode = settings["permissions"]["defaultMode"].as_str()?;
        let escalates = ["bypassPermissions", "auto"].contains(&mode) && *name == "projectSettings";
        let mode = PermissionMode::from(if mode == "manual" { "default" } else { mode });
        (modes::is_known(&mode) && !escalates).then(|| mode.as_str().to_owned())
    })
}
