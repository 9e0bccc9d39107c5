//! The command line, and the private files that it names.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use super::flags::option_of;
use crate::Error;

/// How long a command line may become. Windows allows 32 767 characters in all, Linux 128 KiB for one argument.
const ROOM: usize = if cfg!(windows) { 30_000 } else { 120_000 };

/// How many files of the same content get a name that the next start finds again.
const SLOTS: usize = 64;

/// The command line as it is being put together.
#[derive(Default)]
pub(super) struct Args(Vec<Arg>);

struct Arg {
    flag: String,
    value: Value,
}

enum Value {
    /// The flag alone.
    None,
    /// `--flag=value`, in one argument. In two, a value that begins with `-` would be a flag of its own wherever the
    /// CLI takes the value as optional, and a list would swallow what follows it.
    Joined(OsString),
    /// A private file with this text; or the text itself, behind another flag perhaps, where nobody could read the file.
    File { name: &'static str, text: String, inline: &'static str },
}

impl Args {
    /// A flag without a value.
    pub(super) fn switch(&mut self, flag: &str, on: bool) {
        if on {
            self.push(flag, Value::None);
        }
    }

    /// A value that must not be empty.
    pub(super) fn value(&mut self, flag: &str, value: impl AsRef<OsStr>) -> Result<(), Error> {
        if value.as_ref().is_empty() {
            return Err(Error::Option {
                option: option_of(flag),
                reason: "it is empty; leave it out".into(),
            });
        }
        self.value_or_empty(flag, value)
    }

    /// A value that may be empty.
    pub(super) fn value_or_empty(&mut self, flag: &str, value: impl AsRef<OsStr>) -> Result<(), Error> {
        let value = value.as_ref();
        if value.as_encoded_bytes().contains(&0) {
            let reason = "it holds a NUL character, which no argument can".into();
            return Err(Error::Option { option: option_of(flag), reason });
        }
        self.push(flag, Value::Joined(value.to_owned()));
        Ok(())
    }

    /// A value, if there is one.
    pub(super) fn maybe(&mut self, flag: &str, value: Option<impl AsRef<OsStr>>) -> Result<(), Error> {
        value.map_or(Ok(()), |value| self.value(flag, value))
    }

    /// A list: the flag once for each. Joined by commas, one bad rule could swallow its neighbours.
    pub(super) fn each<T: AsRef<OsStr>>(
        &mut self,
        flag: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        values.into_iter().try_for_each(|value| self.value(flag, value))
    }

    /// A path where the CLI takes a path or JSON: it cannot be taken for JSON.
    pub(super) fn path(&mut self, flag: &str, path: &Path) -> Result<(), Error> {
        if path.is_absolute() || path.as_os_str().is_empty() {
            self.value(flag, path)
        } else {
            self.value(flag, Path::new(".").join(path))
        }
    }

    /// A text that is too large or too private for a command line. The flag takes both a file and the text itself.
    pub(super) fn file(&mut self, flag: &'static str, name: &'static str, text: String) {
        self.file_or(flag, flag, name, text);
    }

    /// As [`file`](Self::file), for a flag that takes only a file beside another that takes only the text.
    pub(super) fn file_or(&mut self, flag: &str, inline: &'static str, name: &'static str, text: String) {
        self.push(flag, Value::File { name, text, inline });
    }

    fn push(&mut self, flag: &str, value: Value) {
        self.0.push(Arg { flag: flag.to_owned(), value });
    }

    /// The names of the flags: what may be shown.
    pub(super) fn flags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|arg| arg.flag.as_str())
    }

    /// The arguments. Texts become private files, or stay on the command line when `inline`.
    pub(super) fn finish(self, inline: bool) -> Result<(Vec<OsString>, Vec<TempPath>), Error> {
        let mut files = Vec::new();
        let mut args = Vec::with_capacity(self.0.len());
        for Arg { mut flag, value } in self.0 {
            let value = match value {
                Value::None => {
                    args.push(flag.into());
                    continue;
                }
                Value::Joined(value) => value,
                Value::File { text, inline: other, .. } if inline => {
                    flag = other.to_owned();
                    text.into()
                }
                Value::File { name, text, .. } => {
                    let file = private_file(name, &text).map_err(|source| Error::Io {
                        action: format!("write the file for {flag}"),
                        source,
                    })?;
                    let path = file.as_os_str().to_owned();
                    files.push(file);
                    path
                }
            };
            let mut arg = OsString::with_capacity(flag.len() + 1 + value.len());
            arg.push(flag);
            arg.push("=");
            arg.push(value);
            args.push(arg);
        }
        check_room(&args)?;
        Ok((args, files))
    }
}

/// Refuses a command line that the system might not take, and names the option that makes it so long.
fn check_room(args: &[OsString]) -> Result<(), Error> {
    let total: usize = args.iter().map(|arg| arg.len() + 1).sum();
    if total <= ROOM {
        return Ok(());
    }
    let longest =
        args.iter().max_by_key(|arg| arg.len()).map(|arg| arg.to_string_lossy()).unwrap_or_default();
    let flag = longest.split('=').next().unwrap_or_default();
    let reason = format!(
        "the command line would have {total} bytes, more than the {ROOM} that every system takes; rules and \
         directories may also go into `settings`, plugins into `plugin_delivery`, and a file may hold the rest"
    );
    Err(Error::Option { option: option_of(flag), reason })
}

/// A file that only its owner can read. It must outlive the CLI, which reads it again.
///
/// Its name comes from its text, because the sandbox tells the model the path of the settings: a name that differs
/// each time would spoil the prompt cache.
fn private_file(name: &str, text: &str) -> io::Result<TempPath> {
    let dir = std::path::absolute(std::env::temp_dir())?;
    let (stem, suffix) = name.split_at(name.find('.').unwrap_or(name.len()));
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let mut file = create(&dir, &format!("oarlock-{stem}-{:016x}-", hasher.finish()), suffix)?;
    file.write_all(text.as_bytes())?;
    Ok(file.into_temp_path())
}

/// Takes the first name that is free. One that somebody else has is passed over, never followed.
fn create(dir: &Path, prefix: &str, suffix: &str) -> io::Result<NamedTempFile> {
    for slot in 0..SLOTS {
        let prefix = format!("{prefix}{slot}");
        match tempfile::Builder::new().prefix(&prefix).suffix(suffix).rand_bytes(0).tempfile_in(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
    }
    tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(args: Args) -> Vec<OsString> {
        args.finish(false).unwrap().0
    }

    #[test]
    fn every_value_is_joined_to_its_flag() {
        let mut args = Args::default();
        args.value("--model", "--dangerously-skip-permissions").unwrap();
        args.each("--betas", ["a", "-b"]).unwrap();
        args.value_or_empty("--tools", "").unwrap();
        args.path("--settings", Path::new("{x}")).unwrap();
        args.switch("--bare", true);
        args.switch("--brief", false);
        let want = [
            "--model=--dangerously-skip-permissions",
            "--betas=a",
            "--betas=-b",
            "--tools=",
            "--settings=./{x}",
        ];
        assert_eq!(finish(args), want.into_iter().chain(["--bare"]).collect::<Vec<_>>());
    }

    #[test]
    fn what_no_argument_can_be_is_refused_by_the_name_of_the_option() {
        let mut args = Args::default();
        for (outcome, reason) in [
            (args.value("--model", "a\0b"), "NUL"),
            (args.value("--model", ""), "empty"),
            (args.path("--settings", Path::new("")), "empty"),
        ] {
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_command_line_that_grows_too_long_names_the_longest_option() {
        let mut args = Args::default();
        args.value("--model", "x").unwrap();
        args.value("--allowedTools", "x".repeat(ROOM)).unwrap();
        let error = args.finish(false).unwrap_err();
        assert!(matches!(error, Error::Option { option: "allowed_tools", .. }), "{error:?}");
    }

    #[test]
    fn a_text_is_a_private_file_with_the_same_name_next_time() {
        let start = || {
            let mut args = Args::default();
            args.file("--settings", "test.json", r#"{"unit test":1}"#.into());
            args.finish(false).unwrap()
        };
        let (first, files) = start();
        let path = files[0].to_path_buf();
        assert!(path.is_absolute());
        assert_eq!(first, [OsString::from(format!("--settings={}", path.display()))]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"unit test":1}"#);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        // At the same time another one, later the same one.
        let (second, other) = start();
        assert_ne!(second, first);
        drop((files, other));
        assert!(!path.exists());
        assert_eq!(start().0, first);
    }

    #[test]
    fn inline_a_text_stays_on_the_command_line() {
        let mut args = Args::default();
        args.file("--settings", "test.json", "{}".into());
        args.file_or("--prompt-file", "--prompt", "test", "hi".into());
        assert_eq!(args.finish(true).unwrap().0, ["--settings={}", "--prompt=hi"]);
    }
}
