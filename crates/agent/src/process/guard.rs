//! A guard that ends our CLIs when we cannot: after a SIGKILL nobody runs `Drop`.
//!
//! It is one small shell for the whole program, started with the first session. It reads which sessions there are from a
//! pipe, and when that pipe ends, because we have ended in whatever way, it kills what is left of them. A session that
//! has ended by itself is taken from its list.

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// `+ mark pid` and `- mark`, one a line. At the end of the input each marked process is killed, and the groups too, for
/// systems without `/proc`.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
list=
while read -r what mark pid; do
  case $what in
    +) list="$list $mark:$pid" ;;
    -) kept=
       for entry in $list; do [ "${entry%%:*}" = "$mark" ] || kept="$kept $entry"; done
       list=$kept ;;
  esac
done
[ -n "$list" ] || exit 0
for round in 1 2 3; do
  for entry in $list; do
    mark=${entry%%:*}
    for environ in /proc/[0-9]*/environ; do
      if tr '\0' '\n' < "$environ" 2>/dev/null | grep -qx "OARLOCK_AGENT_PROCESS=$mark"; then
        process=${environ#/proc/}
        kill -9 "${process%/environ}" 2>/dev/null
      fi
    done
    [ "$round" = 1 ] && kill -9 "-${entry##*:}" 2>/dev/null
  done
done
"#;

static GUARD: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// A session that the guard watches.
pub(super) struct Watch {
    mark: String,
}

/// Has a session watched. `None`: there is no shell, so only a clean end cleans up.
pub(super) fn watch(mark: &str, pid: Option<u32>) -> Option<Watch> {
    if cfg!(windows) {
        // A job object does this work there.
        return None;
    }
    let line = format!("+ {mark} {}\n", pid?);
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    // The guard may have been killed by somebody; then another takes its place.
    for _ in 0..2 {
        if guard.is_none() {
            *guard =
                start().inspect_err(|error| tracing::warn!(%error, "no guard for the CLI's processes")).ok();
        }
        if guard.as_mut()?.write_all(line.as_bytes()).is_ok() {
            return Some(Watch { mark: mark.to_owned() });
        }
        *guard = None;
    }
    None
}

impl Watch {
    /// The session is over, nothing of it need be killed.
    pub(super) fn release(self) {
        let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = guard.as_mut() {
            let _ = pipe.write_all(format!("- {}\n", self.mark).as_bytes());
        }
    }
}

fn start() -> std::io::Result<ChildStdin> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").current_dir("/");
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // Away from the terminal's group, so that Ctrl-C does not reach it.
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let Some(pipe) = child.stdin.take() else { unreachable!("it was asked for") };
    // Nobody waits for it: it ends after us.
    Ok(pipe)
}
