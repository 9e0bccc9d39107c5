//! Where a turn begins and ends, and what it took.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Number;

use super::{Event, Question, Reducer, ToolCall, TurnEnd};
use crate::stream::{ModelUsage, TurnResult};

/// What the running turn has shown so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// The user messages that it answers.
    pub(super) answers: Vec<String>,
    /// Was there any text?
    pub(super) spoke: bool,
    /// Has it said `init`?
    pub(super) init: bool,
    /// How many user messages waited when it began.
    waiting: usize,
}

impl Reducer {
    /// A turn runs from now on, if none does.
    pub(super) fn start_turn(&mut self) {
        if self.state.in_turn {
            return;
        }
        self.settle_calls();
        self.state.in_turn = true;
        self.turn = Turn { waiting: self.state.queued.len(), ..Turn::default() };
        self.events.push(Event::TurnStarted);
    }

    /// The turn reads this user message.
    pub(super) fn turn_answers(&mut self, uuid: &str) {
        self.tells_answers = true;
        self.state.queued.retain(|queued| queued != uuid);
        if !self.turn.answers.iter().any(|answered| answered == uuid) {
            self.turn.answers.push(uuid.into());
        }
    }

    pub(super) fn end_turn(&mut self, result: Option<TurnResult>) {
        self.settle_thread(None);
        let Self { state, answered_tasks, .. } = self;
        let over: BTreeSet<String> = state
            .tasks
            .values()
            .filter(|task| task.is_over() || answered_tasks.contains(&task.id))
            .map(|task| task.id.clone())
            .collect();
        self.end_tasks(|task| over.contains(&task.id));
        self.answered_tasks.clear();
        self.settle_calls();
        let Self { state, .. } = self;
        let (calls, idle) = (state.calls.keys().cloned().collect::<BTreeSet<_>>(), state.tasks.is_empty());
        self.withdraw_questions(|question| match &question.tool_use_id {
            Some(id) => !calls.contains(id),
            None => idle,
        });
        if !self.state.in_turn {
            return;
        }
        self.state.in_turn = false;
        let mut end = TurnEnd { spoke: self.turn.spoke, ..TurnEnd::default() };
        if let Some(result) = &result {
            for uuid in result.user_message_uuids.iter().flatten() {
                self.turn_answers(uuid);
            }
            if !self.tells_answers && result.origin.is_none() {
                // Then it is what waited: the CLI joins that to one prompt.
                let waiting = self.turn.waiting.min(self.state.queued.len());
                self.turn.answers = self.state.queued.drain(..waiting).collect();
            }
            (end.cost_usd, end.model_usage) = self.account(result);
        }
        end.answers = std::mem::take(&mut self.turn.answers);
        end.result = result;
        let totals = &mut self.state.totals;
        totals.turns += 1;
        totals.cost_usd += end.cost_usd;
        for usage in end.model_usage.values() {
            totals.input_tokens += usage.input_tokens;
            totals.output_tokens += usage.output_tokens;
            totals.cache_read_input_tokens += usage.cache_read_input_tokens;
            totals.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        }
        self.events.push(Event::TurnEnded(Box::new(end)));
    }

    /// Cancels the calls that nobody works on any more. What a task's subagent does stays open as long as the task.
    fn settle_calls(&mut self) {
        let live: BTreeSet<String> =
            self.state.tasks.values().filter_map(|task| task.tool_use_id.clone()).collect();
        let dead: Vec<_> = (self.state.calls.values().map(|open| &open.call))
            .filter(|call| !self.is_live(call, &live))
            .cloned()
            .collect();
        for call in dead {
            self.state.calls.remove(&call.id);
            self.events.push(Event::ToolCancelled(call));
        }
        let silent: Vec<_> =
            self.subagents.keys().filter(|parent| !live.contains(*parent)).cloned().collect();
        for parent in silent {
            self.settle_thread(Some(&parent));
        }
        self.early.clear();
    }

    /// Was it made by a subagent, or by a subagent's subagent, whose task is not over?
    fn is_live(&self, call: &ToolCall, live: &BTreeSet<String>) -> bool {
        let mut parent = call.parent_tool_use_id.as_ref();
        // Ids of a broken stream may go round in a circle.
        for _ in 0..64 {
            let Some(id) = parent else { return false };
            if live.contains(id) {
                return true;
            }
            parent = self.state.calls.get(id).and_then(|open| open.call.parent_tool_use_id.as_ref());
        }
        false
    }

    pub(super) fn withdraw_questions(&mut self, gone: impl Fn(&Question) -> bool) {
        let events = &mut self.events;
        self.state.questions.retain(|request_id, question| {
            let gone = gone(question);
            if gone {
                events.push(Event::QuestionWithdrawn { request_id: request_id.clone() });
            }
            !gone
        });
    }

    /// What a turn took: the CLI tells sums over the process, and newer ones also the difference.
    fn account(&mut self, result: &TurnResult) -> (f64, BTreeMap<String, ModelUsage>) {
        let total = result.total_cost_usd.as_ref().and_then(Number::as_f64).unwrap_or(self.cost_usd);
        // Sums that shrink have begun anew.
        let cost = if total < self.cost_usd { total } else { rounded(total - self.cost_usd) };
        self.cost_usd = total;
        let sums = result.model_usage.clone().unwrap_or_default();
        let before = std::mem::replace(&mut self.model_usage, sums);
        if let Some(usage) = &result.model_usage_since_last_result {
            let costs = usage
                .values()
                .try_fold(0.0, |sum, usage| Some(sum + usage.cost_usd.as_ref().and_then(Number::as_f64)?));
            return (costs.map_or(cost, rounded), usage.clone());
        }
        let usage = (self.model_usage.iter())
            .filter_map(|(model, now)| Some((model.clone(), difference(now, before.get(model))?)))
            .collect();
        (cost, usage)
    }

    /// The sums begin anew.
    pub(super) fn forget_sums(&mut self) {
        self.cost_usd = 0.0;
        self.model_usage.clear();
    }
}

/// Without the noise that differences of decimal fractions have.
fn rounded(cost: f64) -> f64 {
    (cost * 1e9).round() / 1e9
}

/// What a model has used since; `None` when nothing.
fn difference(now: &ModelUsage, before: Option<&ModelUsage>) -> Option<ModelUsage> {
    let Some(before) = before else { return Some(now.clone()) };
    let minus = |now: u64, before: u64| now.checked_sub(before);
    let cost = |usage: &ModelUsage| usage.cost_usd.as_ref().and_then(Number::as_f64).unwrap_or_default();
    let mut usage = now.clone();
    let counters = (
        minus(now.input_tokens, before.input_tokens),
        minus(now.output_tokens, before.output_tokens),
        minus(now.cache_read_input_tokens, before.cache_read_input_tokens),
        minus(now.cache_creation_input_tokens, before.cache_creation_input_tokens),
        minus(now.web_search_requests, before.web_search_requests),
    );
    let (Some(input), Some(output), Some(read), Some(creation), Some(searches)) = counters else {
        return Some(usage);
    };
    if (input, output, read, creation, searches) == (0, 0, 0, 0, 0) {
        return None;
    }
    usage.input_tokens = input;
    usage.output_tokens = output;
    usage.cache_read_input_tokens = read;
    usage.cache_creation_input_tokens = creation;
    usage.web_search_requests = searches;
    usage.cost_usd = Number::from_f64(rounded(cost(now) - cost(before)));
    Some(usage)
}
