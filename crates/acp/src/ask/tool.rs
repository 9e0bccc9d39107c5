//! May this tool run? The answers that are offered, and the decision behind each.

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{
    PermissionBehavior, PermissionDestination, PermissionMode, PermissionRule, PermissionUpdate, RulesUpdate,
    ToolInput,
};
use oarlock_proto::acp::PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};

use super::menu::Offer;
use super::scope::{self, Place};

/// What the model reads when the user says no.
const NO: &str = "The user said no to this call, and nothing was done. Do not try to get it done in another way: go on \
                  without it, or ask the user what to do instead.";
/// What the model would read when the user wants to go on planning; the turn ends, so it is for the transcript.
const KEEP_PLANNING: &str = "The user wants to keep planning. Stay in plan mode, and wait for what they say.";

/// The answers that are offered about a call.
pub(super) fn offers(
    request: &PermissionRequest,
    suggested: Vec<PermissionUpdate>,
    modes: &[PermissionMode],
    place: Place<'_>,
) -> Vec<Offer<Decision>> {
    let mut offers = match request.tool() {
        ToolInput::ExitPlanMode(_) => leave_plan(request, modes),
        ToolInput::EnterPlanMode(_) => vec![
            Offer::new(AllowOnce, "allow-once", "Yes, enter plan mode", request.allow()),
            Offer::new(RejectOnce, "reject", "No, start implementing now", request.deny(NO)),
        ],
        ToolInput::Skill(skill) => use_skill(request, skill.skill.as_deref().unwrap_or_default(), place),
        _ => run(request, suggested, place),
    };
    if request.default_to_no == Some(true) {
        // Sorting is stable: among themselves they stay in order.
        offers.sort_by_key(|offer| !offer.is_refusal());
    }
    offers
}

fn run(
    request: &PermissionRequest,
    suggested: Vec<PermissionUpdate>,
    place: Place<'_>,
) -> Vec<Offer<Decision>> {
    let label = scope::label(&suggested, place).filter(|_| may_be_kept(request));
    let always = label.map(|label| {
        Offer::new(AllowAlways, "allow-with-updates", label, request.allow_and_update(suggested))
    });
    between(request, always)
}

/// A skill by its exact name, or all that begin with its first word.
fn use_skill(request: &PermissionRequest, skill: &str, place: Place<'_>) -> Vec<Offer<Decision>> {
    let always = |id: &str, rule: String| {
        let update = PermissionUpdate::AddRules(RulesUpdate {
            rules: vec![PermissionRule {
                tool_name: "Skill".into(),
                rule_content: Some(rule),
                ..Default::default()
            }],
            behavior: PermissionBehavior::Allow,
            destination: PermissionDestination::LocalSettings,
            ..Default::default()
        });
        let updates = vec![update];
        let label = scope::label(&updates, place)?;
        Some(Offer::new(AllowAlways, id, label, request.allow_and_update(updates)))
    };
    if skill.is_empty() || !may_be_kept(request) {
        return between(request, None);
    }
    let exact = always("allow-skill-exact", skill.to_owned());
    let first_word = skill.split_once(' ').map(|(word, _)| word).filter(|word| !word.is_empty());
    let prefix = first_word.and_then(|word| always("allow-skill-prefix", format!("{word}:*")));
    between(request, exact.into_iter().chain(prefix))
}

/// Yes, these, no.
fn between(
    request: &PermissionRequest,
    always: impl IntoIterator<Item = Offer<Decision>>,
) -> Vec<Offer<Decision>> {
    let mut offers = vec![Offer::new(AllowOnce, "allow-once", "Yes", request.allow())];
    offers.extend(always);
    offers.push(Offer::new(RejectOnce, "reject", "No", request.deny(NO)));
    offers
}

/// May an answer be more than a single yes?
fn may_be_kept(request: &PermissionRequest) -> bool {
    let is_asked_by_rule = request.matched_ask_rule.as_ref().is_some_and(|rule| !rule.is_null());
    // `server_policy_ask_only` is no reason: 2.1.325 says it of every edit, and obeys its own suggestion all the same.
    !is_asked_by_rule && request.suppress_always_allow_rule != Some(true)
}

fn leave_plan(request: &PermissionRequest, modes: &[PermissionMode]) -> Vec<Offer<Decision>> {
    let mut offers = vec![Offer::new(
        AllowOnce,
        "exit-plan-default",
        "Yes, manually approve edits",
        request.approve_plan(PermissionMode::Default),
    )];
    let ways = [
        (PermissionMode::Auto, "exit-plan-auto", "Yes, and use auto mode"),
        (PermissionMode::BypassPermissions, "exit-plan-bypass", "Yes, and bypass permissions"),
        (PermissionMode::AcceptEdits, "exit-plan-accept-edits", "Yes, auto-accept edits"),
    ];
    for (mode, id, name) in ways {
        // This one is always there, even if it is not known yet which are.
        if modes.contains(&mode) || modes.is_empty() && mode == PermissionMode::AcceptEdits {
            offers.push(Offer::new(AllowAlways, id, name, request.approve_plan(mode)));
        }
    }
    let no = request.deny_and_interrupt(KEEP_PLANNING);
    offers.push(Offer::new(RejectOnce, "reject", "No, keep planning", no));
    offers
}
