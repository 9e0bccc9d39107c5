//! The tools: one file each, one table.
//!
//! `tools/list`, the reference in `PROTOCOL.md` and the dispatch are all made from [`TABLE`].

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use oarlock_proto::ide::Dialect;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::{Arguments, CallResult, ToolEntry};
use oarlock_proto::text::Text;
use serde::{Deserialize, Serialize};
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

pub(crate) use get_diagnostics::in_words;
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
    pub(crate) call: fn(&mut Call<'_>) -> Result<Answer, ErrorObject>,
}

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) client: u64,
    pub(crate) tool: &'static Tool,
    pub(crate) arguments: Arguments<'a>,
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
        self.arguments.read().map_err(|why| self.wrong(&why))
    }

    /// Takes out an argument that may be large.
    fn take_text(&mut self, name: &str) -> Result<Text, ErrorObject> {
        let raw = self.arguments.take(name).ok_or_else(|| self.wrong(&format!("missing field `{name}`")))?;
        Text::from_json(raw)
            .ok_or_else(|| self.wrong(&format!("field `{name}` must be a string of valid text")))
    }

    fn wrong(&self, why: &str) -> ErrorObject {
        ErrorObject::invalid_params(format!("{}: {why}", self.tool.name))
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

/// The arguments of a tool about one file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilePath {
    file_path: String,
}

/// A tool by its name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    static TOOLS: [Tool; TABLE.len()] = TABLE;
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The answer to `tools/list`.
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
            // Every schema in the table is JSON; a test holds that. It is written for people, over several lines.
            let schema: String = tool.schema.lines().map(str::trim).collect();
            let input_schema = RawValue::from_string(schema).ok()?;
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
            let schema: serde_json::Value = serde_json::from_str(tool.schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }
}
