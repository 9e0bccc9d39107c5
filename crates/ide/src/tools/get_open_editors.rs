use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Serialize;

use super::{Answer, Call, Tool, failed, same};
use crate::editor::Document;
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "getOpenEditors",
    about: "List the open editor tabs",
    schema: r#"{"type":"object","properties":{}}"#,
    offered: |abilities| abilities.documents,
    for_clis: false,
    replies: same!("JSON `[{uri, isActive, label, languageId, isDirty, isUntitled}]`"),
    call,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tab {
    uri: String,
    is_active: bool,
    label: String,
    language_id: String,
    is_dirty: bool,
    is_untitled: bool,
}

impl From<Document> for Tab {
    fn from(document: Document) -> Self {
        let name = document.path.file_name().unwrap_or(document.path.as_os_str());
        let uri = if document.is_untitled {
            format!("untitled:{}", document.path.display())
        } else {
            paths::file_uri(&document.path)
        };
        Self {
            uri,
            label: name.to_string_lossy().into_owned(),
            is_active: document.is_active,
            language_id: document.language_id,
            is_dirty: document.is_dirty,
            is_untitled: document.is_untitled,
        }
    }
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        match editor.documents().await {
            Ok(documents) => CallResult::json(&documents.into_iter().map(Tab::from).collect::<Vec<_>>()),
            Err(error) => failed(&error),
        }
    })
}
