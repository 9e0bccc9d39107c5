//! Positions in text. On the wire they are always zero-based lines and UTF-16 columns, whatever the editor counts in.

use serde::{Deserialize, Serialize};

/// A place between two characters: zero-based line, zero-based UTF-16 column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Zero-based.
    pub line: u32,
    /// UTF-16 code units from the start of the line.
    pub character: u32,
}

impl Position {
    /// A position.
    #[must_use]
    pub const fn new(line: u32, character: u32) -> Self {
        Self { line, character }
    }
}

/// From a position up to, not including, another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    #[serde(default)]
    pub end: Position,
}

impl Range {
    /// A range.
    #[must_use]
    pub const fn new(start: Position, end: Position) -> Self {
        Self { start, end }
    }

    /// Nothing lies between start and end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// What an editor counts columns in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes, as Neovim and Kakoune do.
    Utf8,
    /// Code units, as the protocol does.
    Utf16,
    /// Characters, as Emacs and Helix do.
    Utf32,
}

impl Encoding {
    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// Turns a column of `line` from one encoding into another.
///
/// A column inside a character counts as that character's start; one past the end of the line, as the line's end.
///
/// ```
/// use oarlock_proto::pos::{Encoding, column};
/// assert_eq!(column("aé𝒳b", 8, Encoding::Utf8, Encoding::Utf16), 5);
/// ```
#[must_use]
pub fn column(line: &str, column: usize, from: Encoding, to: Encoding) -> usize {
    let (mut seen, mut out) = (0, 0);
    for character in line.chars() {
        seen += from.width(character);
        if seen > column {
            break;
        }
        out += to.width(character);
    }
    out
}

/// The lines of `text` with the byte offset each begins at. `\n`, `\r\n` and a lone `\r` end a line and are not part
/// of it. There is always at least one line, and one after a final line end.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = Some(0);
    std::iter::from_fn(move || {
        let start = rest?;
        let tail = &text[start..];
        let end = tail.find(['\n', '\r']);
        rest = end.map(|end| start + end + if tail[end..].starts_with("\r\n") { 2 } else { 1 });
        Some((start, &tail[..end.unwrap_or(tail.len())]))
    })
}

/// The position of a byte offset of `text`. An offset past the end, or inside a character, is moved back.
#[must_use]
pub fn position(text: &str, offset: usize) -> Position {
    let mut found = Position::default();
    for (number, (start, line)) in lines(text).enumerate() {
        if start > offset {
            break;
        }
        let character = column(line, offset - start, Encoding::Utf8, Encoding::Utf16);
        found = Position::new(saturate(number), saturate(character));
    }
    found
}

/// The byte offset of a position of `text`; past the end of a line is its end, past the last line is the end of text.
#[must_use]
pub fn offset(text: &str, position: Position) -> usize {
    match lines(text).nth(position.line as usize) {
        Some((start, line)) => {
            start + column(line, position.character as usize, Encoding::Utf16, Encoding::Utf8)
        }
        None => text.len(),
    }
}

/// The text of a range; empty when its end lies before its start.
#[must_use]
pub fn slice(text: &str, range: Range) -> &str {
    let (start, end) = (offset(text, range.start), offset(text, range.end));
    text.get(start..end).unwrap_or_default()
}

/// What `openFile`'s text patterns select: from the first `start_text` to the end of the first `end_text` after it,
/// or `start_text` itself; `to_end_of_line` moves the end to the end of its line.
///
/// `None` when `start_text` does not occur. An `end_text` that does not occur is as good as none: the person still
/// sees the right place.
#[must_use]
pub fn find(text: &str, start_text: &str, end_text: Option<&str>, to_end_of_line: bool) -> Option<Range> {
    let start = text.find(start_text)?;
    let after = start + start_text.len();
    let mut end = end_text
        .filter(|pattern| !pattern.is_empty())
        .and_then(|pattern| text[after..].find(pattern).map(|at| after + at + pattern.len()))
        .unwrap_or(after);
    if to_end_of_line {
        end += text[end..].find(['\n', '\r']).unwrap_or(text.len() - end);
    }
    Some(Range::new(position(text, start), position(text, end)))
}

fn saturate(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ide_diag_05_columns_are_utf16() {
        let line = "aé𝒳b";
        assert_eq!(column(line, line.len(), Encoding::Utf8, Encoding::Utf16), 5);
        assert_eq!(column(line, 4, Encoding::Utf32, Encoding::Utf16), 5);
        assert_eq!(position(line, line.len()), Position::new(0, 5));
    }

    #[test]
    fn every_line_end_counts_once() {
        let all: Vec<_> = lines("a\r\nb\rc\n").map(|(_, line)| line).collect();
        assert_eq!(all, ["a", "b", "c", ""]);
        assert_eq!(lines("").count(), 1);
    }

    #[test]
    fn patterns_select() {
        let text = "fn a() {\n  body();\n}\nfn b() {}\n";
        let range = find(text, "fn a", Some("}"), false).unwrap();
        assert_eq!(slice(text, range), "fn a() {\n  body();\n}");
        assert_eq!(slice(text, find(text, "fn b", None, false).unwrap()), "fn b");
        assert_eq!(slice(text, find(text, "fn b", None, true).unwrap()), "fn b() {}");
        assert_eq!(slice(text, find(text, "fn b", Some("nowhere"), true).unwrap()), "fn b() {}");
        assert!(find(text, "fn c", None, false).is_none());
    }

    proptest! {
        #[test]
        fn offsets_and_positions_agree(text in "[a-zé𝒳\r\n ]{0,60}", at in 0usize..80) {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let back = offset(&text, position(&text, at));
            // Between \r and \n there is no position of its own; it is the end of the line.
            let inside_crlf = at > 0 && text[..at].ends_with('\r') && text[at..].starts_with('\n');
            prop_assert_eq!(back, if inside_crlf { at - 1 } else { at });
        }

        #[test]
        fn any_position_has_an_offset(text in ".{0,40}", line in 0u32..9, character in 0u32..90) {
            let at = offset(&text, Position::new(line, character));
            prop_assert!(text.is_char_boundary(at));
        }

        #[test]
        fn columns_survive_a_round_trip(line in "[a-zé𝒳😀]{0,30}", n in 0usize..31) {
            let chars = n.min(line.chars().count());
            for encoding in [Encoding::Utf8, Encoding::Utf16] {
                let there = column(&line, chars, Encoding::Utf32, encoding);
                prop_assert_eq!(column(&line, there, encoding, Encoding::Utf32), chars);
            }
        }
    }
}
