//! What the user is asked: permissions, the model's questions, plans, forms of MCP servers.
//!
//! Every function here ends in an answer to the CLI. When the client cannot be asked, or says nothing, that is a no.
//!
//! | what | where |
//! | --- | --- |
//! | a question with a few answers | [`menu`] |
//! | may this tool run | [`tool`], and how far "always" reaches: [`scope`] |
//! | the model asks (`AskUserQuestion`) | [`question`] |
//! | an MCP server asks | [`form`] |
//! | the CLI asks | [`dialog`] |

mod dialog;
mod form;
mod menu;
mod question;
mod scope;
#[cfg(test)]
pub(crate) mod tests;
mod tool;

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::PermissionMode;
use oarlock_proto::acp::ToolCall;
use serde_json::{Map, json};

use crate::context::Asker;
use crate::review;
use menu::Choice;
use scope::Place;

pub(crate) use dialog::{KINDS as DIALOGS, dialog};
pub(crate) use form::{elicitation, elicitation_complete, no_elicitation};

/// What the session knows that a question depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Situation {
    /// Where the session works.
    pub(crate) cwd: String,
    /// The mode in force.
    pub(crate) mode: Option<PermissionMode>,
    /// The modes that a plan may be left for.
    pub(crate) modes: Vec<PermissionMode>,
    /// The call that started the subagent which asks.
    pub(crate) parent_tool_use_id: Option<String>,
}

/// May this tool run? The client has been told of the call.
pub(crate) async fn permission(
    asker: &Asker,
    request: &PermissionRequest,
    situation: &Situation,
) -> Decision {
    let tool_call = tool_call(request, situation);
    if request.tool_name == "AskUserQuestion" {
        return question::ask(asker, request, tool_call).await;
    }
    if let Some(decision) = review::decide(asker, request, situation) {
        return decision;
    }
    let suggested = review::always(asker, request, situation)
        .or_else(|| request.permission_suggestions.clone())
        .unwrap_or_default();
    let home = etcetera::home_dir().ok();
    let place = Place { cwd: &situation.cwd, home: home.as_deref().and_then(std::path::Path::to_str) };
    let offers = tool::offers(request, suggested, &situation.modes, place);
    settle(request, menu::ask(asker, tool_call, offers).await)
}

/// The decision about a call of a turn that the user has cancelled.
pub(crate) fn cancelled(request: &PermissionRequest) -> Decision {
    request.deny_and_interrupt("The user stopped the turn before this call ran.")
}

/// The decision that a choice comes to.
fn settle(request: &PermissionRequest, choice: Choice<Decision>) -> Decision {
    match choice {
        Choice::Made(decision) => decision,
        Choice::Cancelled => cancelled(request),
        Choice::Failed(why) => {
            tracing::warn!(tool = request.tool_name, why, "the user could not be asked");
            request.deny(format!("The user could not be asked ({why}), so this call was not made."))
        }
    }
}

/// The call that is asked about. The client knows it: its name and a line are enough.
fn tool_call(request: &PermissionRequest, situation: &Situation) -> ToolCall {
    let call = reduce::ToolCall {
        name: review::plain_name(&request.tool_name).to_owned(),
        input: request.input.clone(),
        ..Default::default()
    };
    let meta = situation
        .parent_tool_use_id
        .as_ref()
        .map(|parent| Map::from_iter([("claudeCode".to_owned(), json!({ "parentToolUseId": parent }))]));
    ToolCall {
        tool_call_id: request.tool_use_id.clone(),
        title: Some(view::title(&call, Some(&situation.cwd))),
        meta,
        ..Default::default()
    }
}
