//! Names, tags, and the end of a session.

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::lines::failed;
use super::{Library, Transcript};
use crate::Error;

impl Library {
    /// Gives a session a name. The name given last counts, here and in the CLI; a running `claude` takes it over.
    ///
    /// # Errors
    /// [`Error::Blank`] for a name with nothing in it; otherwise when the file cannot be written.
    pub fn rename(&self, session: &Transcript, title: &str) -> Result<(), Error> {
        let title = plain(title).ok_or(Error::Blank { what: "title" })?;
        self.append(session, &title_record(session.id(), &title))
    }

    /// Gives a session a tag, or takes it away.
    ///
    /// # Errors
    /// [`Error::Blank`] for a tag with nothing in it; otherwise when the file cannot be written.
    pub fn tag(&self, session: &Transcript, tag: Option<&str>) -> Result<(), Error> {
        let tag = match tag {
            Some(tag) => plain(tag).ok_or(Error::Blank { what: "tag" })?,
            None => String::new(),
        };
        self.append(session, &tag_record(session.id(), &tag))
    }

    /// Deletes a session for good: its transcript, its subagents' and the outputs it has kept.
    ///
    /// # Errors
    /// [`Error::SessionOpen`] when a running `claude` has it open, unless `force` is given.
    pub fn delete(&self, session: &Transcript, force: bool) -> Result<(), Error> {
        if let Some(live) = self.live_session(session.id()).filter(|_| !force) {
            return Err(Error::SessionOpen { id: live.session, pid: live.pid });
        }
        self.inside(session.path())?;
        let path = session.path();
        std::fs::remove_file(path).map_err(|error| failed("delete", path, error))?;
        let folder = session.folder();
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("delete", &folder, error))
            }
            _ => Ok(()),
        }
    }

    /// The real path of something that may be written to.
    pub(super) fn inside(&self, path: &Path) -> Result<PathBuf, Error> {
        let root = self.projects_dir();
        let real = |path: &Path| path.canonicalize().map_err(|error| failed("find", path, error));
        let (real_root, real_path) = (real(&root)?, real(path)?);
        if !real_path.starts_with(&real_root) || real_path == real_root {
            return Err(Error::Outside { path: path.into(), root });
        }
        Ok(real_path)
    }

    /// Makes the folder for a new file, unless a link on the way leads out of the projects directory.
    pub(crate) fn prepare(&self, path: &Path) -> Result<(), Error> {
        let make = |path: &Path| std::fs::create_dir_all(path).map_err(|error| failed("make", path, error));
        make(&self.projects_dir())?;
        let folder = path.parent().unwrap_or(path);
        if let Some(there) = folder.ancestors().find(|path| path.symlink_metadata().is_ok())
            && there != self.projects_dir()
        {
            self.inside(there)?;
        }
        make(folder)
    }

    /// Adds a record in one write, which a running `claude` that adds its own does not get in the way of.
    fn append(&self, session: &Transcript, record: &str) -> Result<(), Error> {
        let path = self.inside(session.path())?;
        append_line(&path, record).map_err(|error| failed("write", &path, error))
    }
}

/// The CLI finds tags by how the line begins, so the order of the fields counts.
fn tag_record(id: &str, tag: &str) -> String {
    format!(r#"{{"type":"tag","tag":{},"sessionId":{}}}"#, json!(tag), json!(id))
}

pub(super) fn title_record(id: &str, title: &str) -> String {
    format!(r#"{{"type":"custom-title","customTitle":{},"sessionId":{}}}"#, json!(title), json!(id))
}

fn append_line(path: &Path, record: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    let mut file = options.open(path)?;
    let mut line = String::with_capacity(record.len() + 2);
    // A killed `claude` may have left half a line, which must stay the only broken one.
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            line.push('\n');
        }
    }
    line.push_str(record);
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// One line without characters that nobody sees; `None` when nothing is left.
pub(crate) fn plain(text: &str) -> Option<String> {
    let unseen = |character: char| {
        matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}'
                | '\u{e0000}'..
        )
    };
    let seen = text.chars().filter(|&character| !unseen(character));
    let line: String = seen.map(|character| if character.is_control() { ' ' } else { character }).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_visible_line() {
        assert_eq!(plain("  a\nb\u{200b}\u{202e}c \t").as_deref(), Some("a bc"));
        assert_eq!(plain("日本 é 👍").as_deref(), Some("日本 é 👍"));
        assert_eq!(plain(" \u{feff}\n"), None);
    }

    #[test]
    fn records_begin_with_their_type() {
        assert_eq!(tag_record("s", "a\"b"), r#"{"type":"tag","tag":"a\"b","sessionId":"s"}"#);
        assert_eq!(title_record("s", "t"), r#"{"type":"custom-title","customTitle":"t","sessionId":"s"}"#);
    }

    #[test]
    fn half_a_line_stays_the_only_broken_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "{}\n{\"half").unwrap();
        append_line(file.path(), "{1}").unwrap();
        append_line(file.path(), "{2}").unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "{}\n{\"half\n{1}\n{2}\n");
        let gone = file.path().with_extension("gone");
        assert!(append_line(&gone, "{}").is_err() && !gone.exists(), "nothing is made");
    }
}
