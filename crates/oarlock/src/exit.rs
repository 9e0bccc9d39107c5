//! Exit codes, documented once.

use std::process::ExitCode;

/// Shown below `oarlock --help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done
  1  it failed; the message says what and what to do
  2  the command line or a configuration file is wrong
  3  there is no such thing: no `claude`, engine, diff, client or session
  4  somebody refused: a rejected diff in `demo`, a tool's error, `q` in `run`
  5  the API failed, or a login is needed (`run`)
  6  a limit was reached: turns, money, time (`run`)
130  Ctrl-C, 143 a signal ended it (`run`)

`oarlock claude` passes on the exit code of `claude`; `oarlock script` ends as its script says.";

/// The exit code after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;
/// The exit code after SIGTERM, as shells have it.
pub(crate) const TERMINATED: u8 = 143;

/// A failure with an exit code of its own. Any other error is 1.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 2
    Usage(anyhow::Error),
    /// 3
    NotFound(anyhow::Error),
    /// 4
    Refused(anyhow::Error),
    /// 5
    Api(anyhow::Error),
    /// 6
    Limit(anyhow::Error),
    /// Somebody else's exit code, already explained.
    Code(u8),
}

impl Failure {
    /// The command line or a configuration file is wrong.
    pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
        Self::Usage(anyhow::anyhow!("{message}")).into()
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl std::fmt::Display) -> anyhow::Error {
        Self::NotFound(anyhow::anyhow!("{message}")).into()
    }

    /// Somebody said no.
    pub(crate) fn refused(message: impl std::fmt::Display) -> anyhow::Error {
        Self::Refused(anyhow::anyhow!("{message}")).into()
    }

    /// The API failed.
    pub(crate) fn api(message: impl std::fmt::Display) -> anyhow::Error {
        Self::Api(anyhow::anyhow!("{message}")).into()
    }

    /// A limit was reached.
    pub(crate) fn limit(message: impl std::fmt::Display) -> anyhow::Error {
        Self::Limit(anyhow::anyhow!("{message}")).into()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(error)
            | Self::NotFound(error)
            | Self::Refused(error)
            | Self::Api(error)
            | Self::Limit(error) => error.fmt(f),
            Self::Code(code) => write!(f, "exit code {code}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Prints an error, if there is one, and gives the code.
pub(crate) fn code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    if is_broken_pipe(&error) {
        // The reader of our output had enough, as `head` does.
        return ExitCode::SUCCESS;
    }
    let failure = error.downcast_ref::<Failure>();
    if let Some(Failure::Code(code)) = failure {
        return ExitCode::from(*code);
    }
    anstream::eprintln!("{}oarlock:{} {error:#}", crate::output::BAD, anstyle::Reset);
    ExitCode::from(match failure {
        Some(Failure::Usage(_)) => 2,
        Some(Failure::NotFound(_)) => 3,
        Some(Failure::Refused(_)) => 4,
        Some(Failure::Api(_)) => 5,
        Some(Failure::Limit(_)) => 6,
        _ => 1,
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
