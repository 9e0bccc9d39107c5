//! `oarlock claude`: the user's `claude`, connected to an engine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use oarlock_ide::Server;
use oarlock_ide::discover::{self, Connects, Environment};
use oarlock_ide::headless::HeadlessEditor;
use oarlock_ide::state::Running;
use serde_json::json;

use crate::config::Config;
use crate::output::{json_line, note, warn};
use crate::{program, target};

mod child;
mod command_line;
mod plan;
mod settings;

use child::Signals;
use command_line::CommandLine;
use plan::Plan;

/// Start `claude` connected to an engine, whatever the directory
///
/// The engine is the running one whose folder contains this directory. If none runs at all, one is started here for as
/// long as `claude` runs. An interactive start gets `--permission-mode default`, so that changes are shown before they
/// are made, unless the command line or the settings of Claude Code choose a mode. What was added is said on stderr.
/// Subcommands and `-p` connect to no engine and are left alone.
///
/// Oarlock's own options come first; everything from the first other argument on goes to `claude` as it is. `--` ends
/// them early: `oarlock claude -- --help`.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// Connect to the engine on this port
    #[arg(long, value_name = "PORT")]
    engine: Option<u16>,
    /// Print what would be started, as JSON, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// The arguments of `claude`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// The engine that `claude` connects to.
enum Engine {
    /// One that runs.
    Running(Box<Running>),
    /// One that is started with it.
    Own,
    /// None: nothing connects.
    None,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let cwd = std::env::current_dir()?;
        let config = Config::load(std::slice::from_ref(&cwd))?;
        let program = program::find(&config)?;
        let line = CommandLine::parse(&self.args);
        let chosen_by = settings::mode_chosen_by(&line, settings::config_dir().as_deref(), &cwd);
        let plan = Plan::new(self.args, &line, chosen_by, variable);
        let engine = if plan.interactive || self.engine.is_some() {
            let chosen = target::choose(target::running()?, &cwd, self.engine)?;
            chosen.map_or(Engine::Own, |running| Engine::Running(Box::new(running)))
        } else {
            Engine::None
        };
        if self.dry_run {
            return show(&program, &plan, &engine);
        }
        for warning in &plan.warnings {
            warn(warning);
        }
        match engine {
            Engine::Running(running) => child::become_it(connected(&program, &plan, running.port, &cwd)),
            Engine::Own => run_with_own_engine(&config, &program, &plan, cwd),
            Engine::None => {
                let mut command = Command::new(program);
                command.args(plan.args);
                child::become_it(command)
            }
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Why `claude` would not connect to this port from here, if it would not.
fn obstacle(port: u16, cwd: &Path) -> Option<String> {
    let environment = Environment { port: Some(port), auto_connect: None, ..Environment::from_process() };
    let outcome = discover::discover(&environment, cwd).verdict.port_variable?;
    (outcome.connects != Connects::Yes).then_some(outcome.text)
}

/// The command with everything that connects it, and a line that says so.
fn connected(program: &Path, plan: &Plan, port: u16, cwd: &Path) -> Command {
    if let Some(obstacle) = obstacle(port, cwd) {
        warn(&obstacle);
    }
    let variables = plan::variables(port, variable);
    let mut added: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy())).collect();
    added.extend(plan.added.iter().map(|&flag| flag.to_owned()));
    let review = if plan.added.is_empty() { "" } else { " (changes are shown before they are made)" };
    note(&format!("starting claude with {}{review}", added.join(" ")));
    let mut command = Command::new(program);
    command.args(&plan.args).envs(variables);
    command
}

fn run_with_own_engine(config: &Config, program: &Path, plan: &Plan, cwd: PathBuf) -> anyhow::Result<()> {
    super::block_on(async {
        let mut signals = Signals::catch()?;
        let editor = HeadlessEditor::new(config.on_diff_without_terminal());
        let editor = editor.with_formatter(config.ide_formatter.value.clone());
        let mut options = config.options(vec![cwd.clone()])?;
        // 2.1.325 does not show a change itself while an IDE is connected. It says "Opened changes in NAME", and the
        // name is all of the screen that is ours.
        options.name.push_str(" (`oarlock ide diffs -p` shows them)");
        let server = Server::start(Arc::new(editor), options).await?;
        let outcome = signals.run(connected(program, plan, server.port(), &cwd)).await;
        server.stop().await;
        child::pass_on(outcome?)
    })
}

fn show(program: &Path, plan: &Plan, engine: &Engine) -> anyhow::Result<()> {
    let text = |value: &OsString| value.to_string_lossy().into_owned();
    let (engine, variables) = match engine {
        Engine::Running(running) => (
            json!({ "kind": "running", "port": running.port, "pid": running.pid, "workspace": running.workspace }),
            plan::variables(running.port, variable),
        ),
        Engine::Own => (json!({ "kind": "own" }), BTreeMap::new()),
        Engine::None => (json!({ "kind": "none" }), BTreeMap::new()),
    };
    let variables: BTreeMap<&str, String> =
        variables.iter().map(|(name, value)| (*name, text(value))).collect();
    json_line(&json!({
        "program": program,
        "args": plan.args.iter().map(text).collect::<Vec<_>>(),
        "interactive": plan.interactive,
        "added": { "args": plan.added, "variables": variables },
        "mode_chosen_by": plan.mode_chosen_by,
        "engine": engine,
        "warnings": plan.warnings,
    }))
}
