//! Secrets that prove who may talk to an engine.

use std::fmt;

use serde::{Deserialize as _, Deserializer, Serializer};
use subtle::ConstantTimeEq as _;

use crate::{Error, Result};

/// Random bytes in a new token: what the JetBrains plugin uses, and far above the 128 bits that are needed.
const BYTES: usize = 64;

/// The alphabet of base64url (RFC 4648, section 5).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A secret text. It has no `Display` and no `Serialize`, and its `Debug` hides the value, so that it reaches a file
/// or a header only where [`Token::reveal`] or a helper of this module is written out.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a new random token: 64 bytes as base64url without padding.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self(base64url(&bytes)))
    }

    /// Takes a token that was made before, such as one from a lock file.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The secret itself. Every use of this name is a place to look at in a review.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this token, in a time that does not depend on where they differ. An empty token, as a broken
    /// file may hold one, matches nothing.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        !self.0.is_empty() && bool::from(self.0.as_bytes().ct_eq(given))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Writes the secret into a private file: `#[serde(serialize_with = "token::write")]`.
pub(crate) fn write<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.reveal())
}

/// As [`write()`], for a field that may be absent.
pub(crate) fn write_option<S: Serializer>(token: &Option<Token>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&token.as_ref().map(Token::reveal))
}

/// Reads the secret from a private file: `#[serde(deserialize_with = "token::read")]`.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Token, D::Error> {
    String::deserialize(deserializer).map(Token::from_text)
}

fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(group >> (18 - 6 * position)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_as_in_the_rfc() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64url(plain.as_bytes()), coded);
        }
        assert_eq!(base64url(&[0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn random_tokens_are_long_safe_in_a_header_and_never_equal() {
        let tokens: std::collections::HashSet<String> =
            (0..64).map(|_| Token::random().unwrap().reveal().to_owned()).collect();
        assert_eq!(tokens.len(), 64);
        for token in tokens {
            assert_eq!(token.len(), 86);
            assert!(token.bytes().all(|byte| ALPHABET.contains(&byte)));
        }
    }

    #[test]
    fn matches_only_the_whole_token() {
        let token = Token::from_text("abc".into());
        assert!(token.matches(b"abc"));
        for wrong in ["", "ab", "abcd", "abd", "ABC"] {
            assert!(!token.matches(wrong.as_bytes()), "{wrong}");
        }
        assert!(!Token::from_text(String::new()).matches(b""), "an empty token is no key");
    }

    #[test]
    fn ide_auth_05_debug_hides_the_token() {
        let token = Token::from_text("hush".into());
        assert_eq!(format!("{token:?} {:#?}", Some(&token)), "Token(…) Some(\n    Token(…),\n)");
    }
}
