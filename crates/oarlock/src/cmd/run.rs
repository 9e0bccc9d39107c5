//! `oarlock run`: a prompt for Claude Code, answered at the terminal or for a program.

mod args;
mod ask;
mod end;
mod feed;
mod markdown;
mod printer;
mod progress;
mod prompt;
mod screen;
mod show;
mod signals;
mod talk;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use oarlock_agent::Options;

use crate::exit::Failure;
use crate::input::Keyboard;
use args::SessionArgs;
use ask::{Asker, Desk};
use show::{Look, Show, ThinkingShown};
use talk::{Answers, Start, Talk};

/// Ask Claude Code something, at the terminal or in a script
///
/// The answer goes to stdout, everything else (tool calls, diffs, questions, what it cost) to stderr, where somebody looks
/// on. Without PROMPT, and with nothing on stdin, it is a dialogue: an empty line ends it. What stdin has is added to PROMPT.
///
/// Where nobody can be asked, tools that need a permission are refused; see --allow and --permission-mode.
///
/// Ctrl-C interrupts the turn; twice leaves.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// What to ask; `-` takes stdin alone, and a prompt that begins with `-` comes after `--`
    prompt: Option<String>,
    /// What is written to stdout
    #[arg(long, value_enum, default_value_t, alias = "output-format")]
    output: Output,
    /// What is read from stdin
    #[arg(long, value_enum, default_value_t, alias = "input-format")]
    input: Input,
    /// How thinking is shown at the terminal
    #[arg(long, value_enum, default_value_t)]
    thinking: ThinkingShown,
    /// The answer is JSON that this JSON schema describes: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON", alias = "json-schema")]
    schema: Option<String>,
    /// A picture that goes with the prompt; may be given several times
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Seconds after which it is interrupted
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// With `--output stream-json`: also pieces of messages while they are written
    #[arg(long)]
    include_partial_messages: bool,
    #[command(flatten)]
    session: SessionArgs,
}

const HELP: &str = "\
Exit codes:
  0  answered
  1  the turn or claude failed; the message says what and what to do
  2  the command line, a file or a line of stdin is wrong
  3  no `claude`, or no such conversation
  4  you said q to a question
  5  the API failed, or a login is needed
  6  a limit was reached: --max-turns, --max-budget-usd, --timeout
130  interrupted by Ctrl-C; 143 ended by a signal

Examples:
  oarlock run \"why does the build fail?\"
  git diff | oarlock run \"write a commit message\" > message.txt
  oarlock run --schema plan.json --output json \"how do we ship it?\" | jq .structured_output
  oarlock run --continue --permission-mode plan";

/// What is written to stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The answer
    #[default]
    Text,
    /// The result as one JSON object, as `claude` gives it
    Json,
    /// Every message of `claude`, one JSON object a line, as it comes
    StreamJson,
}

/// What is read from stdin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Input {
    /// Text, as a part of the prompt
    #[default]
    Text,
    /// Messages, one JSON object a line, as `claude` takes them
    StreamJson,
}

impl Args {
    pub(crate) fn run(self, verbose: u8) -> anyhow::Result<()> {
        super::block_on(self.talk(verbose))
    }

    async fn talk(mut self, verbose: u8) -> anyhow::Result<()> {
        if self.prompt.is_none() {
            self.prompt = self.session.take_prompt();
        }
        let timeout = self.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| Failure::usage(format!("--timeout: {error}")))?;
        let sees_asides = std::io::stderr().is_terminal();
        let keyboard = if self.input == Input::Text && sees_asides { Keyboard::find() } else { None };
        let asker = keyboard.map(Asker::new);
        let options = self.options()?;
        let start = self.start(asker.is_some()).await?;
        let answers = match self.session.permission_prompt_tool.as_deref() {
            Some("stdio") if self.input == Input::StreamJson => Answers::Fed,
            Some("stdio") => {
                return Err(Failure::usage("--permission-prompt-tool stdio needs --input stream-json"));
            }
            Some(_) => Answers::Nobody,
            None => asker.map_or(Answers::Nobody, Answers::Person),
        };
        let show = Show::new(Look {
            thinking: self.thinking,
            is_live: std::io::stdout().is_terminal(),
            has_schema: self.schema.is_some(),
            is_full: verbose > 0,
            is_interactive: matches!(answers, Answers::Person(_)),
        });
        let (desk, questions) = Desk::new();
        let options = match answers {
            Answers::Nobody => options,
            _ => desk.sit_at(options),
        };
        let is_resumed = self.session.resume.is_some() || self.session.r#continue;
        let connected = options.connect().await;
        let (session, events) = connected.map_err(|error| end::of_session(error, is_resumed))?;
        let talk =
            Talk::new(session, events, questions, self.output, answers, show, sees_asides || verbose > 0)?;
        talk.run(start, timeout).await
    }

    fn options(&self) -> anyhow::Result<Options> {
        let mut options = self.session.options()?;
        if let Some(schema) = &self.schema {
            options = options.output_schema(args::json("--schema", schema)?);
        }
        let is_live = self.output == Output::Text
            && (std::io::stdout().is_terminal() || std::io::stderr().is_terminal());
        let wants_pieces = self.output == Output::StreamJson && self.include_partial_messages;
        options = options.include_partial_messages(is_live || wants_pieces);
        if self.thinking == ThinkingShown::Show {
            // Newer models keep it to themselves unless they are asked.
            options = options.extra_arg("thinking-display", Some("summarized"));
        }
        Ok(options)
    }

    async fn start(&self, has_person: bool) -> anyhow::Result<Start> {
        if self.input == Input::StreamJson {
            if self.prompt.is_some() || !self.image.is_empty() {
                return Err(Failure::usage(
                    "with --input stream-json the prompts come from stdin; leave PROMPT out",
                ));
            }
            return Ok(Start::Feed);
        }
        if let Some(prompt) = prompt::read(self.prompt.as_deref(), &self.image).await? {
            return Ok(Start::Once(Box::new(prompt)));
        }
        let can_talk = has_person && std::io::stdin().is_terminal() && self.output == Output::Text;
        if can_talk && self.prompt.is_none() && self.image.is_empty() {
            return Ok(Start::Dialogue);
        }
        Err(Failure::usage("there is no prompt; give it as an argument, or on stdin"))
    }
}
