//! Questions that are not about a tool: elicitations of MCP servers, dialogs, and whatever a newer CLI may ask.

use std::ops::Deref;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::stream::{Elicitation, Json, Request, RequestUserDialog, reply};

/// Something that the CLI asks. Dereferences to what it is about.
#[derive(Debug, Clone)]
pub struct Question<T> {
    request_id: String,
    /// Boxed: questions are large, and are passed on.
    about: Box<T>,
    withdrawn: CancellationToken,
}

impl<T> Deref for Question<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.about
    }
}

impl<T> Question<T> {
    /// A question, as a session makes it: for tests of a callback.
    #[must_use]
    pub fn new(request_id: impl Into<String>, about: T) -> Self {
        Self { request_id: request_id.into(), about: Box::new(about), withdrawn: CancellationToken::new() }
    }

    pub(crate) fn withdrawn_by(mut self, withdrawn: CancellationToken) -> Self {
        self.withdrawn = withdrawn;
        self
    }

    /// The id of the question; the same question in the stream of messages has it too.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Fires when the CLI no longer wants an answer. The callback itself is dropped then: this is for whoever it has handed
    /// the question to.
    #[must_use]
    pub fn withdrawn(&self) -> &CancellationToken {
        &self.withdrawn
    }

    /// What it is about, without the rest.
    #[must_use]
    pub fn into_inner(self) -> T {
        *self.about
    }
}

impl Question<Elicitation> {
    /// The user has filled in the form.
    #[must_use]
    pub fn accept(&self, content: impl Into<Json>) -> reply::Elicitation {
        reply::Elicitation {
            action: reply::ElicitationAction::Accept,
            content: Some(content.into()),
            ..Default::default()
        }
    }

    /// The user does not want to.
    #[must_use]
    pub fn decline(&self) -> reply::Elicitation {
        reply::Elicitation { action: reply::ElicitationAction::Decline, ..Default::default() }
    }

    /// The user has closed it without an answer.
    #[must_use]
    pub fn cancel(&self) -> reply::Elicitation {
        reply::Elicitation { action: reply::ElicitationAction::Cancel, ..Default::default() }
    }
}

impl Options {
    /// Answers the questions that MCP servers put to the user. Without it they hear that the user declines, and so they do
    /// when it panics.
    ///
    /// ```
    /// use oarlock_agent::Options;
    /// use serde_json::json;
    ///
    /// let options = Options::new().on_elicitation(|ask| async move {
    ///     if ask.mcp_server_name == "deploy" { ask.accept(json!({"sure": true})) } else { ask.decline() }
    /// });
    /// ```
    #[must_use]
    pub fn on_elicitation<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(Question<Elicitation>) -> R + Send + Sync + 'static,
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
        F: Fn(Question<RequestUserDialog>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        self.callbacks.dialog = Some(Arc::new(move |ask| Box::pin(show(ask))));
        self
    }

    /// Answers requests of the CLI that nothing else answers. `None` refuses, as without it.
    #[must_use]
    pub fn on_request<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(Question<Request>) -> R + Send + Sync + 'static,
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
