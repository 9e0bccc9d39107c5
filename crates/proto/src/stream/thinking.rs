//! Thinking as it happens, shown once.

use super::{ContentBlock, Delta, Event, Message, System, ThinkingBlock};

/// Follows the thinking of a session: pieces while they come, and the whole block when it is done.
///
/// The CLI says everything twice, first in deltas and then in the final block. Show [`ThinkingUpdate::text`] and nothing
/// else, and every word appears once, with or without partial messages.
///
/// ```
/// use oarlock_proto::stream::{decode, Thinking};
///
/// let lines = [
///     r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}"#,
///     r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}}"#,
///     r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,
///         "delta":{"type":"thinking_delta","thinking":"Let me see."}}}"#,
///     r#"{"type":"assistant","message":{"id":"m1","content":
///         [{"type":"thinking","thinking":"Let me see.","signature":"s"}]}}"#,
/// ];
/// let (mut thinking, mut shown) = (Thinking::default(), String::new());
/// for line in lines {
///     if let Some(update) = thinking.follow(&decode(line.as_bytes()).expect("a message")) {
///         shown += &update.text;
///     }
/// }
/// assert_eq!(shown, "Let me see.");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Thinking {
    /// The message that streams.
    message_id: String,
    /// What its open thinking block holds so far.
    live: Option<String>,
}

/// What is new.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThinkingUpdate {
    /// Text that was not shown before; may be empty.
    pub text: String,
    /// How much has been thought, as the CLI estimates it.
    pub estimated_tokens: Option<u64>,
    /// The whole block with its signature, when it is done.
    pub finished: Option<ThinkingBlock>,
    /// The tool call whose subagent thinks.
    pub parent_tool_use_id: Option<String>,
}

impl Thinking {
    /// Takes the next message. `None`: it is not about thinking.
    pub fn follow(&mut self, message: &Message) -> Option<ThinkingUpdate> {
        match message {
            // Subagents send no stream events, so there is one stream at most.
            Message::StreamEvent(stream) => self.follow_event(&stream.event),
            Message::System(System::ThinkingTokens(tokens)) => {
                Some(ThinkingUpdate { estimated_tokens: Some(tokens.estimated_tokens), ..Default::default() })
            }
            Message::Assistant(assistant) => {
                let mut update: Option<ThinkingUpdate> = None;
                for block in &assistant.message.content {
                    let ContentBlock::Thinking(block) = block else { continue };
                    let update = update.get_or_insert_default();
                    update.text += self.finish(&assistant.message.id, block);
                    update.finished = Some(block.clone());
                    update.parent_tool_use_id.clone_from(&assistant.parent_tool_use_id);
                }
                update
            }
            _ => None,
        }
    }

    fn follow_event(&mut self, event: &Event) -> Option<ThinkingUpdate> {
        match event {
            Event::MessageStart(start) => {
                *self = Self { message_id: start.message.id.clone(), live: None };
                None
            }
            Event::ContentBlockStart(start) => match &start.content_block {
                ContentBlock::Thinking(block) => {
                    self.live = Some(block.thinking.clone());
                    Some(ThinkingUpdate { text: block.thinking.clone(), ..Default::default() })
                }
                _ => None,
            },
            Event::ContentBlockDelta(event) => match &event.delta {
                Delta::Thinking(delta) => {
                    self.live.get_or_insert_default().push_str(&delta.thinking);
                    Some(ThinkingUpdate {
                        text: delta.thinking.clone(),
                        estimated_tokens: delta.estimated_tokens,
                        ..Default::default()
                    })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The part of a final block that was not shown while it streamed.
    fn finish<'a>(&mut self, message_id: &str, block: &'a ThinkingBlock) -> &'a str {
        match self.live.take_if(|_| self.message_id == message_id) {
            // A block that reads otherwise than it streamed has been seen all the same.
            Some(live) => block.thinking.strip_prefix(&live).unwrap_or_default(),
            None => &block.thinking,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::decode;

    fn follow(lines: &[&str]) -> (String, Vec<Option<String>>, Vec<u64>) {
        let mut thinking = Thinking::default();
        let (mut shown, mut signatures, mut tokens) = (String::new(), Vec::new(), Vec::new());
        for line in lines {
            if let Some(update) = thinking.follow(&decode(line.as_bytes()).expect("a message")) {
                shown += &update.text;
                signatures.extend(update.finished.map(|block| block.signature));
                tokens.extend(update.estimated_tokens);
            }
        }
        (shown, signatures, tokens)
    }

    const START: &str = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}"#;
    const BLOCK: &str = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}}"#;
    const TOKENS: &str =
        r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":4,"estimated_tokens_delta":4}"#;
    const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ab"}}}"#;
    const FINAL: &str = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"abab","signature":"s"}]}}"#;

    #[test]
    fn thinking_is_shown_once_whether_it_streams_or_not() {
        let want = ("abab".to_string(), vec![Some("s".to_string())], vec![4]);
        assert_eq!(follow(&[START, BLOCK, TOKENS, DELTA, DELTA, FINAL]), want);
        assert_eq!(follow(&[TOKENS, FINAL]), want);
        assert_eq!(follow(&[START, BLOCK, DELTA, TOKENS, FINAL]), want, "the tail was not streamed");
    }

    #[test]
    fn a_second_block_and_a_subagent_are_shown_too() {
        let other = FINAL.replace("\"id\":\"m\"", "\"id\":\"sub\"");
        let (shown, signatures, _) =
            follow(&[START, BLOCK, DELTA, &other, DELTA, FINAL, BLOCK, DELTA, DELTA, FINAL]);
        assert_eq!(shown, "ab".to_string() + "abab" + "ab" + "abab");
        assert_eq!(signatures.len(), 3);
    }
}
