//! Finding the user's `claude`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::Failure;

/// The variable by which other programs name the `claude` to start.
const VARIABLE: &str = "CLAUDE_CODE_EXECUTABLE";

const NAMES: &[&str] = if cfg!(windows) { &["claude.exe", "claude.cmd"] } else { &["claude"] };

const INSTALL: &str = "install it (`npm install -g @anthropic-ai/claude-code`, or see https://claude.com/claude-code), \
                       or set claude.program in the configuration (`oarlock config path`)";

/// Finds the `claude` to start: the configured one, the one of the variable, the first on the PATH, or one where
/// installers put it.
pub(crate) fn find(config: &Config) -> anyhow::Result<PathBuf> {
    let named = match &config.claude_program.value {
        Some(path) => Some((format!("claude.program ({})", config.claude_program.origin), path.clone())),
        None => variable(VARIABLE).map(|path| (VARIABLE.to_owned(), path.into())),
    };
    let search = Search {
        named,
        path: variable("PATH").unwrap_or_default(),
        home: etcetera::home_dir().ok(),
        npm_prefix: variable("NPM_CONFIG_PREFIX").map(PathBuf::from),
        system: if cfg!(unix) { &["/usr/local/bin", "/opt/homebrew/bin"] } else { &[] },
        app_data: variable("APPDATA").map(PathBuf::from),
    };
    search.run()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Everything that decides where to look.
#[derive(Default)]
struct Search {
    /// A program that somebody named, and who.
    named: Option<(String, PathBuf)>,
    path: OsString,
    home: Option<PathBuf>,
    npm_prefix: Option<PathBuf>,
    /// Directories for all users.
    system: &'static [&'static str],
    app_data: Option<PathBuf>,
}

impl Search {
    fn run(&self) -> anyhow::Result<PathBuf> {
        if let Some((who, path)) = &self.named {
            // A wrong name is not passed over in silence: another `claude` is not what was asked for.
            return if is_program(path) {
                Ok(path.clone())
            } else {
                let path = path.display();
                Err(Failure::not_found(format!(
                    "{who} says {path}, which is no program that can be started; correct or unset it"
                )))
            };
        }
        // A relative directory of the PATH would let any project bring its own `claude`.
        let on_path = std::env::split_paths(&self.path).filter(|dir| dir.is_absolute());
        let places: Vec<PathBuf> = on_path.chain(self.usual_places()).collect();
        let candidates = places.iter().flat_map(|dir| NAMES.iter().map(|name| dir.join(name)));
        candidates.into_iter().find(|path| is_program(path)).ok_or_else(|| {
            let mut looked: Vec<String> = self.usual_places().map(|dir| dir.display().to_string()).collect();
            looked.insert(0, "the PATH".to_owned());
            Failure::not_found(format!("no `claude` found; looked in {}; {INSTALL}", looked.join(", ")))
        })
    }

    /// Where the installers put it: the local one, the native one, and npm with its usual prefixes.
    fn usual_places(&self) -> impl Iterator<Item = PathBuf> {
        let home = |rest: &str| self.home.as_ref().map(|home| home.join(rest));
        let personal = [
            home(".claude/local"),
            home(".local/bin"),
            self.npm_prefix.as_ref().map(|prefix| prefix.join("bin")),
            home(".npm-global/bin"),
            self.app_data.as_ref().map(|dir| dir.join("npm")),
        ];
        personal.into_iter().flatten().chain(self.system.iter().map(PathBuf::from))
    }
}

fn is_program(path: &Path) -> bool {
    let Ok(about) = path.metadata() else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        about.is_file() && about.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        about.is_file()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_named_one_then_the_path_then_the_usual_places() {
        let dir = tempfile::tempdir().unwrap();
        let at = |rest: &str| dir.path().join(rest);
        let mut search = Search { home: Some(at("home")), path: at("bin").into(), ..Search::default() };

        program(&at("home/.local/bin/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("home/.local/bin/claude"));
        program(&at("home/.claude/local/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("home/.claude/local/claude"));
        program(&at("bin/claude"), 0o644);
        assert_eq!(search.run().unwrap(), at("home/.claude/local/claude"), "not executable");
        program(&at("bin/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("bin/claude"));
        program(&at("mine"), 0o755);
        search.named = Some(("claude.program".into(), at("mine")));
        assert_eq!(search.run().unwrap(), at("mine"));
    }

    #[test]
    fn a_wrong_name_is_an_error_although_another_would_be_there() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("claude"), 0o755);
        let named = Some((VARIABLE.to_owned(), dir.path().join("gone")));
        let search = Search { named, path: dir.path().into(), ..Search::default() };
        let error = search.run().unwrap_err().to_string();
        assert!(error.starts_with("CLAUDE_CODE_EXECUTABLE says "), "{error}");
    }

    #[test]
    fn none_says_where_it_looked_and_how_to_install_it() {
        let dir = tempfile::tempdir().unwrap();
        let search = Search { home: Some(dir.path().into()), path: ".:bin".into(), ..Search::default() };
        let error = search.run().unwrap_err();
        assert!(matches!(error.downcast_ref::<Failure>(), Some(Failure::NotFound(_))));
        let error = error.to_string();
        for part in ["the PATH", ".claude/local", ".local/bin", "npm install -g", "claude.program"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_relative_directory_of_the_path_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("claude"), 0o755);
        let up = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
        let relative = up.join(dir.path().strip_prefix("/").unwrap());
        assert!(is_program(&relative.join("claude")));
        let search = Search { path: relative.into(), ..Search::default() };
        assert!(search.run().is_err());
    }
}
