//! What a CLI said about itself the last time, so that a session opens before it is up.
//!
//! One small file for each CLI and its settings. It holds names of models, commands and modes; no keys, no paths of the
//! user's files.

use std::path::{Path, PathBuf};

use crate::choices::Known;
use crate::context::Context;

/// Where this CLI's choices are kept: it depends on the program, its age, and the settings that apply in `cwd`.
pub(crate) fn place(context: &Context, program: &Path, cwd: &Path) -> Option<PathBuf> {
    let _ = (context, program, cwd);
    None
}

/// What was known the last time.
pub(crate) fn load(place: &Path) -> Option<Known> {
    let _ = place;
    None
}

/// Keeps what is known now. Failing to is no harm.
pub(crate) fn store(place: &Path, known: &Known) {
    let _ = (place, known);
}
