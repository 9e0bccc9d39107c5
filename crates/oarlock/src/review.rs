//! Asking a person at the terminal about a proposed change.

use std::io::{self, PipeWriter, Write as _};
use std::path::Path;
use std::process::Command;

use futures_util::future::BoxFuture;
use oarlock_ide::editor::{Cancelled, DiffOutcome, EditorError, OpenDiff};
use oarlock_ide::headless::Reviewer;
use oarlock_proto::text::Text;
use similar::{ChangeTag, TextDiff};

use crate::output::{BAD, DIM, GOOD, STRONG};

/// Shows a coloured diff on the terminal and asks: accept, reject, or edit first. One at a time.
#[derive(Default)]
pub(crate) struct TerminalReviewer {
    turn: tokio::sync::Mutex<()>,
}

/// What a person can answer.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Accept,
    Reject,
    Edit,
    Again,
}

impl Choice {
    /// Only a plain yes accepts; an empty line asks again, because a stray Enter must decide nothing.
    fn read(line: &str) -> Self {
        match line.trim().to_ascii_lowercase().as_str() {
            "a" | "accept" | "y" | "yes" => Self::Accept,
            "r" | "reject" | "n" | "no" => Self::Reject,
            "e" | "edit" => Self::Edit,
            _ => Self::Again,
        }
    }
}

impl Reviewer for TerminalReviewer {
    fn review(
        &self,
        request: OpenDiff,
        cancelled: Cancelled,
    ) -> BoxFuture<'_, Result<DiffOutcome, EditorError>> {
        Box::pin(async move {
            let _turn = tokio::select! {
                turn = self.turn.lock() => turn,
                () = cancelled.cancelled() => return Ok(DiffOutcome::Closed),
            };
            let outcome = ask(&request, &cancelled).await;
            outcome.map_err(|error| EditorError::new(format!("failed to ask on the terminal: {error}")))
        })
    }
}

async fn ask(request: &OpenDiff, cancelled: &Cancelled) -> io::Result<DiffOutcome> {
    let old = match std::fs::read(&request.old_path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let mut contents = request.new_contents.clone();
    show(request, &old, &contents)?;
    loop {
        prompt("accept (a), reject (r) or edit (e)? ")?;
        let line = tokio::select! {
            line = read_line() => line?,
            () = cancelled.cancelled() => {
                print("\n  decided elsewhere\n")?;
                return Ok(DiffOutcome::Closed);
            }
        };
        let Some(line) = line else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
        };
        match Choice::read(&line) {
            Choice::Accept => return Ok(DiffOutcome::Accepted { contents }),
            Choice::Reject => return Ok(DiffOutcome::Rejected),
            Choice::Again => {}
            Choice::Edit => {
                match edit(&request.new_path, &contents).await {
                    Ok(edited) => contents = edited,
                    Err(error) => print(&format!("  {error}\n"))?,
                }
                show(request, &old, &contents)?;
            }
        }
    }
}

/// Opens the proposal in the person's own editor and reads it back.
async fn edit(path: &Path, contents: &str) -> io::Result<Text> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // The file keeps its name, so that the editor knows its language.
    let dir = tempfile::tempdir()?;
    let file = dir.path().join(path.file_name().unwrap_or_else(|| "proposal".as_ref()));
    std::fs::write(&file, contents)?;
    let mut words = editor.split_whitespace().map(str::to_owned);
    let mut command = Command::new(words.next().unwrap_or_else(|| "vi".to_owned()));
    command.args(words).arg(&file);
    let status = tokio::task::spawn_blocking(move || command.status()).await.map_err(io::Error::other)?;
    let status =
        status.map_err(|error| io::Error::other(format!("failed to run `{editor}`: {error}; set EDITOR")))?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` failed ({status}); the proposal is unchanged")));
    }
    let edited = std::fs::read_to_string(&file)?;
    Ok(edited.into())
}

fn show(request: &OpenDiff, old: &str, new: &str) -> io::Result<()> {
    let who = request.client.pid.map(|pid| format!(" (session {pid})")).unwrap_or_default();
    let name = visible(&request.new_path.display().to_string());
    print(&format!("\n{STRONG}Claude Code proposes to change {name}{STRONG:#}{who}\n{}", render(old, new)))
}

/// A unified diff with colours.
pub(crate) fn render(old: &str, new: &str) -> String {
    // The CLI proposes with `\n` whatever the file has, and restores `\r\n` when it writes.
    let unix;
    let old = if old.contains("\r\n") && !new.contains('\r') {
        unix = old.replace("\r\n", "\n");
        &unix
    } else {
        old
    };
    if old == new {
        return "  (no change)\n".to_owned();
    }
    let diff = TextDiff::from_lines(old, new);
    let mut out = String::new();
    for group in diff.grouped_ops(3) {
        let first = group.first().map_or(0, |op| op.new_range().start);
        out.push_str(&format!("{DIM}@@ line {} @@{DIM:#}\n", first + 1));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', BAD),
                ChangeTag::Insert => ('+', GOOD),
                ChangeTag::Equal => (' ', anstyle::Style::new()),
            };
            let text = change.value();
            let text = text.strip_suffix('\n').unwrap_or(text);
            out.push_str(&format!("{style}{sign} {}{style:#}\n", visible(text)));
            if change.missing_newline() {
                out.push_str(&format!("{DIM}  (no newline at the end){DIM:#}\n"));
            }
        }
    }
    out
}

/// Text that cannot play tricks on the terminal: a change must not be able to hide itself from its reviewer behind
/// escape sequences or characters that reorder text.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let bidi =
            matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character == '\t' || !(character.is_control() || bidi) {
            out.push(character);
        } else {
            out.extend(character.escape_unicode());
        }
    }
    out
}

fn prompt(text: &str) -> io::Result<()> {
    print(&format!("{STRONG}{text}{STRONG:#}"))
}

fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// One line from the terminal; `None` at its end. Dropping the future stops the reading, so that an editor, or the next
/// question, gets the keys.
async fn read_line() -> io::Result<Option<String>> {
    let (stop, stopped) = io::pipe()?;
    // Dropped with this future; the thread then sees the other end of the pipe closed.
    let _stop: PipeWriter = stopped;
    tokio::task::spawn_blocking(move || wait_for_line(&stop)).await.map_err(io::Error::other)?
}

#[cfg(unix)]
fn wait_for_line(stop: &io::PipeReader) -> io::Result<Option<String>> {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = rustix::stdio::stdin();
    loop {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            return Ok(None);
        }
        // A terminal gives one line a read.
        let mut line = [0; 1024];
        let length = rustix::io::read(stdin, &mut line)?;
        return Ok((length > 0).then(|| String::from_utf8_lossy(&line[..length]).into_owned()));
    }
}

#[cfg(not(unix))]
fn wait_for_line(_stop: &io::PipeReader) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line)?;
    Ok((length > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_accepts() {
        for (line, choice) in
            [("a\n", Choice::Accept), ("Y", Choice::Accept), ("n", Choice::Reject), ("e", Choice::Edit)]
        {
            assert_eq!(Choice::read(line), choice);
        }
        for line in ["", "\n", "accept it", "x", "aa"] {
            assert_eq!(Choice::read(line), Choice::Again, "{line:?}");
        }
    }

    #[test]
    fn a_change_cannot_hide_from_its_reviewer() {
        let shown = render("a\n", "a\u{1b}[2K\u{202e}b\rc\n");
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert!(plain.contains("+ a\\u{1b}[2K\\u{202e}b\\u{d}\n+ c\n"), "{plain}");
    }

    #[test]
    fn a_diff_shows_what_changes() {
        let plain = anstream::adapter::strip_str(&render("a\nb\n", "a\nc")).to_string();
        assert!(plain.contains("- b\n") && plain.contains("+ c\n  (no newline at the end)"), "{plain}");
        assert_eq!(render("x", "x"), "  (no change)\n");
        assert_eq!(render("x\r\ny\r\n", "x\ny\n"), "  (no change)\n");
    }
}
