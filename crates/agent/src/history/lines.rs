//! The lines of a file, one after the other, with little memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::Error;

/// Longer lines are passed over: no record is as long, and memory shall stay bounded.
const MAX_LINE: usize = 256 << 20;

/// Reads a file line by line into one buffer.
pub(crate) struct Lines {
    input: BufReader<File>,
    line: Vec<u8>,
    offset: u64,
    next: u64,
}

/// One line, without its end.
pub(crate) struct Line<'a> {
    pub(crate) offset: u64,
    /// Empty when it was too long to keep.
    pub(crate) bytes: &'a [u8],
    pub(crate) too_long: bool,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(open(path)?))
    }

    pub(crate) fn new(file: File) -> Self {
        Self { input: BufReader::with_capacity(1 << 16, file), line: Vec::new(), offset: 0, next: 0 }
    }

    /// From a place on, which must be where a line begins.
    pub(crate) fn from(path: &Path, offset: u64) -> Result<Self, Error> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(offset)).map_err(|source| failed("read", path, source))?;
        Ok(Self { next: offset, ..Self::new(file) })
    }

    /// Where the line after this one begins.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        // One huge line must not be remembered by the buffer for the rest of the file.
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
        }
        self.line.clear();
        self.offset = self.next;
        let (mut too_long, mut ended) = (false, false);
        while !ended {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            too_long |= self.line.len() + part.len() > MAX_LINE;
            if too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            ended = end.is_some();
            let used = part.len() + usize::from(ended);
            self.input.consume(used);
            self.next += used as u64;
        }
        let over = self.next == self.offset;
        Ok((!over).then_some(Line { offset: self.offset, bytes: &self.line, too_long }))
    }
}

/// Reads the bytes at places of a file.
pub(crate) struct Pieces {
    file: File,
    buffer: Vec<u8>,
}

impl Pieces {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { file: open(path)?, buffer: Vec::new() })
    }

    pub(crate) fn read(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        if self.buffer.capacity() > length.max(1 << 20) {
            self.buffer = Vec::new();
        }
        self.buffer.resize(length, 0);
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut self.buffer)?;
        Ok(&self.buffer)
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|source| failed("open", path, source))
}

/// The error for something that was tried with a file.
pub(crate) fn failed(act: &str, path: &Path, source: io::Error) -> Error {
    Error::Io { action: format!("{act} {}", path.display()), source }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            assert!(!line.too_long);
            all.push((line.offset, line.bytes.to_vec()));
        }
        let mut pieces = Pieces::open(file.path()).unwrap();
        for (offset, line) in &all {
            assert_eq!(pieces.read(*offset, line.len()).unwrap(), line);
        }
        all
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(lines(b"a\n\nbc"), [(0, b"a".to_vec()), (2, Vec::new()), (3, b"bc".to_vec())]);
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n"), [(0, Vec::new())]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn lines_are_what_splitting_gives(parts in prop::collection::vec("[a-c]{0,9}|x{70000}", 0..6)) {
            let text = parts.join("\n");
            let read: Vec<_> = lines(text.as_bytes()).into_iter().map(|(_, line)| line).collect();
            let want: Vec<_> = text.split_terminator('\n').map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(read, want);
        }
    }
}
