//! Files that only their owner may read: lock files and engine records both hold tokens.
//!
//! On systems without Unix modes the files inherit the rules of the user's profile directory.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use crate::{Error, Result};

/// What is read of a private file at most. Ours have some hundred bytes.
const LARGEST: u64 = 64 * 1024;

/// The beginning of names that exist for a moment only. They never end in `.lock`: a lock whose name is not a number
/// stops the CLI from clearing stale ones.
const PASSING: &str = ".oarlock-";

/// Makes sure that `dir` exists and that nobody else may look into it. Missing parents get the usual mode; an existing
/// directory is tightened, never widened.
pub(crate) fn create_dir(dir: &Path) -> Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent).map_err(Error::file("create directory", parent))?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::file("create directory", dir)(error));
            }
            _ => {}
        }
        let mode = fs::metadata(dir).map_err(Error::file("look at directory", dir))?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode & 0o700))
                .map_err(Error::file("close to other users the directory", dir))?;
        }
        Ok(())
    }
    #[cfg(not(unix))]
    fs::create_dir_all(dir).map_err(Error::file("create directory", dir))
}

/// Writes a file that only its owner may read, so that a reader sees the old contents or the new, never a part.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        // A temporary file has mode 0600 from its first moment.
        let mut file = tempfile::Builder::new().prefix(PASSING).suffix(".tmp").tempfile_in(dir)?;
        file.write_all(contents)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(Error::file("write", path))
}

/// Reads a small regular file. Anything larger, and anything that is not a file (opening a pipe would block), is an error.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<u8>, SystemTime)> {
    let mut options = fs::File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut contents = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 KiB"));
    }
    Ok((contents, about.modified()?))
}

/// Removes the file if `judge` wants it, and returns what `judge` made of it. Of several processes that want the same
/// file exactly one gets it: the file is first renamed to a name of our own, which works for one of them only, and then
/// judged again, because between reading and renaming its owner may have replaced it. Such a new file goes back.
pub(crate) fn take<T>(path: &Path, judge: impl Fn(&[u8], SystemTime) -> Option<T>) -> Option<T> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let wanted = |path: &Path| read(path).ok().and_then(|(contents, changed)| judge(&contents, changed));
    wanted(path)?;
    let name = format!("{PASSING}{}-{}.taken", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let aside: PathBuf = path.with_file_name(name);
    fs::rename(path, &aside).ok()?;
    let taken = wanted(&aside);
    if taken.is_none() {
        // A link, unlike a rename, never replaces a still newer file.
        let _ = fs::hard_link(&aside, path);
    }
    let _ = fs::remove_file(&aside);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_a_large_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let large = dir.path().join("large");
        fs::write(&large, vec![b' '; 64 * 1024 + 1]).unwrap();
        assert!(read(&large).is_err());
        fs::write(&large, vec![b' '; 64 * 1024]).unwrap();
        assert_eq!(read(&large).unwrap().0.len(), 64 * 1024);
        assert!(read(dir.path()).is_err());
        #[cfg(target_os = "linux")]
        {
            let pipe = dir.path().join("pipe");
            rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
            assert!(read(&pipe).is_err(), "must not block either");
        }
    }

    #[test]
    fn a_file_that_changed_before_the_rename_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.json");
        replace(&path, b"old").unwrap();
        let first = std::cell::Cell::new(true);
        let taken = take(&path, |contents, _| {
            if first.replace(false) {
                replace(&path, b"new").unwrap();
            }
            (contents == b"old").then_some(())
        });
        assert_eq!(taken, None);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn one_of_many_takes_a_file() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = dir.path().join(format!("{round}.json"));
            replace(&path, b"x").unwrap();
            let takers = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&path, |_, _| Some(())))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).count()
            });
            assert_eq!(takers, 1);
        }
    }
}
