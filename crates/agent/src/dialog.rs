//! Questions that are not about a tool: elicitations of MCP servers, dialogs, and whatever a newer CLI may ask.

use std::sync::Arc;

use crate::Options;
use crate::stream::{Elicitation, Json, Request, RequestUserDialog, reply};

impl Options {
    /// Answers the questions that MCP servers put to the user. Without it they hear that the user declines.
    #[must_use]
    pub fn on_elicitation<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> R + Send + Sync + 'static,
        R: Future<Output = reply::Elicitation> + Send + 'static,
    {
        self.callbacks.elicitation = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// Shows a dialog of the CLI's and gives its answer. The kinds that the program knows are named by
    /// `supported_dialog_kinds`.
    #[must_use]
    pub fn on_dialog<F, R>(mut self, show: F) -> Self
    where
        F: Fn(RequestUserDialog) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        self.callbacks.dialog = Some(Arc::new(move |ask| Box::pin(show(ask))));
        self
    }

    /// Answers requests of the CLI that nothing else answers. `None` refuses, as without it.
    #[must_use]
    pub fn on_request<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Result<Json, String>>> + Send + 'static,
    {
        self.callbacks.other = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// An MCP server inside this program.
    #[must_use]
    pub fn tool_server(mut self, server: impl crate::tool::Server) -> Self {
        self.callbacks.servers.push(Arc::new(server));
        self
    }
}
