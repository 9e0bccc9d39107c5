//! `cargo xtask tidy`: what no compiler checks. Documents and tests agree, files stay small, nothing of a
//! developer's machine is committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::{reference, shell};

/// More lines than this and a file holds two subjects.
const MOST_LINES: usize = 700;

// Written in two halves, or this file would complain about itself.
const UNFINISHED: [&str; 2] = [concat!("todo", "!("), concat!("#[", "ignore")];
const MACHINE_PATHS: [&str; 2] = [concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// The home directory of the recorded transcripts, which is nobody's.
const FIXTURE_HOME: &str = concat!("/ho", "me/u");

/// Checks everything and fails with all complaints at once.
pub(crate) fn run() -> Result<()> {
    let files = tracked_files()?;
    let mut complaints = Vec::new();
    for (path, text) in &files {
        complaints.extend(complaints_about(path, text));
    }
    complaints.extend(dead_links(&files));
    let protocol = files.get("PROTOCOL.md").map_or("", String::as_str);
    let clauses = clauses(protocol);
    if clauses.is_empty() {
        complaints.push("PROTOCOL.md: no table of clauses, so nothing says what the tests prove".to_owned());
    }
    complaints.extend(uncovered(&clauses, &tested(&files)));
    complaints.extend(reference::complaint(protocol)?);

    if complaints.is_empty() {
        println!("{} files are tidy", files.len());
        return Ok(());
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    bail!("{} complaints", complaints.len());
}

/// The text files that are, or will be, in the repository, by their path from the root.
fn tracked_files() -> Result<BTreeMap<String, String>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(shell::root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut files = BTreeMap::new();
    for path in shell::read(&mut git)?.split_terminator('\0') {
        // A file deleted but not yet committed is listed too, and binary files hold no prose.
        if let Ok(text) = fs::read_to_string(shell::root().join(path)) {
            files.insert(path.to_owned(), text);
        }
    }
    Ok(files)
}

/// Links of documents to files that are not there.
fn dead_links(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let targets = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split_once(')'));
        for (target, _) in targets {
            let file = target.split('#').next().unwrap_or_default();
            let is_local = !file.is_empty() && !file.contains("://");
            if is_local && !shell::root().join(folder).join(file).exists() {
                complaints.push(format!("{path}: the link to {target} leads nowhere"));
            }
        }
    }
    complaints
}

fn complaints_about(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_rust = Path::new(path).extension().is_some_and(|end| end == "rs");
    let lines = text.lines().count();
    if is_rust && lines > MOST_LINES {
        complaints.push(format!("{path}: {lines} lines, more than {MOST_LINES}; split it by subject"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        for mark in UNFINISHED.into_iter().filter(|mark| is_rust && line.contains(mark)) {
            complaints.push(format!("{path}:{number}: `{mark}`; finish it, or leave it out"));
        }
        if let Some(found) = machine_path(line) {
            complaints.push(format!("{path}:{number}: `{found}` is a path of one machine"));
        }
    }
    complaints
}

fn machine_path(line: &str) -> Option<&'static str> {
    MACHINE_PATHS.into_iter().find(|needle| {
        line.match_indices(needle).any(|(at, _)| {
            let (before, from) = line.split_at(at);
            let is_inner = before.ends_with(|c: char| c.is_alphanumeric() || "_-.})>*".contains(c));
            let is_fixture = from
                .strip_prefix(FIXTURE_HOME)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c)));
            !is_inner && !is_fixture
        })
    })
}

/// The clause ids in the tables of `PROTOCOL.md`, in the form that test names have, with their level.
fn clauses(protocol: &str) -> BTreeMap<String, char> {
    let mut clauses = BTreeMap::new();
    for line in protocol.lines() {
        let mut cells =
            line.trim().strip_prefix('|').into_iter().flat_map(|row| row.split('|')).map(str::trim);
        let (Some(id), Some(level)) = (cells.next(), cells.next()) else { continue };
        let name = id.trim_matches('`').to_lowercase().replace('-', "_");
        if let (true, Some(level)) = (ids_in(&name).eq([name.as_str()]), level.chars().next()) {
            clauses.insert(name, level);
        }
    }
    clauses
}

/// The clause ids in names of test functions and in string literals, which is how mimic tests are named.
fn tested(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut tested = BTreeMap::new();
    for (path, text) in files {
        if !path.starts_with("crates/") || !path.ends_with(".rs") {
            continue;
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let function = line.split_once("fn ").map(|(_, rest)| rest);
            // In a line with quotes every other piece is literal text.
            for piece in function.into_iter().chain(line.split('"').skip(1).step_by(2)) {
                for id in ids_in(piece) {
                    tested.entry(id.to_owned()).or_insert_with(|| path.clone());
                }
            }
        }
    }
    tested
}

/// Every `ide_word_12` in `text` that is not part of a longer word.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["ide_", "hl_", "acp_"].into_iter().flat_map(|start| text.match_indices(start));
    starts.filter_map(|(at, start)| {
        let is_inner = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let rest = &text[at + start.len()..];
        let word =
            rest.find('_').filter(|end| *end > 0 && rest[..*end].bytes().all(|b| b.is_ascii_lowercase()))?;
        let digits = rest[word + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let after = rest[word + 1 + digits..].chars().next();
        (!is_inner && digits == 2 && !after.is_some_and(char::is_alphanumeric))
            .then(|| &text[at..at + start.len() + word + 1 + digits])
    })
}

fn uncovered(clauses: &BTreeMap<String, char>, tested: &BTreeMap<String, String>) -> Vec<String> {
    let id = |name: &str| name.to_uppercase().replace('_', "-");
    let untested = clauses
        .iter()
        .filter(|(name, level)| matches!(level, 'M' | 'S') && !tested.contains_key(*name))
        .map(|(name, level)| format!("PROTOCOL.md: {} ({level}) has no test named {name}_…", id(name)));
    let unknown = tested
        .iter()
        .filter(|(name, _)| !clauses.contains_key(*name))
        .map(|(name, path)| format!("{path}: a test names {}, which PROTOCOL.md does not have", id(name)));
    untested.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("crates/x/tests/y.rs".to_owned(), text.to_owned())])
    }

    #[test]
    fn clauses_are_rows_with_an_id_and_a_level() {
        let text = "# x\n| id | lvl |\n|---|---|\n| IDE-LOCK-01 | M a | text |\n| `IDE-SEL-05` | S d | IDE-SEL-06 |\n| ACP-A-01 | I |\n| XYZ-A-01 | M |";
        let found = clauses(text);
        let expected = [("ide_lock_01", 'M'), ("ide_sel_05", 'S'), ("acp_a_01", 'I')];
        assert_eq!(found, expected.map(|(name, level)| (name.to_owned(), level)).into());
    }

    #[test]
    fn tests_are_functions_and_literals_but_not_comments() {
        let text = "async fn ide_lock_01_and_ide_lock_02() {}\n// fn ide_lock_03_x\nTrial::test(\"e2e::ide_mcp_04_x\", f);\nlet ide_mcp_05 = 1;\nfn provide_net_01() {}\nfn ide_list_123() {}";
        let found: Vec<String> = tested(&files(text)).into_keys().collect();
        assert_eq!(found, ["ide_lock_01", "ide_lock_02", "ide_mcp_04"]);
    }

    #[test]
    fn both_directions_are_checked() {
        let clauses =
            BTreeMap::from([("ide_a_01".into(), 'M'), ("ide_a_02".into(), 'I'), ("ide_a_03".into(), 'S')]);
        let tested = tested(&files("fn ide_a_03_x() {}\nfn ide_b_09_x() {}"));
        let complaints = uncovered(&clauses, &tested);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains("IDE-A-01 (M) has no test"), "{complaints:?}");
        assert!(complaints[1].contains("IDE-B-09, which PROTOCOL.md does not have"), "{complaints:?}");
    }

    #[test]
    fn paths_of_a_machine_are_found_and_fixtures_are_not() {
        let [root, home] = MACHINE_PATHS;
        assert!(machine_path(&format!("see {root}x")).is_some());
        assert!(machine_path(&format!("\"{home}ann/x\"")).is_some());
        assert!(machine_path(&format!("{home}uwe/x")).is_some());
        assert!(machine_path(&format!("{home}u/.claude and {home}u")).is_none());
        assert!(machine_path(&format!("tree{root}x")).is_none());
    }

    #[test]
    fn long_and_unfinished_files_are_found() {
        let long = "x\n".repeat(MOST_LINES + 1);
        assert_eq!(complaints_about("a.rs", &long).len(), 1);
        assert!(complaints_about("a.md", &long).is_empty());
        for mark in UNFINISHED {
            assert_eq!(complaints_about("a.rs", mark).len(), 1);
        }
    }
}
