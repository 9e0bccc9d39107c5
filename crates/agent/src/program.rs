//! Finding the user's `claude`.
//!
//! The first that there is: the one that somebody named ([`named`]), the one of the variable [`VARIABLE`], the first on
//! the PATH, or one where installers put it ([`find`]).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::Error;

/// The variable by which other programs name the `claude` to start.
pub const VARIABLE: &str = "CLAUDE_CODE_EXECUTABLE";

const NAMES: &[&str] = if cfg!(windows) { &["claude.exe", "claude.cmd"] } else { &["claude"] };

/// Finds the `claude` to start: the one of the variable, the first on the PATH, or one where installers put it.
///
/// # Errors
/// [`Error::ProgramNotFound`] says where it was looked for. [`Error::NoProgram`] when the variable names something that
/// cannot be started: another `claude` is not what was asked for.
pub fn find() -> Result<PathBuf, Error> {
    match variable(VARIABLE) {
        Some(path) => named(VARIABLE, Path::new(&path)),
        None => Search::from_process().run(),
    }
}

/// The program that somebody (`who`: an option, a variable, a configuration) named, as an absolute path. A bare name
/// is looked up on the PATH.
///
/// # Errors
/// [`Error::NoProgram`] when there is no such program.
pub fn named(who: &str, name: &Path) -> Result<PathBuf, Error> {
    Search::from_process().named(who, name)
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Everything that decides where to look.
#[derive(Default)]
struct Search {
    path: OsString,
    home: Option<PathBuf>,
    npm_prefix: Option<PathBuf>,
    /// Directories for all users.
    system: &'static [&'static str],
    app_data: Option<PathBuf>,
}

impl Search {
    fn from_process() -> Self {
        Self {
            path: variable("PATH").unwrap_or_default(),
            home: etcetera::home_dir().ok(),
            npm_prefix: variable("NPM_CONFIG_PREFIX").map(PathBuf::from),
            system: if cfg!(unix) { &["/usr/local/bin", "/opt/homebrew/bin"] } else { &[] },
            app_data: variable("APPDATA").map(PathBuf::from),
        }
    }

    fn run(&self) -> Result<PathBuf, Error> {
        let places = self.on_path().chain(self.usual_places());
        let mut candidates = places.flat_map(|dir| NAMES.iter().map(move |name| dir.join(name)));
        candidates.find(|path| is_program(path)).ok_or_else(|| {
            let usual = self.usual_places().map(|dir| dir.display().to_string());
            Error::ProgramNotFound { looked: std::iter::once("the PATH".to_owned()).chain(usual).collect() }
        })
    }

    fn named(&self, who: &str, name: &Path) -> Result<PathBuf, Error> {
        // A relative path would mean another file once the child runs in its own directory.
        let found = if is_bare(name) {
            self.on_path().map(|dir| dir.join(name)).find(|path| is_program(path))
        } else {
            std::path::absolute(name).ok().filter(|path| is_program(path))
        };
        found.ok_or_else(|| Error::NoProgram { who: who.to_owned(), path: name.to_owned() })
    }

    /// The directories of the PATH. A relative one would let any project bring its own `claude`.
    fn on_path(&self) -> impl Iterator<Item = PathBuf> {
        std::env::split_paths(&self.path).filter(|dir| dir.is_absolute())
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

/// A name without any directory, as one types it at a prompt.
fn is_bare(name: &Path) -> bool {
    name.file_name() == Some(OsStr::new(name)) && name.components().count() == 1
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
    fn the_path_comes_before_the_usual_places() {
        let dir = tempfile::tempdir().unwrap();
        let at = |rest: &str| dir.path().join(rest);
        let search = Search { home: Some(at("home")), path: at("bin").into(), ..Search::default() };

        program(&at("home/.local/bin/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("home/.local/bin/claude"));
        program(&at("home/.claude/local/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("home/.claude/local/claude"));
        program(&at("bin/claude"), 0o644);
        assert_eq!(search.run().unwrap(), at("home/.claude/local/claude"), "not executable");
        program(&at("bin/claude"), 0o755);
        assert_eq!(search.run().unwrap(), at("bin/claude"));
    }

    #[test]
    fn a_named_one_is_that_one_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("claude"), 0o755);
        program(&dir.path().join("mine"), 0o755);
        let search = Search { path: dir.path().into(), ..Search::default() };
        assert_eq!(search.named("x", &dir.path().join("mine")).unwrap(), dir.path().join("mine"));
        assert_eq!(search.named("x", Path::new("mine")).unwrap(), dir.path().join("mine"), "a bare name");
        for gone in ["./mine", "gone", "", "."] {
            let error = search.named(VARIABLE, Path::new(gone)).unwrap_err().to_string();
            assert!(error.starts_with("CLAUDE_CODE_EXECUTABLE says "), "{error}");
        }
    }

    #[test]
    fn a_relative_path_becomes_absolute() {
        // The test binary runs in the crate's directory.
        let dir = tempfile::tempdir_in(".").unwrap();
        let relative = Path::new(".").join(dir.path().file_name().unwrap()).join("claude");
        program(&relative, 0o755);
        let found = named("x", &relative).unwrap();
        assert!(found.is_absolute() && is_program(&found), "{found:?}");
    }

    #[test]
    fn none_says_where_it_looked_and_how_to_install_it() {
        let dir = tempfile::tempdir().unwrap();
        let search = Search { home: Some(dir.path().into()), path: ".:bin".into(), ..Search::default() };
        let error = search.run().unwrap_err();
        assert!(matches!(error, Error::ProgramNotFound { .. }));
        let error = error.to_string();
        for part in ["the PATH", ".claude/local", ".local/bin", "npm install -g"] {
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
        assert!(search.named("x", Path::new("claude")).is_err());
    }
}
