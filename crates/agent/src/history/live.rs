//! Which sessions are open in a running `claude`.

use std::path::PathBuf;

use serde::Deserialize;

use super::Library;

/// A session that a running process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// The process.
    pub pid: u32,
    /// The session.
    pub session: String,
    /// Where the process was started.
    pub cwd: Option<PathBuf>,
    /// `busy`, `idle`; not every version says.
    pub status: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    pid: u32,
    session_id: String,
    cwd: Option<PathBuf>,
    status: Option<String>,
    /// When the process started, so that a later one with its number is not taken for it.
    proc_start: Option<String>,
    /// The processes among which the number means something.
    pid_domain: Option<String>,
}

impl Library {
    /// The sessions that are open. What a killed process has left behind does not count.
    #[must_use]
    pub fn live(&self) -> Vec<Live> {
        let notes = std::fs::read_dir(self.config_dir().join("sessions")).into_iter().flatten().flatten();
        let mut live: Vec<Live> = notes
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
            .filter_map(|entry| serde_json::from_slice::<Note>(&std::fs::read(entry.path()).ok()?).ok())
            .filter(is_running)
            .map(|note| Live { pid: note.pid, session: note.session_id, cwd: note.cwd, status: note.status })
            .collect();
        live.sort_by_key(|live| live.pid);
        live
    }

    /// The process that has a session open.
    #[must_use]
    pub fn live_session(&self, id: &str) -> Option<Live> {
        self.live().into_iter().find(|live| live.session.eq_ignore_ascii_case(id))
    }
}

/// In doubt it runs: the answer guards against deleting what is in use.
#[cfg(unix)]
fn is_running(note: &Note) -> bool {
    use rustix::process::{Pid, test_kill_process};

    if elsewhere(note) {
        return true;
    }
    let Some(pid) = i32::try_from(note.pid).ok().and_then(Pid::from_raw) else { return false };
    if matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)) {
        return false;
    }
    match (&note.proc_start, started(note.pid)) {
        (Some(noted), Some(actual)) => *noted == actual,
        _ => true,
    }
}

#[cfg(not(unix))]
fn is_running(_: &Note) -> bool {
    true
}

/// Was the note written in another container, where numbers of processes mean others?
#[cfg(unix)]
fn elsewhere(note: &Note) -> bool {
    let Some((_, theirs)) = note.pid_domain.as_deref().and_then(|domain| domain.rsplit_once(":pid:")) else {
        return false;
    };
    let ours = std::fs::read_link("/proc/self/ns/pid").ok();
    ours.is_some_and(|ours| ours.to_string_lossy() != format!("pid:{theirs}"))
}

/// When a process started, in the kernel's ticks.
#[cfg(unix)]
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets and may hold anything; the start is the 20th after it.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(str::to_owned)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn note(library: &Library, name: &str, text: String) {
        let dir = library.config_dir().join("sessions");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
    }

    #[test]
    fn only_running_processes_hold_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::at(dir.path());
        assert_eq!(library.live(), []);
        let me = std::process::id();
        let start = started(me).unwrap();
        note(
            &library,
            "1.json",
            format!(r#"{{"pid":{me},"sessionId":"a","procStart":"{start}","status":"idle"}}"#),
        );
        note(&library, "2.json", format!(r#"{{"pid":{me},"sessionId":"reused","procStart":"1"}}"#));
        note(&library, "3.json", r#"{"pid":4194305,"sessionId":"gone"}"#.into());
        note(&library, "4.json", "half a no".into());
        note(&library, "5.json", format!(r#"{{"pid":{me},"sessionId":"old"}}"#));
        note(
            &library,
            "6.json",
            r#"{"pid":4194305,"sessionId":"elsewhere","pidDomain":"linux:x:pid:[1]"}"#.into(),
        );
        note(&library, "1.abc.key", format!(r#"{{"pid":{me},"sessionId":"key"}}"#));
        let mut live: Vec<String> = library.live().into_iter().map(|live| live.session).collect();
        live.sort();
        assert_eq!(live, ["a", "elsewhere", "old"]);
        assert_eq!(library.live_session("A").unwrap().status.as_deref(), Some("idle"));
    }
}
