//! Some seconds of fuzzing on stable: the committed corpus, then mutations of it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::{Duration, Instant};

use oarlock_testkit::fuzz::TARGETS;

/// A small generator that always makes the same numbers, so that a failure can be had again.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap()
    }
}

fn mutate(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..=numbers.next(4) {
        let at = numbers.next(data.len() + 1);
        match numbers.next(6) {
            0 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = numbers.next(256) as u8;
                }
            }
            1 => data.truncate(at),
            2 => data.insert(at, numbers.next(256) as u8),
            3 => data.splice(at..at, other[..numbers.next(other.len() + 1)].iter().copied()).for_each(drop),
            4 => data.splice(at..at, *b"/../").for_each(drop),
            _ => data.extend_from_within(at..),
        }
        data.truncate(4096);
    }
    data
}

#[test]
fn every_target_survives_its_corpus_and_mutations_of_it() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut seeds: Vec<Vec<u8>> = Vec::new();
        for entry in std::fs::read_dir(corpus.join(name)).unwrap() {
            seeds.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
        assert!(!seeds.is_empty(), "no corpus for {name}");
        seeds.sort();
        seeds.iter().for_each(|seed| target(seed));
        let (mut numbers, deadline) =
            (Numbers(0x9e37_79b9_7f4a_7c15), Instant::now() + Duration::from_secs(2));
        let mut rounds = 0_u64;
        while Instant::now() < deadline {
            for _ in 0..100 {
                let (seed, other) = (numbers.next(seeds.len()), numbers.next(seeds.len()));
                target(&mutate(&seeds[seed], &seeds[other], &mut numbers));
                rounds += 1;
            }
        }
        assert!(rounds > 1000, "{name}: only {rounds} rounds");
    }
}
