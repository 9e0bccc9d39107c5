//! The part of the Model Context Protocol that an IDE server speaks.

use std::borrow::Cow;

use serde::de::value::MapDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::text::Text;

/// The protocol versions we speak, newest first. All four are taken by the CLIs we tested.
pub const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The version to answer: the one asked for if we know it, else our newest.
#[must_use]
pub fn negotiate(asked: &str) -> &'static str {
    VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(VERSIONS[0])
}

/// `initialize`, as much of it as matters to a server. Every field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    /// The version the client wants.
    pub protocol_version: String,
    /// Who the client is.
    pub client_info: Implementation,
}

/// The name and version of a client or server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// Any version text.
    pub version: String,
}

/// The answer to `initialize`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult<'a> {
    /// The version both will speak.
    pub protocol_version: &'a str,
    /// What the server has.
    pub capabilities: ServerCapabilities,
    /// Who the server is; the CLI refuses a server without it.
    pub server_info: Implementation,
}

/// What an IDE server has: tools, whose list may change.
#[derive(Debug, Default, Serialize)]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: ToolsCapability,
}

/// How tools are offered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolsCapability {
    /// Whether `notifications/tools/list_changed` is sent.
    pub list_changed: bool,
}

impl Default for ToolsCapability {
    fn default() -> Self {
        Self { list_changed: true }
    }
}

/// One entry of `tools/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolEntry<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// What it does, for the model and for people.
    pub description: &'a str,
    /// The JSON schema of its arguments.
    pub input_schema: Box<RawValue>,
}

/// `tools/call`, borrowed from the frame.
#[derive(Debug, Deserialize)]
pub struct CallParams<'a> {
    /// Which tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its arguments; a missing object is an empty one.
    #[serde(borrow, default)]
    pub arguments: Arguments<'a>,
    /// The client's remarks.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<CallMeta<'a>>,
}

/// A tool's arguments, told apart but not yet read: whatever their order, a large one is passed over only once.
#[derive(Debug, Default)]
pub struct Arguments<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Arguments<'a> {
    /// Takes one argument out.
    pub fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Reads all that are left.
    ///
    /// # Errors
    /// Says which argument does not fit, and why.
    pub fn read<'s, T: Deserialize<'s>>(&'s self) -> Result<T, String> {
        let fields = || self.fields.iter().map(|(name, value)| (name.as_ref(), *value));
        T::deserialize(MapDeserializer::new(fields())).map_err(|error: serde_json::Error| {
            // Slowly, once more, with the name of the one that does not fit. One that is missing is named by serde.
            let deserializer = MapDeserializer::<_, serde_json::Error>::new(fields());
            match serde_path_to_error::deserialize::<_, T>(deserializer) {
                Err(error) => explain(&error),
                Ok(_) => error.to_string(),
            }
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Fields<'a> {
            type Value = Arguments<'a>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Arguments::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Arguments { fields })
            }
        }
        deserializer.deserialize_any(Fields(std::marker::PhantomData))
    }
}

/// A key, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Says which field does not fit and why.
#[must_use]
pub fn explain(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    // serde's word for a JSON array is "sequence".
    let why = error.inner().to_string().replace("a sequence", "an array");
    // A position in our own borrowed piece of the message tells nobody anything.
    let why = why.split(" at line ").next().unwrap_or_default();
    match error.path().iter().next() {
        Some(_) => format!("field `{}`: {why}", error.path()),
        None => why.to_owned(),
    }
}

/// What a client says about a call.
#[derive(Debug, Deserialize)]
pub struct CallMeta<'a> {
    /// Set by the CLI on calls that the model asked for; absent on calls the CLI makes by itself.
    #[serde(borrow, default, rename = "claudecode/toolUseId")]
    pub tool_use_id: Option<&'a RawValue>,
}

/// `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams<'a> {
    /// The id of the request that need not be answered any more.
    #[serde(borrow)]
    pub request_id: &'a RawValue,
}

/// The answer to `tools/call`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// What the tool says.
    #[serde(default)]
    pub content: Vec<Content>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl CallResult {
    /// One text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self { content: vec![Content::Text { text: text.into() }], is_error: false }
    }

    /// Several texts, in order.
    pub fn texts<T: Into<Text>>(texts: impl IntoIterator<Item = T>) -> Self {
        let content = texts.into_iter().map(|text| Content::Text { text: text.into() }).collect();
        Self { content, is_error: false }
    }

    /// One text that is JSON.
    pub fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(text) => Self::text(text),
            Err(error) => Self::error(format!("failed to write the result: {error}")),
        }
    }

    /// A failure that the client can show.
    pub fn error(text: impl Into<Text>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The text of block `index`, if there is such a block and it is text.
    #[must_use]
    pub fn text_at(&self, index: usize) -> Option<&str> {
        match self.content.get(index)? {
            Content::Text { text } => Some(text),
            Content::Image { .. } => None,
        }
    }
}

/// A block of a tool's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    /// Text.
    Text {
        /// The text itself.
        text: Text,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ide_mcp_02_known_versions_are_echoed_and_unknown_ones_get_the_newest() {
        for version in VERSIONS {
            assert_eq!(negotiate(version), version);
        }
        assert_eq!(negotiate("1.0"), "2025-11-25");
        assert_eq!(negotiate("2099-01-01"), "2025-11-25");
    }

    #[test]
    fn an_error_says_so_and_a_success_does_not() {
        let text = serde_json::to_string(&CallResult::text("x")).unwrap();
        assert_eq!(text, r#"{"content":[{"type":"text","text":"x"}]}"#);
        assert!(serde_json::to_string(&CallResult::error("x")).unwrap().contains(r#""isError":true"#));
    }
}
