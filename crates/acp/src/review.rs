//! Edit review: Write and Edit go through the editor, so that it can show and undo each change.
//!
//! The CLI's own tools are taken away, and tools of the same shape are served from inside this program. They write by
//! `fs/write_text_file`.

use oarlock_agent::Options;

use crate::context::Asker;

/// The options of a CLI whose edits go through the editor; as they are when the client cannot write files.
pub(crate) fn apply(options: Options, asker: &Asker) -> Options {
    let _ = asker;
    options
}
