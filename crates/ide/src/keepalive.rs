//! Finding out that a client is dead.
//!
//! The CLI never pings, so we do: the MCP request `ping`, every few seconds, once the client is initialised. Any byte
//! from the client counts as life. A timer of ours that fires late (the machine slept, the process was stopped) proves
//! nothing about the client, so the count starts anew. While a diff is open a client gets three chances, because
//! losing it then loses a person's work.

use std::time::Duration;

use oarlock_wire::{CallError, Close, Peer};
use tokio::time::{Instant, sleep_until, timeout};

/// When a client is asked for a sign of life, and when it counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// How often it is asked.
    pub every: Duration,
    /// How long it may take to answer.
    pub dead_after: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { every: Duration::from_secs(5), dead_after: Duration::from_secs(3) }
    }
}

/// A timer that is later than this was held up by something on our side.
const LATE: Duration = Duration::from_secs(1);
const MISSES_WITH_DIFF: u32 = 3;

/// What one question taught us.
#[derive(Debug, Clone, Copy)]
struct Round {
    answered: bool,
    heard_anything: bool,
    /// How much later than planned our own timer fired.
    timer_late_by: Duration,
    diff_pending: bool,
}

/// The count of questions in a row that brought no sign of life.
#[derive(Debug, Default)]
struct Misses(u32);

impl Misses {
    /// Whether the client is dead after this round.
    fn count(&mut self, round: Round) -> bool {
        if round.answered || round.heard_anything || round.timer_late_by > LATE {
            self.0 = 0;
            return false;
        }
        self.0 += 1;
        self.0 >= if round.diff_pending { MISSES_WITH_DIFF } else { 1 }
    }
}

/// Asks until the client is dead or gone; a dead one is closed.
pub(crate) async fn run(peer: Peer, settings: Keepalive, diff_pending: impl Fn() -> bool + Send) {
    let mut misses = Misses::default();
    loop {
        sleep_until(Instant::now() + settings.every).await;
        let heard = peer.heard();
        let deadline = Instant::now() + settings.dead_after;
        let answered = match timeout(settings.dead_after, peer.request("ping", &())).await {
            Ok(Ok(_) | Err(CallError::Refused(_))) => true,
            Ok(Err(_)) => return,
            Err(_) => false,
        };
        let round = Round {
            answered,
            heard_anything: peer.heard() != heard,
            timer_late_by: Instant::now().saturating_duration_since(deadline),
            diff_pending: diff_pending(),
        };
        if misses.count(round) {
            let silence = settings.dead_after.as_secs_f32();
            peer.close(Close::new(1001, format!("no sign of life for {silence} s")));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Round =
        Round { answered: false, heard_anything: false, timer_late_by: Duration::ZERO, diff_pending: false };

    #[test]
    fn one_miss_is_death_and_any_byte_is_life() {
        assert!(Misses::default().count(SILENT));
        assert!(!Misses::default().count(Round { heard_anything: true, ..SILENT }));
        assert!(!Misses::default().count(Round { answered: true, ..SILENT }));
    }

    #[test]
    fn a_late_timer_of_ours_restarts_the_count() {
        let with_diff = Round { diff_pending: true, ..SILENT };
        let mut misses = Misses::default();
        assert!(!misses.count(with_diff) && !misses.count(with_diff));
        assert!(!misses.count(Round { timer_late_by: Duration::from_secs(60), ..with_diff }));
        assert!(!misses.count(with_diff) && !misses.count(with_diff));
        assert!(misses.count(with_diff));
    }

    #[test]
    fn with_a_diff_pending_death_needs_three_misses() {
        let mut misses = Misses::default();
        let round = Round { diff_pending: true, ..SILENT };
        assert_eq!([misses.count(round), misses.count(round), misses.count(round)], [false, false, true]);
    }
}
