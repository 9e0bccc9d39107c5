//! Long output goes through a pager when a person looks at it.

use std::io::{self, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};

use anstream::{AutoStream, ColorChoice, StripStream};

/// Gives the work something to write to: a pager on a terminal, otherwise stdout.
pub(super) fn page(work: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let stdout = io::stdout();
    let pager = stdout.is_terminal().then(start).flatten();
    let Some(mut pager) = pager else {
        let mut out = io::BufWriter::new(anstream::stdout().lock());
        work(&mut out)?;
        out.flush()?;
        return Ok(());
    };
    let outcome = match pager.stdin.take() {
        Some(stdin) => {
            let stdin: Box<dyn Write> = Box::new(io::BufWriter::new(stdin));
            // What the terminal shows is what the pager shows.
            if AutoStream::choice(&stdout) == ColorChoice::Never {
                write_all(StripStream::new(stdin), work)
            } else {
                write_all(stdin, work)
            }
        }
        None => Ok(()),
    };
    // The person reads on after everything is written.
    pager.wait()?;
    outcome
}

fn write_all(
    mut out: impl Write,
    work: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    work(&mut out)?;
    out.flush()?;
    Ok(())
}

/// `$PAGER`, or else `less` when it is there. `None`: no pager.
fn start() -> Option<Child> {
    let pager = match std::env::var("PAGER") {
        Ok(pager) => pager,
        // It leaves at once when all fits on the screen, shows colours, and leaves what it showed.
        Err(_) => "less -FRX".to_owned(),
    };
    let mut words = pager.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    // Quotes and pipes are for a shell; without them a pager that is not there can be told from one that fails.
    let mut command = if cfg!(unix) && pager.contains(|character| "'\"\\|&;<>()$`*?~".contains(character)) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &pager]);
        shell
    } else {
        let mut command = Command::new(program);
        command.args(words);
        command
    };
    command.stdin(Stdio::piped()).spawn().ok()
}
