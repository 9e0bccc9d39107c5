//! A tool call's life: announced, called, at work, over.
//!
//! A call is told when its input begins (live) or is whole, once more when the input is whole, and when it is over. A call that
//! goes on in the background is over when its task is.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use oarlock_agent::reduce::{self, MessageHead, Task, TaskChange, view};
use oarlock_agent::stream::{AgentOutput, ContentBlock, TaskStatus, ToolInput, ToolOutput};
use oarlock_proto::acp::{
    Meta, PlanText, PlanUpdate, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
};
use serde_json::{Value, json};

use super::command::{self, Shown};
use super::queue::claude_code;
use super::{Screen, diff};

/// A call that is not over.
#[derive(Debug)]
pub(super) struct Call {
    /// The call, under the name of the tool that it is like.
    pub(super) tool: Arc<reduce::ToolCall>,
    pub(super) status: ToolCallStatus,
    /// What the client was shown of it, when the input was whole.
    face: u64,
    /// What its content was then.
    pub(super) content: u64,
    /// What the client has seen of a command's output.
    pub(super) shown: Shown,
    /// Its result was that it goes on.
    is_background: bool,
    /// It is a task, or was one.
    task: Option<Arc<Task>>,
    /// What its subagent said last.
    report: Option<String>,
}

/// How a call ends.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) failed: bool,
    /// What it shows from now on; nothing when that does not change.
    pub(super) content: Option<Vec<ToolCallContent>>,
    pub(super) locations: Option<Vec<ToolCallLocation>>,
    pub(super) meta: Option<Meta>,
}

/// The name of the tool that a tool is like.
fn known_name(name: &str) -> &str {
    if name == "PowerShell" { "Bash" } else { name }
}

/// The call, under that name.
fn known(call: &Arc<reduce::ToolCall>) -> Arc<reduce::ToolCall> {
    match known_name(&call.name) {
        name if name == call.name => call.clone(),
        name => Arc::new(reduce::ToolCall { name: name.into(), ..(**call).clone() }),
    }
}

/// What tells two values apart, without keeping them.
pub(super) fn fingerprint(value: &impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(value).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

impl Screen {
    /// Is nothing to be seen of it? The tools that keep the list of things to do are shown as a plan.
    fn is_hidden(&self, call: &reduce::ToolCall) -> bool {
        let is_plan =
            matches!(call.name.as_str(), "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList");
        is_plan || self.abandoned.contains(&call.id)
    }

    /// A tool will be called; its input is still being written.
    pub(super) fn announce(&mut self, call: &Arc<reduce::ToolCall>) {
        if self.is_hidden(call) || self.calls.contains_key(&call.id) {
            return;
        }
        let tool = known(call);
        let title = if command::is_command(&tool) { "Terminal".to_owned() } else { view::title(&tool, None) };
        let content = command::terminal(&self.client, &tool).map(|terminal| vec![terminal]);
        let print = fingerprint(&content);
        let update = ToolCall { title: Some(title), content, ..self.begun(call) };
        self.queue.call(update);
        self.calls.insert(call.id.clone(), Call { content: print, ..Call::new(tool) });
    }

    /// A tool is called, or what was said of a call is otherwise.
    pub(super) fn call(&mut self, call: &Arc<reduce::ToolCall>) {
        if self.is_hidden(call) {
            return;
        }
        let tool = known(call);
        let mut face = self.face(&tool);
        let (print, content) = (fingerprint(&face), fingerprint(&face.content));
        match self.calls.entry(call.id.clone()) {
            Entry::Occupied(entry) if entry.get().face == print => return,
            Entry::Vacant(entry) => {
                entry.insert(Call { face: print, content, ..Call::new(tool.clone()) });
                let ToolCall { title, content, locations, raw_input, .. } = face;
                let update = ToolCall { title, content, locations, raw_input, ..self.begun(call) };
                self.queue.call(update);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                if known.content == content {
                    face.content = None;
                }
                (known.tool, known.face, known.content) = (tool.clone(), print, content);
                self.queue.update(face);
            }
        }
        if let ToolInput::ExitPlanMode(input) = tool.typed_input()
            && let Some(content) = input.plan.filter(|_| self.client.plan.0)
        {
            let plan = PlanText { plan_id: call.id.clone(), content };
            self.queue.push(SessionUpdate::PlanUpdate(PlanUpdate { plan }));
        }
    }

    /// What is known of a call from the beginning.
    fn begun(&self, call: &reduce::ToolCall) -> ToolCall {
        let mut about = json!({ "toolName": call.name });
        if let Some(parent) = &call.parent_tool_use_id {
            about["parentToolUseId"] = parent.as_str().into();
        }
        let mut meta = claude_code(about);
        if known_name(&call.name) == "Bash" && command::has_terminals(&self.client) {
            meta.insert("terminal_info".into(), json!({ "terminal_id": call.id, "cwd": self.cwd }));
        }
        ToolCall {
            tool_call_id: call.id.clone(),
            name: Some(call.name.clone()),
            kind: Some(view::kind(known_name(&call.name)).as_str()),
            status: Some(ToolCallStatus::Pending),
            meta: Some(meta),
            ..ToolCall::default()
        }
    }

    /// A call was allowed by the user: it runs.
    pub(crate) fn allowed(&mut self, tool_use_id: &str) {
        self.runs(tool_use_id, None);
    }

    pub(super) fn progress(&mut self, id: &str, elapsed: f64) {
        let Some(call) = self.calls.get(id) else { return };
        let mut about = json!({ "toolName": call.tool.name, "elapsedTimeSeconds": elapsed });
        if let Some(parent) = &call.tool.parent_tool_use_id {
            about["parentToolUseId"] = parent.as_str().into();
        }
        self.runs(id, Some(claude_code(about)));
    }

    /// A call is at work.
    fn runs(&mut self, id: &str, meta: Option<Meta>) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let is_news = call.status < ToolCallStatus::InProgress;
        if is_news || meta.is_some() {
            call.status = ToolCallStatus::InProgress;
            let meta = meta.or_else(|| call.meta());
            let status = is_news.then_some(ToolCallStatus::InProgress);
            self.queue.update(ToolCall { tool_call_id: id.into(), status, meta, ..ToolCall::default() });
        }
    }

    /// What a tool answered.
    pub(super) fn result(&mut self, result: &reduce::ToolResult) {
        let Some(call) = self.calls.get_mut(&result.id) else { return };
        if call.goes_on(result) {
            call.is_background = true;
            let over = call.task.clone().filter(|task| task.is_over());
            self.runs(&result.id, None);
            self.went_on(result);
            if let Some(task) = over {
                self.end_task(&task);
            }
            return;
        }
        let Some(call) = self.calls.remove(&result.id) else { return };
        if command::is_command(&call.tool) {
            return self.command_ended(call, result);
        }
        let end = if result.is_error() { self.failure(&call, result) } else { self.success(&call, result) };
        self.end(&call, end);
    }

    /// A call that never gets a result.
    pub(super) fn cancelled(&mut self, id: &str) {
        let Some(call) = self.calls.remove(id) else { return };
        if command::is_command(&call.tool) {
            return self.command_over(&call, true, None);
        }
        let diffs = diff::snippets(&call.tool, &self.cwd);
        let locations = (!diffs.is_empty()).then(|| self.locations(&call.tool, None));
        let content = Some(diffs).filter(|diffs| !diffs.is_empty());
        self.end(&call, End { failed: true, content, locations, ..End::default() });
    }

    /// No more is shown of the calls that are open: they have failed, as far as the client is concerned.
    pub(crate) fn abandon(&mut self) {
        let mut open: Vec<_> = self.calls.keys().cloned().collect();
        open.sort_unstable();
        for id in open {
            self.cancelled(&id);
            self.abandoned.insert(id);
        }
        self.close_compaction();
        self.show_switch();
    }

    pub(super) fn end(&mut self, call: &Call, end: End) {
        let status = if end.failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let meta = match (call.meta(), end.meta) {
            (Some(mut meta), Some(more)) => {
                if let (Some(Value::Object(all)), Some(Value::Object(more))) =
                    (meta.get_mut("claudeCode"), more.get("claudeCode"))
                {
                    all.extend(more.clone());
                }
                meta.extend(more.into_iter().filter(|(key, _)| key != "claudeCode"));
                Some(meta)
            }
            (meta, more) => more.or(meta),
        };
        self.queue.update(ToolCall {
            tool_call_id: call.tool.id.clone(),
            status: Some(status),
            content: end.content,
            locations: end.locations,
            meta,
            ..ToolCall::default()
        });
    }

    /// News about a task: its call is at work, and in the background it is over when the task is.
    pub(super) fn task(&mut self, change: TaskChange, task: &Arc<Task>) {
        let Some(id) = &task.tool_use_id else { return };
        let Some(call) = self.calls.get_mut(id) else { return };
        call.task = Some(task.clone());
        match change {
            TaskChange::Ended if call.is_background => self.end_task(task),
            TaskChange::Ended => {}
            _ => self.runs(id, None),
        }
    }

    /// A subagent has said something.
    pub(super) fn reported(&mut self, message: &MessageHead, content: ContentBlock) {
        let call = message.parent_tool_use_id.as_ref().and_then(|id| self.calls.get_mut(id));
        if let (Some(call), ContentBlock::Text(block)) = (call, content) {
            call.report = Some(block.text);
        }
    }

    /// The task of a call in the background is over.
    pub(super) fn end_task(&mut self, task: &Task) {
        let Some(call) = task.tool_use_id.as_ref().and_then(|id| self.calls.remove(id)) else { return };
        let failed = task.status != TaskStatus::Completed;
        if command::is_command(&call.tool) {
            let code = command::exit_code(task.summary.as_deref()).or((!failed).then_some(0));
            return self.command_over(&call, failed, code);
        }
        // What a subagent said last is its report. The CLI's own summary may be no more than that there is one.
        let texts = [&call.report, &task.summary, &task.error];
        let text = texts.into_iter().flatten().find(|text| !text.trim().is_empty()).cloned();
        let content = text.map(|text| vec![ToolCallContent::text(text)]);
        self.end(&call, End { failed, content, ..End::default() });
    }
}

impl Call {
    fn new(tool: Arc<reduce::ToolCall>) -> Self {
        Self {
            tool,
            status: ToolCallStatus::Pending,
            face: 0,
            content: 0,
            shown: Shown::default(),
            is_background: false,
            task: None,
            report: None,
        }
    }

    /// What an update of a subagent's call says about it.
    pub(super) fn meta(&self) -> Option<Meta> {
        let parent = self.tool.parent_tool_use_id.as_deref()?;
        Some(claude_code(json!({ "parentToolUseId": parent })))
    }

    /// Does a result say that the work goes on in the background?
    fn goes_on(&self, result: &reduce::ToolResult) -> bool {
        if result.is_error() {
            return false;
        }
        match result.typed_output(&self.tool.name) {
            Some(ToolOutput::Bash(output)) => output.background_task_id.is_some(),
            Some(ToolOutput::Agent(AgentOutput::AsyncLaunched(_) | AgentOutput::RemoteLaunched(_))) => true,
            Some(ToolOutput::Workflow(_) | ToolOutput::Monitor(_)) => self.task.is_some(),
            // A subagent's result has no data, but the same words.
            None if command::is_command(&self.tool) => {
                result.text().starts_with("Command running in background")
            }
            _ => false,
        }
    }
}
