//! What can be chosen in a session: mode, model, effort, fast, agent; and the slash commands there are.
//!
//! [`Known`] is what the CLI offers and what its settings say; [`Choices`] is that, and what somebody chose on top of it.
//! A choice is made when the CLI has taken it ([`Order::carry_out`], then [`Choices::done`]), and it is made again
//! whenever a CLI is started for the session ([`Choices::launch`]).

mod commands;
mod known;
mod modes;
pub(crate) mod past;
#[cfg(test)]
mod tests;

use oarlock_agent::stream::{Json, PermissionMode, SlashCommand};
use oarlock_agent::{Error, Options, Session};
use oarlock_proto::acp::{
    AvailableCommand, ClientCapabilities, ConfigChoice, ConfigOption, ConfigValue, ModeState,
};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::{Value, json};

use commands::Command;
pub(crate) use known::Known;

/// The value that stands for no choice.
const DEFAULT: &str = "default";
/// The CLI's own agent.
const OWN_AGENT: &str = "claude";

/// What can be chosen in a session, and what is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices {
    known: Known,
    /// The commands, when the CLI has told of others since its start.
    commands: Option<Vec<Command>>,
    may_bypass: bool,
    mode: Option<PermissionMode>,
    /// An alias, or any other name that somebody gave.
    model: Option<String>,
    /// What the model turned out to be, when the list does not say.
    model_name: Option<String>,
    effort: Option<String>,
    fast: Option<bool>,
    /// `default` is the CLI's own.
    agent: Option<String>,
}

/// A choice that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Order {
    /// Another permission mode.
    Mode(PermissionMode),
    /// Another model.
    Model(String),
    /// Another effort; `default` is the model's own.
    Effort(String),
    /// Fast mode on or off.
    Fast(bool),
    /// Another agent.
    Agent(String),
}

impl Choices {
    /// The choices of a CLI; nothing is chosen yet. `mode` and `model` are what the client asked for at the start.
    pub(crate) fn new(known: &Known, mode: Option<PermissionMode>, model: Option<String>) -> Self {
        let may_bypass = modes::user_may_bypass();
        let mut choices = Self { known: known.clone(), may_bypass, ..Self::default() };
        choices.model = model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
        match mode {
            // The CLI would not start with it.
            Some(mode) if !modes::is_known(&mode) || !choices.may_use(&mode) => {
                tracing::warn!(mode = mode.as_str(), "the client asks for a mode that cannot be had");
            }
            mode => choices.mode = mode,
        }
        choices
    }

    /// The CLI is up and says what there is. What was chosen stays, where it is still there. `true`: the client should be told.
    pub(crate) fn learn(&mut self, known: &Known) -> bool {
        let before = self.picture();
        self.known = known.clone().or_else(Some(&self.known));
        let is_gone = |agent: &String| agent != DEFAULT && !self.has_agent(agent);
        if self.agent.as_ref().is_some_and(is_gone) {
            self.agent = None;
        }
        before != self.picture()
    }

    /// Has nobody chosen anything? Then the settings of a CLI that is started now are those of any other.
    pub(crate) fn are_untouched(&self) -> bool {
        self.mode.is_none()
            && self.model.is_none()
            && self.effort.is_none()
            && self.fast.is_none()
            && self.agent.is_none()
    }

    /// All that a client can see.
    fn picture(&self) -> (Vec<ConfigOption>, Vec<AvailableCommand>) {
        (self.all_options(true), self.commands())
    }

    // ---- modes

    /// The modes, as the older of the two ways has them.
    pub(crate) fn modes(&self) -> ModeState {
        ModeState {
            current_mode_id: self.mode().as_str().to_owned(),
            available_modes: self.available_modes().iter().map(modes::describe).collect(),
        }
    }

    /// The modes there are. The one in force is always among them.
    pub(crate) fn available_modes(&self) -> Vec<PermissionMode> {
        let may = |mode| self.may_use(&mode);
        let offered = modes::offered(may(PermissionMode::BypassPermissions), may(PermissionMode::Auto));
        let mut offered: Vec<PermissionMode> = offered.collect();
        let current = self.mode();
        if !offered.contains(&current) {
            offered.push(current);
        }
        offered
    }

    fn mode(&self) -> PermissionMode {
        let settings = self.known.defaults.as_ref().and_then(|defaults| defaults.mode.as_deref());
        let settings = settings.map(PermissionMode::from).filter(|mode| self.may_use(mode));
        self.mode.clone().or(settings).unwrap_or(PermissionMode::Default)
    }

    /// Would the CLI take this mode, as far as is known?
    fn may_use(&self, mode: &PermissionMode) -> bool {
        let defaults = self.known.defaults.as_ref();
        match mode {
            PermissionMode::BypassPermissions => {
                self.may_bypass && !defaults.is_some_and(|defaults| defaults.forbids_bypass)
            }
            PermissionMode::Auto => {
                let has_auto = self.listed_model().is_none_or(|model| model.has_auto);
                has_auto && !defaults.is_some_and(|defaults| defaults.forbids_auto)
            }
            _ => true,
        }
    }

    /// The CLI has changed the mode. `true`: it is another one.
    pub(crate) fn set_mode(&mut self, mode: &PermissionMode) -> bool {
        let mode = if mode.as_str() == "manual" { &PermissionMode::Default } else { mode };
        let is_other = self.mode() != *mode;
        self.mode = Some(mode.clone());
        is_other
    }

    // ---- models

    fn model(&self) -> &str {
        let settings = || self.known.defaults.as_ref()?.model.as_deref();
        self.model.as_deref().or_else(settings).unwrap_or(DEFAULT)
    }

    /// What is known of the model in force; `None` for one that is not in the list.
    fn listed_model(&self) -> Option<&known::Model> {
        let name = self.model();
        self.known.models.iter().find(|model| model.alias == name)
    }

    /// The CLI has changed the model (its full name). `true`: it is another choice.
    pub(crate) fn set_model(&mut self, model: &str) -> bool {
        let listed = self.listed_model().and_then(|listed| listed.resolved.as_deref());
        match listed.or(self.model_name.as_deref()) {
            _ if self.model() == model => false,
            Some(resolved) if resolved == model => false,
            Some(_) => {
                self.model = Some(known::alias(&self.known.models, model));
                self.model_name = None;
                true
            }
            // A name that only the CLI understands: this is what it stands for.
            None => {
                self.model_name = Some(model.to_owned());
                false
            }
        }
    }

    /// The levels of effort that the model can make. One that is not in the list can make what any can, until it cannot.
    fn efforts(&self) -> Vec<&str> {
        let mut efforts: Vec<&str> = Vec::new();
        let models = match self.listed_model() {
            Some(model) => std::slice::from_ref(model),
            None => &self.known.models,
        };
        for effort in models.iter().flat_map(|model| &model.efforts) {
            if !efforts.contains(&effort.as_str()) {
                efforts.push(effort);
            }
        }
        efforts
    }

    fn effort(&self) -> &str {
        let chosen = self.effort.as_deref();
        chosen.filter(|effort| self.efforts().contains(effort)).unwrap_or(DEFAULT)
    }

    fn fast(&self) -> bool {
        let settings = self.known.defaults.as_ref().is_some_and(|defaults| defaults.fast);
        self.fast.unwrap_or(settings)
    }

    // ---- agents

    fn has_agent(&self, name: &str) -> bool {
        self.known.agents.iter().any(|agent| agent.name == name)
    }

    fn agent(&self) -> &str {
        let settings = || self.known.defaults.as_ref()?.agent.as_deref();
        let agent = self.agent.as_deref().or_else(settings).filter(|agent| self.has_agent(agent));
        agent.unwrap_or(DEFAULT)
    }

    // ---- options

    /// All options, in the order of their priority.
    pub(crate) fn options(&self, client: &ClientCapabilities) -> Vec<ConfigOption> {
        self.all_options(client.has_boolean_options())
    }

    fn all_options(&self, has_switches: bool) -> Vec<ConfigOption> {
        let mut options = vec![self.mode_option(), self.model_option()];
        let efforts = self.efforts();
        if !efforts.is_empty() {
            let levels = efforts.into_iter().map(|level| choice(level, capitalised(level), None));
            let levels = [choice(DEFAULT, "Default", None)].into_iter().chain(levels);
            let about = ("Effort", "Available effort levels for this model", Some("thought_level"));
            options.push(select("effort", about, self.effort(), levels));
        }
        if self.listed_model().is_some_and(|model| model.has_fast) {
            options.push(self.fast_option(has_switches));
        }
        if !self.known.agents.is_empty() {
            let agents = self.known.agents.iter();
            let agents = agents.map(|agent| choice(&agent.name, &agent.name, agent.description.as_deref()));
            let own = choice(DEFAULT, "Default", Some("The standard Claude Code agent"));
            let agents = [own].into_iter().chain(agents);
            options.push(select("agent", ("Agent", "Who answers", None), self.agent(), agents));
        }
        options
    }

    fn mode_option(&self) -> ConfigOption {
        let ModeState { current_mode_id, available_modes } = self.modes();
        let modes = available_modes.into_iter();
        let modes =
            modes.map(|mode| ConfigChoice { value: mode.id, name: mode.name, description: mode.description });
        select("mode", ("Mode", "Session permission mode", Some("mode")), &current_mode_id, modes)
    }

    fn model_option(&self) -> ConfigOption {
        let current = self.model();
        let models = self.known.models.iter();
        let models = models.map(|model| choice(&model.alias, &model.name, model.description.as_deref()));
        let other = self.listed_model().is_none().then(|| match current {
            DEFAULT => choice(DEFAULT, "Default", None),
            name => choice(name, name, None),
        });
        select("model", ("Model", "AI model to use", Some("model")), current, models.chain(other))
    }

    fn fast_option(&self, has_switches: bool) -> ConfigOption {
        let is_on = self.fast();
        let about = ("Fast mode", "Faster responses on supported models", Some("model_config"));
        let mut option = select(
            "fast",
            about,
            if is_on { "on" } else { "off" },
            [choice("off", "Off", None), choice("on", "On", None)],
        );
        if has_switches {
            option.value = ConfigValue::Boolean { current_value: is_on };
        }
        option
    }

    /// Reads a choice, and checks it.
    pub(crate) fn order(&self, id: &str, value: &Json) -> Result<Order, ErrorObject> {
        let value = value.value();
        if id == "fast" {
            return self.fast_order(&value);
        }
        let Some(word) = value.as_str() else {
            return Err(ErrorObject::invalid_params(format!("value: `{id}` takes a string")));
        };
        match id {
            "mode" => {
                let mode = PermissionMode::from(if word == "manual" { DEFAULT } else { word });
                if modes::is_known(&mode) && self.may_use(&mode) {
                    return Ok(Order::Mode(mode));
                }
                let there = self.available_modes();
                Err(unknown("mode", word, there.iter().map(PermissionMode::as_str)))
            }
            "model" if word.trim().is_empty() => {
                Err(unknown("model", word, self.known.models.iter().map(|model| model.alias.as_str())))
            }
            // Any name will do: the API knows more models than the CLI lists.
            "model" => Ok(Order::Model(known::alias(&self.known.models, word.trim()))),
            "effort" => {
                let efforts = self.efforts();
                if word == DEFAULT || efforts.contains(&word) {
                    return Ok(Order::Effort(word.to_owned()));
                }
                Err(unknown("effort", word, [DEFAULT].into_iter().chain(efforts)))
            }
            "agent" if word == DEFAULT || self.has_agent(word) => Ok(Order::Agent(word.to_owned())),
            "agent" => {
                let agents = self.known.agents.iter().map(|agent| agent.name.as_str());
                Err(unknown("agent", word, [DEFAULT].into_iter().chain(agents)))
            }
            _ => {
                let options = self.all_options(true);
                Err(unknown("option", id, options.iter().map(|option| option.id.as_str())))
            }
        }
    }

    fn fast_order(&self, value: &Value) -> Result<Order, ErrorObject> {
        let is_on = match value {
            Value::Bool(is_on) => *is_on,
            Value::String(word) if word == "on" || word == "true" => true,
            Value::String(word) if word == "off" || word == "false" => false,
            _ => return Err(ErrorObject::invalid_params("value: `fast` is on or off")),
        };
        if is_on && !self.listed_model().is_some_and(|model| model.has_fast) {
            let why =
                format!("value: the model {} has no fast mode; choose another model first", self.model());
            return Err(ErrorObject::invalid_params(why));
        }
        Ok(Order::Fast(is_on))
    }

    /// A choice was made.
    pub(crate) fn done(&mut self, order: &Order) {
        match order {
            Order::Mode(mode) => self.mode = Some(mode.clone()),
            Order::Model(model) => {
                self.model = Some(model.clone());
                self.model_name = None;
            }
            Order::Effort(effort) => self.effort = Some(effort.clone()).filter(|effort| effort != DEFAULT),
            Order::Fast(is_on) => self.fast = Some(*is_on),
            Order::Agent(agent) => self.agent = Some(agent.clone()),
        }
    }

    /// The choices as options of a CLI that is about to be started.
    pub(crate) fn launch(&self, mut options: Options) -> Options {
        // Without it the mode cannot be chosen later. It changes nothing by itself.
        if self.may_use(&PermissionMode::BypassPermissions) {
            options = options.allow_bypass_permissions(true);
        }
        // A mode that the CLI does not take would keep it from starting.
        let mode = self.mode.as_ref().filter(|mode| modes::is_known(mode) && self.may_use(mode));
        if let Some(mode) = mode {
            options = options.permission_mode(mode.clone());
        }
        if let Some(model) = &self.model {
            options = options.model(model);
        }
        if let Some(effort) = self.effort.as_deref().filter(|effort| self.efforts().contains(effort)) {
            options = options.effort(effort);
        }
        if let Some(is_on) = self.fast {
            // Older CLIs have no flag for it.
            options = options.settings(json!({ "fastMode": is_on }));
        }
        let Some(agent) = self.agent.as_deref() else { return options };
        // A conversation that is gone on with brings its agent along, unless another is named. Newer CLIs also keep the
        // words that it began with, and so the agent, unless they are told not to.
        let settings = || self.known.defaults.as_ref()?.agent.as_deref();
        let agent = if agent == DEFAULT { settings().unwrap_or(OWN_AGENT) } else { agent };
        options.agent(agent).system_prompt_snapshot(false)
    }

    // ---- commands

    /// The slash commands there are.
    pub(crate) fn commands(&self) -> Vec<AvailableCommand> {
        let commands = self.commands.as_ref().unwrap_or(&self.known.commands);
        commands.iter().map(AvailableCommand::from).collect()
    }

    /// The CLI says that there are other commands now. `true`: it is so.
    pub(crate) fn set_commands(&mut self, commands: &[SlashCommand]) -> bool {
        let commands = commands::read(commands);
        let is_other = *self.commands.as_ref().unwrap_or(&self.known.commands) != commands;
        self.commands = Some(commands);
        is_other
    }
}

impl Order {
    /// Tells a running CLI.
    ///
    /// Effort, fast mode and agent are settings of the session, and `null` takes one back. A CLI of 2.1.325 holds on to
    /// the agent that its first prompt went to, whatever it is told later: then another CLI is started.
    pub(crate) async fn carry_out(&self, session: &Session) -> Result<(), Error> {
        let or_null = |word: &str| Some(word.to_owned()).filter(|word| word != DEFAULT);
        match self {
            Self::Mode(mode) => session.set_permission_mode(mode.clone()).await,
            Self::Model(model) => session.set_model(Some(model)).await,
            Self::Effort(effort) => {
                session.apply_settings(json!({ "effortLevel": or_null(effort) }).into()).await
            }
            Self::Fast(is_on) => session.apply_settings(json!({ "fastMode": is_on }).into()).await,
            Self::Agent(agent) => session.apply_settings(json!({ "agent": or_null(agent) }).into()).await,
        }
    }
}

fn choice(value: &str, name: impl Into<String>, description: Option<&str>) -> ConfigChoice {
    ConfigChoice { value: value.into(), name: name.into(), description: description.map(str::to_owned) }
}

/// A list to choose from. `about` is its name, what it is, and its category.
fn select(
    id: &str,
    about: (&str, &str, Option<&str>),
    current: &str,
    options: impl IntoIterator<Item = ConfigChoice>,
) -> ConfigOption {
    let (name, description, category) = about;
    ConfigOption {
        id: id.into(),
        name: name.into(),
        description: Some(description.into()),
        category: category.map(str::to_owned),
        value: ConfigValue::Select { current_value: current.into(), options: options.into_iter().collect() },
    }
}

fn unknown<'a>(what: &str, word: &str, there: impl Iterator<Item = &'a str>) -> ErrorObject {
    let word: String = word.chars().take(80).collect();
    let there = there.collect::<Vec<_>>().join(", ");
    let field = if what == "option" { "configId" } else { "value" };
    ErrorObject::invalid_params(format!("{field}: there is no {what} `{word}`; there are {there}"))
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
