//! How full the context is, and what a turn cost.

use std::collections::BTreeMap;

use oarlock_agent::reduce::{MessageEnd, TurnEnd};
use oarlock_agent::stream::RateLimitInfo;
use oarlock_proto::acp::{Cost, Meta, UsageUpdate};
use serde_json::Value;

/// What fits into each model.
pub(crate) type Windows = BTreeMap<String, u64>;

/// What fits, when a cost must be told and nobody has said what does.
const WINDOW: u64 = 200_000;
/// What fits when the model's name says so.
const LARGE_WINDOW: u64 = 1_000_000;
/// How such a name ends.
const LARGE: &str = "[1m]";

/// How full the context is.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The model that is chosen, as the CLI names it.
    model: String,
    /// The model that spoke last, as the API names it.
    speaker: String,
    used: Option<u64>,
    /// What fits, by model, as turns have told.
    windows: Windows,
    /// A turn has told something new of that.
    is_news: bool,
    /// What was told last.
    told: Option<(u64, u64)>,
    /// What the API said of the user's limits since.
    limit: Option<Value>,
}

impl Usage {
    pub(super) fn model_is(&mut self, model: &str) {
        self.model = model.to_owned();
    }

    /// What fits, as turns of other sessions have told.
    pub(super) fn windows_are(&mut self, windows: &Windows) {
        self.windows.clone_from(windows);
    }

    /// What fits, if a turn has told something new since this was asked.
    pub(super) fn new_windows(&mut self) -> Option<&Windows> {
        std::mem::take(&mut self.is_news).then_some(&self.windows)
    }

    /// What the API says of the user's limits goes along with the next update.
    pub(super) fn limit_is(&mut self, limit: &RateLimitInfo) {
        self.limit = serde_json::to_value(limit).ok();
    }

    /// A call of the API is over. Its tokens together are what fills the context.
    pub(super) fn message_finished(&mut self, end: &MessageEnd) -> Option<UsageUpdate> {
        let usage = &end.usage;
        let counts = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        ];
        self.used = Some(counts.into_iter().flatten().sum());
        if !end.message.model.is_empty() {
            self.speaker.clone_from(&end.message.model);
        }
        self.told_anew().then(|| self.update(None))?
    }

    /// The conversation was replaced by a summary.
    pub(super) fn compacted(&mut self, tokens: Option<u64>) -> Option<UsageUpdate> {
        self.used = Some(tokens?);
        self.told_anew().then(|| self.update(None))?
    }

    /// A turn is over, and tells what it cost and what fits into its models.
    pub(super) fn turn_ended(&mut self, end: &TurnEnd) -> Option<UsageUpdate> {
        for (model, usage) in end.result.iter().flat_map(|result| &result.model_usage).flatten() {
            if let Some(window) = usage.context_window.filter(|window| *window > 0) {
                self.is_news |= self.windows.insert(bare(model).to_owned(), window) != Some(window);
            }
        }
        let cost = (end.cost_usd > 0.0).then_some(Cost { amount: end.cost_usd, currency: "USD" });
        (self.told_anew() || cost.is_some()).then(|| self.update(cost))?
    }

    /// What fits; `None` when nobody knows yet. A guess would show a context as nearly full that is nearly empty.
    fn size(&self) -> Option<u64> {
        let model = if self.speaker.is_empty() { &self.model } else { &self.speaker };
        // A large window is chosen by the name that the CLI has for the model; the API's does not tell.
        let is_large = model.ends_with(LARGE) || self.model.ends_with(LARGE) && bare(&self.model) == model;
        let known = self.windows.get(bare(model)).copied();
        known.or(is_large.then_some(LARGE_WINDOW))
    }

    /// Is there something to tell?
    fn told_anew(&mut self) -> bool {
        let (Some(used), Some(size)) = (self.used, self.size()) else { return false };
        let now = Some((used, size));
        std::mem::replace(&mut self.told, now) != now
    }

    fn update(&mut self, cost: Option<Cost>) -> Option<UsageUpdate> {
        let used = self.used?;
        let model = Some(&self.speaker).filter(|model| !model.is_empty());
        let model = model.map(|model| ("_claude/model".to_owned(), model.as_str().into()));
        let limit = self.limit.take().map(|limit| ("_claude/rateLimit".to_owned(), limit));
        let meta = Some(Meta::from_iter(model.into_iter().chain(limit))).filter(|meta| !meta.is_empty());
        Some(UsageUpdate { used, size: self.size().unwrap_or(WINDOW), cost, meta })
    }
}

fn bare(model: &str) -> &str {
    model.strip_suffix(LARGE).unwrap_or(model)
}
