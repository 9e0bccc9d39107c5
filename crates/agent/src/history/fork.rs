//! A copy of a session that goes its own way.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use uuid::Uuid;

use super::change::{plain, title_record};
use super::fields::Fields;
use super::lines::{Lines, failed};
use super::scan::{Kind, Name, Scan};
use super::{Library, Transcript, check_id, time};
use crate::Error;

/// How to fork a session.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Fork {
    id: Option<String>,
    at: Option<String>,
    title: Option<String>,
}

impl Fork {
    /// The whole session, under its own title with ` (fork)` added.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the fork, instead of a fresh one.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Only up to this message, which is part of the fork.
    pub fn at(mut self, message: impl Into<String>) -> Self {
        self.at = Some(message.into());
        self
    }

    /// The title of the fork.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

impl Library {
    /// Copies a session into a new one beside it, which can be resumed on its own.
    ///
    /// Every record gets a new name, and remembers the old one (`forkedFrom`). What subagents did and the states of files
    /// are not copied; the CLI does not copy them either.
    ///
    /// # Errors
    /// [`Error::NoMessage`] when there is no message to fork at, [`Error::NoMessages`] when there are none at all,
    /// [`Error::NoSessionId`] when the id asked for is none; otherwise when a file cannot be read or written.
    pub fn fork(&self, session: &Transcript, fork: &Fork) -> Result<Transcript, Error> {
        let source = self.inside(session.path())?;
        let title = match &fork.title {
            Some(title) => plain(title).ok_or(Error::Blank { what: "title" })?,
            None => {
                let summary = session.summary();
                let title = summary.and_then(|summary| summary.custom_title.or(summary.first_prompt));
                format!("{} (fork)", title.as_deref().unwrap_or("Forked session"))
            }
        };
        let plan = Plan::make(session.id(), &source, fork.at.as_deref())?;
        let folder = source.parent().unwrap_or(&source);
        let id = match &fork.id {
            Some(id) => check_id(id)?.to_owned(),
            None => Uuid::new_v4().to_string(),
        };
        let path = folder.join(format!("{id}.jsonl"));
        let write = |error| failed("write", &path, error);
        // The new file appears under its name when all of it is there, and only its owner may read it.
        let mut file = tempfile::Builder::new().prefix(".fork-").tempfile_in(folder).map_err(write)?;
        plan.write(&source, session.id(), &id, &title, file.as_file_mut())?;
        file.as_file().sync_all().map_err(write)?;
        file.persist_noclobber(&path).map_err(|error| write(error.error))?;
        Ok(Transcript::new(&id, path))
    }
}

/// What becomes of each record, from a first pass over the transcript.
#[derive(Default)]
struct Plan {
    names: HashMap<Name, Uuid>,
    /// Records that only mark progress are left out; what hangs on one hangs on its parent.
    progress: HashMap<Name, Option<Name>>,
    /// Where the last record that is copied begins.
    last: u64,
}

impl Plan {
    fn make(session: &str, path: &Path, at: Option<&str>) -> Result<Self, Error> {
        let end = at.map(|at| check_id(at).map(Name::of)).transpose();
        let no_message = || Error::NoMessage {
            session: session.into(),
            message: at.unwrap_or_default().chars().take(80).collect(),
        };
        let end = end.map_err(|_| no_message())?;
        let mut plan = Self::default();
        let mut is_copied = false;
        let mut lines = Lines::open(path)?;
        while let Some(line) = lines.next().map_err(|error| failed("read", path, error))? {
            let Some(scan) = Scan::of(line.bytes) else { continue };
            let (Some(uuid), false) = (scan.uuid, scan.is_sidechain) else { continue };
            match scan.kind {
                Kind::Progress => {
                    plan.progress.insert(uuid, scan.parent);
                }
                kind if kind.is_linked() => {
                    plan.names.insert(uuid, Uuid::new_v4());
                    plan.last = line.offset;
                    is_copied = true;
                }
                _ => continue,
            }
            if end == Some(uuid) {
                return if is_copied { Ok(plan) } else { Err(Error::NoMessages { session: session.into() }) };
            }
        }
        match (at, is_copied) {
            (Some(_), _) => Err(no_message()),
            (None, true) => Ok(plan),
            (None, false) => Err(Error::NoMessages { session: session.into() }),
        }
    }

    /// The new name of a record, or of the first above it that is copied.
    fn name(&self, of: Option<Name>) -> Option<Uuid> {
        let mut next = of?;
        // Each step leads to another record, unless the file is broken.
        for _ in 0..=self.progress.len() {
            if let Some(uuid) = self.names.get(&next) {
                return Some(*uuid);
            }
            next = (*self.progress.get(&next)?)?;
        }
        None
    }

    fn write(&self, path: &Path, from: &str, id: &str, title: &str, file: impl Write) -> Result<(), Error> {
        let mut out = BufWriter::new(file);
        let mut lines = Lines::open(path)?;
        let now = time::format(SystemTime::now());
        let mut replacements: Vec<Value> = Vec::new();
        let mut ended = false;
        while let Some(line) = lines.next().map_err(|error| failed("read", path, error))? {
            let (offset, Some(scan)) = (line.offset, Scan::of(line.bytes)) else { continue };
            if let (Kind::Other, Some(fields)) = (scan.kind, Fields::of(line.bytes)) {
                replacements.extend(content_replacements(&fields, from));
                continue;
            }
            let is_copied = scan.kind.is_linked() && scan.kind != Kind::Progress && !scan.is_sidechain;
            if !is_copied || ended {
                continue;
            }
            let (Some(name), Some(mut fields)) = (self.name(scan.uuid), Fields::of(line.bytes)) else {
                continue;
            };
            ended = offset == self.last;
            let text = |uuid: Option<Uuid>| json!(uuid.map(|uuid| uuid.to_string()));
            let old = fields.string("uuid");
            fields.set("parentUuid", text(self.name(scan.parent)));
            if scan.logical_parent.is_some() {
                fields.set("logicalParentUuid", text(self.name(scan.logical_parent)));
            }
            match self.name(scan.source) {
                Some(source) => fields.set("sourceToolAssistantUUID", text(Some(source))),
                None => fields.remove("sourceToolAssistantUUID"),
            }
            fields.set("uuid", text(Some(name)));
            fields.set("sessionId", json!(id));
            fields.set("isSidechain", json!(false));
            // The last record must be the newest, because that is where the CLI goes on.
            if ended || fields.get("timestamp").is_none() {
                fields.set("timestamp", json!(now));
            }
            if let Some(metadata) = fields.get("compactMetadata").map(crate::stream::Json::value) {
                fields.set("compactMetadata", self.rename_all(metadata));
            }
            fields.set("forkedFrom", json!({ "sessionId": from, "messageUuid": old }));
            for field in ["teamName", "agentName", "slug"] {
                fields.remove(field);
            }
            write_line(&mut out, path, &fields)?;
        }
        let uuid = || Uuid::new_v4().to_string();
        if !replacements.is_empty() {
            let record = json!({ "type": "content-replacement", "sessionId": id, "replacements": replacements,
                "uuid": uuid(), "timestamp": now });
            write_line(&mut out, path, &record)?;
        }
        let mut record = Fields::of(title_record(id, title).as_bytes()).unwrap_or_default();
        record.set("uuid", json!(uuid()));
        record.set("timestamp", json!(now));
        write_line(&mut out, path, &record)?;
        out.flush().map_err(|error| failed("copy", path, error))
    }

    /// A compaction names the messages that it kept; without their new names they would be lost.
    fn rename_all(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.names.get(&Name::of(&text)) {
                Some(uuid) => json!(uuid.to_string()),
                None => Value::String(text),
            },
            Value::Array(items) => items.into_iter().map(|item| self.rename_all(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(key, value)| (key, self.rename_all(value))).collect()
            }
            other => other,
        }
    }
}

/// Contents that the CLI has put elsewhere because they are long.
fn content_replacements(fields: &Fields, session: &str) -> Vec<Value> {
    let is_one = fields.string("type").as_deref() == Some("content-replacement");
    if !is_one || fields.string("sessionId").as_deref() != Some(session) {
        return Vec::new();
    }
    fields.get("replacements").and_then(|json| json.read().ok()).unwrap_or_default()
}

fn write_line(out: &mut impl Write, path: &Path, record: &impl serde::Serialize) -> Result<(), Error> {
    let write = |out: &mut dyn Write| {
        serde_json::to_writer(&mut *out, record)?;
        out.write_all(b"\n")
    };
    write(out).map_err(|error| failed("copy", path, error))
}
