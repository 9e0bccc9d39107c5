//! What clients are told without asking: selections, mentions, diagnostics. And what they are never told.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarlock_proto::ide::{AtMentioned, Dialect, FileDiagnostics, SelectionChanged};
use oarlock_proto::jsonrpc;
use tokio::sync::Notify;

use crate::clients::Clients;
use crate::consent::{Consent, Withheld};
use crate::editor::Selection;
use crate::{Error, Result, paths, tools};

/// Mentions that wait for a client; the oldest is dropped when one more comes, for nobody waits for it any more.
const MAX_MENTIONS: usize = 32;

/// How often a selection is held to the rules again.
const RECHECK: Duration = Duration::from_secs(2);

/// The one place from which anything of a file leaves without being asked for.
pub(crate) struct Share {
    state: Mutex<State>,
    moved: Notify,
}

struct State {
    consent: Consent,
    /// What is selected now, if anything.
    current: Option<Selection>,
    /// The last thing that was selected, also when its editor has lost the focus.
    latest: Option<Selection>,
    mentions: VecDeque<Mention>,
}

#[derive(Debug, Clone)]
struct Mention {
    to: Option<u32>,
    path: PathBuf,
    text: String,
}

impl Mention {
    /// Sends it to the ready clients that it is for; how many there were.
    fn send(&self, clients: &Clients) -> usize {
        let mut reached = 0;
        clients.each(|client| {
            let is_for_it = self.to.is_none() || client.info.pid == self.to;
            if client.info.ready && is_for_it && client.peer.send(self.text.clone()) {
                reached += 1;
            }
        });
        reached
    }
}

/// How many clients a mention reached at once; none means that it waits for the next one that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mentioned {
    /// How many got it.
    pub clients: usize,
}

impl Share {
    pub(crate) fn new(consent: Consent) -> Self {
        let state = State { consent, current: None, latest: None, mentions: VecDeque::new() };
        Self { state: Mutex::new(state), moved: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The selection is now this one, or there is none.
    pub(crate) fn select(&self, selection: Option<Selection>) {
        let mut state = self.state();
        if let Some(selection) = &selection {
            state.latest = Some(selection.clone());
        }
        state.current = selection;
        drop(state);
        self.moved.notify_one();
    }

    /// A file is closed: what was selected in it is selected no more.
    pub(crate) fn file_closed(&self, path: &Path) {
        let mut state = self.state();
        if state.latest.as_ref().is_some_and(|latest| latest.path == path) {
            state.latest = None;
        }
        let was_current = state.current.as_ref().is_some_and(|current| current.path == path);
        drop(state);
        if was_current {
            self.select(None);
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state().consent.is_paused()
    }

    /// Stops or resumes sharing. A pause takes back what is selected; afterwards the mentions that waited go out.
    pub(crate) fn pause(&self, clients: &Clients, paused: bool) {
        self.state().consent.pause(paused);
        self.moved.notify_one();
        self.deliver(clients);
    }

    /// New rules; a file that they newly cover is taken back.
    pub(crate) fn set_consent(&self, consent: Consent) {
        let mut state = self.state();
        consent.pause(state.consent.is_paused());
        state.consent = consent;
        drop(state);
        self.moved.notify_one();
    }

    /// Whether anything of a file may leave.
    pub(crate) fn allows(&self, path: &Path) -> Result<(), Withheld> {
        self.state().consent.allows(path)
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.state().consent.limit()
    }

    /// The last selection, if it may be told.
    pub(crate) fn latest(&self) -> Option<Selection> {
        let state = self.state();
        let latest = state.latest.as_ref()?;
        state.consent.allows(&latest.path).is_ok().then(|| limit(latest.clone(), state.consent.limit()))
    }

    /// A selection as it may be told, or why it may not.
    pub(crate) fn filter(&self, selection: Selection) -> Result<Selection, Withheld> {
        let state = self.state();
        state.consent.allows(&selection.path)?;
        Ok(limit(selection, state.consent.limit()))
    }

    /// The message for the present state.
    fn message(&self) -> String {
        let state = self.state();
        let shared = state.current.as_ref().filter(|current| state.consent.allows(&current.path).is_ok());
        let params = match shared {
            Some(selection) => {
                let selection = limit(selection.clone(), state.consent.limit());
                SelectionChanged {
                    selection: selection.range.into(),
                    text: selection.text,
                    file_path: Some(paths::wire_path(&selection.path)),
                    file_url: Some(paths::file_uri(&selection.path)),
                }
            }
            None => SelectionChanged::cleared(),
        };
        drop(state);
        selection_changed(&params)
    }

    /// Tells every ready client of the present selection, unless it has heard so already.
    fn tell(&self, clients: &Clients) {
        // Made under the clients' lock, so that nobody is told an older one after a newer one.
        let mut message = None;
        clients.each(|client| {
            if !client.info.ready {
                return;
            }
            let message = message.get_or_insert_with(|| self.message());
            if client.selection.as_deref() != Some(message) {
                client.peer.send(message.clone());
                client.selection = Some(message.clone());
            }
        });
    }

    /// Follows the selection for ever, at most once per `debounce`.
    pub(crate) async fn follow(&self, clients: &Clients, debounce: Duration) {
        loop {
            if self.state().current.is_some() {
                // The file may be ignored from now on: rules are files too.
                let _ = tokio::time::timeout(RECHECK, self.moved.notified()).await;
            } else {
                self.moved.notified().await;
            }
            if !debounce.is_zero() {
                tokio::time::sleep(debounce).await;
            }
            self.tell(clients);
        }
    }

    /// A client is ready now: it gets the present selection and the mentions that waited for it.
    pub(crate) fn welcome(&self, clients: &Clients, client: u64) {
        clients.with(client, |client| {
            client.info.ready = true;
            // A client that connects has no selection to be cleared.
            client.selection = Some(selection_changed(&SelectionChanged::cleared()));
        });
        self.tell(clients);
        self.deliver(clients);
    }

    /// Sends the mentions that waited to those they are for, held to the rules of this moment. While sharing is paused,
    /// or nobody is ready, they wait on.
    fn deliver(&self, clients: &Clients) {
        let waiting = {
            let mut state = self.state();
            if state.consent.is_paused() {
                return;
            }
            std::mem::take(&mut state.mentions)
        };
        let mut undelivered = VecDeque::new();
        for mention in waiting {
            if self.allows(&mention.path).is_ok() && mention.send(clients) == 0 {
                undelivered.push_back(mention);
            }
        }
        self.state().mentions.extend(undelivered);
    }

    /// Mentions a file to all ready clients, or to the one with a pid.
    pub(crate) fn mention(
        &self,
        clients: &Clients,
        path: &Path,
        lines: Option<(u32, u32)>,
        to: Option<u32>,
    ) -> Result<Mentioned> {
        self.allows(path).map_err(|withheld| Error::Withheld { path: path.to_owned(), withheld })?;
        let params = AtMentioned {
            file_path: paths::wire_path(path),
            line_start: lines.map(|(first, _)| first),
            line_end: lines.map(|(_, last)| last),
        };
        let text = jsonrpc::write_notification("at_mentioned", &params);
        let mention = Mention { to, path: path.to_owned(), text };
        if let Some(pid) = to {
            let connected: Vec<u32> = clients.list().into_iter().filter_map(|client| client.pid).collect();
            if !connected.contains(&pid) {
                return Err(Error::NoSuchClient { pid, connected });
            }
        }
        let reached = mention.send(clients);
        if reached == 0 {
            let mut state = self.state();
            if state.mentions.len() == MAX_MENTIONS {
                state.mentions.pop_front();
            }
            state.mentions.push_back(mention);
        }
        Ok(Mentioned { clients: reached })
    }

    /// Tells of changed diagnostics, in the dialects that have a word for it.
    pub(crate) fn diagnostics_changed(
        &self,
        clients: &Clients,
        dialect: Dialect,
        changed: &[FileDiagnostics],
    ) {
        if dialect != Dialect::Jetbrains {
            return;
        }
        for file in changed {
            let text = jsonrpc::write_notification("diagnostics_changed", &tools::in_words(file, dialect));
            clients.each(|client| {
                if client.info.ready {
                    client.peer.send(text.clone());
                }
            });
        }
    }
}

fn selection_changed(params: &SelectionChanged) -> String {
    jsonrpc::write_notification("selection_changed", params)
}

/// A selection's text cut to what may leave at once; its range still tells what is selected.
fn limit(mut selection: Selection, max_bytes: usize) -> Selection {
    let end = selection.text.floor_char_boundary(max_bytes);
    selection.text.truncate(end);
    selection
}
