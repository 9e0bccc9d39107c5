//! From a line to a message.

use std::borrow::Cow;
use std::fmt;

use super::Message;
use super::json::repair_surrogates;
use super::record::{Fields, Record};

/// Reads one line, with or without its line end.
///
/// - A kind or a field that is not known, and a value of the wrong type, are kept in their places: see the
///   [module](super).
/// - A byte order mark, blanks and a carriage return around the object are no part of it. U+2028 is an ordinary character.
/// - Half of a surrogate pair (`\ud83d`) and bytes that are not UTF-8 read as U+FFFD.
/// - What is no JSON object is a [`BadLine`] with its text. Each line stands for itself: the next one is not touched.
///
/// # Errors
/// When the line is not a JSON object.
///
/// ```
/// use oarlock_proto::stream::{decode, Message};
///
/// let line = b"{\"type\":\"system\",\"subtype\":\"session_state_changed\",\"state\":\"idle\"}\r\n";
/// assert!(matches!(decode(line), Ok(Message::System(_))));
/// let Ok(Message::Unknown(unknown)) = decode(br#"{"type":"new","x":1}"#) else { panic!("kept") };
/// assert_eq!((unknown.tag.as_str(), unknown.raw.text()), ("new", r#"{"type":"new","x":1}"#));
/// assert_eq!(decode(b"[debug] hello").expect_err("no JSON").text, "[debug] hello");
/// ```
pub fn decode(line: &[u8]) -> Result<Message, BadLine> {
    let text = match simdutf8::basic::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_matches([' ', '\t', '\r', '\n']);
    serde_json::from_str(text).or_else(|_| salvage(text))
}

/// The second try: every field on its own.
#[cold]
fn salvage(text: &str) -> Result<Message, BadLine> {
    let bad = |reason| BadLine { reason, text: text.into() };
    if text.is_empty() {
        return Err(bad(BadLineReason::Blank));
    }
    let repaired = repair_surrogates(text);
    match serde_json::from_str::<Message>(&repaired) {
        Ok(message) => Ok(message),
        Err(_) => match serde_json::from_str::<Fields>(&repaired) {
            Ok(fields) => Ok(Message::from_fields(fields)),
            Err(_) if serde_json::from_str::<serde::de::IgnoredAny>(&repaired).is_ok() => {
                Err(bad(BadLineReason::NotAnObject))
            }
            Err(error) => Err(bad(BadLineReason::NotJson(error.to_string()))),
        },
    }
}

/// A line that is no message. The stream goes on after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// What is wrong with it.
    pub reason: BadLineReason,
    /// The line, without blanks at its ends.
    pub text: String,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadLineReason {
    /// There is nothing in it; it may be passed over.
    Blank,
    /// It is not JSON.
    NotJson(String),
    /// It is JSON, but no object.
    NotAnObject,
}

impl BadLine {
    /// Is there nothing in it?
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.reason == BadLineReason::Blank
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            BadLineReason::Blank => return f.write_str("the line is blank"),
            BadLineReason::NotJson(error) => write!(f, "the line is not JSON ({error}): ")?,
            BadLineReason::NotAnObject => f.write_str("the line is no JSON object: ")?,
        }
        let mut shown = self.text.chars();
        shown.by_ref().take(200).try_for_each(|character| write!(f, "{character}"))?;
        if shown.next().is_some() { f.write_str("…") } else { Ok(()) }
    }
}

impl std::error::Error for BadLine {}
