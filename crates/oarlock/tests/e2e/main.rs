//! The real Claude Code CLI, in two versions, against the real `oarlock`, with a scripted model and no network but
//! loopback. For each scenario, what is on disk and what the model was told are asserted.
//!
//! By default every scenario runs on the newest version and the marked ones also on the oldest; `--full`, or
//! `OARLOCK_E2E=full`, runs all on both. `OARLOCK_E2E_BIN` names another `oarlock` program to test.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the test program's own report")]

mod agent;
mod context;
mod edits;
mod run;
mod sessions;
mod stage;
mod terminal;

use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;

use anyhow::{Context, Result};
use libtest_mimic::Trial;
use oarlock_testkit::cage;
use oarlock_testkit::cli::{Availability, Cli, VERSIONS};
use oarlock_testkit::report::{self, Times};

use stage::Stage;

const OLDEST: &str = VERSIONS[0];
const NEWEST: &str = VERSIONS[1];

/// Which versions a scenario is about.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// The newest; the oldest too in a full run.
    Usual,
    /// Both, always: the fixed tenth, chosen to cover connecting, reviewing and what the versions do differently.
    Both,
    /// Something that only the newest does.
    Newest,
}

type Body = fn(Stage) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

struct Scenario {
    name: &'static str,
    reach: Reach,
    body: Body,
}

/// One row for each scenario: its path is its name.
macro_rules! scenarios {
    ($($module:ident::$name:ident $reach:ident),* $(,)?) => {
        &[$(Scenario { name: stringify!($name), reach: Reach::$reach, body: |stage| Box::pin($module::$name(stage)) }),*]
    };
}

const SCENARIOS: &[Scenario] = scenarios![
    sessions::connects_by_the_ide_flag Usual,
    sessions::connects_by_the_port_variable Usual,
    sessions::started_by_oarlock_claude Usual,
    sessions::oarlock_claude_brings_its_own_engine Usual,
    sessions::two_clients_at_once Usual,
    sessions::engine_restarts_and_the_client_reconnects Usual,
    sessions::headless_client_uses_the_written_config Usual,
    context::selection_reaches_the_model Usual,
    context::mention_reaches_the_model Usual,
    context::new_diagnostics_reach_the_model Both,
    context::model_asks_for_diagnostics Usual,
    edits::edit_accepted Both,
    edits::edit_accepted_with_changes Usual,
    edits::edit_rejected Usual,
    edits::edit_accepted_by_policy Usual,
    edits::edit_answered_yes_in_the_terminal Usual,
    edits::edit_answered_no_in_the_terminal Usual,
    edits::edit_escaped_in_the_terminal Usual,
    edits::engine_stops_while_a_diff_is_open Usual,
    edits::two_writes_in_a_row Usual,
    edits::edit_of_a_megabyte Usual,
    edits::edit_keeps_crlf Usual,
    edits::edit_in_a_path_with_blanks_and_accents Usual,
    edits::auto_mode_writes_without_a_diff Newest,
    terminal::edit_accepted_where_serve_runs Usual,
    terminal::edit_changed_and_rejected_where_serve_runs Usual,
    terminal::edit_decided_in_the_cli_frees_the_serve_terminal Usual,
    terminal::no_question_is_asked_under_a_running_editor Usual,
    terminal::minimal_example_is_an_ide Both,
    run::run_answers_once Both,
    run::run_asks_before_it_writes Both,
    run::run_always_adds_the_suggested_rule Usual,
    run::run_goes_on_with_a_conversation Usual,
    run::run_is_interrupted_by_ctrl_c Usual,
    agent::eight_sessions_at_once Usual,
    agent::a_killed_session_leaves_no_shell Both,
    agent::a_hanging_cli_is_told_from_a_slow_one_and_ended Both,
    agent::a_pool_answers_from_a_warm_cli Usual,
    agent::errors_say_what_to_do Usual,
];

impl Scenario {
    fn versions(&self, full: bool) -> &'static [&'static str] {
        match self.reach {
            Reach::Newest => &[NEWEST],
            Reach::Usual if !full => &[NEWEST],
            Reach::Usual | Reach::Both => &[NEWEST, OLDEST],
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("e2e: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let (full, arguments) = report::arguments();

    let store = store()?;
    if !arguments.list {
        // Outside the cage the network is there, so the CLI is fetched before it closes.
        if !cage::entered() {
            if !fetch(&store, full)? {
                return Ok(ExitCode::from(u8::from(report::on_ci())));
            }
            terminal::build_example()?;
        }
        cage::enter()?;
    }

    let times = Times::default();
    let trials = SCENARIOS.iter().flat_map(|scenario| {
        scenario.versions(full).iter().map(|version| trial(scenario, Cli::at(&store, version), times.clone()))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    times.print();
    Ok(conclusion.exit_code())
}

/// Fetches the versions that will run. Says so and returns false when they cannot be had on this machine.
fn fetch(store: &std::path::Path, full: bool) -> Result<bool> {
    let wanted = VERSIONS
        .iter()
        .filter(|version| SCENARIOS.iter().any(|scenario| scenario.versions(full).contains(version)));
    for version in wanted {
        if let Availability::Missing(why) = Cli::obtain(store, version)? {
            let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            println!("skipped: e2e: {why}; not run: {}", names.join(", "));
            if report::on_ci() {
                eprintln!("e2e: on CI that is a failure; install npm");
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where the CLI's versions are kept: `target/claude-cli`.
fn store() -> Result<PathBuf> {
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?;
    Ok(target.join("claude-cli"))
}

fn trial(scenario: &'static Scenario, cli: Cli, times: Times) -> Trial {
    let name = format!("{}::{}", scenario.name, cli.version);
    times.trial(name, move || play(scenario, cli))
}

fn play(scenario: &Scenario, cli: Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { (scenario.body)(Stage::new(cli).await?).await })
}
