//! The list of things to do, from the tools that keep it.

use super::{Event, PlanEntry, Reducer, ToolCall, ToolResult};
use crate::stream::{TaskItem, Todo, TodoStatus, ToolInput, ToolOutput};

impl Reducer {
    /// A tool that keeps the list has answered. What it refused or failed to do changes nothing.
    pub(super) fn plan_from(&mut self, call: &ToolCall, result: &ToolResult) {
        let keeps =
            matches!(call.name.as_str(), "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet");
        if !keeps || result.is_error() {
            return;
        }
        let mut plan = self.state.plan.clone();
        match (call.typed_input(), result.typed_output(&call.name)) {
            (_, Some(ToolOutput::TodoWrite(output))) => {
                plan = output.new_todos.into_iter().map(todo).collect()
            }
            (ToolInput::TodoWrite(input), _) => plan = input.todos.into_iter().map(todo).collect(),
            (ToolInput::TaskCreate(input), Some(ToolOutput::TaskCreate(output))) => {
                let id = Some(output.task.id.clone());
                put(&mut plan, output.task);
                if let Some(entry) = plan.iter_mut().find(|entry| entry.id == id) {
                    entry.active_form = input.active_form;
                }
            }
            (ToolInput::TaskUpdate(input), output) => {
                if matches!(output, Some(ToolOutput::TaskUpdate(output)) if !output.success) {
                    return;
                }
                if input.status == Some(TodoStatus::Deleted) {
                    plan.retain(|entry| entry.id.as_ref() != Some(&input.task_id));
                } else if let Some(entry) =
                    plan.iter_mut().find(|entry| entry.id.as_ref() == Some(&input.task_id))
                {
                    entry.content = input.subject.unwrap_or(std::mem::take(&mut entry.content));
                    entry.active_form = input.active_form.or(entry.active_form.take());
                    entry.status = input.status.unwrap_or(entry.status.clone());
                }
            }
            (_, Some(ToolOutput::TaskList(output))) => {
                let listed: Vec<_> = output.tasks.iter().map(|task| task.id.clone()).collect();
                plan.retain(|entry| entry.id.as_ref().is_some_and(|id| listed.contains(id)));
                output.tasks.into_iter().for_each(|task| put(&mut plan, task));
            }
            (_, Some(ToolOutput::TaskGet(output))) => {
                output.task.into_iter().for_each(|task| put(&mut plan, task));
            }
            _ => return,
        }
        self.set_plan(plan);
    }

    pub(super) fn set_plan(&mut self, plan: Vec<PlanEntry>) {
        if self.state.plan != plan {
            self.state.plan.clone_from(&plan);
            self.events.push(Event::Plan(plan));
        }
    }
}

fn todo(Todo { content, status, active_form, .. }: Todo) -> PlanEntry {
    PlanEntry { id: None, content, active_form, status }
}

/// Puts a task into its place. Tasks that are created at once may be told in any order.
fn put(plan: &mut Vec<PlanEntry>, task: TaskItem) {
    let status = task.status;
    if let Some(entry) = plan.iter_mut().find(|entry| entry.id.as_ref() == Some(&task.id)) {
        entry.content = task.subject;
        entry.status = status.unwrap_or(entry.status.clone());
        return;
    }
    // A list of the other tool's has no ids, and gives way.
    plan.retain(|entry| entry.id.is_some());
    let place = plan.partition_point(|entry| number(entry.id.as_deref()) <= number(Some(&task.id)));
    let status = status.unwrap_or(TodoStatus::Pending);
    plan.insert(place, PlanEntry { id: Some(task.id), content: task.subject, active_form: None, status });
}

fn number(id: Option<&str>) -> u64 {
    id.and_then(|id| id.parse().ok()).unwrap_or(u64::MAX)
}
