//! One call of a tool: what the function is told about it, and how it can end.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::function::Tool;
use super::output::{ToolError, ToolOutput};
use crate::stream::Json;

/// `tools/call`.
#[derive(Deserialize)]
pub(super) struct CallParams {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Json,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Json,
}

/// What the CLI is known to say about a call.
#[derive(Default, Deserialize)]
struct CallMeta {
    #[serde(default, rename = "claudecode/toolUseId")]
    tool_use_id: Option<String>,
    #[serde(default, rename = "progressToken")]
    progress_token: Option<Json>,
}

/// What a tool's function can know and do about the call that it serves.
#[derive(Clone, Debug)]
pub struct ToolCx {
    client: Client,
    cancellation: CancellationToken,
    tool_use_id: Option<String>,
    progress_token: Option<Json>,
    meta: Json,
}

impl ToolCx {
    pub(super) fn new(client: Client, cancellation: CancellationToken, meta: Json) -> Self {
        // Remarks of another shape are not a reason to refuse the call.
        let CallMeta { tool_use_id, progress_token } = meta.read().unwrap_or_default();
        Self { client, cancellation, tool_use_id, progress_token, meta }
    }

    /// The id of the model's `tool_use` block; there is none when the CLI calls by itself.
    #[must_use]
    pub fn tool_use_id(&self) -> Option<&str> {
        self.tool_use_id.as_deref()
    }

    /// All that the CLI says about the call (`_meta`).
    #[must_use]
    pub fn meta(&self) -> &Json {
        &self.meta
    }

    /// The CLI that calls.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Ends when nobody waits for the answer any more: the user interrupted, the CLI's time is up, the session is over.
    ///
    /// The function itself sees that only with [`Tool::grace`]; without it, it is dropped at once.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// The token behind [`cancelled`](Self::cancelled), for threads and tasks that the function starts. It fires when the
    /// call is over, however it ended.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// Reports how far the call has come (`notifications/progress`), if the CLI asked for that.
    ///
    /// `progress` must grow from report to report. A report that cannot be sent is not a failure of the tool.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: &str) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Progress<'a> {
            progress_token: &'a Json,
            progress: f64,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<f64>,
            #[serde(skip_serializing_if = "str::is_empty")]
            message: &'a str,
        }
        let Some(progress_token) = &self.progress_token else { return };
        let params = Progress { progress_token, progress, total, message };
        if let Err(error) = self.client.notify("notifications/progress", &params).await {
            tracing::debug!(%error, "a progress report was not sent");
        }
    }
}

impl Tool {
    /// Calls the function. However that ends, there is an answer.
    pub(super) async fn call(&self, arguments: Json, cx: ToolCx) -> Result<ToolOutput, ToolError> {
        let cancellation = cx.cancellation();
        let work = async {
            let _turn = match &self.turn {
                Some(turn) => Some(turn.lock().await),
                None => None,
            };
            // The function runs inside the future, so that a panic before its first await is caught too.
            let outcome = AssertUnwindSafe(async { (self.function)(arguments, cx).await }).catch_unwind();
            let outcome = match self.timeout {
                None => outcome.await,
                Some(limit) => match tokio::time::timeout(limit, outcome).await {
                    Ok(outcome) => outcome,
                    Err(_) => return Err(self.failure(format!("took longer than {limit:?} and was stopped"))),
                },
            };
            outcome.unwrap_or_else(|panic| Err(self.failure(format!("panicked: {}", reason(&*panic)))))
        };
        let withdrawn = async {
            cancellation.cancelled().await;
            if !self.grace.is_zero() {
                tokio::time::sleep(self.grace).await;
            }
        };
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = withdrawn => Err(self.failure("was cancelled")),
        }
    }

    fn failure(&self, what: impl std::fmt::Display) -> ToolError {
        ToolError::new(format!("the tool `{}` {what}", self.name))
    }
}

/// What a panic says.
fn reason(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}
