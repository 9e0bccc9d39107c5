//! Project automation: everything beyond plain `cargo build` is one `cargo xtask` command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what these commands are for")]

mod audit;
mod dist;
mod examples;
mod reference;
mod shell;
mod steps;
mod suite;
mod tidy;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask COMMAND

  test [--full]       format, lints, docs, tidy, unit, integration, doc and end-to-end tests;
                      --full runs every end-to-end scenario and writes docs/*-matrix.md
  suite NAME [--full] one of the end-to-end suites alone: e2e, sdk or acp
  tidy                clauses and tests agree, files are small, no machine paths
  bench sdk           our SDK against the official ones and a bare loop; writes docs/bench-sdk.md
  bench acp           our ACP agent against the reference adapter and the CLI alone; writes docs/bench-acp.md
  bench ide           our server against the bare floor and rmcp; writes docs/bench-ide.md
  soak [--minutes N]  connects, kills, half-closes and floods for N minutes (10)
  audit               bans, licences and sources of all dependencies (cargo-deny)
  dist                release archive under target/dist
  gen                 completions and man pages under target/gen, reference tables in PROTOCOL.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<ExitCode> {
    match words {
        ["test"] => return suite::run(suite::Extent::Usual),
        ["test", "--full"] => return suite::run(suite::Extent::Full),
        ["suite", name] => return suite::run_one(name, suite::Extent::Usual),
        ["suite", name, "--full"] => return suite::run_one(name, suite::Extent::Full),
        ["tidy"] => tidy::run()?,
        ["bench", "sdk"] => shell::cargo(["bench", "-p", "oarlock-agent", "--bench", "sdk"])?,
        ["bench", name @ ("acp" | "ide"), options @ ..] => bench(name, options)?,
        ["soak"] => soak("10")?,
        ["soak", "--minutes", minutes] => soak(minutes)?,
        ["audit"] => audit::run()?,
        ["dist"] => dist::archive()?,
        ["gen"] => dist::generate()?,
        ["help" | "--help" | "-h"] => println!("{USAGE}"),
        [] => bail!("no command given\n\n{USAGE}"),
        _ => bail!("unknown command `{}`\n\n{USAGE}", words.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The soak client lives in the benchmark, which already has a client, a process watcher and a release server.
fn soak(minutes: &str) -> Result<()> {
    let _: f64 = minutes.parse().with_context(|| format!("--minutes {minutes}: not a number"))?;
    bench("ide", &["--soak", minutes])
}

/// Runs a benchmark of the program as it ships: what cargo builds beside a benchmark has features of the tests in it, and
/// takes the place of the other, so that is kept elsewhere.
fn bench(name: &str, options: &[&str]) -> Result<()> {
    let program = dist::release()?;
    let mut cargo = shell::cargo_command();
    cargo.args(["bench", "-p", "oarlock", "--bench", name, "--"]).args(options);
    shell::check(cargo.env("OARLOCK_PROGRAM", program))
}
