//! Which prompt is answered when, and with what.
//!
//! A pure state machine. A prompt waits (the CLI is not up, or a cancel is under way), is sent, and is answered by exactly one
//! of:
//!
//! - the `result` of the turn that read it;
//! - that turn's end without a result (the session was idle again);
//! - a cancel: at once while it waits, else when the turn has ended, else when [the wait for that](Turns::give_up) is over;
//! - the CLI's end, or the session's.
//!
//! What is said to a turn that runs is a prompt like any other, except that nobody waits for its answer.
//!
//! A turn that has started subagents in the background is not over for the client before they are: the answer is held until
//! they have ended and the turn in which the CLI tells the model of it has, too. Commands in the background hold nothing.
//! Nor is a turn over that was to be steered by a message which the CLI has not read: the CLI begins another one with it.

use std::collections::BTreeSet;

use oarlock_agent::reduce::{ApiFailure, Event, TaskChange, TurnEnd};
use oarlock_agent::stream::{
    self, CommandState, Message, ResultKind, SessionState, System, TaskType, TerminalReason,
};
use oarlock_proto::acp::{PromptResponse, StopReason, Usage};
use oarlock_proto::jsonrpc::ErrorObject;
use serde_json::{Map, Value, json};

use crate::fault;

/// The answer to a prompt.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The turn is over.
    Stopped(PromptResponse),
    /// It failed.
    Failed(ErrorObject),
}

impl Answer {
    fn stopped(stop_reason: StopReason) -> Self {
        Self::Stopped(PromptResponse { stop_reason, usage: None, meta: None })
    }
}

/// Prompts and their answers: what [`Turns`] gives to be sent.
pub(crate) type Answers = Vec<(String, Answer)>;

/// How far a prompt is.
#[derive(Debug)]
enum Stage {
    /// The CLI does not have it yet.
    Waiting,
    /// The CLI has it.
    Sent,
    /// Its turn is over, and this will be the answer when its subagents are done.
    Held(Answer),
    /// It was answered without waiting for the CLI, which may still have it.
    GivenUp,
}

#[derive(Debug)]
struct Prompt {
    uuid: String,
    stage: Stage,
    /// It was said to a turn, and nobody waits for its answer.
    steers: bool,
}

impl Prompt {
    /// Does the CLI have it, and is no turn over that has read it?
    fn is_there(&self) -> bool {
        matches!(self.stage, Stage::Sent | Stage::GivenUp)
    }

    /// Does the CLI have it for a turn that runs, or for one of its own?
    fn is_steering(&self) -> bool {
        self.steers && matches!(self.stage, Stage::Sent)
    }
}

/// What a cancel asks for.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    /// Prompts that are over at once.
    pub(crate) answers: Answers,
    /// Prompts that the CLI has, and that no turn has read yet as far as is known.
    pub(crate) queued: Vec<String>,
    /// Must the CLI be interrupted?
    pub(crate) interrupt: bool,
    /// Subagents that are to be stopped.
    pub(crate) tasks: Vec<String>,
}

/// All prompts of a session that are not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    prompts: Vec<Prompt>,
    /// A turn runs.
    running: bool,
    /// A cancel is under way: a turn is to end, or the CLI has a message that it is not to read.
    cancelling: bool,
    /// Prompts that the running turn reads, as far as the CLI tells early.
    read: BTreeSet<String>,
    /// The CLI has gone to work since it was sent something.
    is_awake: bool,
    /// Why the API failed in this turn.
    failure: Option<ApiFailure>,
    /// Subagents that were started by a turn whose prompt is open, and have not ended.
    subagents: BTreeSet<String>,
    /// Why a turn failed that answers no prompt.
    unclaimed: Option<ErrorObject>,
}

impl Turns {
    /// The client has sent a prompt.
    pub(crate) fn prompt(&mut self, uuid: impl Into<String>) {
        self.prompts.push(Prompt { uuid: uuid.into(), stage: Stage::Waiting, steers: false });
    }

    /// The client says something to the turn that runs, or that is to begin with it.
    pub(crate) fn steer(&mut self, uuid: impl Into<String>) {
        self.prompts.push(Prompt { uuid: uuid.into(), stage: Stage::Waiting, steers: true });
    }

    /// May the next prompt go to the CLI? Not during a cancel: it might be cancelled with the others.
    pub(crate) fn may_send(&self) -> bool {
        !self.cancelling
    }

    /// The CLI has the prompt.
    pub(crate) fn sent(&mut self, uuid: &str) {
        if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.uuid == uuid) {
            prompt.stage = Stage::Sent;
            self.is_awake = false;
        }
    }

    /// The CLI has died before it began to read the prompt.
    pub(crate) fn put_back(&mut self, uuid: &str) {
        if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.uuid == uuid) {
            prompt.stage = Stage::Waiting;
        }
    }

    /// Is there anything that the session must not be put to sleep for?
    pub(crate) fn is_idle(&self) -> bool {
        let is_open = |prompt: &Prompt| !matches!(prompt.stage, Stage::GivenUp);
        !self.running && !self.cancelling && !self.prompts.iter().any(is_open)
    }

    /// Does a turn run?
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Does the CLI work on something, or have it to do?
    pub(crate) fn is_busy(&self) -> bool {
        self.running || self.prompts.iter().any(Prompt::is_there)
    }

    /// Is a cancel under way?
    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancelling
    }

    /// Is there a message for the running turn that no turn has read?
    pub(crate) fn is_steered(&self) -> bool {
        self.prompts.iter().any(Prompt::is_steering)
    }

    /// Is an answer held, although no subagent runs any more? The turn that the CLI then starts may not come.
    pub(crate) fn awaits_wake(&self) -> bool {
        !self.running
            && self.subagents.is_empty()
            && self.prompts.iter().any(|prompt| matches!(prompt.stage, Stage::Held(_)))
    }

    /// Something has happened. Gives the prompts that are over by it.
    pub(crate) fn follow(&mut self, event: &Event) -> Answers {
        match event {
            Event::TurnStarted => {
                self.running = true;
                self.failure = None;
                self.read.clear();
            }
            Event::ApiFailed(failure) if failure.parent_tool_use_id.is_none() => {
                self.failure = Some((**failure).clone());
            }
            Event::MessageState { uuid, state } => return self.follow_message(uuid, state),
            Event::Task { change, task } => {
                let is_agent = matches!(task.kind, Some(TaskType::LocalAgent | TaskType::RemoteAgent));
                match change {
                    TaskChange::Started if is_agent && self.running && !self.prompts.is_empty() => {
                        self.subagents.insert(task.id.clone());
                    }
                    TaskChange::Ended => {
                        self.subagents.remove(&task.id);
                    }
                    _ => {}
                }
            }
            Event::TurnEnded(end) => return self.end_turn(end),
            Event::Other(message) => {
                if let Message::System(System::SessionStateChanged(changed)) = &**message {
                    return self.follow_state(&changed.state);
                }
            }
            _ => {}
        }
        Answers::new()
    }

    /// An interrupt can hit a message on its way into its turn. Some CLIs then say nothing but that they are done.
    fn follow_state(&mut self, state: &SessionState) -> Answers {
        match state {
            SessionState::Idle if self.cancelling && !self.running && self.is_awake => {
                self.cancelling = false;
                self.take(Prompt::is_there, &Answer::stopped(StopReason::Cancelled))
            }
            SessionState::Idle => Answers::new(),
            _ => {
                self.is_awake = true;
                Answers::new()
            }
        }
    }

    fn follow_message(&mut self, uuid: &str, state: &CommandState) -> Answers {
        match state {
            CommandState::Started => {
                self.read.insert(uuid.to_owned());
                Answers::new()
            }
            CommandState::Cancelled => self.withdrawn(uuid),
            // It comes after the result. A prompt that is still open then was read by no turn.
            CommandState::Completed if !self.running => {
                let reason = if self.cancelling { StopReason::Cancelled } else { StopReason::EndTurn };
                let is_open = |prompt: &Prompt| prompt.uuid == uuid && prompt.is_there();
                let answers = self.take(is_open, &Answer::stopped(reason));
                self.cancelling &= self.is_busy();
                answers
            }
            _ => Answers::new(),
        }
    }

    fn end_turn(&mut self, end: &TurnEnd) -> Answers {
        self.running = false;
        let failure = self.failure.take();
        let mut outcome = outcome(end, failure.as_ref());
        let is_self_started = end.origin().is_some();
        let mut over: Vec<String> = end.answers.clone();
        if over.is_empty() && !is_self_started && (end.result.is_some() || self.cancelling) {
            // A CLI that does not tell answers the oldest.
            let oldest = self.prompts.iter().find(|prompt| prompt.is_there());
            over.extend(oldest.map(|prompt| prompt.uuid.clone()));
        }
        let is_unread = |prompt: &Prompt| prompt.is_steering() && !over.contains(&prompt.uuid);
        // What the client takes for one turn is more than one.
        let goes_on = !self.subagents.is_empty() || self.prompts.iter().any(is_unread);
        if self.cancelling {
            outcome = cancelled(end);
            // What no turn has read is still to be taken back, or to be interrupted when its turn begins.
            let is_left = |prompt: &Prompt| prompt.is_there() && !over.contains(&prompt.uuid);
            self.cancelling = self.prompts.iter().any(is_left);
        } else if goes_on && matches!(outcome, Answer::Stopped(_)) {
            self.prompts.retain_mut(|prompt| {
                let is_over = over.contains(&prompt.uuid);
                if is_over && matches!(prompt.stage, Stage::Sent) {
                    prompt.stage = Stage::Held(outcome.clone());
                }
                !(is_over && matches!(prompt.stage, Stage::GivenUp))
            });
            return Answers::new();
        }
        if let Answer::Failed(error) = &outcome
            && !self.prompts.iter().any(|prompt| over.contains(&prompt.uuid) && !prompt.steers)
            && end.result.is_some()
        {
            self.unclaimed = Some(error.clone());
        }
        let mut answers = Answers::new();
        for uuid in over {
            answers.extend(self.answer(&uuid, &outcome));
        }
        if !goes_on {
            answers.extend(self.release());
        }
        answers
    }

    /// Why a turn failed that answers no prompt: the user should hear of it all the same.
    pub(crate) fn take_unclaimed(&mut self) -> Option<ErrorObject> {
        self.unclaimed.take()
    }

    /// Nothing more comes of subagents and steering: what was held is answered.
    pub(crate) fn release(&mut self) -> Answers {
        let mut answers = Answers::new();
        self.prompts.retain(|prompt| match &prompt.stage {
            Stage::Held(answer) => {
                if !prompt.steers {
                    answers.push((prompt.uuid.clone(), answer.clone()));
                }
                false
            }
            _ => !prompt.is_steering(),
        });
        answers
    }

    /// The user cancels all there is.
    pub(crate) fn cancel(&mut self) -> Cancel {
        let mut cancel = Cancel::default();
        let is_read = |uuid: &String| self.read.contains(uuid);
        for prompt in &self.prompts {
            match &prompt.stage {
                Stage::Waiting | Stage::Held(_) if prompt.steers => {}
                Stage::Waiting => {
                    cancel.answers.push((prompt.uuid.clone(), Answer::stopped(StopReason::Cancelled)));
                }
                Stage::Sent if !is_read(&prompt.uuid) => cancel.queued.push(prompt.uuid.clone()),
                Stage::Sent | Stage::GivenUp => {}
                Stage::Held(answer) => cancel.answers.push((prompt.uuid.clone(), as_cancelled(answer))),
            }
        }
        self.prompts.retain(Prompt::is_there);
        cancel.interrupt = self.is_busy();
        cancel.tasks = std::mem::take(&mut self.subagents).into_iter().collect();
        self.cancelling |= cancel.interrupt;
        cancel
    }

    /// The CLI has taken a message back, before any turn has read it.
    pub(crate) fn withdrawn(&mut self, uuid: &str) -> Answers {
        let answers = self.answer(uuid, &Answer::stopped(StopReason::Cancelled));
        // When there is no turn, none will end any more.
        self.cancelling &= self.is_busy();
        answers
    }

    /// The CLI takes too long to stop: the client gets its answers now. The cancel goes on until the CLI has let go of all.
    pub(crate) fn give_up(&mut self) -> Answers {
        let answer = Answer::stopped(StopReason::Cancelled);
        let mut answers = self.take(|prompt| matches!(prompt.stage, Stage::Held(_)), &answer);
        for prompt in self.prompts.iter_mut().filter(|prompt| matches!(prompt.stage, Stage::Sent)) {
            if !prompt.steers {
                answers.push((prompt.uuid.clone(), answer.clone()));
            }
            prompt.stage = Stage::GivenUp;
        }
        answers
    }

    /// The CLI is gone. What it had is answered; what waits may still be sent to the next one.
    pub(crate) fn gone(&mut self, why: &ErrorObject) -> Answers {
        let answer = match self.cancelling {
            true => Answer::stopped(StopReason::Cancelled),
            false => Answer::Failed(why.clone()),
        };
        let mut answers = self.release();
        answers.extend(self.take(|prompt| !matches!(prompt.stage, Stage::Waiting), &answer));
        *self = Self { prompts: std::mem::take(&mut self.prompts), ..Self::default() };
        answers
    }

    /// Nothing can be sent any more: all are answered.
    pub(crate) fn fail(&mut self, why: &ErrorObject) -> Answers {
        let mut answers = self.gone(why);
        answers.extend(self.take(|_| true, &Answer::Failed(why.clone())));
        answers
    }

    /// The session is closed by the client: what is open is cancelled.
    pub(crate) fn close(&mut self) -> Answers {
        self.take(|_| true, &Answer::stopped(StopReason::Cancelled))
    }

    fn answer(&mut self, uuid: &str, answer: &Answer) -> Answers {
        self.take(|prompt| prompt.uuid == uuid, answer)
    }

    /// Takes the prompts that fit out of the table. This, and giving up, are the only ways to an answer, so there is one
    /// for each.
    fn take(&mut self, fits: impl Fn(&Prompt) -> bool, answer: &Answer) -> Answers {
        let mut answers = Answers::new();
        self.prompts.retain(|prompt| {
            let fits = fits(prompt);
            if fits && !prompt.steers && !matches!(prompt.stage, Stage::GivenUp) {
                answers.push((prompt.uuid.clone(), answer.clone()));
            }
            !fits
        });
        answers
    }
}

/// What a turn's end means for the prompts it has read.
fn outcome(end: &TurnEnd, failure: Option<&ApiFailure>) -> Answer {
    let Some(result) = &end.result else {
        return Answer::Failed(ErrorObject::internal(
            "Claude Code ended the turn without a result; send the prompt again",
        ));
    };
    let aborted = matches!(
        result.terminal_reason,
        Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools)
    );
    let reason = match &result.subtype {
        _ if aborted => StopReason::Cancelled,
        ResultKind::ErrorMaxTurns | ResultKind::ErrorMaxBudgetUsd => StopReason::MaxTurnRequests,
        _ if matches!(result.stop_reason, Some(stream::StopReason::Refusal)) => StopReason::Refusal,
        ResultKind::Success if !result.is_error => match &result.stop_reason {
            Some(stream::StopReason::MaxTokens | stream::StopReason::ModelContextWindowExceeded) => {
                StopReason::MaxTokens
            }
            _ => StopReason::EndTurn,
        },
        _ => return Answer::Failed(failed(result, failure)),
    };
    response(end, reason)
}

/// Why a turn failed, in the best words there are.
fn failed(result: &stream::TurnResult, failure: Option<&ApiFailure>) -> ErrorObject {
    let errors = || result.errors.as_ref().map(|errors| errors.join("; "));
    let text = result.result.clone().or_else(|| failure.map(|failure| failure.text.clone())).or_else(errors);
    let text = text.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "the turn failed".into());
    let status = result.api_error_status.or(failure.and_then(|failure| failure.status));
    fault::api(failure.map(|failure| &failure.error), status, &text)
}

fn cancelled(end: &TurnEnd) -> Answer {
    response(end, StopReason::Cancelled)
}

/// The same, cut short.
fn as_cancelled(answer: &Answer) -> Answer {
    match answer {
        Answer::Stopped(response) => {
            Answer::Stopped(PromptResponse { stop_reason: StopReason::Cancelled, ..response.clone() })
        }
        Answer::Failed(_) => Answer::stopped(StopReason::Cancelled),
    }
}

fn response(end: &TurnEnd, stop_reason: StopReason) -> Answer {
    let usage = end.usage().map(|usage| {
        let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
        let (read, written) =
            (usage.cache_read_input_tokens.unwrap_or(0), usage.cache_creation_input_tokens.unwrap_or(0));
        Usage {
            total_tokens: input + output + read + written,
            input_tokens: input,
            output_tokens: output,
            cached_read_tokens: read,
            cached_write_tokens: written,
        }
    });
    Answer::Stopped(PromptResponse { stop_reason, usage, meta: quota(end) })
}

/// What the turn took by model, under the name that clients know.
fn quota(end: &TurnEnd) -> Option<Map<String, Value>> {
    if end.model_usage.is_empty() {
        return None;
    }
    let count = |input: u64, output: u64, read: u64, written: u64| {
        json!({
            "totalTokens": input + output + read + written, "inputTokens": input, "outputTokens": output,
            "cachedInputTokens": read, "cachedWriteTokens": written,
        })
    };
    let (mut sums, mut models) = ([0; 4], Vec::new());
    for (model, usage) in &end.model_usage {
        let tokens = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        ];
        for (sum, tokens) in sums.iter_mut().zip(tokens) {
            *sum += tokens;
        }
        let [input, output, read, written] = tokens;
        models.push(json!({ "model": model, "token_count": count(input, output, read, written) }));
    }
    let [input, output, read, written] = sums;
    let quota = json!({ "token_count": count(input, output, read, written), "model_usage": models });
    Some(Map::from_iter([("quota".to_owned(), quota)]))
}

#[cfg(test)]
mod tests;
