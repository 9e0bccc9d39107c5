//! How the records of a transcript hang together, and which of them are the conversation.
//!
//! Each record names its parent. A conversation that was taken back and continued otherwise has branches; the one with the
//! last message is the conversation. Two things do not fit that picture:
//!
//! - An answer with several tool calls is several records in a row, and each result hangs on the record of its own call.
//!   Going from the end to the beginning meets one of the results only, so the others are put back behind their answer.
//! - A compaction begins anew, without a parent. What was before it is its logical parent.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::lines::{Lines, failed};
use super::scan::{Kind, Name, Scan};
use crate::Error;

/// Where a record is, and what it hangs on.
#[derive(Debug)]
struct Entry {
    uuid: Name,
    parent: Option<Name>,
    offset: u64,
    length: u32,
    kind: Kind,
    /// Not one of the main conversation's messages that people see.
    is_aside: bool,
    is_sidechain: bool,
}

/// The records of a transcript that have a place in its tree.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// The entry that counts for a name: the last.
    places: HashMap<Name, u32>,
    logical_parents: HashMap<u32, Name>,
    /// Entries that are part of an answer of the model, by the answer.
    answers: HashMap<Name, Vec<u32>>,
    /// The calls that an entry makes.
    calls: HashMap<Name, Caller>,
    /// The entries that are results of tools, and what they answer.
    results: Vec<ToolResult>,
    /// Lines that are no record.
    pub(super) skipped: u64,
}

#[derive(Debug)]
struct ToolResult {
    at: u32,
    agent: Option<Name>,
    source: Option<Name>,
    calls: Vec<Name>,
}

/// Who made a call.
#[derive(Debug, Clone, Copy)]
enum Caller {
    One {
        at: u32,
        answer: Name,
        agent: Option<Name>,
    },
    /// Two answers claim the call, so it says nothing.
    Several,
}

/// Where a record's line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// Whose transcript it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Session,
    Subagent,
}

impl Index {
    pub(super) fn build(path: &Path) -> Result<Self, Error> {
        let mut lines = Lines::open(path)?;
        let mut index = Self::default();
        while let Some(line) = lines.next().map_err(|error| failed("read", path, error))? {
            if line.bytes.trim_ascii().is_empty() && !line.too_long {
                continue;
            }
            match Scan::of(line.bytes) {
                Some(scan) => index.add(scan, line.offset, line.bytes.len()),
                None => index.skipped += 1,
            }
        }
        Ok(index)
    }

    fn add(&mut self, scan: Scan, offset: u64, length: usize) {
        let (Some(uuid), true) = (scan.uuid, scan.kind.is_linked()) else { return };
        let (Ok(at), Ok(length)) = (u32::try_from(self.entries.len()), u32::try_from(length)) else { return };
        self.entries.push(Entry {
            uuid,
            parent: scan.parent,
            offset,
            length,
            kind: scan.kind,
            is_aside: scan.is_meta || scan.is_team,
            is_sidechain: scan.is_sidechain,
        });
        self.places.insert(uuid, at);
        if let Some(parent) = scan.logical_parent {
            self.logical_parents.insert(at, parent);
        }
        let message = scan.message;
        match (scan.kind, message.id) {
            (Kind::Assistant, Some(answer)) => {
                self.answers.entry(answer).or_default().push(at);
                for call in message.calls {
                    let caller = Caller::One { at, answer, agent: scan.agent };
                    let known = self.calls.entry(call).or_insert(caller);
                    *known = match *known {
                        Caller::One { answer: other, .. } if other == answer => caller,
                        _ => Caller::Several,
                    };
                }
            }
            (Kind::User, _) if !message.answers.is_empty() && scan.parent.is_some() => {
                self.results.push(ToolResult {
                    at,
                    agent: scan.agent,
                    source: scan.source,
                    calls: message.answers,
                });
            }
            _ => {}
        }
    }

    fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    /// The conversation, from the first message to the last: the places of its messages.
    pub(super) fn conversation(&self, owner: Owner, through_compactions: bool) -> Vec<Place> {
        let leaf = match owner {
            Owner::Session => self.leaf(),
            // A subagent says one thing after the other.
            Owner::Subagent => {
                (0..self.entries.len() as u32).rev().find(|&at| self.entry(at).kind.is_message())
            }
        };
        let Some(leaf) = leaf else { return Vec::new() };
        let chain = self.with_parallel_results(self.walk(leaf, through_compactions));
        let shown = |at: &u32| {
            let entry = self.entry(*at);
            let is_message = entry.kind.is_message();
            match owner {
                Owner::Session => {
                    let is_mark = entry.kind == Kind::Compaction && through_compactions;
                    (is_message || is_mark) && !entry.is_aside && !entry.is_sidechain
                }
                Owner::Subagent => is_message,
            }
        };
        let place = |at: u32| Place { offset: self.entry(at).offset, length: self.entry(at).length };
        chain.into_iter().filter(shown).map(place).collect()
    }

    /// The last message of the conversation: the last in the file of those that end a branch.
    fn leaf(&self) -> Option<u32> {
        let parents: HashSet<Name> = self.entries.iter().filter_map(|entry| entry.parent).collect();
        // Each record is passed once, however many branches end above it.
        let mut seen = vec![false; self.entries.len()];
        let (mut best, mut best_aside) = (None, None);
        for (at, entry) in self.entries.iter().enumerate() {
            if parents.contains(&entry.uuid) {
                continue;
            }
            let mut next = Some(at as u32);
            while let Some(at) = next
                && !std::mem::replace(&mut seen[at as usize], true)
            {
                let entry = self.entry(at);
                if entry.kind.is_message() {
                    let is_main = !entry.is_aside && !entry.is_sidechain;
                    let best = if is_main { &mut best } else { &mut best_aside };
                    *best = (*best).max(Some(at));
                    break;
                }
                next = self.parent(at);
            }
        }
        best.or(best_aside)
    }

    fn parent(&self, at: u32) -> Option<u32> {
        self.places.get(&self.entry(at).parent?).copied()
    }

    /// From a record to the root, and turned round.
    fn walk(&self, leaf: u32, through_compactions: bool) -> Vec<u32> {
        let mut seen = vec![false; self.entries.len()];
        let mut chain = Vec::new();
        let mut next = Some(leaf);
        while let Some(at) = next
            && !std::mem::replace(&mut seen[at as usize], true)
        {
            chain.push(at);
            next = self.parent(at).or_else(|| {
                let before = self.logical_parents.get(&at).filter(|_| through_compactions)?;
                self.places.get(before).copied()
            });
        }
        chain.reverse();
        chain
    }

    /// Puts back the calls and results of an answer that are on side branches only because they ran at the same time.
    fn with_parallel_results(&self, chain: Vec<u32>) -> Vec<u32> {
        let on_chain: HashSet<u32> = chain.iter().copied().collect();
        let mut answer_of = HashMap::new();
        // The last record of each answer that is on the chain.
        let mut anchors = HashMap::new();
        for (answer, parts) in &self.answers {
            for at in parts {
                answer_of.insert(*at, *answer);
            }
        }
        for at in &chain {
            if let Some(answer) = answer_of.get(at) {
                anchors.insert(*answer, *at);
            }
        }
        let counts = |at: u32| self.places.get(&self.entry(at).uuid) == Some(&at) && !on_chain.contains(&at);
        let mut missing: HashMap<Name, Vec<u32>> = HashMap::new();
        for answer in anchors.keys() {
            let parts = self.answers.get(answer).into_iter().flatten().copied().filter(|at| counts(*at));
            missing.entry(*answer).or_default().extend(parts);
        }
        let mut answered: HashSet<Name> = HashSet::new();
        let mut strays = Vec::new();
        for result in &self.results {
            if on_chain.contains(&result.at) {
                answered.extend(&result.calls);
                continue;
            }
            if !counts(result.at) {
                continue;
            }
            let answer = self.parent(result.at).and_then(|parent| answer_of.get(&parent));
            match answer.filter(|answer| anchors.contains_key(answer)) {
                Some(answer) => {
                    answered.extend(&result.calls);
                    missing.entry(*answer).or_default().push(result.at);
                }
                None => strays.push(result),
            }
        }
        // A result that hangs elsewhere is taken only for a call that nothing else answers.
        for result in strays {
            let open = result.calls.iter().find_map(|call| match self.calls.get(call)? {
                Caller::One { at, answer, agent } => {
                    let entry = self.entry(*at);
                    let same_writer =
                        *agent == result.agent && entry.is_sidechain == self.entry(result.at).is_sidechain;
                    let source = result.source.and_then(|source| self.places.get(&source));
                    let known = same_writer || source == Some(at);
                    (known && !answered.contains(call) && anchors.contains_key(answer)).then_some(*answer)
                }
                Caller::Several => None,
            });
            if let Some(answer) = open {
                answered.extend(&result.calls);
                missing.entry(answer).or_default().push(result.at);
            }
        }
        let mut whole = Vec::with_capacity(chain.len());
        for at in chain {
            whole.push(at);
            let Some(answer) = answer_of.get(&at).filter(|answer| anchors.get(answer) == Some(&at)) else {
                continue;
            };
            // The answer in one piece, then the results, each in the order of the file.
            let parts = missing.remove(answer).unwrap_or_default();
            let (calls, results): (Vec<u32>, Vec<u32>) =
                parts.into_iter().partition(|at| self.entry(*at).kind == Kind::Assistant);
            whole.extend(calls);
            whole.extend(results);
        }
        whole
    }
}
