//! `cargo xtask bench sdk`: our SDK beside the official ones and beside what a bare loop could do, on the same streams, in
//! interleaved rounds of one run.
//!
//! Everything is this one program: `--client NAME` is how it starts itself as a client (see [`client`]), a recording in
//! the environment makes it the [`fake`] CLI that the clients start, and `--start` measures the real one in the cage.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on the terminal")]

mod client;
mod contender;
mod fake;
mod measure;
mod ours;
mod plain;
mod raw;
mod report;
mod start;
mod traffic;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use oarlock_testkit::bench;

use crate::contender::Contender;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--client", name, fake, pause] => {
            Contender::impersonate(name, Path::new(fake), pause)?;
            return Ok(ExitCode::SUCCESS);
        }
        ["--start", store] => {
            start::run_caged(Path::new(store))?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    if let Some(recording) = std::env::var_os(fake::RECORDING) {
        // The arguments are the CLI's.
        fake::play(Path::new(&recording))?;
        return Ok(ExitCode::SUCCESS);
    }
    bench(&words)
}

fn bench(words: &[&str]) -> Result<ExitCode> {
    let mut rounds = measure::ROUNDS;
    let mut is_bench = false;
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--bench" => is_bench = true,
            "--rounds" => {
                let number = words.next().context("--rounds needs a number")?;
                rounds = number.parse().with_context(|| format!("--rounds {number}: not a number"))?;
            }
            _ => bail!("unknown argument {word}; known is --rounds N"),
        }
    }
    if !is_bench {
        // `cargo test --benches` starts this program too, and has no minutes to spare.
        println!("run me with: cargo xtask bench sdk");
        return Ok(ExitCode::SUCCESS);
    }
    bench::warn_of_load();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = root.join("target");
    Contender::install(&target)?;
    let figures = measure::run(&target, rounds)?;
    let holds = report::publish(&figures, &root.join("docs/bench-sdk.md"))?;
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
