//! Slash commands, as an editor offers them.

use oarlock_agent::stream::SlashCommand;
use oarlock_proto::acp::{AvailableCommand, CommandInput};
use serde::{Deserialize, Serialize};

/// Commands that do nothing useful outside of a terminal, or that the protocol has another way for.
const HIDDEN: &[&str] = &[
    "agents",
    "clear",
    "color",
    "cost",
    "doctor",
    "focus",
    "keybindings-help",
    "login",
    "logout",
    "output-style:new",
    "release-notes",
    "reload-plugins",
    "todos",
    "workflow-launch-exec",
];

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Command {
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The commands that are worth offering, each once.
pub(super) fn read(commands: &[SlashCommand]) -> Vec<Command> {
    let mut offered: Vec<Command> = Vec::with_capacity(commands.len());
    for command in commands {
        let is_internal = command.name.starts_with("__") || command.name.is_empty();
        if is_internal || HIDDEN.contains(&command.name.as_str()) {
            continue;
        }
        let name = name(&command.name);
        if offered.iter().any(|other| other.name == name) {
            continue;
        }
        offered.push(Command {
            name,
            description: command.description.clone().unwrap_or_default(),
            hint: command.argument_hint.clone().filter(|hint| !hint.trim().is_empty()),
        });
    }
    offered
}

/// A command of an MCP server is `mcp:SERVER:NAME` for clients; the CLI has two spellings of its own.
fn name(name: &str) -> String {
    if let Some(rest) = name.strip_suffix(" (MCP)") {
        return format!("mcp:{rest}");
    }
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, command)) => format!("mcp:{server}:{command}"),
        None => name.to_owned(),
    }
}

impl From<&Command> for AvailableCommand {
    fn from(command: &Command) -> Self {
        Self {
            name: command.name.clone(),
            description: command.description.clone(),
            input: command.hint.clone().map(|hint| CommandInput { hint }),
        }
    }
}
