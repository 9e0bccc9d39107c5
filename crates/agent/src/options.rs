//! Everything that a session can be started with.
//!
//! [`Options`] are put together method by method and come to three things: a command line, changes to the environment
//! (both in [`Options::launch`]), and the first message that the CLI gets (`initialize`). Each method says which of them
//! it becomes, by the CLI's own name for it.
//!
//! - A value is always joined to its flag (`--resume=…`), so that one which begins with `-` is still a value.
//! - What may be large or private is not on the command line. Prompts, agents and schemas go into `initialize`; settings
//!   and MCP servers go into files that only their owner can read and that are removed when the session ends.
//! - Where older CLIs know an option under one form and newer ones under two, it takes the form that all know. Options
//!   that only newer ones know say so, and [`Error::TooOld`] names them when the CLI refuses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::session::{Callbacks, Limits};
use crate::stream::{Initialize, Json};
use crate::transport::{Launch, SpawnWith};
use crate::{Error, program};

mod args;
mod environment;
mod flags;
mod mcp;
mod model;
mod output;
mod prompt;
mod session;
mod settings;
mod storing;
#[cfg(test)]
mod tests;
mod tools;
mod word;

pub(crate) use flags::explain_unknown_option;
pub use mcp::{McpServerConfig, RemoteServer, StdioServer};
pub use model::{Effort, Thinking, ThinkingDisplay};
pub(crate) use output::OnStderr;
pub use prompt::SystemPrompt;
pub use settings::{Plugin, PluginDelivery, SettingSource, SetupHooks};
pub use tools::{PermissionPrompts, QuestionPreview};

use args::Args;

/// Everything that a session can be started with.
///
/// ```
/// use oarlock_agent::Options;
/// use oarlock_agent::options::{Effort, SettingSource};
///
/// let options = Options::new()
///     .model("opus")
///     .effort(Effort::High)
///     .allowed_tools(["Read", "Bash(git log *)"])
///     .append_system_prompt("Answer in one sentence.")
///     .setting_sources([SettingSource::User])
///     .max_turns(5);
/// ```
///
/// `Debug` shows which options there are, but no value: they may hold keys.
#[derive(Clone, Default)]
pub struct Options {
    program: Option<PathBuf>,
    wrapper: Vec<OsString>,
    cwd: Option<PathBuf>,
    inline_config: bool,
    extra_args: Vec<(String, Option<String>)>,
    extra_fields: Vec<(String, Json)>,
    model: model::Model,
    prompt: prompt::Prompt,
    tools: tools::Tools,
    mcp: mcp::Mcp,
    settings: settings::Settings,
    conversation: session::Conversation,
    output: output::Output,
    environment: environment::Environment,
    /// How long and how much the session waits and keeps.
    pub(crate) limits: Limits,
    pub(crate) callbacks: Callbacks,
    storing: storing::Storing,
    /// Another way to start the CLI.
    pub(crate) spawn_with: Option<Arc<SpawnWith>>,
    /// How the CLI's process is watched.
    pub(crate) manner: crate::process::Manner,
    /// Who is told each line of the CLI's stderr.
    pub(crate) on_stderr: Option<OnStderr>,
    /// Whether user messages carry `client_composed`.
    pub(crate) verbatim_prompts: bool,
    /// Whether this program is asked about tools.
    pub(crate) prompts_host: bool,
}

impl Options {
    /// No option at all: the user's own `claude` with the user's own settings, in the current directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The `claude` to start, by its path or by its name on the PATH. Otherwise it is the one of the variable
    /// `CLAUDE_CODE_EXECUTABLE`, the first on the PATH, or one where installers put it.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// A program, with its arguments, that starts the CLI: `["nice"]`, `["setpriv", "--reuid=1000", "--clear-groups"]`
    /// for another user, `["node", "--max-old-space-size=8192"]` for a `cli.js`, `["docker", "exec", "-i", "box"]`.
    ///
    /// With it, the path of [`program`](Self::program) is not looked for here. Where the CLI cannot read this program's
    /// files, say [`inline_config`](Self::inline_config), too. It must hand on the arguments as they are: `ssh` does not,
    /// it gives them to a shell.
    #[must_use]
    pub fn wrapper(mut self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.wrapper = command.into_iter().map(Into::into).collect();
        self
    }

    /// The directory that the CLI works in, instead of the current one.
    #[must_use]
    pub fn cwd(mut self, path: impl Into<PathBuf>) -> Self {
        self.cwd = Some(path.into());
        self
    }

    /// Puts settings and MCP servers on the command line instead of into private files: for a CLI that runs as somebody
    /// else, or elsewhere. Everybody on that machine can read them while it runs.
    #[must_use]
    pub fn inline_config(mut self, inline: bool) -> Self {
        self.inline_config = inline;
        self
    }

    /// Any other flag of the CLI, by its long name without dashes, alone or with a value (`--name`, `--name=value`).
    #[must_use]
    pub fn extra_arg(mut self, name: impl Into<String>, value: Option<&str>) -> Self {
        self.extra_args.push((name.into(), value.map(str::to_owned)));
        self
    }

    /// Any other field of `initialize`. It counts more than a method that sets the same.
    #[must_use]
    pub fn initialize_field(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.extra_fields.push((name.into(), value.into()));
        self
    }

    /// Has the CLI ask this program about tools (`--permission-prompt-tool=stdio`).
    pub(crate) fn ask_host(&mut self) {
        self.prompts_host = true;
    }

    /// The command that these options come to, for tests and for other ways to start it.
    ///
    /// # Errors
    /// [`Error::Option`] for an option that cannot be used, alone or beside another; [`Error::NoDirectory`],
    /// [`Error::ProgramNotFound`] and [`Error::NoProgram`] for what is not there.
    pub fn launch(&self) -> Result<Launch, Error> {
        let mut args = Args::default();
        self.arguments(&mut args)?;
        if self.prompts_host {
            for tool in self.tools.unasked() {
                tracing::warn!(tool, "allowed_tools has this tool, so can_use_tool is never asked about it");
            }
        }
        let env = self.environment.changes()?;
        if let Some(path) = self.cwd.as_ref().filter(|path| !path.is_dir()) {
            return Err(Error::NoDirectory { path: path.clone() });
        }
        let claude = self.claude()?;
        let (args, files) = args.finish(self.inline_config)?;
        let mut command = self.wrapper.iter().cloned().chain([claude.into_os_string()]).chain(args);
        let program = command.next().unwrap_or_default().into();
        Ok(Launch {
            program,
            args: command.collect(),
            env,
            cwd: self.cwd.clone(),
            files,
            manner: self.manner,
        })
    }

    /// Are the options right, as far as they alone can tell? What must be there to start the CLI is not looked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.arguments(&mut Args::default())?;
        self.environment.changes()?;
        let servers = &self.callbacks.servers;
        for (index, server) in servers.iter().enumerate() {
            server.check()?;
            let name = server.name();
            if servers[..index].iter().any(|other| other.name() == name) || self.mcp.has(name) {
                return refuse("tool_server", format!("there are two MCP servers `{name}`"));
            }
        }
        Ok(())
    }

    /// Do messages come back when the CLI takes them? The session counts on it to know when it may end.
    pub(crate) fn replays_messages(&self) -> bool {
        self.output.replays()
    }

    fn claude(&self) -> Result<PathBuf, Error> {
        match &self.program {
            Some(program) if self.wrapper.is_empty() => program::named("the option `program`", program),
            Some(program) => Ok(program.clone()),
            None => program::find(),
        }
    }

    /// The first message to the CLI. The session adds hooks and the MCP servers of this program.
    pub(crate) fn initialize(&self) -> Initialize {
        let mut hello = Initialize::default();
        self.prompt.initialize(&mut hello);
        self.tools.initialize(&mut hello);
        self.settings.initialize(&mut hello);
        self.conversation.initialize(&mut hello);
        self.output.initialize(&mut hello);
        if self.extra_fields.is_empty() { hello } else { self.overwrite(&hello).unwrap_or(hello) }
    }

    /// The message with the fields of `initialize_field`, each in the place that its name has.
    fn overwrite(&self, hello: &Initialize) -> serde_json::Result<Initialize> {
        let mut fields: BTreeMap<String, Json> = Json::write(hello)?.read()?;
        fields.extend(self.extra_fields.iter().cloned());
        Json::write(&fields)?.read()
    }

    fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        args.value("--output-format", "stream-json")?;
        args.value("--input-format", "stream-json")?;
        args.switch("--verbose", true);
        args.switch("--replay-user-messages", self.output.replays());
        self.model.arguments(args)?;
        self.prompt.arguments(args)?;
        self.tools.arguments(args, self.prompts_host)?;
        self.mcp.arguments(args)?;
        self.settings.arguments(args)?;
        self.conversation.arguments(args)?;
        self.output.arguments(args)?;
        if self.extra_fields.iter().any(|(name, _)| name == "subtype") {
            return refuse("initialize_field", "`subtype` says that it is `initialize`");
        }
        for (name, value) in &self.extra_args {
            extra_arg(name, value.as_deref(), args)?;
        }
        Ok(())
    }
}

/// A flag that no option stands for.
fn extra_arg(name: &str, value: Option<&str>, args: &mut Args) -> Result<(), Error> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if name.is_empty() || name.starts_with('-') || !plain {
        return refuse("extra_arg", format!("{name:?} is no name of a flag; write `model` for --model"));
    }
    let flag = format!("--{name}");
    if flags::option_of(&flag) == flags::INTERNAL {
        return refuse("extra_arg", format!("{flag} is the protocol's own"));
    }
    match value {
        Some(value) => args.value_or_empty(&flag, value),
        None => {
            args.switch(&flag, true);
            Ok(())
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut args = Args::default();
        let invalid = self.arguments(&mut args).err();
        let hello = serde_json::to_value(self.initialize()).unwrap_or_default();
        f.debug_struct("Options")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("flags", &args.flags().collect::<Vec<_>>())
            .field("env", &self.environment.names().collect::<Vec<_>>())
            .field(
                "initialize",
                &hello.as_object().map(|hello| hello.keys().collect::<Vec<_>>()).unwrap_or_default(),
            )
            .field("invalid", &invalid)
            .finish_non_exhaustive()
    }
}

/// An option that cannot be used.
fn refuse<T>(option: &'static str, reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::Option { option, reason: reason.into() })
}

fn strings(items: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    items.into_iter().map(Into::into).collect()
}
