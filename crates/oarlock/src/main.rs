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

/// The options of a command are put together only when it is the one that runs: an engine that idles for days need not
/// carry those of all the others. What is said here is all that the list of commands shows.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Turn a directory into an IDE that Claude Code connects to
    Serve(cmd::serve::Args),
    /// Start `claude` connected to an engine, whatever the directory
    Claude(cmd::claude::Args),
    /// Ask Claude Code something, at the terminal or in a script
    Run(Box<cmd::run::Args>),
    /// Talk to a running engine, or list the IDEs that Claude Code can find
    Ide {
        /// What to do with it.
        #[command(subcommand)]
        command: cmd::ide::Command,
    },
    /// List, read, search and change the sessions of Claude Code
    Sessions {
        /// What to do with them.
        #[command(subcommand)]
        command: cmd::sessions::Command,
    },
    /// Be an ACP agent on stdin and stdout, for Zed and other editors that start their agents
    Acp(cmd::acp::Args),
    /// Serve the tools on stdin and stdout, for MCP clients that start their servers
    Mcp(cmd::mcp::Args),
    /// Show what the engine does, with a scripted client: no account and no Claude Code needed
    Demo(cmd::demo::Args),
    /// Play a script as if it were `claude`, to test an integration with no account
    Script(cmd::script::Args),
    /// Show the configuration: each value, and where it came from
    Config(cmd::config::Args),
    /// Print completions for a shell
    Completions(cmd::completions::Args),
    /// Write manual pages into a directory, one for each command
    Man(cmd::man::Args),
    /// Print the reference tables of PROTOCOL.md
    #[command(hide = true)]
    Reference(cmd::reference::Args),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    // `claude` owns the terminal, and so does `run`; only errors may be written over their screens.
    let quiet = matches!(cli.command, Command::Claude(_) | Command::Run(_));
    // `acp` may log to a file, so it begins its log itself.
    if !matches!(cli.command, Command::Acp(_)) {
        output::log_to_stderr(cli.verbose, quiet);
    }
    let outcome = match cli.command {
        Command::Serve(args) => args.run(),
        Command::Claude(args) => args.run(),
        Command::Run(args) => args.run(cli.verbose),
        Command::Ide { command } => command.run(),
        Command::Sessions { command } => command.run(),
        Command::Acp(args) => args.run(cli.verbose),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_list_of_commands_says_what_each_command_says_of_itself() {
        let listed = super::Cli::command();
        let mut built = super::Cli::command();
        built.build();
        built.clone().debug_assert();
        let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
        for command in listed.get_subcommands() {
            let name = command.get_name();
            let own = built.find_subcommand(name).and_then(about);
            assert!(own.is_some(), "{name} says nothing of itself");
            assert_eq!(about(command), own, "{name}");
        }
    }
}
