//! Facts about other processes.

use std::path::PathBuf;

/// Whether a process with this id runs. One that belongs to somebody else counts; a zombie, which runs no more and
/// only waits for its parent, does not (on Linux, where it can be told).
///
/// Off Unix there is no cheap way to ask: every id but 0 counts as alive, so that nothing of a living process is ever
/// cleared away, at the price of leftovers.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    exists(pid) && !stat(pid).is_some_and(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Whether the system knows a process with this id, be it a zombie. This is what the CLI asks.
#[must_use]
pub fn exists(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        id.is_some_and(|id| match rustix::process::test_kill_process(id) {
            Ok(()) => true,
            Err(error) => error == rustix::io::Errno::PERM,
        })
    }
    #[cfg(not(unix))]
    {
        pid != 0
    }
}

/// The current directory of a process, where the system tells: on Linux, and only for processes of the same user.
#[must_use]
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    if cfg!(target_os = "linux") { std::fs::read_link(format!("/proc/{pid}/cwd")).ok() } else { None }
}

/// The parent of a process, its parent, and so on, nearest first. `None` where the system does not tell (off Linux).
#[must_use]
pub fn ancestors(pid: u32) -> Option<Vec<u32>> {
    let mut line = Vec::new();
    let mut parent = stat(pid)?.parent;
    // The chain is read while processes come and go, so a reused id must not make it endless.
    while parent != 0 && !line.contains(&parent) {
        line.push(parent);
        parent = stat(parent).map_or(0, |stat| stat.parent);
    }
    Some(line)
}

struct Stat {
    state: char,
    parent: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    // The second field is the program's name in brackets; it may hold blanks and brackets itself.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_here_and_has_a_parent() {
        let me = std::process::id();
        assert!(is_alive(me));
        assert_eq!(working_directory(me).unwrap(), std::env::current_dir().unwrap());
        assert_eq!(ancestors(me).unwrap()[0], std::os::unix::process::parent_id());
    }

    #[test]
    fn ids_that_cannot_be_are_dead() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert!(!is_alive(pid), "{pid}");
            assert_eq!(working_directory(pid), None);
            assert_eq!(ancestors(pid), None);
        }
    }

    #[test]
    fn a_killed_process_is_dead_before_its_parent_asks() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(is_alive(pid));
        child.kill().unwrap();
        // The kill is asynchronous; the zombie stays until `wait`, so this loop ends only by telling it apart.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while is_alive(pid) && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(!is_alive(pid) && exists(pid));
        child.wait().unwrap();
        assert!(!is_alive(pid) && !exists(pid));
    }
}
