//! How each type of value is read from a file or a variable, and shown.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use oarlock_proto::ide::Dialect;
use serde_json::json;

/// A type that a key can have.
pub(crate) trait Value: Sized {
    /// What is expected, as words that fit after "expected".
    const EXPECTED: &'static str;

    /// Reads it; `None` when it is something else.
    fn from_toml(value: &toml::Value) -> Option<Self>;

    /// Shows it.
    fn to_json(&self) -> serde_json::Value;
}

/// Reads the value of an environment variable: TOML, or plain text without its quotes; for a list also its only item.
pub(crate) fn from_variable(text: &str, accepts: impl Fn(&toml::Value) -> bool) -> Option<toml::Value> {
    let plain = toml::Value::String(text.to_owned());
    let only = toml::Value::Array(vec![plain.clone()]);
    let written: Option<toml::Value> = text.trim().parse().ok();
    written.into_iter().chain([plain, only]).find(|value| accepts(value))
}

impl Value for String {
    const EXPECTED: &'static str = "a text without control characters";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        // Texts are printed on terminals, and some come with a cloned repository.
        value.as_str().filter(|text| !text.contains(char::is_control)).map(str::to_owned)
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        value.as_bool()
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for Vec<String> {
    const EXPECTED: &'static str = "a list of texts";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        value.as_array()?.iter().map(String::from_toml).collect()
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

/// A count or a number of bytes. None of them makes sense as 0.
impl Value for usize {
    const EXPECTED: &'static str = "a whole number of at least 1";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        value.as_integer().and_then(|number| Self::try_from(number).ok()).filter(|number| *number > 0)
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

/// A port; 0 stands for any free one.
impl Value for Option<u16> {
    const EXPECTED: &'static str = "a port, from 1 to 65535, or 0 for any free one";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        let port = u16::try_from(value.as_integer()?).ok()?;
        Some(Some(port).filter(|port| *port != 0))
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

/// A path. A relative one would mean something else in every directory.
impl Value for Option<PathBuf> {
    const EXPECTED: &'static str = "an absolute path, or one that begins with ~/";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        let text = value.as_str()?;
        let path = match text.strip_prefix("~/") {
            Some(rest) => etcetera::home_dir().ok()?.join(rest),
            None => PathBuf::from(text),
        };
        path.is_absolute().then_some(Some(path))
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.as_ref().map(|path| path.to_string_lossy()))
    }
}

impl Value for IpAddr {
    const EXPECTED: &'static str = "an IP address, such as \"127.0.0.1\"";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        value.as_str()?.parse().ok()
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for Dialect {
    const EXPECTED: &'static str = "\"vscode\", \"jetbrains\" or \"vault\"";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        let name = value.as_str()?;
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.name())
    }
}

/// What decides a proposed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiffPolicy {
    /// A person is asked, or it waits for `oarlock ide accept` or `reject`.
    Ask,
    /// It is accepted as proposed.
    Accept,
    /// It is rejected.
    Reject,
}

impl Value for DiffPolicy {
    const EXPECTED: &'static str = "\"ask\", \"accept\" or \"reject\"";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        <Self as clap::ValueEnum>::from_str(value.as_str()?, false).ok()
    }

    fn to_json(&self) -> serde_json::Value {
        json!(match self {
            Self::Ask => "ask",
            Self::Accept => "accept",
            Self::Reject => "reject",
        })
    }
}

/// A time that people think of in seconds; 0 may stand for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Duration);

impl Value for Seconds {
    const EXPECTED: &'static str = "a number of seconds, 0 or more";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        let seconds = match value {
            toml::Value::Float(seconds) => *seconds,
            // More than 32 bits of seconds is a typing error.
            toml::Value::Integer(seconds) => f64::from(u32::try_from(*seconds).ok()?),
            _ => return None,
        };
        let fits = seconds <= f64::from(u32::MAX);
        Duration::try_from_secs_f64(seconds).ok().filter(|_| fits).map(Self)
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.0.as_secs_f64())
    }
}

/// A time that people think of in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Millis(pub(crate) Duration);

impl Value for Millis {
    const EXPECTED: &'static str = "a whole number of milliseconds, 0 or more";

    fn from_toml(value: &toml::Value) -> Option<Self> {
        u32::try_from(value.as_integer()?).ok().map(|millis| Self(Duration::from_millis(millis.into())))
    }

    fn to_json(&self) -> serde_json::Value {
        json!(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable<T: Value>(text: &str) -> Option<T> {
        from_variable(text, |value| T::from_toml(value).is_some()).and_then(|value| T::from_toml(&value))
    }

    #[test]
    fn a_variable_is_toml_or_plain_text() {
        assert_eq!(variable::<String>("Claude's desk").as_deref(), Some("Claude's desk"));
        assert_eq!(variable::<String>("8080").as_deref(), Some("8080"));
        assert_eq!(variable::<Option<u16>>("8080"), Some(Some(8080)));
        assert_eq!(variable::<Option<u16>>("0"), Some(None));
        assert_eq!(variable::<Option<u16>>("70000"), None);
        assert_eq!(variable::<bool>("true"), Some(true));
        assert_eq!(variable::<bool>("maybe"), None);
        assert_eq!(variable::<IpAddr>("::1"), Some("::1".parse().unwrap()));
        assert_eq!(variable::<Dialect>("vault"), Some(Dialect::Vault));
        assert_eq!(variable::<DiffPolicy>("accept"), Some(DiffPolicy::Accept));
    }

    #[test]
    fn a_variable_for_a_list_is_a_toml_list_or_its_only_item() {
        assert_eq!(variable::<Vec<String>>(r#"["a", "b"]"#).unwrap(), ["a", "b"]);
        assert_eq!(variable::<Vec<String>>("*.secret").unwrap(), ["*.secret"]);
        assert_eq!(variable::<Vec<String>>("[ab]*.txt").unwrap(), ["[ab]*.txt"]);
    }

    #[test]
    fn times_refuse_what_is_none() {
        assert_eq!(variable::<Seconds>("0.5"), Some(Seconds(Duration::from_millis(500))));
        assert_eq!(variable::<Seconds>("0"), Some(Seconds(Duration::ZERO)));
        for text in ["-1", "-0.5", "nan", "inf", "1e300", "9999999999999", "soon"] {
            assert_eq!(variable::<Seconds>(text), None, "{text}");
        }
        assert_eq!(variable::<Millis>("50"), Some(Millis(Duration::from_millis(50))));
        assert_eq!(variable::<Millis>("0.5"), None);
    }

    #[test]
    fn numbers_and_paths_and_texts_have_their_bounds() {
        assert_eq!(variable::<usize>("0"), None);
        assert_eq!(variable::<usize>("-3"), None);
        assert_eq!(variable::<usize>("3"), Some(3));
        assert_eq!(variable::<Option<PathBuf>>("bin/claude"), None);
        assert!(variable::<Option<PathBuf>>("~/bin/claude").unwrap().unwrap().is_absolute());
        assert_eq!(variable::<String>("a\u{1b}[2Jb"), None);
    }
}
