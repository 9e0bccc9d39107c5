//! The model wants to leave plan mode and begin.

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::PermissionMode;

use super::super::markdown::Markdown;
use super::{Person, Spoken, permission};
use crate::output::{DIM, STRONG};

/// Shows the plan, and asks whether and how to begin.
pub(super) fn ask(request: &PermissionRequest, plan: &str, person: &mut impl Person) -> Spoken<Decision> {
    person.print(&format!("{STRONG}Claude has a plan:{STRONG:#}\n\n"))?;
    match plan.trim() {
        "" => person.print(&format!("{DIM}(it is empty){DIM:#}\n"))?,
        plan => person.print(&Markdown::render(plan))?,
    }
    person.print("\n")?;
    loop {
        let question = "begin? y(es), a(ccept all edits), n(o) [what is wrong] or q(uit):";
        let line = person.ask(&format!("{STRONG}{question}{STRONG:#} "))?;
        let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((&line, ""));
        match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("y" | "yes", "") => return Ok(request.approve_plan(PermissionMode::Default)),
            ("a" | "accept", "") => return Ok(request.approve_plan(PermissionMode::AcceptEdits)),
            ("n" | "no", "") => {
                return Ok(request.deny("The user does not agree with the plan yet. Ask what to change."));
            }
            ("n" | "no", reason) => return Ok(request.deny(permission::refusal(reason))),
            ("q" | "quit", "") => {
                return Ok(request.deny_and_interrupt("the user has refused the plan and stopped the turn"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::permission;
    use super::super::scripted::{self, Scripted};

    fn decided(lines: &[&'static str]) -> (Value, String) {
        let body = json!({"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "tool_use_id": "t",
            "input": {"plan": "# Plan\n- do **it**\u{1b}[2J"}});
        let mut person = Scripted::saying(lines.iter().copied());
        let decision = permission::ask(&scripted::request(body), &mut person).unwrap();
        (serde_json::to_value(decision).unwrap(), person.plain())
    }

    #[test]
    fn a_plan_is_shown_and_approved_in_a_mode_or_sent_back() {
        let (yes, shown) = decided(&["", "y"]);
        assert_eq!(
            yes["updatedPermissions"],
            json!([{"type": "setMode", "mode": "default", "destination": "session"}])
        );
        assert!(shown.contains("Plan\n• do it\\u{1b}[2J\n"), "{shown}");
        assert_eq!(decided(&["a"]).0["updatedPermissions"][0]["mode"], "acceptEdits");
        let (no, _) = decided(&["n test it first"]);
        assert_eq!(no["behavior"], "deny");
        assert!(no["message"].as_str().unwrap().contains("test it first"), "{no}");
        assert_eq!(decided(&["q"]).0["interrupt"], true);
    }
}
