//! The last words of the CLI on stderr.

use std::collections::VecDeque;

/// As much as is kept.
const KEPT: usize = 32 << 10;

/// The end of what was written to stderr: always read, never more than a little kept.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(KEPT);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    pub(crate) fn text(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        String::from_utf8_lossy(&[front, back].concat()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Tail::default();
        for n in 0..10_000 {
            tail.add(format!("line {n}\n").as_bytes());
        }
        assert_eq!(tail.bytes.len(), KEPT);
        assert!(tail.text().ends_with("line 9999\n"));
        tail.add(&vec![b'x'; 3 * KEPT]);
        assert_eq!(tail.text(), "x".repeat(KEPT));
    }
}
