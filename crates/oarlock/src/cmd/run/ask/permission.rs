//! May this tool run?

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{
    Json, PermissionBehavior, PermissionDestination, PermissionMode, PermissionResult, PermissionRule,
    PermissionUpdate, ToolInput,
};

use super::{Person, Spoken, change, choice, plan};
use crate::output::{DIM, STRONG, WARN, visible};

/// What a person can answer.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Yes,
    No(String),
    Always,
    Edit,
    Quit,
    Again,
}

impl Choice {
    /// An empty line asks again, because a stray Enter must decide nothing.
    fn read(line: &str) -> Self {
        let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
        match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("y" | "yes", "") => Self::Yes,
            ("n" | "no", reason) => Self::No(reason.to_owned()),
            ("a" | "always", "") => Self::Always,
            ("e" | "edit", "") => Self::Edit,
            ("q" | "quit", "") => Self::Quit,
            _ => Self::Again,
        }
    }
}

/// Asks about a tool, in the way that suits it.
pub(super) fn ask(request: &PermissionRequest, person: &mut impl Person) -> Spoken<Decision> {
    match (request.questions(), request.plan()) {
        (Some(questions), _) => choice::ask(request, &questions, person),
        (_, Some(plan)) => plan::ask(request, &plan, person),
        _ => ask_about(request, person),
    }
}

fn ask_about(request: &PermissionRequest, person: &mut impl Person) -> Spoken<Decision> {
    let rules = rules(request);
    let mut edited: Option<Json> = None;
    'shown: loop {
        person.print(&describe(request, edited.as_ref().unwrap_or(&request.input)))?;
        let always = match rules {
            Some(rules) => {
                let rules: Vec<String> = rules.iter().map(rule).collect();
                person.print(&format!("  {DIM}a(lways):{DIM:#} {}\n", rules.join("; ")))?;
                ", a(lways)"
            }
            None => "",
        };
        loop {
            let line = person
                .ask(&format!("{STRONG}allow it? y(es), n(o) [why]{always}, e(dit) or q(uit):{STRONG:#} "))?;
            match Choice::read(&line) {
                Choice::Yes => return Ok(allow(request, edited, None)),
                Choice::Always if rules.is_some() => return Ok(allow(request, edited, rules)),
                Choice::No(reason) => return Ok(request.deny(refusal(&reason))),
                Choice::Quit => {
                    return Ok(request.deny_and_interrupt("the user has refused and stopped the turn"));
                }
                Choice::Edit => match edit(request, edited.as_ref().unwrap_or(&request.input), person) {
                    Ok(input) => {
                        edited = Some(input).filter(|input| *input != request.input);
                        continue 'shown;
                    }
                    Err(why) => person.print(&format!("  {WARN}{}{WARN:#}\n", visible(&why)))?,
                },
                Choice::Always | Choice::Again => {}
            }
        }
    }
}

/// What the model reads.
pub(super) fn refusal(reason: &str) -> String {
    match reason {
        "" => "The user does not want this. Do not do it in another way; ask what to do instead.".to_owned(),
        reason => format!("The user does not want this, and says: {reason}"),
    }
}

fn allow(
    request: &PermissionRequest,
    edited: Option<Json>,
    rules: Option<&[PermissionUpdate]>,
) -> PermissionResult {
    let mut decision = match rules {
        Some(rules) => request.allow_and_update(rules.to_vec()),
        None => request.allow(),
    };
    if let (PermissionResult::Allow(allow), Some(input)) = (&mut decision, edited) {
        allow.updated_input = Some(input);
    }
    decision
}

/// The rules that "always" would add, when the CLI suggests some.
fn rules(request: &PermissionRequest) -> Option<&[PermissionUpdate]> {
    let suggested = request.permission_suggestions.as_deref().filter(|rules| !rules.is_empty())?;
    (request.suppress_always_allow_rule != Some(true)).then_some(suggested)
}

/// A command is edited as it is, everything else as JSON.
fn edit(request: &PermissionRequest, input: &Json, person: &mut impl Person) -> Result<Json, String> {
    let mut value = input.value();
    let command = match ToolInput::of(&request.tool_name, input) {
        ToolInput::Bash(bash) => Some(bash.command),
        _ => None,
    };
    if let Some(command) = command {
        let edited = person.edit("command.sh", &format!("{command}\n")).map_err(|error| error.to_string())?;
        let edited = edited.trim_end();
        if edited.trim().is_empty() {
            return Err("there is no command left; say n to refuse it".to_owned());
        }
        value["command"] = edited.into();
        return Ok(value.into());
    }
    let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
    let edited = person.edit("input.json", &format!("{text}\n")).map_err(|error| error.to_string())?;
    match serde_json::from_str::<serde_json::Value>(&edited) {
        Ok(value) if value.is_object() => Ok(value.into()),
        Ok(_) => Err("the input must stay a JSON object; nothing is changed".to_owned()),
        Err(error) => Err(format!("that is not JSON ({error}); nothing is changed")),
    }
}

/// The tool, what it would do, and why it is asked about.
fn describe(request: &PermissionRequest, input: &Json) -> String {
    let name = request.display_name.as_deref().unwrap_or(&request.tool_name);
    let tool = ToolInput::of(&request.tool_name, input);
    let changed = change::of(&tool);
    let who = if request.agent_id.is_some() { "A subagent" } else { "Claude" };
    let title = match (&request.title, &tool, &changed) {
        (Some(title), ..) => title.clone(),
        (None, ToolInput::Bash(_), _) => format!("{who} wants to run a command"),
        (None, _, Some((path, _))) => {
            let act = if std::path::Path::new(path).exists() { "change" } else { "create" };
            format!("{who} wants to {act} {path}")
        }
        _ => format!("{who} wants to use {name}"),
    };
    let mut text = format!("{STRONG}{}{STRONG:#}\n", visible(&title));
    let said = request.description.as_deref().filter(|said| !said.is_empty());
    match (tool, changed) {
        (_, Some((_, diff))) => text.push_str(&diff),
        (ToolInput::Bash(bash), _) => {
            text.push_str(&indented(&bash.command));
            if let Some(said) = bash.description.as_deref().or(said) {
                text.push_str(&format!("  {DIM}{}{DIM:#}\n", visible(said)));
            }
        }
        _ => {
            let value = input.value();
            text.push_str(&indented(&serde_json::to_string_pretty(&value).unwrap_or_default()));
        }
    }
    if let Some(path) = &request.blocked_path {
        text.push_str(&format!("  {DIM}it is about{DIM:#} {}\n", visible(path)));
    }
    if let Some(reason) = &request.decision_reason {
        text.push_str(&format!("  {DIM}asked because:{DIM:#} {}\n", visible(reason)));
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {}\n", visible(line))).collect()
}

/// A change to the rules, in words: what, and where it is kept.
fn rule(update: &PermissionUpdate) -> String {
    let list = |rules: &[PermissionRule]| {
        let names = rules.iter().map(|rule| match &rule.rule_content {
            Some(content) => format!("{}({content})", rule.tool_name),
            None => rule.tool_name.clone(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let text = match update {
        PermissionUpdate::AddRules(update) => {
            let does = match update.behavior {
                PermissionBehavior::Allow => "allow",
                PermissionBehavior::Deny => "refuse",
                _ => "ask about",
            };
            format!("{does} {} {}", list(&update.rules), kept(&update.destination))
        }
        PermissionUpdate::ReplaceRules(update) => {
            format!("have only the rules {} {}", list(&update.rules), kept(&update.destination))
        }
        PermissionUpdate::RemoveRules(update) => {
            format!("drop the rules {} {}", list(&update.rules), kept(&update.destination))
        }
        PermissionUpdate::SetMode(update) if update.mode == PermissionMode::AcceptEdits => {
            format!("ask about no edit any more {}", kept(&update.destination))
        }
        PermissionUpdate::SetMode(update) => {
            format!("the permission mode {} {}", update.mode, kept(&update.destination))
        }
        PermissionUpdate::AddDirectories(update) => {
            format!("work in {} too {}", update.directories.join(", "), kept(&update.destination))
        }
        PermissionUpdate::RemoveDirectories(update) => {
            format!("work in {} no more {}", update.directories.join(", "), kept(&update.destination))
        }
        other => Json::write(other).unwrap_or_default().text().to_owned(),
    };
    visible(&text)
}

fn kept(destination: &PermissionDestination) -> String {
    match destination {
        PermissionDestination::UserSettings => "(kept in your settings, for all projects)".to_owned(),
        PermissionDestination::ProjectSettings => {
            "(kept in .claude/settings.json, for everybody in this project)".to_owned()
        }
        PermissionDestination::LocalSettings => {
            "(kept in .claude/settings.local.json, for you in this project)".to_owned()
        }
        PermissionDestination::Session | PermissionDestination::CliArg => "(for this session)".to_owned(),
        other => format!("(kept in {other})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::scripted::{self, Scripted};
    use super::*;

    fn request(tool: &str, input: Value, suggestions: Value) -> PermissionRequest {
        scripted::request(json!({
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t",
            "permission_suggestions": suggestions, "decision_reason": "no rule\u{1b}[2J",
        }))
    }

    fn decide(request: &PermissionRequest, lines: &[&'static str]) -> (Value, Scripted) {
        decide_with(request, Scripted::saying(lines.iter().copied()))
    }

    fn decide_with(request: &PermissionRequest, mut person: Scripted) -> (Value, Scripted) {
        let decision = ask(request, &mut person).unwrap();
        (serde_json::to_value(decision).unwrap(), person)
    }

    fn bash() -> PermissionRequest {
        let rule = json!([{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm i *"}],
            "behavior": "allow", "destination": "localSettings"}]);
        request("Bash", json!({"command": "npm i x\u{202e}", "description": "Installs"}), rule)
    }

    #[test]
    fn only_a_plain_word_decides() {
        for (line, choice) in [
            ("y", Choice::Yes),
            ("Yes", Choice::Yes),
            ("n", Choice::No(String::new())),
            ("no, use pnpm", Choice::No("use pnpm".into())),
            ("n use pnpm", Choice::No("use pnpm".into())),
            ("a", Choice::Always),
            ("e", Choice::Edit),
            ("q", Choice::Quit),
        ] {
            assert_eq!(Choice::read(line), choice, "{line:?}");
        }
        for line in ["", "yy", "y now", "ya", "nope", "1"] {
            assert_eq!(Choice::read(line), Choice::Again, "{line:?}");
        }
    }

    #[test]
    fn yes_no_always_and_quit_are_what_the_cli_hears() {
        let (yes, person) = decide(&bash(), &["", "what?", "y"]);
        assert_eq!(
            (&yes["behavior"], &yes["updatedInput"]["command"]),
            (&json!("allow"), &json!("npm i x\u{202e}"))
        );
        assert_eq!(yes["updatedPermissions"], Value::Null);
        let shown = person.plain();
        assert_eq!(shown.matches("allow it?").count(), 3, "{shown}");
        for part in [
            "    npm i x\\u{202e}\n",
            "Installs",
            "no rule\\u{1b}[2J",
            "Bash(npm i *)",
            "settings.local.json",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let (always, _) = decide(&bash(), &["a"]);
        assert_eq!(always["updatedPermissions"][0]["rules"][0]["ruleContent"], "npm i *");
        let (no, _) = decide(&bash(), &["n use pnpm"]);
        assert_eq!(no["behavior"], "deny");
        assert!(no["message"].as_str().unwrap().contains("use pnpm"), "{no}");
        assert_eq!(no["interrupt"], Value::Null);
        let (quit, _) = decide(&bash(), &["q"]);
        assert_eq!(quit["interrupt"], true);
    }

    #[test]
    fn without_a_suggestion_always_is_not_offered_and_decides_nothing() {
        let (no, person) = decide(&request("WebFetch", json!({"url": "http://x"}), json!([])), &["a", "n"]);
        assert_eq!(no["behavior"], "deny");
        assert!(!person.plain().contains("a(lways)"));
    }

    #[test]
    fn what_was_edited_is_shown_again_before_it_runs() {
        let mut person = Scripted::saying(["e", "e", "e", "y"]);
        person.edits.push_back(|_| "  \n".into());
        person.edits.push_back(|text| text.replace("npm", "pnpm"));
        person.edits.push_back(|text| text.replace("pnpm", "yarn"));
        let (yes, person) = decide_with(&bash(), person);
        assert_eq!(yes["updatedInput"], json!({"command": "yarn i x\u{202e}", "description": "Installs"}));
        let shown = person.plain();
        assert!(
            shown.contains("no command left") && shown.contains("    pnpm i") && shown.contains("    yarn i"),
            "{shown}"
        );
    }

    #[test]
    fn an_edited_input_must_stay_an_object() {
        let mut person = Scripted::saying(["e", "e", "e", "y"]);
        person.edits.push_back(|_| "[1]".into());
        person.edits.push_back(|text| text.replace('}', ""));
        person.edits.push_back(|text| text.replace("http://x", "http://y"));
        let (yes, person) = decide_with(&request("WebFetch", json!({"url": "http://x"}), json!([])), person);
        assert_eq!(yes["updatedInput"], json!({"url": "http://y"}));
        let shown = person.plain();
        assert!(shown.contains("must stay a JSON object") && shown.contains("that is not JSON"), "{shown}");
    }

    #[test]
    fn rules_say_what_and_where() {
        for (update, want) in [
            (
                json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
                "ask about no edit any more (for this session)",
            ),
            (
                json!({"type": "addDirectories", "directories": ["/x"], "destination": "session"}),
                "work in /x too (for this session)",
            ),
            (json!({"type": "new", "a": "\u{1b}"}), "\"type\":\"new\""),
        ] {
            let update: PermissionUpdate = serde_json::from_value(update).unwrap();
            assert!(rule(&update).contains(want), "{}", rule(&update));
        }
    }
}
