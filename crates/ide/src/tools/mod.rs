//! The tools: one file each, one table.
//!
//! `tools/list`, the reference in `PROTOCOL.md` and the dispatch are all made from [`TABLE`].

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use oarlock_proto::ide::Dialect;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::{CallResult, ToolEntry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::editor::{Abilities, Cancelled, EditorError};
use crate::engine::Engine;
use crate::paths;

mod check_document_dirty;
mod close_all_diff_tabs;
mod close_tab;
mod execute_code;
mod get_all_opened_file_paths;
mod get_current_selection;
mod get_diagnostics;
mod get_latest_selection;
mod get_open_editors;
mod get_workspace_folders;
mod open_diff;
mod open_file;
mod open_files;
mod reformat_file;
mod save_document;

pub(crate) use open_diff::{Verdict, review};

/// Tells a client to list the tools again.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Every tool there is.
pub const TABLE: [Tool; 15] = [
    open_file::TOOL,
    open_diff::TOOL,
    get_current_selection::TOOL,
    get_latest_selection::TOOL,
    get_open_editors::TOOL,
    get_workspace_folders::TOOL,
    get_diagnostics::TOOL,
    check_document_dirty::TOOL,
    save_document::TOOL,
    close_tab::TOOL,
    close_all_diff_tabs::TOOL,
    execute_code::TOOL,
    open_files::TOOL,
    get_all_opened_file_paths::TOOL,
    reformat_file::TOOL,
];

/// One tool.
pub struct Tool {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it does, for the model and for people.
    pub about: &'static str,
    /// The JSON schema of its arguments.
    pub schema: &'static str,
    /// Whether an editor with these abilities can do it.
    pub offered: fn(Abilities) -> bool,
    /// Only for clients that announce themselves as a CLI.
    pub for_clis: bool,
    /// What it answers, in each dialect, for the reference.
    pub replies: fn(Dialect) -> &'static str,
    pub(crate) call: fn(&Call<'_>) -> Result<Answer, ErrorObject>,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) client: u64,
    pub(crate) tool: &'static Tool,
    pub(crate) arguments: Option<&'a RawValue>,
    /// The model asked for it, so somebody waits who can wait longer.
    pub(crate) for_model: bool,
    /// Fires when the client says that it wants no answer any more.
    pub(crate) cancelled: &'a Cancelled,
}

/// What a tool says, now or later.
pub(crate) enum Answer {
    Now(CallResult),
    Later(BoxFuture<'static, Settled>),
}

/// A late answer, and what remains to be done once it is sent.
pub(crate) struct Settled {
    pub(crate) result: CallResult,
    pub(crate) after: Option<BoxFuture<'static, ()>>,
}

impl From<CallResult> for Settled {
    fn from(result: CallResult) -> Self {
        Self { result, after: None }
    }
}

impl Answer {
    /// An answer from a future that ends early when the client cancels.
    fn later(
        call: &Call<'_>,
        work: impl Future<Output = CallResult> + Send + 'static,
    ) -> Result<Self, ErrorObject> {
        let cancelled = call.cancelled.clone();
        Ok(Self::Later(Box::pin(async move {
            tokio::select! {
                biased;
                result = work => result.into(),
                () = cancelled.cancelled() => CallResult::error("cancelled by the client").into(),
            }
        })))
    }
}

impl Call<'_> {
    /// Reads the arguments.
    fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ErrorObject> {
        let text = self.arguments.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| self.wrong(text, &error))
    }

    /// Says which argument is wrong and why, by the tool's own schema.
    fn wrong(&self, text: &str, error: &serde_json::Error) -> ErrorObject {
        let name = self.tool.name;
        let why = explain(self.tool.schema, text).unwrap_or_else(|| error.to_string());
        ErrorObject::invalid_params(format!("{name}: {why}"))
    }

    fn dialect(&self) -> Dialect {
        self.engine.settings.dialect
    }

    /// An absolute path, from whatever form the client writes paths in.
    fn absolute(&self, field: &str, text: &str) -> Result<PathBuf, ErrorObject> {
        let refuse =
            |why: &str| ErrorObject::invalid_params(format!("{}: field `{field}` {why}", self.tool.name));
        if text.contains('\0') {
            return Err(refuse("has a NUL byte in it"));
        }
        let path = paths::path_from_wire(text);
        if !path.is_absolute() {
            return Err(refuse("must be an absolute path"));
        }
        Ok(path)
    }
}

/// The first argument that does not fit the schema.
fn explain(schema: &str, arguments: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let Some(given) = arguments.as_object() else {
        return Some(format!("`arguments` must be an object, not {}", kind(&arguments)));
    };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
    for name in required {
        if !given.contains_key(name) {
            return Some(format!("field `{name}` is missing"));
        }
    }
    for (name, property) in schema["properties"].as_object()? {
        let (Some(value), Some(wanted)) = (given.get(name), property["type"].as_str()) else { continue };
        let optional_null = value.is_null() && !is_required(name);
        if !optional_null && kind(value) != wanted {
            return Some(format!("field `{name}` must be of type {wanted}, not {}", kind(value)));
        }
        if let (Some(items), Some(wanted)) = (value.as_array(), property["items"]["type"].as_str())
            && let Some(item) = items.iter().find(|item| kind(item) != wanted)
        {
            return Some(format!("field `{name}` must hold items of type {wanted}, not {}", kind(item)));
        }
    }
    None
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A tool by its name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    static TOOLS: [Tool; TABLE.len()] = TABLE;
    TOOLS.iter().find(|tool| tool.name == name)
}

#[derive(Serialize)]
pub(crate) struct List {
    tools: Vec<ToolEntry<'static>>,
}

/// The tools that this editor can do and this client may have.
pub(crate) fn list(engine: &Engine, for_cli: bool) -> List {
    let abilities = engine.editor.abilities();
    let tools = TABLE
        .into_iter()
        .filter(|tool| (tool.offered)(abilities) && (for_cli || !tool.for_clis))
        .filter_map(|tool| {
            // Every schema in the table is JSON; a test holds that.
            let input_schema = serde_json::from_str(tool.schema).ok()?;
            Some(ToolEntry { name: tool.name, description: tool.about, input_schema })
        })
        .collect();
    List { tools }
}

/// The answer when an editor's method panicked.
pub(crate) fn panicked(tool: &str) -> CallResult {
    CallResult::error(format!("{tool} failed: the editor's code panicked; see the log of the engine"))
}

/// The answer when an editor's method failed.
fn failed(error: &EditorError) -> CallResult {
    CallResult::error(error.to_string())
}

/// The same answer in every dialect.
macro_rules! same {
    ($text:expr) => {
        |_| $text
    };
}
use same;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_an_object_schema() {
        for tool in TABLE {
            let schema: Value = serde_json::from_str(tool.schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array",
            "items":{"type":"string"}}},"required":["a"]}"#;
        let why = |arguments: &str| explain(schema, arguments).unwrap_or_default();
        assert_eq!(why("{}"), "field `a` is missing");
        assert_eq!(why(r#"{"a":5}"#), "field `a` must be of type string, not number");
        assert_eq!(why(r#"{"a":null}"#), "field `a` must be of type string, not null");
        assert_eq!(why(r#"{"a":"x","b":[1]}"#), "field `b` must hold items of type string, not number");
        assert_eq!(why("[]"), "`arguments` must be an object, not array");
        assert_eq!(explain(schema, r#"{"a":"x","b":null,"c":1}"#), None);
    }
}
