//! Slash commands, which no model sees.

use serde_json::{Map, json};

use crate::player::{Stop, new_uuid};
use crate::turn::Turn;

impl Turn<'_, '_> {
    /// A prompt that is a command.
    pub(crate) async fn run_command(&mut self, (name, _rest): (&str, &str)) -> Result<(), Stop> {
        match name {
            _ if self.player.launch.flag("--disable-slash-commands") => {
                self.say_of_command(&format!("/{name} isn't available in this environment.")).await
            }
            "compact" => self.compact().await,
            "clear" => self.clear().await,
            _ => self.say_of_command(&format!("Unknown command: /{name}")).await,
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
            "user_message_uuid": self.uuids.last(),
        });
        player.send(&player.sign(frame)).await?;
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
