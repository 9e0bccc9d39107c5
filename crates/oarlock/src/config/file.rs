//! One configuration file: its entries with their lines, before anybody decides whether they count.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize as _;
use toml::de::DeTable;

use super::{Ignored, KEYS, Key, Place};
use crate::exit::Failure;

/// The entries of a file.
pub(super) struct File {
    pub(super) entries: Vec<Entry>,
}

/// `key = value` at its place.
pub(super) struct Entry {
    /// With its section: `ide.port`.
    pub(super) key: String,
    pub(super) value: toml::Value,
    pub(super) place: Place,
}

impl File {
    /// Reads a file; `None` when there is none.
    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let failed =
            |error: std::io::Error| Failure::usage(format!("failed to read {}: {error}", path.display()));
        match fs::metadata(path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(error)),
            // A pipe of that name would block for ever.
            Ok(about) if !about.is_file() => {
                return Err(Failure::usage(format!("{} is not a file; move it away", path.display())));
            }
            Ok(_) => {}
        }
        Self::parse(path, &fs::read_to_string(path).map_err(failed)?).map(Some)
    }

    fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let place = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            Place { file: path.to_owned(), line: before.matches('\n').count() + 1 }
        };
        let table = DeTable::parse(text).map_err(|error| {
            let place = place(error.span().map_or(0, |span| span.start));
            Failure::usage(format!("{place}: not TOML: {}", error.message()))
        })?;
        let mut entries = Vec::new();
        for (name, value) in table.into_inner() {
            let section = name.get_ref().to_string();
            if !value.get_ref().is_table() {
                // A key without a section is unknown; it says so below.
                entries.push(Entry { place: place(name.span().start), value: plain(value)?, key: section });
                continue;
            }
            let toml::de::DeValue::Table(table) = value.into_inner() else { continue };
            for (name, value) in table {
                let key = format!("{section}.{}", name.get_ref());
                entries.push(Entry { key, place: place(name.span().start), value: plain(value)? });
            }
        }
        // What is passed over is reported in the order in which people read.
        entries.sort_by_key(|entry| entry.place.line);
        Ok(Self { entries })
    }
}

impl Entry {
    /// The key of the table, or why there is none.
    pub(super) fn known(&self) -> Result<&'static Key, Ignored> {
        KEYS.iter().find(|key| key.name == self.key).ok_or_else(|| {
            let nearest = nearest(&self.key).map_or(String::new(), |key| format!("; did you mean `{key}`?"));
            Ignored {
                // A key may be any text, and this one is printed.
                key: self.key.escape_debug().to_string(),
                place: self.place.clone(),
                why: format!("there is no such key{nearest} (`oarlock config` lists them)"),
            }
        })
    }

    /// Whether the value has the key's type. If not, nothing goes on: a limit that silently does not count would be
    /// worse than no start.
    pub(super) fn check(&self, key: &Key) -> anyhow::Result<()> {
        if (key.accepts)(&self.value) {
            return Ok(());
        }
        let Self { key: name, value, place } = self;
        let (expected, found) = (key.expected, value.type_str());
        Err(Failure::usage(format!("{place}: `{name}` is wrong: expected {expected}, found {found} {value}")))
    }
}

fn plain(value: toml::Spanned<toml::de::DeValue<'_>>) -> anyhow::Result<toml::Value> {
    Ok(toml::Value::deserialize(toml::de::ValueDeserializer::from(value))?)
}

/// The known key that looks most like a name, if any does.
fn nearest(name: &str) -> Option<&'static str> {
    let (distance, key) = KEYS.iter().map(|key| (distance(name, key.name), key.name)).min()?;
    (distance <= name.len().div_ceil(3)).then_some(key)
}

/// How many letters must be changed, put in or left out to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_one_that_looks_alike() {
        assert_eq!(nearest("ide.prot"), Some("ide.port"));
        assert_eq!(nearest("port"), None, "half of it is missing");
        assert_eq!(nearest("share.ignores"), Some("share.ignore"));
        assert_eq!(nearest("ide.on-diff"), Some("ide.on_diff"));
        assert_eq!(nearest("completely.different"), None);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
