//! `oarlock ide watch`.

use serde_json::{Value, json};

use crate::output::{json_line, say, visible};
use crate::target::Target;

/// Show what happens in the engine, as it happens
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

impl Args {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut client = self.target.connect().await?;
        let status = client.request("oarlock/watch", &json!({})).await?;
        if self.target.json {
            let mut first = status;
            first["event"] = "watching".into();
            json_line(&first)?;
        } else {
            let clients = status["clients"].as_array().map_or(0, Vec::len);
            say!("watching {} with {clients} clients; Ctrl-C ends it", status["workspace"])?;
        }
        while let Some(notification) = client.notification().await {
            if self.target.json {
                json_line(&notification.params)?;
            } else {
                say!("{}", visible(&describe(&notification.params)))?;
            }
        }
        Ok(())
    }
}

/// `event` first, then everything else that it says.
fn describe(event: &Value) -> String {
    let mut line = event["event"].as_str().unwrap_or("?").replace('_', " ");
    for (name, value) in event.as_object().into_iter().flatten() {
        if name != "event" && !value.is_null() {
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            line.push_str(&format!("  {name}={value}"));
        }
    }
    line
}
