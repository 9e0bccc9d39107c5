//! The guard: a client's path stays inside the workspace, or it is refused.

use std::{
    collections::HashSet,
    fs, io,
    io::Write as _,
    path::{Component, Path, PathBuf},
};

use unicode_normalization::UnicodeNormalization as _;

use crate::{Error, Result, lock::canonical_folders};

/// What a leading `/` in a client's path means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rooted {
    /// The root of the file system, as everywhere.
    No,
    /// The workspace, as in the dialect `vault`.
    Yes,
}

/// Why a path was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no path.
    #[error("it is empty; name a file of the workspace")]
    Empty,
    /// It holds a NUL byte, or on Windows a colon behind the drive.
    #[error("it holds a character that no file name may have")]
    Character,
    /// It holds `..`.
    #[error("`..` is not allowed; give the path from the workspace's root")]
    Parent,
    /// It begins with `~`, which only a shell understands.
    #[error("a leading `~` is not expanded; give the whole path, or put `./` before a name that begins so")]
    Home,
    /// It is, or leads, outside the workspace.
    #[error("it is outside the workspace; open its folder as well if it should be reachable")]
    Outside,
    /// It is a symbolic link to something that is not there.
    #[error("it is a symbolic link that leads nowhere; remove the link first")]
    DanglingLink,
    /// A directory on the way may not be entered, or links run in a circle.
    #[error("a directory in it cannot be entered; check its permissions and links")]
    Unreachable,
    /// It is a directory.
    #[error("it is a directory; name a file")]
    Directory,
    /// It is a device, a pipe or a socket.
    #[error("it is not a regular file")]
    Special,
    /// An existing name differs from a part of it only in case or Unicode form.
    #[error(
        "a name in it differs from an existing one only in case or Unicode form; use the existing spelling"
    )]
    Alike,
    /// The file may not be written.
    #[error("it is read-only; make it writable first")]
    ReadOnly,
}

/// The folders of a workspace, and the rule that nothing outside them is read or written.
#[derive(Clone, Debug)]
pub struct Workspace {
    roots: Vec<PathBuf>,
}

impl Workspace {
    /// Takes the folders, which must exist.
    pub fn new(roots: &[PathBuf]) -> Result<Self> {
        Ok(Self { roots: canonical_folders(roots)? })
    }

    /// The real paths of the folders.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The path that was asked for, made absolute, with its links as they are: what a rule about names must look at.
    pub fn asked(&self, path: &Path, rooted: Rooted) -> Result<PathBuf> {
        Ok(self.locate(path, rooted)?.asked)
    }

    /// The real path of a file that may be read: it exists, is a regular file, and is inside the workspace, also after
    /// every symbolic link.
    pub fn resolve_read(&self, path: &Path, rooted: Rooted) -> Result<PathBuf> {
        let real = self.locate(path, rooted)?.real;
        let about = fs::metadata(&real).map_err(Error::file("read", path))?;
        refuse_unless_file(&about).map_err(refused(path))?;
        Ok(real)
    }

    /// The real path of a file that may be written: what [`Workspace::resolve_read`] asks of a file that exists, and no
    /// part of the path may differ from an existing name only in case or Unicode form, because on other file systems it
    /// would be the same file.
    pub fn resolve_write(&self, path: &Path, rooted: Rooted) -> Result<PathBuf> {
        let Located { asked, real } = self.locate(path, rooted)?;
        match fs::metadata(&real) {
            Ok(about) => refuse_unless_writable(&about).map_err(refused(path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::file("write", path)(error)),
        }
        self.refuse_alike(&asked, path)?;
        Ok(real)
    }

    /// Writes a file whose path came from [`Workspace::resolve_write`], at once as a whole. Missing directories are
    /// made. An existing file keeps its mode. The place is checked again, so that a link that was planted after the
    /// check is refused, or replaced, but never followed.
    pub fn write_atomic(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let dir = path.parent().ok_or(Refusal::Outside).map_err(refused(path))?;
        if !self.contains(&real_path(dir).map_err(refused(path))?) {
            return Err(refused(path)(Refusal::Outside));
        }
        fs::create_dir_all(dir).map_err(Error::file("create directory", dir))?;
        let dir = dunce::canonicalize(dir).map_err(Error::file("write", path))?;
        if !self.contains(&dir) {
            return Err(refused(path)(Refusal::Outside));
        }
        let name = path.file_name().ok_or(Refusal::Directory).map_err(refused(path))?;
        let target = dir.join(name);
        let existing = match fs::symlink_metadata(&target) {
            Ok(about) if about.is_symlink() => return Err(refused(path)(Refusal::Outside)),
            Ok(about) => {
                refuse_unless_writable(&about).map_err(refused(path))?;
                Some(about.permissions())
            }
            Err(_) => None,
        };
        let write = || -> io::Result<()> {
            let mut builder = tempfile::Builder::new();
            builder.prefix(".oarlock-").suffix(".tmp");
            #[cfg(unix)]
            if existing.is_none() {
                use std::os::unix::fs::PermissionsExt as _;
                // The umask takes its share of this mode.
                builder.permissions(fs::Permissions::from_mode(0o644));
            }
            let mut file = builder.tempfile_in(&dir)?;
            file.write_all(contents)?;
            if let Some(permissions) = existing {
                file.as_file().set_permissions(permissions)?;
            }
            // After a power failure the name must not stand for an empty file.
            file.as_file().sync_all()?;
            file.persist(&target).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(Error::file("write", path))
    }

    /// Whether a real path is inside.
    fn contains(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn locate(&self, path: &Path, rooted: Rooted) -> Result<Located> {
        let names = check(path, rooted).map_err(refused(path))?;
        let asked = match names {
            Names::Absolute => path.to_owned(),
            Names::Relative(names) => {
                // With several folders the first one that has the file counts, and the first of all for a new file.
                let below = |root: &PathBuf| root.join(&names);
                let existing = self.roots.iter().map(below).find(|path| path.symlink_metadata().is_ok());
                existing.unwrap_or_else(|| self.roots[0].join(&names))
            }
        };
        let real = real_path(&asked).map_err(refused(path))?;
        if !self.contains(&real) {
            return Err(refused(path)(Refusal::Outside));
        }
        Ok(Located { asked, real })
    }

    /// Goes along the path as it was asked for, and compares each name with what is really in its directory.
    fn refuse_alike(&self, asked: &Path, path: &Path) -> Result<()> {
        let mut here = PathBuf::new();
        for component in asked.components() {
            if let Component::Normal(name) = component {
                let Ok(dir) = dunce::canonicalize(&here) else {
                    break;
                };
                if self.contains(&dir) {
                    let listed = list(&dir).map_err(Error::file("list directory", &dir))?;
                    let wanted = name.to_string_lossy();
                    if !listed.contains(wanted.as_ref()) {
                        let folded = fold(&wanted);
                        if listed.iter().any(|other| fold(other) == folded) {
                            return Err(refused(path)(Refusal::Alike));
                        }
                    }
                }
            }
            here.push(component);
        }
        Ok(())
    }
}

/// A path as it was asked for, made absolute, and the real path that it leads to.
struct Located {
    asked: PathBuf,
    real: PathBuf,
}

enum Names {
    Absolute,
    Relative(PathBuf),
}

fn refused(path: &Path) -> impl FnOnce(Refusal) -> Error {
    let path = path.to_owned();
    move |reason| Error::Refused { path, reason }
}

/// What can be refused by the text alone.
fn check(path: &Path, rooted: Rooted) -> Result<Names, Refusal> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(Refusal::Empty);
    }
    if bytes.contains(&0) {
        return Err(Refusal::Character);
    }
    let below_root = path.has_root() && rooted == Rooted::Yes;
    let mut names = PathBuf::new();
    let mut leading = true;
    for component in path.components() {
        match component {
            Component::ParentDir => return Err(Refusal::Parent),
            Component::Normal(name) => {
                let name = name.as_encoded_bytes();
                if leading && name.starts_with(b"~") {
                    return Err(Refusal::Home);
                }
                // On Windows `a.txt:b` is a hidden part of `a.txt`.
                if cfg!(windows) && name.contains(&b':') {
                    return Err(Refusal::Character);
                }
                names.push(component);
                leading = false;
            }
            Component::CurDir => leading = false,
            Component::RootDir => leading = below_root,
            Component::Prefix(_) if below_root => return Err(Refusal::Outside),
            Component::Prefix(_) => {}
        }
    }
    if below_root {
        return Ok(Names::Relative(names));
    }
    if path.is_absolute() {
        return Ok(Names::Absolute);
    }
    // On Windows `C:x` and `\x` are neither: they depend on a current directory or drive.
    let is_relative = matches!(path.components().next(), Some(Component::Normal(_) | Component::CurDir));
    if is_relative { Ok(Names::Relative(names)) } else { Err(Refusal::Outside) }
}

/// The real path of a file that need not exist: its existing part without links, and the rest as it is. A link to
/// nothing is refused, because to write there would make the file that the link names.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, Refusal> {
    // Rebuilt from its components it has no `/` or `/.` at its end, which would hide that its last name is a link.
    let mut existing: PathBuf = path.components().collect();
    let mut rest = Vec::new();
    loop {
        match dunce::canonicalize(&existing) {
            Ok(mut real) => {
                real.extend(rest.iter().rev());
                return Ok(real);
            }
            Err(_) if existing.symlink_metadata().is_ok_and(|about| about.is_symlink()) => {
                return Err(Refusal::DanglingLink);
            }
            Err(error) if is_absence(&error) => {}
            Err(_) => return Err(Refusal::Unreachable),
        }
        let Some(name) = existing.file_name() else {
            return Err(Refusal::Outside);
        };
        rest.push(name.to_owned());
        if !existing.pop() {
            return Err(Refusal::Outside);
        }
    }
}

/// Whether an error says that a name does not exist, rather than that it cannot be seen.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

fn refuse_unless_file(about: &fs::Metadata) -> Result<(), Refusal> {
    if about.is_dir() {
        Err(Refusal::Directory)
    } else if about.is_file() {
        Ok(())
    } else {
        Err(Refusal::Special)
    }
}

fn refuse_unless_writable(about: &fs::Metadata) -> Result<(), Refusal> {
    refuse_unless_file(about)?;
    // Replacing a file needs no right to write to it, so a user's write protection would go unnoticed.
    if about.permissions().readonly() { Err(Refusal::ReadOnly) } else { Ok(()) }
}

fn list(dir: &Path) -> io::Result<HashSet<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// What names have in common that only differ in case or Unicode form. By way of the upper case, so that `ß` meets `SS`.
fn fold(name: &str) -> String {
    let decomposed: String = name.nfd().collect();
    decomposed.to_uppercase().to_lowercase().nfc().collect()
}
