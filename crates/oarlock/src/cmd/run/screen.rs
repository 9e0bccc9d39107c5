//! What a person sees: the answer on stdout, everything else on stderr, and the spinner below both.

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use super::printer::Printer;
use super::progress::Progress;
use super::show::Piece;
use crate::output::WARN;

/// Clears the line and goes to its beginning.
const CLEAR: &str = "\r\u{1b}[K";

/// What was written last.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    Answer,
    Aside,
    Line,
    /// By somebody else.
    Foreign,
}

/// Puts pieces where they belong, each kind on lines of its own.
pub(super) struct Screen {
    printer: Printer,
    /// Is there somebody to see what is not the answer?
    has_asides: bool,
    has_spinner: bool,
    last: Last,
    /// The last line has not ended.
    is_open: bool,
    /// The spinner is drawn.
    is_spinning: bool,
}

impl Screen {
    pub(super) fn new(printer: Printer, has_asides: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let has_spinner = has_asides && io::stderr().is_terminal() && !is_dumb;
        Self { printer, has_asides, has_spinner, last: Last::Nothing, is_open: false, is_spinning: false }
    }

    pub(super) fn has_spinner(&self) -> bool {
        self.has_spinner
    }

    pub(super) async fn show(&mut self, pieces: Vec<Piece>) -> io::Result<()> {
        for piece in pieces {
            match piece {
                Piece::Answer(text) => self.write(Last::Answer, text).await?,
                Piece::Raw(text) => {
                    self.clear().await?;
                    self.break_line().await?;
                    self.printer.raw(text).await?;
                }
                Piece::Aside(text) if self.has_asides => self.write(Last::Aside, text).await?,
                Piece::Line(text) if self.has_asides => {
                    self.break_line().await?;
                    self.write(Last::Line, format!("{text}\n")).await?;
                }
                Piece::Warning(text) => {
                    self.break_line().await?;
                    let line = format!("{WARN}oarlock: warning:{WARN:#} {text}\n");
                    self.write(Last::Line, line).await?;
                }
                Piece::Break => self.break_line().await?,
                Piece::Aside(_) | Piece::Line(_) => {}
            }
        }
        Ok(())
    }

    async fn write(&mut self, kind: Last, text: String) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.clear().await?;
        if self.last != kind {
            self.break_line().await?;
            // What comes of an answer to a question stands below it.
            let belongs = self.last == Last::Foreign && kind == Last::Line;
            if self.has_asides && self.last != Last::Nothing && !belongs {
                self.printer.err("\n".to_owned()).await?;
            }
            self.last = kind;
        }
        self.is_open = !text.ends_with('\n');
        match kind {
            Last::Answer => self.printer.out(text).await,
            _ => self.printer.err(text).await,
        }
    }

    /// Ends a line that has been begun.
    pub(super) async fn break_line(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        match self.last {
            Last::Answer => self.printer.out("\n".to_owned()).await,
            _ => self.printer.err("\n".to_owned()).await,
        }
    }

    /// Draws the spinner, where it disturbs nothing.
    pub(super) async fn spin(&mut self, progress: &mut Progress, now: Instant) -> io::Result<()> {
        if !self.has_spinner || self.is_open {
            return Ok(());
        }
        let Some(line) = progress.line(now, width()) else { return self.clear().await };
        self.is_spinning = true;
        self.printer.cursor(format!("{CLEAR}{line}")).await
    }

    /// Takes the spinner away.
    pub(super) async fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_spinning) {
            self.printer.cursor(CLEAR.to_owned()).await?;
        }
        Ok(())
    }

    /// The screen is somebody else's for a while: everything is written, and a blank line follows.
    pub(super) async fn give_away(&mut self) -> io::Result<()> {
        self.clear().await?;
        self.break_line().await?;
        if self.last != Last::Nothing {
            self.printer.err("\n".to_owned()).await?;
        }
        self.last = Last::Foreign;
        self.printer.flush().await
    }

    /// Everything is written.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        self.clear().await?;
        self.break_line().await?;
        self.printer.flush().await
    }
}

/// How wide the terminal is.
pub(super) fn width() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stderr())
        && size.ws_col > 0
    {
        return usize::from(size.ws_col);
    }
    80
}
