//! What the end-to-end programs have in common: their arguments, and their report.
#![allow(clippy::print_stdout, reason = "the report is printed")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};

/// Whether everything is to run, by `--full` or `OARLOCK_E2E=full`, and the other arguments.
#[must_use]
pub fn arguments() -> (bool, Arguments) {
    let (flags, rest): (Vec<String>, Vec<String>) =
        std::env::args().partition(|argument| argument == "--full");
    let full = !flags.is_empty() || std::env::var("OARLOCK_E2E").is_ok_and(|value| value == "full");
    let mut arguments = Arguments::from_iter(rest);
    // Each scenario is a few processes and their waiting: two at a time keep two cores busy.
    arguments.test_threads.get_or_insert(2);
    (full, arguments)
}

/// On CI a suite that cannot run is a failure.
#[must_use]
pub fn on_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// How long each trial took.
#[derive(Clone, Debug, Default)]
pub struct Times(Arc<Mutex<Vec<(String, Duration)>>>);

impl Times {
    /// A test whose time is taken.
    pub fn trial(&self, name: String, body: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
        let times = self.clone();
        Trial::test(name.clone(), move || {
            let start = Instant::now();
            let outcome = body();
            times.entries().push((name, start.elapsed()));
            // The causes one below the other: some hold a whole screen.
            outcome.map_err(|error| {
                let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
                Failed::from(causes.join("\n\n"))
            })
        })
    }

    /// Prints the times, longest first.
    pub fn print(&self) {
        let mut times = self.entries();
        times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        for (name, time) in times.iter() {
            println!("{:7.2} s  {name}", time.as_secs_f64());
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<(String, Duration)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
