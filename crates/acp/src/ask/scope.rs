//! What "always" means, in words: how far a suggestion of the CLI's reaches, and for how long.
//!
//! What cannot be said in a line is not offered: nobody can agree to a rule that is not shown.

use std::path::Path;

use oarlock_agent::stream::{
    PermissionBehavior, PermissionDestination, PermissionMode, PermissionRule, PermissionUpdate,
    mcp_tool_name,
};

/// A rule that is longer is not shown, and so not offered.
const LONGEST: usize = 160;

/// What the words depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The session's directory.
    pub(super) cwd: &'a str,
    /// The user's directory.
    pub(super) home: Option<&'a str>,
}

/// Changes of one reach: what is allowed, and what is not asked about again.
struct Reach<'a> {
    destination: &'a PermissionDestination,
    allowed: Vec<String>,
    unasked: Vec<String>,
    commands: Vec<String>,
}

/// The label of a yes that changes the rules like this. `None` when there is nothing to change, or no words for it.
pub(super) fn label(updates: &[PermissionUpdate], place: Place<'_>) -> Option<String> {
    let mut reaches: Vec<Reach<'_>> = Vec::new();
    for update in updates {
        let destination = match update {
            PermissionUpdate::AddRules(update) => &update.destination,
            PermissionUpdate::SetMode(update) => &update.destination,
            PermissionUpdate::AddDirectories(update) => &update.destination,
            _ => return None,
        };
        let at = reaches.iter().position(|reach| reach.destination == destination).unwrap_or_else(|| {
            reaches.push(Reach { destination, allowed: vec![], unasked: vec![], commands: vec![] });
            reaches.len() - 1
        });
        reaches[at].add(update, place)?;
    }
    let mut words = String::from("Yes");
    for reach in &reaches {
        words += &reach.words(words == "Yes", place)?;
    }
    (words != "Yes").then_some(words)
}

impl Reach<'_> {
    fn add(&mut self, update: &PermissionUpdate, place: Place<'_>) -> Option<()> {
        match update {
            PermissionUpdate::SetMode(update) => self.allowed.push(match update.mode {
                PermissionMode::AcceptEdits => "all edits".into(),
                _ => return None,
            }),
            PermissionUpdate::AddDirectories(update) => {
                for directory in &update.directories {
                    self.allowed.push(format!("access to {}", folder(&shown(directory)?, place)));
                }
            }
            PermissionUpdate::AddRules(update) => {
                if update.behavior != PermissionBehavior::Allow {
                    return None;
                }
                for rule in &update.rules {
                    self.add_rule(rule, place)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn add_rule(&mut self, rule: &PermissionRule, place: Place<'_>) -> Option<()> {
        let content = match &rule.rule_content {
            Some(content) => Some(shown(content)?),
            None => None,
        };
        match (rule.tool_name.as_str(), content) {
            ("Bash" | "PowerShell", Some(content)) => match command(&content) {
                "" => self.unasked.push(format!("any {} command", rule.tool_name)),
                command => self.commands.push(command.to_owned()),
            },
            ("Bash" | "PowerShell", None) => self.unasked.push(format!("any {} command", rule.tool_name)),
            ("Read", Some(content)) => {
                self.allowed.push(format!("reading from {}", pattern(&content, place)))
            }
            ("Read", None) => self.allowed.push("reading from anywhere".into()),
            ("Edit", Some(content)) => self.allowed.push(format!("editing in {}", pattern(&content, place))),
            ("Edit" | "Write", None) => self.allowed.push("all edits".into()),
            ("WebFetch", Some(content)) => {
                self.unasked.push(content.strip_prefix("domain:")?.to_owned());
            }
            ("Skill", Some(content)) => self.unasked.push(match content.strip_suffix(":*") {
                Some(word) => format!("skills that begin with {word}"),
                None => format!("the skill {content}"),
            }),
            (tool, None) => self.unasked.push(match mcp_tool_name(tool) {
                Some((server, tool)) => format!("{tool} of {server}"),
                None => format!("{} commands", shown(tool)?),
            }),
            (tool, Some(content)) => self.unasked.push(format!("{}({content})", shown(tool)?)),
        }
        Some(())
    }

    fn words(&self, is_first: bool, place: Place<'_>) -> Option<String> {
        let mut unasked = self.unasked.clone();
        if !self.commands.is_empty() {
            unasked.insert(0, format!("{} commands", list(&self.commands)));
        }
        let mut words = String::new();
        if !self.allowed.is_empty() {
            words += if is_first { ", allow " } else { ", and allow " };
            words += &list(&self.allowed);
        }
        if !unasked.is_empty() {
            words += ", and don't ask again for ";
            words += &list(&unasked);
        }
        let cwd = short(place.cwd, Place { cwd: "", ..place });
        words += &match self.destination {
            PermissionDestination::Session => " during this session".to_owned(),
            PermissionDestination::LocalSettings => format!(" in {cwd}"),
            PermissionDestination::ProjectSettings => {
                format!(" in {cwd}, for everyone who works there (.claude/settings.json)")
            }
            PermissionDestination::UserSettings => " in all projects".to_owned(),
            _ => return None,
        };
        Some(words)
    }
}

/// A text that can be shown in a line, whole.
fn shown(text: &str) -> Option<String> {
    // Characters that are not seen, or that turn the order of others around, could make a rule look like another one.
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(
                c,
                '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            )
            || matches!(c, '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
            || matches!(c, '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
            || matches!(c, '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
    };
    let is_plain = !text.trim().is_empty() && !text.chars().any(is_hidden);
    (is_plain && text.chars().count() <= LONGEST).then(|| text.trim().to_owned())
}

/// `npm test` of `npm test`, `npm test *` and `npm test:*`; nothing of `*`.
fn command(rule: &str) -> &str {
    let rule = rule.strip_suffix(":*").or_else(|| rule.strip_suffix(" *")).unwrap_or(rule);
    if rule == "*" { "" } else { rule.trim() }
}

/// The files of a rule: `//` begins at the root, `/` at the project's directory.
fn pattern(rule: &str, place: Place<'_>) -> String {
    let path = match rule.strip_prefix("//") {
        Some(path) => format!("/{path}"),
        None => rule.strip_prefix('/').unwrap_or(rule).to_owned(),
    };
    match path.strip_suffix("/**") {
        Some("") => "anywhere".into(),
        Some(path) => folder(path, place),
        None if path == "**" => "this project".into(),
        None => short(&path, place),
    }
}

fn folder(path: &str, place: Place<'_>) -> String {
    if path.trim_end_matches('/') == place.cwd.trim_end_matches('/') {
        return "this directory".into();
    }
    let mut path = short(path, place);
    if !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// A path as seen from the session's directory, or from home.
fn short(path: &str, place: Place<'_>) -> String {
    let inside = |from: &str| {
        let rest = Path::new(path).strip_prefix(from).ok()?;
        (!from.is_empty() && !rest.as_os_str().is_empty()).then(|| rest.to_string_lossy().into_owned())
    };
    if let Some(rest) = inside(place.cwd) {
        return rest;
    }
    match place.home.and_then(inside) {
        Some(rest) => format!("~/{rest}"),
        None => path.to_owned(),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}
