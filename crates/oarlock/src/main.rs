//! `oarlock`: connects any editor or program with Claude Code.
//!
//! This file reads from top to bottom: parse, run, map to an exit code. Each command is a file of `cmd`.
#![deny(unsafe_code)]

use clap::{Parser, Subcommand};

mod cmd;
mod config;
mod exit;
mod input;
mod memory;
mod output;
mod place;
mod program;
mod review;
mod target;

/// Connects any editor or program with Claude Code.
#[derive(Parser)]
#[command(name = "oarlock", version, propagate_version = true, arg_required_else_help = true, after_help = exit::HELP)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr; twice for everything (RUST_LOG chooses more finely)
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    Serve(cmd::serve::Args),
    Claude(cmd::claude::Args),
    Run(Box<cmd::run::Args>),
    /// Talk to a running engine, or list the IDEs that Claude Code can find
    #[command(subcommand)]
    Ide(cmd::ide::Command),
    /// List, read, search and change the sessions of Claude Code
    #[command(subcommand)]
    Sessions(cmd::sessions::Command),
    Acp(cmd::acp::Args),
    Mcp(cmd::mcp::Args),
    Demo(cmd::demo::Args),
    Script(cmd::script::Args),
    Config(cmd::config::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
    #[command(hide = true)]
    Reference(cmd::reference::Args),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    // `claude` owns the terminal, and so does `run`; only errors may be written over their screens.
    let quiet = matches!(cli.command, Command::Claude(_) | Command::Run(_));
    output::log_to_stderr(cli.verbose, quiet);
    let outcome = match cli.command {
        Command::Serve(args) => args.run(),
        Command::Claude(args) => args.run(),
        Command::Run(args) => args.run(cli.verbose),
        Command::Ide(command) => command.run(),
        Command::Sessions(command) => command.run(),
        Command::Acp(args) => args.run(),
        Command::Mcp(args) => args.run(),
        Command::Demo(args) => args.run(),
        Command::Script(args) => args.run(),
        Command::Config(args) => args.run(),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Reference(args) => args.run(),
    };
    exit::code(outcome)
}
