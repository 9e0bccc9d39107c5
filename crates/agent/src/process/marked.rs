//! Processes found by the mark in their environment.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::MARK;

/// Kills every process that carries the mark.
pub(super) fn kill(mark: &str) {
    // One pass can miss a process that is being started by one which is not killed yet.
    for _ in 0..3 {
        let found = find(mark);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Processes that carry the mark and still run.
pub(super) fn find(mark: &str) -> Vec<Pid> {
    let entry = format!("{MARK}={mark}");
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.filter_map(|process| Pid::from_raw(process.ok()?.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| {
        // A zombie has no environment any more.
        fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).is_ok_and(|environ| {
            environ.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        })
    })
    .collect()
}
