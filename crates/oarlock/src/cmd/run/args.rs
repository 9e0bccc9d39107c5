//! The options that a session is started with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oarlock_agent::Options;
use oarlock_agent::options::{Plugin, SettingSource};
use oarlock_agent::stream::{AgentDefinition, Json};
use serde_json::Value;

use crate::config::Config;
use crate::exit::Failure;
use crate::output::warn;
use crate::program;

/// Where settings can come from.
const SOURCES: [&str; 3] = ["user", "project", "local"];
/// Levels that `claude` knows. It passes over any other with a word that nobody sees.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// What `claude` is told. The names are its own where it has one.
#[derive(clap::Args)]
pub(super) struct SessionArgs {
    /// Go on with a conversation, by its session id or title
    #[arg(long, short, value_name = "SESSION", conflicts_with = "continue", help_heading = "Conversation")]
    pub(super) resume: Option<String>,
    /// Go on with the last conversation of this directory
    #[arg(long, short, help_heading = "Conversation")]
    pub(super) r#continue: bool,
    /// Go on in a copy, and leave the original as it is
    #[arg(long, alias = "fork-session", help_heading = "Conversation")]
    fork: bool,
    /// The id of the new session, a UUID
    #[arg(long, value_name = "UUID", help_heading = "Conversation")]
    session_id: Option<String>,
    /// The title of the new session
    #[arg(long, short, help_heading = "Conversation")]
    name: Option<String>,
    /// Keep no transcript; the conversation cannot be resumed
    #[arg(long, alias = "no-session-persistence", help_heading = "Conversation")]
    no_persist: bool,

    /// The model: an alias (opus, sonnet) or a full name
    #[arg(long, help_heading = "Model")]
    model: Option<String>,
    /// Models to fall back to when the first is overloaded, with commas
    #[arg(long, value_name = "MODELS", value_delimiter = ',', help_heading = "Model")]
    fallback_model: Vec<String>,
    /// low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    effort: Option<String>,
    /// How many rounds with the model one prompt may take
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Model")]
    max_turns: Option<u32>,
    /// How many dollars it may cost
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true, help_heading = "Model")]
    max_budget_usd: Option<f64>,
    /// A system prompt in place of Claude Code's own
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    system_prompt: Option<String>,
    /// A text after the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    append_system_prompt: Option<String>,
    /// The agent that leads the conversation
    #[arg(long, help_heading = "Model")]
    agent: Option<String>,
    /// Agents for this session: a JSON object, or a file with one
    #[arg(long, value_name = "JSON|FILE", help_heading = "Model")]
    agents: Option<String>,

    /// Who decides about tools: default, acceptEdits, plan, auto, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", help_heading = "Permissions")]
    permission_mode: Option<String>,
    /// A tool that nobody is asked about, `Read` or `Bash(git log *)`; may be given several times
    #[arg(long, value_name = "RULE", aliases = ["allowedTools", "allowed-tools"], help_heading = "Permissions")]
    allow: Vec<String>,
    /// A tool that is refused; may be given several times
    #[arg(long, value_name = "RULE", aliases = ["disallowedTools", "disallowed-tools"], help_heading = "Permissions")]
    disallow: Vec<String>,
    /// The built-in tools that there are, with commas; "" for none
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = "Permissions")]
    tools: Option<Vec<String>>,
    /// One more directory that tools may use; may be given several times
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    add_dir: Vec<PathBuf>,
    /// Who answers permission questions: an MCP tool, or `stdio` for the program that speaks `--input stream-json`
    #[arg(long, value_name = "TOOL", help_heading = "Permissions")]
    pub(super) permission_prompt_tool: Option<String>,

    /// Settings for this session: JSON, or a file
    #[arg(long, value_name = "JSON|FILE", help_heading = "Configuration")]
    settings: Option<String>,
    /// Where settings are read from: user, project, local, with commas; "" for nowhere
    #[arg(long, value_name = "SOURCES", help_heading = "Configuration")]
    setting_sources: Option<String>,
    /// MCP servers: JSON, or a file; may be given several times
    #[arg(long, value_name = "JSON|FILE", help_heading = "Configuration")]
    mcp_config: Vec<String>,
    /// No other MCP servers than those of --mcp-config
    #[arg(long, help_heading = "Configuration")]
    strict_mcp_config: bool,
    /// A plugin for this session; may be given several times
    #[arg(long, value_name = "DIR", help_heading = "Configuration")]
    plugin_dir: Vec<PathBuf>,
    /// The directory to work in
    #[arg(long, value_name = "DIR", help_heading = "Configuration")]
    cwd: Option<PathBuf>,
    /// The `claude` to start
    #[arg(long, value_name = "PATH", help_heading = "Configuration")]
    claude: Option<PathBuf>,
    /// Any other options of `claude`, as they are
    #[arg(last = true, value_name = "CLAUDE'S OPTIONS")]
    more: Vec<String>,
}

impl SessionArgs {
    /// The prompt, when it comes after `--` because it begins with `-`. Options of `claude` begin with `--` and a name.
    pub(super) fn take_prompt(&mut self) -> Option<String> {
        let is_prompt = self.more.first().is_some_and(|word| !is_option(word));
        is_prompt.then(|| self.more.remove(0))
    }

    /// All of it as options of a session.
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        let here = std::env::current_dir()?;
        let cwd = self.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd));
        let program = match &self.claude {
            Some(path) => oarlock_agent::program::named("--claude", path).map_err(Failure::not_found)?,
            None => program::find(&Config::load(std::slice::from_ref(&cwd))?)?,
        };
        let mut options = Options::new()
            .program(program)
            .cwd(&cwd)
            .allowed_tools(&self.allow)
            .disallowed_tools(&self.disallow)
            .fallback_models(&self.fallback_model)
            .strict_mcp_config(self.strict_mcp_config)
            .continue_conversation(self.r#continue)
            .fork_session(self.fork)
            .persist_session(!self.no_persist);
        options = with(options, &self.resume, Options::resume);
        options = with(options, &self.session_id, Options::session_id);
        options = with(options, &self.name, Options::title);
        options = with(options, &self.model, Options::model);
        if let Some(effort) = self.effort.as_deref().filter(|effort| !EFFORTS.contains(effort)) {
            warn(&format!("claude may not know the effort {effort:?}; it knows {}", EFFORTS.join(", ")));
        }
        options = with(options, &self.effort, |options, effort| options.effort(effort));
        options = with(options, &self.max_turns, Options::max_turns);
        options = with(options, &self.max_budget_usd, Options::max_budget_usd);
        options = with(options, &self.system_prompt, |options, prompt| options.system_prompt(prompt));
        options = with(options, &self.append_system_prompt, Options::append_system_prompt);
        options = with(options, &self.agent, Options::agent);
        options =
            with(options, &self.permission_mode, |options, mode| options.permission_mode(mode.as_str()));
        options = with(options, &self.tools, |options, tools| {
            options.tools(tools.into_iter().filter(|tool| !tool.is_empty()))
        });
        if let Some(tool) = self.permission_prompt_tool.as_ref().filter(|tool| *tool != "stdio") {
            options = options.permission_prompt_tool(tool);
        }
        for dir in &self.add_dir {
            options = options.add_dir(here.join(dir));
        }
        for dir in &self.plugin_dir {
            options = options.plugin(Plugin::local(here.join(dir)));
        }
        if let Some(sources) = &self.setting_sources {
            let sources = sources.split(',').map(str::trim).filter(|source| !source.is_empty());
            if let Some(source) = sources.clone().find(|source| !SOURCES.contains(source)) {
                return Err(Failure::usage(format!(
                    "--setting-sources: {source:?} is none of {}",
                    SOURCES.join(", ")
                )));
            }
            options = options.setting_sources(sources.map(SettingSource::from));
        }
        options = self.documents(options)?;
        self.flags(options)
    }

    /// What is given as JSON, or as a file with JSON.
    fn documents(&self, mut options: Options) -> anyhow::Result<Options> {
        match self.settings.as_deref().map(Document::of) {
            Some(Document::Text(text)) => options = options.settings(object("--settings", text)?),
            Some(Document::File(path)) => {
                // Of a file that it cannot read, claude only says so, and goes on without its rules.
                read("--settings", &path)?;
                options = options.settings_file(path);
            }
            None => {}
        }
        for config in &self.mcp_config {
            match Document::of(config) {
                Document::File(path) => {
                    read("--mcp-config", &path)?;
                    options = options.mcp_config_file(path);
                }
                Document::Text(text) => {
                    let mut config = object("--mcp-config", text)?.value();
                    let servers = config.get_mut("mcpServers").map(Value::take).unwrap_or(config);
                    let Value::Object(servers) = servers else {
                        return Err(Failure::usage("--mcp-config: mcpServers must be a JSON object"));
                    };
                    for (name, server) in servers {
                        options = options.mcp_server(name, server);
                    }
                }
            }
        }
        if let Some(agents) = &self.agents {
            let agents = json("--agents", agents)?;
            let agents: BTreeMap<String, AgentDefinition> = agents
                .read()
                .map_err(|error| Failure::usage(format!("--agents: not an object of agents: {error}")))?;
            for (name, agent) in agents {
                options = options.agent_definition(name, agent);
            }
        }
        Ok(options)
    }

    /// What comes after `--`: `--name`, `--name=value` or `--name value`.
    fn flags(&self, mut options: Options) -> anyhow::Result<Options> {
        let mut words = self.more.iter().peekable();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--").filter(|name| !name.is_empty()) else {
                return Err(Failure::usage(format!(
                    "after `--` an option of claude is wanted, not {word:?}"
                )));
            };
            options = match name.split_once('=') {
                Some((name, value)) => options.extra_arg(name, Some(value)),
                None => {
                    let value = words.next_if(|word| !word.starts_with('-'));
                    options.extra_arg(name, value.map(String::as_str))
                }
            };
        }
        Ok(options)
    }
}

/// `--name` or `--name=value`.
fn is_option(word: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else { return false };
    let name = name.split('=').next().unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains(char::is_whitespace)
}

/// What is wrong with an option, under the names that it has here.
pub(super) fn complaint(option: &str, reason: &str) -> String {
    let flag = match option {
        "allowed_tools" => "--allow".to_owned(),
        "continue_conversation" => "--continue".to_owned(),
        "disallowed_tools" => "--disallow".to_owned(),
        "extra_arg" => "the options after `--`".to_owned(),
        "fallback_models" => "--fallback-model".to_owned(),
        "fork_session" => "--fork".to_owned(),
        "mcp_server" | "mcp_config_file" => "--mcp-config".to_owned(),
        "output_schema" => "--schema".to_owned(),
        "plugin" => "--plugin-dir".to_owned(),
        "settings_file" => "--settings".to_owned(),
        "title" => "--name".to_owned(),
        option => format!("--{}", option.replace('_', "-")),
    };
    let reason = reason
        .replace("say resume", "say --resume")
        .replace("continue_conversation", "--continue")
        .replace("fork_session", "--fork");
    format!("{flag}: {reason}")
}

/// Sets an option when there is a value for it.
fn with<T: Clone>(options: Options, value: &Option<T>, set: impl FnOnce(Options, T) -> Options) -> Options {
    match value {
        Some(value) => set(options, value.clone()),
        None => options,
    }
}

/// JSON on the command line, or the file that has it.
enum Document<'a> {
    Text(&'a str),
    File(PathBuf),
}

impl<'a> Document<'a> {
    fn of(value: &'a str) -> Self {
        if value.trim_start().starts_with(['{', '[']) {
            return Self::Text(value);
        }
        // `claude` may run in another directory.
        Self::File(std::path::absolute(value).unwrap_or_else(|_| Path::new(value).to_owned()))
    }
}

/// A JSON object, given as it is or as the file that has it.
pub(super) fn json(option: &str, value: &str) -> anyhow::Result<Json> {
    match Document::of(value) {
        Document::Text(text) => object(option, text),
        Document::File(path) => read(option, &path),
    }
}

/// The JSON object in a file.
fn read(option: &str, path: &Path) -> anyhow::Result<Json> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{option}: failed to read {}", path.display()))
        .map_err(|error| Failure::usage(format!("{error:#}")))?;
    // Editors on Windows may begin a file with a byte order mark, and claude does not mind.
    object(option, text.trim_start_matches('\u{feff}'))
        .map_err(|error| Failure::usage(format!("{error} in {}", path.display())))
}

fn object(option: &str, text: &str) -> anyhow::Result<Json> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() => Ok(Json::from(value)),
        Ok(_) => Err(Failure::usage(format!("{option}: a JSON object is wanted"))),
        Err(error) => Err(Failure::usage(format!("{option}: not JSON ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SessionArgs,
    }

    /// What the command line comes to, and the files it names.
    fn launched(arguments: &[&str]) -> anyhow::Result<Vec<String>> {
        let words = ["run", "--claude", "/bin/sh"].into_iter().chain(arguments.iter().copied());
        let line = <Line as clap::Parser>::try_parse_from(words)?;
        let launch = line.args.options()?.launch()?;
        Ok(launch.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn options_reach_the_cli_under_its_own_names() {
        let args = launched(&[
            "--model",
            "opus",
            "--allow",
            "Read",
            "--allow",
            "Bash(git log *)",
            "--disallowedTools",
            "WebFetch",
            "--resume=-x",
            "--fork",
            "--max-turns",
            "3",
            "--permission-mode",
            "plan",
            "--setting-sources",
            "user,project",
            "--effort",
            "high",
            "--fallback-model",
            "a,b",
            "--",
            "--brand-new",
            "--other=1",
            "--third",
            "value",
        ]);
        let args = args.unwrap();
        for part in [
            "--model=opus",
            "--resume=-x",
            "--fork-session",
            "--max-turns=3",
            "--permission-mode=plan",
            "--effort=high",
            "--setting-sources=user,project",
            "--brand-new",
            "--other=1",
            "--third=value",
        ] {
            assert!(args.iter().any(|arg| arg == part), "{part} in {args:?}");
        }
        let all = args.join(" ");
        for part in ["Bash(git log *)", "WebFetch", "a,b"] {
            assert!(all.contains(part), "{part} in {args:?}");
        }
    }

    #[test]
    fn documents_are_json_or_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        std::fs::write(&file, r#"{"mcpServers": {}}"#).unwrap();
        let args =
            launched(&["--mcp-config", file.to_str().unwrap(), "--settings", r#"{"model": "x"}"#]).unwrap();
        assert!(args.iter().any(|arg| *arg == format!("--mcp-config={}", file.display())), "{args:?}");
        let agents = r#"{"r": {"description": "d", "prompt": "p"}}"#;
        launched(&["--agents", agents, "--mcp-config", r#"{"s": {"command": "x"}}"#]).unwrap();
    }

    #[test]
    fn what_cannot_be_used_says_which_option_it_was() {
        for (arguments, want) in [
            (&["--settings", "{nonsense"][..], "--settings: not JSON"),
            (&["--agents", "/no/such/file"], "--agents: failed to read /no/such/file"),
            (&["--mcp-config", r#"{"mcpServers": 1}"#], "--mcp-config"),
            (&["--", "word"], "after `--` an option"),
            (&["--claude", "/no/such/claude"], "cannot be used multiple times"),
        ] {
            let error = format!("{:#}", launched(arguments).unwrap_err());
            assert!(error.contains(want), "{want:?} in {error}");
        }
    }
}
