//! A tool inside this program: the model calls an async function.

#![allow(clippy::print_stdout)]

use oarlock_agent::tool::{Tool, ToolServer};
use oarlock_agent::{Error, Options};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

async fn add(Add { a, b }: Add) -> f64 {
    println!("add {a} {b}");
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let calc =
        ToolServer::new("calc").tool(Tool::new("add", add).description("Add two numbers.").read_only(true));
    // Without a rule the CLI would ask whether the tool may be called.
    let options = Options::new().tool_server(calc).allowed_tools(["mcp__calc__add"]);
    let answer = oarlock_agent::ask("What is 2 + 3? Use the tool.").options(options).await?;
    println!("{}", answer.text());
    Ok(())
}
