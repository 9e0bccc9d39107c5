//! Why the CLI passes over a lock file, in words that help.

use std::{fmt, path::PathBuf};

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// Why the CLI does not connect. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The lock is in a directory that no tested CLI reads.
    NotRead,
    /// The file's name does not begin with a number.
    ForeignName,
    /// The file's name is a number that no port has.
    BadPort(u64),
    /// The file cannot be read or understood.
    Unreadable(String),
    /// The process is gone; the CLI deletes such a lock.
    DeadPid(u32),
    /// `pid` is not a process id; the CLI deletes such a lock.
    BadPid,
    /// Nothing listens at the port.
    PortClosed(u16),
    /// The transport is not `ws`.
    WrongTransport(Option<String>),
    /// The lock has no workspace folders.
    NoFolders,
    /// No folder contains the directory.
    NoMatch,
    /// A folder is a symbolic link to the right place.
    SymlinkedFolder {
        /// The folder as the lock has it.
        folder: String,
        /// What it should say.
        real: PathBuf,
    },
    /// The folder is `/`, which only newer CLIs match.
    RootFolder,
    /// The terminal belongs to an IDE, and the lock's process is not it.
    NotAnAncestor(u32),
    /// `CLAUDE_CODE_AUTO_CONNECT_IDE` forbids it.
    AutoConnectOff,
    /// `CLAUDE_CODE_SSE_PORT` names another lock.
    OtherPort(u16),
    /// These other locks match as well, and then the CLI takes none.
    Ambiguous(Vec<u64>),
}

impl Reason {
    /// A short name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotRead => "not_read",
            Self::ForeignName => "foreign_name",
            Self::BadPort(_) => "bad_port",
            Self::Unreadable(_) => "unreadable",
            Self::DeadPid(_) => "dead_pid",
            Self::BadPid => "bad_pid",
            Self::PortClosed(_) => "port_closed",
            Self::WrongTransport(_) => "wrong_transport",
            Self::NoFolders => "no_folders",
            Self::NoMatch => "no_match",
            Self::SymlinkedFolder { .. } => "symlinked_folder",
            Self::RootFolder => "root_folder",
            Self::NotAnAncestor(_) => "not_an_ancestor",
            Self::AutoConnectOff => "auto_connect_off",
            Self::OtherPort(_) => "other_port",
            Self::Ambiguous(_) => "ambiguous",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRead => f.write_str("no tested CLI reads this directory; the lock belongs in ~/.claude/ide"),
            Self::ForeignName => f.write_str(
                "its name is not a port number, and it keeps the CLI from clearing stale locks; delete it if it is yours",
            ),
            Self::BadPort(number) => write!(f, "its name is {number}, which no port has; delete it"),
            Self::Unreadable(why) => write!(f, "it cannot be read ({why}); restart its IDE, or delete it"),
            Self::DeadPid(pid) => write!(f, "its process {pid} is gone; start its IDE again (the CLI deletes the lock)"),
            Self::BadPid => f.write_str("its pid is not a process id; restart its IDE (the CLI deletes the lock)"),
            Self::PortClosed(port) => write!(f, "nothing listens at port {port}; restart its IDE, or delete the lock"),
            Self::WrongTransport(Some(transport)) => {
                write!(f, "its transport is `{transport}`, and only `ws` works; update its plugin")
            }
            Self::WrongTransport(None) => f.write_str("it names no transport, and only `ws` works; update its plugin"),
            Self::NoFolders => f.write_str("it has no workspace folders; open this directory in its IDE"),
            Self::NoMatch => f.write_str("none of its folders contains this directory; open it there, or change directory"),
            Self::SymlinkedFolder { folder, real } => {
                write!(f, "its folder {folder} is a symbolic link; open {} instead", real.display())
            }
            Self::RootFolder => f.write_str(
                "its folder is `/`, which matches everything on CLI 2.1.325 and nothing on 2.1.197; open a project folder",
            ),
            Self::NotAnAncestor(pid) => write!(
                f,
                "this terminal belongs to another IDE than process {pid}; use its own or an ordinary terminal, or set CLAUDE_CODE_SSE_PORT"
            ),
            Self::AutoConnectOff => {
                f.write_str("CLAUDE_CODE_AUTO_CONNECT_IDE=false forbids every connection; unset it")
            }
            Self::OtherPort(port) => write!(f, "CLAUDE_CODE_SSE_PORT={port} chooses another lock; unset it"),
            Self::Ambiguous(ports) => {
                write!(f, "{} as well, and with two or more the CLI takes none; ", also_matching(ports))?;
                f.write_str("close the others, or choose one with CLAUDE_CODE_SSE_PORT")
            }
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reason = serializer.serialize_struct("Reason", 2)?;
        reason.serialize_field("code", self.code())?;
        reason.serialize_field("text", &self.to_string())?;
        reason.end()
    }
}

/// Names the ports that match.
pub(super) fn also_matching(ports: &[u64]) -> String {
    let list: Vec<String> = ports.iter().map(u64::to_string).collect();
    if list.len() == 1 {
        format!("port {} matches", list[0])
    } else {
        format!("ports {} match", list.join(", "))
    }
}
