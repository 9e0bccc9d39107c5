//! What can be chosen in a session: mode, model, effort, fast, agent; and the slash commands there are.

use oarlock_agent::stream::{Json, PermissionMode, SlashCommand, reply};
use oarlock_agent::{Error, Options, Session};
use oarlock_proto::acp::{AvailableCommand, ClientCapabilities, ConfigOption, ModeState};
use oarlock_proto::jsonrpc::ErrorObject;
use serde::{Deserialize, Serialize};

/// What a CLI says about itself: which choices there are. This is what is remembered from one start to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {}

impl Known {
    /// From what the CLI says at its start, and from the settings in force (which not every CLI needs to be asked for).
    pub(crate) fn new(info: &reply::Initialize, settings: Option<&reply::GetSettings>) -> Self {
        let _ = (info, settings);
        Self {}
    }
}

/// What can be chosen in a session, and what is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices {}

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
        let _ = (known, mode, model);
        Self {}
    }

    /// The CLI is up and says what there is. What was chosen stays, where it is still there. `true`: the client should be told.
    pub(crate) fn learn(&mut self, known: &Known) -> bool {
        let _ = known;
        false
    }

    /// The modes, as the older of the two ways has them.
    pub(crate) fn modes(&self) -> ModeState {
        ModeState { current_mode_id: "default".into(), available_modes: Vec::new() }
    }

    /// The modes there are.
    pub(crate) fn available_modes(&self) -> Vec<PermissionMode> {
        Vec::new()
    }

    /// All options, in the order of their priority.
    pub(crate) fn options(&self, client: &ClientCapabilities) -> Vec<ConfigOption> {
        let _ = client;
        Vec::new()
    }

    /// The CLI has changed the mode. `true`: it is another one.
    pub(crate) fn set_mode(&mut self, mode: &PermissionMode) -> bool {
        let _ = mode;
        false
    }

    /// The CLI has changed the model (its full name). `true`: it is another choice.
    pub(crate) fn set_model(&mut self, model: &str) -> bool {
        let _ = model;
        false
    }

    /// Reads a choice, and checks it.
    pub(crate) fn order(&self, id: &str, value: &Json) -> Result<Order, ErrorObject> {
        let _ = value;
        Err(ErrorObject::invalid_params(format!("configId: there is no option {id}")))
    }

    /// A choice was made.
    pub(crate) fn done(&mut self, order: &Order) {
        let _ = order;
    }

    /// The choices as options of a CLI that is about to be started.
    pub(crate) fn launch(&self, options: Options) -> Options {
        options
    }

    /// The slash commands there are.
    pub(crate) fn commands(&self) -> Vec<AvailableCommand> {
        Vec::new()
    }

    /// The CLI says that there are other commands now. `true`: it is so.
    pub(crate) fn set_commands(&mut self, commands: &[SlashCommand]) -> bool {
        let _ = commands;
        false
    }
}

impl Order {
    /// Tells a running CLI.
    pub(crate) async fn carry_out(&self, session: &Session) -> Result<(), Error> {
        match self {
            Self::Mode(mode) => session.set_permission_mode(mode.clone()).await,
            Self::Model(model) => session.set_model(Some(model)).await,
            Self::Effort(_) | Self::Fast(_) | Self::Agent(_) => Ok(()),
        }
    }
}
