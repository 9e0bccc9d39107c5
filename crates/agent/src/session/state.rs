//! What is known about a session, and the rule by which its input may be closed.
//!
//! # When stdin may be closed
//!
//! Once stdin is closed the CLI can ask nothing more: permissions, hooks and in-process tools fail with "Stream closed".
//! So it must not be closed at the first `result`: a background task may still run, and its end starts another turn.
//! When it is never closed, a one-shot program hangs. The rule, for a program that has no more to say:
//!
//! 1. Every message that was sent has been taken up: replayed, or its `command_lifecycle` is over.
//! 2. The session is idle (`session_state_changed`; a `result` for a CLI that does not say).
//! 3. No task runs (`task_started` without its `task_notification`), and none of the program's callbacks.
//! 4. No turn is owed: a background task that has ended wakes the model, so the turn with that `origin` is awaited.
//!
//! Then stdin is closed at once. When 1 or 4 alone do not hold the session must have been quiet for [`SETTLE`]: a CLI may
//! drop a message (an interrupt) or not wake the model. A busy machine may let a CLI read late, so a message that no turn
//! has followed yet is given the time of a control request (`request_timeout`). A task that never ends holds stdin open for the
//! option `background_wait` at most.
//!
//! A CLI that works on after that is not cut short: only one that is idle and does not end is terminated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::stream::{CommandState, Message, PermissionMode, SessionState, System, TaskType};

/// How long a session must be quiet when it is not sure that all is done. A message that nothing at all was heard of has
/// the time of a control request.
pub(crate) const SETTLE: Duration = Duration::from_millis(1500);

/// What is known about a session, from all that the CLI has said.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct State {
    /// The session's id; `/clear` changes it.
    pub session_id: Option<String>,
    /// The model in use.
    pub model: Option<String>,
    /// The permission mode in force.
    pub permission_mode: Option<PermissionMode>,
    /// What the CLI does.
    pub phase: Phase,
    /// Tasks that run: subagents, commands in the background, and commands that take long.
    pub tasks: BTreeMap<String, Task>,
    /// What this CLI can do, as it says.
    pub capabilities: BTreeSet<String>,
    /// Its version.
    pub version: Option<String>,
}

/// What the CLI does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It waits for a message.
    #[default]
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for an answer of the program's.
    RequiresAction,
}

/// Work that may outlive its turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// The call that started it.
    pub tool_use_id: Option<String>,
    /// What it does.
    pub description: String,
    /// `local_bash`, `local_agent`, …
    pub kind: Option<TaskType>,
    /// Does the turn go on without it? Older CLIs do not say.
    pub in_background: Option<bool>,
}

/// May stdin be closed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// No.
    NotYet,
    /// Only a background task stands in the way.
    AfterTasks,
    /// When nothing happens for a while.
    AfterSettling,
    /// When the CLI does not take up what it was sent, although it had the time.
    Unheard,
    /// Yes.
    Now,
}

/// Follows a session.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) state: State,
    /// Messages that were sent and not yet taken up.
    sent: BTreeSet<String>,
    /// One was sent to an idle session, and no turn has begun since.
    unheard: bool,
    /// The CLI tells its state, so results need not be taken for it.
    tells_state: bool,
    /// A background task has ended, and the turn that tells the model has not yet come.
    wake_owed: bool,
    /// The last result was an error: the CLI exits with 1 then.
    pub(crate) last_result_failed: bool,
    /// The errors of a result that came before anything was asked: why the session could not begin.
    pub(crate) errors: Vec<String>,
}

impl Tracker {
    /// A message is on its way.
    pub(crate) fn sent(&mut self, uuid: &str) {
        self.sent.insert(uuid.to_owned());
        self.unheard |= self.state.phase == Phase::Idle;
    }

    /// Is there a message whose replay is awaited?
    pub(crate) fn awaits_replay(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Takes what the CLI says. `true`: the state has changed.
    pub(crate) fn follow(&mut self, message: &Message) -> bool {
        match message {
            Message::User(user) => {
                if let Some(uuid) = user.uuid.as_deref().filter(|_| user.is_replay == Some(true)) {
                    self.sent.remove(uuid);
                }
                false
            }
            Message::CommandLifecycle(life) => {
                if !matches!(life.state, CommandState::Queued) {
                    self.sent.remove(&life.command_uuid);
                }
                false
            }
            Message::Result(result) => {
                self.last_result_failed = result.is_error;
                self.errors = result.errors.clone().unwrap_or_default();
                self.unheard = false;
                if result.origin.is_some() {
                    self.wake_owed = false;
                }
                if let Some(uuids) = &result.user_message_uuids {
                    self.sent.retain(|sent| !uuids.contains(sent));
                }
                if !self.tells_state {
                    self.state.phase = Phase::Idle;
                }
                true
            }
            Message::System(system) => self.follow_system(system),
            _ => false,
        }
    }

    fn follow_system(&mut self, system: &System) -> bool {
        let state = &mut self.state;
        match system {
            System::Init(init) => {
                state.session_id = init.session_id.clone().or(state.session_id.take());
                state.model = Some(init.model.clone());
                state.permission_mode = Some(init.permission_mode.clone());
                state.version = Some(init.claude_code_version.clone());
                state.capabilities.extend(init.capabilities.iter().flatten().cloned());
                self.unheard = false;
                if !self.tells_state {
                    state.phase = Phase::Running;
                }
            }
            System::Status(status) => match &status.permission_mode {
                Some(mode) => state.permission_mode = Some(mode.clone()),
                None => return false,
            },
            System::SessionStateChanged(changed) => {
                self.tells_state = true;
                state.phase = match changed.state {
                    SessionState::Idle => Phase::Idle,
                    SessionState::RequiresAction => Phase::RequiresAction,
                    _ => Phase::Running,
                };
                self.unheard &= state.phase == Phase::Idle;
            }
            System::TaskStarted(started) => {
                let task = Task {
                    tool_use_id: started.tool_use_id.clone(),
                    description: started.description.clone(),
                    kind: started.task_type.clone(),
                    in_background: started.is_backgrounded,
                };
                state.tasks.insert(started.task_id.clone(), task);
            }
            System::TaskUpdated(updated) => {
                let Some(task) = state.tasks.get_mut(&updated.task_id) else { return false };
                if let Some(backgrounded) = updated.patch.is_backgrounded {
                    task.in_background = Some(backgrounded);
                }
                // Its end is told by the notification, which always follows.
            }
            System::TaskNotification(notification) => {
                let Some(task) = state.tasks.remove(&notification.task_id) else { return false };
                // One that has outlived its turn wakes the model; one that runs inside of it does not.
                if task.in_background == Some(true) || state.phase == Phase::Idle {
                    self.wake_owed = true;
                }
            }
            System::BackgroundTasksChanged(changed) => {
                // The list is whole: what is no longer on it has ended, although nobody may have said so (`/clear`).
                let owed = &mut self.wake_owed;
                state.tasks.retain(|id, task| {
                    if changed.tasks.iter().any(|listed| listed.task_id == *id) {
                        task.in_background = Some(true);
                        return true;
                    }
                    let ended = task.in_background == Some(true);
                    *owed |= ended;
                    !ended
                });
            }
            _ => return false,
        }
        true
    }

    /// May stdin be closed, with so many callbacks running?
    pub(crate) fn closing(&self, callbacks: usize) -> Closing {
        if self.state.phase != Phase::Idle || callbacks > 0 {
            Closing::NotYet
        } else if !self.state.tasks.is_empty() {
            Closing::AfterTasks
        } else if self.unheard && !self.sent.is_empty() {
            Closing::Unheard
        } else if self.wake_owed || !self.sent.is_empty() {
            Closing::AfterSettling
        } else {
            Closing::Now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::decode;

    fn follow(tracker: &mut Tracker, lines: &[&str]) {
        for line in lines {
            tracker.follow(&decode(line.as_bytes()).unwrap());
        }
    }

    const RUNNING: &str = r#"{"type":"system","subtype":"session_state_changed","state":"running"}"#;
    const IDLE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;
    const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false}"#;
    const WOKEN: &str =
        r#"{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}"#;
    const STARTED: &str = r#"{"type":"system","subtype":"task_started","task_id":"t","tool_use_id":"u","task_type":"local_bash"}"#;
    const ENDED: &str =
        r#"{"type":"system","subtype":"task_notification","task_id":"t","status":"completed"}"#;

    #[test]
    fn a_plain_turn_closes_when_it_is_idle_and_not_before() {
        let mut tracker = Tracker::default();
        tracker.sent("m");
        assert_eq!(tracker.closing(0), Closing::Unheard, "the message may not have been read");
        follow(&mut tracker, &[RUNNING]);
        assert_eq!(tracker.closing(0), Closing::NotYet);
        follow(&mut tracker, &[r#"{"type":"user","isReplay":true,"uuid":"m","message":{}}"#, RESULT]);
        assert_eq!(tracker.closing(0), Closing::NotYet, "a result is not the end");
        follow(&mut tracker, &[IDLE]);
        assert_eq!(tracker.closing(0), Closing::Now);
        assert_eq!(tracker.closing(1), Closing::NotYet, "a callback runs");
    }

    #[test]
    fn a_cli_that_does_not_tell_its_state_closes_at_the_result() {
        let mut tracker = Tracker::default();
        follow(&mut tracker, &[r#"{"type":"system","subtype":"init","session_id":"s"}"#]);
        assert_eq!(tracker.closing(0), Closing::NotYet);
        follow(&mut tracker, &[RESULT]);
        assert_eq!(tracker.closing(0), Closing::Now);
    }

    #[test]
    fn background_work_keeps_it_open_until_the_model_has_been_told() {
        let mut tracker = Tracker::default();
        follow(&mut tracker, &[RUNNING, STARTED, RESULT, IDLE]);
        assert_eq!(tracker.closing(0), Closing::AfterTasks);
        follow(&mut tracker, &[ENDED]);
        assert_eq!(tracker.closing(0), Closing::AfterSettling, "the turn is owed");
        follow(&mut tracker, &[RUNNING, WOKEN, IDLE]);
        assert_eq!(tracker.closing(0), Closing::Now);
    }

    #[test]
    fn work_inside_a_turn_owes_none() {
        let mut tracker = Tracker::default();
        follow(&mut tracker, &[RUNNING, STARTED, ENDED, RESULT, IDLE]);
        assert_eq!(tracker.closing(0), Closing::Now);
    }

    #[test]
    fn a_background_task_that_ends_inside_its_turn_owes_one() {
        let mut tracker = Tracker::default();
        let listed = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"}]}"#;
        follow(&mut tracker, &[RUNNING, STARTED, listed, ENDED, RESULT, IDLE]);
        assert_eq!(tracker.closing(0), Closing::AfterSettling);
    }

    #[test]
    fn a_background_task_that_is_no_longer_listed_holds_nothing_open() {
        let mut tracker = Tracker::default();
        let listed = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t"}]}"#;
        let none = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[]}"#;
        follow(&mut tracker, &[RUNNING, STARTED, none]);
        assert!(tracker.state.tasks.contains_key("t"), "it runs in the foreground");
        follow(&mut tracker, &[listed, none, RESULT, IDLE]);
        assert!(tracker.state.tasks.is_empty());
        assert_eq!(tracker.closing(0), Closing::AfterSettling, "a turn may follow");
    }

    #[test]
    fn the_life_of_a_message_counts_as_its_replay() {
        let mut tracker = Tracker::default();
        tracker.sent("m");
        follow(&mut tracker, &[r#"{"type":"command_lifecycle","command_uuid":"m","state":"queued"}"#]);
        assert!(tracker.awaits_replay());
        follow(&mut tracker, &[r#"{"type":"command_lifecycle","command_uuid":"m","state":"started"}"#]);
        assert!(!tracker.awaits_replay());
    }
}
