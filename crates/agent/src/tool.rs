//! MCP servers inside this program: the model calls plain async functions.

use std::pin::Pin;

use crate::stream::Json;

/// A future in a box.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An MCP server inside this program. [`ToolServer`] is the usual one.
pub trait Server: Send + Sync + 'static {
    /// The name by which the model knows it: its tools are called `mcp__NAME__TOOL`.
    fn name(&self) -> &str;

    /// Answers one JSON-RPC message of the CLI's; nothing to a notification. Several may be open at once.
    ///
    /// Dropping the future means that the CLI no longer wants the answer.
    fn message(&self, message: Json, client: Client) -> BoxFuture<Option<Json>>;
}

/// The CLI, as a server sees it.
#[derive(Clone)]
pub struct Client {}

impl Client {
    /// A client that gets what the server sends.
    pub fn new(_sink: impl Fn(Json) -> BoxFuture<Result<(), crate::Error>> + Send + Sync + 'static) -> Self {
        Self {}
    }
}

/// An MCP server made of async functions.
pub struct ToolServer {}
