//! What slash commands wrote. It is in a transcript, but no part of the conversation: the model does not hear of it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use memchr::memmem::Finder;
use serde::Deserialize;

/// The mark of such a record, by which the others are passed over unread.
const MARK: &[u8] = br#""local_command""#;

/// The outputs of commands, by the record that each belongs behind.
#[derive(Debug, Default)]
pub(super) struct Outputs(HashMap<String, Output>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    r#type: String,
    subtype: Option<String>,
    uuid: String,
    parent_uuid: Option<String>,
    content: String,
}

impl Outputs {
    /// Goes through a transcript once.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut lines = BufReader::with_capacity(256 << 10, File::open(path)?);
        let (mut outputs, mut line, finder) = (Self::default(), Vec::new(), Finder::new(MARK));
        while lines.read_until(b'\n', &mut line)? > 0 {
            if finder.find(&line).is_some() {
                outputs.add(&line);
            }
            line.clear();
        }
        Ok(outputs)
    }

    fn add(&mut self, line: &[u8]) {
        let Ok(mut output) = serde_json::from_slice::<Output>(line) else { return };
        let is_one = output.r#type == "system" && output.subtype.as_deref() == Some("local_command");
        if let Some(parent) = output.parent_uuid.take().filter(|_| is_one) {
            self.0.insert(parent, output);
        }
    }

    /// Takes what belongs behind a record: one output, and what hangs on that.
    pub(super) fn behind(&mut self, record: &str) -> Vec<String> {
        let mut texts = Vec::new();
        let mut next = self.0.remove(record);
        while let Some(output) = next {
            next = self.0.remove(&output.uuid);
            texts.push(output.content);
        }
        texts
    }
}
