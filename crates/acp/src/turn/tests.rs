//! Orders of events: a few that are known to go wrong elsewhere, and all others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use oarlock_agent::reduce::Task;
use oarlock_agent::stream::{AssistantError, Origin, SessionStateChanged, TaskStatus, TurnResult};
use proptest::prelude::*;

use super::*;

fn ended(answers: &[&str], result: Option<TurnResult>) -> Event {
    let answers = answers.iter().map(|uuid| (*uuid).to_owned()).collect();
    Event::TurnEnded(Box::new(TurnEnd { answers, result, ..TurnEnd::default() }))
}

fn success() -> Option<TurnResult> {
    Some(TurnResult { subtype: ResultKind::Success, ..TurnResult::default() })
}

fn self_started() -> Option<TurnResult> {
    success().map(|result| TurnResult { origin: Some(Origin::default()), ..result })
}

fn task(id: &str, change: TaskChange, kind: TaskType) -> Event {
    let task = Task {
        id: id.into(),
        tool_use_id: None,
        kind: Some(kind),
        subagent_type: None,
        description: String::new(),
        prompt: None,
        is_background: true,
        status: TaskStatus::Running,
        progress: None,
        last_tool_name: None,
        usage: None,
        summary: None,
        output_file: None,
        error: None,
    };
    Event::Task { change, task: Arc::new(task) }
}

fn agent(id: &str, change: TaskChange) -> Event {
    task(id, change, TaskType::LocalAgent)
}

/// A prompt that the CLI has.
fn sent(turns: &mut Turns, uuid: &str) {
    turns.prompt(uuid);
    turns.sent(uuid);
}

/// A message for the turn that runs, which the CLI has.
fn steered(turns: &mut Turns, uuid: &str) {
    turns.steer(uuid);
    turns.sent(uuid);
}

fn reasons(answers: Answers) -> Vec<(String, StopReason)> {
    let reason = |answer| match answer {
        Answer::Stopped(response) => response.stop_reason,
        Answer::Failed(error) => panic!("{error}"),
    };
    answers.into_iter().map(|(uuid, answer)| (uuid, reason(answer))).collect()
}

fn error(answers: Answers) -> ErrorObject {
    match <[_; 1]>::try_from(answers) {
        Ok([(_, Answer::Failed(error))]) => error,
        other => panic!("one error, not {other:?}"),
    }
}

#[test]
fn acp_prompt_01_a_result_answers_the_prompts_that_its_turn_has_read() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    sent(&mut turns, "b");
    turns.follow(&Event::TurnStarted);
    assert_eq!(
        reasons(turns.follow(&ended(&["a"], success()))),
        [("a".into(), StopReason::EndTurn)],
        "the other waits for its own turn"
    );
    turns.follow(&Event::TurnStarted);
    assert_eq!(reasons(turns.follow(&ended(&["b"], success()))), [("b".into(), StopReason::EndTurn)]);
    assert!(turns.is_idle());
}

#[test]
fn a_cli_that_does_not_tell_answers_the_oldest() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    sent(&mut turns, "b");
    turns.follow(&Event::TurnStarted);
    assert_eq!(reasons(turns.follow(&ended(&[], success()))), [("a".into(), StopReason::EndTurn)]);
}

#[test]
fn a_turn_that_the_cli_starts_by_itself_answers_nothing() {
    let mut turns = Turns::default();
    turns.follow(&Event::TurnStarted);
    sent(&mut turns, "a");
    assert!(turns.follow(&ended(&[], self_started())).is_empty());
    turns.follow(&Event::TurnStarted);
    assert_eq!(turns.follow(&ended(&["a"], success())).len(), 1);
}

#[test]
fn stop_reasons_are_told_apart() {
    let reason = |result: TurnResult| {
        let mut turns = Turns::default();
        sent(&mut turns, "a");
        turns.follow(&Event::TurnStarted);
        reasons(turns.follow(&ended(&["a"], Some(result))))[0].1
    };
    let kind = |subtype| TurnResult { subtype, is_error: true, ..TurnResult::default() };
    assert_eq!(reason(kind(ResultKind::ErrorMaxTurns)), StopReason::MaxTurnRequests);
    assert_eq!(reason(kind(ResultKind::ErrorMaxBudgetUsd)), StopReason::MaxTurnRequests);
    let stopped = |stop_reason| TurnResult { stop_reason: Some(stop_reason), ..success().expect("one") };
    assert_eq!(reason(stopped(stream::StopReason::MaxTokens)), StopReason::MaxTokens);
    assert_eq!(reason(stopped(stream::StopReason::Refusal)), StopReason::Refusal);
    let aborted = TurnResult {
        terminal_reason: Some(TerminalReason::AbortedTools),
        ..kind(ResultKind::ErrorDuringExecution)
    };
    assert_eq!(reason(aborted), StopReason::Cancelled, "a refusal may interrupt the turn");
}

#[test]
fn acp_prompt_02_an_error_of_the_api_is_the_answer_with_its_kind() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    let failure = ApiFailure {
        error: AssistantError::Overloaded,
        text: "API Error: 529 Overloaded".into(),
        status: Some(529),
        api_error_type: None,
        parent_tool_use_id: None,
        uuid: None,
    };
    turns.follow(&Event::ApiFailed(Box::new(failure.clone())));
    let result = TurnResult { is_error: true, result: Some(failure.text.clone()), ..success().expect("one") };
    let told = error(turns.follow(&ended(&["a"], Some(result.clone()))));
    assert_eq!((told.code, told.message.as_str()), (-32603, "API Error: 529 Overloaded"));
    assert_eq!(told.data.expect("data").get(), r#"{"errorKind":"overloaded","status":529}"#);

    sent(&mut turns, "b");
    turns.follow(&Event::TurnStarted);
    let login = ApiFailure { error: AssistantError::AuthenticationFailed, ..failure };
    turns.follow(&Event::ApiFailed(Box::new(login)));
    assert_eq!(error(turns.follow(&ended(&["b"], Some(result)))).code, -32000);
}

#[test]
fn caa_630_a_turn_without_a_result_is_answered_when_the_session_is_idle() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    assert!(error(turns.follow(&ended(&["a"], None))).message.contains("without a result"));
}

#[test]
fn acp_cancel_01_what_waits_is_over_at_once_and_what_runs_when_its_turn_ends() {
    let mut turns = Turns::default();
    sent(&mut turns, "runs");
    turns.follow(&Event::TurnStarted);
    turns.follow(&Event::MessageState { uuid: "runs".into(), state: CommandState::Started });
    sent(&mut turns, "queued");
    turns.prompt("waits");
    let cancel = turns.cancel();
    assert_eq!(reasons(cancel.answers), [("waits".into(), StopReason::Cancelled)]);
    assert_eq!((cancel.queued, cancel.interrupt), (vec!["queued".to_owned()], true));
    assert!(!turns.may_send(), "a new prompt must not be cancelled with the old ones");
    assert_eq!(reasons(turns.withdrawn("queued")), [("queued".into(), StopReason::Cancelled)]);
    assert!(turns.is_cancelling());
    assert_eq!(reasons(turns.follow(&ended(&["runs"], success()))), [("runs".into(), StopReason::Cancelled)]);
    assert!(turns.may_send() && turns.is_idle());
}

#[test]
fn a_turn_that_ends_while_it_is_cancelled_does_not_answer_what_it_has_not_read() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    sent(&mut turns, "b");
    turns.cancel();
    assert_eq!(reasons(turns.follow(&ended(&["a"], success()))), [("a".into(), StopReason::Cancelled)]);
    assert!(turns.is_cancelling(), "the other may begin yet");
    turns.follow(&Event::TurnStarted);
    assert_eq!(reasons(turns.follow(&ended(&["b"], success()))), [("b".into(), StopReason::Cancelled)]);
    assert!(turns.may_send());
}

#[test]
fn caa_551_a_cancel_when_idle_does_nothing_and_twice_is_once() {
    let mut turns = Turns::default();
    let cancel = turns.cancel();
    assert!(cancel.answers.is_empty() && !cancel.interrupt && turns.may_send());
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    assert!(turns.cancel().interrupt);
    turns.cancel();
    assert_eq!(turns.follow(&ended(&["a"], None)).len(), 1);
    assert!(turns.is_idle());
}

#[test]
fn a_message_that_was_withdrawn_before_its_turn_ends_the_cancel() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    assert_eq!(turns.cancel().queued, ["a"]);
    assert_eq!(turns.withdrawn("a").len(), 1);
    assert!(turns.may_send(), "no turn will end any more");
}

#[test]
fn a_cli_that_does_not_stop_is_not_waited_for() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    turns.cancel();
    assert_eq!(reasons(turns.give_up()), [("a".into(), StopReason::Cancelled)]);
    assert!(!turns.may_send(), "its turn still runs");
    assert!(turns.follow(&ended(&["a"], success())).is_empty(), "answered already");
    assert!(turns.may_send());
}

#[test]
fn a_cli_that_does_not_begin_is_not_sent_more() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.cancel();
    assert_eq!(reasons(turns.give_up()), [("a".into(), StopReason::Cancelled)]);
    assert!(turns.is_cancelling() && !turns.may_send(), "it may yet begin with what was cancelled");
    turns.prompt("b");
    turns.follow(&Event::TurnStarted);
    assert!(turns.follow(&ended(&["a"], success())).is_empty(), "answered already");
    assert!(turns.may_send());
    sent(&mut turns, "b");
    turns.cancel();
    turns.give_up();
    assert!(turns.withdrawn("b").is_empty() && turns.may_send(), "it has let go");
}

fn state(state: SessionState) -> Event {
    let changed = SessionStateChanged { state, ..Default::default() };
    Event::Other(Box::new(Message::System(System::SessionStateChanged(changed))))
}

#[test]
fn a_message_that_an_interrupt_swallowed_ends_the_cancel() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.cancel();
    assert!(turns.follow(&state(SessionState::Idle)).is_empty(), "that was before it");
    turns.follow(&state(SessionState::Running));
    assert!(turns.is_cancelling());
    assert_eq!(
        reasons(turns.follow(&state(SessionState::Idle))),
        [("a".into(), StopReason::Cancelled)],
        "it has nothing any more"
    );
    assert!(turns.may_send() && turns.is_idle());
}

#[test]
fn caa_336_a_turn_is_over_when_its_subagents_are_and_the_model_has_heard_of_it() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    turns.follow(&agent("t", TaskChange::Started));
    assert!(turns.follow(&ended(&["a"], success())).is_empty(), "held");
    assert!(!turns.is_idle());
    turns.follow(&agent("t", TaskChange::Ended));
    assert!(turns.awaits_wake());
    turns.follow(&Event::TurnStarted);
    assert!(!turns.awaits_wake());
    assert_eq!(reasons(turns.follow(&ended(&[], self_started()))), [("a".into(), StopReason::EndTurn)]);
}

#[test]
fn caa_871_a_steered_turn_is_over_when_the_message_was_read() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    steered(&mut turns, "read");
    assert_eq!(turns.follow(&ended(&["a", "read"], success())).len(), 1, "during the turn");
    sent(&mut turns, "b");
    turns.follow(&Event::TurnStarted);
    steered(&mut turns, "late");
    assert!(turns.follow(&ended(&["b"], success())).is_empty(), "another turn begins with it");
    turns.follow(&Event::TurnStarted);
    assert_eq!(reasons(turns.follow(&ended(&["late"], success()))), [("b".into(), StopReason::EndTurn)]);
    assert!(turns.is_idle());
}

#[test]
fn caa_1027_a_message_that_no_turn_reads_holds_an_answer_for_a_while() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    steered(&mut turns, "lost");
    assert!(turns.follow(&ended(&["a"], success())).is_empty());
    assert!(turns.is_steered() && turns.awaits_wake());
    assert_eq!(turns.release().len(), 1);
    assert!(!turns.is_steered() && turns.is_idle(), "it does not hold the next one");
}

#[test]
fn a_failure_of_a_turn_that_was_steered_into_being_is_told() {
    let mut turns = Turns::default();
    steered(&mut turns, "steering");
    turns.follow(&Event::TurnStarted);
    let failed = TurnResult { is_error: true, ..success().expect("one") };
    assert!(turns.follow(&ended(&["steering"], Some(failed))).is_empty());
    assert!(turns.take_unclaimed().is_some());
}

#[test]
fn zed_62488_a_command_in_the_background_holds_nothing() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    turns.follow(&task("t", TaskChange::Started, TaskType::LocalBash));
    assert_eq!(turns.follow(&ended(&["a"], success())).len(), 1);
}

#[test]
fn a_cancel_answers_what_is_held_and_stops_its_subagents() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.follow(&Event::TurnStarted);
    turns.follow(&agent("t", TaskChange::Started));
    turns.follow(&ended(&["a"], success()));
    let cancel = turns.cancel();
    assert_eq!(reasons(cancel.answers), [("a".into(), StopReason::Cancelled)]);
    assert_eq!((cancel.tasks, cancel.interrupt), (vec!["t".to_owned()], false));
    assert!(turns.is_idle());
}

#[test]
fn acp_prompt_03_the_end_of_the_cli_answers_what_it_had() {
    let mut turns = Turns::default();
    sent(&mut turns, "a");
    turns.prompt("waits");
    turns.follow(&Event::TurnStarted);
    let gone = ErrorObject::internal("gone");
    assert_eq!(error(turns.gone(&gone)).message, "gone");
    assert!(turns.may_send(), "the next CLI gets what waits");
    assert_eq!(turns.fail(&gone).len(), 1);
    assert!(turns.is_idle());
}

/// What may happen. The CLI of the model is one that the spec allows: it reads messages in order, several at once if it
/// likes, and each turn ends.
#[derive(Debug, Clone)]
enum Step {
    Prompt,
    Send,
    Steer { is_read: bool },
    StartTurn { reads: usize },
    EndTurn { tells: bool, has_result: bool },
    SelfTurn,
    StartAgent,
    EndAgent,
    Cancel,
    Withdraw,
    GiveUp,
    Die,
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Prompt),
        4 => Just(Step::Send),
        2 => any::<bool>().prop_map(|is_read| Step::Steer { is_read }),
        4 => (1..3_usize).prop_map(|reads| Step::StartTurn { reads }),
        4 => (any::<bool>(), prop::bool::weighted(0.9))
            .prop_map(|(tells, has_result)| Step::EndTurn { tells, has_result }),
        1 => Just(Step::SelfTurn),
        2 => Just(Step::StartAgent),
        2 => Just(Step::EndAgent),
        2 => Just(Step::Cancel),
        2 => Just(Step::Withdraw),
        1 => Just(Step::GiveUp),
        1 => Just(Step::Die),
        1 => Just(Step::Release),
    ]
}

#[derive(Default)]
struct Model {
    turns: Turns,
    next: usize,
    waiting: VecDeque<String>,
    /// In the CLI's queue.
    queued: VecDeque<String>,
    /// Read by the turn that runs.
    turn: Option<Vec<String>>,
    agents: Vec<String>,
    answered: BTreeMap<String, usize>,
    /// Answered although the CLI still has them.
    given_up: BTreeSet<String>,
}

impl Model {
    fn take(&mut self, answers: Answers) {
        for (uuid, _) in answers {
            *self.answered.entry(uuid).or_default() += 1;
        }
    }

    fn follow(&mut self, event: &Event) {
        let answers = self.turns.follow(event);
        self.take(answers);
    }

    fn end_turn(&mut self, tells: bool, has_result: bool) {
        let Some(read) = self.turn.take() else { return };
        // Without a result there is nothing to guess by.
        let unread: Vec<String> = self.queued.iter().cloned().collect();
        let is_steering = read.iter().any(|uuid| uuid.starts_with('s'));
        let told: Vec<&str> = if tells || !has_result || read.len() != 1 || is_steering {
            read.iter().map(String::as_str).collect()
        } else {
            vec![]
        };
        self.follow(&ended(&told, if has_result { success() } else { None }));
        for uuid in unread {
            assert!(
                !self.answered.contains_key(&uuid) || self.given_up.contains(&uuid),
                "{uuid} was not read"
            );
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Prompt => {
                let uuid = format!("p{}", self.next);
                self.next += 1;
                self.turns.prompt(&uuid);
                self.waiting.push_back(uuid);
            }
            Step::Send => {
                if self.turns.may_send()
                    && let Some(uuid) = self.waiting.pop_front()
                {
                    self.turns.sent(&uuid);
                    self.queued.push_back(uuid);
                }
            }
            Step::Steer { is_read } => {
                if self.turns.may_send()
                    && let Some(turn) = &mut self.turn
                {
                    let uuid = format!("s{}", self.next);
                    self.next += 1;
                    steered(&mut self.turns, &uuid);
                    if *is_read {
                        turn.push(uuid);
                    } else {
                        self.queued.push_back(uuid);
                    }
                }
            }
            Step::StartTurn { reads } => {
                if self.turn.is_none() && !self.queued.is_empty() {
                    let reads = (*reads).min(self.queued.len());
                    self.turn = Some(self.queued.drain(..reads).collect());
                    self.follow(&Event::TurnStarted);
                }
            }
            Step::EndTurn { tells, has_result } => self.end_turn(*tells, *has_result),
            Step::SelfTurn => {
                if self.turn.is_none() {
                    self.follow(&Event::TurnStarted);
                    self.follow(&ended(&[], self_started()));
                }
            }
            Step::StartAgent => {
                if self.turn.is_some() {
                    let id = format!("t{}", self.next);
                    self.next += 1;
                    self.follow(&agent(&id, TaskChange::Started));
                    self.agents.push(id);
                }
            }
            Step::EndAgent => {
                if let Some(id) = self.agents.pop() {
                    self.follow(&agent(&id, TaskChange::Ended));
                }
            }
            Step::Cancel => {
                let cancel = self.turns.cancel();
                self.waiting.clear();
                self.agents.retain(|id| !cancel.tasks.contains(id));
                self.take(cancel.answers);
            }
            Step::Withdraw => {
                if self.turns.is_cancelling()
                    && let Some(uuid) = self.queued.pop_front()
                {
                    let answers = self.turns.withdrawn(&uuid);
                    self.take(answers);
                }
            }
            Step::GiveUp => {
                if self.turns.is_cancelling() {
                    let answers = self.turns.give_up();
                    self.given_up.extend(answers.iter().map(|(uuid, _)| uuid.clone()));
                    self.take(answers);
                }
            }
            Step::Die => {
                let answers = self.turns.gone(&ErrorObject::internal("gone"));
                self.take(answers);
                self.queued.clear();
                self.turn = None;
                self.agents.clear();
            }
            Step::Release => {
                if self.turns.awaits_wake() {
                    let answers = self.turns.release();
                    self.take(answers);
                }
            }
        }
    }

    /// A CLI that does its work, and an actor that does its own.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.end_turn(true, true);
            while !self.agents.is_empty() {
                self.run(&Step::EndAgent);
            }
            while self.turns.is_cancelling() && !self.queued.is_empty() {
                self.run(&Step::Withdraw);
            }
            if self.turns.is_cancelling() {
                self.run(&Step::GiveUp);
            }
            self.run(&Step::Release);
            self.run(&Step::Send);
            self.run(&Step::StartTurn { reads: 1 });
            if self.turns.is_idle() {
                return;
            }
        }
        panic!("prompts are stuck: {:?}", self.turns);
    }
}

proptest! {
    #[test]
    fn acp_prompt_01_every_prompt_is_answered_exactly_once(
        steps in prop::collection::vec(step(), 0..60),
        closes in any::<bool>(),
    ) {
        let mut model = Model::default();
        for step in &steps {
            model.run(step);
            prop_assert!(model.answered.values().all(|times| *times == 1), "{:?}", model.answered);
        }
        if closes {
            let answers = model.turns.close();
            model.take(answers);
        } else {
            model.settle();
        }
        let prompts = steps.iter().filter(|step| matches!(step, Step::Prompt)).count();
        prop_assert_eq!(model.answered.len(), prompts);
        prop_assert!(model.answered.values().all(|times| *times == 1));
    }
}
