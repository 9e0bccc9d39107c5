//! What is said to the model: tools' results, prompts, marks.

use std::sync::Arc;

use super::message::result_id;
use super::view::output_file;
use super::{Compaction, Event, Prompt, PromptKind, Reducer, TaskChange, ToolResult};
use crate::stream::{AgentOutput, Content, ContentBlock, Json, ToolOutput, User};

impl Reducer {
    pub(super) fn on_user(&mut self, mut user: Box<User>) {
        let is_replay = user.is_replay == Some(true);
        if let Content::Blocks(blocks) = &mut user.message.content {
            let (results, rest) = std::mem::take(blocks)
                .into_iter()
                .partition(|block| matches!(block, ContentBlock::ToolResult(_)));
            *blocks = rest;
            self.on_tool_results(&mut user, results);
        }
        if is_replay && let Some(output) = local_output(&user.message.content) {
            return self.command_output(output);
        }
        if user.message.content.blocks().is_empty() && matches!(user.message.content, Content::Blocks(_)) {
            // It was all results.
            return;
        }
        if !is_replay && is_interrupt_mark(&user.message.content) {
            let parent_tool_use_id = user.parent_tool_use_id;
            return self.events.push(Event::Interrupted { parent_tool_use_id });
        }
        let kind = match (is_replay, user.is_synthetic == Some(true), &user.parent_tool_use_id) {
            (true, ..) => PromptKind::Replay,
            (_, true, _) => PromptKind::Synthetic,
            (.., Some(_)) => PromptKind::Subagent,
            _ => PromptKind::Other,
        };
        if kind == PromptKind::Synthetic && std::mem::take(&mut self.compacted) {
            return self.events.push(Event::Compaction(Compaction::Summary(user.message.content.text())));
        }
        if kind == PromptKind::Replay {
            // The CLI repeats a message when it reads it, which can be just before the turn begins.
            self.start_turn();
            if let Some(uuid) = &user.uuid {
                self.turn_answers(uuid);
            }
        }
        let User { message, uuid, parent_tool_use_id, origin, refused_message_id, .. } = *user;
        let content = message.content;
        let prompt = Prompt { kind, content, uuid, parent_tool_use_id, origin, refused_message_id };
        self.events.push(Event::Prompt(Box::new(prompt)));
    }

    fn on_tool_results(&mut self, user: &mut User, results: Vec<ContentBlock>) {
        for block in results {
            let id = result_id(&block).to_owned();
            let meta = user.tool_result_meta.iter().flatten().find(|meta| meta.id == id).cloned();
            self.on_tool_result(ToolResult {
                id,
                block,
                // There is one result a message, and this is its data.
                output: user.tool_use_result.take(),
                meta,
                parent_tool_use_id: user.parent_tool_use_id.clone(),
                uuid: user.uuid.clone(),
            });
        }
    }

    pub(super) fn on_tool_result(&mut self, result: ToolResult) {
        let call = self.state.calls.remove(&result.id).map(|open| open.call);
        if call.as_ref().is_none_or(|call| call.message.is_none()) {
            self.early.insert(result.id.clone());
        }
        self.withdraw_questions(|question| question.tool_use_id.as_ref() == Some(&result.id));
        let result = Arc::new(result);
        self.events.push(Event::ToolResult { call: call.clone(), result: result.clone() });
        if let Some(call) = call {
            self.note_task_result(&call.name, &result);
            if call.parent_tool_use_id.is_none() {
                self.plan_from(&call, &result);
            }
        }
    }

    /// A task whose call has its result is over soon, unless the result says that it goes on in the background.
    fn note_task_result(&mut self, tool: &str, result: &ToolResult) {
        let mut tasks = self.state.tasks.values_mut();
        let task = tasks.find(|task| task.tool_use_id.as_ref() == Some(&result.id) && !task.is_background);
        let (Some(task), Some(output)) = (task, &result.output) else { return };
        if goes_on(tool, output) {
            let task_now = Arc::make_mut(task);
            task_now.is_background = true;
            task_now.output_file = output_file(tool, result);
            self.events.push(Event::Task { change: TaskChange::Updated, task: task.clone() });
        } else {
            self.answered_tasks.insert(task.id.clone());
        }
    }
}

fn goes_on(tool: &str, output: &Json) -> bool {
    match ToolOutput::of(tool, output) {
        ToolOutput::Agent(AgentOutput::AsyncLaunched(_) | AgentOutput::RemoteLaunched(_)) => true,
        ToolOutput::Bash(output) => output.background_task_id.is_some(),
        // What it is not known to be, it may be.
        ToolOutput::Other { .. } => true,
        _ => false,
    }
}

/// What a slash command or a changed setting wrote, which comes as a replay.
fn local_output(content: &Content) -> Option<String> {
    let Content::Text(text) = content else { return None };
    ["stdout", "stderr"].iter().find_map(|stream| {
        let text = text.trim().strip_prefix(&format!("<local-command-{stream}>"))?;
        Some(text.strip_suffix(&format!("</local-command-{stream}>"))?.trim().to_owned())
    })
}

fn is_interrupt_mark(content: &Content) -> bool {
    let text = match content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => match blocks.as_slice() {
            [ContentBlock::Text(block)] => &block.text,
            _ => return false,
        },
        _ => return false,
    };
    text.starts_with("[Request interrupted by user") && text.ends_with(']')
}
