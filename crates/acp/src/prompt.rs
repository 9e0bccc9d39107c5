//! A prompt's content, as the CLI takes it: pictures and documents, then what resources hold, then what is said.
//!
//! The CLI looks for a slash command and for `@` mentions in the last block, if that is a text, and nowhere else (2.1.197,
//! 2.1.325). So all that is said is one text, and it comes last. What a resource holds is not in it: a file that has
//! `@something` in it does not bring another file along.
//!
//! What the API would refuse is refused here: a message that is in the transcript would be sent again with every turn.

use std::path::Path;

use oarlock_agent::stream::{
    self, Base64Source, Content, DocumentBlock, ImageBlock, Source, TextBlock, UrlSource,
};
use oarlock_proto::acp::{ContentBlock, EmbeddedResource, ImageContent, ResourceContents};
use oarlock_proto::jsonrpc::ErrorObject;

/// The pictures that the API takes, and how their base64 begins.
const IMAGES: [(&str, &str); 4] =
    [("image/png", "iVBOR"), ("image/jpeg", "/9j/"), ("image/gif", "R0lG"), ("image/webp", "UklG")];

/// What the CLI is sent for a prompt.
pub(crate) fn content(prompt: Vec<ContentBlock>) -> Result<Content, ErrorObject> {
    let mut draft = Draft::default();
    for block in prompt {
        match block {
            ContentBlock::Text(text) => draft.say(&text.text),
            ContentBlock::ResourceLink(link) => draft.mention(&name_of(&link.uri, &link.name), &link.uri),
            ContentBlock::Image(image) => draft.picture(image)?,
            ContentBlock::Resource(EmbeddedResource { resource }) => draft.resource(resource)?,
            ContentBlock::Audio(_) => {
                return Err(refused("Claude Code cannot listen to audio; send text, images or files"));
            }
            _ => return Err(refused("a content block of a kind that this agent does not know")),
        }
    }
    draft.finish()
}

fn refused(why: impl AsRef<str>) -> ErrorObject {
    ErrorObject::invalid_params(format!("the prompt was not sent: {}", why.as_ref()))
}

/// The words of a prompt, without what is attached to them.
pub(crate) fn words(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        content => {
            content.blocks().last().and_then(stream::ContentBlock::as_text).unwrap_or_default().to_owned()
        }
    }
}

/// A message that is being put together.
#[derive(Default)]
struct Draft {
    media: Vec<stream::ContentBlock>,
    /// What resources hold.
    contexts: Vec<stream::ContentBlock>,
    /// What is said.
    text: String,
    /// Pictures since the last word: where they are is told if more is said.
    pictures: Vec<usize>,
    /// How many pictures there are.
    shown: usize,
    /// What the text ends in.
    end: End,
}

/// What a text ends in, which tells what must be between it and the next one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum End {
    #[default]
    Words,
    /// `[@name](uri)`: a full stop may follow.
    Link,
    /// `@/a/file`: a space must follow.
    Mention,
}

impl Draft {
    /// Goes on with a text. Two that would run together are kept apart.
    fn say(&mut self, text: &str) {
        self.add(text, '\n');
    }

    fn add(&mut self, text: &str, separator: char) {
        for number in std::mem::take(&mut self.pictures) {
            // Pictures at the beginning need no word: nothing is before them.
            if !self.text.is_empty() {
                self.append(&format!("[Image #{number}]"), ' ');
            }
        }
        match self.end {
            End::Words => self.append(text, separator),
            End::Link if !text.starts_with(char::is_alphanumeric) => self.text += text,
            End::Link | End::Mention => self.append(text, ' '),
        }
        self.end = End::Words;
    }

    fn append(&mut self, text: &str, separator: char) {
        let touches = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        if touches(self.text.chars().next_back()) && touches(text.chars().next()) {
            self.text.push(separator);
        }
        self.text += text;
    }

    /// A file of this machine is mentioned as the CLI has it, which then reads it; anything else is a link.
    fn mention(&mut self, name: &str, uri: &str) {
        match local_file(uri) {
            Some(file) => {
                self.add(&file, ' ');
                self.end = End::Mention;
            }
            None => self.link(name, uri),
        }
    }

    fn link(&mut self, name: &str, uri: &str) {
        if self.end != End::Words {
            self.append(" ", ' ');
        }
        self.add(&format!("[@{name}]({uri})"), ' ');
        self.end = End::Link;
    }

    fn picture(&mut self, image: ImageContent) -> Result<(), ErrorObject> {
        if !image.data.is_empty() {
            return self.base64_picture(&image.mime_type, image.data);
        }
        match image.uri {
            Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                self.show(Source::Url(UrlSource { url, ..Default::default() }));
            }
            Some(uri) => self.mention(&name_of(&uri, ""), &uri),
            None => return Err(refused("an image has neither data nor a uri")),
        }
        Ok(())
    }

    fn base64_picture(&mut self, mime_type: &str, data: String) -> Result<(), ErrorObject> {
        let data = match data.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
            Some((_, data)) => data.to_owned(),
            None => data,
        };
        // The bytes know better than the label.
        let Some((media_type, _)) = IMAGES.iter().find(|(_, begin)| data.starts_with(begin)) else {
            return Err(refused(format!("an image ({mime_type}) that is no PNG, JPEG, GIF or WebP")));
        };
        if decode(&data).is_none() {
            return Err(refused("an image whose data is not base64"));
        }
        let media_type = (*media_type).to_owned();
        self.show(Source::Base64(Base64Source { media_type, data, ..Default::default() }));
        Ok(())
    }

    fn show(&mut self, source: Source) {
        self.media.push(stream::ContentBlock::Image(ImageBlock { source, ..Default::default() }));
        self.shown += 1;
        self.pictures.push(self.shown);
    }

    fn resource(&mut self, resource: ResourceContents) -> Result<(), ErrorObject> {
        let ResourceContents { uri, mime_type, text, blob } = resource;
        let name = name_of(&uri, "");
        if let Some(text) = text {
            self.link(&name, &uri);
            self.attach(&uri, &text);
            return Ok(());
        }
        let Some(blob) = blob else { return Err(refused(format!("the resource {uri} is empty"))) };
        let mime_type = mime_type.unwrap_or_default();
        let kind = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if IMAGES.iter().any(|(_, begin)| blob.starts_with(begin)) {
            self.link(&name, &uri);
            return self.base64_picture(&kind, blob);
        }
        let Some(bytes) = decode(&blob) else {
            return Err(refused(format!("the data of the resource {uri} is not base64")));
        };
        self.link(&name, &uri);
        if kind == "application/pdf" && bytes.starts_with(b"%PDF") {
            let source = Base64Source { media_type: kind, data: blob, ..Default::default() };
            let source = Source::Base64(source);
            let document = DocumentBlock { source, title: Some(name), ..Default::default() };
            self.media.push(stream::ContentBlock::Document(document));
            return Ok(());
        }
        match String::from_utf8(bytes) {
            Ok(text) if kind.is_empty() || is_text(&kind) => self.attach(&uri, &text),
            _ => {
                let kind = if kind.is_empty() { "unknown type" } else { &kind };
                self.text += &format!(" (not included: {kind})");
            }
        }
        Ok(())
    }

    fn attach(&mut self, uri: &str, text: &str) {
        let uri = uri.replace('"', "%22");
        self.contexts.push(text_block(format!("<context ref=\"{uri}\">\n{text}\n</context>")));
    }

    fn finish(mut self) -> Result<Content, ErrorObject> {
        if let Some(command) = self.text.strip_prefix("/mcp:").and_then(mcp_command) {
            self.text = command;
        }
        let mut blocks = self.media;
        blocks.append(&mut self.contexts);
        let is_said = !self.text.trim().is_empty();
        match (blocks.is_empty(), is_said) {
            (true, false) => Err(refused("there is nothing in it")),
            (true, true) => Ok(Content::Text(self.text)),
            (false, false) => Ok(Content::Blocks(blocks)),
            (false, true) => {
                blocks.push(text_block(self.text));
                Ok(Content::Blocks(blocks))
            }
        }
    }
}

/// A file of this machine, as the CLI mentions it: `@/a/b.txt`, `@"/a/b c.txt"`, `@/a/b.txt#L1-9`.
fn local_file(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let (address, lines) = rest.split_once('#').unwrap_or((rest, ""));
    let address = address.split('?').next().unwrap_or(address);
    let path = percent_decoded(address.strip_prefix("localhost").unwrap_or(address));
    if path.contains(['"', '\n']) || !Path::new(&path).is_file() {
        return None;
    }
    let (first, last) = lines
        .strip_prefix('L')
        .map_or(("", ""), |lines| lines.split_once(['-', ':']).unwrap_or((lines, lines)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let last = last.trim_start_matches('L');
    if path.contains(char::is_whitespace) {
        return Some(format!("@\"{path}\""));
    }
    if is_number(first) && is_number(last) {
        return Some(format!("@{path}#L{first}-{last}"));
    }
    Some(format!("@{path}"))
}

/// `/mcp:server:prompt args`, as this agent lists the prompts of MCP servers, in the CLI's own spelling.
fn mcp_command(rest: &str) -> Option<String> {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (command, args) = rest.split_at(end);
    let (server, prompt) = command.split_once(':')?;
    let is_named = !server.is_empty() && !prompt.is_empty();
    is_named.then(|| format!("/{server}:{prompt} (MCP){args}"))
}

fn text_block(text: String) -> stream::ContentBlock {
    stream::ContentBlock::Text(TextBlock { text, ..Default::default() })
}

/// The name of a resource: its own, or the last part of its address.
fn name_of(uri: &str, name: &str) -> String {
    if !name.is_empty() {
        return name.to_owned();
    }
    let path = uri.split(['?', '#']).next().unwrap_or(uri).trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or(path);
    percent_decoded(if last.is_empty() { uri } else { last })
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|_| byte == b'%') {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn is_text(mime_type: &str) -> bool {
    const TEXTS: [&str; 10] =
        ["json", "xml", "javascript", "typescript", "yaml", "x-yaml", "toml", "x-sh", "sql", "graphql"];
    mime_type.starts_with("text/")
        || mime_type.ends_with("+json")
        || mime_type.ends_with("+xml")
        || mime_type.strip_prefix("application/").is_some_and(|kind| TEXTS.contains(&kind))
}

/// The bytes of base64, with or without padding and line breaks.
fn decode(data: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(data.len() / 4 * 3 + 3);
    let (mut bits, mut held) = (0u32, 0);
    let mut padding = 0;
    for byte in data.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            b'\r' | b'\n' => continue,
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xFF) as u8);
        }
    }
    (padding <= 2 && held != 6).then_some(out)
}

#[cfg(test)]
#[path = "prompt/tests.rs"]
mod tests;
