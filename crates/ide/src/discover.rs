//! Discovery as the CLI does it: which lock files there are, and which one `claude --ide` would take from here.
//!
//! The rules were observed on CLI 2.1.197 and 2.1.325. Where the two differ the answer says that it depends.

use std::{
    ffi::OsString,
    fs,
    net::{TcpStream, ToSocketAddrs as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;

use crate::{
    lock::{LockFile, TRANSPORT},
    paths, private, process,
};

mod reason;

pub use reason::Reason;
use reason::also_matching;

/// How long a port is given to answer. On one machine it answers or refuses at once.
const PORT_PATIENCE: Duration = Duration::from_millis(200);

/// Everything outside the lock files that decides about a connection. It is a plain value, so that a library user or a
/// test can ask about another environment than this process's own.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<PathBuf>,
    /// `TERM_PROGRAM`.
    pub term_program: Option<String>,
    /// `TERMINAL_EMULATOR`.
    pub terminal_emulator: Option<String>,
    /// `CLAUDE_CODE_SSE_PORT`: the one lock to take, whatever the directory.
    pub port: Option<u16>,
    /// `CLAUDE_CODE_AUTO_CONNECT_IDE`, if it says yes or no.
    pub auto_connect: Option<bool>,
    /// `CLAUDE_CODE_IDE_SKIP_VALID_CHECK`: folders need not match.
    pub skip_valid_check: bool,
    /// `CLAUDE_CODE_IDE_HOST_OVERRIDE`: the host instead of 127.0.0.1.
    pub host_override: Option<String>,
    /// The process whose ancestors count in an IDE's terminal; 0 has none.
    pub pid: u32,
}

impl Environment {
    /// The environment of this process. Empty variables count as unset.
    #[must_use]
    pub fn from_process() -> Self {
        let raw = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name: &str| raw(name).map(PathBuf::from);
        let text = |name: &str| raw(name).and_then(|value: OsString| value.into_string().ok());
        let switch = |name: &str| text(name).and_then(|value| yes_or_no(&value));
        Self {
            home: etcetera::home_dir().ok(),
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            xdg_config_home: path("XDG_CONFIG_HOME"),
            xdg_state_home: path("XDG_STATE_HOME"),
            term_program: text("TERM_PROGRAM"),
            terminal_emulator: text("TERMINAL_EMULATOR"),
            port: text("CLAUDE_CODE_SSE_PORT").and_then(|port| port.trim().parse().ok()),
            auto_connect: switch("CLAUDE_CODE_AUTO_CONNECT_IDE"),
            skip_valid_check: switch("CLAUDE_CODE_IDE_SKIP_VALID_CHECK") == Some(true),
            host_override: text("CLAUDE_CODE_IDE_HOST_OVERRIDE"),
            pid: std::process::id(),
        }
    }

    /// Where an engine writes its lock: `$CLAUDE_CONFIG_DIR/ide`, else `~/.claude/ide`.
    pub(crate) fn claude_lock_dir(&self) -> Option<PathBuf> {
        let config = self.claude_config_dir.clone();
        config.or_else(|| self.home.as_ref().map(|home| home.join(".claude"))).map(|dir| dir.join("ide"))
    }

    /// Whether the CLI would think that it runs inside an IDE's terminal, where only that IDE's lock counts.
    fn is_ide_terminal(&self) -> bool {
        self.term_program.as_deref() == Some("vscode")
            || self.terminal_emulator.as_deref() == Some("JetBrains-JediTerm")
    }

    /// All directories that any document names, each once.
    fn directories(&self) -> Vec<(DirectoryKind, PathBuf)> {
        let below_home = |rest: &str| self.home.as_ref().map(|home| home.join(rest));
        let named = [
            (DirectoryKind::Claude, below_home(".claude/ide")),
            (DirectoryKind::Config, self.claude_config_dir.as_ref().map(|dir| dir.join("ide"))),
            (DirectoryKind::Xdg, self.xdg_config_home.as_ref().map(|dir| dir.join("claude/ide"))),
            (DirectoryKind::Xdg, below_home(".config/claude/ide")),
        ];
        let mut directories: Vec<(DirectoryKind, PathBuf)> = Vec::new();
        for (kind, dir) in named {
            // The CLI, too, counts a directory once that is there under two names.
            let real = |dir: &Path| dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
            if let Some(dir) = dir.filter(|dir| directories.iter().all(|(_, other)| real(other) != real(dir)))
            {
                directories.push((kind, dir));
            }
        }
        directories
    }
}

/// Which of the directories a lock was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectoryKind {
    /// `~/.claude/ide`, which every CLI reads.
    Claude,
    /// `$CLAUDE_CONFIG_DIR/ide`, which every CLI reads as well.
    Config,
    /// `$XDG_CONFIG_HOME/claude/ide` or `~/.config/claude/ide`, which no tested CLI reads.
    Xdg,
}

/// A lock file, and what the CLI would make of it. It never holds the token.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The lock file.
    pub path: PathBuf,
    /// Where it was found.
    pub directory: DirectoryKind,
    /// The port by its name; none if the name does not begin with a port number.
    pub port: Option<u16>,
    /// The IDE's name.
    pub name: Option<String>,
    /// The IDE's process.
    pub pid: Option<u32>,
    /// Whether that process runs; none if the lock names no process.
    pub alive: Option<bool>,
    /// Whether something listens at the port.
    pub port_open: bool,
    /// The workspace folders as the lock has them.
    pub folders: Vec<String>,
    /// The transport as the lock has it.
    pub transport: Option<String>,
    /// Whether the lock has a token.
    pub has_token: bool,
    /// The version of Oarlock that wrote it, if it is ours.
    pub ours: Option<String>,
    /// Whether the folders match the directory.
    pub matches_cwd: Match,
    /// Whether `claude --ide` would connect to it.
    pub would_connect: Answer,
    /// Whether `claude` with `CLAUDE_CODE_SSE_PORT=<port>` would connect to it.
    pub with_port_variable: Answer,
}

/// How the folders of a lock stand to the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Match {
    /// The directory is this folder or below it.
    Folder {
        /// The folder that matches.
        folder: String,
    },
    /// The folder `/`: matches everything on 2.1.325 and nothing on 2.1.197.
    Root,
    /// A folder leads here by a symbolic link, and the CLI compares real paths.
    Symlink {
        /// The folder as the lock has it.
        folder: String,
        /// Where it leads.
        real: PathBuf,
    },
    /// No folder contains the directory.
    Elsewhere,
    /// The lock has no folders.
    NoFolders,
}

/// Yes, no, or a matter of the CLI's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Connects {
    /// Both tested versions connect.
    Yes,
    /// Neither does.
    No,
    /// One of them does.
    Depends,
}

/// Whether the CLI connects, and what stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether it connects.
    pub connects: Connects,
    /// Why not, or why it depends; empty for yes.
    pub reasons: Vec<Reason>,
}

/// What would come of a start of `claude`.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Whether it connects.
    pub connects: Connects,
    /// To which port.
    pub port: Option<u16>,
    /// The same for a person, with what to do next.
    pub text: String,
}

/// The outcome for the two ways to start.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `claude --ide` in this directory.
    pub ide_flag: Outcome,
    /// `claude` as it is now, if `CLAUDE_CODE_SSE_PORT` is set.
    pub port_variable: Option<Outcome>,
}

/// All lock files, and what `claude` would do.
#[derive(Clone, Debug, Serialize)]
pub struct Discovery {
    /// The lock files, by directory and port.
    pub candidates: Vec<Candidate>,
    /// Directories that could not be looked into, and why.
    pub unreadable: Vec<String>,
    /// What would come of a start.
    pub verdict: Verdict,
}

/// Looks for lock files in every directory that a CLI or a document names, and tells which one a CLI started in `cwd`
/// would take. Reads only; stale locks stay where they are.
#[must_use]
pub fn discover(environment: &Environment, cwd: &Path) -> Discovery {
    // The CLI compares its real directory, however it was entered.
    let cwd = dunce::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    let (mut found, mut unreadable) = (Vec::<Found>::new(), Vec::new());
    for (kind, dir) in environment.directories() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    unreadable.push(format!("{}: {error}; look at its permissions", dir.display()));
                }
                continue;
            }
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let locks = paths.filter(|path| path.extension().is_some_and(|end| end == "lock"));
        found.extend(locks.map(|path| Found::look_at(path, kind, environment, &cwd)));
    }
    found.sort_by(|a, b| {
        let key =
            |found: &Found| (found.candidate.directory, found.candidate.port, found.candidate.path.clone());
        key(a).cmp(&key(b))
    });
    judge(&mut found, environment);
    let candidates: Vec<Candidate> = found.into_iter().map(|found| found.candidate).collect();
    let verdict = Verdict {
        ide_flag: ide_flag_outcome(&candidates),
        port_variable: environment.port.map(|port| port_variable_outcome(&candidates, port)),
    };
    Discovery { candidates, unreadable, verdict }
}

/// A candidate before its answer, with what keeps the CLI from taking it for a running IDE, and from talking to it.
struct Found {
    candidate: Candidate,
    /// The number in the file's name, which need not be a port.
    number: u64,
    /// The CLI passes over the lock, or deletes it.
    dropped: Vec<Reason>,
    /// The folders or the terminal do not fit. The port variable skips this check.
    unfit: Vec<Reason>,
    /// The CLI would try and fail.
    unreachable: Vec<Reason>,
}

impl Found {
    fn look_at(path: PathBuf, directory: DirectoryKind, environment: &Environment, cwd: &Path) -> Self {
        let contents = Contents::read(&path);
        let lock = contents.lock;
        let number = leading_number(&path);
        let port = number.and_then(|number| u16::try_from(number).ok()).filter(|port| *port != 0);
        let port_open = port.is_some_and(|port| is_open(environment.host_override.as_deref(), port));
        let alive = lock.pid.map(process::exists);
        let matches_cwd = compare(&lock.workspace_folders, cwd);

        let mut dropped = Vec::new();
        if directory == DirectoryKind::Xdg {
            dropped.push(Reason::NotRead);
        }
        if number.is_none() {
            dropped.push(Reason::ForeignName);
        }
        let understood = !matches!(contents.problem, Some(Reason::Unreadable(_)));
        dropped.extend(contents.problem);
        if let (Some(pid), Some(false)) = (lock.pid, alive) {
            dropped.push(Reason::DeadPid(pid));
        }

        let mut unfit = Vec::new();
        if understood && !environment.skip_valid_check {
            unfit.extend(match &matches_cwd {
                Match::Folder { .. } => None,
                Match::Root => Some(Reason::RootFolder),
                Match::Symlink { folder, real } => {
                    Some(Reason::SymlinkedFolder { folder: folder.clone(), real: real.clone() })
                }
                Match::Elsewhere => Some(Reason::NoMatch),
                Match::NoFolders => Some(Reason::NoFolders),
            });
        }
        if let Some(pid) = lock.pid.filter(|_| environment.is_ide_terminal()) {
            // Where ancestors cannot be told, the check is left out rather than guessed.
            if process::ancestors(environment.pid).is_some_and(|line| !line.contains(&pid)) {
                unfit.push(Reason::NotAnAncestor(pid));
            }
        }

        let mut unreachable = Vec::new();
        unreachable.extend(number.filter(|_| port.is_none()).map(Reason::BadPort));
        if let Some(port) = port.filter(|_| !port_open) {
            // Without a process id an open port is the only sign of life; with one, a closed port still counts as an IDE.
            if lock.pid.is_none() { &mut dropped } else { &mut unreachable }.push(Reason::PortClosed(port));
        }
        if understood && lock.transport.as_deref() != Some(TRANSPORT) {
            unreachable.push(Reason::WrongTransport(lock.transport.clone()));
        }
        if environment.auto_connect == Some(false) {
            unreachable.push(Reason::AutoConnectOff);
        }

        let open = Answer { connects: Connects::No, reasons: Vec::new() };
        let candidate = Candidate {
            path,
            directory,
            port,
            name: lock.ide_name,
            pid: lock.pid,
            alive,
            port_open,
            folders: lock.workspace_folders,
            transport: lock.transport,
            has_token: lock.auth_token.is_some(),
            ours: lock.oarlock.map(|mark| mark.version),
            matches_cwd,
            would_connect: open.clone(),
            with_port_variable: open,
        };
        Self { candidate, number: number.unwrap_or_default(), dropped, unfit, unreachable }
    }

    /// Whether a CLI takes the lock for an IDE that fits; newer ones also if its folder is `/`.
    fn counts(&self, root_matches: bool) -> bool {
        self.dropped.is_empty()
            && self.unfit.iter().all(|reason| root_matches && *reason == Reason::RootFolder)
    }
}

/// Fills in the answers, once for a CLI that does not match `/` and once for one that does.
fn judge(found: &mut [Found], environment: &Environment) {
    let counting = |root_matches: bool| -> Vec<usize> {
        (0..found.len()).filter(|index| found[*index].counts(root_matches)).collect()
    };
    let (older, newer) = (counting(false), counting(true));
    let numbers: Vec<u64> = found.iter().map(|found| found.number).collect();
    // A variable that names no lock, or a stale one, changes nothing for `--ide`.
    let is_chosen = |found: &Found| found.candidate.port == environment.port && found.dropped.is_empty();
    let chosen = environment.port.filter(|_| found.iter().any(is_chosen));
    for (index, found) in found.iter_mut().enumerate() {
        let hard: Vec<Reason> = found.dropped.iter().chain(&found.unreachable).cloned().collect();
        found.candidate.with_port_variable = Answer::from_reasons(hard.clone(), hard.clone());
        found.candidate.would_connect = match chosen {
            Some(port) if found.candidate.port == Some(port) => found.candidate.with_port_variable.clone(),
            Some(port) => Answer { connects: Connects::No, reasons: vec![Reason::OtherPort(port)] },
            None => {
                let reasons = |counting: &[usize], root_matches: bool| {
                    let unfit =
                        found.unfit.iter().filter(|reason| !root_matches || **reason != Reason::RootFolder);
                    let mut reasons: Vec<Reason> = hard.iter().chain(unfit).cloned().collect();
                    let others: Vec<u64> =
                        counting.iter().filter(|i| **i != index).map(|i| numbers[*i]).collect();
                    if counting.contains(&index) && !others.is_empty() {
                        reasons.push(Reason::Ambiguous(others));
                    }
                    reasons
                };
                Answer::from_reasons(reasons(&older, false), reasons(&newer, true))
            }
        };
    }
}

impl Answer {
    fn from_reasons(older: Vec<Reason>, newer: Vec<Reason>) -> Self {
        let connects = match (older.is_empty(), newer.is_empty()) {
            (true, true) => Connects::Yes,
            (false, false) => Connects::No,
            _ => Connects::Depends,
        };
        let mut reasons = newer;
        let more: Vec<Reason> = older.into_iter().filter(|reason| !reasons.contains(reason)).collect();
        reasons.extend(more);
        Self { connects, reasons }
    }
}

fn ide_flag_outcome(candidates: &[Candidate]) -> Outcome {
    let with = |connects| candidates.iter().find(|candidate| candidate.would_connect.connects == connects);
    let name = |candidate: &Candidate| candidate.name.clone().unwrap_or_else(|| "IDE".to_owned());
    if let Some(candidate) = with(Connects::Yes) {
        let text = format!("`claude --ide` connects to {}", name(candidate));
        return Outcome { connects: Connects::Yes, port: candidate.port, text };
    }
    if let Some(candidate) = with(Connects::Depends) {
        let why: Vec<String> = candidate.would_connect.reasons.iter().map(Reason::to_string).collect();
        let text = format!(
            "whether `claude --ide` connects to {} depends on its version: {}",
            name(candidate),
            why.join("; ")
        );
        return Outcome { connects: Connects::Depends, port: candidate.port, text };
    }
    let is_ambiguous = |candidate: &&Candidate| {
        candidate.would_connect.reasons.iter().any(|reason| matches!(reason, Reason::Ambiguous(_)))
    };
    let ambiguous: Vec<u64> = candidates
        .iter()
        .filter(is_ambiguous)
        .filter_map(|candidate| leading_number(&candidate.path))
        .collect();
    let text = if candidates.is_empty() {
        "`claude --ide` finds no lock file; start an engine with `oarlock serve`".to_owned()
    } else if !ambiguous.is_empty() {
        format!(
            "`claude --ide` connects to none: {}; choose one with CLAUDE_CODE_SSE_PORT",
            also_matching(&ambiguous)
        )
    } else {
        "`claude --ide` connects to none of these locks; each says why".to_owned()
    };
    Outcome { connects: Connects::No, port: None, text }
}

fn port_variable_outcome(candidates: &[Candidate], port: u16) -> Outcome {
    let locks: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.port == Some(port)).collect();
    let best = locks
        .iter()
        .find(|candidate| candidate.with_port_variable.connects == Connects::Yes)
        .or(locks.first());
    let Some(candidate) = best else {
        let text = format!(
            "CLAUDE_CODE_SSE_PORT={port} has no lock file, and the CLI needs one; unset it, or start that engine"
        );
        return Outcome { connects: Connects::No, port: Some(port), text };
    };
    let Answer { connects, reasons } = &candidate.with_port_variable;
    let text = if *connects == Connects::Yes {
        format!("`claude` connects to port {port} by CLAUDE_CODE_SSE_PORT, whatever the directory")
    } else {
        let why: Vec<String> = reasons.iter().map(Reason::to_string).collect();
        format!("`claude` does not connect by CLAUDE_CODE_SSE_PORT={port}: {}", why.join("; "))
    };
    Outcome { connects: *connects, port: Some(port), text }
}

/// A lock's contents as the CLI reads them, and what is wrong with them.
struct Contents {
    lock: LockFile,
    problem: Option<Reason>,
}

impl Contents {
    fn read(path: &Path) -> Self {
        let unreadable =
            |why: String| Self { lock: LockFile::default(), problem: Some(Reason::Unreadable(why)) };
        let contents = match private::read(path) {
            Ok((contents, _)) => contents,
            Err(error) => return unreadable(error.to_string()),
        };
        if let Some(lock) = LockFile::parse(&contents) {
            let problem = serde_json::from_slice(&contents).ok().and_then(|value| Self::problem(&value));
            return Self { lock, problem };
        }
        // The old form is plain text with a folder on each line, and the transport is not `ws`.
        let text = String::from_utf8_lossy(&contents);
        let folders: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| Path::new(line).is_absolute())
            .map(str::to_owned)
            .collect();
        if folders.is_empty() {
            return unreadable("neither a JSON object nor the old list of folders".to_owned());
        }
        Self { lock: LockFile { workspace_folders: folders, ..LockFile::default() }, problem: None }
    }

    /// What the liberal reading passes over and the CLI does not.
    fn problem(value: &Value) -> Option<Reason> {
        let is_text = |folder: &Value| folder.is_string();
        if value["workspaceFolders"].as_array().is_some_and(|folders| !folders.iter().all(is_text)) {
            return Some(Reason::Unreadable("a workspace folder is not a text".to_owned()));
        }
        // No pid is one thing to the CLI, and a pid that is no whole number is another.
        match &value["pid"] {
            Value::Null => None,
            Value::Number(number) if number.is_i64() || number.is_u64() => None,
            Value::String(text) if text.parse::<i64>().is_ok() => None,
            _ => Some(Reason::BadPid),
        }
    }
}

/// Compares the folders of a lock with a real directory, component by component. As for the CLI, dots are resolved by
/// the text alone, a relative folder begins at the directory itself, and an empty one is passed over.
fn compare(folders: &[String], cwd: &Path) -> Match {
    let resolve = |folder: &String| (folder.clone(), paths::without_dots(&cwd.join(folder)));
    let folders: Vec<(String, PathBuf)> =
        folders.iter().filter(|folder| !folder.is_empty()).map(resolve).collect();
    if folders.is_empty() {
        return Match::NoFolders;
    }
    let is_root = |path: &Path| path.parent().is_none();
    if let Some((folder, _)) = folders.iter().find(|(_, path)| !is_root(path) && cwd.starts_with(path)) {
        return Match::Folder { folder: folder.clone() };
    }
    if folders.iter().any(|(_, path)| is_root(path)) {
        return Match::Root;
    }
    for (folder, path) in &folders {
        if let Some(real) = dunce::canonicalize(path).ok().filter(|real| cwd.starts_with(real)) {
            return Match::Symlink { folder: folder.clone(), real };
        }
    }
    Match::Elsewhere
}

/// The number that a lock's name begins with. The CLI takes `4711x.lock` for port 4711.
fn leading_number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let end = name.find(|character: char| !character.is_ascii_digit()).unwrap_or(name.len());
    name[..end].parse().ok()
}

fn is_open(host: Option<&str>, port: u16) -> bool {
    let Ok(addresses) = (host.unwrap_or("127.0.0.1"), port).to_socket_addrs() else {
        return false;
    };
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, PORT_PATIENCE).is_ok())
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_say_yes_no_or_nothing() {
        for (text, expected) in [
            ("true", Some(true)),
            ("1", Some(true)),
            ("FALSE", Some(false)),
            ("off", Some(false)),
            ("", None),
            ("2", None),
        ] {
            assert_eq!(yes_or_no(text), expected, "{text}");
        }
    }

    #[test]
    fn this_process_has_an_environment() {
        let environment = Environment::from_process();
        assert_eq!(environment.pid, std::process::id());
        assert_eq!(environment.home.is_some(), etcetera::home_dir().is_ok());
    }
}
