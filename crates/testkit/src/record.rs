//! An append-only record of what happened, on which tests wait without polling.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::watch;

/// An append-only list that wakes its waiters at each entry. Clones share the list.
#[derive(Debug)]
pub struct Record<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    entries: Mutex<Vec<T>>,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    length: usize,
    ended: bool,
}

impl<T> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        let shared = Shared { entries: Mutex::default(), state: watch::Sender::new(State::default()) };
        Self { shared: Arc::new(shared) }
    }
}

impl<T: Clone + Debug> Record<T> {
    /// Adds an entry and wakes everyone who waits.
    pub fn push(&self, entry: T) {
        let length = {
            let mut entries = self.lock();
            entries.push(entry);
            entries.len()
        };
        self.shared.state.send_modify(|state| state.length = length);
    }

    /// Says that nothing will be added any more, so that waiting fails at once instead of at its limit.
    pub fn end(&self) {
        self.shared.state.send_modify(|state| state.ended = true);
    }

    /// Everything so far, oldest first.
    #[must_use]
    pub fn entries(&self) -> Vec<T> {
        self.lock().clone()
    }

    /// How many entries there are: a mark for [`Record::wait_after`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing has been recorded yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The first entry, past or future, for which `wanted` holds.
    pub async fn wait_for(&self, what: &str, within: Duration, wanted: impl FnMut(&T) -> bool) -> Result<T> {
        self.wait_after(0, what, within, wanted).await
    }

    /// The first entry after the mark (see [`Record::len`]) for which `wanted` holds.
    pub async fn wait_after(
        &self,
        mark: usize,
        what: &str,
        within: Duration,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<T> {
        let mut state = self.shared.state.subscribe();
        let limit = tokio::time::Instant::now() + within;
        let mut next = mark;
        loop {
            // Read before the entries are, so that an end cannot hide an entry that came just before it.
            let ended = state.borrow_and_update().ended;
            {
                let entries = self.lock();
                if let Some(entry) = entries.iter().skip(next).find(|entry| wanted(entry)) {
                    return Ok(entry.clone());
                }
                next = next.max(entries.len());
            }
            if ended {
                bail!("{what}: did not happen, and the source has ended; seen:\n{}", self.tail());
            }
            match tokio::time::timeout_at(limit, state.changed()).await {
                Ok(Ok(())) => {}
                _ => bail!("{what}: did not happen within {within:?}; seen:\n{}", self.tail()),
            }
        }
    }

    /// The last entries in brief, for failure messages.
    #[must_use]
    pub fn tail(&self) -> String {
        const SHOWN: usize = 30;
        const WIDTH: usize = 300;
        let entries = self.lock();
        let skipped = entries.len().saturating_sub(SHOWN);
        let mut lines = vec![format!("  ({} entries, {skipped} not shown)", entries.len())];
        for entry in entries.iter().skip(skipped) {
            let text = format!("{entry:?}");
            let mut line: String = text.chars().take(WIDTH).collect();
            if text.chars().nth(WIDTH).is_some() {
                line.push('…');
            }
            lines.push(format!("  {line}"));
        }
        lines.join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        // A panic elsewhere leaves a whole list behind: entries are only ever appended.
        self.shared.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_waiter_gets_past_and_future_entries() {
        let record = Record::default();
        record.push(1);
        assert_eq!(record.wait_for("one", SOON, |n| *n == 1).await.unwrap(), 1);
        let later = record.clone();
        let task = tokio::spawn(async move { later.wait_for("two", SOON, |n| *n == 2).await });
        record.push(2);
        assert_eq!(task.await.unwrap().unwrap(), 2);
    }

    #[tokio::test]
    async fn a_mark_leaves_out_what_was_before() {
        let record = Record::default();
        record.push(1);
        let mark = record.len();
        record.push(1);
        record.push(3);
        let mut seen = 0;
        record
            .wait_after(mark, "three", SOON, |n| {
                seen += 1;
                *n == 3
            })
            .await
            .unwrap();
        assert_eq!(seen, 2);
    }

    #[tokio::test]
    async fn a_limit_and_an_end_are_errors_that_show_the_record() {
        let record = Record::default();
        record.push("the only one");
        let late = record.wait_for("another", Duration::from_millis(1), |_| false).await.unwrap_err();
        assert!(late.to_string().contains("another: did not happen within"), "{late}");
        assert!(late.to_string().contains("the only one"), "{late}");
        record.end();
        let ended = record.wait_for("another", SOON, |_| false).await.unwrap_err();
        assert!(ended.to_string().contains("has ended"), "{ended}");
    }
}
