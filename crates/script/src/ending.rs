//! How a turn ends.

use serde_json::{Map, Value, json};

use crate::hook::Verdict;
use crate::player::{Player, Stop, lay, new_uuid, timestamp};
use crate::result::{Tokens, usage};
use crate::step::error_kind;
use crate::turn::Turn;

impl Turn<'_, '_> {
    /// The model has nothing more to say: the Stop hooks may hold the turn back, once.
    pub(crate) async fn is_held_back(&mut self, is_again: bool) -> Result<bool, Stop> {
        if let Some(output) = self.end.get("structured_output") {
            let text = output.to_string();
            self.end.entry("result").or_insert_with(|| text.into());
        } else {
            self.close_message("end_turn").await?;
        }
        let fields = json!({
            "stop_hook_active": is_again,
            "last_assistant_message": self.text,
            "background_tasks": self.player.state().tasks,
            "session_crons": [],
        });
        let verdicts = self.fire("Stop", None, None, fields).await?;
        let reason = verdicts.iter().find_map(Verdict::block_reason);
        let Some(reason) = reason.filter(|_| !is_again) else { return Ok(false) };
        let content = json!([{ "type": "text", "text": format!("Stop hook feedback:\n{reason}") }]);
        self.show_user(content, json!({ "isSynthetic": true })).await?;
        let fields = json!({
            "key": "stop-hook-error",
            "text": "Stop hook error occurred · ctrl+o to see",
            "priority": "immediate",
        });
        self.player.system("notification", fields).await?;
        Ok(true)
    }

    pub(crate) async fn stop_short(&mut self, stop: Stop) -> Result<(), Stop> {
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
            Stop::Preempted => {
                self.abandon_message().await?;
                let fields = json!({ "result": self.text, "api_error_status": null });
                let result = self.result("success", false, fields);
                self.finish(result, "aborted_streaming").await
            }
            Stop::Limit { subtype, error, reason } => {
                let result = self.result(subtype, true, json!({ "errors": [error] }));
                self.finish(result, reason).await
            }
            Stop::ApiError { status, kind, text } => {
                let fields = json!({
                    "error": error_kind(status),
                    "is_api_error_message": true,
                    "api_error_status": status,
                    "api_error_type": kind,
                });
                player.say_synthetic(&text, "stop_sequence", fields).await?;
                self.stop_reason = "stop_sequence".into();
                let fields = json!({ "result": text, "api_error_status": status, "api_error_type": kind });
                let result = self.result("success", true, fields);
                self.finish(result, "api_error").await
            }
            Stop::Ended => Ok(()),
            Stop::Exit(outcome) => Err(Stop::Exit(outcome)),
        }
    }

    pub(crate) fn result(&self, subtype: &str, is_error: bool, fields: Value) -> Value {
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
        if subtype == "success" && !is_error {
            lay(
                &mut result,
                json!({ "ttft_ms": 1, "ttft_stream_ms": 1, "time_to_request_ms": 1, "first_content_frame_ms": 1 }),
            );
            if !self.uuids.is_empty() {
                lay(
                    &mut result,
                    json!({
                        "request_sent_wall_ms": jiff::Timestamp::now().as_millisecond(),
                        "first_request_input_tokens": 10,
                        "first_request_cache_read_input_tokens": 0,
                    }),
                );
            }
        }
        result
    }

    /// Sends the result and all that follows it.
    pub(crate) async fn finish(&mut self, mut result: Value, reason: &str) -> Result<(), Stop> {
        let player = self.player;
        if result["num_turns"] != 0 {
            result["terminal_reason"] = reason.into();
        }
        lay(&mut result, self.prompt_fields());
        lay(&mut result, Value::Object(std::mem::take(&mut self.end)));
        let is_error = result["is_error"] == true;
        player.change(|state| state.totals.failed = is_error);
        player.tell_lifecycle(&self.steered, "completed").await?;
        player.send(&result).await?;
        let own: Vec<String> =
            self.uuids.iter().filter(|uuid| !self.steered.contains(uuid)).cloned().collect();
        let state = match reason {
            "aborted_streaming" | "aborted_tools" | "api_error" | "budget_exhausted" => "cancelled",
            _ => "completed",
        };
        player.tell_lifecycle(&own, state).await?;
        if player.state().queue.is_empty() {
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

    pub(crate) async fn show_boundary(&self, trigger: &str, fields: Map<String, Value>) -> Result<(), Stop> {
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
}

impl Player<'_> {
    /// Something that no model said: an error of the API, or what a local command has to say.
    pub(crate) async fn say_synthetic(
        &self,
        text: &str,
        stop_reason: &str,
        fields: Value,
    ) -> std::io::Result<()> {
        let message = json!({
            "diagnostics": null,
            "id": new_uuid(),
            "container": null,
            "model": "<synthetic>",
            "role": "assistant",
            "stop_details": null,
            "stop_reason": stop_reason,
            "stop_sequence": "",
            "type": "message",
            "usage": usage(Tokens::default()),
            "content": [{ "type": "text", "text": text }],
            "context_management": null,
        });
        let mut frame = json!({
            "type": "assistant",
            "message": message,
            "parent_tool_use_id": null,
            "timestamp": timestamp(),
        });
        lay(&mut frame, fields);
        self.send(&self.sign(frame)).await
    }
}
