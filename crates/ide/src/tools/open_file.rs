use oarlock_proto::ide::Dialect;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Call, Tool, failed};
use crate::editor::{OpenFile, Select};
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "openFile",
    about: "Open a file in the editor and optionally select a range of text in it",
    schema: r#"{"type":"object","properties":{
        "filePath":{"type":"string","description":"Absolute path of the file"},
        "preview":{"type":"boolean","description":"Open in preview mode"},
        "startText":{"type":"string","description":"Text at which the selection starts"},
        "endText":{"type":"string","description":"Text with which the selection ends; found after startText"},
        "selectToEndOfLine":{"type":"boolean","description":"Extend the selection to the end of its line"},
        "makeFrontmost":{"type":"boolean","description":"Give the editor the focus (default true)"}},
        "required":["filePath"]}"#,
    offered: |abilities| abilities.open_file,
    for_clis: false,
    replies: |dialect| match dialect {
        Dialect::Jetbrains => "`OK`, or `Project is closed or directory not found`",
        _ => {
            "`Opened file: PATH`; with `makeFrontmost: false` JSON `{success, filePath, languageId, lineCount}`"
        }
    },
    call,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    file_path: String,
    preview: Option<bool>,
    start_text: Option<String>,
    end_text: Option<String>,
    select_to_end_of_line: Option<bool>,
    make_frontmost: Option<bool>,
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    let path = call.absolute("filePath", &params.file_path)?;
    let dialect = call.dialect();
    if !path.exists() {
        return Ok(Answer::Now(match dialect {
            Dialect::Jetbrains => CallResult::error("Project is closed or directory not found"),
            _ => CallResult::error(format!("file not found: {}", path.display())),
        }));
    }
    let select = match params.start_text.filter(|start| !start.is_empty()) {
        Some(start) => Select::Text {
            start,
            end: params.end_text,
            to_end_of_line: params.select_to_end_of_line.unwrap_or(false),
        },
        None => Select::Nothing,
    };
    let make_frontmost = params.make_frontmost.unwrap_or(true);
    let request = OpenFile {
        path: path.clone(),
        select: select.clone(),
        preview: params.preview.unwrap_or(false),
        make_frontmost,
    };
    let editor = call.engine.editor.clone();
    Answer::later(call, async move {
        let opened = match editor.open_file(request).await {
            Ok(opened) => opened,
            Err(error) => return failed(&error),
        };
        let shown = paths::wire_path(&path);
        if dialect == Dialect::Jetbrains {
            return CallResult::text("OK");
        }
        let missing = select != Select::Nothing && !opened.selected;
        if make_frontmost {
            let note = if missing { " (the text to select was not found)" } else { "" };
            return CallResult::text(format!("Opened file: {shown}{note}"));
        }
        CallResult::json(&json!({
            "success": true,
            "filePath": shown,
            "languageId": opened.language_id,
            "lineCount": opened.line_count,
        }))
    })
}
