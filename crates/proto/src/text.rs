//! Text that may be large: shared instead of copied, and read without a detour.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Shared text. A clone is cheap; a `String` becomes one without a copy.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Arc<String>);

impl Text {
    /// The text of a JSON string, unescaped straight into its place.
    ///
    /// serde_json goes through a scratch buffer and copies from there, which doubles the memory and the time of a large
    /// diff. `None` when the value is not a string, or has a lone surrogate, which no text can hold.
    #[must_use]
    pub fn from_json(raw: &RawValue) -> Option<Self> {
        let mut rest = raw.get().strip_prefix('"')?.strip_suffix('"')?;
        let mut out = String::with_capacity(rest.len());
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.push_str(&rest[..at]);
            let (character, used) = escape(&rest[at + 1..])?;
            out.push(character);
            rest = &rest[at + 1 + used..];
        }
        out.push_str(rest);
        Some(out.into())
    }
}

/// The character behind a backslash, and how many bytes it takes.
fn escape(text: &str) -> Option<(char, usize)> {
    Some(match text.as_bytes().first()? {
        b'n' => ('\n', 1),
        b'"' => ('"', 1),
        b'\\' => ('\\', 1),
        b'/' => ('/', 1),
        b't' => ('\t', 1),
        b'r' => ('\r', 1),
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'u' => {
            let unit = hex(text.get(1..5)?)?;
            if let Some(character) = char::from_u32(unit.into()) {
                return Some((character, 5));
            }
            let low = hex(text.get(5..)?.strip_prefix("\\u")?.get(..4)?)?;
            (char::decode_utf16([unit, low]).next()?.ok()?, 11)
        }
        _ => return None,
    })
}

fn hex(digits: &str) -> Option<u16> {
    // `from_str_radix` would take a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).ok()?;
        Text::from_json(raw).map(|text| text.to_string())
    }

    #[test]
    fn every_escape_is_read() {
        let json = r#""\"\\\/\b\f\n\r\t\u00e9\ud835\udcb3é""#;
        assert_eq!(read(json).unwrap(), "\"\\/\u{8}\u{c}\n\r\té𝒳é");
        for lone in [r#""\ud835""#, r#""\ud835x""#, r#""\ud835\u0041""#, r#""\udcb3""#, "5", "null"] {
            assert_eq!(read(lone), None, "{lone}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_json_reads(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(read(&json), Some(text));
        }

        #[test]
        fn it_agrees_with_serde_json_about_any_escapes(inner in r#"([a-z]|\\[nrtbf/"\\]|\\u[0-9a-fD-D][0-9a-f]{3}|\\ud[89a-f][0-9a-f]{2}){0,12}"#) {
            let json = format!("\"{inner}\"");
            if serde_json::from_str::<&RawValue>(&json).is_ok() {
                prop_assert_eq!(read(&json), serde_json::from_str::<String>(&json).ok());
            }
        }
    }
}
