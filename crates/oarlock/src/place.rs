//! Places in files as people write them: `FILE`, `FILE:LINE`, `FILE:LINE:COL`, `FILE:LINE-LINE`, `FILE:LINE:COL-LINE:COL`.

use std::path::PathBuf;

use anyhow::Context as _;
use oarlock_proto::pos::{self, Encoding, Position, Range};

use crate::exit::Failure;

/// A file, and perhaps a part of it. Lines and columns count from 1; columns count characters; ends are included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) part: Option<Part>,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    start: Point,
    end: Option<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    line: u32,
    column: Option<u32>,
}

impl std::str::FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A file that exists under the whole name is meant, whatever its name looks like.
        let whole = || Self { path: text.into(), part: None };
        if std::path::Path::new(text).exists() {
            return Ok(whole());
        }
        let Some((path, part)) = split(text) else { return Ok(whole()) };
        let ordered = part.end.is_none_or(|end| {
            (end.line, end.column.unwrap_or(u32::MAX)) >= (part.start.line, part.start.column.unwrap_or(0))
        });
        if part.start.line == 0 || part.start.column == Some(0) || !ordered {
            return Err(Failure::usage(format!(
                "`{text}`: lines and columns count from 1, and the end must not lie before the start"
            )));
        }
        Ok(Self { path: path.into(), part: Some(part) })
    }
}

/// The longest tail that reads as a part.
fn split(text: &str) -> Option<(&str, Part)> {
    text.match_indices(':')
        .find_map(|(at, _)| Some((&text[..at], part(&text[at + 1..])?)).filter(|(path, _)| !path.is_empty()))
}

fn part(text: &str) -> Option<Part> {
    match text.split_once('-') {
        Some((start, end)) => Some(Part { start: point(start)?, end: Some(point(end)?) }),
        None => Some(Part { start: point(text)?, end: None }),
    }
}

fn point(text: &str) -> Option<Point> {
    match text.split_once(':') {
        Some((line, column)) => Some(Point { line: line.parse().ok()?, column: Some(column.parse().ok()?) }),
        None => Some(Point { line: text.parse().ok()?, column: None }),
    }
}

impl Place {
    /// The file's absolute path; it must exist.
    pub(crate) fn absolute(&self) -> anyhow::Result<PathBuf> {
        let path = std::path::absolute(&self.path)?;
        if !path.exists() {
            return Err(Failure::not_found(format!("no such file: {}", path.display())));
        }
        Ok(path)
    }

    /// First and last line, counted from 0.
    pub(crate) fn lines(&self) -> Option<(u32, u32)> {
        let part = self.part?;
        Some((part.start.line - 1, part.end.unwrap_or(part.start).line.max(1) - 1))
    }

    /// The part as the protocol counts: a line alone is the whole line, a line and column is a cursor.
    pub(crate) fn range(&self) -> anyhow::Result<Option<Range>> {
        let Some(part) = self.part else { return Ok(None) };
        let bytes =
            std::fs::read(&self.path).with_context(|| format!("failed to read {}", self.path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = pos::lines(&text).map(|(_, line)| line).collect();
        let position = |line: u32, column: u32| -> anyhow::Result<Position> {
            let Some(text) = lines.get(line as usize - 1) else {
                let count = lines.len() - usize::from(lines.last() == Some(&""));
                return Err(Failure::usage(format!("{} has only {count} lines", self.path.display())));
            };
            let character = pos::column(text, column as usize, Encoding::Utf32, Encoding::Utf16);
            Ok(Position::new(line - 1, u32::try_from(character)?))
        };
        let start = position(part.start.line, part.start.column.map_or(0, |column| column - 1))?;
        let end = match (part.end, part.start.column) {
            (Some(end), _) => position(end.line, end.column.unwrap_or(u32::MAX))?,
            (None, Some(_)) => start,
            (None, None) => position(part.start.line, u32::MAX)?,
        };
        Ok(Some(Range::new(start, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, text: &str, part: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let place: Place = format!("{}{part}", file.display()).parse().unwrap();
        let range = place.range().unwrap().unwrap();
        format!("{:?} {:?}", (range.start.line, range.start.character), pos::slice(text, range))
    }

    #[test]
    fn places_are_read_as_people_write_them() {
        let text = "one\naé𝒳b\nthree\n";
        assert_eq!(range("f", text, ":2"), "(1, 0) \"aé𝒳b\"");
        assert_eq!(range("f", text, ":1-2"), "(0, 0) \"one\\naé𝒳b\"");
        assert_eq!(range("f", text, ":2:2-2:3"), "(1, 1) \"é𝒳\"");
        assert_eq!(range("f", text, ":2:3"), "(1, 2) \"\"");
        assert_eq!(range("a:b-c", text, ":3"), "(2, 0) \"three\"");
    }

    #[test]
    fn wrong_places_are_refused() {
        for wrong in ["f:0", "f:3-2", "f:1:0", "f:1:5-1:2"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
        assert_eq!("f:x".parse::<Place>().unwrap().path, PathBuf::from("f:x"));
        assert_eq!("f:4-9".parse::<Place>().unwrap().lines(), Some((3, 8)));
    }
}
