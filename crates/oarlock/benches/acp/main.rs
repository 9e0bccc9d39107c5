//! `cargo xtask bench acp`: our ACP agent beside the reference adapter and the CLI alone, with the same client, the same
//! CLI and a scripted model, in interleaved rounds of one run.
//!
//! `--rounds N` changes their number; `--only VERSION` runs one version of the CLI, and writes no page.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on the terminal")]

mod alone;
mod client;
mod figures;
mod measure;
mod process;
mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use oarlock_testkit::acp::reference::Adapter;
use oarlock_testkit::cli::{Cli, VERSIONS};
use oarlock_testkit::install::Availability;
use oarlock_testkit::{bench, cage};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().map(String::as_str);
    let (mut rounds, mut is_bench, mut only) = (measure::ROUNDS, false, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word {
            "--bench" => is_bench = true,
            "--rounds" => rounds = value()?.parse().context("--rounds: not a number")?,
            "--only" => only = Some(value()?),
            _ => bail!("unknown argument {word}; known are --rounds N and --only VERSION"),
        }
    }
    if !is_bench {
        // `cargo test --benches` starts this program too, and has no minutes to spare.
        println!("run me with: cargo xtask bench acp");
        return Ok(ExitCode::SUCCESS);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = root.join("target");
    let adapter = ready(Adapter::obtain(&target)?, "the reference adapter")?;
    let mut clis = Vec::new();
    // The newest first: it is the one that counts most.
    for version in VERSIONS.into_iter().rev().filter(|version| only.is_none_or(|only| only == *version)) {
        clis.push(ready(Cli::obtain(&target.join("claude-cli"), version)?, "the CLI")?);
    }
    cage::enter()?;
    bench::warn_of_load();
    let runtime = tokio::runtime::Runtime::new().context("failed to start tokio")?;
    let program = bench::program(env!("CARGO_BIN_EXE_oarlock"));
    let mut all = Vec::new();
    for cli in &clis {
        all.push(measure::run(&runtime, &program, &adapter, cli, rounds)?);
    }
    let path = root.join("docs/bench-acp.md");
    let holds = report::publish(&all, only.is_none().then_some(path.as_path()))?;
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ready<T>(availability: Availability<T>, what: &str) -> Result<T> {
    match availability {
        Availability::Ready(it) => Ok(it),
        Availability::Missing(why) => bail!("{what} cannot be had: {why}"),
        _ => bail!("{what} cannot be had"),
    }
}
