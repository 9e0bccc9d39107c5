//! The table of keys: the single place that names them.
//!
//! Each row is a field of [`Config`], and from the rows come the defaults, the readers, `oarlock config` and the
//! reference.

use std::net::IpAddr;
use std::path::PathBuf;

use oarlock_ide::consent::Rules;
use oarlock_ide::{Keepalive, Options};
use oarlock_proto::ide::Dialect;

use super::value::{DiffPolicy, Millis, Seconds, Value};
use super::{Origin, Setting, Sources};

/// What a project file may do with a key. It comes with a cloned repository, so it may only tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// Nothing: the key runs programs, accepts changes, opens ports or relaxes consent.
    Refused,
    /// Anything.
    Free,
    /// Add to the list, but take nothing back.
    Adds,
    /// Turn it on.
    TurnsOn,
    /// Make it smaller.
    Lowers,
}

/// A row of the table, without its type.
pub(crate) struct Key {
    /// `section.key`.
    pub(crate) name: &'static str,
    /// What it is for, in one line.
    pub(crate) help: &'static str,
    /// What a value looks like.
    pub(crate) expected: &'static str,
    /// What a project file may do with it.
    pub(crate) project: Project,
    /// Whether a value has the right type.
    pub(super) accepts: fn(&toml::Value) -> bool,
    /// Sets it; does nothing if the type is wrong.
    pub(super) set: fn(&mut Config, &toml::Value, Origin),
    /// The value for people and programs.
    pub(crate) show: fn(&Config) -> serde_json::Value,
    /// Where the value came from.
    pub(crate) origin: fn(&Config) -> &Origin,
}

impl Key {
    /// The variable that sets it: `OARLOCK_IDE_PORT` for `ide.port`.
    pub(crate) fn variable(&self) -> String {
        format!("OARLOCK_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }
}

macro_rules! keys {
    ($($(#[doc = $help:literal])+ $field:ident: $type:ty = $default:expr, $name:literal, $project:ident;)*) => {
        /// The settings, each with its origin, and how they were found.
        pub(crate) struct Config {
            $($(#[doc = $help])+ pub(crate) $field: Setting<$type>,)*
            /// Where the settings were looked for, and what was refused there.
            pub(crate) sources: Sources,
        }

        impl Default for Config {
            fn default() -> Self {
                Self { $($field: Setting::new($default),)* sources: Sources::default() }
            }
        }

        /// All keys, in the order in which they are shown.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            name: $name,
            help: concat!($($help),+).trim_ascii(),
            expected: <$type as Value>::EXPECTED,
            project: Project::$project,
            accepts: |value| <$type as Value>::from_toml(value).is_some(),
            set: |config, value, origin| {
                if let Some(value) = <$type as Value>::from_toml(value) {
                    config.$field = Setting { value, origin };
                }
            },
            show: |config| config.$field.value.to_json(),
            origin: |config| &config.$field.origin,
        },)*];
    };
}

keys! {
    /// The name that Claude Code shows
    ide_name: String = Options::default().name, "ide.name", Free;
    /// The port to listen on; 0 for any free one
    ide_port: Option<u16> = None, "ide.port", Refused;
    /// The address to listen on; anything but loopback lets other machines try the token
    ide_listen: IpAddr = Options::default().listen, "ide.listen", Refused;
    /// Host names that clients may use besides the loopback ones
    ide_allow_hosts: Vec<String> = Vec::new(), "ide.allow_hosts", Refused;
    /// Whose words the tools use
    ide_dialect: Dialect = Dialect::default(), "ide.dialect", Refused;
    /// What decides a proposed change
    ide_on_diff: DiffPolicy = DiffPolicy::Ask, "ide.on_diff", Refused;
    /// Where the lock file goes instead of where Claude Code looks
    ide_lock_dir: Option<PathBuf> = None, "ide.lock_dir", Refused;
    /// Let writeFile of the dialect vault write without a review
    ide_allow_write: bool = false, "ide.allow_write", Refused;
    /// The program that reformats a file, and its arguments; the file's path comes last
    ide_formatter: Vec<String> = Vec::new(), "ide.formatter", Refused;
    /// Seconds between two questions whether a client is still there; 0 for never
    ide_keepalive: Seconds = Seconds(Keepalive::default().every), "ide.keepalive", Refused;
    /// Seconds that a client may take to answer that question
    ide_ping_timeout: Seconds = Seconds(Keepalive::default().dead_after), "ide.ping_timeout", Refused;
    /// Milliseconds for which selections are gathered before one is sent
    ide_debounce_ms: Millis = Millis(Options::default().debounce), "ide.debounce_ms", Refused;
    /// Seconds that a handshake may take
    ide_handshake_timeout: Seconds = Seconds(Options::default().limits.handshake), "ide.handshake_timeout", Refused;
    /// The largest message, in bytes
    ide_max_message: usize = Options::default().limits.message, "ide.max_message", Refused;
    /// Clients at once
    ide_max_clients: usize = Options::default().limits.clients, "ide.max_clients", Refused;
    /// Requests of one client that may wait for an answer
    ide_max_pending: usize = Options::default().limits.pending, "ide.max_pending", Refused;
    /// Bytes that may wait for a slow reader
    ide_max_queued: usize = Options::default().limits.queued, "ide.max_queued", Refused;
    /// Milliseconds that the diagnostics of one file may take
    ide_diagnostics_file_ms: Millis = Millis(Options::default().diagnostics.file), "ide.diagnostics_file_ms", Refused;
    /// Milliseconds that the diagnostics of all files may take
    ide_diagnostics_all_ms: Millis = Millis(Options::default().diagnostics.all), "ide.diagnostics_all_ms", Refused;
    /// Milliseconds that diagnostics may take when the model asked for them
    ide_diagnostics_model_ms: Millis = Millis(Options::default().diagnostics.model), "ide.diagnostics_model_ms", Refused;
    /// Files of which nothing is shared, as in .gitignore; !rule takes a built-in rule back
    share_ignore: Vec<String> = Vec::new(), "share.ignore", Adds;
    /// Share nothing of files that git ignores
    share_git_ignored: bool = Rules::default().git_ignored, "share.git_ignored", TurnsOn;
    /// The largest text that is shared, in bytes
    share_max_bytes: usize = Rules::default().limit, "share.max_bytes", Lowers;
    /// The `claude` that `oarlock claude` starts
    claude_program: Option<PathBuf> = None, "claude.program", Refused;
}
