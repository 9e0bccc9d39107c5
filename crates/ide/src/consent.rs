//! What may be shared with a client, and what stays here.
//!
//! Rules are in the syntax of `.gitignore`. They come from four places: built-in ones, the user's, the project's, and
//! the `.gitignore` files themselves. The user may take back built-in rules and those of git with `!rule`. A project
//! comes with a cloned repository, so it may only add rules, and nobody takes those back.

use std::{
    fmt, fs,
    path::{Component, Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder, Glob},
};

use crate::{Error, Result, paths};

/// What is never shared unless the user says so: secrets in files, private keys, and the places where programs keep
/// them, our own tokens included. Case does not matter.
pub const DEFAULT_RULES: &[&str] = &[
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".git",
    ".ssh",
    ".gnupg",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".credentials.json",
    "**/.aws/credentials",
    "**/.docker/config.json",
    "**/.kube/config",
    "**/.claude/ide",
    "**/oarlock/engines",
];

/// [`DEFAULT_RULES`], compiled when the first file is asked about: that is most of the work of a start and of its memory,
/// and an engine that has nothing to share needs neither.
static DEFAULTS: LazyLock<Gitignore> =
    LazyLock::new(|| compile(DEFAULT_RULES, true, &Origin::Default).expect("built-in rules are well-formed"));

/// The default limit for one shared text.
pub const DEFAULT_LIMIT: usize = 1024 * 1024;

/// What the configuration says about sharing.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The user's rules; `!rule` takes back a built-in one or one of git.
    pub user: Vec<String>,
    /// The project's rules; they may only add.
    pub project: Vec<String>,
    /// Whether files that git ignores stay here too.
    pub git_ignored: bool,
    /// The largest text that is shared, in bytes.
    pub limit: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self { user: Vec::new(), project: Vec::new(), git_ignored: false, limit: DEFAULT_LIMIT }
    }
}

/// Where a rule came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built in; see [`DEFAULT_RULES`].
    Default,
    /// The user's configuration.
    User,
    /// The project's configuration.
    Project,
    /// This file of git.
    Git(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("a built-in rule"),
            Self::User => f.write_str("a rule of the user's configuration"),
            Self::Project => f.write_str("a rule of the project's configuration"),
            Self::Git(path) => write!(f, "a rule of {}", path.display()),
        }
    }
}

/// Why something is not shared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Withheld {
    /// The user paused all sharing.
    #[error("sharing is paused; `oarlock ide resume` ends that")]
    Paused,
    /// A rule covers the file.
    #[error("{} is withheld by `{rule}`, {origin}", path.display())]
    Rule {
        /// The path that the rule matched: the one asked for, or the real one behind a link.
        path: PathBuf,
        /// The rule's text.
        rule: String,
        /// Where the rule came from.
        origin: Origin,
    },
    /// It belongs to the engine itself, and may hold a token.
    #[error("{} is the engine's own", path.display())]
    Own {
        /// The path.
        path: PathBuf,
    },
}

/// Decides what may be shared. It is asked before anything of a file leaves.
pub struct Consent {
    /// The workspace folders as they were given, and their real paths.
    roots: Vec<PathBuf>,
    user: Gitignore,
    project: Gitignore,
    git_ignored: bool,
    limit: usize,
    paused: AtomicBool,
    /// Directories of the engine itself.
    own: Vec<PathBuf>,
}

impl Consent {
    /// Puts the rules together; rules match relative to the workspace folders. A rule that cannot be understood, and a
    /// project's attempt to take one back, is an error: a rule that silently does nothing would share what it names.
    pub fn new(roots: &[PathBuf], rules: &Rules) -> Result<Self> {
        let mut all_roots = roots.to_vec();
        for root in roots {
            if let Some(real) = dunce::canonicalize(root).ok().filter(|real| !all_roots.contains(real)) {
                all_roots.push(real);
            }
        }
        if let Some(rule) = rules.project.iter().find(|rule| rule.starts_with('!')) {
            let why = "a project may only add rules; put it into the user's configuration".to_owned();
            return Err(Error::Rule { rule: rule.clone(), origin: Origin::Project, why });
        }
        Ok(Self {
            roots: all_roots,
            user: compile(&rules.user, false, &Origin::User)?,
            project: compile(&rules.project, false, &Origin::Project)?,
            git_ignored: rules.git_ignored,
            limit: rules.limit,
            paused: AtomicBool::new(false),
            own: Vec::new(),
        })
    }

    /// Keeps back everything in a directory, whatever the rules say: lock files and records hold tokens.
    pub fn keep_back(&mut self, directory: &Path) {
        self.own.push(paths::real_path(directory).unwrap_or_else(|_| directory.to_owned()));
    }

    /// Shares nothing, or again what the rules allow.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
    }

    /// The largest text that is shared, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether sharing is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    /// Whether something of this file may be shared. Both the path itself and the real path behind its links must be
    /// free, so that a link `notes.txt` to `.env` shares nothing.
    pub fn allows(&self, path: &Path) -> Result<(), Withheld> {
        if self.is_paused() {
            return Err(Withheld::Paused);
        }
        let plain = paths::without_dots(path);
        self.check(&plain)?;
        // A relative path is the name of something unsaved; there is nothing behind it.
        if path.is_absolute() {
            if let Ok(real) = paths::real_path(path) {
                self.check(&real)?;
            }
            // Without its dots a path may lead elsewhere than with them.
            if let Ok(real) = paths::real_path(&plain) {
                self.check(&real)?;
            }
        }
        Ok(())
    }

    fn check(&self, path: &Path) -> Result<(), Withheld> {
        if self.own.iter().any(|directory| path.starts_with(directory)) {
            return Err(Withheld::Own { path: path.to_owned() });
        }
        let is_dir = path.is_dir();
        let mut inside = false;
        for root in &self.roots {
            if let Ok(name) = path.strip_prefix(root) {
                inside = true;
                self.check_name(path, name, is_dir, Some(root))?;
            }
        }
        if inside { Ok(()) } else { self.check_name(path, &names_of(path), is_dir, None) }
    }

    fn check_name(
        &self,
        path: &Path,
        name: &Path,
        is_dir: bool,
        root: Option<&Path>,
    ) -> Result<(), Withheld> {
        if name.as_os_str().is_empty() {
            return Ok(());
        }
        let withheld = |rule: &Glob, origin: Origin| {
            Err(Withheld::Rule { path: path.to_owned(), rule: rule.original().to_owned(), origin })
        };
        if let Match::Ignore(rule) = self.project.matched_path_or_any_parents(name, is_dir) {
            return withheld(rule, Origin::Project);
        }
        match self.user.matched_path_or_any_parents(name, is_dir) {
            Match::Ignore(rule) => return withheld(rule, Origin::User),
            Match::Whitelist(_) => return Ok(()),
            Match::None => {}
        }
        if let Match::Ignore(rule) = DEFAULTS.matched_path_or_any_parents(name, is_dir) {
            return withheld(rule, Origin::Default);
        }
        if let Some(root) = root.filter(|_| self.git_ignored)
            && let Some((rule, file)) = git_rule(root, path, is_dir)
        {
            return withheld(&rule, Origin::Git(file));
        }
        Ok(())
    }
}

impl fmt::Debug for Consent {
    /// The compiled rules would fill pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consent")
            .field("roots", &self.roots)
            .field("paused", &self.paused)
            .finish_non_exhaustive()
    }
}

fn compile(rules: &[impl AsRef<str>], any_case: bool, origin: &Origin) -> Result<Gitignore> {
    let unusable =
        |rule: &str, why: String| Error::Rule { rule: rule.to_owned(), origin: origin.clone(), why };
    // An empty root leaves the relative names that are asked for as they are.
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(any_case).map_err(|error| unusable("", error.to_string()))?;
    for rule in rules.iter().map(AsRef::as_ref) {
        if rule.contains(['\n', '\r']) {
            return Err(unusable(rule, "a rule is one line; make it several rules".to_owned()));
        }
        builder
            .add_line(None, rule)
            .map_err(|error| unusable(rule, format!("{error}; see `man gitignore`")))?;
    }
    builder.build().map_err(|error| unusable("", error.to_string()))
}

/// The rule by which git ignores a path, and the file that it is in. As in git, the deepest `.gitignore` speaks first,
/// and a path in an ignored directory is ignored. They are read anew each time, so that an edit counts at once.
fn git_rule(root: &Path, path: &Path, is_dir: bool) -> Option<(Glob, PathBuf)> {
    // The workspace may be a part of a repository, whose upper files count too.
    let top = root.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(root);
    let names = path.strip_prefix(top).ok()?;
    let mut files = Vec::from_iter(git_file(top, &top.join(".git/info/exclude")));
    let mut here = top.to_owned();
    let mut names = names.components().peekable();
    while let Some(name) = names.next() {
        files.extend(git_file(&here, &here.join(".gitignore")));
        here.push(name);
        let is_dir = is_dir || names.peek().is_some();
        let said = files.iter().rev().map(|(rules, file)| (rules.matched(&here, is_dir), file));
        if let Some((Match::Ignore(rule), file)) = said.into_iter().find(|(said, _)| !said.is_none()) {
            return Some((rule.clone(), file.clone()));
        }
    }
    None
}

fn git_file(dir: &Path, file: &Path) -> Option<(Gitignore, PathBuf)> {
    // Opening a pipe of that name would block.
    if !fs::metadata(file).is_ok_and(|about| about.is_file()) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(dir);
    // Git passes over lines that it does not understand, and so do we.
    let _ = builder.add(file);
    Some((builder.build().ok()?, file.to_owned()))
}

/// The names in a path, without what makes it absolute.
fn names_of(path: &Path) -> PathBuf {
    path.components().filter(|component| matches!(component, Component::Normal(_))).collect()
}
