//! The CLI itself asks something: may a refused request go to another model?

use oarlock_agent::stream::{Json, RequestUserDialog};
use oarlock_proto::acp::{CreateElicitation, ElicitationMode, ElicitationResponse};
use serde::Deserialize;
use serde_json::json;

use crate::context::Asker;

/// The dialogs that can be shown, by a client that shows forms. The CLI asks no others.
pub(crate) const KINDS: [&str; 1] = ["refusal_fallback_prompt"];

/// The one field of the form, and the answer that is a yes.
const FIELD: &str = "choice";
const RETRY: &str = "retry_fallback";
const KEEP: &str = "cancelled";

/// A model has refused, and another one could try.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    original_model: String,
    fallback_model: String,
    api_refusal_category: Option<String>,
    guidance_text: Option<String>,
}

/// Shows a dialog of the CLI's. One that cannot be shown is cancelled: the CLI then does what it does without asking.
pub(crate) async fn dialog(asker: &Asker, request: RequestUserDialog) -> Result<Json, String> {
    let cancelled = || Json::from(json!({ "behavior": "cancelled" }));
    if !KINDS.contains(&request.dialog_kind.as_str()) || !asker.client().shows_forms() {
        return Ok(cancelled());
    }
    let Ok(refusal) = request.payload.read::<Refusal>() else { return Ok(cancelled()) };
    match asker.ask("elicitation/create", &form(asker, refusal)).await {
        Ok(ElicitationResponse::Accept { content }) => {
            // Nothing but a clear yes changes the model.
            let is_yes =
                content.is_some_and(|content| content.get(FIELD).is_some_and(|choice| choice == RETRY));
            let result = if is_yes { RETRY } else { KEEP };
            Ok(json!({ "behavior": "completed", "result": result }).into())
        }
        Ok(ElicitationResponse::Decline) => Ok(json!({ "behavior": "completed", "result": KEEP }).into()),
        Ok(_) => Ok(cancelled()),
        Err(error) => {
            tracing::warn!(%error, "a dialog could not be shown");
            Ok(cancelled())
        }
    }
}

fn form(asker: &Asker, refusal: Refusal) -> CreateElicitation {
    let Refusal { original_model, fallback_model, api_refusal_category, guidance_text } = refusal;
    let why = api_refusal_category.map(|category| format!(" ({category})")).unwrap_or_default();
    let guidance = guidance_text.map(|text| format!("\n\n{text}")).unwrap_or_default();
    let schema = json!({
        "type": "object",
        "properties": { FIELD: { "type": "string", "oneOf": [
            { "const": RETRY, "title": format!("Try again with {fallback_model}") },
            { "const": KEEP, "title": "Leave it" },
        ] } },
    });
    CreateElicitation {
        session_id: asker.session_id.to_string(),
        tool_call_id: None,
        message: format!(
            "{original_model} declined this request{why}. Shall {fallback_model} try?{guidance}"
        ),
        mode: ElicitationMode::Form { requested_schema: schema.into() },
    }
}
