//! Markdown as it comes: lightly styled, line by line, and nothing is printed twice.
//!
//! A line is printed as far as nothing that follows can change how it looks: a word of plain text at once, `**bold` when
//! its end is there. Blocks are told by how a line begins; emphasis that goes over several lines is left as it is.

mod inline;

use anstyle::{AnsiColor, Style};

use crate::output::{DIM, STRONG, visible};

const CODE: Style = AnsiColor::Cyan.on_default();
const TITLE: Style = STRONG.underline();

/// Takes text in any pieces and gives what can be printed of it.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// What of the line is not printed yet.
    line: String,
    /// The look of the line whose beginning is printed.
    begun: Option<Style>,
    fence: Option<Fence>,
}

/// A code block that is open.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

/// How a line begins.
#[derive(Debug, PartialEq)]
enum Begin {
    /// Too little of it is known.
    Unknown,
    /// It has to be known whole: a fence, a row of a table.
    Whole,
    /// After so many bytes, for which `shown` stands, comes text that looks like this.
    Text { skip: usize, shown: String, look: Style },
}

impl Markdown {
    /// A whole text, ending with a line end.
    pub(super) fn render(text: &str) -> String {
        let mut markdown = Self::default();
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }

    /// More text; what can be printed now.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(rest) => {
                    self.line.push_str(rest);
                    self.end_line(&mut out);
                    out.push('\n');
                }
                None => {
                    self.line.push_str(piece);
                    self.flow(&mut out);
                }
            }
        }
        out
    }

    /// The text is over; the rest of it.
    pub(super) fn finish(&mut self) -> String {
        let mut out = String::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        *self = Self::default();
        out
    }

    /// Prints what nothing can change any more of a line that goes on.
    fn flow(&mut self, out: &mut String) {
        if self.fence.is_some() {
            return;
        }
        if self.begun.is_none()
            && let Begin::Text { skip, shown, look } = begin(&self.line, false)
        {
            out.push_str(&shown);
            self.line.drain(..skip);
            self.begun = Some(look);
        }
        if let Some(look) = self.begun
            && let Some(blank) = self.line.rfind([' ', '\t'])
            && inline::is_settled(&self.line[..blank])
        {
            inline::render(&self.line[..=blank], look, out);
            self.line.drain(..=blank);
        }
    }

    fn end_line(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if let Some(fence) = self.fence {
            let ends = fence.is_ended_by(line);
            if ends {
                self.fence = None;
            }
            styled(visible(line), if ends { DIM } else { CODE }, out);
        } else if let Some(look) = self.begun.take() {
            inline::render(line, look, out);
        } else {
            match begin(line, true) {
                Begin::Text { skip, shown, look } => {
                    out.push_str(&shown);
                    inline::render(&line[skip..], look, out);
                }
                _ => {
                    self.fence = Fence::begun_by(line);
                    styled(visible(line), if self.fence.is_some() { DIM } else { Style::new() }, out);
                }
            }
        }
    }
}

impl Fence {
    fn begun_by(line: &str) -> Option<Self> {
        // Before a fence there may be the mark of a list or of a quotation.
        let rest = line.trim_start_matches(|c: char| c.is_whitespace() || "->*+.)0123456789".contains(c));
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = rest.chars().take_while(|&c| c == mark).count();
        let info = &rest[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_ended_by(self, line: &str) -> bool {
        let rest = line.trim_start_matches([' ', '\t', '>']).trim_end();
        rest.len() >= self.length && rest.chars().all(|c| c == self.mark)
    }
}

/// How a line begins. A line that is not `whole` may go on.
fn begin(line: &str, whole: bool) -> Begin {
    let rest = line.trim_start_matches([' ', '\t']);
    let indent = &line[..line.len() - rest.len()];
    let text = |skip: usize, shown: &str, look| Begin::Text {
        skip: indent.len() + skip,
        shown: format!("{indent}{shown}"),
        look,
    };
    let unknown = |instead| if whole { instead } else { Begin::Unknown };
    let plain = || text(0, "", Style::new());
    let Some(first) = rest.chars().next() else { return unknown(plain()) };
    let run = rest.chars().take_while(|&c| c == first).count();
    let after = rest[first.len_utf8() * run..].chars().next();
    let blank = |c: Option<char>| c.is_none() || c.is_some_and(|c| c == ' ' || c == '\t');
    match first {
        '`' | '~' if run >= 3 && Fence::begun_by(rest).is_some() => Begin::Whole,
        '`' | '~' | '=' if after.is_none() => unknown(plain()),
        '|' => Begin::Whole,
        '#' if run <= 6 && blank(after) => match after {
            None => unknown(plain()),
            Some(_) => text(run + 1, "", if run == 1 { TITLE } else { STRONG }),
        },
        '-' | '*' | '_' if after.is_none() => unknown(if run >= 3 { Begin::Whole } else { plain() }),
        '-' | '+' | '*' if run == 1 && blank(after) => match after {
            None => unknown(plain()),
            Some(_) => nested(&rest[2..], whole, indent.len() + 2, &format!("{indent}• ")),
        },
        '>' => {
            let blanks = usize::from(rest[1..].starts_with(' '));
            match rest[1..].chars().next() {
                None => unknown(text(1, "│", DIM)),
                Some(_) => {
                    let shown = format!("{indent}{DIM}│{DIM:#} ");
                    nested(&rest[1 + blanks..], whole, indent.len() + 1 + blanks, &shown)
                }
            }
        }
        '0'..='9' => {
            let digits = rest.chars().take_while(char::is_ascii_digit).count();
            let mut behind = rest[digits..].chars();
            match (behind.next(), behind.next()) {
                _ if digits > 9 => plain(),
                (None, _) | (Some('.' | ')'), None) => unknown(plain()),
                (Some('.' | ')'), Some(' ' | '\t')) => {
                    let shown = format!("{indent}{} ", &rest[..=digits]);
                    nested(&rest[digits + 2..], whole, indent.len() + digits + 2, &shown)
                }
                _ => plain(),
            }
        }
        _ => plain(),
    }
}

/// What comes after the mark of a list or of a quotation.
fn nested(rest: &str, whole: bool, skipped: usize, shown_before: &str) -> Begin {
    match begin(rest, whole) {
        Begin::Text { skip, shown, look } => {
            Begin::Text { skip: skipped + skip, shown: format!("{shown_before}{shown}"), look }
        }
        other => other,
    }
}

/// Text in a style, which ends with it.
fn styled(text: String, style: Style, out: &mut String) {
    if style.is_plain() || text.is_empty() {
        out.push_str(&text);
    } else {
        out.push_str(&format!("{style}{text}{style:#}"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(&Markdown::render(text)).to_string()
    }

    fn in_pieces(text: &str, at: &[usize]) -> String {
        let mut markdown = Markdown::default();
        let (mut out, mut from) = (String::new(), 0);
        for (index, _) in text.char_indices().filter(|(index, _)| at.contains(index)) {
            out.push_str(&markdown.push(&text[from..index]));
            from = index;
        }
        out.push_str(&markdown.push(&text[from..]));
        out + &markdown.finish()
    }

    #[test]
    fn what_is_marked_is_styled_and_the_marks_are_gone() {
        let shown = Markdown::render("# Title\n\nSome **bold**, *soft*, `code` and [a link](https://x.y).\n");
        for part in [
            "\u{1b}[1m\u{1b}[4mTitle\u{1b}[0m\n",
            "\u{1b}[1mbold\u{1b}[0m",
            "\u{1b}[3msoft\u{1b}[0m",
            "\u{1b}[36mcode\u{1b}[0m",
        ] {
            assert!(shown.contains(part), "{part:?} in {shown:?}");
        }
        assert_eq!(
            plain("# Title\n\nSome **bold**, *soft*, `code` and [a link](https://x.y)."),
            "Title\n\nSome bold, soft, code and a link (https://x.y).\n"
        );
    }

    #[test]
    fn blocks_are_told_by_how_a_line_begins() {
        for (text, want) in [
            ("- one\n  * two\n1. three\n10) ten", "• one\n  • two\n1. three\n10) ten\n"),
            ("> said\n>> again", "│ said\n│ │ again\n"),
            ("> - # deep", "│ • deep\n"),
            ("---\n***\n- -", "---\n***\n• -\n"),
            ("| a | **b** |\n|---|---|", "| a | **b** |\n|---|---|\n"),
            ("#hash\n####### seven", "#hash\n####### seven\n"),
            ("12 eggs, 3.5 litres\n-5 degrees", "12 eggs, 3.5 litres\n-5 degrees\n"),
            ("<https://a.b> and <b>html</b>", "https://a.b and <b>html</b>\n"),
            ("[ref]: https://x.y \"t\"", "[ref]: https://x.y \"t\"\n"),
            ("    indented\n\ttab", "    indented\n\ttab\n"),
            ("Title\n=====\n", "Title\n=====\n"),
        ] {
            assert_eq!(plain(text), want, "{text:?}");
        }
    }

    #[test]
    fn code_is_left_as_it_is() {
        let text = "```rust\nlet x = **p; // `q` # r\n- no list\n``\n```\n**after**\n";
        assert_eq!(plain(text), "```rust\nlet x = **p; // `q` # r\n- no list\n``\n```\nafter\n");
        let nested = "1. do:\n   ~~~~\n   *a*\n   ~~~\n   ~~~~\n- ```\n  *b*\n  ```\n*c*\n";
        assert!(plain(nested).ends_with("  *b*\n  ```\nc\n"), "{}", plain(nested));
        assert_eq!(plain("```not a fence``` *x*"), "not a fence x\n");
    }

    #[test]
    fn plain_words_are_printed_at_once_and_marks_wait_for_their_end() {
        let mut markdown = Markdown::default();
        assert_eq!(markdown.push("Hello wor"), "Hello ");
        assert_eq!(markdown.push("ld and **bo"), "world and ");
        assert_eq!(markdown.push("ld words "), "");
        assert_eq!(markdown.push("here** then "), "\u{1b}[1mbold words here\u{1b}[0m then ");
        assert_eq!(markdown.push("2 * 3 is snake_case "), "2 * 3 is snake_case ");
        assert_eq!(markdown.push("`half\n"), "`half\n");
        assert_eq!(markdown.push("-"), "");
        assert_eq!(markdown.push(" it"), "• ");
        assert_eq!(markdown.finish(), "it");
    }

    #[test]
    fn text_cannot_send_escape_sequences() {
        for text in
            ["\u{1b}[2J", "&#27;[2J &#x9b;2J", "`\u{1b}]0;x\u{7}`", "[\u{1b}[31m](\u{9b}m)", "a\rb\u{202e}"]
        {
            let shown = Markdown::render(text);
            let stripped = anstream::adapter::strip_str(&shown).to_string();
            assert!(!stripped.contains(|c: char| c.is_control() && c != '\n'), "{stripped:?}");
            assert!(
                !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]") && !shown.contains('\u{202e}')
            );
        }
    }

    /// Text with much that means something.
    fn source() -> impl Strategy<Value = String> {
        let token = prop_oneof![
            "[a-z]{1,4}",
            Just(" ".to_owned()),
            Just("\n".to_owned()),
            "[*_`~\\[\\]()<>#|!&;:+.=\\\\-]{1,3}",
            Just("```".to_owned()),
            Just("1. ".to_owned()),
            Just("- ".to_owned()),
            Just("> ".to_owned()),
            Just("&#27;".to_owned()),
            Just("\u{1b}[31m".to_owned()),
            Just("\r".to_owned()),
            Just("é漢".to_owned()),
        ];
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_foreign_escape_gets_through(text in source()) {
            let shown = Markdown::render(&text);
            // Our own styles are taken away; whatever else a terminal obeys must not be there.
            let stripped = anstream::adapter::strip_str(&shown).to_string();
            prop_assert!(!stripped.contains(|c: char| c.is_control() && c != '\n'), "{:?}", shown);
            for escape in shown.match_indices('\u{1b}') {
                let rest = &shown[escape.0 + 1..];
                let ours = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
                prop_assert!(ours.is_some_and(|(code, _)| code.chars().all(|c| c.is_ascii_digit() || c == ';')));
            }
            let mut left = stripped.chars();
            for character in text.chars().filter(|c| c.is_alphabetic()) {
                prop_assert!(left.any(|c| c == character), "{character} of {text:?} is not in {stripped:?}");
            }
        }

        #[test]
        fn pieces_make_no_difference(text in source(), at in prop::collection::vec(0..160_usize, 0..20)) {
            let mut whole = Markdown::default();
            let want = whole.push(&text) + &whole.finish();
            let strip = |text: &str| anstream::adapter::strip_str(text).to_string();
            prop_assert_eq!(strip(&in_pieces(&text, &at)), strip(&want));
        }
    }
}
