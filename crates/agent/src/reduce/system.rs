//! News about the session.

use super::{Compaction, Event, Hook, Notice, NoticeLevel, Reducer};
use crate::stream::{Activity, Init, McpServerState, Message, PermissionMode, SessionState, Status, System};

impl Reducer {
    pub(super) fn on_system(&mut self, system: System) {
        match system {
            System::ThinkingTokens(tokens) => {
                self.events.push(Event::ThinkingTokens(tokens.estimated_tokens));
            }
            System::Init(init) => self.on_init(init),
            System::Status(status) => self.on_status(status),
            System::ApiRetry(retry) => self.events.push(Event::Retry(Box::new(retry))),
            System::CompactBoundary(boundary) => {
                self.compacted = true;
                self.events.push(Event::Compaction(Compaction::Boundary(boundary)));
            }
            System::HookStarted(hook) => self.events.push(Event::Hook(Box::new(Hook::Started(hook)))),
            System::HookProgress(hook) => self.events.push(Event::Hook(Box::new(Hook::Progress(hook)))),
            System::HookResponse(hook) => self.events.push(Event::Hook(Box::new(Hook::Ended(hook)))),
            System::TaskStarted(task) => self.on_task_started(*task),
            System::TaskProgress(task) => self.on_task_progress(task),
            System::TaskUpdated(task) => self.on_task_updated(task),
            System::TaskNotification(task) => self.on_task_notification(*task),
            System::BackgroundTasksChanged(tasks) => self.on_background_tasks(tasks),
            System::SessionTitleChanged(changed) => {
                if self.state.title.as_ref() != Some(&changed.title) {
                    self.state.title = Some(changed.title.clone());
                    self.events.push(Event::TitleChanged(changed.title));
                }
            }
            System::PermissionDenied(denied) => {
                let call = self.state.calls.get(&denied.tool_use_id).map(|open| open.call.clone());
                self.events.push(Event::PermissionDenied { call, denied: Box::new(denied) });
            }
            System::CommandsChanged(changed) => self.events.push(Event::Commands(changed.commands)),
            System::LocalCommandOutput(output) => self.command_output(output.content),
            system => self.on_notice(system),
        }
    }

    fn on_init(&mut self, init: Box<Init>) {
        self.start_turn();
        self.turn.init = true;
        for uuid in init.user_message_uuids.iter().flatten() {
            self.turn_answers(uuid);
        }
        self.state.cwd = Some(init.cwd.clone());
        self.state.version = Some(init.claude_code_version.clone());
        self.state.capabilities = init.capabilities.clone().unwrap_or_default();
        let servers =
            init.mcp_servers.iter().map(|server| (server.name.clone(), server.status.clone())).collect();
        let before = std::mem::replace(&mut self.state.mcp_servers, servers);
        let (session_id, model, mode) =
            (init.session_id.clone(), init.model.clone(), init.permission_mode.clone());
        self.events.push(Event::Init(init));
        if let Some(session_id) = session_id.filter(|id| self.state.session_id.as_ref() != Some(id)) {
            let previous = self.state.session_id.replace(session_id.clone());
            if previous.is_some() {
                // Another session has another list.
                self.set_plan(Vec::new());
            }
            self.events.push(Event::SessionChanged { session_id, previous });
        }
        self.set_model(model);
        self.set_mode(mode);
        for (name, status) in &self.state.mcp_servers {
            let text = match status {
                _ if before.get(name) == Some(status) => continue,
                McpServerState::Failed => format!("the MCP server {name} has failed"),
                McpServerState::NeedsAuth => format!("the MCP server {name} wants a login"),
                _ => continue,
            };
            let notice = Notice { level: NoticeLevel::Warning, text, system: None };
            self.events.push(Event::Notice(Box::new(notice)));
        }
    }

    fn set_model(&mut self, model: String) {
        if self.state.model.as_ref() != Some(&model) {
            self.state.model = Some(model.clone());
            self.events.push(Event::ModelChanged(model));
        }
    }

    fn set_mode(&mut self, mode: PermissionMode) {
        if self.state.mode.as_ref() != Some(&mode) {
            self.state.mode = Some(mode.clone());
            self.events.push(Event::ModeChanged(mode));
        }
    }

    fn on_status(&mut self, status: Status) {
        let Status { status, permission_mode, compact_result, compact_error, user_message_uuids, .. } =
            status;
        if status.is_some() {
            self.start_turn();
            for uuid in user_message_uuids.iter().flatten() {
                self.turn_answers(uuid);
            }
        }
        if status.is_some() || (permission_mode.is_none() && compact_result.is_none()) {
            self.events.push(Event::Activity(status.clone()));
        }
        if status == Some(Activity::Compacting) {
            self.events.push(Event::Compaction(Compaction::Started));
        }
        if let Some(result) = compact_result {
            let failed = (result != "success").then_some(result);
            let error = compact_error.or(failed);
            self.events.push(Event::Compaction(Compaction::Ended { error }));
        }
        if let Some(mode) = permission_mode {
            self.set_mode(mode);
        }
    }

    /// What is shown to the user in words, and what is not.
    fn on_notice(&mut self, system: System) {
        let mut model = None;
        let (level, text) = match &system {
            System::Informational(notice) => (level(notice.level.as_deref()), notice.content.clone()),
            System::Notification(notice) => (level(notice.priority.as_deref()), notice.text.clone()),
            System::ModelFallback(fallback) => {
                model = Some(fallback.fallback_model.clone());
                (NoticeLevel::Warning, fallback.content.clone().unwrap_or_default())
            }
            System::ModelRefusalFallback(fallback) => {
                model = Some(fallback.fallback_model.clone());
                if let Some(uuids) =
                    fallback.retracted_message_uuids.clone().filter(|uuids| !uuids.is_empty())
                {
                    self.events.push(Event::Retracted(uuids));
                }
                let text = fallback.content.clone().or_else(|| fallback.api_refusal_explanation.clone());
                (NoticeLevel::Warning, text.unwrap_or_default())
            }
            System::ModelRefusalNoFallback(refusal) => {
                let text = refusal.content.clone().filter(|text| !text.is_empty());
                let text = text.or_else(|| refusal.api_refusal_explanation.clone());
                (NoticeLevel::Warning, text.unwrap_or_else(|| "the model refused to answer".into()))
            }
            System::SessionWritesLost(lost) => {
                let text = format!("parts of the session could not be saved ({})", lost.error_code);
                (NoticeLevel::Error, text)
            }
            System::MirrorError(error) => (NoticeLevel::Warning, error.error.clone()),
            System::SessionStateChanged(changed) => {
                // A turn that ends without a result has ended all the same.
                if changed.state == SessionState::Idle && self.turn.init {
                    self.end_turn(None);
                }
                return self.other(Message::System(system));
            }
            _ => return self.other(Message::System(system)),
        };
        let notice = Notice { level, text, system: Some(system) };
        self.events.push(Event::Notice(Box::new(notice)));
        if let Some(model) = model {
            self.set_model(model);
        }
    }
}

fn level(word: Option<&str>) -> NoticeLevel {
    match word {
        Some("error") => NoticeLevel::Error,
        Some("warning" | "high" | "immediate") => NoticeLevel::Warning,
        _ => NoticeLevel::Info,
    }
}
