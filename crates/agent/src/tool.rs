//! MCP servers inside this program: the model calls plain async functions.
//!
//! A [`ToolServer`] is a name and some [`Tool`]s. A tool is a name and an async function or closure; the schema that the
//! model sees comes from the type of its argument, and what it returns ([`IntoToolOutput`]) becomes the answer:
//!
//! ```
//! use oarlock_agent::tool::{Tool, ToolCx, ToolServer};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Divide {
//!     /// What is divided.
//!     dividend: f64,
//!     /// By what; not zero.
//!     divisor: f64,
//! }
//!
//! async fn divide(args: Divide) -> Result<f64, &'static str> {
//!     if args.divisor == 0.0 { Err("there is no division by zero") } else { Ok(args.dividend / args.divisor) }
//! }
//!
//! let calc = ToolServer::new("calc")
//!     .instructions("Use it for every calculation.")
//!     .tool(Tool::new("divide", divide).description("Divide two numbers.").read_only(true))
//!     .tool(Tool::new("pi", async || 3.14159).description("The number pi."))
//!     .tool(Tool::new("count", |args: Divide, cx: ToolCx| async move {
//!         for step in 1..=3 {
//!             cx.progress(f64::from(step), Some(3.0), "counting").await;
//!         }
//!         format!("{} steps for {}", 3, args.dividend)
//!     }));
//! # use oarlock_agent::tool::Server;
//! # calc.check().unwrap();
//! ```
//!
//! The model knows the tools as `mcp__calc__divide` and so on. Whether it may call them is asked like for any other tool:
//! by `can_use_tool`, or by the rules in the options (`allowed_tools`).
//!
//! There is no attribute macro: a function's type says all that is needed, a description is one method call, and a tool
//! that is a value can be made in a loop, kept in a table, or added while a session runs ([`ToolServer::add`]).
//!
//! # What becomes of an answer
//! As seen with 2.1.197 and 2.1.325:
//!
//! | a tool answers | the model sees |
//! |---|---|
//! | texts | the texts |
//! | [`Image`] | the picture; 2.1.325 adds where it was saved |
//! | [`Audio`], binary [`Resource`] | a sentence that names the file into which it was saved |
//! | [`ResourceLink`], text [`Resource`] | one text with the address, the description or the contents |
//! | [`Structured`] | its JSON; texts beside it are left out, pictures are kept |
//! | nothing | a sentence that says so |
//! | an error | its texts, marked as an error; pictures in it are left out |
//! | more than 50,000 characters | the beginning, and the name of a file with all of it; see [`Tool::max_result_chars`] |
//!
//! The CLI calls tools of one message one after the other, unless they are [`read_only`](Tool::read_only): those it calls
//! all at once. Progress reports are taken and shown nowhere, and do not prolong the CLI's own time-out
//! (`MCP_TOOL_TIMEOUT`). It does not compare arguments with the schema; typed tools do ([`Tool::new`]).
//!
//! # More than tools
//! With the feature `rmcp`, `RmcpServer` takes any server written with the crate rmcp, with its resources and prompts.
//! Anything else that speaks MCP implements [`Server`].

use std::pin::Pin;

use crate::Error;
use crate::stream::Json;

mod call;
mod client;
mod function;
mod output;
#[cfg(feature = "rmcp")]
mod rmcp;
mod schema;
mod server;

pub use call::ToolCx;
pub use client::Client;
pub use function::{NoArgs, Tool, ToolFunction};
pub use output::{
    Audio, Content, Image, IntoToolOutput, Resource, ResourceLink, Structured, ToolError, ToolOutput,
};
pub use schemars;
pub use server::ToolServer;
pub use tokio_util::sync::CancellationToken;

#[cfg(feature = "rmcp")]
pub use self::rmcp::RmcpServer;

/// A future in a box.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An MCP server inside this program. [`ToolServer`] is the usual one.
///
/// One server may serve several sessions; the [`Client`] tells them apart.
pub trait Server: Send + Sync + 'static {
    /// The name by which the model knows it: its tools are called `mcp__NAME__TOOL`.
    fn name(&self) -> &str;

    /// Answers one JSON-RPC message of the CLI's; nothing to a notification or to an answer. Several may be open at once.
    ///
    /// The call itself must not block: messages come in order, and what depends on their order (that a call is known
    /// before its cancellation arrives) is done before the future is returned. Dropping the future means that the CLI no
    /// longer wants the answer.
    ///
    /// The CLI may begin with `initialize` again at any time, with ids that it has used before.
    fn message(&self, message: Json, client: Client) -> BoxFuture<Option<Json>>;

    /// Is the server fit to be used? A session with one that is not does not start.
    ///
    /// # Errors
    /// [`Error::Option`], with what is wrong and what to do.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}
