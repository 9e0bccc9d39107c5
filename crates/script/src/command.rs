//! Slash commands, which no model sees.

use serde_json::{Map, json};

use crate::player::{Stop, new_uuid, timestamp};
use crate::turn::Turn;

/// A command that is known here. The model gets all others as prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Compact,
    Clear,
}

impl Command {
    pub(crate) fn read(prompt: &str) -> Option<Self> {
        let word = prompt.split_whitespace().next()?;
        [Self::Compact, Self::Clear].into_iter().find(|command| command.name() == word)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Compact => "/compact",
            Self::Clear => "/clear",
        }
    }
}

impl Turn<'_, '_> {
    /// A prompt that is a command.
    pub(crate) async fn run_command(&mut self, command: Command) -> Result<(), Stop> {
        if self.player.launch.flag("--disable-slash-commands") {
            return self
                .say_of_command(&format!("{} isn't available in this environment.", command.name()))
                .await;
        }
        match command {
            Command::Compact => self.compact().await,
            Command::Clear => self.clear().await,
        }
    }

    async fn say_of_command(&mut self, text: &str) -> Result<(), Stop> {
        let player = self.player;
        player.send(&player.init_frame(&self.uuids)).await?;
        let source = format!("<local-command-stdout>{text}</local-command-stdout>");
        player.say_synthetic(text, "end_turn", json!({ "local_command_source": source })).await?;
        let result = player.bare_result("success", false, json!({ "result": text }));
        self.finish(result, "completed").await
    }

    async fn compact(&mut self) -> Result<(), Stop> {
        let player = self.player;
        player.system("status", json!({ "status": "compacting" })).await?;
        player.system("status", json!({ "status": null, "compact_result": "success" })).await?;
        player.send(&player.init_frame(&self.uuids)).await?;
        self.show_boundary("manual", Map::new()).await?;
        player.say_locally("Compacted ").await?;
        let fields = json!({ "result": "", "local_command": "compact" });
        let result = player.bare_result("success", false, fields);
        self.finish(result, "completed").await
    }

    /// Begins a new session in the same process.
    async fn clear(&mut self) -> Result<(), Stop> {
        let player = self.player;
        let frame = json!({
            "type": "conversation_reset",
            "new_conversation_id": new_uuid(),
            "trigger": "clear",
            "user_message_uuid": self.uuids.last().cloned().unwrap_or_else(new_uuid),
            "timestamp": timestamp(),
        });
        player.send(&player.sign(frame)).await?;
        player.system("background_tasks_changed", json!({ "tasks": player.state().tasks })).await?;
        player.change(|state| {
            state.session_id = new_uuid();
            state.totals.forget();
        });
        player.send(&player.init_frame(&self.uuids)).await?;
        let fields = json!({ "result": "", "local_command": "clear" });
        let result = player.bare_result("success", false, fields);
        self.finish(result, "completed").await
    }
}
