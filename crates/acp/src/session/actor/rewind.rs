//! Going back in the conversation: `_session/rewind`.

use super::*;

impl Actor {
    /// Takes the conversation back to before a prompt, as soon as the CLI is up.
    pub(super) fn rewind(&mut self, message_id: String, responder: Responder) {
        if !self.turns.is_idle() {
            let why = "a turn runs, or waits; cancel it, or wait for its end";
            return responder.error(&ErrorObject::new(jsonrpc::INVALID_REQUEST, why));
        }
        let Cli::On { session, .. } = &self.cli else {
            self.rewinds.push((message_id, responder));
            return self.start();
        };
        let session = session.clone();
        self.tasks.spawn(async move {
            match session.rewind_conversation(&message_id).await {
                Ok(reply) if reply.rewound => {
                    responder.reply(&RewindResponse { rewound: true, prefill_text: reply.prefill_text });
                }
                Ok(reply) => {
                    let shown: String = message_id.chars().take(80).collect();
                    let why = reply.reason.unwrap_or_default();
                    let why = format!("messageId: `{shown}` is no prompt of this conversation ({why})");
                    responder.error(&ErrorObject::invalid_params(why));
                }
                Err(error) => responder.error(&fault::cli(&error)),
            }
        });
    }
}
