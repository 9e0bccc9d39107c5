//! The same without async: for scripts, tests and programs that have no runtime.
//!
//! ```no_run
//! # fn example() -> Result<(), oarlock_agent::Error> {
//! use oarlock_agent::{Options, blocking};
//!
//! let (session, mut events) = blocking::connect(Options::new())?;
//! session.send("hello")?;
//! let result = events.turn(|message| println!("{}", message.tag()))?;
//! session.close()?;
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::session::Prompt;
use crate::stream::{Message, TurnResult, reply};
use crate::{Answer, Ask, Error, Exit, Options};

/// The runtime of one session: one thread, which drives it also while nobody waits.
fn runtime() -> Result<Arc<Runtime>, Error> {
    let built =
        Builder::new_multi_thread().worker_threads(1).thread_name("oarlock-agent").enable_all().build();
    built
        .map(Arc::new)
        .map_err(|source| Error::Io { action: "start a thread for the session".into(), source })
}

/// [`Options::connect`], for threads that may wait. Must not be called in an async task.
///
/// # Errors
/// As there.
pub fn connect(options: Options) -> Result<(Session, Events), Error> {
    let runtime = runtime()?;
    let (session, events) = runtime.block_on(options.connect())?;
    Ok((Session { session, runtime: runtime.clone() }, Events { events, runtime }))
}

/// [`ask`](crate::ask()), for threads that may wait. Must not be called in an async task.
///
/// # Errors
/// As there.
pub fn ask(question: Ask) -> Result<Answer, Error> {
    runtime()?.block_on(question.into_future())
}

/// The handle of a session.
#[derive(Debug, Clone)]
pub struct Session {
    session: crate::Session,
    runtime: Arc<Runtime>,
}

impl Session {
    /// The asynchronous handle; [`wait_for`](Self::wait_for) runs its methods.
    #[must_use]
    pub fn handle(&self) -> &crate::Session {
        &self.session
    }

    /// Runs any method of the asynchronous handle to its end.
    ///
    /// ```no_run
    /// # fn example(session: oarlock_agent::blocking::Session) -> Result<(), oarlock_agent::Error> {
    /// session.wait_for(session.handle().set_model(Some("haiku")))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_for<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Sends a message, and gives its uuid.
    ///
    /// # Errors
    /// When the session is over.
    pub fn send(&self, prompt: impl Into<Prompt>) -> Result<String, Error> {
        self.wait_for(self.session.send(prompt))
    }

    /// Stops the turn.
    ///
    /// # Errors
    /// When the CLI does not answer, or is gone.
    pub fn interrupt(&self) -> Result<reply::Interrupt, Error> {
        self.wait_for(self.session.interrupt())
    }

    /// Ends the session.
    ///
    /// # Errors
    /// Never today.
    pub fn close(&self) -> Result<Exit, Error> {
        self.wait_for(self.session.close())
    }
}

/// Everything the CLI says, in order.
#[derive(Debug)]
pub struct Events {
    events: crate::Events,
    runtime: Arc<Runtime>,
}

impl Events {
    /// Reads to the next `result`, and gives all that came before it to `each`.
    ///
    /// # Errors
    /// When the CLI died.
    pub fn turn(&mut self, each: impl FnMut(Message)) -> Result<Option<Box<TurnResult>>, Error> {
        self.runtime.block_on(self.events.turn(each))
    }
}

impl Iterator for Events {
    type Item = Result<Message, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.block_on(self.events.next())
    }
}
