//! One turn: from a prompt to its result.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::command::Command;
use crate::hook::Verdict;
use crate::message::Message;
use crate::play::Outcome;
use crate::player::{Player, Prompt, Stop, lay, new_uuid, timestamp};
use crate::result::Tokens;
use crate::script;
use crate::task::Agent;

/// A turn that is being played: the main one, or that of a subagent.
pub(crate) struct Turn<'t, 'p> {
    pub(crate) player: &'t Player<'p>,
    /// What `${…}` can name in this turn.
    pub(crate) scope: Map<String, Value>,
    pub(crate) prompt_id: String,
    content: Value,
    /// The prompt's messages, those that have a uuid.
    pub(crate) uuids: Vec<String>,
    pub(crate) agent: Option<Agent>,
    pub(crate) message: Option<Message>,
    /// Model requests so far.
    pub(crate) requests: u64,
    /// User frames so far, which `num_turns` counts.
    pub(crate) user_frames: u64,
    pub(crate) tool_uses: u64,
    pub(crate) tokens: Tokens,
    pub(crate) denials: Vec<Value>,
    /// The last text, which is the turn's result.
    pub(crate) text: String,
    pub(crate) stop_reason: Value,
    /// Fields laid over the result.
    pub(crate) end: Map<String, Value>,
    /// Messages that came while a tool ran and were taken into the turn.
    pub(crate) steered: Vec<String>,
    pub(crate) started: Instant,
}

impl Player<'_> {
    /// Plays turns until the input has ended and nothing is left to do.
    pub(crate) async fn take_turns(&self) -> Outcome {
        let mut played = 0;
        loop {
            let prompts = self
                .until(|state| {
                    if state.is_ending {
                        return Some(None);
                    }
                    if !state.queue.is_empty() {
                        state.is_running = true;
                        return Some(Some(take_merged(&mut state.queue)));
                    }
                    (state.is_closed && state.jobs.is_empty() && state.running_jobs == 0).then_some(None)
                })
                .await;
            let Some(prompts) = prompts else {
                let state = self.state();
                return Outcome::exit(i32::from(state.totals.failed && !state.is_ending));
            };
            if let Err(outcome) = self.take_turn(prompts, &mut played).await {
                return outcome;
            }
            self.change(|state| {
                state.is_running = false;
                state.is_interrupted = false;
                state.is_preempted = false;
            });
        }
    }

    async fn take_turn(&self, prompts: Vec<Prompt>, played: &mut usize) -> Result<(), Outcome> {
        let mut turn = Turn::new(self, &prompts);
        match turn.play(&prompts, played).await {
            Ok(()) => Ok(()),
            Err(Stop::Exit(outcome)) => Err(outcome),
            // Everything else was turned into a result already.
            Err(_) => Ok(()),
        }
    }

    /// What the script has for a prompt: the first turn whose `when` it contains, else the next turn without one. The
    /// last is played again and again; without any, the prompt is echoed.
    fn part_for(&self, prompt: &str, played: &mut usize) -> script::Turn {
        let turns = &self.scenario.turns;
        if let Some(turn) = turns.iter().find(|turn| turn.answers(prompt)) {
            return turn.clone();
        }
        let mut plain = turns.iter().filter(|turn| turn.when.is_none());
        let count = plain.clone().count();
        let at = (*played).min(count.saturating_sub(1));
        *played += 1;
        plain.nth(at).map_or_else(script::Turn::echo, Clone::clone)
    }
}

/// The next prompt, with all that wait behind it. Turns the CLI starts by itself stay alone.
fn take_merged(queue: &mut std::collections::VecDeque<Prompt>) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = queue.pop_front().into_iter().collect();
    let is_plain = |prompt: &Prompt| {
        prompt.origin.is_none() && !prompt.is_note && !text_of(&prompt.content).starts_with('/')
    };
    while prompts.iter().all(is_plain) && queue.front().is_some_and(is_plain) {
        prompts.extend(queue.pop_front());
    }
    prompts
}

/// The text of a prompt, without its images.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn merge(prompts: &[Prompt]) -> Value {
    match prompts {
        [one] => one.content.clone(),
        many if many.iter().all(|prompt| prompt.content.is_string()) => {
            many.iter().map(|prompt| text_of(&prompt.content)).collect::<Vec<_>>().join("\n").into()
        }
        many => many
            .iter()
            .flat_map(|prompt| match &prompt.content {
                Value::Array(blocks) => blocks.clone(),
                text => vec![json!({ "type": "text", "text": text })],
            })
            .collect(),
    }
}

impl<'t, 'p> Turn<'t, 'p> {
    fn new(player: &'t Player<'p>, prompts: &[Prompt]) -> Self {
        let content = merge(prompts);
        let images =
            content.as_array().into_iter().flatten().filter(|block| block["type"] == "image").count();
        let mut scope = Map::new();
        scope.insert("prompt".to_owned(), text_of(&content).into());
        scope.insert("images".to_owned(), images.into());
        Self {
            uuids: prompts.iter().filter_map(|prompt| prompt.uuid.clone()).collect(),
            content,
            ..Self::empty(player, scope)
        }
    }

    fn empty(player: &'t Player<'p>, scope: Map<String, Value>) -> Self {
        Self {
            player,
            scope,
            prompt_id: new_uuid(),
            content: Value::Null,
            uuids: Vec::new(),
            agent: None,
            message: None,
            requests: 0,
            user_frames: 0,
            tool_uses: 0,
            tokens: Tokens::default(),
            denials: Vec::new(),
            text: String::new(),
            stop_reason: Value::Null,
            end: Map::new(),
            steered: Vec::new(),
            started: Instant::now(),
        }
    }

    /// The turn of a subagent.
    pub(crate) fn of_agent(player: &'t Player<'p>, agent: Agent, scope: Map<String, Value>) -> Self {
        Self { agent: Some(agent), ..Self::empty(player, scope) }
    }

    async fn play(&mut self, prompts: &[Prompt], played: &mut usize) -> Result<(), Stop> {
        let player = self.player;
        self.begin(prompts).await?;
        let text = text_of(&self.content);
        if prompts.iter().any(|prompt| prompt.is_note) {
            player.send(&player.init_frame(&self.uuids)).await?;
            let result = player.bare_result("success", false, json!({ "result": "" }));
            return self.finish(result, "completed").await;
        }
        let is_scripted = player.scenario.turns.iter().any(|turn| turn.answers(&text));
        if let Some(command) = Command::read(&text).filter(|_| !is_scripted) {
            return self.run_command(command).await;
        }
        match self.converse(prompts, &text, played).await {
            Ok(()) => Ok(()),
            Err(stop) => self.stop_short(stop).await,
        }
    }

    async fn converse(&mut self, prompts: &[Prompt], text: &str, played: &mut usize) -> Result<(), Stop> {
        let player = self.player;
        player.connect_servers().await?;
        if let Some(reason) = self.submit_prompt(text).await? {
            return self.refuse_prompt(text, &reason).await;
        }
        player.send(&player.init_frame(&self.uuids)).await?;
        let own_steps = prompts.iter().find_map(|prompt| prompt.steps.clone());
        let part = match own_steps {
            Some(steps) => script::Turn { steps, ..script::Turn::default() },
            None => player.part_for(text, played),
        };
        let mut steps = part.steps;
        for is_again in [false, true] {
            match self.run(&steps).await {
                Ok(()) | Err(Stop::Ended) => {}
                Err(stop) => return Err(stop),
            }
            if !self.is_held_back(is_again).await? {
                break;
            }
            steps.clone_from(&part.on_stop_blocked);
        }
        let fields = json!({ "result": self.text, "api_error_status": null });
        let result = self.result("success", false, fields);
        self.finish(result, "completed").await
    }

    /// What comes before `init`: the state, the lifecycles, replays of all messages but the last.
    async fn begin(&mut self, prompts: &[Prompt]) -> Result<(), Stop> {
        let player = self.player;
        if let Some(origin) = prompts.first().and_then(|prompt| prompt.origin.clone()) {
            self.end.insert("origin".to_owned(), origin);
            player.tell_state("running").await?;
        }
        if let Some((_, earlier)) = prompts.split_last() {
            for prompt in earlier.iter().filter(|_| player.launch.replays()) {
                self.replay(&prompt.content, prompt.uuid.as_deref(), false).await?;
            }
        }
        Ok(player.tell_lifecycle(&self.uuids, "started").await?)
    }

    async fn replay(&self, content: &Value, uuid: Option<&str>, is_dated: bool) -> Result<(), Stop> {
        let mut frame = json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "parent_tool_use_id": null,
            "uuid": uuid.map_or_else(new_uuid, ToOwned::to_owned),
            "isReplay": true,
        });
        if is_dated {
            frame["timestamp"] = timestamp().into();
        }
        Ok(self.player.send(&self.player.sign(frame)).await?)
    }

    /// Gives the prompt back to hosts that want that.
    pub(crate) async fn replay_prompt(&self) -> Result<(), Stop> {
        if self.agent.is_some() || self.content.is_null() || !self.player.launch.replays() {
            return Ok(());
        }
        self.replay(&self.content, self.uuids.last().map(String::as_str), true).await
    }

    /// Takes messages that came while a tool ran into this turn.
    pub(crate) async fn take_steering(&mut self) -> Result<(), Stop> {
        if self.agent.is_some() {
            return Ok(());
        }
        let prompts: Vec<Prompt> = self.player.change(|state| {
            let (taken, kept) = state.queue.drain(..).partition(|prompt| prompt.origin.is_none());
            state.queue = kept;
            Vec::from_iter::<std::collections::VecDeque<Prompt>>(taken)
        });
        for prompt in prompts {
            if self.player.launch.replays() {
                self.replay(&prompt.content, prompt.uuid.as_deref(), false).await?;
            }
            self.player.tell_lifecycle(prompt.uuid.as_slice(), "started").await?;
            self.uuids.extend(prompt.uuid.clone());
            self.steered.extend(prompt.uuid);
        }
        Ok(())
    }

    pub(crate) async fn tell_requesting(&self) -> Result<(), Stop> {
        if self.agent.is_some() || !self.player.launch.is_partial() {
            return Ok(());
        }
        let mut fields = json!({ "status": "requesting" });
        if !self.uuids.is_empty() {
            lay(&mut fields, json!({ "user_message_uuids": self.uuids }));
        }
        Ok(self.player.system("status", fields).await?)
    }

    /// What names the prompt in frames.
    pub(crate) fn prompt_fields(&self) -> Value {
        match self.uuids.last() {
            Some(last) => json!({ "user_message_uuid": last, "user_message_uuids": self.uuids }),
            None => json!({}),
        }
    }

    pub(crate) fn spend(&mut self, model: &str, tokens: Tokens) {
        self.tokens.add(tokens);
        self.player.change(|state| state.totals.spend(model, tokens));
    }

    /// `--max-turns` and `--max-budget-usd`.
    pub(crate) fn check_limits(&self) -> Result<(), Stop> {
        if self.agent.is_some() {
            return Ok(());
        }
        let launch = self.player.launch;
        if let Some(most) = launch.number::<u64>("--max-turns").filter(|most| self.requests >= *most) {
            let error = format!("Reached maximum number of turns ({most})");
            return Err(Stop::Limit { subtype: "error_max_turns", error, reason: "max_turns" });
        }
        self.check_budget()
    }

    pub(crate) fn check_budget(&self) -> Result<(), Stop> {
        let cost = self.player.state().totals.cost();
        let budget = self.player.launch.number::<f64>("--max-budget-usd");
        let Some(budget) = budget.filter(|budget| cost > *budget && self.agent.is_none()) else {
            return Ok(());
        };
        let error = format!("Reached maximum budget (${budget})");
        Err(Stop::Limit { subtype: "error_max_budget_usd", error, reason: "budget_exhausted" })
    }

    /// The hook UserPromptSubmit, which can refuse the prompt.
    async fn submit_prompt(&self, prompt: &str) -> Result<Option<String>, Stop> {
        if self.content.is_null() {
            return Ok(None);
        }
        let verdicts = self.fire("UserPromptSubmit", None, None, json!({ "prompt": prompt })).await?;
        Ok(verdicts.iter().find_map(Verdict::block_reason).map(ToOwned::to_owned))
    }

    async fn refuse_prompt(&mut self, prompt: &str, reason: &str) -> Result<(), Stop> {
        let player = self.player;
        player.send(&player.init_frame(&self.uuids)).await?;
        let content =
            format!("UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}");
        let outcome = json!({ "kind": "blocked_by_hook", "prompt_kept": false, "reason": reason });
        let fields = json!({
            "content": content,
            "level": "warning",
            "prevent_continuation": true,
            "prompt_submit_outcome": outcome,
        });
        player.system("informational", fields).await?;
        let result = player.bare_result("success", false, json!({ "result": content }));
        self.finish(result, "completed").await
    }
}
