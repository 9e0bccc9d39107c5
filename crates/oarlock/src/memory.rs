//! Keeping a long-lived process small.

/// Makes the allocator give large blocks back to the system at once.
///
/// glibc raises its threshold for own mappings after the first large block is freed, and then keeps tens of megabytes
/// after one 10 MiB diff. A fixed threshold keeps an engine at its floor. One arena is enough for one busy thread.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
pub(crate) fn return_large_blocks() {
    // SAFETY: mallopt only sets parameters of the allocator; it is called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 256 * 1024);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_large_blocks() {}
