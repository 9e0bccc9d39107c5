//! What the user is asked: permissions, the model's questions, plans, forms of MCP servers.
//!
//! Every function here ends in an answer to the CLI. When the client cannot be asked, or says nothing, that is a no.

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{Elicitation, PermissionMode, reply};

use crate::context::Asker;

/// What the session knows that a question depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Situation {
    /// The modes that a plan may be left for.
    pub(crate) modes: Vec<PermissionMode>,
    /// How full the context is, in percent.
    pub(crate) context_used: Option<u8>,
    /// The call that started the subagent which asks.
    pub(crate) parent_tool_use_id: Option<String>,
}

/// May this tool run? The client has been told of the call.
pub(crate) async fn permission(
    asker: &Asker,
    request: &PermissionRequest,
    situation: &Situation,
) -> Decision {
    let _ = (asker, situation);
    request.deny("not asked")
}

/// An MCP server asks the user.
pub(crate) async fn elicitation(asker: &Asker, request: Elicitation) -> reply::Elicitation {
    let _ = (asker, request);
    reply::Elicitation { action: reply::ElicitationAction::Decline, ..Default::default() }
}
