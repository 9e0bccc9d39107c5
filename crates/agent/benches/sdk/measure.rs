//! What is measured, and in which order: every round visits every client, so that whatever else the machine does meets
//! all of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::client::{self, Cost};
use crate::contender::Contender;
use crate::start::{self, Start};
use crate::traffic::{Recording, Traffic};

/// Rounds over everything; the median counts.
pub(crate) const ROUNDS: usize = 7;
/// How long the slow consumer pauses after its first message.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) rounds: usize,
    pub(crate) speed: Vec<Speed>,
    /// The most memory each SDK had with a slow consumer, in bytes.
    pub(crate) slow: Vec<(Contender, u64)>,
    /// For each version of the CLI.
    pub(crate) start: Vec<(&'static str, Start)>,
}

/// All clients on one stream.
pub(crate) struct Speed {
    pub(crate) recording: Recording,
    /// In the order of [`Contender::ALL`], one cost for each round.
    pub(crate) costs: Vec<Vec<Cost>>,
}

impl Speed {
    fn of(&self, contender: Contender) -> &[Cost] {
        let at = Contender::ALL.iter().position(|other| *other == contender);
        at.and_then(|at| self.costs.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The median of one figure.
    pub(crate) fn median(&self, contender: Contender, figure: impl Fn(&Cost) -> f64) -> f64 {
        median(self.of(contender).iter().map(figure))
    }

    /// The most memory it had in any round, in bytes.
    pub(crate) fn peak(&self, contender: Contender) -> u64 {
        self.of(contender).iter().map(|cost| cost.peak).max().unwrap_or(u64::MAX)
    }

    /// How many times faster than another. Each round is compared with itself, because the machine changes its pace.
    pub(crate) fn times(&self, contender: Contender, other: Contender) -> f64 {
        let rounds = self.of(contender).iter().zip(self.of(other));
        median(rounds.map(|(cost, other)| other.wall / cost.wall))
    }
}

/// Measures everything. What is needed for it is below `target`.
pub(crate) fn run(target: &Path, rounds: usize) -> Result<Figures> {
    let mut speed = Vec::new();
    for traffic in Traffic::ALL {
        let recording = Recording::obtain(&target.join("bench"), traffic)?;
        println!("{traffic}: {} messages, {} bytes", recording.messages, recording.bytes);
        let mut costs = vec![Vec::new(); Contender::ALL.len()];
        for _ in 0..rounds {
            for (contender, costs) in Contender::ALL.into_iter().zip(&mut costs) {
                costs.push(visit(contender, target, &recording, Duration::ZERO)?);
            }
        }
        speed.push(Speed { recording, costs });
    }

    println!("slow consumers");
    let mixed = Recording::obtain(&target.join("bench"), Traffic::Mixed)?;
    let mut slow = Vec::new();
    for contender in Contender::SDKS {
        slow.push((contender, visit(contender, target, &mixed, PAUSE)?.peak));
    }

    println!("start");
    Ok(Figures { rounds, speed, slow, start: start::measure(target)? })
}

fn visit(contender: Contender, target: &Path, recording: &Recording, pause: Duration) -> Result<Cost> {
    client::observe(contender.command(target, pause)?, recording)
        .with_context(|| format!("{contender} on the {} traffic", recording.traffic))
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
