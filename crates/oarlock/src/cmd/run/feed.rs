//! `--input stream-json`: lines of stdin for the session.
//!
//! User messages are sent; control requests are asked and their answers written as `claude` writes them; control responses
//! answer the questions that were passed on. A line that is none of this is told with its number, and the next one counts.

use std::io;

use oarlock_agent::stream::{ControlRequest, ControlResponse, Message, User, decode};
use oarlock_agent::{Error, Session};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::printer::Printer;
use crate::output::{BAD, visible};

/// The longest line, as for the other direction.
const MAX_LINE: u64 = 64 << 20;

/// What the loop has to know.
pub(super) enum Fed {
    /// The answer to a question that was passed on.
    Answer(ControlResponse),
    /// A turn is on its way.
    Sent,
    /// A line could not be used.
    Wrong,
    /// All of stdin is read.
    End,
}

pub(super) struct Feed {
    pub(super) session: Session,
    pub(super) printer: Printer,
    /// Answers to control requests are written.
    pub(super) has_answers: bool,
    pub(super) fed: mpsc::Sender<Fed>,
}

impl Feed {
    /// Reads stdin to its end.
    pub(super) async fn run(self) {
        let mut requests = JoinSet::new();
        let outcome = self.lines(&mut requests).await;
        if let Err(error) = outcome {
            self.complain(&format!("failed to read stdin: {error}")).await;
        }
        // They may still wait for their answers.
        while requests.join_next().await.is_some() {}
        let _ = self.fed.send(Fed::End).await;
        self.session.finish().await;
    }

    async fn lines(&self, requests: &mut JoinSet<()>) -> io::Result<()> {
        let mut stdin = BufReader::new(tokio::io::stdin());
        for number in 1_u64.. {
            let mut line = Vec::new();
            let length = (&mut stdin).take(MAX_LINE).read_until(b'\n', &mut line).await?;
            if length == 0 {
                break;
            }
            if length as u64 == MAX_LINE && !line.ends_with(b"\n") {
                self.wrong(number, "it is longer than 64 MiB").await;
                while !line.is_empty() && !line.ends_with(b"\n") {
                    line.clear();
                    (&mut stdin).take(MAX_LINE).read_until(b'\n', &mut line).await?;
                }
                continue;
            }
            if let Err(why) = self.line(&line, requests).await {
                self.wrong(number, &why).await;
            }
            while requests.try_join_next().is_some() {}
            if self.session.has_ended() {
                break;
            }
        }
        Ok(())
    }

    async fn line(&self, line: &[u8], requests: &mut JoinSet<()>) -> Result<(), String> {
        match decode(line) {
            Err(bad) if bad.is_blank() => Ok(()),
            Err(bad) => Err(bad.to_string()),
            Ok(Message::User(user)) => self.user(line, user).await,
            Ok(Message::ControlRequest(request)) => {
                let (session, printer, has_answers) =
                    (self.session.clone(), self.printer.clone(), self.has_answers);
                requests.spawn(async move {
                    let answer = answer(&session, request).await;
                    if has_answers && let Ok(line) = serde_json::to_string(&Message::ControlResponse(answer))
                    {
                        let _ = printer.raw(format!("{line}\n")).await;
                    }
                });
                Ok(())
            }
            Ok(Message::ControlResponse(response)) => {
                let _ = self.fed.send(Fed::Answer(response)).await;
                Ok(())
            }
            Ok(Message::KeepAlive(_) | Message::ControlCancelRequest(_)) => Ok(()),
            Ok(other) => Err(format!("a message of the type {:?} is not for claude", other.tag())),
        }
    }

    async fn user(&self, line: &[u8], user: Box<User>) -> Result<(), String> {
        // A message without contents would end the CLI.
        let parts: Parts = serde_json::from_slice(line).unwrap_or_default();
        if parts.message.content.is_none() {
            return Err("a user message needs `message.content`".to_owned());
        }
        if parts.message.role.is_some_and(|role| role != "user") {
            return Err("the role of a user message must be `user`".to_owned());
        }
        let _ = self.fed.send(Fed::Sent).await;
        self.session.send(*user).await.map(drop).map_err(|error| error.to_string())
    }

    async fn wrong(&self, number: u64, why: &str) {
        self.complain(&format!("stdin, line {number}: {why}")).await;
        let _ = self.fed.send(Fed::Wrong).await;
    }

    async fn complain(&self, text: &str) {
        let _ = self.printer.err(format!("{BAD}oarlock:{BAD:#} {}\n", visible(text))).await;
    }
}

/// What of a user message must be there.
#[derive(Default, Deserialize)]
struct Parts {
    #[serde(default)]
    message: Inner,
}

#[derive(Default, Deserialize)]
struct Inner {
    content: Option<IgnoredAny>,
    role: Option<String>,
}

/// The answer of the CLI under the id of the one who asked.
async fn answer(
    session: &Session,
    ControlRequest { request_id, request, .. }: ControlRequest,
) -> ControlResponse {
    match session.request(request).await {
        Ok(body) => ControlResponse::success(request_id, Some(body).filter(|body| !body.is_null())),
        Err(Error::Refused { reason, .. }) => ControlResponse::error(request_id, reason),
        Err(error) => ControlResponse::error(request_id, error.to_string()),
    }
}
