//! `oarlock acp`: an agent for editors that speak the Agent Client Protocol.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use oarlock_acp::{Recorder, Settings, Tap, serve};
use oarlock_agent::options::ThinkingDisplay;
use oarlock_agent::{Error, program};
use oarlock_wire::frame::{Lines, stdin, stdout};

use super::serve::stop_signal;
use crate::config::Config;
use crate::exit::Failure;
use crate::memory::Trim;
use crate::output;

/// A message of a client may be so large: pictures are in it.
const MAX_MESSAGE: usize = 64 << 20;

/// The variable by which clients of the reference adapter ask for thinking to be shown.
const THINKING: &str = "CLAUDE_CODE_THINKING_DISPLAY";

const HELP: &str = r#"An editor starts it; there is nothing to type. For Zed, in its settings.json:

  {"agent_servers": {"Claude Code":
    {"type": "custom", "command": "oarlock", "args": ["acp"], "env": {}}}}

The README has the settings of other editors.

The `claude` it drives is the first of: --claude, OARLOCK_CLAUDE_PROGRAM, CLAUDE_CODE_EXECUTABLE,
claude.program of the configuration (`oarlock config`), the PATH, where installers put it."#;

/// Be an ACP agent on stdin and stdout, for Zed and other editors that start their agents
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The `claude` to drive; otherwise the one that is found
    #[arg(long, value_name = "PATH", alias = "program")]
    claude: Option<PathBuf>,
    /// Let the `claude` of a session go when it has been idle for so many minutes; the next prompt brings it back (0: never)
    #[arg(long, value_name = "MINUTES", default_value = "30", value_parser = minutes)]
    park_after: Duration,
    /// Let Write and Edit go through the editor, so that it can review each change
    #[arg(long)]
    review_edits: bool,
    /// Ask for thinking to be shown, or not; otherwise as the CLI does, or as the client asks
    #[arg(long, value_name = "HOW", value_parser = ["summarized", "omitted"])]
    thinking: Option<String>,
    /// Write the log to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Record all messages to this file, without secrets
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Be the CLI itself, with all arguments that follow: editors log in that way
    #[arg(long, num_args = 0.., allow_hyphen_values = true, value_name = "ARGS")]
    cli: Option<Vec<String>>,
}

impl Args {
    pub(crate) fn run(self, verbose: u8) -> anyhow::Result<()> {
        match &self.log {
            Some(path) => output::log_to_file(verbose, path)?,
            None => output::log_to_stderr(verbose, false),
        }
        if let Some(args) = &self.cli {
            return self.become_cli(args);
        }
        super::block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let mut settings = Settings::default();
        let claude = self.claude.clone();
        settings.program = Arc::new(move || find(claude.as_deref()));
        settings.park_after = (!self.park_after.is_zero()).then_some(self.park_after);
        settings.review_edits = self.review_edits;
        let asked = std::env::var(THINKING).ok().filter(|display| !display.is_empty());
        settings.thinking = self.thinking.clone().or(asked).as_deref().map(ThinkingDisplay::from);
        if std::io::stdin().is_terminal() {
            greet(&settings);
        }
        let trim = Trim::new();
        settings.on_rest = Some(Arc::new(trim.soon()));
        let stop = stop_signal()?;
        let lines = Lines::new(stdin(), stdout(), MAX_MESSAGE);
        let recorder = self.trace.as_deref().map(recorder).transpose()?;
        let serving = async {
            match recorder {
                Some(recorder) => serve(Tap::new(lines, recorder), settings, stop).await,
                None => serve(lines, settings, stop).await,
            }
        };
        let ended = tokio::select! {
            ended = serving => ended,
            never = trim.run() => match never {},
        };
        tracing::info!(%ended, "done");
        Ok(())
    }

    /// Replaces this program by the CLI, with its terminal and its arguments as they are.
    fn become_cli(&self, args: &[String]) -> anyhow::Result<()> {
        let program = find(self.claude.as_deref()).map_err(|error| match error {
            Error::Option { reason, .. } => Failure::usage(reason),
            Error::ProgramNotFound { .. } => Failure::not_found(format!("{error} with --claude")),
            error => Failure::not_found(error),
        })?;
        let mut command = std::process::Command::new(&program);
        command.args(args);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            // It comes back only to say what went wrong.
            let error = command.exec();
            Err(anyhow::Error::new(error).context(format!("failed to start {}", program.display())))
        }
        #[cfg(not(unix))]
        {
            let status =
                command.status().with_context(|| format!("failed to start {}", program.display()))?;
            std::process::exit(status.code().unwrap_or(1))
        }
    }
}

/// The `claude` to drive: the one that was named, or the one that is found. The agent asks when it needs to know: a
/// client's first question is answered before that.
fn find(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = named {
        return program::named("--claude", path);
    }
    // Another `claude` than the configured one is not what was asked for.
    let config = Config::read(&[]).map_err(|error| Error::Option {
        option: "claude.program",
        reason: format!("{error:#} (`oarlock config` shows what counts)"),
    })?;
    for ignored in &config.sources.ignored {
        tracing::warn!("{ignored}");
    }
    crate::program::locate(&config)
}

/// Somebody has started it by hand: what it is, and whether it would work.
fn greet(settings: &Settings) {
    output::note(
        "this is an agent for editors: one starts it and speaks the Agent Client Protocol with it, a JSON message a \
         line. There is nothing to type here; Ctrl-D ends it. `oarlock acp --help` says what an editor must be told.",
    );
    match (settings.program)() {
        Ok(program) => output::note(&format!("it would drive {}", program.display())),
        Err(error @ Error::ProgramNotFound { .. }) => output::warn(&format!("{error} with --claude")),
        Err(error) => output::warn(&error.to_string()),
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number of minutes".to_owned())?;
    Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| "not a number of minutes".to_owned())
}

fn recorder(path: &Path) -> anyhow::Result<Arc<Recorder>> {
    let recorder = Recorder::create(path);
    Ok(Arc::new(recorder.with_context(|| format!("failed to make the recording {}", path.display()))?))
}
