//! Splitting what the CLI prints into lines, and a first look at each.

use bytes::{Bytes, BytesMut};

/// What a line is about, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Part of the conversation: nothing that the driver must know.
    Data,
    /// To be read by the driver; it may be a control frame, which the program never sees.
    Other,
}

/// The frames that come in masses. They begin like this, so a glance is enough; the few others are read in full.
const MASSES: [&[u8]; 4] = [
    br#"{"type":"stream_event","#,
    br#"{"type":"assistant","#,
    br#"{"type":"system","subtype":"thinking_tokens","#,
    br#"{"type":"tool_progress","#,
];

/// Tool results, and replays of what the host has sent.
const USER: &[u8] = br#"{"type":"user","#;

fn kind(line: &[u8], replays_wanted: bool) -> Kind {
    let masses = MASSES.iter().any(|start| line.starts_with(start));
    if masses || (!replays_wanted && line.starts_with(USER)) { Kind::Data } else { Kind::Other }
}

/// Something between two line ends.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    /// Several whole lines of [`Kind::Data`].
    Data(Bytes),
    /// One line of [`Kind::Other`].
    Other(Bytes),
    /// A line that was larger than the limit, and is gone.
    TooLarge,
}

/// Bytes that have been read and not yet split.
pub(crate) struct Lines {
    /// Where to read to.
    pub(crate) buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    limit: usize,
    /// The rest of a line that was too large is thrown away.
    skipping: bool,
    /// Does the driver wait for the replay of a message? Else it need not look into tool results, which are large.
    pub(crate) replays_wanted: bool,
}

/// As much as is read at once.
pub(crate) const READ: usize = 64 << 10;

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipping: false, replays_wanted: false }
    }

    /// Room for the next read.
    pub(crate) fn reserve(&mut self) {
        if self.buffer.capacity() - self.buffer.len() < READ / 4 {
            // A long line wants to grow in large steps, or it is copied again and again.
            self.buffer.reserve(READ.max(self.buffer.len()));
        }
    }

    /// Gives everything that is whole. At the end of the input (`last`) that includes a line without an end.
    pub(crate) fn split(&mut self, last: bool, mut give: impl FnMut(Piece)) {
        // Lines of data that follow each other are given in one piece.
        let mut data = 0;
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched.max(at)..]) {
            let end = self.searched.max(at) + found;
            self.searched = 0;
            let line = &self.buffer[at..end];
            if std::mem::take(&mut self.skipping) || line.len() > self.limit {
                self.give_data(&mut data, &mut at, &mut give);
                let _ = self.buffer.split_to(end + 1 - at);
                at = 0;
                give(Piece::TooLarge);
            } else if kind(line, self.replays_wanted) == Kind::Data {
                data = end + 1;
                at = end + 1;
            } else {
                let length = end - at;
                self.give_data(&mut data, &mut at, &mut give);
                give(Piece::Other(self.buffer.split_to(length + 1).freeze()));
            }
        }
        self.give_data(&mut data, &mut at, &mut give);
        self.searched = self.buffer.len();
        if self.skipping || self.buffer.len() > self.limit {
            self.buffer.clear();
            self.searched = 0;
            if last {
                give(Piece::TooLarge);
            }
            self.skipping = !last;
        } else if last && !self.buffer.is_empty() {
            let line = self.buffer.split().freeze();
            self.searched = 0;
            give(if kind(&line, self.replays_wanted) == Kind::Data {
                Piece::Data(line)
            } else {
                Piece::Other(line)
            });
        }
    }

    /// Gives the lines of data before `at`, and moves `at` to the new beginning.
    fn give_data(&mut self, data: &mut usize, at: &mut usize, give: &mut impl FnMut(Piece)) {
        if *data > 0 {
            give(Piece::Data(self.buffer.split_to(*data).freeze()));
            *at -= *data;
            *data = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(input: &[u8], cuts: &[usize], limit: usize) -> Vec<Piece> {
        let mut lines = Lines::new(limit);
        let mut pieces = Vec::new();
        let mut from = 0;
        for &cut in cuts.iter().chain([&input.len()]) {
            let cut = cut.clamp(from, input.len());
            lines.reserve();
            lines.buffer.extend_from_slice(&input[from..cut]);
            lines.split(false, |piece| pieces.push(piece));
            from = cut;
        }
        lines.split(true, |piece| pieces.push(piece));
        pieces
    }

    /// What the lines are, however they were cut.
    fn flat(pieces: &[Piece]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Data(lines) => {
                    all.extend(
                        lines
                            .strip_suffix(b"\n")
                            .unwrap_or(lines)
                            .split(|byte| *byte == b'\n')
                            .map(Vec::from),
                    );
                }
                Piece::Other(line) => all.push(line.strip_suffix(b"\n").unwrap_or(line).to_vec()),
                Piece::TooLarge => all.push(b"too large".to_vec()),
            }
        }
        all
    }

    #[test]
    fn data_comes_in_one_piece_and_the_rest_line_by_line() {
        let data = r#"{"type":"stream_event","n":1}"#;
        let input = format!("{data}\n{data}\n{{\"type\":\"result\"}}\n{data}\nlast");
        assert_eq!(
            run(input.as_bytes(), &[], 1000),
            [
                Piece::Data(format!("{data}\n{data}\n").into()),
                Piece::Other("{\"type\":\"result\"}\n".into()),
                Piece::Data(format!("{data}\n").into()),
                Piece::Other("last".into()),
            ]
        );
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_alone() {
        for cuts in [&[][..], &[3, 9, 14], &[13]] {
            assert_eq!(flat(&run(b"ok\n0123456789ab\nfine\n", cuts, 8)), [&b"ok"[..], b"too large", b"fine"]);
        }
        assert_eq!(flat(&run(b"0123456789ab", &[4], 8)), [b"too large"]);
    }

    proptest! {
        #[test]
        fn lines_are_the_same_wherever_the_input_is_cut(
            lines in proptest::collection::vec(
                prop_oneof!["[a-z]{0,30}", Just(r#"{"type":"stream_event","x":1}"#.to_owned())], 0..20),
            cuts in proptest::collection::vec(0usize..400, 0..8),
            ended in any::<bool>(),
        ) {
            let mut input = lines.join("\n").into_bytes();
            if ended && !lines.is_empty() {
                input.push(b'\n');
            }
            let mut want: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
            // An empty last line without an end is no line.
            if !ended && want.last().is_some_and(Vec::is_empty) {
                want.pop();
            }
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(flat(&run(&input, &cuts, 1000)), want);
        }
    }
}
