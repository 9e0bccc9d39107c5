//! A list of steps that all run, whatever the earlier ones did, and a table at the end.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell;

/// Numbers of tests, as the harnesses report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Reads one line of output: `test result: ok. 3 passed; 0 failed; 1 ignored; …` counts tests, and
    /// `skipped: NAME: why` is how a suite says that its peer cannot be had.
    pub(crate) fn of_line(line: &str) -> Count {
        let mut count = Count::default();
        if let Some(numbers) = line.trim().strip_prefix("test result: ") {
            for part in numbers.split([';', '.']) {
                let mut words = part.split_whitespace();
                let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                match words.next() {
                    Some("passed") => count.passed = number,
                    Some("failed") => count.failed = number,
                    Some("ignored") => count.skipped = number,
                    _ => {}
                }
            }
        } else if line.starts_with("skipped: ") {
            count.skipped = 1;
        }
        count
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// What became of one step.
#[derive(Debug)]
struct Outcome {
    name: &'static str,
    count: Count,
    failure: Option<String>,
    time: Duration,
}

/// The steps that ran so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    outcomes: Vec<Outcome>,
    /// Names of what was skipped, with the reason.
    skips: Vec<String>,
}

impl Steps {
    /// Runs a command that either works or not.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) {
        self.step(name, |_| shell::check(command).map(|()| Count::default()));
    }

    /// Runs a check inside this program.
    pub(crate) fn check(&mut self, name: &'static str, check: impl FnOnce() -> Result<()>) {
        self.step(name, |_| check().map(|()| Count::default()));
    }

    /// Runs a command that reports tests. Each line of its stdout is shown and handed to `see`.
    pub(crate) fn tests(&mut self, name: &'static str, command: &mut Command, mut see: impl FnMut(&str)) {
        self.step(name, |skips| {
            let mut child = command
                .stdout(Stdio::piped())
                .spawn()
                .with_context(|| format!("failed to start {}", shell::shown(command)))?;
            let mut count = Count::default();
            let mut suite = String::new();
            for line in BufReader::new(child.stdout.take().context("stdout is piped")?).split(b'\n') {
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                see(&line);
                let more = Count::of_line(&line);
                count.add(more);
                match line.strip_prefix("skipped: ") {
                    Some(what) => skips.push(format!("{name}: {what}")),
                    None if line.starts_with("test ") && line.trim_end().ends_with("... ignored") => {
                        skips.push(format!("{name}: {suite}{}", line.trim()));
                    }
                    None => {}
                }
                if let Some(document) = line.trim().strip_prefix("Doc-tests ") {
                    suite = format!("{document}: ");
                }
            }
            let status = child.wait()?;
            if !status.success() && count.failed == 0 {
                // A harness that failed without a failing test: it did not compile, or it crashed.
                println!("{} failed: {status}", shell::shown(command));
                count.failed = 1;
            }
            Ok(count)
        });
    }

    /// Notes a suite that could not run at all.
    pub(crate) fn skip(&mut self, name: &'static str, why: &str) {
        self.step(name, |skips| {
            println!("skipped: {name}: {why}");
            skips.push(format!("{name}: {why}"));
            Ok(Count { skipped: 1, ..Count::default() })
        });
    }

    fn step(&mut self, name: &'static str, run: impl FnOnce(&mut Vec<String>) -> Result<Count>) {
        println!("\n== {name}");
        let start = Instant::now();
        let (count, failure) = match run(&mut self.skips) {
            Ok(count) => (count, (count.failed > 0).then(|| format!("{} failed", count.failed))),
            Err(error) => (Count { failed: 1, ..Count::default() }, Some(format!("{error:#}"))),
        };
        let time = start.elapsed();
        println!(
            "== {name}: {} in {:.1} s",
            if failure.is_none() { "ok" } else { "FAILED" },
            time.as_secs_f64()
        );
        self.outcomes.push(Outcome { name, count, failure, time });
    }

    /// Prints the table and the last line; `true` when everything is well. A check without tests that
    /// failed counts as one failure, so that the line never says `0 failed` of a failed run.
    pub(crate) fn finish(self, skips_fail: bool) -> bool {
        let mut total = Count::default();
        println!("\n{:<14} {:>9} {:>7} {:>7} {:>7}  result", "step", "time", "passed", "failed", "skipped");
        for Outcome { name, count, failure, time } in &self.outcomes {
            total.add(*count);
            println!(
                "{name:<14} {:>7.1} s {:>7} {:>7} {:>7}  {}",
                time.as_secs_f64(),
                count.passed,
                count.failed,
                count.skipped,
                failure.as_deref().unwrap_or("ok").lines().next().unwrap_or_default(),
            );
        }
        for skip in &self.skips {
            println!("skipped: {skip}");
        }
        let skips_fail = skips_fail && total.skipped > 0;
        if skips_fail {
            println!("CI is set: a skip is a failure");
        }
        println!("{total}");
        total.failed == 0 && !skips_fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.5s";
        assert_eq!(Count::of_line(line), Count { passed: 12, failed: 3, skipped: 1 });
    }

    #[test]
    fn a_suite_without_its_peer_is_one_skip() {
        assert_eq!(Count::of_line("skipped: claude 2.1.325: not on npm").skipped, 1);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in ["test a::b ... ok", "running 3 tests", "", "the test result: 5 passed"] {
            assert_eq!(Count::of_line(line), Count::default(), "{line}");
        }
    }

    #[test]
    fn a_failed_check_is_a_failure_of_the_run() {
        let mut steps = Steps::default();
        steps.check("good", || Ok(()));
        assert!(steps.finish(true));
        let mut steps = Steps::default();
        steps.check("bad", || anyhow::bail!("no"));
        assert!(!steps.finish(false));
    }

    #[test]
    fn a_skip_fails_only_where_asked() {
        for (skips_fail, well) in [(false, true), (true, false)] {
            let mut steps = Steps::default();
            steps.skip("e2e", "no network");
            assert_eq!(steps.finish(skips_fail), well);
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_harness_that_dies_without_a_result_is_a_failure() {
        let mut steps = Steps::default();
        let mut seen = Vec::new();
        steps.tests("dies", Command::new("sh").args(["-c", "echo hello; exit 3"]), |line| {
            seen.push(line.to_owned())
        });
        assert_eq!(seen, ["hello"]);
        assert!(!steps.finish(false));
    }
}
