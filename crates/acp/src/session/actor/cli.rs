//! Its CLI: started, heard, buried, parked.

use super::*;

impl Actor {
    /// Starts the CLI, if it is not there.
    pub(super) fn start(&mut self) {
        if !matches!(self.cli, Cli::Off) {
            return;
        }
        if let Some(request) = self.wanted.take() {
            self.request = request;
        }
        let options = launch::options(&self.asker, &self.request, &self.gate, &self.notes);
        let options = match options {
            Ok(options) => options,
            Err(error) => {
                self.cli = Cli::Starting(std::future::ready(Err(error)).boxed());
                return;
            }
        };
        let options = self.choices.launch(options);
        let (context, id) = (self.asker.context.clone(), self.cli_session.clone());
        let (cwd, leaving) = (self.request.cwd.clone(), self.leaving.take());
        self.is_plain = self.choices.are_untouched() && given::leaves_settings(self.request.meta.as_ref());
        // Two CLIs would write one transcript, and the second may not find in it what the first has yet to write.
        let connecting = async move {
            if let Some(leaving) = leaving {
                leaving.await;
            }
            let resumes = history::open(&context, &id, Some(&cwd)).is_ok();
            let options = if resumes { options.resume(id) } else { options.session_id(id) };
            let (session, events) = options.connect().await?;
            Ok((session, events, resumes))
        };
        self.has_begun = false;
        self.cli = Cli::Starting(connecting.boxed());
    }

    pub(super) fn started(&mut self, outcome: Started) {
        self.timers.remove("setup");
        let (session, events, resumed) = match outcome {
            Ok(started) => started,
            Err(error) => return self.not_started(&error),
        };
        self.is_plain &= !resumed;
        let (outgoing, messages) = mpsc::channel(OUTGOING);
        self.tasks.spawn(send_all(session.clone(), messages));
        let known = Known::new(session.info(), None);
        let mut is_news = self.choices.learn(&known);
        if let Some(mode) = &session.info().current_permission_mode {
            is_news |= self.choices.set_mode(mode);
        }
        if let Some(place) = &self.cache {
            cache::store(place, &known);
        }
        // The model in force is in the settings, which are asked for beside.
        let (notes, of) = (self.notes.clone(), session.clone());
        self.tasks.spawn(async move {
            if let Ok(settings) = of.settings().await {
                let known = Known::new(of.info(), Some(&settings));
                let _ = notes.send(Note::Known(Box::new(known))).await;
            }
        });
        for (order, whole, responder) in std::mem::take(&mut self.orders) {
            self.carry_out(&session, order, whole, responder);
        }
        self.cli = Cli::On { session, events, outgoing };
        for (message_id, responder) in std::mem::take(&mut self.rewinds) {
            self.rewind(message_id, responder);
        }
        if let Some(why) = self.died.take() {
            let title = "Claude Code was started again; the session goes on";
            self.screen.notice(NoticeLevel::Warning, title, Some(&why));
        }
        if self.setups.is_empty() {
            if is_news {
                self.tell_mode();
                self.tell_commands();
            }
        } else {
            for (begin, responder) in std::mem::take(&mut self.setups) {
                self.set_up(begin, responder);
            }
        }
    }

    pub(super) fn not_started(&mut self, error: &Error) {
        tracing::warn!(%error, "the CLI did not start");
        self.cli = Cli::Off;
        // A CLI that was killed at its first turn leaves a transcript that it cannot read.
        let is_lost =
            matches!(error, Error::NotStarted { reason, .. } if reason.contains("No conversation found"));
        if is_lost && self.setups.is_empty() {
            self.change_session(uuid::Uuid::new_v4().to_string());
            self.died = Some(format!("What was said before could not be brought back: {error}"));
            return self.start();
        }
        let fault = fault::cli(error);
        for (_, responder) in self.setups.drain(..) {
            responder.error(&fault);
        }
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&fault);
        }
        for (_, responder) in self.rewinds.drain(..) {
            responder.error(&fault);
        }
        let is_unanswered =
            |user: &User| user.uuid.as_ref().is_none_or(|id| !self.responders.contains_key(id));
        if std::mem::take(&mut self.waiting).iter().any(is_unanswered) {
            let title = "Claude Code did not start, so what you said is lost";
            self.screen.notice(NoticeLevel::Error, title, Some(&fault.message));
        }
        let answers = self.turns.fail(&fault);
        self.answer(answers);
    }

    /// Takes what the CLI says, and all that it has said besides.
    pub(super) async fn hear(&mut self, item: Option<Result<Message, Error>>) {
        let mut next = Some(item);
        for left in (0..BATCH).rev() {
            match next.take() {
                Some(Some(Ok(message))) => self.follow(message),
                Some(Some(Err(error))) if !error.is_fatal() => {
                    tracing::warn!(%error, "a line of the CLI's was passed over");
                }
                Some(item) => return self.bury(item.and_then(Result::err)).await,
                None => return,
            }
            // What is taken from the CLI's messages must be followed, too.
            if let Cli::On { events, .. } = &mut self.cli
                && left > 0
            {
                next = events.next().now_or_never();
            }
        }
    }

    /// The CLI is gone.
    pub(super) async fn bury(&mut self, error: Option<Error>) {
        let Cli::On { session, .. } = std::mem::replace(&mut self.cli, Cli::Off) else { return };
        let error = match error {
            Some(error) => error,
            None => Error::Exited(session.wait().await),
        };
        tracing::warn!(%error, "the CLI is gone");
        // What it has not written down is lost.
        self.mark.send_modify(|mark| *mark = Mark::of(&mark.session));
        self.gate.clear();
        // Only the screen hears how all that is open ends: the prompts shall hear why.
        let events: Vec<Event> = self.reducer.close().collect();
        for event in events {
            self.learn(&event);
            self.screen.show(event);
        }
        self.flush();
        self.muted = false;
        self.timers.clear();
        self.died = Some(error.to_string());
        self.put_back();
        let fault = fault::cli(&error);
        let answers = self.turns.gone(&fault);
        self.answer(answers);
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&fault);
        }
        if !self.waiting.is_empty() {
            self.start();
        }
    }

    /// What the dead CLI had and had not begun goes to the next one; once, or one that dies of it would die for ever.
    fn put_back(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        if self.turns.is_cancelling() || std::mem::replace(&mut self.is_second_try, !unread.is_empty()) {
            return;
        }
        for user in unread.into_iter().rev() {
            if let Some(uuid) = &user.uuid {
                self.turns.put_back(uuid);
            }
            self.waiting.push_front(user);
        }
    }

    /// Lets the CLI go until it is needed.
    pub(super) fn park(&mut self) {
        if let Cli::On { session, .. } = std::mem::replace(&mut self.cli, Cli::Off) {
            tracing::info!("parked");
            let context = self.asker.context.clone();
            let (id, title) = (self.cli_session.clone(), self.given_title.clone());
            let left = self.tasks.spawn(async move {
                let _ = session.close().await;
                keep_title(&context, id, title);
            });
            self.leaving = Some(left.map(drop).boxed());
        }
        self.reducer.close();
        self.gate.clear();
    }

    /// Starts the CLI anew when it was asked for with other words, and has nothing to do.
    pub(super) fn renew(&mut self) {
        if self.wanted.is_some() && self.is_at_rest() {
            self.park();
            self.start();
        }
    }
}
