//! What the CLI says, and what it means for the session.

use super::*;

impl Actor {
    pub(super) fn follow(&mut self, mut message: Message) {
        review::disguise(&mut message);
        if let Message::System(System::ElicitationComplete(done)) = &message {
            ask::elicitation_complete(self.context(), done.elicitation_id.clone());
        }
        let record = record_of(&message);
        let events: Vec<Event> = self.reducer.apply(message).collect();
        for event in events {
            self.show(event);
        }
        if record.is_some() {
            self.mark.send_modify(|mark| mark.record = record);
        }
    }

    /// The CLI goes on in another transcript.
    pub(super) fn change_session(&mut self, id: String) {
        self.mark.send_modify(|mark| *mark = Mark { is_running: mark.is_running, ..Mark::of(&id) });
        self.cli_session = id;
    }

    pub(super) fn show(&mut self, event: Event) {
        let asked = self.learn(&event);
        let asked_about = asked_about(&event);
        let ended = matches!(event, Event::TurnEnded(_));
        if matches!(event, Event::TurnStarted) {
            let is_by_itself = !self.turns.is_busy();
            self.muted |= is_by_itself && self.hushed_until.is_some_and(|until| Instant::now() < until);
            if self.muted || self.turns.is_cancelling() {
                // One that was cancelled before it began. Messages that came since are not meant.
                self.interrupt_turn();
            }
        }
        let answers = self.turns.follow(&event);
        // The CLI says in the conversation what the client chose beside it.
        let is_echo = matches!(&event, Event::CommandOutput(text) if text.starts_with("Set model to "))
            && self.turns.is_idle();
        if !self.muted && !is_echo {
            self.screen.show(event);
        }
        if let Some((request_id, situation)) = asked {
            if let Some(call) = asked_about.filter(|_| !self.muted) {
                self.screen.show(Event::ToolCall(call));
            }
            // Whoever asks must find the call on the client's screen.
            self.flush();
            // The user has said no to all that a cancelled turn may ask.
            let is_wanted = !self.muted && !self.turns.is_cancelling();
            self.gate.show(&request_id, Some(situation).filter(|_| is_wanted));
        }
        if ended {
            self.muted = false;
            if let Some(error) = self.turns.take_unclaimed() {
                self.screen.notice(NoticeLevel::Error, "Claude Code could not go on", Some(&error.message));
            }
            if let (Some(place), Some(windows)) = (&self.cache, self.screen.new_windows()) {
                cache::store_windows(place, windows);
            }
            self.flush();
            self.tell_info();
        }
        if !answers.is_empty() {
            self.flush();
            self.answer(answers);
        }
    }

    /// What an event means for the session itself. Gives the question that may be asked now.
    pub(super) fn learn(&mut self, event: &Event) -> Option<(String, Situation)> {
        match event {
            Event::Permission(permission) => {
                let situation = Situation {
                    cwd: self.request.cwd.clone(),
                    mode: Some(PermissionMode::from(self.choices.modes().current_mode_id.as_str())),
                    modes: self.choices.available_modes(),
                    parent_tool_use_id: permission.call.parent_tool_use_id.clone(),
                };
                return Some((permission.request_id.clone(), situation));
            }
            Event::TurnStarted => {
                self.unread.clear();
                self.is_second_try = false;
                self.has_begun = true;
                self.mark.send_modify(|mark| mark.is_running = true);
            }
            Event::MessageState { uuid, state } if *state != CommandState::Queued => {
                self.unread.retain(|user| user.uuid.as_ref() != Some(uuid));
            }
            // The oldest CLI says by this alone that it has read one during a turn.
            Event::Prompt(prompt) if prompt.kind == PromptKind::Replay => {
                self.unread.retain(|user| user.uuid != prompt.uuid);
            }
            Event::QuestionWithdrawn { request_id } => self.gate.forget(request_id),
            Event::ModeChanged(mode) if self.choices.set_mode(mode) => self.tell_mode(),
            Event::ModelChanged(model) if self.choices.set_model(model) => self.tell_choices(),
            Event::Commands(commands) if self.choices.set_commands(commands) => self.tell_commands(),
            Event::SessionChanged { session_id, .. } => self.change_session(session_id.clone()),
            Event::TurnEnded(_) => self.mark.send_modify(|mark| mark.is_running = false),
            Event::TitleChanged(title) => {
                self.set_title(title.clone());
                self.tell_info();
            }
            Event::ToolResult { call: Some(call), result } => {
                if let Some(file) = view::output_file(&call.name, result).filter(|_| call.name == "Bash") {
                    self.tails.add(&call.id, file.into());
                }
            }
            Event::Task { change: TaskChange::Started, task } if task.kind == Some(TaskType::LocalBash) => {
                // A command is a task when it is in the background, or has run for some seconds. Only the result of the
                // former says where the output is.
                if let Some(id) = &task.tool_use_id {
                    let cwd = self.reducer.state().cwd.as_deref().unwrap_or(&self.request.cwd);
                    self.tails.add(id, tail::place(Path::new(cwd), &self.cli_session, &task.id));
                }
            }
            Event::Task { change: TaskChange::Ended, task } => {
                let rest = task.tool_use_id.as_deref().and_then(|id| self.tails.finish(id));
                if let Some(output) = rest {
                    self.screen.output(&output.tool_use_id, &output.text);
                }
            }
            _ => {}
        }
        None
    }
}

/// The record of the session's transcript that a message becomes. What the CLI makes up by itself may become none.
fn record_of(message: &Message) -> Option<String> {
    match message {
        Message::Assistant(assistant)
            if assistant.parent_tool_use_id.is_none() && assistant.message.model != "<synthetic>" =>
        {
            assistant.uuid.clone()
        }
        Message::User(user) if user.parent_tool_use_id.is_none() && user.tool_use_result.is_some() => {
            user.uuid.clone()
        }
        _ => None,
    }
}

/// The call that a question is about, as it would be made. A hook may have changed it since the model made it.
fn asked_about(event: &Event) -> Option<Arc<ToolCall>> {
    let Event::Permission(permission) = event else { return None };
    let input = &permission.request.input;
    let is_other = permission.call.input.value() != input.value();
    is_other.then(|| Arc::new(ToolCall { input: input.clone(), ..(*permission.call).clone() }))
}
