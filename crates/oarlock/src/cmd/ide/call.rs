//! `oarlock ide tools` and `oarlock ide call`.

use oarlock_proto::mcp::Content;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::output::{DIM, STRONG, json_line, say};
use crate::target::{self, Target};

/// List the tools that the engine offers to a Claude Code session
#[derive(clap::Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    target: Target,
}

impl ToolsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let list = self.target.ask("tools/list", &json!({})).await?;
        if self.target.json {
            return json_line(&list);
        }
        for tool in list["tools"].as_array().into_iter().flatten() {
            let fields: Vec<&str> = tool["inputSchema"]["properties"]
                .as_object()
                .map(|properties| properties.keys().map(String::as_str).collect())
                .unwrap_or_default();
            let (name, about) = (tool["name"].as_str(), tool["description"].as_str());
            let (name, about) = (name.unwrap_or_default(), about.unwrap_or_default());
            say!("{STRONG}{name}{STRONG:#}  {about}  {DIM}{}{DIM:#}", fields.join(", "))?;
        }
        Ok(())
    }
}

/// Call a tool as a Claude Code session would
#[derive(clap::Args)]
pub(crate) struct CallArgs {
    /// The tool's name, such as getOpenEditors
    tool: String,
    /// Its arguments, a JSON object
    #[arg(default_value = "{}")]
    arguments: String,
    #[command(flatten)]
    target: Target,
}

impl CallArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let arguments: Value = serde_json::from_str(&self.arguments)
            .map_err(|error| Failure::usage(format!("the arguments are not JSON: {error}")))?;
        // As a command, not as a session: it must not swallow what waits for a real one.
        let client = self.target.connect().await?;
        let result = client.call(&self.tool, &arguments).await;
        client.close().await;
        let result = result.map_err(target::refused)?;
        if self.target.json {
            json_line(&result)?;
        } else {
            for block in &result.content {
                match block {
                    Content::Text { text } => say!("{text}")?,
                    Content::Image { data, mime_type } => {
                        say!("{DIM}[{mime_type}, {} base64 characters]{DIM:#}", data.len())?;
                    }
                }
            }
        }
        if result.is_error {
            return Err(Failure::refused(format!("{} answered with an error", self.tool)));
        }
        Ok(())
    }
}
