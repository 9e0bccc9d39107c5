//! How the CLI is reached: a process on this machine, another way to start one (ssh, a container), or any pair of pipes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tempfile::TempPath;

/// A command line that is ready to be started: what [`Options`](crate::Options) come to.
#[derive(Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Changes to the environment; `None` takes a variable away.
    pub env: BTreeMap<OsString, Option<OsString>>,
    /// Where it runs; the current directory when there is none.
    pub cwd: Option<PathBuf>,
    /// Files that the arguments name. They are removed when the session ends.
    pub files: Vec<TempPath>,
}
