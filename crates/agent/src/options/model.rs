//! Which model answers, how hard it thinks, and how far it may go.

use super::args::Args;
use super::word::word;
use super::{Options, refuse, strings};
use crate::Error;

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Model {
    model: Option<String>,
    fallbacks: Vec<String>,
    effort: Option<Effort>,
    thinking: Option<Thinking>,
    betas: Vec<String>,
    max_turns: Option<u32>,
    max_budget_usd: Option<f64>,
    task_budget: Option<u64>,
    autocompact: Option<u64>,
    fast: Option<bool>,
}

word! {
    /// How much effort the model puts into an answer.
    pub enum Effort {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More than much.
        Xhigh = "xhigh",
        /// All there is.
        Max = "max",
    }

    /// How thinking is shown.
    pub enum ThinkingDisplay {
        /// As a summary.
        Summarized = "summarized",
        /// Not at all.
        Omitted = "omitted",
    }
}

/// Whether and how the model thinks before it answers.
///
/// ```
/// use oarlock_agent::options::{Thinking, ThinkingDisplay};
///
/// let thinking = Thinking::adaptive().display(ThinkingDisplay::Summarized);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thinking {
    mode: Mode,
    display: Option<ThinkingDisplay>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Adaptive,
    Enabled(u32),
    Disabled,
}

impl Thinking {
    /// The model decides when and how much (`--thinking=adaptive`). An older model gets the CLI's own budget.
    #[must_use]
    pub fn adaptive() -> Self {
        Self { mode: Mode::Adaptive, display: None }
    }

    /// Up to this many tokens (`--max-thinking-tokens`). A model that decides for itself takes any number for "on".
    #[must_use]
    pub fn enabled(budget: u32) -> Self {
        Self { mode: Mode::Enabled(budget), display: None }
    }

    /// Not at all (`--thinking=disabled`).
    #[must_use]
    pub fn disabled() -> Self {
        Self { mode: Mode::Disabled, display: None }
    }

    /// How it is shown (`--thinking-display`).
    #[must_use]
    pub fn display(mut self, display: impl Into<ThinkingDisplay>) -> Self {
        self.display = Some(display.into());
        self
    }

    fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        match self.mode {
            Mode::Adaptive => args.value("--thinking", "adaptive")?,
            Mode::Enabled(0) => {
                return refuse("thinking", "a budget of 0 is no thinking; say Thinking::disabled()");
            }
            // `--thinking=enabled` beside it would win, with the CLI's own budget.
            Mode::Enabled(budget) => args.value("--max-thinking-tokens", budget.to_string())?,
            Mode::Disabled => args.value("--thinking", "disabled")?,
        }
        args.maybe("--thinking-display", self.display.as_ref().map(ThinkingDisplay::as_str))
    }
}

impl Options {
    /// The model: an alias (`opus`, `sonnet`) or a full name (`--model`).
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model.model = Some(model.into());
        self
    }

    /// The models to fall back to, in this order, when the first is overloaded (`--fallback-model`).
    #[must_use]
    pub fn fallback_models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.model.fallbacks = strings(models);
        self
    }

    /// How much effort the model puts into an answer (`--effort`).
    #[must_use]
    pub fn effort(mut self, effort: impl Into<Effort>) -> Self {
        self.model.effort = Some(effort.into());
        self
    }

    /// Whether and how the model thinks (`--thinking`, `--max-thinking-tokens`, `--thinking-display`).
    #[must_use]
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.model.thinking = Some(thinking);
        self
    }

    /// Beta features of the API (`--betas`, once for each: the CLI takes a list joined by commas for one name). The CLI
    /// warns on stderr about those that it does not support.
    #[must_use]
    pub fn betas(mut self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.model.betas = strings(betas);
        self
    }

    /// How many rounds with the model one prompt may take (`--max-turns`). Then the result is `error_max_turns`, and
    /// the session can go on.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.model.max_turns = Some(turns);
        self
    }

    /// How many dollars the session may cost (`--max-budget-usd`). It is looked at after each answer of the model; then
    /// the result is `error_max_budget_usd`.
    #[must_use]
    pub fn max_budget_usd(mut self, dollars: f64) -> Self {
        self.model.max_budget_usd = Some(dollars);
        self
    }

    /// How many tokens a task may take, as the model is told (`--task-budget`), so that it can plan for it.
    #[must_use]
    pub fn task_budget(mut self, tokens: u64) -> Self {
        self.model.task_budget = Some(tokens);
        self
    }

    /// How many tokens the conversation may have before it is compacted, 100 000 to 1 000 000 (`--autocompact`; 2.1.197
    /// does not know it).
    #[must_use]
    pub fn autocompact_tokens(mut self, tokens: u64) -> Self {
        self.model.autocompact = Some(tokens);
        self
    }

    /// Fast mode on or off (`--fast-mode`; 2.1.197 does not know it).
    #[must_use]
    pub fn fast_mode(mut self, on: bool) -> Self {
        self.model.fast = Some(on);
        self
    }
}

impl Model {
    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        args.maybe("--model", self.model.as_ref())?;
        if !self.fallbacks.is_empty() {
            args.value("--fallback-model", self.fallbacks.join(","))?;
        }
        args.maybe("--effort", self.effort.as_ref().map(Effort::as_str))?;
        if let Some(thinking) = &self.thinking {
            thinking.arguments(args)?;
        }
        args.each("--betas", &self.betas)?;
        if let Some(turns) = self.max_turns {
            if turns == 0 {
                // The CLI takes 0 for "no limit", which nobody means who writes it.
                return refuse("max_turns", "0 turns can answer nothing; leave it out for no limit");
            }
            args.value("--max-turns", turns.to_string())?;
        }
        if let Some(dollars) = self.max_budget_usd {
            if !(dollars.is_finite() && dollars > 0.0) {
                return refuse("max_budget_usd", "it must be a number of dollars greater than 0");
            }
            args.value("--max-budget-usd", dollars.to_string())?;
        }
        if let Some(tokens) = self.task_budget {
            if tokens == 0 {
                return refuse("task_budget", "it must be a number of tokens greater than 0");
            }
            args.value("--task-budget", tokens.to_string())?;
        }
        if let Some(tokens) = self.autocompact {
            if tokens < 1_000 {
                // The CLI would take it for thousands of tokens.
                return refuse("autocompact_tokens", "it is counted in tokens, not in thousands of them");
            }
            args.value("--autocompact", tokens.to_string())?;
        }
        args.maybe("--fast-mode", self.fast.map(|on| if on { "on" } else { "off" }))
    }
}
