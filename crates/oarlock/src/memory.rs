//! Keeping a long-lived process small.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// How long after a large message its memory is given back. Until then the next one finds it warm.
const DELAY: Duration = Duration::from_millis(500);

/// Gives memory back to the system some time after it was needed.
///
/// glibc keeps tens of megabytes after one 10 MiB diff. Making it map every large block anew would keep the process
/// small too, but then each diff pays for fresh pages several times over.
pub(crate) struct Trim {
    wanted: Arc<Notify>,
}

impl Trim {
    pub(crate) fn new() -> Self {
        keep_warm();
        Self { wanted: Arc::new(Notify::new()) }
    }

    /// Says that something large was freed.
    pub(crate) fn soon(&self) -> impl Fn() + Send + Sync + use<> {
        let wanted = self.wanted.clone();
        move || wanted.notify_one()
    }

    /// Gives memory back whenever it is worth it, for ever.
    pub(crate) async fn run(self) {
        loop {
            self.wanted.notified().await;
            tokio::time::sleep(DELAY).await;
            give_back();
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

/// One arena for all threads: one of them is busy, and others would each keep memory of their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
pub(crate) fn share_one_arena() {
    // SAFETY: mallopt only sets parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
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

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn keep_warm() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share_one_arena() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
