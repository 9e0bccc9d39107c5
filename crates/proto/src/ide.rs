//! What is special to the IDE integration: its notifications, its diagnostics, its dialects.

use serde::{Deserialize, Serialize};

use crate::pos::{Position, Range};

/// Whose reply texts and shapes a server uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// What the real CLI understands; the default.
    #[default]
    Vscode,
    /// The JetBrains plugin's words.
    Jetbrains,
    /// Plain JSON-RPC methods on files beside the tools, as for note vaults.
    Vault,
}

impl Dialect {
    /// All of them, for tables and help.
    pub const ALL: [Self; 3] = [Self::Vscode, Self::Jetbrains, Self::Vault];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vscode => "vscode",
            Self::Jetbrains => "jetbrains",
            Self::Vault => "vault",
        }
    }
}

/// `selection_changed`. Fields are left out, never null: the CLI drops a message with a null in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionChanged {
    /// Zero-based, UTF-16.
    pub selection: SelectionRange,
    /// What is selected; empty means "this file is open".
    pub text: String,
    /// Absolute; left out to clear the selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    /// `file://` and the raw path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_url: Option<String>,
}

impl SelectionChanged {
    /// The one message that makes both CLI versions forget a selection.
    #[must_use]
    pub fn cleared() -> Self {
        Self { selection: Range::default().into(), text: String::new(), file_path: None, file_url: None }
    }
}

/// A range that says whether it is empty, as VS Code does; the CLI ignores the extra word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectionRange {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
    /// Whether nothing is selected.
    #[serde(default)]
    pub is_empty: bool,
}

impl From<Range> for SelectionRange {
    fn from(range: Range) -> Self {
        Self { start: range.start, end: range.end, is_empty: range.is_empty() }
    }
}

/// `at_mentioned`: lines are zero-based and inclusive; both or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AtMentioned {
    /// Absolute.
    pub file_path: String,
    /// First line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_start: Option<u32>,
    /// Last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_end: Option<u32>,
}

/// `ide_connected`: the client is a CLI, and this is its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdeConnected {
    /// The CLI's process id.
    #[serde(default)]
    pub pid: Option<u32>,
}

/// The diagnostics of one file: an entry of `getDiagnostics`' answer and the parameters of `diagnostics_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiagnostics {
    /// `file://` and the raw path: the CLI does not match an encoded one.
    pub uri: String,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// One problem in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// What is wrong. Without it 2.1.325 drops the whole reply.
    pub message: String,
    /// How bad it is.
    #[serde(default)]
    pub severity: Severity,
    /// Where. Without it both versions drop the whole reply.
    pub range: Range,
    /// Who found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// A string: 2.1.197 shows anything else as `[object Object]`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "code")]
    pub code: Option<String>,
}

/// Language servers give strings, numbers or `{value, target}`; the wire has strings.
fn code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    fn text(value: &serde_json::Value) -> Option<String> {
        match value {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            serde_json::Value::Object(map) => map.get("value").and_then(text),
            _ => None,
        }
    }
    Ok(text(&serde_json::Value::deserialize(deserializer)?))
}

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Severity {
    /// Broken.
    #[default]
    Error,
    /// Suspicious.
    Warning,
    /// Worth knowing.
    Info,
    /// A suggestion.
    Hint,
}

impl Severity {
    /// The word for it in a dialect.
    #[must_use]
    pub fn name(self, dialect: Dialect) -> &'static str {
        match (dialect, self) {
            (Dialect::Jetbrains, Self::Error) => "ERROR",
            (Dialect::Jetbrains, Self::Warning) => "WARNING",
            (Dialect::Jetbrains, Self::Info) => "INFO",
            (Dialect::Jetbrains, Self::Hint) => "WEAK_WARNING",
            (_, Self::Error) => "Error",
            (_, Self::Warning) => "Warning",
            (_, Self::Info) => "Info",
            (_, Self::Hint) => "Hint",
        }
    }
}

impl<'de> Deserialize<'de> for Severity {
    /// Takes every spelling that was seen: VS Code's names, JetBrains' names, LSP's numbers and names.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let known = match &value {
            serde_json::Value::Number(number) => match number.as_u64() {
                Some(1) => Some(Self::Error),
                Some(2) => Some(Self::Warning),
                Some(3) => Some(Self::Info),
                Some(4) => Some(Self::Hint),
                _ => None,
            },
            serde_json::Value::String(name) => match name.to_ascii_lowercase().as_str() {
                "error" => Some(Self::Error),
                "warning" => Some(Self::Warning),
                "info" | "information" => Some(Self::Info),
                "hint" | "weak_warning" => Some(Self::Hint),
                _ => None,
            },
            serde_json::Value::Null => Some(Self::Error),
            _ => None,
        };
        known.ok_or_else(|| {
            serde::de::Error::custom(format!(
                "severity {value} is not one of Error, Warning, Info, Hint (or 1 to 4)"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ide_sel_01_no_field_is_ever_null() {
        let cleared = serde_json::to_string(&SelectionChanged::cleared()).unwrap();
        assert!(!cleared.contains("null") && !cleared.contains("filePath"), "{cleared}");
    }

    #[test]
    fn ide_men_01_lines_are_both_there_or_both_left_out() {
        let whole = AtMentioned { file_path: "/w/a".into(), line_start: None, line_end: None };
        assert_eq!(serde_json::to_string(&whole).unwrap(), r#"{"filePath":"/w/a"}"#);
    }

    #[test]
    fn severities_and_codes_are_read_in_every_spelling() {
        let read = |severity: &str, code: &str| -> Diagnostic {
            let range = r#"{"start":{"line":0,"character":1}}"#;
            serde_json::from_str(&format!(
                r#"{{"message":"m","severity":{severity},"code":{code},"range":{range}}}"#
            ))
            .unwrap()
        };
        assert_eq!(read("2", "17").severity, Severity::Warning);
        assert_eq!(read("\"WEAK_WARNING\"", "17").severity, Severity::Hint);
        assert_eq!(read("\"Error\"", r#"{"value":"E1"}"#).code.as_deref(), Some("E1"));
        assert_eq!(read("1", "17").code.as_deref(), Some("17"));
        assert_eq!(read("1", "null").code, None);
    }
}
