//! `cargo xtask bench ide`: our server against the least that could do the job (the floor) and against rmcp,
//! all three as processes of their own, under one client, in interleaved rounds of one run.
//!
//! `--calibrate` puts a second floor in the place of ours, to see the noise of the machine.
//! `--soak MINUTES` runs the soak instead; `--serve floor|rmcp` is how this program starts itself as a peer.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on the terminal")]

mod client;
mod floor;
mod measure;
mod report;
mod rmcp_server;
mod server;
mod soak;
mod socket;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::server::Kind;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().map(String::as_str);
    let mut rounds = measure::ROUNDS;
    let (mut is_bench, mut calibrate) = (false, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word {
            "--bench" => is_bench = true,
            "--calibrate" => calibrate = true,
            "--rounds" => rounds = value()?.parse().context("--rounds: not a number")?,
            "--soak" => return soak(value()?),
            "--serve" => {
                let kind = value()?;
                serve(kind, Path::new(value()?), value()?)?;
                return Ok(ExitCode::SUCCESS);
            }
            _ => bail!("unknown argument {word}; known are --rounds N, --calibrate and --soak MINUTES"),
        }
    }
    if !is_bench {
        // `cargo test --benches` starts this program too, and has no minutes to spare.
        println!("run me with: cargo xtask bench ide");
        return Ok(ExitCode::SUCCESS);
    }
    oarlock_testkit::bench::warn_of_load();
    server::raise_file_limit()?;
    let figures = runtime()?.block_on(measure::run(rounds, calibrate))?;
    let page = (!calibrate).then(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench-ide.md"));
    Ok(if report::publish(&figures, page.as_deref())? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(minutes: &str) -> Result<ExitCode> {
    let minutes: f64 = minutes.parse().context("--soak: not a number of minutes")?;
    server::raise_file_limit()?;
    let healthy = runtime()?.block_on(soak::run(Duration::from_secs_f64(minutes * 60.0)))?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs as one of the peers until killed. `reply` is the result that every call gets.
fn serve(kind: &str, lock_dir: &Path, reply: &str) -> Result<()> {
    runtime()?.block_on(async {
        match kind {
            "floor" => floor::serve(lock_dir, reply).await,
            "rmcp" => rmcp_server::serve(lock_dir, reply).await,
            _ => bail!("--serve {kind}: known are {} and {}", Kind::Floor, Kind::Rmcp),
        }
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start tokio")
}
