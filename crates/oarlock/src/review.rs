//! Asking a person at the terminal about a proposed change.

use std::io::{self, PipeReader, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use oarlock_ide::editor::{Cancelled, DiffOutcome, EditorError, OpenDiff};
use oarlock_ide::headless::Reviewer;
use oarlock_ide::paths::read_regular;
use similar::{ChangeTag, TextDiff};

use crate::input::{self, Keyboard};
use crate::output::{BAD, DIM, GOOD, STRONG, WARN, visible};

/// The largest file that is compared.
pub(crate) const MAX_FILE: u64 = 64 << 20;
/// How long a diff may be looked for before a coarser one will do.
const DIFFING: Duration = Duration::from_secs(2);
/// How many lines of a diff are shown.
const MAX_LINES: usize = 2000;
/// Keys that were already on their way when a question appeared were not meant for it.
pub(crate) const REFLEX: Duration = Duration::from_millis(400);

/// Shows a coloured diff on the terminal and asks: accept, reject, or edit first. One at a time.
///
/// Everything that can take time (files, diffing, a terminal that stands still, the person's editor) happens on a thread
/// of its own, which holds the turn until it is done: no question is asked under a running editor.
#[derive(Default)]
pub(crate) struct TerminalReviewer {
    turn: Arc<tokio::sync::Mutex<()>>,
    screen: Arc<Mutex<()>>,
}

impl TerminalReviewer {
    /// Held while a question is on the screen: a log line must not stand where the answer belongs.
    pub(crate) fn screen(&self) -> Arc<Mutex<()>> {
        self.screen.clone()
    }
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
    /// Only a plain yes on a whole line accepts; an empty line asks again, because a stray Enter must decide nothing.
    fn read(line: &str) -> Self {
        let Some(word) = line.strip_suffix('\n') else { return Self::Again };
        match word.trim().to_ascii_lowercase().as_str() {
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
            let turn = tokio::select! {
                turn = self.turn.clone().lock_owned() => turn,
                () = cancelled.cancelled() => return Ok(DiffOutcome::Closed),
            };
            let failed = |error| EditorError::new(format!("failed to ask on the terminal: {error}"));
            // Closing the writing end tells the thread to stop, also when this future is dropped.
            let (stopped, stop) = io::pipe().map_err(failed)?;
            let screen = self.screen();
            let asked = tokio::task::spawn_blocking(move || {
                let _screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
                let outcome = ask(&request, &stopped);
                drop(turn);
                outcome
            });
            let outcome = tokio::select! {
                outcome = asked => outcome,
                () = cancelled.cancelled() => return Ok(DiffOutcome::Closed),
            };
            drop(stop);
            outcome.map_err(io::Error::other).and_then(|outcome| outcome).map_err(failed)
        })
    }
}

fn ask(request: &OpenDiff, stopped: &PipeReader) -> io::Result<DiffOutcome> {
    let old = match read_regular(&request.old_path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let path = visible(&request.old_path.display().to_string());
            return Err(io::Error::new(error.kind(), format!("{path}: {error}")));
        }
    };
    let mut contents = request.new_contents.clone();
    show(request, &old, &contents)?;
    if input::is_stopped(stopped, REFLEX)? {
        return decided_elsewhere();
    }
    let keyboard = Keyboard::stdin();
    loop {
        keyboard.forget()?;
        print(&format!("{STRONG}accept (a), reject (r) or edit (e)?{STRONG:#} "))?;
        let line = match keyboard.line(stopped)? {
            input::Line::Stopped => return decided_elsewhere(),
            input::Line::End => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
            }
            input::Line::Text(line) => line,
        };
        match Choice::read(&line) {
            Choice::Accept => return Ok(DiffOutcome::Accepted { contents }),
            Choice::Reject => return Ok(DiffOutcome::Rejected),
            Choice::Again => {}
            Choice::Edit => {
                match edit(&request.new_path, &contents) {
                    Ok(edited) => contents = edited.into(),
                    Err(error) => print(&format!("  {error}\n"))?,
                }
                if input::is_stopped(stopped, Duration::ZERO)? {
                    return decided_elsewhere();
                }
                show(request, &old, &contents)?;
            }
        }
    }
}

fn decided_elsewhere() -> io::Result<DiffOutcome> {
    print("\n  decided elsewhere\n")?;
    Ok(DiffOutcome::Closed)
}

/// Opens a text in the person's own editor and reads it back. The path gives the file its name.
pub(crate) fn edit(path: &Path, contents: &str) -> io::Result<String> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // The file keeps its name, so that the editor knows its language.
    let dir = tempfile::tempdir()?;
    let file = dir.path().join(path.file_name().unwrap_or_else(|| "proposal".as_ref()));
    std::fs::write(&file, contents)?;
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi")).args(words).arg(&file).status();
    let status =
        status.map_err(|error| io::Error::other(format!("failed to run `{editor}`: {error}; set EDITOR")))?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` failed ({status}); nothing is changed")));
    }
    std::fs::read_to_string(&file)
}

fn show(request: &OpenDiff, old: &[u8], new: &str) -> io::Result<()> {
    let who = request.client.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let name = visible(&request.new_path.display().to_string());
    let act = if request.old_path.exists() { "change" } else { "create" };
    print(&format!("\n{STRONG}Claude Code proposes to {act} {name}{STRONG:#}{who}\n{}", render(old, new)))
}

/// A unified diff with colours, for a question about it.
pub(crate) fn render(old: &[u8], new: &str) -> String {
    render_from(1, old, new, MAX_LINES, "; (e) shows all of the proposal")
}

/// A unified diff of a part of a file that begins at a line; of at most `max` lines, and then a `hint`.
pub(crate) fn render_from(first_line: usize, old: &[u8], new: &str, max: usize, hint: &str) -> String {
    let text = String::from_utf8_lossy(old);
    let mut out = String::new();
    if matches!(text, std::borrow::Cow::Owned(_)) {
        out.push_str(&format!(
            "{WARN}the file is not UTF-8: accepting replaces the bytes that are not{WARN:#}\n"
        ));
    }
    // The CLI proposes with `\n` whatever the file has, and restores `\r\n` when it writes.
    let old = if text.contains("\r\n") && !new.contains('\r') {
        text.replace("\r\n", "\n")
    } else {
        text.into_owned()
    };
    if old == new {
        out.push_str("  (no change)\n");
        return out;
    }
    let diff = TextDiff::configure().timeout(DIFFING).diff_lines(&old, new);
    let (mut shown, mut left_out) = (0, 0);
    for group in diff.grouped_ops(3) {
        let first = group.first().map_or(0, |op| op.new_range().start);
        if shown < max {
            out.push_str(&format!("{DIM}@@ line {} @@{DIM:#}\n", first + first_line));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if shown == max {
                left_out += 1;
                continue;
            }
            shown += 1;
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
    if left_out > 0 {
        out.push_str(&format!("{WARN}and {left_out} more lines{hint}{WARN:#}\n"));
    }
    out
}

fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(old: &[u8], new: &str) -> String {
        anstream::adapter::strip_str(&render(old, new)).to_string()
    }

    #[test]
    fn only_a_plain_yes_on_a_whole_line_accepts() {
        for (line, choice) in
            [("a\n", Choice::Accept), ("Y\n", Choice::Accept), ("n\n", Choice::Reject), ("e\n", Choice::Edit)]
        {
            assert_eq!(Choice::read(line), choice);
        }
        for line in ["", "\n", "accept it\n", "x\n", "aa\n", "a", "yes"] {
            assert_eq!(Choice::read(line), Choice::Again, "{line:?}");
        }
    }

    #[test]
    fn a_change_cannot_hide_from_its_reviewer() {
        let shown = plain(b"a\n", "a\u{1b}[2K\u{202e}b\rc\u{200b}\u{e0041}\n");
        assert!(shown.contains("+ a\\u{1b}[2K\\u{202e}b\\u{d}\n+ c\\u{200b}\\u{e0041}\n"), "{shown}");
        let shown = plain(b"caf\xe9\n", "caf\u{fffd}\n");
        assert!(shown.contains("not UTF-8"), "{shown}");
    }

    #[test]
    fn a_diff_shows_what_changes() {
        let shown = plain(b"a\nb\n", "a\nc");
        assert!(shown.contains("- b\n") && shown.contains("+ c\n  (no newline at the end)"), "{shown}");
        assert_eq!(plain(b"x", "x"), "  (no change)\n");
        assert_eq!(plain(b"x\r\ny\r\n", "x\ny\n"), "  (no change)\n");
    }

    #[test]
    fn a_huge_diff_is_cut_and_says_so() {
        let shown = plain(b"", &"line\n".repeat(MAX_LINES + 7));
        assert!(shown.contains("and 7 more lines"), "{}", shown.lines().last().unwrap_or_default());
    }
}
