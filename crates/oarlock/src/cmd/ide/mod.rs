//! `oarlock ide`: talking to a running engine.

mod call;
mod config;
mod diagnostics;
mod diffs;
pub(crate) mod list;
mod share;
mod watch;

use serde_json::Value;

use crate::output::{json_line, say};
use crate::target::Target;

/// Talk to a running engine, or list the IDEs that Claude Code can find
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Tools(call::ToolsArgs),
    Call(call::CallArgs),
    Watch(watch::Args),
    Select(share::SelectArgs),
    Mention(share::MentionArgs),
    Open(share::OpenArgs),
    Pause(share::PauseArgs),
    Resume(share::ResumeArgs),
    Diffs(diffs::DiffsArgs),
    Accept(diffs::AcceptArgs),
    Reject(diffs::RejectArgs),
    Diagnostics(diagnostics::Args),
    Config(config::Args),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Self::List(args) = self {
            return args.run();
        }
        super::block_on(async {
            match self {
                Self::List(_) => Ok(()),
                Self::Tools(args) => args.run().await,
                Self::Call(args) => args.run().await,
                Self::Watch(args) => args.run().await,
                Self::Select(args) => args.run().await,
                Self::Mention(args) => args.run().await,
                Self::Open(args) => args.run().await,
                Self::Pause(args) => args.run().await,
                Self::Resume(args) => args.run().await,
                Self::Diffs(args) => args.run().await,
                Self::Accept(args) => args.run().await,
                Self::Reject(args) => args.run().await,
                Self::Diagnostics(args) => args.run().await,
                Self::Config(args) => args.run(),
            }
        })
    }
}

/// Prints an answer: as JSON when asked for, else a line for people.
fn show(target: &Target, answer: &Value, line: &str) -> anyhow::Result<()> {
    if target.json { json_line(answer) } else { say!("{line}") }
}
