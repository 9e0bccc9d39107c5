//! The user's rules about edits, read from the CLI's settings.
//!
//! The CLI knows no paths in rules about MCP tools, so `Edit(src/**)` and its like are kept here. They are gitignore patterns:
//! `//` begins at the root of the file system, `~/` at home, `/` at the project, and anything else at the session's directory.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

/// The organisation's settings.
const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// What the rules say about an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is forbidden, by this rule.
    Deny(String),
    /// Somebody must be asked.
    Ask,
    /// It is allowed.
    Allow,
    /// Nothing.
    Silent,
}

/// Where things are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) cwd: &'a Path,
    pub(super) config_dir: Option<&'a Path>,
    pub(super) home: Option<&'a Path>,
}

/// All rules about edits.
#[derive(Debug, Default)]
pub(super) struct Rules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    /// Rules that are not understood. While there is one that forbids or asks, nothing is allowed unasked.
    pub(super) unread: Vec<String>,
    is_blind: bool,
}

/// One rule: which tools, which files.
#[derive(Debug)]
struct Rule {
    text: String,
    /// `Write` rules are only about `Write`.
    is_about_edit: bool,
    /// `None`: all files.
    files: Option<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    root: PathBuf,
    parts: Vec<String>,
}

/// A settings file, as far as it is about permissions.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SettingsFile {
    permissions: Permissions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Permissions {
    allow: Vec<String>,
    deny: Vec<String>,
    ask: Vec<String>,
}

impl Rules {
    /// The rules as they are now: of the organisation, the user, the project, and the user in the project.
    pub(super) fn load(places: Places<'_>) -> Self {
        let project = places.cwd.join(".claude");
        let files = [
            (Some(PathBuf::from(MANAGED)), false),
            (places.config_dir.map(|dir| dir.join("settings.json")), false),
            (Some(project.join("settings.json")), true),
            (Some(project.join("settings.local.json")), true),
        ];
        let mut rules = Self::default();
        for (file, is_project) in files {
            let Some(file) = file else { continue };
            let settings = match std::fs::read_to_string(&file) {
                Ok(text) => serde_json::from_str(text.trim_start_matches('\u{FEFF}')).ok(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => None,
            };
            match settings {
                Some(SettingsFile { permissions }) => rules.add(permissions, is_project, places),
                // The CLI complains about settings that are broken, but it may understand more of them than we do.
                None => {
                    rules.is_blind = true;
                    rules.unread.push(format!("all of {}", file.display()));
                }
            }
        }
        rules
    }

    /// Rules that forbid, besides those of the settings.
    pub(super) fn forbid(&mut self, deny: &[String], places: Places<'_>) {
        self.add(Permissions { deny: deny.to_vec(), ..Permissions::default() }, true, places);
    }

    fn add(&mut self, permissions: Permissions, is_project: bool, places: Places<'_>) {
        let lists = [(permissions.deny, 0), (permissions.ask, 1), (permissions.allow, 2)];
        for (texts, list) in lists {
            for text in texts {
                match Rule::parse(&text, list == 0, is_project, places) {
                    Parsed::Other => {}
                    Parsed::Rule(rule) => [&mut self.deny, &mut self.ask, &mut self.allow][list].push(rule),
                    Parsed::Unread => {
                        self.is_blind |= list != 2;
                        self.unread.push(text);
                    }
                }
            }
        }
    }

    /// What the rules say about this edit: what forbids counts more than what asks, and that more than what allows.
    pub(super) fn verdict(&self, tool: &str, path: &Path) -> Verdict {
        let paths = real_paths(path);
        let is_any =
            |rules: &[Rule]| rules.iter().position(|rule| paths.iter().any(|path| rule.is_about(tool, path)));
        if let Some(at) = is_any(&self.deny) {
            return Verdict::Deny(self.deny[at].text.clone());
        }
        if is_any(&self.ask).is_some() || self.is_blind {
            return Verdict::Ask;
        }
        if self.allow.iter().any(|rule| paths.iter().all(|path| rule.is_about(tool, path))) {
            return Verdict::Allow;
        }
        Verdict::Silent
    }
}

enum Parsed {
    /// Not about edits.
    Other,
    Rule(Rule),
    Unread,
}

impl Rule {
    fn parse(text: &str, forbids: bool, is_project: bool, places: Places<'_>) -> Parsed {
        let text = text.trim();
        let (tool, files) = match text.split_once('(') {
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(files) => (tool, Some(files.trim())),
                None => (tool, Some("[")),
            },
            None => (text, None),
        };
        let is_about_edit = match tool.trim() {
            "Edit" => true,
            // What may not be read may not be changed either; newer CLIs say so of their own tools.
            "Read" if forbids => true,
            "Write" => false,
            _ => return Parsed::Other,
        };
        let files = match files {
            None | Some("" | "*" | "**") => None,
            Some(files) => match Pattern::parse(files, is_project, places) {
                Some(pattern) => Some(pattern),
                None => return Parsed::Unread,
            },
        };
        Parsed::Rule(Self { text: text.to_owned(), is_about_edit, files })
    }

    fn is_about(&self, tool: &str, path: &Path) -> bool {
        (self.is_about_edit || tool == "Write")
            && self.files.as_ref().is_none_or(|pattern| pattern.matches(path))
    }
}

impl Pattern {
    fn parse(text: &str, is_project: bool, places: Places<'_>) -> Option<Self> {
        // Classes, braces, escapes and exceptions are beyond what is done here.
        if text.starts_with('!') || text.contains(['[', ']', '{', '}', '\\']) {
            return None;
        }
        let (root, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Path::new("/"), rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (places.home?, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            // In the user's own settings this depends on the project.
            (is_project.then_some(places.cwd)?, rest)
        } else {
            (places.cwd, text.strip_prefix("./").unwrap_or(text))
        };
        let is_anchored = text != rest || rest.trim_end_matches('/').contains('/');
        let mut parts: Vec<String> =
            rest.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if parts.is_empty() || parts.iter().any(|part| part == "..") {
            return None;
        }
        if !is_anchored {
            parts.insert(0, "**".to_owned());
        }
        // The real directory, since paths are compared as they really are, too.
        Some(Self { root: root.to_owned(), parts })
    }

    fn matches(&self, path: &Path) -> bool {
        let roots = [Some(self.root.clone()), std::fs::canonicalize(&self.root).ok()];
        roots.into_iter().flatten().any(|root| {
            let Ok(rest) = path.strip_prefix(&root) else { return false };
            let parts: Vec<_> = rest.iter().map(|part| part.to_string_lossy()).collect();
            let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
            match_parts(&self.parts, &parts)
        })
    }
}

/// Does the pattern match the path, or a directory that it is in?
fn match_parts(pattern: &[String], path: &[&str]) -> bool {
    match pattern {
        [] => true,
        [first, rest @ ..] if first == "**" => {
            if rest.is_empty() {
                return !path.is_empty();
            }
            (0..=path.len()).any(|skip| match_parts(rest, &path[skip..]))
        }
        [first, rest @ ..] => match path {
            [name, inner @ ..] => match_name(first.as_bytes(), name.as_bytes()) && match_parts(rest, inner),
            [] => false,
        },
    }
}

/// `*` is any text, `?` any one byte.
fn match_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    at = star_at + 1;
                    in_name = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Links that lead to links are followed so far.
const LINKS: usize = 16;

/// A path as it is written, without `.` and `..`, and as it really is, links followed.
pub(super) fn real_paths(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![plain(path)];
    while let Some(real) = real(&paths[paths.len() - 1])
        && !paths.contains(&real)
        && paths.len() < LINKS
    {
        paths.push(real);
    }
    paths
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            component => plain.push(component),
        }
    }
    plain
}

/// Where a path leads. The file may not be there yet, nor its directory: the nearest one that is counts. A link that leads
/// to nothing is there, and whoever writes to it makes what it leads to.
fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|ancestor| {
        let base = match std::fs::canonicalize(ancestor) {
            Ok(base) => base,
            Err(_) => plain(&ancestor.parent()?.join(std::fs::read_link(ancestor).ok()?)),
        };
        let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
        Some(if rest.as_os_str().is_empty() { base } else { base.join(rest) })
    })
}

#[cfg(test)]
impl Rules {
    /// Rules of a project that allow.
    pub(super) fn of(allow: &[&str], places: Places<'_>) -> Self {
        let mut rules = Self::default();
        let allow = allow.iter().map(|rule| (*rule).to_owned()).collect();
        rules.add(Permissions { allow, ..Permissions::default() }, true, places);
        rules
    }
}
