use std::path::Path;

use oarlock_proto::ide::{Diagnostic, Dialect, FileDiagnostics};
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_proto::mcp::CallResult;
use oarlock_proto::pos::Range;
use serde::{Deserialize, Serialize};

use super::{Answer, Call, Tool};
use crate::editor::{FileProblems, Scope};
use crate::paths;

pub(super) const TOOL: Tool = Tool {
    name: "getDiagnostics",
    about: "Get the problems (errors, warnings) that the editor knows of, for one file or for all",
    schema: r#"{"type":"object","properties":{
        "uri":{"type":"string","description":"file:// URI of the file; leave it out for all files"}}}"#,
    offered: |abilities| abilities.diagnostics,
    for_clis: false,
    replies: |dialect| match dialect {
        Dialect::Jetbrains => {
            "JSON `[{uri, diagnostics}]`; severities `ERROR`, `WARNING`, `WEAK_WARNING`, `INFO`; without `uri` the \
             current file's"
        }
        _ => {
            "JSON `[{uri, diagnostics: [{message, severity, range, source?, code?}]}]`; severities `Error`, `Warning`, \
             `Info`, `Hint`; `[]` in doubt"
        }
    },
    call,
};

#[derive(Deserialize)]
struct Params {
    uri: Option<String>,
}

/// A diagnostic in a dialect's words.
#[derive(Serialize)]
struct Entry<'a> {
    message: &'a str,
    severity: &'static str,
    range: Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn new(diagnostic: &'a Diagnostic, dialect: Dialect) -> Self {
        Self {
            message: &diagnostic.message,
            severity: diagnostic.severity.name(dialect),
            range: diagnostic.range,
            source: diagnostic.source.as_deref(),
            code: diagnostic.code.as_deref(),
        }
    }
}

/// A file's diagnostics in a dialect's words.
#[derive(Serialize)]
pub(crate) struct File<'a> {
    uri: &'a str,
    diagnostics: Vec<Entry<'a>>,
}

/// Puts diagnostics into a dialect's words.
pub(crate) fn in_words(file: &FileDiagnostics, dialect: Dialect) -> File<'_> {
    let diagnostics = file.diagnostics.iter().map(|diagnostic| Entry::new(diagnostic, dialect)).collect();
    File { uri: &file.uri, diagnostics }
}

fn call(call: &mut Call<'_>) -> Result<Answer, ErrorObject> {
    let params: Params = call.read()?;
    let engine = call.engine.clone();
    let dialect = call.dialect();
    let times = engine.settings.diagnostics;
    let time = match (&params.uri, call.for_model) {
        (_, true) => times.model,
        (Some(_), false) => times.file,
        (None, false) => times.all,
    };
    if !engine.editor.abilities().diagnostics {
        // The CLI asks in any case, and waits: an empty list is a good baseline.
        return Ok(Answer::Now(CallResult::text("[]")));
    }
    Answer::later(call, async move {
        let asked = async {
            let path = match &params.uri {
                Some(uri) => Some(paths::path_from_uri(uri)?),
                // For JetBrains no uri means the current file.
                None if dialect == Dialect::Jetbrains => Some(engine.editor.selection().await.ok()??.path),
                None => None,
            };
            let scope = path.clone().map_or(Scope::All, Scope::File);
            let files = engine.editor.diagnostics(scope).await.ok()?;
            Some(collect(files, path.as_deref()))
        };
        // Late is worse than empty: one CLI version ignores it, the other stands still until it comes.
        let files = tokio::time::timeout(time, asked).await.ok().flatten().unwrap_or_default();
        render(&files, dialect)
    })
}

/// Files by their raw uri: the CLI does not match an encoded one, however it was asked.
fn collect(files: Vec<FileProblems>, asked: Option<&Path>) -> Vec<FileDiagnostics> {
    files
        .into_iter()
        .filter(|file| asked.is_none_or(|asked| file.path == asked))
        .map(|file| FileDiagnostics { uri: paths::file_uri(&file.path), diagnostics: file.diagnostics })
        .collect()
}

fn render(files: &[FileDiagnostics], dialect: Dialect) -> CallResult {
    CallResult::json(&files.iter().map(|file| in_words(file, dialect)).collect::<Vec<_>>())
}
