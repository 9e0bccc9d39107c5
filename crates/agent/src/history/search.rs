//! Finding a text in what was said and done.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::lines::failed;
use super::view::{Piece, View};
use super::{Filter, Library, Lines, Record, Scan, Sessions, Summary, Transcript};
use crate::Error;

/// How much is shown around a hit, on either side.
const AROUND: usize = 60;

/// What to look for.
#[derive(Debug, Clone)]
#[must_use]
pub struct Search {
    text: String,
    ignore_case: bool,
    subagents: bool,
}

impl Search {
    /// This text, letter for letter, also in what subagents did.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ignore_case: false, subagents: true }
    }

    /// Are letters of either case the same?
    pub fn ignore_case(mut self, ignore: bool) -> Self {
        self.ignore_case = ignore;
        self
    }

    /// Look into what subagents did?
    pub fn subagents(mut self, also: bool) -> Self {
        self.subagents = also;
        self
    }
}

/// Where a text was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hit {
    /// The session.
    pub session: Arc<Summary>,
    /// The subagent, when it was one that said it.
    pub agent: Option<String>,
    /// The message's uuid.
    pub message: String,
    /// When it was said.
    pub timestamp: Option<String>,
    /// What part of the message it is in.
    pub part: Part,
    /// The text around it, in one line.
    pub excerpt: String,
    /// Where in the excerpt it is, in bytes.
    pub at: Range<usize>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// What the user said.
    Prompt,
    /// What the model said.
    Answer,
    /// What the model thought.
    Thinking,
    /// What a tool was given, by the tool's name.
    Call(String),
    /// What a tool answered.
    Result,
    /// The summary of a compaction.
    Summary,
}

impl Library {
    /// Searches sessions, the last written first. Each transcript is read once, line by line; all branches are searched.
    ///
    /// # Errors
    /// When the directory of the projects cannot be read. A transcript that cannot be read is an item of its own.
    pub fn search(&self, filter: &Filter, search: &Search) -> Result<Hits, Error> {
        Ok(Hits { sessions: Some(self.list(filter)?), ..Hits::new(search.clone()) })
    }
}

impl Transcript {
    /// Searches one session.
    pub fn search(&self, search: &Search) -> Hits {
        let mut hits = Hits::new(search.clone());
        if let Some(summary) = self.summary() {
            hits.enter(Arc::new(summary));
        }
        hits
    }
}

/// Hits, one after the other, found as they are asked for.
pub struct Hits {
    finder: Finder,
    subagents: bool,
    sessions: Option<Sessions>,
    /// Transcripts of the session that is being searched.
    files: VecDeque<(PathBuf, Option<String>)>,
    session: Option<Arc<Summary>>,
    open: Option<Open>,
    found: VecDeque<Hit>,
}

/// A transcript that is being searched.
struct Open {
    path: PathBuf,
    agent: Option<String>,
    lines: Lines,
    view: View,
}

impl std::fmt::Debug for Hits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hits").field("text", &self.finder.text).finish_non_exhaustive()
    }
}

impl Hits {
    fn new(search: Search) -> Self {
        Self {
            finder: Finder::new(search.text, search.ignore_case),
            subagents: search.subagents,
            sessions: None,
            files: VecDeque::new(),
            session: None,
            open: None,
            found: VecDeque::new(),
        }
    }

    /// Turns to a session.
    fn enter(&mut self, summary: Arc<Summary>) {
        self.files.push_back((summary.path.clone(), None));
        if self.subagents {
            let transcript = Transcript::new(&summary.id, summary.path.clone());
            let subagents = transcript.subagents().unwrap_or_default();
            self.files.extend(subagents.into_iter().map(|agent| (agent.path, Some(agent.id))));
        }
        self.session = Some(summary);
    }

    /// Reads on until there is a hit, or the end of the transcript.
    fn read(&mut self) -> Result<(), Error> {
        let (Some(mut open), Some(session)) = (self.open.take(), &self.session) else { return Ok(()) };
        while let Some(line) = open.lines.next().map_err(|error| failed("read", &open.path, error))? {
            if !self.finder.may_be_in(line.bytes) {
                continue;
            }
            let Some(scan) = Scan::of(line.bytes) else { continue };
            let is_shown = if open.agent.is_some() { scan.kind.is_message() } else { scan.is_visible() };
            let Some(record) = is_shown.then(|| Record::decode(line.bytes).ok()).flatten() else { continue };
            for piece in open.view.pieces(&record) {
                let Some((part, text)) = searchable(piece) else { continue };
                let Some(at) = self.finder.find(&text) else { continue };
                let (excerpt, at) = excerpt(&text, at);
                self.found.push_back(Hit {
                    session: session.clone(),
                    agent: open.agent.clone(),
                    message: record.uuid.clone(),
                    timestamp: record.timestamp.clone(),
                    part,
                    excerpt,
                    at,
                });
            }
            if !self.found.is_empty() {
                self.open = Some(open);
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Iterator for Hits {
    type Item = Result<Hit, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(hit) = self.found.pop_front() {
                return Some(Ok(hit));
            }
            if self.open.is_some() {
                if let Err(error) = self.read() {
                    return Some(Err(error));
                }
            } else if let Some((path, agent)) = self.files.pop_front() {
                match Lines::open(&path) {
                    Ok(lines) => self.open = Some(Open { path, agent, lines, view: View::default() }),
                    Err(error) => return Some(Err(error)),
                }
            } else {
                let next = self.sessions.as_mut()?.next()?;
                self.enter(Arc::new(next));
            }
        }
    }
}

/// The text of a piece.
fn searchable(piece: Piece) -> Option<(Part, String)> {
    Some(match piece {
        Piece::Prompt(text) | Piece::Command(text) => (Part::Prompt, text),
        Piece::Text(text) => (Part::Answer, text),
        Piece::Thinking(text) => (Part::Thinking, text),
        Piece::Call(call) => {
            let mut texts = Vec::new();
            strings(&call.input.value(), &mut texts);
            (Part::Call(call.tool), texts.join("\n"))
        }
        Piece::Outcome(outcome) => (Part::Result, outcome.text),
        Piece::Notice(text) => (Part::Result, text),
        Piece::Summary(text) => (Part::Summary, text),
        Piece::Media(_) | Piece::Compaction { .. } => return None,
    })
}

/// All strings in a value.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, into)),
        _ => {}
    }
}

/// Finds a text, and tells lines apart that cannot hold it.
struct Finder {
    text: String,
    ignore_case: bool,
    /// The longest part of the text that JSON writes as it is, whoever writes it.
    plain: Vec<u8>,
}

impl Finder {
    fn new(text: String, ignore_case: bool) -> Self {
        let is_plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && !b"\"\\/<>&'".contains(byte);
        let mut plain: &[u8] = &[];
        for run in text.as_bytes().split(|byte| !is_plain(byte)) {
            if run.len() > plain.len() {
                plain = run;
            }
        }
        let plain = plain.to_vec();
        Self { text, ignore_case, plain }
    }

    fn may_be_in(&self, line: &[u8]) -> bool {
        let Some(first) = self.plain.first() else { return true };
        if !self.ignore_case {
            return memchr::memmem::find(line, &self.plain).is_some();
        }
        let starts = memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), line);
        starts
            .filter_map(|at| line.get(at..at + self.plain.len()))
            .any(|found| found.eq_ignore_ascii_case(&self.plain))
    }

    fn find(&self, text: &str) -> Option<Range<usize>> {
        if self.text.is_empty() {
            return None;
        }
        if !self.ignore_case {
            let at = memchr::memmem::find(text.as_bytes(), self.text.as_bytes())?;
            return Some(at..at + self.text.len());
        }
        let wanted: Vec<char> = self.text.chars().flat_map(char::to_lowercase).collect();
        text.char_indices().find_map(|(start, _)| {
            let mut wanted = wanted.iter();
            for (at, character) in text[start..].char_indices() {
                for lower in character.to_lowercase() {
                    match wanted.next() {
                        Some(&want) if want == lower => {}
                        Some(_) => return None,
                        // The text ends inside a character that is several in lower case.
                        None => break,
                    }
                }
                if wanted.len() == 0 {
                    return Some(start..start + at + character.len_utf8());
                }
            }
            None
        })
    }
}

/// The text around a place, in one line, and the place in it.
fn excerpt(text: &str, at: Range<usize>) -> (String, Range<usize>) {
    let from = text[..at.start].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = text[at.end..].char_indices().nth(AROUND).map_or(text.len(), |(more, _)| at.end + more);
    let line = |part: &str| part.replace(|character: char| character.is_control(), " ");
    let mut excerpt = String::new();
    if from > 0 {
        excerpt.push('…');
    }
    excerpt.push_str(&line(&text[from..at.start]));
    let start = excerpt.len();
    excerpt.push_str(&line(&text[at.clone()]));
    let end = excerpt.len();
    excerpt.push_str(&line(&text[at.end..to]));
    if to < text.len() {
        excerpt.push('…');
    }
    (excerpt, start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_is_ignored_in_any_script() {
        let find = |text: &str, wanted: &str| Finder::new(wanted.into(), true).find(text);
        assert_eq!(find("Das ist GRÖSSE", "größe"), None, "ß is not folded");
        assert_eq!(find("Das ist GRÖSSE", "grösse"), Some(8..15));
        assert_eq!(find("xaab", "AB"), Some(2..4));
        assert_eq!(find("İstanbul", "i"), Some(0..2));
        assert_eq!(find("", "a"), None);
        assert_eq!(find("abc", ""), None);
    }

    #[test]
    fn an_excerpt_is_one_line_and_says_where() {
        let text = format!("{}\nneedle\r{}", "é".repeat(100), "y".repeat(100));
        let at = text.find("needle").unwrap();
        let (excerpt, at) = excerpt(&text, at..at + 6);
        assert_eq!(&excerpt[at], "needle");
        assert_eq!(excerpt, format!("…{} needle {}…", "é".repeat(59), "y".repeat(59)));
    }

    proptest! {
        #[test]
        fn no_line_is_passed_over_that_holds_the_text(
            before in "\\PC{0,8}", text in "[ -~]{1,6}|\\PC{1,6}", after in "\\PC{0,8}", ignore: bool, upper: bool,
        ) {
            let said = if ignore && upper { text.to_ascii_uppercase() } else { text.clone() };
            let said = format!("{before}{said}{after}");
            let finder = Finder::new(text, ignore);
            let at = finder.find(&said);
            prop_assert!(at.is_some());
            prop_assert!(finder.may_be_in(serde_json::to_string(&said).unwrap().as_bytes()));
            let (excerpt, at) = excerpt(&said, at.unwrap());
            prop_assert!(excerpt.get(at).is_some());
        }
    }
}
