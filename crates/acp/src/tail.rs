//! The output of commands that run long, as it comes: the CLI writes it to a file.
//!
//! A file is looked at several times a second, for as long as there is one. It may not be there yet, and the CLI may take it
//! away while it is being read: an open file can still be read to its end.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use oarlock_agent::history::Project;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(150);
/// What is read of a file at once.
const PIECE: u64 = 64 << 10;
/// When a command has written more than this since the last look, the middle of it is left out: nobody can read that fast.
const BACKLOG: u64 = 16 * PIECE;

/// Where the CLI writes what a command writes, as long as the command runs: in the foreground, too.
pub(crate) fn place(cwd: &Path, session_id: &str, task_id: &str) -> PathBuf {
    let root = std::env::var_os("CLAUDE_CODE_TMPDIR").filter(|root| !root.is_empty()).map(PathBuf::from);
    #[cfg(unix)]
    let (root, name) =
        (root.unwrap_or_else(|| "/tmp".into()), format!("claude-{}", rustix::process::getuid().as_raw()));
    #[cfg(not(unix))]
    let (root, name) = (root.unwrap_or_else(std::env::temp_dir), "claude".to_owned());
    let folder = root.join(name).join(Project::of(cwd).name()).join(session_id).join("tasks");
    folder.join(format!("{task_id}.output"))
}

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// The call that the command belongs to.
    pub(crate) tool_use_id: String,
    /// What is new.
    pub(crate) text: String,
}

/// The files that are being written, by call.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    tails: Vec<Tail>,
    /// Runs as long as there are files.
    clock: Option<Interval>,
}

impl Tails {
    /// The command of this call writes to this file. A call has one file.
    pub(crate) fn add(&mut self, tool_use_id: &str, file: PathBuf) {
        if !self.tails.iter().any(|tail| tail.tool_use_id == tool_use_id) {
            self.tails.push(Tail::new(tool_use_id, file));
        }
    }

    /// Is nothing being written?
    pub(crate) fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// Waits until it is worth looking again.
    pub(crate) async fn changed(&mut self) {
        let clock = self.clock.get_or_insert_with(|| {
            let mut clock = interval(PAUSE);
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            clock
        });
        clock.tick().await;
    }

    /// What is new in all files.
    pub(crate) fn read(&mut self) -> Vec<Output> {
        self.tails.iter_mut().filter_map(|tail| tail.read(PIECE)).collect()
    }

    /// The command has ended: what is left in its file.
    pub(crate) fn finish(&mut self, tool_use_id: &str) -> Option<Output> {
        let at = self.tails.iter().position(|tail| tail.tool_use_id == tool_use_id)?;
        let mut tail = self.tails.swap_remove(at);
        if self.tails.is_empty() {
            self.clock = None;
        }
        let mut rest = tail.read(2 * BACKLOG);
        // The end of a character that never came is shown as what it is.
        if !tail.partial.is_empty() {
            let text = String::from_utf8_lossy(&tail.partial).into_owned();
            match &mut rest {
                Some(output) => output.text += &text,
                None => rest = Some(Output { tool_use_id: tail.tool_use_id, text }),
            }
        }
        rest
    }
}

/// A file that is being written.
#[derive(Debug)]
struct Tail {
    tool_use_id: String,
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    /// The beginning of a character whose end is not written yet.
    partial: Vec<u8>,
}

impl Tail {
    fn new(tool_use_id: &str, path: PathBuf) -> Self {
        Self { tool_use_id: tool_use_id.into(), path, file: None, offset: 0, partial: Vec::new() }
    }

    /// What is new, up to a limit. A file that cannot be read now is tried again later.
    fn read(&mut self, limit: u64) -> Option<Output> {
        let mut bytes = std::mem::take(&mut self.partial);
        let skipped = self.append(&mut bytes, limit).unwrap_or_default();
        let mut text = String::new();
        if skipped > 0 {
            text = format!("\n[… {skipped} bytes are left out …]\n");
            // The piece may begin inside of a character.
            let begin = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
            bytes.drain(..begin);
        }
        self.partial = bytes.split_off(whole(&bytes));
        text.push_str(&String::from_utf8_lossy(&bytes));
        (!text.is_empty()).then(|| Output { tool_use_id: self.tool_use_id.clone(), text })
    }

    /// Reads on. Gives how much was passed over.
    fn append(&mut self, bytes: &mut Vec<u8>, limit: u64) -> io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            // It was written anew.
            self.offset = 0;
        }
        let mut skipped = 0;
        if length - self.offset > BACKLOG {
            skipped = length - self.offset - PIECE + bytes.len() as u64;
            bytes.clear();
            self.offset = length - PIECE;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        self.offset += file.take(limit).read_to_end(bytes)? as u64;
        Ok(skipped)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// How many of the bytes are whole characters, or will never be any.
fn whole(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so its first is one of the last three of a text that lacks the end.
    let back = bytes.iter().rev().take(3).position(|byte| !is_continuation(*byte));
    let Some(at) = back.map(|back| bytes.len() - 1 - back) else { return bytes.len() };
    let length = match bytes[at] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if at + length > bytes.len() { at } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn text(output: Option<Output>) -> String {
        output.map(|output| output.text).unwrap_or_default()
    }

    #[test]
    fn a_file_is_told_piece_by_piece_and_may_come_late() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b1.output");
        let mut tails = Tails::default();
        tails.add("t1", path.clone());
        tails.add("t1", folder.path().join("another"));
        assert!(!tails.is_empty());
        assert_eq!(tails.read(), [], "it is not there yet");
        let mut file = File::create(&path).expect("a file");
        file.write_all("one\n\u{1b}[31mé".as_bytes()).expect("written");
        assert_eq!(tails.read(), [Output { tool_use_id: "t1".into(), text: "one\n\u{1b}[31mé".into() }]);
        assert_eq!(tails.read(), [], "nothing is told twice");
        file.write_all(&"→".as_bytes()[..2]).expect("written");
        assert_eq!(tails.read(), [], "a character is not cut");
        file.write_all(&"→".as_bytes()[2..]).expect("written");
        file.write_all(b" two\xff\n").expect("written");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(text(tails.finish("t1")), "→ two\u{fffd}\n", "an open file can be read when it is gone");
        assert!(tails.is_empty());
        assert_eq!(tails.finish("t1"), None);
    }

    #[test]
    fn a_flood_is_cut_and_memory_stays_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("flood");
        let mut tails = Tails::default();
        tails.add("t1", path.clone());
        std::fs::write(&path, "é".repeat(3 << 20)).expect("written");
        let piece = text(tails.read().pop());
        assert!(piece.contains("bytes are left out") && piece.ends_with('é'));
        assert!(piece.len() < (PIECE + 100) as usize && !piece.contains('\u{fffd}'));
        std::fs::write(&path, "anew").expect("written");
        assert_eq!(text(tails.finish("t1")), "anew", "a file that shrinks begins anew");
    }

    #[tokio::test]
    async fn it_is_looked_at_again_after_a_pause() {
        let mut tails = Tails::default();
        tails.add("t1", "/nowhere".into());
        tails.changed().await;
        let start = tokio::time::Instant::now();
        tails.changed().await;
        assert!(start.elapsed() >= PAUSE / 2, "it does not spin");
    }

    #[cfg(unix)]
    #[test]
    fn the_place_is_the_cli_s() {
        let place = place(Path::new("/"), "s1", "b1");
        let name = format!("claude-{}/-/s1/tasks/b1.output", rustix::process::getuid().as_raw());
        assert!(place.ends_with(&name), "{}", place.display());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_joined_are_the_file(text in "[a-zé→😀\n]{0,200}", cuts in prop::collection::vec(0usize..300, 0..6)) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("out");
            let mut tail = Tail::new("t", path.clone());
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([text.len()]).collect();
            cuts.sort_unstable();
            let mut told = String::new();
            for cut in cuts {
                std::fs::write(&path, &text.as_bytes()[..cut]).expect("written");
                tail.file = None;
                told += &tail.read(PIECE).map(|output| output.text).unwrap_or_default();
            }
            prop_assert_eq!(told, text);
        }
    }
}
