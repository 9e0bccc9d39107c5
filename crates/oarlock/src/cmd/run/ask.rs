//! Questions to the person at the terminal: permissions, the model's own questions, plans, forms of MCP servers.
//!
//! The callbacks of the session put a [`Question`] on the [`Desk`]. It is asked when the stream of messages has come to its
//! place, on a thread of its own, and one at a time.

mod change;
mod choice;
mod form;
mod permission;
mod plan;

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_agent::Options;
use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::reply::{self, ElicitationAction};
use oarlock_agent::stream::{ControlRequest, Elicitation, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::input::{self, Keyboard, Line};
use crate::output::DIM;
use crate::review;

/// As many questions may come at once; then the callbacks wait.
const AT_ONCE: usize = 64;

/// What is asked.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Permission(PermissionRequest),
    Elicitation(Box<Elicitation>),
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Permission(Decision),
    Elicitation(reply::Elicitation),
}

/// A question, and the way back for its answer.
pub(super) struct Question {
    pub(super) body: Body,
    answer: oneshot::Sender<Answer>,
}

impl Question {
    /// Is this the question of a frame in the stream?
    pub(super) fn is(&self, frame: &ControlRequest) -> bool {
        match (&self.body, &frame.request) {
            (Body::Permission(request), _) => request.request_id() == frame.request_id,
            // Two that are the same in all may be exchanged.
            (Body::Elicitation(request), Request::Elicitation(framed)) => request == framed,
            _ => false,
        }
    }

    /// Nobody waits for an answer any more.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }

    /// Waits until nobody waits for an answer any more.
    pub(super) async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }

    pub(super) fn answer(self, answer: Answer) {
        // Withdrawn at the last moment: then nobody needs it.
        let _ = self.answer.send(answer);
    }
}

/// Where callbacks put their questions.
#[derive(Clone)]
pub(super) struct Desk(mpsc::Sender<Question>);

impl Desk {
    pub(super) fn new() -> (Self, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(AT_ONCE);
        (Self(sender), questions)
    }

    /// Has everything that needs a person asked here.
    pub(super) fn sit_at(self, options: Options) -> Options {
        let desk = self.clone();
        options
            .can_use_tool(move |request| {
                let desk = desk.clone();
                async move {
                    match desk.put(Body::Permission(request.clone())).await {
                        Some(Answer::Permission(decision)) => decision,
                        _ => request.deny("nobody can be asked about it"),
                    }
                }
            })
            .on_elicitation(move |request| {
                let desk = self.clone();
                async move {
                    match desk.put(Body::Elicitation(Box::new(request.into_inner()))).await {
                        Some(Answer::Elicitation(answer)) => answer,
                        _ => elicited(ElicitationAction::Cancel),
                    }
                }
            })
    }

    async fn put(&self, body: Body) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Question { body, answer }).await.ok()?;
        answered.await.ok()
    }
}

fn elicited(action: ElicitationAction) -> reply::Elicitation {
    reply::Elicitation { action, ..Default::default() }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nobody waits for it any more.
    Withdrawn,
    /// The person is gone, or the terminal failed.
    Gone,
}

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "the terminal failed");
        Self::Gone
    }
}

type Spoken<T> = Result<T, Silence>;

/// A person to talk with.
pub(super) trait Person {
    /// Shows something; whole lines.
    fn print(&mut self, text: &str) -> io::Result<()>;
    /// Asks for a line, which is given without blanks at its ends.
    fn ask(&mut self, question: &str) -> Spoken<String>;
    /// Has a text edited.
    fn edit(&mut self, name: &str, text: &str) -> io::Result<String>;
}

/// The person at the terminal.
struct AtTerminal {
    keyboard: Arc<Keyboard>,
    stopped: PipeReader,
    is_editing: Arc<AtomicBool>,
}

impl Person for AtTerminal {
    fn print(&mut self, text: &str) -> io::Result<()> {
        let mut out = anstream::stderr().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn ask(&mut self, question: &str) -> Spoken<String> {
        loop {
            self.keyboard.forget()?;
            self.print(question)?;
            match self.keyboard.line(&self.stopped)? {
                Line::Text(line) => {
                    if let Some(line) = line.strip_suffix('\n') {
                        return Ok(line.trim().to_owned());
                    }
                    // It was cut off, so it counts for nothing.
                    self.print("\n")?;
                }
                Line::End => return Err(Silence::Gone),
                Line::Stopped => return Err(Silence::Withdrawn),
            }
        }
    }

    fn edit(&mut self, name: &str, text: &str) -> io::Result<String> {
        // Ctrl-C belongs to the editor.
        self.is_editing.store(true, Ordering::Relaxed);
        let edited = review::edit(Path::new(name), text);
        self.is_editing.store(false, Ordering::Relaxed);
        edited
    }
}

/// Something that the person is asked, on a thread of its own.
pub(super) struct Asking<T> {
    thread: JoinHandle<Option<T>>,
    /// Closing it tells the thread to stop.
    stop: Option<PipeWriter>,
}

impl<T: Send + 'static> Asking<T> {
    fn start(
        keyboard: Arc<Keyboard>,
        is_editing: Arc<AtomicBool>,
        ask: impl FnOnce(&mut AtTerminal) -> Option<T> + Send + 'static,
    ) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let thread =
            tokio::task::spawn_blocking(move || ask(&mut AtTerminal { keyboard, stopped, is_editing }));
        Ok(Self { thread, stop: Some(stop) })
    }

    /// There is no need for an answer any more. The thread ends soon, but not under a running editor.
    pub(super) fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits for the answer; none when it was stopped. May be called again after it was put down.
    pub(super) async fn done(&mut self) -> Option<T> {
        (&mut self.thread).await.unwrap_or_default()
    }
}

/// Who can be asked.
#[derive(Clone)]
pub(super) struct Asker {
    keyboard: Arc<Keyboard>,
    /// The person's editor runs.
    is_editing: Arc<AtomicBool>,
}

impl Asker {
    pub(super) fn new(keyboard: Keyboard) -> Self {
        Self { keyboard: Arc::new(keyboard), is_editing: Arc::default() }
    }

    /// Does the person's editor have the terminal?
    pub(super) fn is_editing(&self) -> Arc<AtomicBool> {
        self.is_editing.clone()
    }

    /// Asks a question.
    pub(super) fn question(&self, body: Body) -> io::Result<Asking<Answer>> {
        Asking::start(self.keyboard.clone(), self.is_editing.clone(), move |person| {
            // Keys that were already on their way were not meant for the question.
            if matches!(input::is_stopped(&person.stopped, review::REFLEX), Ok(true)) {
                return None;
            }
            match put(&body, person) {
                Ok(answer) => Some(answer),
                Err(Silence::Withdrawn) => {
                    let _ = person.print(&format!("\n{DIM}  (no longer asked){DIM:#}\n"));
                    None
                }
                Err(Silence::Gone) => {
                    let _ = person.print("\n");
                    Some(instead(&body))
                }
            }
        })
    }

    /// Asks for the next prompt; none when there is no more. A line that ends with `\` goes on in the next.
    pub(super) fn prompt(&self) -> io::Result<Asking<Prompted>> {
        Asking::start(self.keyboard.clone(), self.is_editing.clone(), |person| {
            let mut prompt = String::new();
            loop {
                let sign = if prompt.is_empty() { "> " } else { "… " };
                person.print(sign).ok()?;
                // What was typed while the model worked is meant for it, so nothing is thrown away here.
                match person.keyboard.line(&person.stopped) {
                    Ok(Line::Text(line)) => {
                        let line = line.trim_end_matches(['\n', '\r']);
                        let Some(line) = line.strip_suffix('\\') else {
                            prompt.push_str(line);
                            return Some(Prompted(Some(prompt).filter(|prompt| !prompt.trim().is_empty())));
                        };
                        prompt.push_str(line);
                        prompt.push('\n');
                    }
                    Ok(Line::Stopped) => return None,
                    Ok(Line::End) | Err(_) => {
                        let _ = person.print("\n");
                        return Some(Prompted(None));
                    }
                }
            }
        })
    }
}

/// The next prompt, or the end of the dialogue.
#[derive(Debug)]
pub(super) struct Prompted(pub(super) Option<String>);

fn put(body: &Body, person: &mut impl Person) -> Spoken<Answer> {
    match body {
        Body::Permission(request) => permission::ask(request, person).map(Answer::Permission),
        Body::Elicitation(request) => form::ask(request, person).map(Answer::Elicitation),
    }
}

/// The answer in place of a person who is gone: never a yes.
fn instead(body: &Body) -> Answer {
    match body {
        Body::Permission(request) => {
            Answer::Permission(request.deny_and_interrupt("the user has closed the terminal"))
        }
        Body::Elicitation(_) => Answer::Elicitation(elicited(ElicitationAction::Cancel)),
    }
}

#[cfg(test)]
mod scripted;
