//! The model's messages: stream events for hosts that want them, and one assistant frame for each block.

use std::time::Duration;

use serde_json::{Value, json};

use crate::player::{Stop, lay, new_id, new_uuid, timestamp};
use crate::result::Tokens;
use crate::turn::Turn;

/// A message that is being written.
#[derive(Debug)]
pub(crate) struct Message {
    id: String,
    model: String,
    blocks: u64,
    tokens: Tokens,
    /// The first message after a prompt names the prompt.
    is_first: bool,
}

/// Characters that count as one token.
const TOKEN: usize = 4;
/// What every request is said to cost.
const INPUT_TOKENS: u64 = 10;

impl Turn<'_, '_> {
    /// Begins a message, unless one is open.
    pub(crate) async fn open_message(&mut self) -> Result<(), Stop> {
        if self.message.is_some() {
            return Ok(());
        }
        self.check_limits()?;
        let is_first = self.requests == 0;
        if !is_first {
            self.take_steering().await?;
        }
        self.tell_requesting().await?;
        if is_first {
            self.replay_prompt().await?;
        }
        self.requests += 1;
        let model = match &self.agent {
            Some(agent) => agent.model.clone(),
            None => self.player.state().model.clone(),
        };
        let tokens = Tokens { input: INPUT_TOKENS, output: 0 };
        let message = Message { id: new_id("msg_", 20), model, blocks: 0, tokens, is_first };
        let start = json!({
            "type": "message_start",
            "message": {
                "id": message.id,
                "type": "message",
                "role": "assistant",
                "model": message.model,
                "content": [],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": short_usage(),
            },
        });
        let mut fields = json!({ "ttft_ms": 1, "thinking_display": "updates" });
        if is_first {
            lay(&mut fields, self.prompt_fields());
            if !self.uuids.is_empty() {
                lay(&mut fields, json!({ "owed_rows": [] }));
            }
        }
        self.message = Some(message);
        self.stream(start, fields).await
    }

    /// A text block, in pieces of `size` characters.
    pub(crate) async fn say(&mut self, text: &str, size: usize, pause: Duration) -> Result<(), Stop> {
        self.open_message().await?;
        let index = self.start_block(json!({ "type": "text", "text": "" })).await?;
        let mut said = 0;
        if self.streams() || !pause.is_zero() {
            for piece in pieces(text, size) {
                let delta = json!({ "type": "text_delta", "text": piece });
                self.stream_delta(index, delta).await?;
                said += piece.len();
                if let Err(stop) = self.pause(pause, false).await {
                    // What was said stays said.
                    self.show_block(json!({ "type": "text", "text": &text[..said] }), json!({})).await?;
                    return Err(stop);
                }
            }
        }
        self.text = text.to_owned();
        self.show_block(json!({ "type": "text", "text": text }), json!({})).await?;
        self.stop_block(index, text.len()).await
    }

    /// A thinking block, with its estimates and its signature.
    pub(crate) async fn think(&mut self, thinking: &str, signature: &str, size: usize) -> Result<(), Stop> {
        self.open_message().await?;
        let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let index = self.start_block(start).await?;
        if self.streams() {
            let mut total = 0;
            for piece in pieces(thinking, size) {
                let tokens = piece.len().div_ceil(TOKEN);
                total += tokens;
                let estimate = json!({ "estimated_tokens": total, "estimated_tokens_delta": tokens });
                self.player.system("thinking_tokens", estimate).await?;
                let delta = json!({ "type": "thinking_delta", "thinking": piece });
                self.stream_delta(index, delta).await?;
                self.pause(Duration::ZERO, false).await?;
            }
            let delta = json!({ "type": "signature_delta", "signature": signature });
            self.stream_delta(index, delta).await?;
        }
        let block = json!({ "type": "thinking", "thinking": thinking, "signature": signature });
        self.show_block(block, json!({})).await?;
        self.stop_block(index, thinking.len()).await
    }

    /// A tool use block; `fields` are laid over its assistant frame.
    pub(crate) async fn use_tool(
        &mut self,
        id: &str,
        name: &str,
        input: &Value,
        fields: Value,
    ) -> Result<(), Stop> {
        self.open_message().await?;
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let index = self.start_block(start).await?;
        let text = input.to_string();
        if self.streams() {
            for piece in pieces(&text, self.player.scenario.delta) {
                let delta = json!({ "type": "input_json_delta", "partial_json": piece });
                self.stream_delta(index, delta).await?;
            }
        }
        self.show_block(json!({ "type": "tool_use", "id": id, "name": name, "input": input }), fields)
            .await?;
        self.stop_block(index, text.len()).await
    }

    /// Ends the open message, if there is one.
    pub(crate) async fn close_message(&mut self, reason: &str) -> Result<(), Stop> {
        match self.finish_message(reason).await? {
            Some(stop) => Ok(self.player.send(&stop).await?),
            None => Ok(()),
        }
    }

    /// Ends the open message but for its last event, which is given back if there is one.
    pub(crate) async fn finish_message(&mut self, reason: &str) -> Result<Option<Value>, Stop> {
        let Some(message) = &self.message else { return Ok(None) };
        let (model, tokens) = (message.model.clone(), message.tokens);
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        let usage = json!({ "output_tokens": tokens.output });
        self.stream(json!({ "type": "message_delta", "delta": delta, "usage": usage }), json!({})).await?;
        let stop = self.streams().then(|| self.event_frame(json!({ "type": "message_stop" }), json!({})));
        self.message = None;
        self.stop_reason = reason.into();
        self.spend(&model, tokens);
        Ok(stop)
    }

    /// Breaks the open message off, as an interrupt does.
    pub(crate) async fn abandon_message(&mut self) -> Result<(), Stop> {
        let Some(message) = &self.message else { return Ok(()) };
        let abandoned = json!({ "api_message_id": message.id, "from_block_index": message.blocks });
        let delta =
            json!({ "container": null, "stop_details": null, "stop_reason": null, "stop_sequence": null });
        let event = json!({ "type": "message_delta", "context_management": null, "delta": delta, "usage": short_usage() });
        self.stream(event, json!({})).await?;
        self.stream(json!({ "type": "message_stop" }), json!({ "abandoned_blocks": abandoned })).await?;
        self.message = None;
        Ok(())
    }

    /// Whether stream events are wanted. Subagents have none.
    fn streams(&self) -> bool {
        self.agent.is_none() && self.player.launch.is_partial()
    }

    async fn stream(&self, event: Value, fields: Value) -> Result<(), Stop> {
        if self.streams() {
            self.player.send(&self.event_frame(event, fields)).await?;
        }
        Ok(())
    }

    fn event_frame(&self, event: Value, fields: Value) -> Value {
        let id = self.message.as_ref().map(|message| message.id.as_str());
        let mut frame = json!({
            "type": "stream_event",
            "event": event,
            "parent_tool_use_id": null,
            "api_message_id": id,
        });
        lay(&mut frame, fields);
        self.player.sign(frame)
    }

    async fn stream_delta(&self, index: u64, delta: Value) -> Result<(), Stop> {
        let fields = thinking_display(&delta);
        self.stream(json!({ "type": "content_block_delta", "index": index, "delta": delta }), fields).await
    }

    async fn start_block(&mut self, block: Value) -> Result<u64, Stop> {
        let index = self.message.as_ref().map_or(0, |message| message.blocks);
        let fields = thinking_display(&block);
        let event = json!({ "type": "content_block_start", "index": index, "content_block": block });
        self.stream(event, fields).await?;
        Ok(index)
    }

    async fn stop_block(&mut self, index: u64, length: usize) -> Result<(), Stop> {
        self.stream(json!({ "type": "content_block_stop", "index": index }), json!({})).await?;
        if let Some(message) = &mut self.message {
            message.blocks += 1;
            message.tokens.output += length.div_ceil(TOKEN) as u64;
        }
        self.pause(Duration::ZERO, false).await
    }

    /// The assistant frame of one finished block. A foreground subagent keeps its prose to itself.
    async fn show_block(&self, block: Value, fields: Value) -> Result<(), Stop> {
        let Some(message) = &self.message else { return Ok(()) };
        if let Some(agent) = &self.agent {
            let is_prose = block["type"] != "tool_use";
            if is_prose && !agent.is_background && !self.player.state().forwards_subagents {
                return Ok(());
            }
        }
        let mut frame = json!({
            "type": "assistant",
            "message": {
                "id": message.id,
                "type": "message",
                "role": "assistant",
                "model": message.model,
                "content": [block],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": short_usage(),
                "context_management": null,
            },
            "uuid": new_uuid(),
            "timestamp": timestamp(),
        });
        if message.is_first {
            lay(&mut frame, self.prompt_fields());
        }
        lay(&mut frame, self.agent_fields());
        lay(&mut frame, fields);
        Ok(self.player.send(&self.player.sign(frame)).await?)
    }
}

/// What events about thinking carry in addition.
fn thinking_display(part: &Value) -> Value {
    match part["type"].as_str() {
        Some("thinking" | "thinking_delta") => json!({ "thinking_display": "updates" }),
        _ => json!({}),
    }
}

/// Usage as `message_start` reports it, which is not yet the truth.
fn short_usage() -> Value {
    json!({
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    })
}

/// A text in pieces of `size` characters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, left) = rest.split_at(end);
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_are_whole_characters_and_lose_nothing() {
        assert_eq!(pieces("añb€c", 2).collect::<Vec<_>>(), ["añ", "b€", "c"]);
        assert_eq!(pieces("", 2).count(), 0);
    }
}
