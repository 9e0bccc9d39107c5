//! The diffs that wait for a decision.
//!
//! Each is a value in one table. Accept, reject, closed tab, lost client, stopped server: each takes the value out,
//! and only once. Only an explicit accept accepts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_proto::text::Text;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::editor::OpenDiff;
use crate::{Error, Result};

/// The contents of all diffs that wait, together.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// What ends a diff from outside its view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// A person said yes; with other contents if they changed them.
    Accept { contents: Option<Text>, by: &'static str },
    /// A person said no.
    Reject { by: &'static str },
    /// The client closed its tab, so the question is settled there.
    Closed { by: &'static str },
    /// Something broke; the question stays with the client.
    Failed { why: String, by: &'static str },
}

/// A diff that waits, as `oarlock ide diffs` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct PendingDiff {
    /// The short id.
    pub diff: String,
    /// The client that asks.
    pub client: u64,
    /// Its process.
    pub pid: Option<u32>,
    /// The file that is to be changed.
    pub path: PathBuf,
    /// The client's name for the diff.
    pub tab: String,
}

#[derive(Debug, Default)]
pub(crate) struct Diffs {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    waiting: BTreeMap<u64, Waiting>,
    last: u64,
}

#[derive(Debug)]
struct Waiting {
    request: OpenDiff,
    decide: oneshot::Sender<Decision>,
}

/// A diff's place in the table; dropping it takes the diff out.
pub(crate) struct Place<'a> {
    diffs: &'a Diffs,
    pub(crate) id: u64,
}

impl Place<'_> {
    /// The view decides. False when somebody else was first: then their decision is on its way.
    pub(crate) fn claim(&self) -> bool {
        self.diffs.table().waiting.remove(&self.id).is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.diffs.table().waiting.remove(&self.id);
    }
}

impl Diffs {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a diff, unless so much already waits that a client could fill the memory with them.
    pub(crate) fn open(&self, request: OpenDiff) -> Result<(Place<'_>, oneshot::Receiver<Decision>)> {
        let (decide, decided) = oneshot::channel();
        let mut table = self.table();
        let bytes: usize = table.waiting.values().map(|waiting| waiting.request.new_contents.len()).sum();
        if bytes + request.new_contents.len() > MAX_WAITING_BYTES {
            return Err(Error::TooManyDiffs { waiting: table.waiting.len(), bytes });
        }
        table.last += 1;
        let id = table.last;
        table.waiting.insert(id, Waiting { request, decide });
        Ok((Place { diffs: self, id }, decided))
    }

    /// Decides every diff that `which` picks; how many there were.
    fn decide_where(&self, decision: &Decision, which: impl Fn(u64, &OpenDiff) -> bool) -> usize {
        let mut table = self.table();
        let ids: Vec<u64> =
            table.waiting.iter().filter(|(id, w)| which(**id, &w.request)).map(|(id, _)| *id).collect();
        let take = |id: u64| table.waiting.remove(&id);
        ids.into_iter().filter_map(take).filter_map(|w| w.decide.send(decision.clone()).ok()).count()
    }

    /// The client closes one of its own tabs.
    pub(crate) fn close_tab(&self, client: u64, tab: &str) -> usize {
        self.decide_where(&Decision::Closed { by: "client" }, |_, diff| {
            diff.client.id == client && diff.tab == tab
        })
    }

    /// The client closes all of its own tabs, and nobody else's.
    pub(crate) fn close_all(&self, client: u64) -> usize {
        self.decide_where(&Decision::Closed { by: "client" }, |_, diff| diff.client.id == client)
    }

    pub(crate) fn fail_client(&self, client: u64, why: &str) {
        let decision = Decision::Failed { why: why.to_owned(), by: "engine" };
        self.decide_where(&decision, |_, diff| diff.client.id == client);
    }

    pub(crate) fn fail_all(&self, why: &str) {
        self.decide_where(&Decision::Failed { why: why.to_owned(), by: "engine" }, |_, _| true);
    }

    pub(crate) fn has_client(&self, client: u64) -> bool {
        self.table().waiting.values().any(|waiting| waiting.request.client.id == client)
    }

    pub(crate) fn list(&self) -> Vec<PendingDiff> {
        let row = |(id, waiting): (&u64, &Waiting)| PendingDiff {
            diff: id.to_string(),
            client: waiting.request.client.id,
            pid: waiting.request.client.pid,
            path: waiting.request.new_path.clone(),
            tab: waiting.request.tab.clone(),
        };
        self.table().waiting.iter().map(row).collect()
    }

    /// The request behind a short id, a path or a full tab name.
    pub(crate) fn find(&self, name: &str) -> Result<(u64, OpenDiff)> {
        let table = self.table();
        // A number is an id and nothing else: a client chooses its tab names, and must not choose which diff is meant.
        let number = name.bytes().all(|byte| byte.is_ascii_digit());
        let named = |id: u64, diff: &OpenDiff| match number {
            true => id.to_string() == name,
            false => diff.tab == name || diff.new_path.as_os_str() == name,
        };
        let mut found = table.waiting.iter().filter(|(id, waiting)| named(**id, &waiting.request));
        match (found.next(), found.next()) {
            (Some((id, waiting)), None) => Ok((*id, waiting.request.clone())),
            (first, _) => {
                let ambiguous = first.is_some();
                drop(found);
                drop(table);
                Err(Error::WhichDiff { name: name.to_owned(), ambiguous, waiting: self.list() })
            }
        }
    }

    /// Decides one diff; false when it was decided in the meantime.
    pub(crate) fn decide(&self, id: u64, decision: &Decision) -> bool {
        self.decide_where(decision, |candidate, _| candidate == id) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::editor::ClientLabel;

    fn request(client: u64, path: &str, tab: &str) -> OpenDiff {
        OpenDiff {
            old_path: path.into(),
            new_path: path.into(),
            new_contents: "new".into(),
            tab: tab.into(),
            client: ClientLabel { id: client, ..ClientLabel::default() },
        }
    }

    #[test]
    fn ide_diff_09_closing_all_touches_only_the_callers_diffs() {
        let diffs = Diffs::default();
        let (_a, mut mine) = diffs.open(request(1, "/w/a", "a")).unwrap();
        let (_b, mut theirs) = diffs.open(request(2, "/w/b", "b")).unwrap();
        assert_eq!(diffs.close_all(1), 1);
        assert!(matches!(mine.try_recv(), Ok(Decision::Closed { .. })));
        assert!(theirs.try_recv().is_err());
        assert_eq!(diffs.close_tab(1, "b"), 0);
        assert!(theirs.try_recv().is_err());
    }

    #[test]
    fn a_diff_is_decided_once() {
        let diffs = Diffs::default();
        let (place, mut decided) = diffs.open(request(1, "/w/a", "a")).unwrap();
        assert!(diffs.decide(place.id, &Decision::Reject { by: "test" }));
        assert!(!diffs.decide(place.id, &Decision::Accept { contents: None, by: "test" }));
        assert_eq!(decided.try_recv(), Ok(Decision::Reject { by: "test" }));
    }

    #[test]
    fn names_must_be_plain() {
        let diffs = Diffs::default();
        let _first = diffs.open(request(1, "/w/a", "tab one")).unwrap();
        let (second, _decided) = diffs.open(request(2, "/w/a", "tab two")).unwrap();
        assert_eq!(diffs.find("tab two").unwrap().0, second.id);
        assert_eq!(diffs.find("2").unwrap().0, second.id);
        assert!(matches!(diffs.find("/w/a"), Err(Error::WhichDiff { ambiguous: true, .. })));
        assert!(matches!(diffs.find("nowhere"), Err(Error::WhichDiff { ambiguous: false, .. })));
        drop(second);
        assert_eq!(diffs.find("/w/a").unwrap().0, 1);
        // A client cannot make its diff answer to another's number.
        let _trap = diffs.open(request(2, "/w/b", "1")).unwrap();
        assert_eq!(diffs.find("1").unwrap().1.tab, "tab one");
        assert!(diffs.find("7").is_err());
    }
}
