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

/// Where a record is, and what it hangs on: 64 bytes, because a transcript can have a million of them.
#[derive(Debug)]
struct Entry {
    uuid: Name,
    parent: Name,
    offset: u64,
    /// The answer of the model that it is a part of.
    answer: Answer,
    length: u32,
    /// The subagent that wrote it.
    agent: u32,
    kind: Kind,
    /// Not one of the main conversation's messages that people see.
    is_aside: bool,
    is_sidechain: bool,
}

/// An answer of the model: what all its records share. 0 is none.
type Answer = u64;

/// The records of a transcript that have a place in its tree.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// The entry that counts for a name (the last), in the order of the names.
    places: Vec<(Name, u32)>,
    logical_parents: HashMap<u32, Name>,
    /// Calls of tools and the entries that make them.
    calls: Vec<(Name, u32)>,
    /// Entries that are results of tools, and the calls that they answer.
    results: Vec<(u32, Name)>,
    /// For a result whose parent is not the record of its call: that record.
    sources: HashMap<u32, Name>,
    /// Lines that are no record.
    pub(super) skipped: u64,
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
        index.places.sort_unstable();
        // Of several with one name the last comes last.
        index.places.reverse();
        index.places.dedup_by_key(|(name, _)| *name);
        index.places.reverse();
        Ok(index)
    }

    fn add(&mut self, scan: Scan, offset: u64, length: usize) {
        let (Some(uuid), true) = (scan.uuid, scan.kind.is_linked()) else { return };
        let (Ok(at), Ok(length)) = (u32::try_from(self.entries.len()), u32::try_from(length)) else { return };
        let message = scan.message;
        let answer = message.id.filter(|_| scan.kind == Kind::Assistant);
        self.entries.push(Entry {
            uuid,
            parent: scan.parent.unwrap_or(Name::NONE),
            offset,
            answer: answer.map_or(0, Name::short),
            length,
            agent: scan.agent.map_or(0, |agent| agent.short() as u32),
            kind: scan.kind,
            is_aside: scan.is_meta || scan.is_team,
            is_sidechain: scan.is_sidechain,
        });
        self.places.push((uuid, at));
        if let Some(parent) = scan.logical_parent {
            self.logical_parents.insert(at, parent);
        }
        if answer.is_some() {
            self.calls.extend(message.calls.into_iter().map(|call| (call, at)));
        } else if scan.kind == Kind::User && scan.parent.is_some() {
            if let Some(source) = scan.source.filter(|source| Some(*source) != scan.parent) {
                self.sources.insert(at, source);
            }
            self.results.extend(message.answers.into_iter().map(|call| (at, call)));
        }
    }

    fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    /// The entry that counts for a name.
    fn find(&self, name: Name) -> Option<u32> {
        let at = self.places.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(self.places[at].1)
    }

    fn parent(&self, at: u32) -> Option<u32> {
        let parent = self.entry(at).parent;
        (parent != Name::NONE).then(|| self.find(parent)).flatten()
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
        let mut is_parent = vec![false; self.entries.len()];
        for at in 0..self.entries.len() as u32 {
            if let Some(parent) = self.parent(at) {
                is_parent[parent as usize] = true;
            }
        }
        // Each record is passed once, however many branches end above it.
        let mut seen = vec![false; self.entries.len()];
        let (mut best, mut best_aside) = (None, None);
        for (at, entry) in self.entries.iter().enumerate() {
            if self.find(entry.uuid).is_some_and(|place| is_parent[place as usize]) {
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
                self.find(*before)
            });
        }
        chain.reverse();
        chain
    }

    /// Puts back the calls and results of an answer that are on side branches only because they ran at the same time.
    fn with_parallel_results(&self, chain: Vec<u32>) -> Vec<u32> {
        let mut on_chain = vec![false; self.entries.len()];
        // The last record of each answer that is on the chain.
        let mut anchors: HashMap<Answer, u32> = HashMap::new();
        for &at in &chain {
            on_chain[at as usize] = true;
        }
        let is_off = |at: u32| !on_chain[at as usize] && self.find(self.entry(at).uuid) == Some(at);
        let wanted = self.answers_off_the_chain(is_off);
        if wanted.is_empty() {
            return chain;
        }
        for &at in &chain {
            let answer = self.entry(at).answer;
            if wanted.contains(&answer) {
                anchors.insert(answer, at);
            }
        }
        let mut missing: HashMap<Answer, Vec<u32>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if anchors.contains_key(&entry.answer) && is_off(at as u32) {
                missing.entry(entry.answer).or_default().push(at as u32);
            }
        }
        let (mut answered, mut strays) = (HashSet::new(), Vec::new());
        for &(at, call) in &self.results {
            let answer = self.parent(at).map_or(0, |parent| self.entry(parent).answer);
            if on_chain[at as usize] {
                answered.insert(call);
            } else if anchors.contains_key(&answer) && is_off(at) {
                answered.insert(call);
                push_once(missing.entry(answer).or_default(), at);
            } else if is_off(at) {
                strays.push((at, call));
            }
        }
        // A result that hangs elsewhere is taken only for a call that nothing else answers.
        let callers = self.callers(&strays);
        for (at, call) in strays {
            let Some(&Some(caller)) = callers.get(&call) else { continue };
            let (result, caller_entry) = (self.entry(at), self.entry(caller));
            let same_writer =
                result.agent == caller_entry.agent && result.is_sidechain == caller_entry.is_sidechain;
            let source = self.sources.get(&at).and_then(|source| self.find(*source));
            let is_known = same_writer || source == Some(caller);
            if is_known && anchors.contains_key(&caller_entry.answer) && answered.insert(call) {
                push_once(missing.entry(caller_entry.answer).or_default(), at);
            }
        }
        let mut whole = Vec::with_capacity(chain.len());
        for at in chain {
            whole.push(at);
            let answer = self.entry(at).answer;
            if anchors.get(&answer) != Some(&at) {
                continue;
            }
            // The answer in one piece, then the results, each in the order of the file.
            let parts = missing.remove(&answer).unwrap_or_default();
            let (calls, mut results): (Vec<u32>, Vec<u32>) =
                parts.into_iter().partition(|at| self.entry(*at).kind == Kind::Assistant);
            results.sort_unstable();
            whole.extend(calls);
            whole.extend(results);
        }
        whole
    }

    /// The answers of which a part or a result may be missing; none for most transcripts, and then nothing is to do.
    fn answers_off_the_chain(&self, is_off: impl Fn(u32) -> bool) -> HashSet<Answer> {
        let mut wanted: HashSet<Answer> = HashSet::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.answer != 0 && is_off(at as u32) {
                wanted.insert(entry.answer);
            }
        }
        let off: Vec<(u32, Name)> = self.results.iter().copied().filter(|(at, _)| is_off(*at)).collect();
        let callers = self.callers(&off);
        for (at, call) in off {
            let parent = self.parent(at);
            let caller = callers.get(&call).copied().flatten();
            wanted.extend(parent.into_iter().chain(caller).map(|at| self.entry(at).answer));
        }
        wanted.remove(&0);
        wanted
    }

    /// Who made these calls; nobody for a call that two answers claim, because it says nothing.
    fn callers(&self, results: &[(u32, Name)]) -> HashMap<Name, Option<u32>> {
        let asked: HashSet<Name> = results.iter().map(|(_, call)| *call).collect();
        let mut callers: HashMap<Name, Option<u32>> = HashMap::new();
        for &(call, at) in self.calls.iter().filter(|(call, _)| asked.contains(call)) {
            let same = |other: &u32| self.entry(*other).answer == self.entry(at).answer;
            let known = callers.entry(call).or_insert(Some(at));
            *known = known.filter(same).map(|_| at);
        }
        callers
    }
}

fn push_once(list: &mut Vec<u32>, at: u32) {
    if !list.contains(&at) {
        list.push(at);
    }
}
