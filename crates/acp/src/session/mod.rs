//! A session's life: it starts a CLI, lets it go when it is idle for long, and starts it again when it is needed.
//!
//! Each session is one task, the [actor]. The server sends it [commands](Command); what is asked of it takes no time in
//! which it would not hear the CLI. It ends when its [`Handle`] is dropped, and takes the CLI with it.

mod actor;
mod gate;
mod given;
mod launch;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use oarlock_agent::history::Transcript;
use oarlock_agent::stream::{Content, Json};
use oarlock_proto::acp::SetupRequest;
use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::Responder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::Context;
use crate::history::Mark;
use actor::Actor;

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Afresh.
    New,
    /// From a transcript, which is shown first.
    Load,
    /// From a transcript, which the client has.
    Resume,
    /// From a copy of a transcript.
    Fork,
}

/// The transcript that a session begins with, as soon as it is there.
pub(crate) type Past = BoxFuture<'static, Result<Option<Transcript>, ErrorObject>>;

/// What is asked of a session.
#[derive(Debug)]
pub(crate) enum Command {
    /// The user says something.
    Prompt {
        /// What.
        content: Content,
        /// Answered when the turn is over.
        responder: Responder,
    },
    /// The user says something to the turn that runs.
    Steer {
        /// What.
        content: Content,
        /// When no turn runs: shall the client send a prompt itself?
        asks_first: bool,
        /// Answered at once.
        responder: Responder,
    },
    /// The user wants it to stop.
    Cancel,
    /// The client no longer wants the answer to a request: its id as JSON.
    CancelRequest(String),
    /// A choice: a mode, a model.
    Choose {
        /// The option.
        id: String,
        /// What is chosen.
        value: Json,
        /// Is the answer all options? (That to `session/set_mode` is empty.)
        whole: bool,
        /// Answered when the CLI has taken it.
        responder: Responder,
    },
    /// The user wants to go back to before a prompt.
    Rewind {
        /// The prompt.
        message_id: String,
        /// Answered when the CLI has done it.
        responder: Responder,
    },
    /// The session has another title.
    Titled(String),
    /// A session that is open is loaded or resumed again.
    Again {
        /// How.
        begin: Begin,
        /// With what.
        request: SetupRequest,
        /// Answered like the first time.
        responder: Responder,
    },
}

/// A running session. Dropping it ends the session.
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    close: oneshot::Sender<Option<Responder>>,
    over: CancellationToken,
    mark: watch::Receiver<Mark>,
}

/// Commands that may wait for a session; more are refused. A session takes them at once, so this is never reached in
/// peace.
const COMMANDS: usize = 256;

impl Handle {
    /// Starts a session; its CLI, when that of the one `before` is gone. `responder` is answered when it is ready.
    #[expect(clippy::too_many_arguments, reason = "all of it is what a session begins with")]
    pub(crate) fn start(
        context: Arc<Context>,
        id: String,
        begin: Begin,
        request: SetupRequest,
        past: Past,
        before: Option<CancellationToken>,
        responder: Responder,
        tasks: &TaskTracker,
    ) -> Self {
        let (commands, received) = mpsc::channel(COMMANDS);
        let (close, closed) = oneshot::channel();
        let over = CancellationToken::new();
        let ending = over.clone().drop_guard();
        let (marks, mark) = watch::channel(Mark::of(&id));
        let actor = Actor::new(context, id, request, received, closed, tasks.clone(), marks).after(before);
        tasks.spawn(async move {
            actor.run(begin, past, responder).await;
            drop(ending);
        });
        Self { commands, close, over, mark }
    }

    /// How far it is.
    pub(crate) fn mark(&self) -> Mark {
        self.mark.borrow().clone()
    }

    /// Cancelled when it is over, and has answered all that was asked of it.
    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Is it over, by itself?
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Sends a command that wants no answer. `false`: it did not take it.
    pub(crate) fn tell(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }

    /// Sends a command with its responder.
    pub(crate) fn send(
        &self,
        open: &mut Option<Responder>,
        command: impl FnOnce(Responder) -> Command,
    ) -> Result<(), ErrorObject> {
        let Ok(permit) = self.commands.try_reserve() else {
            return Err(ErrorObject::internal("the session has too much to do; try again"));
        };
        if let Some(responder) = open.take() {
            permit.send(command(responder));
        }
        Ok(())
    }

    /// Ends it; the responder is answered when its CLI is gone, and then what is given here is cancelled.
    pub(crate) fn close(self, responder: Option<Responder>) -> CancellationToken {
        let _ = self.close.send(responder);
        self.over
    }
}
