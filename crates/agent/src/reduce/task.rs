//! Tasks: subagents and shell commands, in the foreground and in the background.

use std::sync::Arc;

use super::{Event, Reducer, Task, TaskChange};
use crate::stream::{
    BackgroundTasksChanged, TaskNotification, TaskProgress, TaskStarted, TaskStatus, TaskUpdated,
};

impl Reducer {
    pub(super) fn on_task_started(&mut self, started: TaskStarted) {
        let task = Arc::new(Task {
            id: started.task_id,
            tool_use_id: started.tool_use_id,
            kind: started.task_type,
            subagent_type: started.subagent_type,
            description: started.description,
            prompt: started.prompt,
            is_background: started.is_backgrounded == Some(true),
            status: TaskStatus::Running,
            progress: None,
            last_tool_name: None,
            usage: None,
            summary: None,
            output_file: None,
            error: None,
        });
        self.state.tasks.insert(task.id.clone(), task.clone());
        self.events.push(Event::Task { change: TaskChange::Started, task });
    }

    pub(super) fn on_task_progress(&mut self, progress: TaskProgress) {
        let TaskProgress { task_id, description, subagent_type, usage, last_tool_name, summary, .. } =
            progress;
        self.change_task(&task_id, progress.tool_use_id, |task| {
            task.subagent_type = subagent_type.or(task.subagent_type.take());
            task.usage = usage.or(task.usage.take());
            task.last_tool_name = last_tool_name.or(task.last_tool_name.take());
            task.progress = summary.or(description).or(task.progress.take());
            TaskChange::Progressed
        });
    }

    pub(super) fn on_task_updated(&mut self, TaskUpdated { task_id, patch, .. }: TaskUpdated) {
        self.change_task(&task_id, None, |task| {
            task.status = patch.status.unwrap_or(task.status.clone());
            task.description = patch.description.unwrap_or(std::mem::take(&mut task.description));
            task.is_background = patch.is_backgrounded.unwrap_or(task.is_background);
            task.error = patch.error.or(task.error.take());
            TaskChange::Updated
        });
    }

    pub(super) fn on_task_notification(&mut self, notification: TaskNotification) {
        let TaskNotification { task_id, status, output_file, summary, usage, .. } = notification;
        self.change_task(&task_id, notification.tool_use_id, |task| {
            task.status = status;
            task.output_file = output_file.filter(|file| !file.is_empty()).or(task.output_file.take());
            task.summary = summary;
            task.usage = usage.or(task.usage.take());
            if task.is_over() { TaskChange::Ended } else { TaskChange::Updated }
        });
    }

    pub(super) fn on_background_tasks(
        &mut self,
        BackgroundTasksChanged { tasks, .. }: BackgroundTasksChanged,
    ) {
        for task in &tasks {
            if let Some(known) = self.state.tasks.get_mut(&task.task_id).filter(|task| !task.is_background) {
                Arc::make_mut(known).is_background = true;
                self.events.push(Event::Task { change: TaskChange::Updated, task: known.clone() });
            }
        }
        self.end_tasks(|task| task.is_background && !tasks.iter().any(|listed| listed.task_id == task.id));
        self.events.push(Event::BackgroundTasks(tasks));
    }

    /// These tasks are over. Calls that their subagents left open stay so until the next turn begins or ends, because
    /// the results of what was stopped come last.
    pub(super) fn end_tasks(&mut self, over: impl Fn(&Task) -> bool) {
        let events = &mut self.events;
        self.state.tasks.retain(|_, task| {
            let over = over(task);
            if over {
                events.push(Event::Task { change: TaskChange::Ended, task: task.clone() });
            }
            !over
        });
    }

    /// Changes a task and says so. One that is not known (any more) is not put into the table: it may be over.
    fn change_task(&mut self, id: &str, call: Option<String>, change: impl FnOnce(&mut Task) -> TaskChange) {
        let known = self.state.tasks.get_mut(id);
        let (is_known, mut unknown) = (known.is_some(), Arc::new(empty(id)));
        let task = known.unwrap_or(&mut unknown);
        let inner = Arc::make_mut(task);
        inner.tool_use_id = call.or(inner.tool_use_id.take());
        let change = change(inner);
        let task = task.clone();
        if is_known && change == TaskChange::Ended {
            self.state.tasks.remove(id);
        }
        self.events.push(Event::Task { change, task });
    }
}

fn empty(id: &str) -> Task {
    Task {
        id: id.into(),
        tool_use_id: None,
        kind: None,
        subagent_type: None,
        description: String::new(),
        prompt: None,
        is_background: false,
        status: TaskStatus::Running,
        progress: None,
        last_tool_name: None,
        usage: None,
        summary: None,
        output_file: None,
        error: None,
    }
}
