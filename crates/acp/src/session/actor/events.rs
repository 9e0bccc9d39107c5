//! What the CLI says, and what it means for the session.

use super::*;

impl Actor {
    pub(super) fn follow(&mut self, mut message: Message) {
        review::disguise(&mut message);
        if let Message::System(System::ElicitationComplete(done)) = &message {
            ask::elicitation_complete(self.context(), done.elicitation_id.clone());
        }
        let events: Vec<Event> = self.reducer.apply(message).collect();
        for event in events {
            self.show(event);
        }
    }

    pub(super) fn show(&mut self, event: Event) {
        let asked = self.learn(&event);
        let answers = self.turns.follow(&event);
        let ended = matches!(event, Event::TurnEnded(_));
        if matches!(event, Event::TurnStarted) && (self.muted || self.turns.is_cancelling()) {
            // One that was cancelled before it began. Messages that came since are not meant.
            self.interrupt_turn();
        }
        // The CLI says in the conversation what the client chose beside it.
        let is_echo = matches!(&event, Event::CommandOutput(text) if text.starts_with("Set model to "))
            && self.turns.is_idle();
        if !self.muted && !is_echo {
            self.screen.show(event);
        }
        // A turn that was cancelled is not asked for: its questions are withdrawn with it.
        if let Some((request_id, situation)) = asked.filter(|_| !self.muted) {
            // Whoever asks must find the call on the client's screen.
            self.flush();
            self.gate.show(&request_id, situation);
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
            }
            Event::MessageState { uuid, state } if *state != CommandState::Queued => {
                self.unread.retain(|user| user.uuid.as_ref() != Some(uuid));
            }
            Event::QuestionWithdrawn { request_id } => self.gate.forget(request_id),
            Event::ModeChanged(mode) if self.choices.set_mode(mode) => self.tell_mode(),
            Event::ModelChanged(model) if self.choices.set_model(model) => self.tell_choices(),
            Event::Commands(commands) if self.choices.set_commands(commands) => self.tell_commands(),
            Event::SessionChanged { session_id, .. } => self.cli_session.clone_from(session_id),
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
