//! The CLI of a session: which options it is started with.

use std::path::PathBuf;
use std::time::Duration;

use oarlock_agent::options::{McpServerConfig, RemoteServer, StdioServer, SystemPrompt, Thinking};
use oarlock_agent::permission::Decision;
use oarlock_agent::{Error, Options};
use oarlock_proto::acp::{McpServer, Meta, Pair, SetupRequest};
use serde_json::Value;
use tokio::sync::mpsc;

use super::actor::Note;
use super::gate::Gate;
use super::given;
use crate::context::Asker;
use crate::{ask, review};

/// What a CLI has to end by itself, and again after it was told to. A client's exit must leave nothing behind for long.
const GRACE: Duration = Duration::from_millis(1200);
/// How long the first turn may wait for an MCP server that does not come up, unless the user has set it.
const MCP: Duration = Duration::from_secs(10);
/// Between two looks at what the CLI streams. Less than a frame of a fast screen, and at its usual speed the CLI does not
/// fill its pipe in it.
const PAUSE: Duration = Duration::from_millis(8);
/// For the CLI's first answer.
const START: Duration = Duration::from_secs(60);

/// The options of a session's CLI, besides what is chosen in it and how it begins.
pub(super) fn options(
    asker: &Asker,
    request: &SetupRequest,
    gate: &Gate,
    notes: &mpsc::Sender<Note>,
) -> Result<Options, Error> {
    let mut options = Options::new()
        .program(asker.context.program()?)
        .cwd(&request.cwd)
        .setting_sources(["user", "project", "local"])
        .include_partial_messages(true)
        .replay_user_messages(true)
        .start_timeout(START)
        .end_leftovers(true)
        .stream_pause(PAUSE)
        .close_grace(GRACE);
    if std::env::var_os("MCP_TIMEOUT").is_none() {
        options = options.mcp_timeout(MCP);
    }
    for directory in directories(request) {
        options = options.add_dir(directory);
    }
    for server in &request.mcp_servers {
        if let Some(config) = mcp_server(server) {
            options = options.mcp_server(&server.name, config);
        }
    }
    if let Some(client) = &asker.context.client_info {
        options = options.client_app(format!("{}/{}", client.name, client.version));
    }
    if let Some(meta) = &request.meta {
        options = with_meta(options, meta);
    }
    // The user's word counts more than the client's.
    if let Some(display) = &asker.context.settings.thinking {
        options = options.thinking(Thinking::adaptive().display(display.clone()));
    }
    if asker.context.settings.review_edits {
        let word;
        (options, word) = review::apply(options, asker, &request.cwd, &wishes(request.meta.as_ref()));
        if let Some(word) = word {
            tracing::warn!("{word}");
            let _ = notes.try_send(Note::Review(word));
        }
    }
    Ok(with_questions(options, asker, gate, notes))
}

fn with_questions(options: Options, asker: &Asker, gate: &Gate, notes: &mpsc::Sender<Note>) -> Options {
    let to_ask = (gate.clone(), notes.clone(), asker.clone());
    let options = options.can_use_tool(move |request| {
        let (gate, notes, asker) = to_ask.clone();
        async move {
            let asked = async {
                let situation = gate.shown(request.request_id()).await?;
                Some(ask::permission(&asker, &request, &situation).await)
            };
            let decision = gate.unless_cancelled(asked).await.flatten();
            let decision = decision.unwrap_or_else(|| ask::cancelled(&request));
            if matches!(decision, Decision::Allow(_)) {
                let _ = notes.send(Note::Allowed(request.tool_use_id.clone())).await;
            }
            decision
        }
    });
    let to_ask = (gate.clone(), asker.clone());
    let options = options.on_elicitation(move |request| {
        let (gate, asker) = to_ask.clone();
        async move {
            let answer = gate.unless_cancelled(ask::elicitation(&asker, request.into_inner())).await;
            answer.unwrap_or_else(ask::no_elicitation)
        }
    });
    if !asker.client().shows_forms() {
        return options;
    }
    let asker = asker.clone();
    options.supported_dialog_kinds(ask::DIALOGS).on_dialog(move |request| {
        let asker = asker.clone();
        async move { ask::dialog(&asker, request.into_inner()).await }
    })
}

fn directories(request: &SetupRequest) -> Vec<PathBuf> {
    let old = request.meta.as_ref().and_then(|meta| meta.get("additionalRoots")?.as_array());
    let old = old.into_iter().flatten().filter_map(Value::as_str);
    request.additional_directories.iter().map(String::as_str).chain(old).map(PathBuf::from).collect()
}

/// An MCP server of the client's; `None` for a kind that the CLI does not have.
fn mcp_server(server: &McpServer) -> Option<McpServerConfig> {
    let headers = |remote: RemoteServer| {
        server.headers.iter().fold(remote, |remote, Pair { name, value }| remote.header(name, value))
    };
    Some(match server.kind.as_deref() {
        None | Some("stdio") => {
            let program = StdioServer::new(&server.command).args(&server.args);
            server.env.iter().fold(program, |program, Pair { name, value }| program.env(name, value)).into()
        }
        Some("http") => headers(RemoteServer::http(&server.url)).into(),
        Some("sse") => headers(RemoteServer::sse(&server.url)).into(),
        Some(kind) => {
            tracing::warn!(server = server.name, kind, "an MCP server of a kind that is not known");
            return None;
        }
    })
}

/// What the client says about the built-in tools.
fn wishes(meta: Option<&Meta>) -> review::Wishes {
    let given = meta.and_then(|meta| meta.get("claudeCode")?.get("options"));
    let words =
        |name: &str| given.and_then(|given| given.get(name)).filter(|list| list.is_array()).map(given::words);
    let has_none = meta.is_some_and(|meta| meta.get("disableBuiltInTools") == Some(&Value::Bool(true)));
    let tools = words("tools").or_else(|| has_none.then(Vec::new));
    review::Wishes { tools, disallowed: words("disallowedTools").unwrap_or_default() }
}

/// What clients of the reference adapter send along: `systemPrompt`, and SDK options under `claudeCode`.
fn with_meta(mut options: Options, meta: &Meta) -> Options {
    match meta.get("systemPrompt") {
        Some(Value::String(prompt)) => options = options.system_prompt(SystemPrompt::Text(prompt.clone())),
        Some(Value::Object(prompt)) => {
            if let Some(append) = prompt.get("append").and_then(Value::as_str) {
                options = options.append_system_prompt(append);
            }
        }
        _ => {}
    }
    if meta.get("disableBuiltInTools") == Some(&Value::Bool(true)) {
        options = options.tools([""; 0]);
    }
    match meta.get("claudeCode").and_then(|meta| meta.get("options")) {
        Some(given) => given::add(options, given),
        None => options,
    }
}
