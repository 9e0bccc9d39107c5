//! A network namespace of its own for the whole test process, with loopback and nothing else.
//!
//! The real CLI must never reach a real network from a test. So the test's `main` calls [`enter`] first: it starts
//! the same program again under `unshare` and returns only inside.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::install;

/// Says to the program started again that it should already be inside.
const MARK: &str = "OARLOCK_TEST_CAGE";

/// Whether this process is the one that was started again inside the cage.
#[must_use]
pub fn entered() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Makes sure that this process sees no network but loopback. Outside the cage, the program is replaced by itself
/// inside it, with the same arguments, and this call does not return unless it fails.
pub fn enter() -> Result<()> {
    if entered() {
        return verify();
    }
    // `ip` brings loopback up.
    if let Err(why) = install::require(&[&["ip", "-V"]], &["iproute2"]) {
        bail!("{why}; without it loopback cannot be brought up in the cage");
    }
    match start_again()? {}
}

/// Checks that loopback is up and is the only interface.
fn verify() -> Result<()> {
    // Not /sys/class/net: it belongs to the namespace in which /sys was mounted.
    let table = std::fs::read_to_string("/proc/self/net/dev").context("failed to read /proc/self/net/dev")?;
    let interfaces = interfaces(&table);
    ensure!(
        interfaces == ["lo"],
        "the cage has the network interfaces {interfaces:?} instead of loopback alone; unset {MARK} and try again"
    );
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| std::net::TcpStream::connect(listener.local_addr()?))
        .context("loopback does not work inside the cage; `ip link set lo up` must have failed")?;
    Ok(())
}

/// The interfaces that /proc/net/dev lists.
fn interfaces(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect()
}

fn start_again() -> Result<Infallible> {
    let program = std::env::current_exe().context("failed to find this program's own path")?;
    // Without root, a user namespace gives the right to make a network namespace.
    let unshare = ["-n", "-rn"].into_iter().find(|flags| {
        let probe = Command::new("unshare").args([flags, "ip", "link", "set", "lo", "up"]).output();
        probe.is_ok_and(|output| output.status.success())
    });
    let Some(flags) = unshare else {
        bail!(
            "neither `unshare -n` nor `unshare -rn` may make a network namespace here, and the real CLI is not run \
             outside one; run the tests as root, or allow unprivileged user namespaces"
        );
    };
    let error = Command::new("unshare")
        .arg(flags)
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "cage"])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .exec();
    Err(error).context("failed to start this program again under `unshare`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_read_from_the_kernels_table() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 0 0\n  eth0: 12 3\n";
        assert_eq!(interfaces(table), ["lo", "eth0"]);
    }
}
