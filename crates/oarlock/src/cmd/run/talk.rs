//! The loop: what the CLI says, what the person says, and who is asked what when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use oarlock_agent::reduce::{ApiFailure, Event, Reducer, TurnEnd};
use oarlock_agent::stream::{ControlRequest, ControlResponse, Message, PermissionResult, Request, Response};
use oarlock_agent::{Error, Events, Prompt, Session};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::ask::{Answer, Asker, Asking, Body, Prompted, Question};
use super::feed::{Fed, Feed};
use super::printer::Printer;
use super::progress::Progress;
use super::screen::Screen;
use super::show::{Piece, Show};
use super::signals::{Handling, Signals};
use super::{Output, end};
use crate::exit::Failure;
use crate::output::{BAD, DIM, visible};

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);
/// How long an interrupt may take when time is up.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where prompts come from.
pub(super) enum Start {
    /// There is one.
    Once(Prompt),
    /// Somebody types them.
    Dialogue,
    /// They come from stdin, with all else.
    Feed,
}

/// Who answers the CLI's questions.
pub(super) enum Answers {
    /// The person at the terminal.
    Person(Asker),
    /// The program that feeds us.
    Fed,
    /// Nobody: the CLI refuses by itself.
    Nobody,
}

/// A running conversation.
pub(super) struct Talk {
    session: Session,
    events: Events,
    reducer: Reducer,
    output: Output,
    printer: Printer,
    screen: Screen,
    show: Show,
    progress: Progress,
    answers: Answers,
    /// From the callbacks.
    questions: mpsc::Receiver<Question>,
    /// Questions that are not yet answered.
    open: Vec<Question>,
    /// Questions whose place in the stream has come, oldest first.
    due: VecDeque<ControlRequest>,
    signals: Signals,
    _handling: Handling,
    turns: Turns,
    /// Lines of stdin that could not be used.
    wrong_lines: u64,
    is_dialogue: bool,
}

/// What became of the turns.
#[derive(Default)]
struct Turns {
    /// How the last one ended.
    last: Option<TurnEnd>,
    /// The last result as it came.
    result: Option<String>,
    /// The API's failure in the running turn.
    api: Option<ApiFailure>,
    /// The person said `q`.
    was_refused: bool,
    was_interrupted: bool,
}

impl Talk {
    pub(super) fn new(
        session: Session,
        events: Events,
        questions: mpsc::Receiver<Question>,
        output: Output,
        answers: Answers,
        show: Show,
        has_asides: bool,
    ) -> anyhow::Result<Self> {
        let printer = Printer::start();
        let is_editing = match &answers {
            Answers::Person(asker) => asker.is_editing(),
            _ => Default::default(),
        };
        let (signals, handling) = Signals::handle(&session, is_editing)?;
        Ok(Self {
            screen: Screen::new(printer.clone(), has_asides && output == Output::Text),
            session,
            events,
            reducer: Reducer::default(),
            output,
            printer,
            show,
            progress: Progress::default(),
            answers,
            questions,
            open: Vec::new(),
            due: VecDeque::new(),
            signals,
            _handling: handling,
            turns: Turns::default(),
            wrong_lines: 0,
            is_dialogue: false,
        })
    }

    /// Goes on to the end of the conversation, and says how it ended.
    pub(super) async fn run(mut self, start: Start, timeout: Option<Duration>) -> anyhow::Result<()> {
        let deadline = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        // Few, because each is a line of stdin that has been dealt with.
        let (fed, mut feed) = mpsc::channel(16);
        let mut feeding: Option<JoinHandle<()>> = None;
        match start {
            Start::Once(prompt) => {
                self.send(prompt).await?;
                self.session.finish().await;
            }
            Start::Feed => {
                let (session, printer) = (self.session.clone(), self.printer.clone());
                let has_answers = self.output == Output::StreamJson;
                feeding = Some(tokio::spawn(Feed { session, printer, has_answers, fed }.run()));
            }
            Start::Dialogue => self.greet().await?,
        }
        let outcome = self.go_on(deadline, &mut feed).await;
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        self.end(outcome).await
    }

    async fn greet(&mut self) -> anyhow::Result<()> {
        self.is_dialogue = true;
        let hint = format!("{DIM}an empty line or Ctrl-D ends the dialogue{DIM:#}");
        Ok(self.screen.show(vec![Piece::Line(hint)]).await?)
    }

    async fn send(&mut self, prompt: Prompt) -> anyhow::Result<()> {
        self.signals.busy(true);
        self.turns.was_refused = false;
        self.progress.begin(Instant::now());
        self.session.send(prompt).await.map_err(|error| end::of_session(error, false))?;
        Ok(())
    }

    async fn go_on(
        &mut self,
        deadline: Option<tokio::time::Instant>,
        feed: &mut mpsc::Receiver<Fed>,
    ) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut typing: Option<Asking<Prompted>> = None;
        let signals = self.signals.clone();
        loop {
            if let Some(question) = self.next_question() {
                put_down(&mut typing).await;
                self.put(question).await?;
                continue;
            }
            let is_idle = self.is_dialogue && !self.progress.is_on();
            if is_idle
                && typing.is_none()
                && let Answers::Person(asker) = &self.answers
            {
                self.screen.give_away().await?;
                typing = Some(asker.prompt()?);
            }
            tokio::select! {
                item = self.events.next() => match item {
                    None => break,
                    Some(item) => {
                        self.take(item, &mut typing).await?;
                        if self.is_over() {
                            break;
                        }
                    }
                },
                Some(question) = self.questions.recv() => self.open.push(question),
                Some(fed) = feed.recv() => self.fed(fed),
                prompted = typed(&mut typing) => {
                    typing = None;
                    match prompted.and_then(|Prompted(prompt)| prompt) {
                        Some(prompt) => self.send(prompt.into()).await?,
                        None => break,
                    }
                }
                _ = ticks.tick(), if self.progress.is_on() && self.screen.has_spinner() => {
                    self.screen.spin(&mut self.progress, Instant::now()).await?;
                }
                code = signals.left() => {
                    put_down(&mut typing).await;
                    return Err(Failure::Code(code).into());
                }
                () = until(deadline) => {
                    let _ = tokio::time::timeout(LAST_WORDS, self.session.interrupt()).await;
                    return Err(Failure::limit("the time of --timeout is up"));
                }
            }
        }
        put_down(&mut typing).await;
        Ok(())
    }

    /// Is there nothing more to wait for, although the CLI still runs?
    fn is_over(&self) -> bool {
        !self.is_dialogue && self.turns.was_interrupted
    }

    async fn take(
        &mut self,
        item: Result<Message, Error>,
        typing: &mut Option<Asking<Prompted>>,
    ) -> anyhow::Result<()> {
        let message = match item {
            Ok(message) => message,
            Err(Error::Line(bad)) if self.output == Output::StreamJson => {
                return Ok(self.printer.raw(format!("{}\n", bad.text)).await?);
            }
            Err(error) if !error.is_fatal() => {
                let text = visible(&error.to_string());
                return Ok(self.screen.show(vec![Piece::Warning(text)]).await?);
            }
            // A turn that has ended counts more than how the process ended.
            Err(Error::Exited(exit)) if self.turns.last.is_some() && !self.reducer.state().in_turn => {
                tracing::debug!(%exit, "claude has ended");
                return Ok(());
            }
            Err(error) => return Err(end::of_session(error, false)),
        };
        if let Message::Result(_) = &message {
            self.turns.result = Some(serde_json::to_string(&message)?);
        }
        if self.output == Output::StreamJson {
            self.printer.raw(format!("{}\n", serde_json::to_string(&message)?)).await?;
        }
        if let Message::ControlRequest(request) = &message
            && matches!(request.request, Request::CanUseTool(_) | Request::Elicitation(_))
        {
            self.due.push_back(request.clone());
        }
        let events: Vec<Event> = self.reducer.apply(message).collect();
        for event in events {
            self.event(event, typing).await?;
        }
        Ok(())
    }

    async fn event(&mut self, event: Event, typing: &mut Option<Asking<Prompted>>) -> anyhow::Result<()> {
        let (cwd, now) = (self.reducer.state().cwd.clone(), Instant::now());
        self.progress.follow(&event, cwd.as_deref(), now);
        if self.output == Output::Text {
            let pieces = self.show.event(&event, cwd.as_deref(), now);
            if !pieces.is_empty() && typing.is_some() {
                // A turn that nobody asked for: the prompt goes away, and comes back after it.
                put_down(typing).await;
                self.screen.show(vec![Piece::Line(String::new())]).await?;
            }
            self.screen.show(pieces).await?;
        }
        match event {
            Event::TurnStarted => {
                self.signals.busy(true);
                self.turns.api = None;
                self.turns.was_interrupted = false;
            }
            Event::ApiFailed(failure) => self.turns.api = Some(*failure),
            Event::QuestionWithdrawn { request_id } => self.due.retain(|due| due.request_id != request_id),
            Event::TurnEnded(end) => self.turn_ended(*end).await?,
            _ => {}
        }
        Ok(())
    }

    async fn turn_ended(&mut self, end: TurnEnd) -> anyhow::Result<()> {
        let failed = end.result.as_ref().is_some_and(|result| result.is_error);
        self.turns.was_interrupted = self.signals.is_interrupted() && failed;
        let waits = !self.reducer.state().queued.is_empty();
        self.signals.busy(waits);
        self.progress.end();
        if self.is_dialogue
            && !self.turns.was_interrupted
            && let Some(result) = &end.result
            && let Err(error) = end::of_turn(result, self.turns.api.as_ref())
        {
            let line = format!("{BAD}{}{BAD:#}", visible(&format!("{error:#}")));
            self.screen.show(vec![Piece::Line(line)]).await?;
        }
        if end.result.is_some() {
            self.turns.last = Some(end);
        }
        Ok(())
    }

    fn fed(&mut self, fed: Fed) {
        match fed {
            Fed::Sent => self.signals.busy(true),
            Fed::Wrong => self.wrong_lines += 1,
            Fed::Answer(response) => self.answered(response),
            Fed::End => {}
        }
    }

    /// The program has answered a question that was passed on to it.
    fn answered(&mut self, response: ControlResponse) {
        let Some(id) = response.request_id() else { return };
        let Some(frame) = self.due.iter().position(|due| due.request_id == id) else { return };
        let Some(frame) = self.due.remove(frame) else { return };
        let Some(question) = self.open.iter().position(|question| question.is(&frame)) else { return };
        let question = self.open.swap_remove(question);
        let body = match &response.response {
            Response::Success(success) => success.response.clone().unwrap_or_default(),
            // Without an answer the callback refuses.
            _ => return,
        };
        let answer = match &question.body {
            Body::Permission(_) => body.read().map(Answer::Permission),
            Body::Elicitation(_) => body.read().map(Answer::Elicitation),
        };
        match answer {
            Ok(answer) => question.answer(answer),
            Err(error) => tracing::warn!(%error, "an answer that cannot be read; the question is refused"),
        }
    }

    /// The oldest question for the person whose place in the stream has come.
    fn next_question(&mut self) -> Option<Question> {
        self.open.retain(|question| !question.is_withdrawn());
        if !matches!(self.answers, Answers::Person(_)) {
            return None;
        }
        let frame = self.due.front()?;
        let found = self.open.iter().position(|question| question.is(frame))?;
        self.due.pop_front();
        Some(self.open.swap_remove(found))
    }

    /// Asks the person. Nothing else is shown before the answer is there; messages wait meanwhile.
    async fn put(&mut self, mut question: Question) -> anyhow::Result<()> {
        let Answers::Person(asker) = &self.answers else { return Ok(()) };
        if let Body::Permission(request) = &question.body {
            self.show.asked(&request.tool_use_id);
        }
        self.screen.give_away().await?;
        let mut asking = asker.question(question.body.clone())?;
        let answer = tokio::select! {
            answer = asking.done() => answer,
            () = question.withdrawn() => {
                asking.stop();
                asking.done().await;
                return Ok(());
            }
            code = self.signals.left() => {
                asking.stop();
                return Err(Failure::Code(code).into());
            }
        };
        let Some(answer) = answer else { return Ok(()) };
        if let Body::Permission(request) = &question.body {
            self.reducer.answered(request.request_id());
            if let Answer::Permission(PermissionResult::Deny(deny)) = &answer {
                self.show.refused(&request.tool_use_id);
                self.turns.was_refused |= deny.interrupt == Some(true);
            }
        }
        question.answer(answer);
        Ok(())
    }

    /// Writes what is left to write, ends the CLI, and finds the exit code.
    async fn end(mut self, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
        if self.output == Output::Json
            && let Some(result) = self.turns.result.take()
        {
            self.printer.raw(format!("{result}\n")).await?;
        }
        self.screen.end().await?;
        let closed = self.session.close().await;
        outcome?;
        if self.wrong_lines > 0 {
            return Err(Failure::Code(2).into());
        }
        if self.is_dialogue {
            return Ok(());
        }
        match (&self.turns.last, closed) {
            _ if self.turns.was_refused => {
                Err(Failure::refused("you have refused, and the turn was stopped"))
            }
            _ if self.turns.was_interrupted => Err(end::interrupted()),
            (Some(TurnEnd { result: Some(result), .. }), _) => end::of_turn(result, self.turns.api.as_ref()),
            (_, Ok(exit)) if !exit.success() => Err(end::of_session(Error::Exited(exit), false)),
            _ => Ok(()),
        }
    }
}

/// What the person types, when somebody is asked for a prompt.
async fn typed(typing: &mut Option<Asking<Prompted>>) -> Option<Prompted> {
    match typing {
        Some(asking) => asking.done().await,
        None => std::future::pending().await,
    }
}

/// The person is no longer asked for a prompt.
async fn put_down(typing: &mut Option<Asking<Prompted>>) {
    if let Some(mut asking) = typing.take() {
        asking.stop();
        asking.done().await;
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
