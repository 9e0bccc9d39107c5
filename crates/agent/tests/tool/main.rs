//! In-process MCP servers, called as the CLI calls them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod endings;
mod host;
mod protocol;
mod rmcp_client;
#[cfg(feature = "rmcp")]
mod rmcp_server;

use oarlock_agent::tool::schemars::JsonSchema;
use oarlock_agent::tool::{Tool, ToolServer};
use serde::{Deserialize, Serialize};

/// Numbers to add.
#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first one.
    a: f64,
    b: f64,
    /// How to show the sum.
    #[serde(default)]
    style: Option<Style>,
    #[serde(default)]
    points: Vec<Point>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    Plain,
    Words,
}

#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy)]
struct Point {
    x: i32,
    y: i32,
}

async fn add(args: Add) -> f64 {
    let places: i32 = args.points.iter().map(|point| point.x + point.y).sum();
    let bonus = if matches!(args.style, Some(Style::Words)) { 100.0 } else { 0.0 };
    args.a + args.b + f64::from(places) + bonus
}

fn calc() -> ToolServer {
    ToolServer::new("calc").version("1.2.3").tool(Tool::new("add", add).description("Add two numbers."))
}
