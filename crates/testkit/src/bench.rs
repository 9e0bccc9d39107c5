//! What the benchmarks share: bars and how they are told, what a process costs, and the machine it was measured on.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

/// One promise and what became of it.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What was promised.
    pub what: String,
    /// What was measured.
    pub value: f64,
    /// What it has to keep.
    pub limit: Limit,
    /// What is counted.
    pub unit: &'static str,
}

/// What a figure has to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// It is at least this.
    Least(f64),
    /// It is at most this.
    Most(f64),
    /// It is at most one part in so many.
    Part(f64),
}

impl Bar {
    /// Is it kept? A figure that is missing (NaN) keeps nothing.
    pub fn holds(&self) -> bool {
        match self.limit {
            Limit::Least(least) => self.value >= least,
            Limit::Most(most) => self.value <= most,
            Limit::Part(of) => self.value <= 1.0 / of,
        }
    }
}

/// The bar as a row of a table.
impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, limit, unit } = self;
        write!(f, "| {what} | ")?;
        match limit {
            Limit::Least(least) => write!(f, "{value:.2} | at least {least} {unit}")?,
            Limit::Most(most) => write!(f, "{value:.2} | at most {most} {unit}")?,
            Limit::Part(of) => write!(f, "1/{:.1} | at most 1/{of}", 1.0 / value)?,
        }
        write!(f, " | {} |", if self.holds() { "PASS" } else { "FAIL" })
    }
}

/// All bars as a table.
pub fn table(bars: &[Bar]) -> String {
    let rows: String = bars.iter().map(|bar| format!("{bar}\n")).collect();
    format!("| bar | measured | wanted | |\n| --- | --- | --- | --- |\n{rows}")
}

/// The program that is measured: the one that ships, which `cargo xtask bench` builds and names in `OARLOCK_PROGRAM`. What
/// cargo builds beside a benchmark has the features of the tests' dependencies in it.
pub fn program(beside: &str) -> PathBuf {
    std::env::var_os("OARLOCK_PROGRAM").map_or_else(|| PathBuf::from(beside), PathBuf::from)
}

/// The day and the machine, for the head of a page.
pub fn setting() -> Result<String> {
    let date = Command::new("date").args(["-u", "+%F"]).output().context("failed to run date")?.stdout;
    let date = String::from_utf8_lossy(&date);
    let cores = std::thread::available_parallelism()?;
    Ok(format!("{}, {cores} cores, {} {}", date.trim(), std::env::consts::OS, std::env::consts::ARCH))
}

/// Tells when the machine is busy: everything waits for a core then, and ratios to what waits anyway say little.
#[allow(clippy::print_stderr, reason = "a benchmark reports on the terminal")]
pub fn warn_of_load() {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    if load > 0.5 {
        eprintln!("the load of this machine is {load}: the figures will be off");
    }
}

/// CPU time that all threads of a process have used, of those that are alive. `/proc/PID/stat` would include threads that
/// ended, but counts in hundredths of a second.
pub fn cpu(pid: u32) -> Result<Duration> {
    let mut total = 0;
    for task in fs::read_dir(proc(pid).join("task"))? {
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        total += text.split(' ').next().unwrap_or_default().parse::<u64>().context("schedstat")?;
    }
    Ok(Duration::from_nanos(total))
}

/// Resident memory of a process, in bytes.
pub fn resident(pid: u32) -> Result<u64> {
    memory(pid, "VmRSS:")
}

/// The most memory that a process has had resident, in bytes.
pub fn peak(pid: u32) -> Result<u64> {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(proc(pid).join("status"))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix(field)).with_context(|| format!("no {field}"))?;
    Ok(kib.trim().trim_end_matches(" kB").parse::<u64>().context("a number of kB")? * 1024)
}

fn proc(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_tells_whether_it_holds() {
        let bar = |value, limit| Bar { what: "it".into(), value, limit, unit: "MB" };
        assert_eq!(bar(7.0, Limit::Most(8.0)).to_string(), "| it | 7.00 | at most 8 MB | PASS |");
        assert_eq!(bar(7.0, Limit::Least(8.0)).to_string(), "| it | 7.00 | at least 8 MB | FAIL |");
        assert_eq!(bar(0.04, Limit::Part(20.0)).to_string(), "| it | 1/25.0 | at most 1/20 | PASS |");
        for limit in [Limit::Most(8.0), Limit::Least(8.0), Limit::Part(8.0)] {
            assert!(!bar(f64::NAN, limit).holds());
        }
    }

    #[test]
    fn a_process_costs_something() {
        let me = std::process::id();
        // Which of the two is more is not sure: the system counts one of them now and then only.
        assert!(resident(me).unwrap() > 100_000 && peak(me).unwrap() > 100_000);
        assert!(cpu(me).unwrap() > Duration::ZERO);
        assert!(resident(0).is_err());
    }
}
