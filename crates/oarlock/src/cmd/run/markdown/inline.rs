//! The inside of a line: emphasis, code, links.

use anstyle::Style;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{CODE, styled};
use crate::output::{DIM, visible};

/// In front of a line it keeps the parser from seeing a block in it, and changes nothing else.
const GUARD: &str = "a ";
/// A longer text is not looked into before its line ends.
const MAX_UNSETTLED: usize = 4096;

/// Prints text without a line end.
pub(super) fn render(text: &str, look: Style, out: &mut String) {
    let inner = text.trim_matches([' ', '\t']);
    let Some(start) = text.find(inner).filter(|_| !inner.is_empty()) else {
        out.push_str(&visible(text));
        return;
    };
    out.push_str(&text[..start]);
    let source = format!("{GUARD}{}", visible(inner));
    let mut looks = vec![look];
    let mut guarded = true;
    // Where the texts of open links begin in `plain`, which is all text without styles.
    let (mut links, mut plain) = (Vec::new(), String::new());
    for event in Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH) {
        let look = looks.last().copied().unwrap_or(look);
        let mut print = |text: &str, look: Style| {
            plain.push_str(text);
            styled(visible(text), look, out);
        };
        match event {
            Event::Text(text) => {
                let text = if std::mem::take(&mut guarded) {
                    text.strip_prefix(GUARD).unwrap_or(&text).to_owned()
                } else {
                    text.into_string()
                };
                print(&text, look);
            }
            Event::Code(code) => print(&code, look.fg_color(CODE.get_fg_color())),
            Event::InlineHtml(html) | Event::Html(html) => print(&html, look),
            Event::SoftBreak | Event::HardBreak => print(" ", look),
            Event::Start(Tag::Emphasis) => looks.push(look.italic()),
            Event::Start(Tag::Strong) => looks.push(look.bold()),
            Event::Start(Tag::Strikethrough) => looks.push(look.strikethrough()),
            Event::Start(Tag::Link { dest_url, title, .. }) => {
                links.push((plain.len(), dest_url, title));
                looks.push(look.underline());
            }
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                links.push((plain.len(), dest_url, title));
                looks.push(look);
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                looks.pop();
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                looks.pop();
                let Some((from, url, title)) = links.pop() else { continue };
                if plain[from..] == *url {
                    continue;
                }
                let title = if title.is_empty() { String::new() } else { format!(" \"{title}\"") };
                styled(visible(&format!(" ({url}{title})")), DIM, out);
            }
            _ => {}
        }
    }
    out.push_str(&text[start + inner.len()..]);
}

/// Can nothing that follows after a blank change how this text looks?
pub(super) fn is_settled(text: &str) -> bool {
    const MARKS: &[char] = &['`', '*', '_', '~', '[', '<'];
    if !text.contains(MARKS) {
        return true;
    }
    if text.len() > MAX_UNSETTLED {
        return false;
    }
    // What the parser has used up stays as it is; a mark that is still there may open something.
    let source = format!("{GUARD}{}", visible(text.trim_matches([' ', '\t'])));
    let mut left = String::new();
    for event in Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) => left.push_str(&text),
            Event::Code(_) | Event::InlineHtml(_) => left.push('x'),
            Event::Start(_) | Event::End(_) => {}
            _ => left.push(' '),
        }
    }
    let characters: Vec<char> = left.chars().collect();
    characters.iter().enumerate().all(|(at, mark)| {
        let before = at.checked_sub(1).map_or(' ', |at| characters[at]);
        let after = characters.get(at + 1).copied().unwrap_or(' ');
        let alone = before.is_whitespace() && after.is_whitespace();
        match mark {
            '`' | '[' | '~' => false,
            '*' => alone,
            '_' => alone || (before.is_alphanumeric() && after.is_alphanumeric()),
            '<' => !(after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?')),
            _ => true,
        }
    })
}
