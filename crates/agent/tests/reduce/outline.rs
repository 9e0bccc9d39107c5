//! Events in a line each.

use oarlock_agent::reduce::{
    Block, Body, Compaction, Conversation, Event, Hook, MessageHead, State, ToolCall,
};
use oarlock_agent::stream::ContentBlock;

/// An event in a line. Ids are cut to their ends, which differ.
pub(crate) fn event(event: &Event) -> String {
    let parent = event.parent_tool_use_id().map(|id| format!(" in {}", tail(id))).unwrap_or_default();
    let line = match event {
        Event::TurnStarted => "turn started".into(),
        Event::TurnEnded(end) => {
            let how = end.result.as_ref().map(|result| {
                let reason =
                    result.terminal_reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
                let origin =
                    end.origin().map(|origin| format!(" origin {}", origin.kind)).unwrap_or_default();
                let usage = end.usage().map(|usage| (usage.input_tokens, usage.output_tokens));
                let tokens = match usage {
                    Some((Some(input), Some(output))) => format!(" {input}+{output} tokens"),
                    _ => String::new(),
                };
                let error = if result.is_error { " error" } else { "" };
                format!("{}{error}{reason}{origin}{tokens}", result.subtype)
            });
            let models: Vec<_> = (end.model_usage.iter())
                .map(|(model, usage)| format!("{model} {}+{}", usage.input_tokens, usage.output_tokens))
                .collect();
            format!(
                "turn ended: {} ${} {models:?} answers {:?}{}",
                how.as_deref().unwrap_or("without a result"),
                end.cost_usd,
                end.answers.iter().map(|uuid| tail(uuid)).collect::<Vec<_>>(),
                if end.spoke { "" } else { " silent" }
            )
        }
        Event::Init(init) => format!("init {}", init.claude_code_version),
        Event::SessionChanged { session_id, previous } => {
            format!("session {} before {:?}", tail(session_id), previous.as_deref().map(tail))
        }
        Event::ModelChanged(model) => format!("model {model}"),
        Event::ModeChanged(mode) => format!("mode {mode}"),
        Event::TitleChanged(title) => format!("title {title:?}"),
        Event::ConversationReset(reset) => format!("reset {:?}", reset.trigger),
        Event::Commands(commands) => format!("commands {}", commands.len()),
        Event::Activity(activity) => {
            format!("activity {}", activity.as_ref().map_or("none", |it| it.as_str()))
        }
        Event::Text { message, block, text } => format!("text {} {text:?}", place(message, *block)),
        Event::Thinking { message, block, text } => format!("thinking {} {text:?}", place(message, *block)),
        Event::ThinkingTokens(tokens) => format!("thinking tokens {tokens}"),
        Event::BlockFinished { message, block, content, uuid } => format!(
            "finished {} {}{}",
            place(message, *block),
            content.tag(),
            uuid.as_deref().map(|uuid| format!(" as {}", tail(uuid))).unwrap_or_default()
        ),
        Event::BlockAbandoned { message, block } => format!("abandoned {}", place(message, *block)),
        Event::Retracted(uuids) => format!("retracted {uuids:?}"),
        Event::MessageFinished(end) => format!(
            "message {} finished: {} {}+{} tokens",
            tail(&end.message.id),
            end.stop_reason.as_ref().map_or("stopped", |reason| reason.as_str()),
            end.usage.input_tokens.unwrap_or_default(),
            end.usage.output_tokens.unwrap_or_default()
        ),
        Event::ToolAnnounced(call) => format!("announced {}", tool(call)),
        Event::ToolInput { call, json } => format!("input of {} {json:?}", tail(&call.id)),
        Event::ToolCall(call) => format!("call {} {}", tool(call), cut(call.input.text())),
        Event::ToolProgress { id, call, elapsed } => {
            format!("progress {} {} {elapsed} s", tail(id), if call.is_some() { "known" } else { "unknown" })
        }
        Event::PermissionDenied { call, denied } => format!(
            "denied {} {} {:?}",
            tail(&denied.tool_use_id),
            if call.is_some() { "known" } else { "unknown" },
            denied.decision_reason_type
        ),
        Event::ToolResult { call, result } => format!(
            "result {} {}{}{} {:?}",
            tail(&result.id),
            call.as_ref().map_or("unknown", |call| &call.name),
            if result.is_error() { " error" } else { "" },
            if result.output.is_some() { " with data" } else { "" },
            cut(&result.text())
        ),
        Event::ToolCancelled(call) => format!("cancelled {}", tool(call)),
        Event::Permission(permission) => format!(
            "may {} run? {} suggestions {}",
            tool(&permission.call),
            permission.request.permission_suggestions.as_ref().map_or(0, Vec::len),
            tail(&permission.request_id)
        ),
        Event::Elicitation { request, .. } => format!("elicitation {:?}", request.message),
        Event::Dialog { request, .. } => format!("dialog {}", request.dialog_kind),
        Event::QuestionWithdrawn { request_id } => format!("withdrawn {}", tail(request_id)),
        Event::Task { change, task } => format!(
            "task {} {change:?}: {}{}{}{}",
            tail(&task.id),
            task.status,
            if task.is_background { " background" } else { "" },
            task.tool_use_id.as_deref().map(|id| format!(" of {}", tail(id))).unwrap_or_default(),
            task.summary.as_deref().map(|text| format!(" {:?}", cut(text))).unwrap_or_default()
        ),
        Event::BackgroundTasks(tasks) => format!("background tasks {}", tasks.len()),
        Event::Plan(plan) => {
            let entries: Vec<_> =
                plan.iter().map(|entry| format!("{} {}", entry.content, entry.status)).collect();
            format!("plan {entries:?}")
        }
        Event::Prompt(prompt) => format!("prompt {:?} {:?}", prompt.kind, cut(&prompt.content.text())),
        Event::Interrupted { .. } => "interrupted".into(),
        Event::MessageState { uuid, state } => format!("user message {} {state}", tail(uuid)),
        Event::CommandOutput(text) => format!("command output {:?}", cut(text)),
        Event::ApiFailed(failure) => format!("API failed: {} {:?}", failure.error, cut(&failure.text)),
        Event::Retry(retry) => format!("retry {} of {}", retry.attempt, retry.max_retries),
        Event::Notice(notice) => format!("notice {:?} {:?}", notice.level, cut(&notice.text)),
        Event::Compaction(Compaction::Summary(text)) => format!("compaction summary {:?}", cut(text)),
        Event::Compaction(Compaction::Boundary(_)) => "compaction boundary".into(),
        Event::Compaction(compaction) => format!("compaction {compaction:?}"),
        Event::Hook(hook) => match &**hook {
            Hook::Started(hook) => format!("hook {} started", hook.hook_name),
            Hook::Ended(hook) => format!("hook {} ended: {}", hook.hook_name, hook.outcome),
            other => format!("hook {other:?}"),
        },
        Event::RateLimit(limit) => format!("rate limit {}", limit.status),
        Event::Other(message) => {
            format!("other {}", cut(&serde_json::to_string(message).expect("plain data")))
        }
        _ => panic!("an event without an outline: {event:?}"),
    };
    line + &parent
}

/// What is open, in a line.
pub(crate) fn state(state: &State) -> String {
    format!(
        "open: {:?}, calls {:?}, tasks {:?}, questions {:?}, queued {:?}; {} turns ${:.6}",
        state.phase(),
        state.calls.keys().map(|id| tail(id)).collect::<Vec<_>>(),
        state.tasks.keys().map(|id| tail(id)).collect::<Vec<_>>(),
        state.questions.keys().map(|id| tail(id)).collect::<Vec<_>>(),
        state.queued.iter().map(|id| tail(id)).collect::<Vec<_>>(),
        state.totals.turns,
        state.totals.cost_usd
    )
}

/// A conversation, a line for each block.
pub(crate) fn conversation(conversation: &Conversation) -> Vec<String> {
    let mut lines = Vec::new();
    for turn in &conversation.turns {
        lines.push(format!(
            "turn of {} prompts{}",
            turn.prompts.len(),
            if turn.interrupted { ", interrupted" } else { "" }
        ));
        blocks(conversation, &turn.blocks, 1, &mut lines);
    }
    lines
}

fn blocks(conversation: &Conversation, blocks_of: &[Block], depth: usize, lines: &mut Vec<String>) {
    for block in blocks_of {
        let text = match &block.body {
            Body::Text(text) => format!("text {:?}", cut(&text.text)),
            Body::Thinking(thinking) => {
                format!("thinking {:?} signed {:?}", cut(&thinking.thinking), thinking.signature)
            }
            Body::ToolCall(id) => {
                let call = &conversation.calls[id];
                let end = match &call.result {
                    Some(result) if result.is_error() => "failed",
                    Some(_) => "done",
                    None if call.cancelled => "cancelled",
                    None => "open",
                };
                let task =
                    call.task.as_ref().map(|task| format!(", task {}", task.status)).unwrap_or_default();
                format!("{} {end}{task}", call.call.name)
            }
            Body::CommandOutput(text) => format!("output {:?}", cut(text)),
            Body::ApiFailed(failure) => format!("failure {}", failure.error),
            Body::Other(content) => content.tag().to_owned(),
            other => panic!("a body without an outline: {other:?}"),
        };
        lines.push("  ".repeat(depth) + &text);
        if let Body::ToolCall(id) = &block.body {
            blocks(conversation, &conversation.calls[id].blocks, depth + 1, lines);
        }
    }
}

fn place(message: &MessageHead, block: u32) -> String {
    format!("{}.{block}", tail(&message.id))
}

fn tool(call: &ToolCall) -> String {
    let place = match (&call.message, call.block) {
        (Some(message), Some(block)) => place(message, block),
        _ => "nowhere".into(),
    };
    format!("{} {} at {place}", call.name, tail(&call.id))
}

fn tail(id: &str) -> &str {
    let start = id.char_indices().rev().nth(4).map_or(0, |(at, _)| at);
    &id[start..]
}

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// Blocks that carry nothing of their own once they are finished have no events but that.
pub(crate) fn is_text(content: &ContentBlock) -> bool {
    matches!(content, ContentBlock::Text(_) | ContentBlock::Thinking(_))
}
