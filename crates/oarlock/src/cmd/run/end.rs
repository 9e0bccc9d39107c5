//! How a run ends: the exit code and its words.

use oarlock_agent::Error;
use oarlock_agent::reduce::ApiFailure;
use oarlock_agent::stream::{AssistantError, ResultKind, TurnResult};

use super::args;
use crate::exit::{Failure, INTERRUPTED};
use crate::output::visible;

/// What a turn came to.
///
/// # Errors
/// When it failed, with the exit code for it.
pub(super) fn of_turn(result: &TurnResult, api: Option<&ApiFailure>) -> anyhow::Result<()> {
    if !result.is_error {
        return Ok(());
    }
    let errors = result.errors.as_deref().unwrap_or_default();
    // Diagnostics of the CLI say nothing to people.
    let said = errors.iter().find(|error| !error.starts_with("[ede_diagnostic]"));
    let said = fit(said.cloned().unwrap_or_else(|| result.subtype.to_string()));
    Err(match result.subtype {
        ResultKind::Success => api_failure(result, api),
        ResultKind::ErrorMaxTurns => {
            Failure::limit(format!("{said}; give it more with --max-turns, or go on with --resume"))
        }
        ResultKind::ErrorMaxBudgetUsd => {
            Failure::limit(format!("{said}; give it more with --max-budget-usd"))
        }
        ResultKind::ErrorMaxStructuredOutputRetries => {
            anyhow::anyhow!("the model did not keep to the schema: {said}")
        }
        _ => anyhow::anyhow!("the turn ended early: {said}"),
    })
}

fn api_failure(result: &TurnResult, api: Option<&ApiFailure>) -> anyhow::Error {
    let message = result.result.clone().unwrap_or_default();
    let status = result.api_error_status.or_else(|| api.and_then(|api| api.status));
    let kind = api.map(|api| api.error.clone());
    let error = if kind == Some(AssistantError::AuthenticationFailed) || status == Some(401) {
        Error::Login { message }
    } else {
        Error::Api { status, kind, message }
    };
    Failure::api(fit(error))
}

/// Words of the API or of the CLI, which must not play tricks on the terminal.
fn fit(text: impl ToString) -> String {
    text.to_string().lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// Why a session could not begin, or broke off.
pub(super) fn of_session(error: Error, is_resumed: bool) -> anyhow::Error {
    match error {
        Error::ProgramNotFound { .. } | Error::NoProgram { .. } => Failure::not_found(fit(error)),
        Error::NotStarted { .. } if is_resumed => {
            let error = fit(error);
            Failure::not_found(format!("{error}; `oarlock sessions list` shows the conversations there are"))
        }
        Error::Option { option, reason } => Failure::usage(fit(args::complaint(option, &reason))),
        Error::TooOld { flag, .. } => Failure::usage(fit(format!(
            "claude does not know the option {flag}; correct it, or update claude (`claude update`)"
        ))),
        Error::NoDirectory { .. } => Failure::usage(fit(error)),
        Error::Login { .. } | Error::Api { .. } => Failure::api(fit(error)),
        error => anyhow::anyhow!("{}", fit(error)),
    }
}

/// The person has interrupted it.
pub(super) fn interrupted() -> anyhow::Error {
    Failure::Code(INTERRUPTED).into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn failure(result: Value) -> (Option<Failure>, String) {
        let result: TurnResult = serde_json::from_value(result).unwrap();
        let error = of_turn(&result, None).unwrap_err();
        let text = format!("{error:#}");
        (error.downcast::<Failure>().ok(), text)
    }

    #[test]
    fn each_failure_has_its_code_and_words() {
        let (kind, text) = failure(
            json!({"subtype": "success", "is_error": true, "result": "Overloaded", "api_error_status": 529}),
        );
        assert!(
            matches!(kind, Some(Failure::Api(_))) && text.contains("529") && text.contains("Overloaded"),
            "{text}"
        );
        let (kind, text) = failure(
            json!({"subtype": "success", "is_error": true, "result": "Invalid key", "api_error_status": 401}),
        );
        assert!(matches!(kind, Some(Failure::Api(_))) && text.contains("log in"), "{text}");
        let (kind, text) =
            failure(json!({"subtype": "error_max_turns", "is_error": true, "errors": ["Reached 1"]}));
        assert!(matches!(kind, Some(Failure::Limit(_))) && text.starts_with("Reached 1;"), "{text}");
        let (kind, text) = failure(
            json!({"subtype": "error_during_execution", "is_error": true, "errors": ["[ede_diagnostic] x"]}),
        );
        assert!(kind.is_none() && !text.contains("ede"), "{text}");
        let (_, text) = failure(json!({"subtype": "success", "is_error": true, "result": "\u{1b}[2J\ntwo"}));
        assert!(text.contains("\\u{1b}[2J\ntwo"), "{text}");
        let fine: TurnResult = serde_json::from_value(json!({"subtype": "success"})).unwrap();
        assert!(of_turn(&fine, None).is_ok());
    }
}
