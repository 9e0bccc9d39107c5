//! Recordings of both CLIs, as files: a line of the CLI's each, and behind `> ` what the host said.

use std::fs;
use std::path::{Path, PathBuf};

use oarlock_agent::reduce::{Conversation, Event, Reducer};
use oarlock_agent::stream::{Message, decode};
use serde_json::Value;

/// The files of a folder, in order.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// A file's name, without its ending.
pub(crate) fn name(file: &Path) -> String {
    file.file_stem().expect("a name").to_string_lossy().into()
}

/// A line of a recording.
pub(crate) enum Line {
    Cli(Message),
    Host(Message),
    Bad,
}

pub(crate) fn lines(file: &Path) -> Vec<Line> {
    let bytes = fs::read(file).expect("fixture");
    let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|&byte| byte == b'\n');
    lines
        .map(|line| match line.strip_prefix(b"> ") {
            Some(host) => Line::Host(decode(host).expect("a message")),
            None => decode(line).map_or(Line::Bad, Line::Cli),
        })
        .collect()
}

/// A reducer, and all it has said.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) reducer: Reducer,
    pub(crate) conversation: Conversation,
    pub(crate) events: Vec<Event>,
}

impl Replay {
    pub(crate) fn of(lines: impl IntoIterator<Item = Line>) -> Self {
        let mut replay = Self::default();
        for line in lines {
            match line {
                Line::Cli(message) => replay.hear(message),
                Line::Host(message) => replay.say(&message),
                Line::Bad => {}
            }
        }
        replay
    }

    /// Messages of the CLI's, as values.
    pub(crate) fn of_values(messages: impl IntoIterator<Item = Value>) -> Self {
        Self::of(messages.into_iter().map(|message| Line::Cli(read(&message))))
    }

    pub(crate) fn hear(&mut self, message: Message) {
        let from = self.events.len();
        self.events.extend(self.reducer.apply(message));
        self.events[from..].iter().for_each(|event| self.conversation.apply(event));
    }

    pub(crate) fn say(&mut self, message: &Message) {
        match message {
            Message::User(user) => {
                if let Some(uuid) = &user.uuid {
                    self.reducer.sent(uuid);
                }
            }
            Message::ControlResponse(response) => {
                self.reducer.answered(response.request_id().expect("an id"));
            }
            other => panic!("the host does not say {other:?}"),
        }
    }

    /// All text of the main conversation that was given, as it came.
    pub(crate) fn shown_by_main(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Text { text, .. } if event.parent_tool_use_id().is_none() => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

pub(crate) fn read(message: &Value) -> Message {
    decode(message.to_string().as_bytes()).expect("an object")
}
