//! The steps of a turn.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::play::Outcome;
use crate::player::{State, Stop};
use crate::script::{Act, ApiError, Step, Wait};
use crate::template;
use crate::turn::Turn;

impl Turn<'_, '_> {
    /// Plays steps; those of subagents come through here again.
    pub(crate) async fn run(&mut self, steps: &[Step]) -> Result<(), Stop> {
        for step in steps {
            self.pause(step.after, false).await?;
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
                self.fire(event, None, None, fields).await?;
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
                        self.pause(*time, false).await?;
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
                self.copy(&player.scenario.folder.join(path)).await?;
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

    /// A pause that an interrupt ends, unless this runs in the background.
    pub(crate) async fn pause(&self, time: Duration, in_tool: bool) -> Result<(), Stop> {
        if self.is_main() {
            return self.player.pause(time, in_tool).await;
        }
        tokio::time::sleep(time).await;
        Ok(())
    }

    /// Copies a file of lines to stdout, in large writes that end with a line, so that answers find a gap.
    async fn copy(&self, path: &Path) -> Result<(), Stop> {
        const CHUNK: usize = 1 << 20;
        let fail = async |error: std::io::Error| {
            let _ = self.player.complain(&format!("failed to play {}: {error}", path.display())).await;
            Stop::Exit(Outcome::exit(1))
        };
        let mut file = match File::open(path).await {
            Ok(file) => file,
            Err(error) => return Err(fail(error).await),
        };
        file.set_max_buf_size(CHUNK);
        let mut buffer = Vec::with_capacity(2 * CHUNK);
        loop {
            buffer.reserve(CHUNK);
            let read = match file.read_buf(&mut buffer).await {
                Ok(read) => read,
                Err(error) => return Err(fail(error).await),
            };
            let whole = match read {
                0 => buffer.len(),
                _ => buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            };
            // The next chunk is read while this one leaves.
            self.player.write_ahead(&buffer[..whole]).await?;
            buffer.drain(..whole);
            if read == 0 {
                return Ok(self.player.write(&[]).await?);
            }
            self.pause(Duration::ZERO, false).await?;
        }
    }

    pub(crate) fn is_main(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| !agent.is_background)
    }

    async fn wait(&self, wait: &Wait) -> Result<(), Stop> {
        let is_there = |state: &mut State| match wait {
            Wait::Interrupt => None,
            Wait::Messages(count) => (state.queue.len() >= *count).then_some(()),
            Wait::EndOfInput => state.is_closed.then_some(()),
            Wait::Request(subtype) => state.seen.get(subtype).is_some_and(|seen| *seen > 0).then_some(()),
        };
        let came = self.player.until(|state| {
            if state.is_interrupted {
                return Some(Err(Stop::Interrupted { tool: false }));
            }
            if state.is_preempted {
                return Some(Err(Stop::Preempted));
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

    /// The API refuses: tries again as often as the script says, then gives up or goes on.
    async fn fail_request(&mut self, error: &ApiError) -> Result<(), Stop> {
        let player = self.player;
        self.check_limits()?;
        self.tell_requesting().await?;
        let most = player.launch.variable("CLAUDE_CODE_MAX_RETRIES").and_then(|most| most.parse().ok());
        // A bad request is not tried again.
        let is_worth_it = !matches!(error.status, 400 | 404 | 413);
        let retries = error.retries.unwrap_or(if is_worth_it { most.unwrap_or(2) } else { 0 });
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
            self.pause(Duration::from_millis(1), false).await?;
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
