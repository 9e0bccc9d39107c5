//! Paths on the wire, and which of them may be touched.
//!
//! The CLI writes a file's URI as `file://` and the raw path, and compares what comes back as text. So URIs are made
//! without percent-encoding; both forms are read.

use std::io;
use std::path::{Component, Path, PathBuf};

mod workspace;

pub(crate) use workspace::real_path;
pub use workspace::{Refusal, Rooted, Workspace};

/// The URI of a file as the CLI writes and compares it: `file://` and the path as it is, nothing encoded.
#[must_use]
pub fn file_uri(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { windows_file_uri(&text) } else { format!("file://{text}") }
}

/// The path of a `file:` URI, raw or percent-encoded, or of a plain absolute path; `None` for anything else.
///
/// One text can be both: `file:///w/100%25` names `100%25` or `100%`. It is read raw if that file exists, if decoding
/// it fails (`#1%.py`), or if it holds a blank, which an encoder would not have left; else it is decoded.
#[must_use]
pub fn path_from_uri(uri: &str) -> Option<PathBuf> {
    let raw = raw_path(uri)?;
    let decoded = if raw.contains('%') && !raw.contains(' ') { decode(raw) } else { None };
    match decoded {
        Some(decoded) if !path_from_wire(raw).exists() => Some(path_from_wire(&decoded)),
        _ => Some(path_from_wire(raw)),
    }
}

/// A path as it goes over the wire: with forward slashes, and on Windows with the drive as first component.
#[must_use]
pub fn wire_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { posix(&text) } else { text.into_owned() }
}

/// The path that a text from the wire means on this system.
#[must_use]
pub fn path_from_wire(text: &str) -> PathBuf {
    if cfg!(windows) { windows_from_posix(text).into() } else { text.into() }
}

/// The POSIX form of a Windows path: `C:\Users\x` becomes `/c/Users/x`, `\\server\share` becomes `//server/share`. A
/// path that begins with `/` has that form already and stays as it is.
#[must_use]
pub fn posix(windows: &str) -> String {
    if windows.starts_with('/') {
        return windows.to_owned();
    }
    let plain = match windows.strip_prefix(r"\\?\UNC\") {
        Some(share) => format!(r"\\{share}"),
        None => windows.strip_prefix(r"\\?\").unwrap_or(windows).to_owned(),
    };
    match split_drive(&plain) {
        Some((drive, rest)) => format!("/{}{}", drive.to_ascii_lowercase(), rest.replace('\\', "/")),
        None => plain.replace('\\', "/"),
    }
}

/// The Windows path of a POSIX form: `/c/Users/x` and the `/c:/Users/x` of URIs become `C:\Users\x`.
#[must_use]
pub fn windows_from_posix(posix: &str) -> String {
    let tail = posix.strip_prefix('/').filter(|tail| !tail.starts_with('/'));
    let with_drive = match tail {
        Some(tail) => split_drive(tail).or_else(|| {
            // `/c/x` has a drive, `/cd/x` has not.
            let drive = tail.chars().next().filter(char::is_ascii_alphabetic)?;
            let rest = &tail[1..];
            (rest.is_empty() || rest.starts_with('/')).then_some((drive, rest))
        }),
        None => split_drive(posix),
    };
    match with_drive {
        Some((drive, "")) => format!("{}:\\", drive.to_ascii_uppercase()),
        Some((drive, rest)) => format!("{}:{}", drive.to_ascii_uppercase(), rest.replace('/', "\\")),
        None => posix.replace('/', "\\"),
    }
}

/// The URI of a Windows path: `C:\Users\x` becomes `file:///c:/Users/x`.
fn windows_file_uri(windows: &str) -> String {
    let plain = windows.strip_prefix(r"\\?\").unwrap_or(windows);
    match split_drive(plain) {
        Some((drive, rest)) => format!("file:///{}:{}", drive.to_ascii_lowercase(), rest.replace('\\', "/")),
        None => format!("file:{}", posix(windows)),
    }
}

/// The path without `.` and `..`, by its text alone.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Splits `C:\x` into the drive's letter and `\x`. What follows the colon is nothing or a separator: `C:x` is relative
/// to a directory that only its own process knows.
fn split_drive(path: &str) -> Option<(char, &str)> {
    let drive = path.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = path[1..].strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(['/', '\\'])).then_some((drive, rest))
}

/// The path of a `file:` URI as it stands there.
fn raw_path(uri: &str) -> Option<&str> {
    let Some((scheme, rest)) = uri.split_once(':').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("file"))
    else {
        // Not a `file:` URI: a plain path, or a scheme such as `untitled:` that names no file.
        let is_path = uri.starts_with('/') || split_drive(uri).is_some();
        return is_path.then_some(uri);
    };
    debug_assert_eq!(scheme.len(), 4);
    match rest.strip_prefix("//") {
        // `file:/w/x`, without a host.
        None => rest.starts_with('/').then_some(rest),
        Some(path) if path.starts_with('/') => Some(path),
        Some(hosted) => {
            let (host, _) = hosted.split_once('/')?;
            host.eq_ignore_ascii_case("localhost").then(|| &hosted[host.len()..])
        }
    }
}

/// Decodes `%XX`; `None` if that is not possible or gives no text that can be a path.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok().filter(|byte| *byte != 0)?);
    }
    String::from_utf8(bytes).ok()
}

/// Reads a file that is a file: a pipe would never end and a device may be endless.
///
/// # Errors
/// When it is no regular file, larger than `limit`, or cannot be read.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if about.len() > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn ide_diag_04_uris_are_raw_both_ways() {
        let path = Path::new("/w/sub dir/é #1%.py");
        assert_eq!(file_uri(path), "file:///w/sub dir/é #1%.py");
        assert_eq!(path_from_uri("file:///w/sub dir/é #1%.py").unwrap(), path);
        assert_eq!(path_from_uri("file:///w/sub%20dir/%C3%A9%20%231%25.py").unwrap(), path);
    }

    #[cfg(unix)]
    #[test]
    fn all_forms_of_a_uri_are_read() {
        for (uri, path) in [
            ("file:///w/a.py", Some("/w/a.py")),
            ("FILE:///w/a.py", Some("/w/a.py")),
            ("file://localhost/w/a.py", Some("/w/a.py")),
            ("file:/w/a.py", Some("/w/a.py")),
            ("/w/a.py", Some("/w/a.py")),
            ("file:///c:/Users/x", Some("/c:/Users/x")),
            ("file:///w/%zz", Some("/w/%zz")),
            ("file:///w/%", Some("/w/%")),
            ("file:///w/%00", Some("/w/%00")),
            ("file:///w/%ff", Some("/w/%ff")),
            ("file:///w/100%25 of.py", Some("/w/100%25 of.py")),
            ("file:///w/100%25.py", Some("/w/100%.py")),
            ("file://server/share", None),
            ("file://", None),
            ("file:", None),
            ("file:a.py", None),
            ("untitled:Untitled-1", None),
            ("https://example.org/a.py", None),
            ("a.py", None),
            ("", None),
        ] {
            assert_eq!(path_from_uri(uri), path.map(PathBuf::from), "{uri}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_existing_file_is_read_raw() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a%20b");
        let uri = file_uri(&path);
        assert_eq!(path_from_uri(&uri).unwrap(), dir.path().join("a b"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(path_from_uri(&uri).unwrap(), path);
    }

    #[test]
    fn drives_become_components_and_back() {
        for (windows, posix_form) in [
            (r"C:\Users\x", "/c/Users/x"),
            (r"C:\", "/c/"),
            (r"\\server\share\x", "//server/share/x"),
            (r"src\x.py", "src/x.py"),
            (r"\Users", "/Users"),
        ] {
            assert_eq!(posix(windows), posix_form);
            assert_eq!(windows_from_posix(posix_form), windows);
        }
        assert_eq!(posix(r"\\?\C:\x"), "/c/x");
        assert_eq!(posix(r"\\?\UNC\server\share"), "//server/share");
        assert_eq!(posix("C:/Users/x"), "/c/Users/x");
        assert_eq!(posix(r"/srv/a\b"), r"/srv/a\b");
        assert_eq!(windows_from_posix("/c"), r"C:\");
        assert_eq!(windows_from_posix("/c:/Users/x"), r"C:\Users\x");
        assert_eq!(windows_from_posix("/cd/x"), r"\cd\x");
        assert_eq!(windows_from_posix(r"C:\Users\x"), r"C:\Users\x");
        assert_eq!(windows_file_uri(r"C:\Users\x y"), "file:///c:/Users/x y");
        assert_eq!(windows_file_uri(r"\\server\share"), "file://server/share");
    }

    proptest! {
        #[test]
        fn drive_paths_survive_the_round_trip(drive in "[A-Z]", names in proptest::collection::vec(r"[^/\\\x00]{1,8}", 0..5)) {
            let windows = format!("{drive}:\\{}", names.join("\\"));
            prop_assert_eq!(windows_from_posix(&posix(&windows)), windows);
        }

        #[test]
        fn path_forms_never_panic(text in ".{0,40}") {
            let _ = (path_from_uri(&text), path_from_uri(&format!("file://{text}")), posix(&text), windows_from_posix(&text));
        }
    }
}
