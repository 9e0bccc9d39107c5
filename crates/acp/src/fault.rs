//! Errors as the protocol has them: codes, words, and the kind of failure in `data`.

use oarlock_agent::Error;
use oarlock_agent::stream::AssistantError;
use oarlock_proto::acp::{AUTH_REQUIRED, NOT_FOUND};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// An error with data.
fn with_data(mut error: ErrorObject, data: &Value) -> ErrorObject {
    error.data = to_raw_value(data).ok();
    error
}

/// There is no such session.
pub(crate) fn no_session(id: &str) -> ErrorObject {
    let shown: String = id.chars().take(100).collect();
    with_data(
        ErrorObject::new(
            NOT_FOUND,
            format!("there is no session {shown}; session/list tells which there are"),
        ),
        &json!({ "sessionId": shown }),
    )
}

/// What the API did wrong, as an answer to a prompt.
pub(crate) fn api(kind: Option<&AssistantError>, status: Option<u64>, message: &str) -> ErrorObject {
    let kind = kind.map_or("unknown", AssistantError::as_str);
    if kind == AssistantError::AuthenticationFailed.as_str() || message.contains("Please run /login") {
        return login(message);
    }
    let data = json!({ "errorKind": kind, "status": status });
    with_data(ErrorObject::internal(message), &data)
}

/// The user must log in.
pub(crate) fn login(message: &str) -> ErrorObject {
    let words = format!("{message} (log in by one of the agent's methods, or run `claude` in a terminal)");
    with_data(ErrorObject::new(AUTH_REQUIRED, words), &json!({ "errorKind": "authentication_failed" }))
}

/// The CLI did something wrong: it could not be started, it died, it would not obey.
pub(crate) fn cli(error: &Error) -> ErrorObject {
    let kind = match error {
        Error::Login { message } => return login(message),
        Error::NoSession { name, .. } | Error::NoSessionId { id: name } => return no_session(name),
        Error::ProgramNotFound { .. } | Error::NoProgram { .. } => "cli_not_found",
        Error::Exited(_) => "cli_exited",
        Error::NotStarted { .. } | Error::Spawn { .. } | Error::TooOld { .. } => "cli_not_started",
        Error::NoAnswer { .. } => "cli_hangs",
        Error::Refused { .. } | Error::Unsupported { .. } => "cli_refused",
        _ => "internal",
    };
    let mut words = error.to_string();
    if let Error::ProgramNotFound { .. } = error {
        words += " by CLAUDE_CODE_EXECUTABLE or `oarlock acp --claude PATH`";
    }
    with_data(ErrorObject::internal(words), &json!({ "errorKind": kind }))
}
