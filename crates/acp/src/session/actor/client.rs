//! What the client asks of it.

use super::*;

impl Actor {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Prompt { content, responder } => self.prompt(content, responder),
            Command::Steer { content, asks_first, responder } => self.steer(content, asks_first, responder),
            Command::Cancel => self.cancel(),
            Command::CancelRequest(id) => {
                if self.responders.values().any(|responder| responder.id().as_json() == id) {
                    self.cancel();
                }
            }
            Command::Choose { id, value, whole, responder } => self.choose(&id, &value, whole, responder),
            Command::Rewind { message_id, responder } => self.rewind(message_id, responder),
            Command::Titled(title) => {
                self.given_title = Some(title.clone());
                if let Cli::On { session, .. } = &self.cli {
                    let (session, title) = (session.clone(), title.clone());
                    // A CLI that does not know it leaves the title to us.
                    self.tasks.spawn(async move { drop(session.rename(&title).await) });
                }
                self.set_title(title);
                self.tell_info();
            }
            Command::Again { begin, request, responder } => self.again(begin, request, responder),
        }
    }

    pub(super) fn prompt(&mut self, content: Content, responder: Responder) {
        let uuid = uuid::Uuid::new_v4().to_string();
        if self.title.is_none() {
            self.title = title_of(&prompt::words(&content));
        }
        self.turns.prompt(&uuid);
        self.responders.insert(uuid.clone(), responder);
        let mut user = User::prompt(content);
        user.uuid = Some(uuid);
        self.waiting.push_back(user);
        self.start();
    }

    pub(super) fn steer(&mut self, content: Content, asks_first: bool, responder: Responder) {
        let is_running = self.turns.is_running() && !self.turns.is_cancelling();
        if !is_running && asks_first {
            return responder.reply(&json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
        }
        let uuid = uuid::Uuid::new_v4().to_string();
        // Nobody waits for its answer, but a cancel is about it, too.
        self.turns.steer(&uuid);
        let mut user = User::prompt(content);
        user.uuid = Some(uuid);
        self.waiting.push_back(user);
        self.start();
        self.send_waiting();
        let outcome = if is_running { "injected" } else { "startedNewTurn" };
        let handed_over = self.handed_over();
        self.tasks.spawn(async move {
            let _ = timeout(STOP, handed_over).await;
            responder.reply(&json!({ "outcome": outcome }));
        });
    }

    /// Done when the CLI has been given all that was sent to it, or when there is no CLI.
    fn handed_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let (fence, reached) = oneshot::channel();
        if let Cli::On { outgoing, .. } = &self.cli {
            let _ = outgoing.try_send(Outgoing::Fence(fence));
        }
        reached.map(drop)
    }

    /// Sends what waits, as far as the CLI takes it.
    pub(super) fn send_waiting(&mut self) {
        let Cli::On { outgoing, .. } = &self.cli else { return };
        // An interrupt that is on its way would hit what is sent now.
        while self.turns.may_send() && self.interrupts == 0 && !self.waiting.is_empty() {
            let Ok(permit) = outgoing.try_reserve() else { return };
            let Some(user) = self.waiting.pop_front() else { return };
            if let Some(uuid) = &user.uuid {
                self.turns.sent(uuid);
                self.reducer.sent(uuid);
                self.unread.push(user.clone());
            }
            if !self.turns.is_running() {
                self.muted = false;
            }
            permit.send(Outgoing::Message(Box::new(user)));
        }
    }

    pub(super) fn cancel(&mut self) {
        let cancel = self.turns.cancel();
        self.waiting.clear();
        self.answer(cancel.answers);
        // Nothing of it is for the next CLI.
        self.unread.clear();
        if !cancel.tasks.is_empty() {
            self.hushed_until = Some(Instant::now() + WAKE);
        }
        if cancel.interrupt || !cancel.tasks.is_empty() {
            self.gate.cancel();
            self.interrupt(cancel.queued, cancel.tasks);
        }
        if cancel.interrupt {
            // Who cancels again does not wait longer for it.
            let now = Instant::now();
            self.timers.entry("give up").or_insert((now + STOP, Timer::GiveUp));
            self.timers.entry("kill").or_insert((now + STOP_OR_DIE, Timer::Kill));
        }
    }

    /// Stops the CLI's turn: first messages that no turn has read, so that none begins.
    pub(super) fn interrupt(&mut self, queued: Vec<String>, tasks: Vec<String>) {
        let notes = self.notes.clone();
        self.while_interrupting(async move |session: Session| {
            for uuid in queued {
                let withdrawn = session.cancel_message(&uuid).await;
                if withdrawn.is_ok_and(|answer| answer.cancelled) {
                    let _ = notes.send(Note::Withdrawn(uuid)).await;
                }
            }
            for task in tasks {
                let _ = session.stop_task(&task).await;
            }
            match session.interrupt_all().await {
                Ok(receipt) => {
                    for uuid in receipt.cancelled.into_iter().flatten() {
                        let _ = notes.send(Note::Withdrawn(uuid)).await;
                    }
                }
                Err(error) => tracing::warn!(%error, "the interrupt failed"),
            }
        });
    }

    /// Stops the turn that runs, and nothing else.
    pub(super) fn interrupt_turn(&mut self) {
        self.while_interrupting(async |session: Session| drop(session.interrupt().await));
    }

    /// Interrupts the CLI in some way. Until it has answered, or is given up, it is sent nothing.
    fn while_interrupting<W>(&mut self, work: impl FnOnce(Session) -> W)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let Cli::On { session, .. } = &self.cli else { return };
        // What is to be taken back must be there first.
        let work = self.handed_over().then({
            let work = work(session.clone());
            |()| work
        });
        let notes = self.notes.clone();
        self.interrupts += 1;
        self.tasks.spawn(async move {
            let _ = timeout(STOP_OR_DIE, work).await;
            let _ = notes.send(Note::Interrupted).await;
        });
    }

    pub(super) fn choose(&mut self, id: &str, value: &Json, whole: bool, responder: Responder) {
        let order = match self.choices.order(id, value) {
            Ok(order) => order,
            Err(error) => return responder.error(&error),
        };
        match &self.cli {
            // A CLI may hold on to the agent that it began with, whatever it is told later: only another one has another.
            Cli::On { .. } if matches!(order, Order::Agent(_)) && self.has_begun => {
                self.wanted.get_or_insert(self.request.clone());
                self.chosen(&order, whole, responder);
            }
            Cli::On { session, .. } => self.carry_out(&session.clone(), order, whole, responder),
            Cli::Starting(_) => self.orders.push((order, whole, responder)),
            // It is started with it.
            Cli::Off => self.chosen(&order, whole, responder),
        }
    }

    pub(super) fn carry_out(&self, session: &Session, order: Order, whole: bool, responder: Responder) {
        let (session, notes) = (session.clone(), self.notes.clone());
        self.tasks.spawn(async move {
            let outcome = order.carry_out(&session).await;
            let note = Note::Chosen { order, outcome, whole, responder };
            if let Err(mpsc::error::SendError(Note::Chosen { responder, .. })) = notes.send(note).await {
                responder.error(&closed());
            }
        });
    }

    pub(super) fn chosen(&mut self, order: &Order, whole: bool, responder: Responder) {
        self.choices.done(order);
        // The other of the two ways hears of it, too.
        match order {
            Order::Mode(_) => self.tell_mode(),
            _ if !whole => self.tell_choices(),
            _ => {}
        }
        if whole {
            let config_options = self.choices.options(&self.context().client);
            responder.reply(&SetConfigOptionResponse { config_options });
        } else {
            responder.reply(&Empty {});
        }
    }

    /// A session that is open is loaded or resumed.
    pub(super) fn again(&mut self, begin: Begin, request: SetupRequest, responder: Responder) {
        let mark = self.mark.borrow().clone();
        let is_empty = mark.record.is_none() && history::open(self.context(), &mark.session, None).is_err();
        if begin != Begin::Load || is_empty {
            return self.set_up_again(begin, request, responder);
        }
        let (context, notes) = (self.asker.context.clone(), self.notes.clone());
        self.tasks.spawn(async move {
            let transcript = mark.written(&context, None, Instant::now() + history::PATIENCE).await;
            let note = Note::Written { request, transcript, responder };
            if let Err(mpsc::error::SendError(Note::Written { responder, .. })) = notes.send(note).await {
                responder.error(&closed());
            }
        });
    }

    pub(super) fn set_up_again(&mut self, begin: Begin, request: SetupRequest, responder: Responder) {
        let is_other = request.cwd != self.request.cwd
            || request.mcp_servers != self.request.mcp_servers
            || request.additional_directories != self.request.additional_directories;
        // What is awaited already is awaited with what was said last.
        if is_other || self.wanted.is_some() {
            self.wanted = Some(request);
        }
        self.set_up(begin, responder);
    }
}
