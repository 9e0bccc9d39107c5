//! Results: what a turn cost, and how it ended.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::player::{Player, lay, new_uuid};

/// What the process has used so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) results: u64,
    pub(crate) api_ms: u64,
    pub(crate) by_model: BTreeMap<String, Tokens>,
    /// The same since the last result.
    pub(crate) since: BTreeMap<String, Tokens>,
    pub(crate) agents: Agents,
    /// Whether the last result was an error, which the exit code tells.
    pub(crate) failed: bool,
}

/// Tokens of one model.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Tokens {
    pub(crate) fn add(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
    }

    /// What the list price would be.
    fn cost(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "nobody scripts 2^52 tokens")]
        let (input, output) = (self.input as f64, self.output as f64);
        // In whole hundredths of a micro-dollar, so that sums print without a tail of nines.
        (input * 400.0 + output * 2000.0).round() / 1e8
    }

    fn model_usage(self, model: &str) -> Value {
        json!({
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": self.cost(),
            "contextWindow": 1_000_000,
            "maxOutputTokens": 128_000,
            "thinkingTokens": 0,
            "cacheCreationEphemeral5mInputTokens": 0,
            "cacheCreationEphemeral1hInputTokens": 0,
            "canonicalModel": model,
            "provider": "firstParty",
            "costBasis": "list",
        })
    }
}

impl Totals {
    /// A message of a model.
    pub(crate) fn spend(&mut self, model: &str, tokens: Tokens) {
        self.by_model.entry(model.to_owned()).or_default().add(tokens);
        self.since.entry(model.to_owned()).or_default().add(tokens);
        self.api_ms += 1;
    }

    /// Starts counting anew, as `/clear` does.
    pub(crate) fn forget(&mut self) {
        self.by_model.clear();
        self.since.clear();
    }

    pub(crate) fn cost(&self) -> f64 {
        let cents: f64 = self.by_model.values().map(|tokens| tokens.cost() * 1e8).sum();
        cents.round() / 1e8
    }

    pub(crate) fn by_model(&self) -> Value {
        by_model(&self.by_model)
    }
}

fn by_model(tokens: &BTreeMap<String, Tokens>) -> Value {
    Value::Object(tokens.iter().map(|(model, tokens)| (model.clone(), tokens.model_usage(model))).collect())
}

/// The long form of usage, which results carry.
pub(crate) fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens.output,
        "output_tokens_details": { "thinking_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 },
        "service_tier": "standard",
        "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0 },
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": null,
    })
}

impl Player<'_> {
    /// A result with what all results have; `fields` are the turn's own.
    pub(crate) fn bare_result(&self, subtype: &str, is_error: bool, fields: Value) -> Value {
        let mut state = self.state();
        let totals = &mut state.totals;
        let mut result = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "duration_ms": 0,
            "duration_api_ms": totals.api_ms,
            "num_turns": 0,
            "stop_reason": null,
            "total_cost_usd": totals.cost(),
            "usage": usage(Tokens::default()),
            "modelUsage": totals.by_model(),
            "model_usage_since_last_result": by_model(&std::mem::take(&mut totals.since)),
            "permission_denials": [],
            "fast_mode_state": "off",
            "fast_mode_disabled_reason": "sdk_opt_in_required",
            "subagent_stats": totals.agents.stats(),
            "safety_stops": 0,
            "queued_turn_count": 0,
            "result_index": totals.results,
            "session_id": state.session_id,
            "uuid": new_uuid(),
        });
        let totals = &mut state.totals;
        totals.results += 1;
        totals.failed = is_error;
        lay(&mut result, fields);
        result
    }
}

/// Subagents so far.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    spawned: u64,
    /// As asked for: in the background, in the foreground, not said.
    requested: [u64; 3],
    in_background: u64,
    completed: u64,
    killed: u64,
    by_type: BTreeMap<String, u64>,
}

impl Agents {
    pub(crate) fn spawn(&mut self, kind: &str, requested: Option<bool>, in_background: bool) {
        self.spawned += 1;
        self.requested[requested.map_or(2, |in_background| usize::from(!in_background))] += 1;
        self.in_background += u64::from(in_background);
        *self.by_type.entry(kind.to_owned()).or_default() += 1;
    }

    pub(crate) fn end(&mut self, is_killed: bool) {
        *(if is_killed { &mut self.killed } else { &mut self.completed }) += 1;
    }

    fn stats(&self) -> Value {
        let [background, foreground, unset] = self.requested;
        json!({
            "spawned": self.spawned,
            "requested": { "background": background, "foreground": foreground, "unset": unset },
            "started_in_background": self.in_background,
            "max_depth": u64::from(self.spawned > 0),
            "spawned_by_subagents": 0,
            "completed": self.completed,
            "failed": 0,
            "killed": { "parent": 0, "user": self.killed, "system": 0 },
            "refused": { "depth_limit": 0, "concurrency_limit": 0, "budget": 0 },
            "by_type": self.by_type,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_without_a_tail() {
        let mut totals = Totals::default();
        for _ in 0..3 {
            totals.spend("m", Tokens { input: 10, output: 20 });
        }
        assert_eq!(totals.cost().to_string(), "0.00132");
        assert_eq!(totals.by_model()["m"]["outputTokens"], 60);
    }
}
