//! How it begins and how it ends.

use super::*;

impl Actor {
    pub(super) async fn begin(&mut self, begin: Begin, transcript: Option<Transcript>, responder: Responder) {
        if let Ok(program) = self.context().program() {
            self.cache = cache::place(self.context(), &program, Path::new(&self.request.cwd));
        }
        let known = self.cache.as_deref().and_then(cache::load);
        if let Some(known) = &known {
            self.screen.windows_are(&known.windows);
        }
        let (mode, model) = wishes(&self.request);
        let mode = mode.or_else(|| choices::past::mode(transcript.as_ref()?.path()));
        self.choices = Choices::new(&known.clone().unwrap_or_default(), mode, model);
        if let Some(transcript) = &transcript {
            self.title = transcript.summary().map(|summary| summary.title);
            if begin == Begin::Load {
                self.replay(transcript).await;
            }
        }
        self.start();
        if known.is_some() || begin == Begin::Load {
            self.set_up(begin, responder);
        } else {
            self.timers.insert("setup", (Instant::now() + FIRST_START, Timer::Setup));
            self.setups.push((begin, responder));
        }
    }

    /// Shows a transcript, as fast as the client reads.
    pub(super) async fn replay(&mut self, transcript: &Transcript) {
        let context = self.asker.context.clone();
        let mut screen = Screen::new(context.client.clone(), self.request.cwd.clone(), Pass::Replay);
        if let Some(known) = self.cache.as_deref().and_then(cache::load) {
            screen.windows_are(&known.windows);
        }
        let replay = match Replay::new(transcript, screen) {
            Ok(replay) => replay,
            Err(error) => {
                let title = "What was said before cannot be shown; Claude Code may still know it";
                self.screen.notice(NoticeLevel::Error, title, Some(&error.to_string()));
                return self.flush();
            }
        };
        for updates in replay {
            // A transcript knows nothing of what is still at work.
            for update in updates.iter().filter(|update| !self.screen.is_premature(update)) {
                context.update(&self.asker.session_id, update);
            }
            context.peer.ready().await;
            // Others have a turn, too, however long the transcript is.
            yield_now().await;
        }
    }

    /// Answers a setup.
    pub(super) fn set_up(&mut self, begin: Begin, responder: Responder) {
        let is_new = matches!(begin, Begin::New | Begin::Fork);
        responder.reply(&SetupResponse {
            session_id: is_new.then(|| self.asker.session_id.to_string()),
            modes: self.choices.modes(),
            config_options: self.choices.options(&self.context().client),
        });
        self.tell_commands();
    }

    pub(super) fn tell_commands(&self) {
        let available_commands = self.choices.commands();
        if !available_commands.is_empty() {
            self.update(&SessionUpdate::AvailableCommandsUpdate(AvailableCommands { available_commands }));
        }
    }

    /// The client has closed the session, or is gone.
    pub(super) async fn end(mut self, responder: Option<Responder>) {
        let is_busy = self.turns.is_busy();
        for event in self.reducer.close() {
            self.screen.show(event);
        }
        self.flush();
        let answers = self.turns.close();
        self.answer(answers);
        for (_, _, responder) in self.orders.drain(..) {
            responder.error(&closed());
        }
        for (_, responder) in self.setups.drain(..) {
            responder.error(&closed());
        }
        for (_, responder) in self.rewinds.drain(..) {
            responder.error(&closed());
        }
        match std::mem::replace(&mut self.cli, Cli::Off) {
            Cli::On { session, events, .. } => {
                drop(events);
                // One that is asked to end would first do what it has to do.
                if is_busy {
                    session.kill().await;
                } else {
                    let _ = session.close().await;
                }
                keep_title(&self.asker.context, self.cli_session.clone(), self.given_title.take());
            }
            // Dropping the future kills what it has started.
            Cli::Starting(_) | Cli::Off => {}
        }
        if let Some(leaving) = self.leaving.take() {
            leaving.await;
        }
        self.refuse_all().await;
        if let Some(responder) = responder {
            responder.reply(&Empty {});
        }
    }

    /// Answers what has come in while the session ended.
    pub(super) async fn refuse_all(&mut self) {
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            match command {
                Command::Prompt { responder, .. } => responder.reply(&PromptResponse {
                    stop_reason: StopReason::Cancelled,
                    usage: None,
                    meta: None,
                }),
                Command::Steer { responder, .. }
                | Command::Choose { responder, .. }
                | Command::Rewind { responder, .. }
                | Command::Again { responder, .. } => responder.error(&closed()),
                Command::Cancel | Command::CancelRequest(_) | Command::Titled(_) => {}
            }
        }
        self.noted.close();
        while let Some(note) = self.noted.recv().await {
            if let Note::Chosen { responder, .. } | Note::Written { responder, .. } = note {
                responder.error(&closed());
            }
        }
    }
}

/// The mode and the model that the client asks for at the start.
fn wishes(request: &SetupRequest) -> (Option<PermissionMode>, Option<String>) {
    let options = request.meta.as_ref().and_then(|meta| meta.get("claudeCode")?.get("options"));
    let word = |name: &str| options.and_then(|options| options.get(name)).and_then(Value::as_str);
    (word("permissionMode").map(PermissionMode::from), word("model").map(str::to_owned))
}
