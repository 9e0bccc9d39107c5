//! One turn: from a prompt to its result.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::hook::{Event, Verdict};
use crate::message::Message;
use crate::player::{Outcome, Player, Prompt, Stop, lay, new_uuid, timestamp};
use crate::result::{Tokens, usage};
use crate::script::{Act, ApiError, Step, Wait};
use crate::task::Agent;
use crate::template;

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
    steered: Vec<String>,
    started: Instant,
}

impl Player<'_> {
    /// Plays turns until the input has ended and nothing is left to do.
    pub(crate) async fn take_turns(&self) -> Outcome {
        let mut played = 0;
        loop {
            let prompts = self
                .until(|state| {
                    if !state.queue.is_empty() {
                        state.is_running = true;
                        return Some(Some(take_merged(&mut state.queue)));
                    }
                    (state.is_closed && state.jobs.is_empty() && state.running_jobs == 0).then_some(None)
                })
                .await;
            let Some(prompts) = prompts else { return Outcome::exit(i32::from(self.state().totals.failed)) };
            if let Err(outcome) = self.take_turn(prompts, &mut played).await {
                return outcome;
            }
            self.change(|state| {
                state.is_running = false;
                state.is_interrupted = false;
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

    /// The steps for a prompt: those of the first turn whose `when` it contains, else the next turn without one. The last
    /// is played again and again; without any, the prompt is echoed.
    fn steps_for(&self, prompt: &str, played: &mut usize) -> Vec<Step> {
        let turns = &self.scenario.turns;
        if let Some(turn) =
            turns.iter().find(|turn| turn.when.as_ref().is_some_and(|when| prompt.contains(when)))
        {
            return turn.steps.clone();
        }
        let mut plain = turns.iter().filter(|turn| turn.when.is_none());
        let count = plain.clone().count();
        let at = (*played).min(count.saturating_sub(1));
        *played += 1;
        plain.nth(at).map_or_else(echo, |turn| turn.steps.clone())
    }
}

fn echo() -> Vec<Step> {
    let text = "You said: ${prompt}".to_owned();
    vec![Step { after: Duration::ZERO, act: Act::Text { text, repeat: 1, delta: None, delta_pause: None } }]
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
        let origin = prompts.first().and_then(|prompt| prompt.origin.clone());
        if origin.is_some() {
            player.tell_state("running").await?;
        }
        self.begin(prompts).await?;
        let text = text_of(&self.content);
        if prompts.iter().any(|prompt| prompt.is_note) {
            let result = player.bare_result("success", false, json!({ "result": "" }));
            return self.finish(result, "completed").await;
        }
        if let Some(instructions) =
            text.strip_prefix("/compact").filter(|_| !player.launch.flag("--disable-slash-commands"))
        {
            return self.compact_on_demand(instructions.trim()).await;
        }
        player.connect_servers().await?;
        if let Some(reason) = self.submit_prompt(&text).await? {
            return self.refuse_prompt(&text, &reason).await;
        }
        player.send(&player.init_frame(&self.uuids)).await?;
        let steps = match prompts.iter().find_map(|prompt| prompt.steps.clone()) {
            Some(steps) => steps,
            None => player.steps_for(&text, played),
        };
        if let Some(origin) = origin {
            self.end.insert("origin".to_owned(), origin);
        }
        let outcome = match self.run(&steps).await {
            Ok(()) | Err(Stop::Ended) => self.stop_normally().await,
            Err(stop) => Err(stop),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(stop) => self.stop_short(stop).await,
        }
    }

    /// What comes before `init`: the state, the lifecycles, replays of all messages but the last.
    async fn begin(&self, prompts: &[Prompt]) -> Result<(), Stop> {
        let player = self.player;
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
        let cost = self.player.state().totals.cost();
        if let Some(budget) = launch.number::<f64>("--max-budget-usd").filter(|budget| cost > *budget) {
            let error = format!("Reached maximum budget (${budget})");
            return Err(Stop::Limit { subtype: "error_max_budget_usd", error, reason: "budget_exhausted" });
        }
        Ok(())
    }

    /// Plays steps; those of subagents come through here again.
    pub(crate) async fn run(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            self.player.pause(step.after, false).await?;
            Box::pin(self.step(&step.act)).await?;
        }
        Ok(())
    }

    async fn step(&mut self, act: &Act) -> Result<(), Stop> {
        let player = self.player;
        match act {
            Act::Pause => {}
            Act::Text { text, repeat, delta, delta_pause } => {
                let text = player.fill(text, &self.scope).repeat(*repeat);
                let scenario = player.scenario;
                let pause = delta_pause.unwrap_or(scenario.delta_pause);
                self.say(&text, delta.unwrap_or(scenario.delta), pause).await?;
            }
            Act::Thinking { thinking, signature } => {
                let thinking = player.fill(thinking, &self.scope);
                self.think(&thinking, signature, player.scenario.delta).await?;
            }
            Act::Tools { tools, parallel } => self.use_tools(tools, *parallel).await?,
            Act::ApiError(error) => self.fail_request(error).await?,
            Act::Compact { trigger, fields } => {
                self.close_message("end_turn").await?;
                player.system("status", json!({ "status": "compacting" })).await?;
                player.system("status", json!({ "status": null, "compact_result": "success" })).await?;
                self.show_boundary(trigger, fields.clone()).await?;
            }
            Act::Mode(mode) => player.switch_mode(mode).await?,
            Act::Wait(wait) => self.wait(wait).await?,
            Act::Hook { event, input } => {
                let fields = template::fill_value(&Value::Object(input.clone()), &player.scope(&self.scope));
                let event = Event {
                    name: event,
                    subject: None,
                    tool_use_id: None,
                    prompt_id: &self.prompt_id,
                    fields,
                };
                player.fire(event, self.is_main()).await?;
            }
            Act::Elicitation(question) => {
                let server = question.server.clone().unwrap_or_else(|| "scripted".to_owned());
                self.elicit(question, &server).await?;
            }
            Act::Request { request, cancel_after, forget } => {
                let request =
                    template::fill_value(&Value::Object(request.clone()), &player.scope(&self.scope));
                match cancel_after {
                    Some(time) => {
                        let id = player.request(request, self.is_main()).await?;
                        player.pause(*time, false).await?;
                        player.withdraw(&id).await?;
                    }
                    None if *forget => drop(player.request(request, self.is_main()).await?),
                    None => drop(player.ask(request, self.is_main()).await?),
                }
            }
            Act::Raw(frame) => {
                let frame = template::fill_value(frame, &player.scope(&self.scope));
                player.send(&player.sign(frame)).await?;
            }
            Act::Line { line, repeat } => {
                let mut line = player.fill(line, &self.scope).repeat(*repeat);
                line.push('\n');
                player.write(line.as_bytes()).await?;
            }
            Act::Bytes(bytes) => player.write(bytes).await?,
            Act::Stderr { text, repeat } => {
                let text = player.fill(text, &self.scope);
                for _ in 0..*repeat {
                    player.complain(&text).await?;
                }
            }
            Act::Play(path) => {
                let path = player.scenario.folder.join(path);
                if let Err(error) = player.copy(&path).await {
                    player.complain(&format!("failed to play {}: {error}", path.display())).await?;
                    return Err(Stop::Exit(Outcome::exit(1)));
                }
            }
            Act::End(fields) => {
                let fields = template::fill_value(&Value::Object(fields.clone()), &player.scope(&self.scope));
                if let Value::Object(fields) = fields {
                    self.end.extend(fields);
                }
                return Err(Stop::Ended);
            }
            Act::Exit(code) => return Err(Stop::Exit(Outcome::exit(*code))),
            Act::Kill => return Err(Stop::Exit(Outcome { code: 137, killed: true })),
            Act::StopReading => player.change(|state| state.stops_reading = true),
            Act::CloseStdout => player.close_stdout().await,
        }
        Ok(())
    }

    pub(crate) fn is_main(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| !agent.is_background)
    }

    async fn wait(&self, wait: &Wait) -> Result<(), Stop> {
        let is_there = |state: &mut crate::player::State| match wait {
            Wait::Interrupt => None,
            Wait::Messages(count) => (state.queue.len() >= *count).then_some(()),
            Wait::EndOfInput => state.is_closed.then_some(()),
            Wait::Request(subtype) => state.seen.get(subtype).is_some_and(|seen| *seen > 0).then_some(()),
        };
        let came = self.player.until(|state| {
            if state.is_interrupted {
                return Some(Err(Stop::Interrupted { tool: false }));
            }
            // An input that has ended brings nothing any more.
            is_there(state).or(state.is_closed.then_some(())).map(Ok)
        });
        came.await?;
        if let Wait::Request(subtype) = wait {
            self.player.change(|state| state.seen.remove(subtype));
        }
        Ok(())
    }

    /// The hook UserPromptSubmit, which can refuse the prompt.
    async fn submit_prompt(&self, prompt: &str) -> Result<Option<String>, Stop> {
        if self.content.is_null() {
            return Ok(None);
        }
        let fields = json!({ "prompt": prompt });
        let event = Event {
            name: "UserPromptSubmit",
            subject: None,
            tool_use_id: None,
            prompt_id: &self.prompt_id,
            fields,
        };
        let verdicts = self.player.fire(event, true).await?;
        Ok(verdicts.into_iter().find_map(|verdict| match verdict {
            Verdict::Output(output) if output.get("decision").is_some_and(|decision| decision == "block") => {
                Some(output.get("reason").and_then(Value::as_str).unwrap_or("Blocked by hook").to_owned())
            }
            _ => None,
        }))
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

    /// The API refuses: tries again as often as the script says, then gives up or goes on.
    async fn fail_request(&mut self, error: &ApiError) -> Result<(), Stop> {
        let player = self.player;
        self.check_limits()?;
        self.tell_requesting().await?;
        let most = player.launch.variable("CLAUDE_CODE_MAX_RETRIES").and_then(|most| most.parse().ok());
        // A bad request is not tried again.
        let retries = error.retries.or(most).unwrap_or(if error.status == 400 { 0 } else { 2 });
        let kind = error_kind(error.status);
        for attempt in 1..=retries {
            let delay = 500 << attempt.min(6).saturating_sub(1);
            let fields = json!({
                "attempt": attempt,
                "max_retries": most.unwrap_or(retries),
                "retry_delay_ms": delay,
                "error_status": error.status,
                "error": if error.status == 529 { "overloaded" } else { kind },
            });
            player.system("api_retry", fields).await?;
            player.pause(Duration::from_millis(1), false).await?;
        }
        if error.recover {
            return Ok(());
        }
        let message = error.message.clone().unwrap_or_else(|| default_message(error.status).to_owned());
        let text = match error.status {
            401 => format!("Failed to authenticate. API Error: 401 {message}"),
            429 => format!("API Error: Request rejected (429) · {message}"),
            status @ 500.. => {
                format!(
                    "API Error: {status} {message}. This is a server-side issue, usually temporary — try again in a moment."
                )
            }
            status => format!("API Error: {status} {message}"),
        };
        let kind = error.kind.clone().unwrap_or_else(|| default_type(error.status).to_owned());
        Err(Stop::ApiError { status: error.status, kind, text })
    }
}

/// The name of an error in frames.
pub(crate) fn error_kind(status: u16) -> &'static str {
    match status {
        401 | 403 => "authentication_failed",
        404 => "model_not_found",
        413 => "invalid_request",
        429 => "rate_limit",
        500.. => "server_error",
        _ => "unknown",
    }
}

fn default_message(status: u16) -> &'static str {
    match status {
        401 => "invalid x-api-key",
        429 => "Number of requests has exceeded your rate limit",
        529 => "Overloaded",
        500.. => "Internal server error",
        _ => "Bad request",
    }
}

fn default_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        404 => "not_found_error",
        _ => "invalid_request_error",
    }
}

/// How a turn ends.
impl Turn<'_, '_> {
    /// The model has nothing more to say.
    async fn stop_normally(&mut self) -> Result<(), Stop> {
        if self.end.contains_key("structured_output") {
            let text = self.end["structured_output"].to_string();
            self.end.entry("result").or_insert_with(|| text.into());
        } else {
            self.close_message("end_turn").await?;
        }
        let fields = json!({
            "stop_hook_active": false,
            "last_assistant_message": self.text,
            "background_tasks": self.player.state().tasks,
            "session_crons": [],
        });
        let event =
            Event { name: "Stop", subject: None, tool_use_id: None, prompt_id: &self.prompt_id, fields };
        self.player.fire(event, true).await?;
        let fields = json!({ "result": self.text, "api_error_status": null });
        let result = self.result("success", false, fields);
        self.finish(result, "completed").await
    }

    async fn stop_short(&mut self, stop: Stop) -> Result<(), Stop> {
        let player = self.player;
        match stop {
            Stop::Interrupted { tool } => {
                let mark = if tool {
                    "[Request interrupted by user for tool use]"
                } else {
                    "[Request interrupted by user]"
                };
                self.show_user(json!([{ "type": "text", "text": mark }]), json!({})).await?;
                self.abandon_message().await?;
                let reason = self.stop_reason.as_str().unwrap_or("null");
                let error =
                    format!("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={reason}");
                let result = self.result("error_during_execution", true, json!({ "errors": [error] }));
                self.finish(result, if tool { "aborted_tools" } else { "aborted_streaming" }).await
            }
            Stop::Limit { subtype, error, reason } => {
                let result = self.result(subtype, true, json!({ "errors": [error] }));
                self.finish(result, reason).await
            }
            Stop::ApiError { status, kind, text } => {
                let message = json!({
                    "diagnostics": null,
                    "id": new_uuid(),
                    "container": null,
                    "model": "<synthetic>",
                    "role": "assistant",
                    "stop_details": null,
                    "stop_reason": "stop_sequence",
                    "stop_sequence": "",
                    "type": "message",
                    "usage": usage(Tokens::default()),
                    "content": [{ "type": "text", "text": text }],
                    "context_management": null,
                });
                let frame = json!({
                    "type": "assistant",
                    "message": message,
                    "parent_tool_use_id": null,
                    "timestamp": timestamp(),
                    "error": error_kind(status),
                    "is_api_error_message": true,
                    "api_error_status": status,
                    "api_error_type": kind,
                });
                player.send(&player.sign(frame)).await?;
                self.stop_reason = "stop_sequence".into();
                let fields = json!({ "result": text, "api_error_status": status, "api_error_type": kind });
                let result = self.result("success", true, fields);
                self.finish(result, "api_error").await
            }
            Stop::Ended => Ok(()),
            Stop::Exit(outcome) => Err(Stop::Exit(outcome)),
        }
    }

    fn result(&self, subtype: &str, is_error: bool, fields: Value) -> Value {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut result = self.player.bare_result(subtype, is_error, fields);
        lay(
            &mut result,
            json!({
                "duration_ms": elapsed,
                "num_turns": 1 + self.user_frames,
                "stop_reason": self.stop_reason,
                "usage": usage(self.tokens),
                "permission_denials": self.denials,
            }),
        );
        if subtype == "success" {
            lay(
                &mut result,
                json!({ "ttft_ms": 1, "ttft_stream_ms": 1, "time_to_request_ms": 1, "first_content_frame_ms": 1 }),
            );
        }
        result
    }

    /// Sends the result and all that follows it.
    async fn finish(&mut self, mut result: Value, reason: &str) -> Result<(), Stop> {
        let player = self.player;
        if result["num_turns"] != 0 {
            result["terminal_reason"] = reason.into();
        }
        lay(&mut result, self.prompt_fields());
        lay(&mut result, Value::Object(std::mem::take(&mut self.end)));
        let is_error = result["is_error"] == true;
        player.change(|state| state.totals.failed = is_error);
        player.tell_lifecycle(&self.steered, "completed").await?;
        let queued = player.state().queue.len();
        result["queued_turn_count"] = usize::from(queued > 0).into();
        player.send(&result).await?;
        let own: Vec<String> =
            self.uuids.iter().filter(|uuid| !self.steered.contains(uuid)).cloned().collect();
        let is_aborted = reason.starts_with("aborted");
        player.tell_lifecycle(&own, if is_aborted { "cancelled" } else { "completed" }).await?;
        if queued == 0 {
            player.tell_state("idle").await?;
        }
        Ok(())
    }

    /// A user frame of our own making.
    pub(crate) async fn show_user(&mut self, content: Value, fields: Value) -> Result<(), Stop> {
        self.user_frames += 1;
        let mut frame = json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "timestamp": timestamp(),
        });
        lay(&mut frame, self.agent_fields());
        lay(&mut frame, fields);
        Ok(self.player.send(&self.player.sign(frame)).await?)
    }

    async fn show_boundary(&self, trigger: &str, fields: Map<String, Value>) -> Result<(), Stop> {
        let mut metadata = json!({ "trigger": trigger, "pre_tokens": 30, "post_tokens": 20, "cumulative_dropped_tokens": 0, "duration_ms": 1 });
        lay(&mut metadata, Value::Object(fields));
        let fields = json!({ "compact_metadata": metadata, "logical_parent_uuid": new_uuid() });
        self.player.system("compact_boundary", fields).await?;
        let summary = "This session is being continued from a previous conversation that ran out of context. \
                       The scripted summary has nothing to say about it.";
        let frame = json!({
            "type": "user",
            "message": { "role": "user", "content": summary },
            "parent_tool_use_id": null,
            "timestamp": timestamp(),
            "isReplay": false,
            "isSynthetic": true,
        });
        Ok(self.player.send(&self.player.sign(frame)).await?)
    }

    /// `/compact`.
    async fn compact_on_demand(&mut self, _instructions: &str) -> Result<(), Stop> {
        let player = self.player;
        player.system("status", json!({ "status": "compacting" })).await?;
        player.system("status", json!({ "status": null, "compact_result": "success" })).await?;
        player.send(&player.init_frame(&self.uuids)).await?;
        self.show_boundary("manual", Map::new()).await?;
        player.say_locally("Compacted ").await?;
        let result =
            player.bare_result("success", false, json!({ "result": "", "local_command": "compact" }));
        self.finish(result, "completed").await
    }
}
