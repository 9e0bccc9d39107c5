//! What a CLI said about itself the last time, so that a session opens before it is up.
//!
//! One small file for each CLI and its settings. It holds names of models, commands and modes; no keys, no paths of the
//! user's files. It is only ever a guess: the CLI corrects it when it is up, so anything that is wrong with a file makes it
//! none.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::choices::Known;
use crate::context::Context;
use crate::translate::Windows;

/// The form of the files. Those of another form are passed over.
const FORM: u32 = 1;
/// How many files are kept.
const KEPT: usize = 50;
/// Nothing that is larger is read: neither ours nor the CLI's settings.
const LARGEST: u64 = 1 << 20;

/// Variables that decide which models there are. Their values are not kept, only mixed into the name.
const VARIABLES: &[&str] = &[
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_MODEL_OPTION",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_MODEL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];

#[derive(Serialize, Deserialize)]
struct Contents<K> {
    form: u32,
    known: K,
}

/// Where this CLI's choices are kept: it depends on the program, its age, and the settings that apply in `cwd`.
pub(crate) fn place(context: &Context, program: &Path, cwd: &Path) -> Option<PathBuf> {
    let dir = match &context.settings.cache_dir {
        Some(dir) => dir.clone(),
        None => etcetera::choose_base_strategy().ok()?.cache_dir().join("oarlock").join("acp"),
    };
    let name = name(program, context.config_dir(), cwd, |name| std::env::var_os(name))?;
    Some(dir.join(format!("{name}.json")))
}

/// What tells one CLI and its settings from another.
fn name<V: AsRef<OsStr>>(
    program: &Path,
    config_dir: Option<&Path>,
    cwd: &Path,
    variable: impl Fn(&str) -> Option<V>,
) -> Option<String> {
    // The program's name is often a link to the version that is installed.
    let program = program.canonicalize().ok()?;
    let about = program.metadata().ok()?;
    let mut mark = Mark(Sha256::new());
    mark.add(program.as_os_str().as_encoded_bytes());
    mark.add(&about.len().to_le_bytes());
    mark.add(&age(about.modified().ok()).to_le_bytes());
    if let Some(dir) = config_dir {
        mark.add(dir.as_os_str().as_encoded_bytes());
        mark.add_file(&dir.join("settings.json"));
    }
    let project = cwd.join(".claude");
    mark.add_file(&project.join("settings.json"));
    mark.add_file(&project.join("settings.local.json"));
    // A project's own commands and agents are not another's.
    for folder in ["agents", "commands", "skills"].map(|name| project.join(name)) {
        if let Ok(about) = folder.metadata() {
            mark.add(folder.as_os_str().as_encoded_bytes());
            mark.add(&age(about.modified().ok()).to_le_bytes());
        }
    }
    for name in VARIABLES {
        match variable(name) {
            Some(value) => mark.add(value.as_ref().as_encoded_bytes()),
            None => mark.add(b"\0"),
        }
    }
    // Half of it is more than enough to tell 50 files apart.
    Some(mark.0.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

fn age(time: Option<SystemTime>) -> u128 {
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos())
}

/// A fingerprint of several things, none of which can run into the next.
struct Mark(Sha256);

impl Mark {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a file's contents. One that is not there is another thing than an empty one.
    fn add_file(&mut self, path: &Path) {
        match read(path) {
            Ok(bytes) => self.add(&bytes),
            Err(_) => self.0.update(u64::MAX.to_le_bytes()),
        }
    }
}

/// Reads a small file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    // A pipe or a device would keep us waiting.
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// What was known the last time.
pub(crate) fn load(place: &Path) -> Option<Known> {
    let contents: Contents<Known> = serde_json::from_slice(&read(place).ok()?).ok()?;
    (contents.form == FORM).then_some(contents.known)
}

/// Keeps what is known now. Failing to is no harm.
pub(crate) fn store(place: &Path, known: &Known) {
    let before = load(place);
    let known = known.clone().or_else(before.as_ref());
    if before.as_ref() == Some(&known) {
        return;
    }
    if let Err(error) = write(place, &known) {
        tracing::debug!(place = %place.display(), %error, "what the CLI said is not remembered");
    }
}

/// Keeps what fits into each model, beside what is known already.
pub(crate) fn store_windows(place: &Path, windows: &Windows) {
    if let Some(mut known) = load(place) {
        known.windows.clone_from(windows);
        store(place, &known);
    }
}

fn write(place: &Path, known: &Known) -> io::Result<()> {
    let dir = place.parent().unwrap_or(Path::new("."));
    make_private(dir)?;
    // Only its owner may read it from its first moment, and a reader sees the old contents or the new.
    let mut file = tempfile::Builder::new().prefix(".known-").tempfile_in(dir)?;
    file.write_all(&serde_json::to_vec(&Contents { form: FORM, known })?)?;
    file.persist(place).map_err(|error| error.error)?;
    remove_oldest(dir);
    Ok(())
}

/// Makes a directory that only its owner may look into. One that is there is left as it is.
fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Old versions and old settings leave files behind.
fn remove_oldest(dir: &Path) {
    let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    for (_, path) in files.drain(KEPT.min(files.len())..) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Instant;

    use oarlock_agent::stream::reply;

    use super::*;

    fn known(model: &str) -> Known {
        let mut info = reply::Initialize::default();
        info.models.push(reply::ModelInfo { value: model.into(), ..Default::default() });
        Known::new(&info, None)
    }

    fn with_settings(model: &str) -> Known {
        let mut info = reply::Initialize::default();
        info.models.push(reply::ModelInfo { value: model.into(), ..Default::default() });
        Known::new(&info, Some(&reply::GetSettings::default()))
    }

    fn count(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn what_was_stored_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a/b/x.json");
        assert_eq!(load(&place), None);
        store(&place, &known("opus"));
        assert_eq!(load(&place), Some(known("opus")));
        assert_eq!(count(place.parent().unwrap()), 1, "nothing else is left there");
    }

    #[test]
    fn what_the_settings_said_is_not_forgotten_while_they_are_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.json");
        store(&place, &with_settings("opus"));
        store(&place, &known("opus"));
        assert_eq!(load(&place), Some(with_settings("opus")));
        store(&place, &known("sonnet"));
        assert_eq!(load(&place), Some(with_settings("sonnet")));
    }

    #[cfg(unix)]
    #[test]
    fn acp_sec_01_only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("oarlock/acp/x.json");
        store(&place, &known("opus"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o600);
        assert_eq!(mode(place.parent().unwrap()), 0o700);
    }

    #[cfg(unix)]
    #[test]
    fn the_same_is_not_written_again() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.json");
        let inode = || place.metadata().unwrap().ino();
        store(&place, &known("opus"));
        // A file that is replaced is another one, as long as the first is held.
        let _held = fs::File::open(&place).unwrap();
        let before = inode();
        store(&place, &known("opus"));
        assert_eq!(inode(), before);
        store(&place, &known("sonnet"));
        assert_ne!(inode(), before);
    }

    #[test]
    fn anything_wrong_with_a_file_makes_it_none() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.json");
        let new = serde_json::to_string(&Contents { form: FORM + 1, known: known("opus") }).unwrap();
        let large = format!("{{\"form\":1{}", " ".repeat(LARGEST as usize));
        for text in ["", "{}", "null", "{\"form\":1}", "{\"form\":1,\"known\":7}", "\u{0}", &new, &large] {
            fs::write(&place, text).unwrap();
            assert_eq!(load(&place), None, "{}", text.chars().take(40).collect::<String>());
        }
        store(&place, &known("opus"));
        assert_eq!(load(&place), Some(known("opus")), "it is written over");
        assert_eq!(load(dir.path()), None, "a directory");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        store(&file.join("acp/x.json"), &known("opus"));
        assert_eq!(load(&file.join("acp/x.json")), None);
    }

    #[test]
    fn the_oldest_are_removed_and_strangers_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("readme.txt"), "").unwrap();
        for n in 0..KEPT + 5 {
            store(&dir.path().join(format!("{n}.json")), &known("opus"));
            let at = UNIX_EPOCH + std::time::Duration::from_secs(1000 + n as u64);
            let file = fs::File::options().write(true).open(dir.path().join(format!("{n}.json"))).unwrap();
            file.set_modified(at).unwrap();
        }
        store(&dir.path().join("new.json"), &known("opus"));
        assert_eq!(count(dir.path()), KEPT + 1);
        assert!(dir.path().join("new.json").exists() && dir.path().join("readme.txt").exists());
        assert!(!dir.path().join("0.json").exists() && dir.path().join("54.json").exists());
    }

    #[test]
    fn a_name_is_for_one_program_and_its_settings() {
        let dir = tempfile::tempdir().unwrap();
        let (program, config, cwd) =
            (dir.path().join("claude"), dir.path().join("config"), dir.path().join("work"));
        for dir in [&config, &cwd.join(".claude")] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(&program, "1").unwrap();
        let mut variables: HashMap<String, String> = HashMap::new();
        let name_now = |variables: &HashMap<String, String>, config: &Path| {
            name(&program, Some(config), &cwd, |name| variables.get(name).cloned()).unwrap()
        };
        let mut seen = vec![name_now(&variables, &config)];
        assert_eq!(name_now(&variables, &config), seen[0]);
        let mut expect_other = |variables: &HashMap<String, String>, config: &Path, why: &str| {
            let name = name_now(variables, config);
            assert!(!seen.contains(&name), "{why}");
            seen.push(name);
        };
        fs::write(&program, "22").unwrap();
        expect_other(&variables, &config, "another program");
        fs::write(config.join("settings.json"), "").unwrap();
        expect_other(&variables, &config, "settings, though empty");
        fs::write(config.join("settings.json"), r#"{"model":"opus"}"#).unwrap();
        expect_other(&variables, &config, "other settings");
        fs::write(cwd.join(".claude/settings.local.json"), "{}").unwrap();
        expect_other(&variables, &config, "the project's");
        fs::create_dir(cwd.join(".claude/agents")).unwrap();
        expect_other(&variables, &config, "agents of its own");
        expect_other(&variables, dir.path(), "another directory of the CLI's");
        variables.insert("ANTHROPIC_MODEL".into(), "haiku".into());
        expect_other(&variables, &config, "a variable");
        assert_eq!(name(&dir.path().join("gone"), None, &cwd, |_| None::<String>), None);
    }

    #[test]
    fn a_look_takes_less_than_a_millisecond() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.json");
        store(&place, &with_settings("opus"));
        let program = std::env::current_exe().unwrap();
        // The best of several: others use this machine, too.
        let best = (0..20).map(|_| {
            let start = Instant::now();
            assert!(name(&program, Some(dir.path()), dir.path(), |_| None::<String>).is_some());
            assert!(load(&place).is_some());
            start.elapsed()
        });
        let best = best.min().unwrap();
        assert!(best.as_micros() < 1000, "{best:?}");
    }
}
