//! Whether the settings of Claude Code choose a permission mode.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::command_line::CommandLine;

/// Who chooses the mode: the first of the command line, `--settings`, and the local, project and user settings.
pub(super) fn mode_chosen_by(line: &CommandLine, config_dir: Option<&Path>, cwd: &Path) -> Option<String> {
    if line.mode.is_some() {
        return line.mode.clone();
    }
    if let Some(settings) = &line.settings {
        let is_json = settings.trim_start().starts_with('{');
        let text = if is_json { Some(settings.clone()) } else { fs::read_to_string(cwd.join(settings)).ok() };
        if text.is_some_and(|text| chooses(&text)) {
            return Some("--settings".to_owned());
        }
    }
    let files = [
        ("local", Some(cwd.join(".claude/settings.local.json"))),
        ("project", Some(cwd.join(".claude/settings.json"))),
        ("user", config_dir.map(|dir| dir.join("settings.json"))),
    ];
    let counting = files.into_iter().filter(|(source, _)| line.reads(source)).filter_map(|(_, file)| file);
    counting.into_iter().find(|file| file_chooses(file)).map(|file| file.display().to_string())
}

/// `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
pub(super) fn config_dir() -> Option<PathBuf> {
    let named = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty());
    named.map(PathBuf::from).or_else(|| Some(etcetera::home_dir().ok()?.join(".claude")))
}

/// A file that cannot be read or understood chooses nothing; Claude Code itself says what is wrong with it.
fn file_chooses(file: &Path) -> bool {
    file.is_file() && fs::read_to_string(file).is_ok_and(|text| chooses(&text))
}

fn chooses(text: &str) -> bool {
    let settings: Option<Value> = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok();
    settings.is_some_and(|settings| {
        settings
            .pointer("/permissions/defaultMode")
            .and_then(Value::as_str)
            .is_some_and(|mode| !mode.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: &str = r#"{"permissions": {"defaultMode": "plan"}}"#;

    fn chosen(args: &[&str], home: &Path, cwd: &Path) -> Option<String> {
        let line = CommandLine::parse(&args.iter().map(Into::into).collect::<Vec<_>>());
        let by = mode_chosen_by(&line, Some(home), cwd)?;
        Some(Path::new(&by).strip_prefix(cwd).map_or(by.clone(), |by| by.display().to_string()))
    }

    #[test]
    fn the_nearest_one_that_chooses() {
        let (home, cwd) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (home, cwd) = (home.path(), cwd.path());
        fs::create_dir(cwd.join(".claude")).unwrap();
        assert_eq!(chosen(&[], home, cwd), None);

        fs::write(home.join("settings.json"), CHOICE).unwrap();
        assert_eq!(chosen(&[], home, cwd), Some(home.join("settings.json").display().to_string()));
        fs::write(cwd.join(".claude/settings.json"), CHOICE).unwrap();
        assert_eq!(chosen(&[], home, cwd).as_deref(), Some(".claude/settings.json"));
        fs::write(cwd.join(".claude/settings.local.json"), CHOICE).unwrap();
        assert_eq!(chosen(&[], home, cwd).as_deref(), Some(".claude/settings.local.json"));

        assert_eq!(
            chosen(&["--setting-sources", "project"], home, cwd).as_deref(),
            Some(".claude/settings.json")
        );
        assert_eq!(chosen(&["--restricted"], home, cwd), None);
        assert_eq!(chosen(&["--settings", CHOICE], home, cwd).as_deref(), Some("--settings"));
        fs::write(cwd.join("more.json"), CHOICE).unwrap();
        assert_eq!(
            chosen(&["--restricted", "--settings", "more.json"], home, cwd).as_deref(),
            Some("--settings")
        );
        assert_eq!(chosen(&["--permission-mode=auto"], home, cwd).as_deref(), Some("--permission-mode"));
    }

    #[test]
    fn what_chooses_nothing() {
        for text in ["", "{", "[]", "{}", r#"{"permissions":{}}"#, r#"{"permissions":{"defaultMode":""}}"#] {
            assert!(!chooses(text), "{text}");
        }
        assert!(!chooses(r#"{"defaultMode":"plan"}"#));
        assert!(chooses(CHOICE));
    }
}
