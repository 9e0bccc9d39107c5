//! What can be chosen in a session: modes, and options of all kinds.

use serde::{Deserialize, Serialize};

/// The modes there are, and the one in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeState {
    /// The one in force.
    pub current_mode_id: String,
    /// All of them.
    pub available_modes: Vec<Mode>,
}

/// A mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Its name, for programs.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An option of a session. The order of options is their priority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigOption {
    /// Its name, for programs.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is about: `mode`, `model`, `model_config`, `thought_level`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What it can be.
    #[serde(flatten)]
    pub value: ConfigValue,
}

/// What an option can be, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ConfigValue {
    /// One of a list.
    Select {
        /// What it is.
        current_value: String,
        /// The list.
        options: Vec<ConfigChoice>,
    },
    /// A switch; only for clients that have them.
    Boolean {
        /// What it is.
        current_value: bool,
    },
}

/// One of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigChoice {
    /// Its name, for programs.
    pub value: String,
    /// Its name, for people.
    pub name: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
