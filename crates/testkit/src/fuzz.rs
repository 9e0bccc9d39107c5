//! Fuzz targets as plain functions: driven on stable over the corpus in `fuzz/corpus` by the tests, and by cargo-fuzz.
//!
//! Each feeds bytes to a decoder and checks what must hold for any input.

use std::path::Path;
use std::sync::OnceLock;

use oarlock_ide::lock::LockFile;
use oarlock_ide::paths::{self, Rooted, Workspace};
use oarlock_proto::{jsonrpc, pos, stream};
use oarlock_wire::http::{self, Head};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Target); 7] = [
    ("envelope", envelope),
    ("http_head", http_head),
    ("lock_file", lock_file),
    ("uri", uri),
    ("guard", guard),
    ("select_text", select_text),
    ("stream_line", stream_line),
];

/// Any text is a message or has an answer, and what is answered can be read again.
pub fn envelope(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let answer = match jsonrpc::read(text) {
        Ok(jsonrpc::Message::Request { id, .. }) => jsonrpc::write_result(&id, &()),
        Ok(_) => return,
        Err(malformed) => jsonrpc::write_error(&malformed.id, &malformed.error),
    };
    // Read as raw text: an id may be a number that no machine number can hold.
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(&answer).is_ok(), "{answer}");
}

/// Any head is complete, incomplete or refused.
pub fn http_head(data: &[u8]) {
    if let Ok(Some(head)) = Head::parse(data) {
        assert!(head.rest.len() <= data.len());
        assert!(!head.path.contains('?'));
        let _ = http::accept_key(&head);
    }
}

/// A lock file of any bytes never shows its token.
pub fn lock_file(data: &[u8]) {
    if let Some(lock) = LockFile::parse(data)
        && let Some(token) = &lock.auth_token
        && token.reveal().len() > 16
    {
        assert!(!format!("{lock:?}").contains(token.reveal()));
    }
}

/// A path that was read from a uri comes back from the uri that we write for it.
pub fn uri(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(path) = paths::path_from_uri(text) {
        let _ = paths::file_uri(&path);
    }
    let posix = paths::posix(text);
    let _ = paths::windows_from_posix(&posix);
}

/// Whatever is asked for, what is allowed lies inside.
pub fn guard(data: &[u8]) {
    static PLACE: OnceLock<Option<(tempfile::TempDir, Workspace)>> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let dir = tempfile::tempdir().ok()?;
        let root = dir.path().join("workspace");
        std::fs::create_dir_all(root.join("sub")).ok()?;
        std::fs::write(root.join("sub/file"), "inside").ok()?;
        std::fs::write(dir.path().join("secret"), "outside").ok()?;
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path(), root.join("link")).ok()?;
        let workspace = Workspace::new(&[root]).ok()?;
        Some((dir, workspace))
    });
    let (Some((_dir, workspace)), Ok(text)) = (place, std::str::from_utf8(data)) else { return };
    for rooted in [Rooted::No, Rooted::Yes] {
        let read = workspace.resolve_read(Path::new(text), rooted);
        let write = workspace.resolve_write(Path::new(text), rooted);
        for path in [read, write].into_iter().flatten() {
            assert!(workspace.roots().iter().any(|root| path.starts_with(root)), "{text:?} led to {path:?}");
        }
    }
}

/// What is found by patterns lies in the text and begins with the pattern.
pub fn select_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\0');
    let (Some(start), Some(end), Some(text)) = (parts.next(), parts.next(), parts.next()) else { return };
    for to_end_of_line in [false, true] {
        let Some(range) = pos::find(text, start, Some(end), to_end_of_line) else { continue };
        assert!(range.start <= range.end);
        let _ = pos::slice(text, range);
    }
}

/// Any line of the headless protocol is a message that can be written again, or a bad line that keeps its text.
pub fn stream_line(data: &[u8]) {
    match stream::decode(data) {
        Ok(message) => {
            let written =
                serde_json::to_string(&message).unwrap_or_else(|error| panic!("{message:?}: {error}"));
            assert!(stream::decode(written.as_bytes()).is_ok(), "{written}");
        }
        Err(bad) => assert!(bad.text.len() <= 3 * data.len()),
    }
}
