//! A JSON value kept as the text it was written in.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value that nobody has read yet: its text, checked to be JSON.
///
/// Bodies that few readers need (a tool's input, its result, an MCP message) stay in this form, so that a message costs
/// one copy of their text and no tree. The default is `null`.
///
/// ```
/// use oarlock_proto::stream::Json;
/// use serde_json::json;
///
/// let input = Json::from(json!({"command": "ls"}));
/// assert_eq!(input.text(), r#"{"command":"ls"}"#);
/// assert_eq!(input.value()["command"], "ls");
/// ```
#[derive(Clone, Default)]
pub struct Json(Option<Box<RawValue>>);

impl Json {
    /// The text, as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or(RawValue::NULL).get()
    }

    /// The value as a type of the caller's.
    ///
    /// # Errors
    /// When the value has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.text()).or_else(|error| match repair_surrogates(self.text()) {
            Cow::Owned(repaired) => serde_json::from_str(&repaired),
            Cow::Borrowed(_) => Err(error),
        })
    }

    /// The value as a tree. A number no tree can hold makes it the text.
    #[must_use]
    pub fn value(&self) -> Value {
        self.read().unwrap_or_else(|_| Value::String(self.text().into()))
    }

    /// The value as a string, when it is one.
    #[must_use]
    pub fn as_string(&self) -> Option<String> {
        self.text().starts_with('"').then(|| self.read().ok())?
    }

    /// Is it `null`?
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// Is it an object?
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Anything that can be written as JSON.
    ///
    /// # Errors
    /// When it cannot (a map whose keys are not strings, a failing `Serialize`).
    pub fn write<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// Text that is JSON by the way it was made.
    pub(crate) fn from_text(text: String) -> Option<Self> {
        RawValue::from_string(text).ok().map(Self::from)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Equal text, or else equal values.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // The text of a tree is JSON, so the fallback is never taken.
        Self::from_text(value.to_string()).unwrap_or_default()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Some(raw))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Cow::Owned(text) = repair_surrogates(self.text())
            && let Some(repaired) = Self::from_text(text)
        {
            return repaired.0.as_deref().serialize(serializer);
        }
        self.0.as_deref().unwrap_or(RawValue::NULL).serialize(serializer)
    }
}

/// JSON text in which every lone surrogate escape (`\ud83d` without its second half) is `\ufffd`.
///
/// JavaScript strings may hold half a character, and JSON made from them says so; no Rust string can. Whole pairs and
/// all other text are left alone.
pub(crate) fn repair_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[from..]) {
        let at = from + found;
        match unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) => from = at + 12,
            Some(0xD800..=0xDFFF) => {
                let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                (copied, from) = (at + 6, at + 6);
            }
            // The byte behind the backslash may be another one, which must not be taken for the start of an escape.
            _ => from = (at + 2).min(bytes.len()),
        }
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
    }
}

/// The UTF-16 unit of the escape `\uXXXX` at a place, if there is one.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        for (text, want) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ude00b""#, r#""\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\uD83D é \n""#, r#""\ufffd é \n""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\\", "\\"),
        ] {
            assert_eq!(repair_surrogates(text), want);
        }
    }

    #[test]
    fn a_body_with_half_a_character_can_be_read_and_written() {
        let json: Json = serde_json::from_str(r#"{"a":"x\ud83d"}"#).expect("raw text is not looked into");
        assert_eq!(json.text(), r#"{"a":"x\ud83d"}"#);
        assert_eq!(json.value()["a"], "x\u{fffd}");
        assert_eq!(serde_json::to_value(&json).expect("repaired")["a"], "x\u{fffd}");
    }
}
