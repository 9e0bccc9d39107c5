//! The matrix {scripted CLI, real CLI in two versions} × {our SDK, the official Python SDK, the official TypeScript
//! SDK}: the same scenarios, and what each SDK delivers to its user must be the same in every cell, but for the
//! exceptions that the tables in `scenarios` name.
//!
//! A cell is a driver process that gets a plan (`plan.rs`) and prints a summary (`drivers/`, `ours.rs`). Real CLIs
//! have a scripted model and no network but loopback.
//!
//! By default all scenarios run with every SDK on the scripted CLI and with ours on the newest real one, fixed parts
//! of them in the other cells; `--full`, or `OARLOCK_E2E=full`, runs everything.
//! `OARLOCK_SDK_SHOW=1` prints the summaries.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the test program's own report")]

mod elicit;
mod expect;
mod ours;
mod plan;
mod scenario;
mod scenarios;
mod stage;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use oarlock_testkit::cage;
use oarlock_testkit::cli::{Cli, Program};
use oarlock_testkit::install::Availability;
use oarlock_testkit::report::{self, Times};
use oarlock_testkit::sdk;

use scenario::{Cell, Scenario, Sdk};
use stage::Stage;

/// The first argument that makes this program the driver of our SDK, and the one that makes it an MCP server.
const OURS_MODE: &str = "ours-driver";
const ELICIT_MODE: &str = "elicit-server";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let outcome = match arguments.next() {
        Some(mode) if mode == OURS_MODE => ours::main(arguments.next()),
        Some(mode) if mode == ELICIT_MODE => elicit::main(),
        _ => run(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("sdk: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    let (full, arguments) = report::arguments();
    let target = target()?;
    let scenarios: Vec<Arc<Scenario>> = scenarios::all().into_iter().map(Arc::new).collect();
    let cells: Vec<(Arc<Scenario>, Cell)> = scenarios
        .iter()
        .flat_map(|scenario| Cell::all().map(|cell| (Arc::clone(scenario), cell)))
        .filter(|(scenario, cell)| scenario.runs(*cell, full))
        .collect();
    if !arguments.list {
        // Outside the cage the network is there, so everything is fetched before it closes.
        if !cage::entered()
            && let Some(why) = missing(&target, &cells)?
        {
            let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name).collect();
            println!("skipped: sdk: {why}; not run: {}", names.join(", "));
            return Ok(ExitCode::from(u8::from(report::on_ci())));
        }
        cage::enter()?;
    }

    let times = Times::default();
    let mut trials = vec![times.trial("the_patterns_can_fail".to_owned(), expect::the_patterns_can_fail)];
    trials.extend(cells.into_iter().map(|(scenario, cell)| {
        let target = target.clone();
        times.trial(format!("{}::{cell}", scenario.name), move || play(&scenario, cell, &target))
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    times.print();
    Ok(conclusion.exit_code())
}

/// Fetches what the cells need; says what cannot be had on this machine.
fn missing(target: &Path, cells: &[(Arc<Scenario>, Cell)]) -> Result<Option<String>> {
    for (sdk, official) in [(Sdk::Python, sdk::Sdk::Python), (Sdk::TypeScript, sdk::Sdk::TypeScript)] {
        if cells.iter().any(|(_, cell)| cell.sdk == sdk)
            && let Availability::Missing(why) = official.obtain(target)?
        {
            return Ok(Some(why));
        }
    }
    for program in [Program::Newest, Program::Oldest] {
        if let Some(version) = program.version()
            && cells.iter().any(|(_, cell)| cell.program == program)
            && let Availability::Missing(why) = Cli::obtain(&target.join("claude-cli"), version)?
        {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Where downloads are kept.
fn target() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?.to_owned())
}

fn play(scenario: &Scenario, cell: Cell, target: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { Stage::new(scenario, cell, target).await?.play().await })
}
