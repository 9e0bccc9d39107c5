//! One question, one answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::session::Prompt;
use crate::stream::{AssistantError, Json, Message, ResultKind, TurnResult};
use crate::{Error, Events, Options, Session};

/// Asks Claude Code something. Await it for the whole [`Answer`].
///
/// ```no_run
/// # async fn example() -> Result<(), oarlock_agent::Error> {
/// let answer = oarlock_agent::ask("Why does the build fail?").await?;
/// println!("{}", answer.text());
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is asked before it is awaited"]
pub fn ask(prompt: impl Into<Prompt>) -> Ask {
    Ask { prompt: prompt.into(), options: Options::new() }
}

/// A question that is about to be asked.
#[must_use = "nothing is asked before it is awaited"]
pub struct Ask {
    prompt: Prompt,
    options: Options,
}

/// What came of a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The last turn's result: usage, cost, the session's id. Background work may have made more than one turn.
    pub result: Box<TurnResult>,
}

impl Answer {
    /// The last message's text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.result.result.as_deref().unwrap_or_default()
    }

    /// The session, to be resumed.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.result.session_id.as_deref()
    }
}

impl Ask {
    /// With these options.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The messages as they come, to the end of all work.
    ///
    /// # Errors
    /// When the CLI does not start.
    pub async fn stream(self) -> Result<AskStream, Error> {
        let (session, events) = self.options.connect().await?;
        session.send(self.prompt).await?;
        session.finish().await;
        Ok(AskStream { session, events })
    }

    /// The answer as a value: the model is held to the schema of its type.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), oarlock_agent::Error> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Plan {
    ///     steps: Vec<String>,
    /// }
    ///
    /// let plan: Plan = oarlock_agent::ask("How do we ship it?").output().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for the answer itself, and when the answer does not have the type.
    pub async fn output<T: DeserializeOwned + JsonSchema>(mut self) -> Result<T, Error> {
        self.options = self.options.output_schema(schema_of::<T>());
        let answer = self.answer().await?;
        let text = answer.result.structured_output.as_ref().map_or(answer.text(), Json::text);
        serde_json::from_str(text)
            .map_err(|error| Error::Output { reason: error.to_string(), text: text.to_owned() })
    }

    async fn answer(self) -> Result<Answer, Error> {
        let mut stream = self.stream().await?;
        let (mut last, mut kind) = (None, None);
        while let Some(item) = stream.events.next().await {
            match item {
                Ok(Message::Result(result)) => last = Some(result),
                Ok(Message::Assistant(assistant)) if assistant.error.is_some() => kind = assistant.error,
                Ok(_) => {}
                // A result that is there counts more than how the process ended.
                Err(error) if error.is_fatal() && last.is_none() => return Err(error),
                Err(error) => tracing::warn!(%error, "passed over"),
            }
        }
        match last {
            Some(result) => check(result, kind).map(|result| Answer { result }),
            None => Err(Error::Exited(stream.session.wait().await)),
        }
    }
}

impl IntoFuture for Ask {
    type Output = Result<Answer, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

/// A result that is no error, or the error that it is.
///
/// # Errors
/// When the turn failed: a login is needed, the API failed, a limit was reached, it was interrupted.
pub(crate) fn check(result: Box<TurnResult>, kind: Option<AssistantError>) -> Result<Box<TurnResult>, Error> {
    if !result.is_error {
        return Ok(result);
    }
    if result.subtype != ResultKind::Success {
        return Err(Error::Turn(result));
    }
    let message = result.result.clone().unwrap_or_default();
    let status = result.api_error_status;
    Err(if kind == Some(AssistantError::AuthenticationFailed) || status == Some(401) {
        Error::Login { message }
    } else {
        Error::Api { status, kind, message }
    })
}

/// The JSON schema of a type.
pub(crate) fn schema_of<T: JsonSchema>() -> Json {
    Json::from(schemars::schema_for!(T).to_value())
}

/// The messages of one question. It ends when all work is done.
#[derive(Debug)]
#[must_use = "messages wait here to be read"]
pub struct AskStream {
    session: Session,
    events: Events,
}

impl AskStream {
    /// The handle, to interrupt it, say.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Stream for AskStream {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}
