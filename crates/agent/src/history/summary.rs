//! What a session is about, from the beginning and the end of its transcript.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{scan, time};
use crate::stream::{Content, ContentBlock, Json, UserMessage};

/// How much is read at either end.
const WINDOW: usize = 64 << 10;
/// How much of a prompt is kept.
const PROMPT: usize = 200;

/// What a list of sessions shows of one.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The session's id.
    pub id: String,
    /// What to call it: the name somebody gave it, or else the model's title, the last prompt, an old summary, the first
    /// prompt.
    pub title: String,
    /// The name somebody gave it, or else the model's title.
    pub custom_title: Option<String>,
    /// The first thing that was asked, in one line, cut to 200 characters.
    pub first_prompt: Option<String>,
    /// The last thing that was asked, as the CLI wrote it down.
    pub last_prompt: Option<String>,
    /// A word to find it by.
    pub tag: Option<String>,
    /// The directory it began in.
    pub cwd: Option<String>,
    /// The branch that was checked out at last.
    pub git_branch: Option<String>,
    /// When it began.
    #[serde(serialize_with = "iso_or_null")]
    pub created: Option<SystemTime>,
    /// When something was last written to it.
    #[serde(serialize_with = "iso")]
    pub modified: SystemTime,
    /// The transcript's size in bytes; 0 when it is not a file.
    pub size: u64,
    /// How many messages it has, all branches together; only when that was asked for.
    pub messages: Option<u64>,
    /// The name of the project's folder.
    pub project: String,
    /// The transcript; empty when it is not a file.
    pub path: PathBuf,
}

fn iso<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time::format(*at))
}

fn iso_or_null<S: Serializer>(at: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(time::format).serialize(serializer)
}

/// What can be said about a session after some of its records: a fold over them, in order.
///
/// It is what a [`Store`](crate::store::Store) keeps beside the records of a session, so that listing needs not load
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Digest {
    #[serde(skip_serializing_if = "Option::is_none")]
    sidechain: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_prompt: Option<String>,
    /// The first command, for a session without a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ai_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
}

impl Digest {
    /// Takes in the next record.
    pub fn add(&mut self, record: &Json) {
        self.add_text(record.text(), true);
    }

    /// `false` when the text is no record.
    fn add_text(&mut self, text: &str, may_be_first: bool) -> bool {
        let marks: Option<Marks<'_>> = serde_json::from_str(text).ok();
        if let Some(marks) = marks {
            self.take(marks, may_be_first);
            return true;
        }
        let Some(text) = scan::repaired(text) else { return false };
        let marks: Option<Marks<'_>> = serde_json::from_str(&text).ok();
        marks.map(|marks| self.take(marks, may_be_first)).is_some()
    }

    fn take(&mut self, marks: Marks<'_>, may_be_first: bool) {
        if scan::is_private(&marks.kind) {
            return;
        }
        self.sidechain.get_or_insert(marks.is_sidechain);
        if self.created.is_none() {
            self.created = marks.timestamp.as_deref().and_then(time::parse).map(time::millis);
        }
        if self.cwd.is_none() {
            self.cwd = marks.cwd.filter(|cwd| !cwd.is_empty()).map(Cow::into_owned);
        }
        for (last, value) in [
            (&mut self.custom_title, marks.custom_title),
            (&mut self.ai_title, marks.ai_title),
            (&mut self.last_prompt, marks.last_prompt),
            (&mut self.summary, marks.summary),
            (&mut self.git_branch, marks.git_branch),
        ] {
            if let Some(value) = value {
                *last = Some(value.into_owned());
            }
        }
        if marks.kind == "tag" {
            self.tag = marks.tag.filter(|tag| !tag.is_empty()).map(Cow::into_owned);
        }
        let wanted = may_be_first && self.first_prompt.is_none() && marks.kind == "user";
        if wanted && !marks.is_meta && !marks.is_compact_summary {
            let message = marks.message.and_then(|raw| serde_json::from_str::<Json>(raw.get()).ok());
            let message = message.and_then(|message| message.read::<UserMessage>().ok());
            if let Some(message) = message {
                self.take_prompt(&message.content);
            }
        }
    }

    fn take_prompt(&mut self, content: &Content) {
        let texts: Vec<&str> = match content {
            Content::Text(text) => vec![text],
            Content::Blocks(blocks) => {
                if blocks.iter().any(|block| matches!(block, ContentBlock::ToolResult(_))) {
                    return;
                }
                blocks.iter().filter_map(ContentBlock::as_text).collect()
            }
            _ => return,
        };
        for text in texts {
            match Prompt::of(text) {
                Prompt::Said(prompt) => {
                    self.first_prompt = Some(prompt);
                    return;
                }
                Prompt::Command(name) => {
                    self.command.get_or_insert(name);
                }
                Prompt::Noise => {}
            }
        }
    }

    /// The summary of a session of which these were the records; `None` when there is nothing to tell, or when it is a
    /// subagent's.
    #[must_use]
    pub fn summary(&self, id: &str, project: &str, modified: SystemTime) -> Option<Summary> {
        if self.sidechain == Some(true) {
            return None;
        }
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let custom_title = given(&self.custom_title).or_else(|| given(&self.ai_title));
        let first_prompt = given(&self.first_prompt).or_else(|| given(&self.command));
        let last_prompt = given(&self.last_prompt);
        let title = custom_title
            .clone()
            .or_else(|| last_prompt.clone())
            .or_else(|| given(&self.summary))
            .or_else(|| first_prompt.clone())?;
        Some(Summary {
            id: id.into(),
            title,
            custom_title,
            first_prompt,
            last_prompt,
            tag: self.tag.clone(),
            cwd: self.cwd.clone(),
            git_branch: given(&self.git_branch),
            created: self.created.map(time::from_millis),
            modified,
            size: 0,
            messages: None,
            project: project.into(),
            path: PathBuf::new(),
        })
    }
}

/// What a user message is, for a list.
enum Prompt {
    Said(String),
    Command(String),
    /// Written by the CLI itself.
    Noise,
}

impl Prompt {
    fn of(text: &str) -> Self {
        let line = text.replace('\n', " ");
        let line = line.trim();
        if let Some(name) = between(line, "<command-name>", "</command-name>") {
            return Self::Command(name.into());
        }
        let noise = ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>"];
        let wrapped = ["ide_opened_file", "ide_selection"];
        if line.is_empty()
            || noise.iter().any(|mark| line.starts_with(mark))
            || (line.starts_with("[Request interrupted by user") && line.contains(']'))
            || wrapped.iter().any(|name| {
                line.strip_prefix('<')
                    .and_then(|rest| rest.strip_prefix(name))
                    .is_some_and(|rest| rest.starts_with('>') && rest.ends_with(&format!("</{name}>")))
            })
        {
            return Self::Noise;
        }
        Self::Said(cut(line))
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// At most 200 characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(PROMPT) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.into(),
    }
}

/// Reads the two ends of a transcript.
pub(crate) fn digest(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut digest = Digest::default();
    let mut window = vec![0; 2 * WINDOW];
    let length = read_up_to(&mut file, &mut window)?;
    if length < window.len() {
        // All of it is here.
        add_lines(&mut digest, &window[..length], true, true);
        return Ok(digest);
    }
    add_lines(&mut digest, &window[..WINDOW], true, false);
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(WINDOW as u64)))?;
    let length = read_up_to(&mut file, &mut window[..WINDOW])?;
    let tail = &window[..length];
    // The first line of the window has lost its beginning.
    let start = memchr::memchr(b'\n', tail).map_or(tail.len(), |at| at + 1);
    add_lines(&mut digest, &tail[start..], false, true);
    Ok(digest)
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn add_lines(digest: &mut Digest, bytes: &[u8], is_head: bool, is_end: bool) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest);
        let line = String::from_utf8_lossy(&rest[..end.unwrap_or(rest.len())]);
        let read = digest.add_text(&line, is_head);
        let is_cut = end.is_none() && !is_end;
        if !read && is_cut && is_head && digest.first_prompt.is_none() {
            digest.first_prompt = prompt_of_cut_line(&line);
        }
        rest = end.map_or(&[], |end| &rest[end + 1..]);
    }
}

/// The beginning of a prompt that is longer than the window.
fn prompt_of_cut_line(line: &str) -> Option<String> {
    let rest = line.split_once(r#""type":"user""#)?.1;
    let raw = rest.split_once(r#""content":""#)?.1;
    let raw: String = raw.chars().take(4 * PROMPT).collect();
    // An escape may have been cut in two; at most eleven characters belong to one.
    let text = (0..12).find_map(|less| {
        let end = raw.char_indices().rev().nth(less)?.0;
        serde_json::from_str::<String>(&format!("\"{}\"", &raw[..end])).ok()
    })?;
    match Prompt::of(&text) {
        Prompt::Said(prompt) => Some(prompt),
        _ => None,
    }
}

/// The fields that a digest is made of.
#[derive(Default)]
struct Marks<'a> {
    kind: Cow<'a, str>,
    is_sidechain: bool,
    is_meta: bool,
    is_compact_summary: bool,
    timestamp: Option<Cow<'a, str>>,
    cwd: Option<Cow<'a, str>>,
    git_branch: Option<Cow<'a, str>>,
    custom_title: Option<Cow<'a, str>>,
    ai_title: Option<Cow<'a, str>>,
    last_prompt: Option<Cow<'a, str>>,
    summary: Option<Cow<'a, str>>,
    tag: Option<Cow<'a, str>>,
    message: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Marks<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MarksVisitor;

        impl<'de> Visitor<'de> for MarksVisitor {
            type Value = Marks<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Marks<'de>, A::Error> {
                let mut marks = Marks::default();
                while let Some(key) = map.next_key::<scan::Text<'de>>()? {
                    match key.as_str() {
                        "type" => marks.kind = map.next_value::<scan::Text<'de>>()?.0.unwrap_or_default(),
                        "timestamp" => marks.timestamp = map.next_value::<scan::Text<'de>>()?.0,
                        "cwd" => marks.cwd = map.next_value::<scan::Text<'de>>()?.0,
                        "gitBranch" => marks.git_branch = map.next_value::<scan::Text<'de>>()?.0,
                        "customTitle" => marks.custom_title = map.next_value::<scan::Text<'de>>()?.0,
                        "aiTitle" => marks.ai_title = map.next_value::<scan::Text<'de>>()?.0,
                        "lastPrompt" => marks.last_prompt = map.next_value::<scan::Text<'de>>()?.0,
                        "summary" => marks.summary = map.next_value::<scan::Text<'de>>()?.0,
                        "tag" => marks.tag = map.next_value::<scan::Text<'de>>()?.0,
                        "isSidechain" => marks.is_sidechain = map.next_value::<scan::Flag>()?.0,
                        "isMeta" => marks.is_meta = map.next_value::<scan::Flag>()?.0,
                        "isCompactSummary" => marks.is_compact_summary = map.next_value::<scan::Flag>()?.0,
                        "message" => marks.message = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(marks)
            }
        }

        deserializer.deserialize_map(MarksVisitor)
    }
}
