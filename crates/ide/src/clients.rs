//! Who is connected.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_wire::{Close, Peer};
use serde::Serialize;

use crate::editor::ClientLabel;

/// A connected client, as `oarlock ide` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct ClientInfo {
    /// The number this engine gave it.
    pub client: u64,
    /// Its own name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// Its process, when it is a CLI.
    pub pid: Option<u32>,
    /// Where that process runs.
    pub cwd: Option<PathBuf>,
    /// It is a CLI and takes notifications now.
    pub ready: bool,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) info: ClientInfo,
    pub(crate) peer: Peer,
    /// It sent `notifications/initialized`: it takes notifications of MCP.
    pub(crate) initialized: bool,
    /// It sent `ide_connected`: it is a CLI that reviews diffs and takes notifications.
    pub(crate) is_cli: bool,
    /// The last `selection_changed` it was sent, to drop equal ones.
    pub(crate) selection: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    connected: BTreeMap<u64, Client>,
    last: u64,
    /// All connections that are not quite over, also those of our own commands.
    connections: BTreeMap<u64, Peer>,
}

impl Clients {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins; the number it gets.
    pub(crate) fn enter(&self, peer: Peer) -> u64 {
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.connections.insert(number, peer);
        number
    }

    /// The connection with this number is a client.
    pub(crate) fn add(&self, client: u64, peer: Peer) {
        let mut table = self.table();
        let (name, version) = (String::new(), String::new());
        let info = ClientInfo { client, name, version, pid: None, cwd: None, ready: false };
        table
            .connected
            .insert(client, Client { info, peer, initialized: false, is_cli: false, selection: None });
    }

    pub(crate) fn remove(&self, client: u64) {
        self.table().connected.remove(&client);
    }

    /// A connection is over.
    pub(crate) fn leave(&self, number: u64) {
        self.table().connections.remove(&number);
    }

    /// Looks at or changes one client; `None` when it is gone.
    pub(crate) fn with<T>(&self, client: u64, look: impl FnOnce(&mut Client) -> T) -> Option<T> {
        self.table().connected.get_mut(&client).map(look)
    }

    /// Looks at or changes every client.
    pub(crate) fn each(&self, mut look: impl FnMut(&mut Client)) {
        self.table().connected.values_mut().for_each(&mut look);
    }

    pub(crate) fn label(&self, client: u64) -> ClientLabel {
        let known =
            self.with(client, |c| ClientLabel { id: client, pid: c.info.pid, directory: c.info.cwd.clone() });
        known.unwrap_or(ClientLabel { id: client, ..ClientLabel::default() })
    }

    pub(crate) fn list(&self) -> Vec<ClientInfo> {
        self.table().connected.values().map(|client| client.info.clone()).collect()
    }

    pub(crate) fn close_all(&self, close: &Close) {
        self.table().connections.values().for_each(|peer| peer.close(close.clone()));
    }
}
