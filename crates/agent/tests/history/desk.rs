//! A configuration directory with transcripts to try things on.

use std::fs;
use std::path::{Path, PathBuf};

use oarlock_agent::history::{Library, Project, Record, Transcript};
use serde_json::{Value, json};

pub(crate) struct Desk {
    dir: tempfile::TempDir,
    pub(crate) library: Library,
}

/// The id of the session of a number.
pub(crate) fn id(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

impl Desk {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::at(dir.path().join("config"));
        let desk = Self { dir, library };
        fs::create_dir_all(desk.cwd()).unwrap();
        desk
    }

    pub(crate) fn at(&self, rest: &str) -> PathBuf {
        self.dir.path().join(rest)
    }

    /// The directory that sessions are of.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.at("work")
    }

    pub(crate) fn folder(&self, cwd: &Path) -> PathBuf {
        let folder = self.library.projects_dir().join(Project::of(cwd).name());
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a transcript of the working directory's.
    pub(crate) fn write(&self, number: u64, records: &[Value]) -> PathBuf {
        self.write_text(number, &lines(records))
    }

    pub(crate) fn write_text(&self, number: u64, text: &str) -> PathBuf {
        let path = self.folder(&self.cwd()).join(format!("{}.jsonl", id(number)));
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn open(&self, number: u64) -> Transcript {
        self.library.open(&id(number), None).unwrap()
    }

    pub(crate) fn texts(&self, number: u64) -> Vec<String> {
        texts(self.open(number).messages().unwrap())
    }
}

pub(crate) fn texts(messages: impl Iterator<Item = Result<Record, oarlock_agent::Error>>) -> Vec<String> {
    messages.map(|record| record.unwrap().text()).collect()
}

pub(crate) fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// A record of the conversation, named after its text.
pub(crate) fn user(text: &str, parent: Option<&str>) -> Value {
    record("user", text, parent, json!({ "role": "user", "content": text }))
}

pub(crate) fn assistant(text: &str, parent: Option<&str>) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    record(
        "assistant",
        text,
        parent,
        json!({ "id": format!("msg_{text}"), "role": "assistant", "content": content }),
    )
}

/// A record that is part of an answer and calls a tool.
pub(crate) fn call(uuid: &str, parent: &str, message: &str, tool: &str, id: &str, input: Value) -> Value {
    let content = json!([{ "type": "tool_use", "id": id, "name": tool, "input": input }]);
    record("assistant", uuid, Some(parent), json!({ "id": message, "role": "assistant", "content": content }))
}

pub(crate) fn result(uuid: &str, parent: &str, id: &str, text: &str) -> Value {
    let content = json!([{ "type": "tool_result", "tool_use_id": id, "content": text }]);
    record("user", uuid, Some(parent), json!({ "role": "user", "content": content }))
}

pub(crate) fn record(kind: &str, uuid: &str, parent: Option<&str>, message: Value) -> Value {
    json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "message": message, "uuid": uuid,
        "timestamp": "2026-11-15T01:03:38.855Z", "cwd": "/work", "sessionId": "s", "version": "2.1.325",
        "gitBranch": "main",
    })
}

/// The record with some fields changed.
pub(crate) fn with(mut record: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}
