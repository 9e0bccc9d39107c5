//! Keeping a long-lived process small.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// How long a start takes, and more. Nobody finds warm what only that needed.
const START: Duration = Duration::from_millis(200);
/// How long after it was needed memory is given back. Until then the next message finds it warm.
const DELAY: Duration = Duration::from_millis(500);

/// Gives memory back to the system some time after it was needed: first after the start, then whenever it is told.
///
/// glibc keeps tens of megabytes after one 10 MiB diff. Making it map every large block anew would keep the process
/// small too, but then each diff pays for fresh pages several times over. And most of a process that waits is its own
/// program: pages of code that its start, or the last turn, has passed through.
pub(crate) struct Trim {
    wanted: Arc<Notify>,
}

impl Trim {
    pub(crate) fn new() -> Self {
        keep_warm();
        Self { wanted: Arc::new(Notify::new()) }
    }

    /// Says that much of what was in use no longer is.
    pub(crate) fn soon(&self) -> impl Fn() + Send + Sync + use<> {
        let wanted = self.wanted.clone();
        move || wanted.notify_one()
    }

    /// Gives memory back whenever it is worth it, for ever.
    pub(crate) async fn run(self) -> Infallible {
        tokio::time::sleep(START).await;
        loop {
            give_back();
            let_go_of_code();
            self.wanted.notified().await;
            tokio::time::sleep(DELAY).await;
        }
    }
}

/// Lets the allocator keep what was freed until [`give_back`] is called. One arena is enough for one busy thread; others
/// would each keep memory of their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
fn keep_warm() {
    // SAFETY: mallopt only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 128 << 20);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "malloc_trim has no safe wrapper")]
fn give_back() {
    // SAFETY: malloc_trim only returns free pages of the allocator to the system.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Takes the pages of code out of this process. Those it still needs come back by themselves, from the file's pages that
/// the system has, in some tens of microseconds for all.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "madvise has no safe wrapper")]
fn let_go_of_code() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, end) in maps.lines().filter_map(code_of_a_file) {
        // SAFETY: the range is a mapping of a file that has never been writable, so its pages are those of the file, and
        // are the same when they come back.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED);
        }
    }
}

/// The range of a line of `/proc/self/maps`, if it is executable, not writable, and of a file.
#[cfg(target_os = "linux")]
fn code_of_a_file(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    if words.next()? != "r-xp" || !words.nth(3)?.starts_with('/') {
        return None;
    }
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// Other systems are left to do so by themselves.
#[cfg(not(target_os = "linux"))]
fn let_go_of_code() {}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_warm() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_let_go() {
        let code = "7f00-7f80 r-xp 00001000 08:01 42   /usr/lib/libc.so.6";
        assert_eq!(code_of_a_file(code), Some((0x7f00, 0x7f80)));
        for other in [
            "7f00-7f80 r--p 00001000 08:01 42   /usr/lib/libc.so.6",
            "7f00-7f80 rwxp 00001000 08:01 42   /usr/lib/libc.so.6",
            "7f00-7f80 r-xp 00000000 00:00 0    [vdso]",
            "7f00-7f80 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code_of_a_file(other), None, "{other}");
        }
    }

    /// The process goes on, and is smaller.
    #[test]
    fn code_comes_back_when_it_is_needed() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
        };
        // Pages of code that nothing else here uses.
        let parsed: serde_json::Value = serde_json::from_str(r#"{"a":[1,2.5,"x"]}"#).unwrap();
        let before = resident();
        let_go_of_code();
        let after = resident();
        assert!(after < before, "{before} kB, then {after} kB");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&parsed.to_string()).unwrap(), parsed);
    }
}
