//! A record's fields, in their order, none of them read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::stream::Json;

/// An object whose fields can be changed while all others stay as they were written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, Json)>);

impl Fields {
    /// `None` when the line is no object.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        serde_json::from_str(&String::from_utf8_lossy(line)).ok()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.get(name)?.as_string()
    }

    /// Sets a field in its place, or at the end.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        match self.0.iter().position(|(key, _)| key == name) {
            Some(at) => {
                self.0[at].1 = value;
                let mut index = 0;
                self.0.retain(|(key, _)| {
                    index += 1;
                    key != name || index == at + 1
                });
            }
            None => self.0.push((name.into(), value)),
        }
    }

    pub(crate) fn move_to_front(&mut self, name: &str) {
        if let Some(at) = self.0.iter().position(|(key, _)| key == name) {
            self.0[..=at].rotate_right(1);
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_their_text() {
        let mut fields = Fields::of(br#"{"b":1.50,"a":"x","b":2,"c":{"z":1,"y":[]}}"#).unwrap();
        fields.set("a", serde_json::json!("changed"));
        fields.set("d", serde_json::json!(null));
        assert_eq!(fields.get("b").unwrap().text(), "2", "the last counts");
        assert_eq!(
            serde_json::to_string(&fields).unwrap(),
            r#"{"b":1.50,"a":"changed","b":2,"c":{"z":1,"y":[]},"d":null}"#
        );
        fields.set("b", serde_json::json!(3));
        fields.remove("c");
        assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"b":3,"a":"changed","d":null}"#);
        assert!(Fields::of(b"[]").is_none());
    }
}
