//! What people and programs see: styles, lines on stdout, the log on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use serde::Serialize;
use tracing::Level;
use tracing_subscriber::{filter::Targets, prelude::*};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

/// Writes a line to stdout. A closed pipe is an error that [`exit`](crate::exit) takes for success.
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::line(&format!($($arg)*)) };
}
pub(crate) use say;

/// A line with styles, which are dropped when nobody can see them (pipes, NO_COLOR).
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// One JSON object a line.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(raw_line(&serde_json::to_string(value)?)?)
}

/// Text that cannot play tricks on the terminal: what comes from a client, a file or another program must not be able to
/// hide itself, or anything else, behind escape sequences, or characters that are invisible or reorder text.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let unseen = matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        );
        if character == '\t' || !(character.is_control() || unseen) {
            out.push(character);
        } else {
            out.extend(character.escape_unicode());
        }
    }
    out
}

/// A note for people on stderr.
pub(crate) fn note(text: &str) {
    anstream::eprintln!("{DIM}oarlock:{DIM:#} {text}");
}

/// A warning for people on stderr.
pub(crate) fn warn(text: &str) {
    anstream::eprintln!("{WARN}oarlock: warning:{WARN:#} {text}");
}

/// The log: warnings, or more when asked. It never goes to stdout. RUST_LOG holds levels and `target=level`, with commas
/// between them; what cannot be understood counts as not there.
pub(crate) fn log_to_stderr(verbose: u8, quiet: bool) {
    // Editors keep what their agents say on stderr, and show escape sequences as they are.
    let has_colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_ansi(has_colour).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(filter(verbose, quiet)).with(lines).init();
}

/// The log, to a file that grows: for programs whose stderr nobody sees.
pub(crate) fn log_to_file(verbose: u8, path: &Path) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).with_context(|| format!("failed to open the log {}", path.display()))?;
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::sync::Mutex::new(file));
    tracing_subscriber::registry().with(filter(verbose, false)).with(lines).init();
    Ok(())
}

fn filter(verbose: u8, quiet: bool) -> Targets {
    let ours = match verbose {
        0 if quiet => Targets::new().with_default(Level::ERROR),
        0 => Targets::new().with_default(Level::WARN),
        1 => Targets::new()
            .with_default(Level::INFO)
            .with_target("oarlock_acp", Level::DEBUG)
            .with_target("oarlock_ide", Level::DEBUG)
            .with_target("oarlock_wire", Level::DEBUG),
        _ => Targets::new().with_default(Level::TRACE),
    };
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(ours)
}

/// A line of bytes as they are.
pub(crate) fn raw_line(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// As much of a text as fits. Wide characters are taken for two columns, to be on the safe side.
pub(crate) fn fitting(text: &str, columns: usize) -> String {
    let wide = |c: char| if c >= '\u{1100}' && !('\u{2000}'..='\u{2bff}').contains(&c) { 2 } else { 1 };
    if text.chars().map(wide).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut short: String = text
        .chars()
        .take_while(|&c| {
            used += wide(c);
            used <= columns
        })
        .collect();
    if columns > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(fitting("漢字漢字", 8), "漢字漢字");
        assert_eq!(fitting("漢字漢字", 7), "漢字漢…");
        assert_eq!(fitting("abc", 0), "");
    }
}
