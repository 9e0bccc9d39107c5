//! Prompts of the past, as the user wrote them. The CLI writes other things in the user's name, too.

use oarlock_agent::reduce::{Prompt, PromptKind, Task};
use oarlock_agent::stream::{self, Content, OriginKind, Source, TaskStatus};
use oarlock_proto::acp::{ContentBlock, ContentChunk, EmbeddedResource, ResourceContents, SessionUpdate};

use super::result::{fenced, image, without_reminders};
use super::{Pass, Screen};

/// How the summary of a compaction begins.
const SUMMARY: &str = "This session is being continued from a previous conversation";

impl Screen {
    /// Something that was said to the model. Live, the client knows what its user said.
    pub(super) fn prompt(&mut self, prompt: &Prompt) {
        if self.pass == Pass::Live
            || prompt.parent_tool_use_id.is_some()
            || prompt.kind == PromptKind::Synthetic
        {
            return;
        }
        if self.awaits_summary() {
            let text = prompt.content.text();
            if text.starts_with(SUMMARY) {
                return self.compact(oarlock_agent::reduce::Compaction::Summary(text));
            }
            self.close_compaction();
        }
        match &prompt.content {
            Content::Text(text) => self.said(text, prompt),
            content => {
                for block in content.blocks() {
                    match block {
                        stream::ContentBlock::Text(block) => self.said(&block.text, prompt),
                        stream::ContentBlock::Image(block) => self.gave(image(&block.source), prompt),
                        stream::ContentBlock::Document(block) => {
                            let name = block.title.clone().unwrap_or_else(|| "document".into());
                            let text = match &block.source {
                                Source::Text(source) => fenced("", &source.data),
                                _ => format!("[{name}]"),
                            };
                            self.gave(Some(ContentBlock::text(text)), prompt);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// A text in the user's name.
    fn said(&mut self, text: &str, prompt: &Prompt) {
        let is_notification =
            prompt.origin.as_ref().is_some_and(|origin| origin.kind == OriginKind::TaskNotification);
        if is_notification || text.trim_start().starts_with("<task-notification>") {
            return self.notified(text);
        }
        if text.starts_with("<local-command-caveat>")
            || text.starts_with("Caveat: The messages below were generated")
        {
            return;
        }
        let output = tag(text, "local-command-stdout").or_else(|| tag(text, "local-command-stderr"));
        // A model that was chosen beside the conversation is in it all the same, as a command of the user's. One that was
        // typed has its output in another place.
        let switched = self.switched.take();
        if switched.is_some() && output.is_some_and(|output| output.starts_with("Set model to ")) {
            return;
        }
        self.switched = switched;
        self.show_switch();
        if let Some(name) = tag(text, "command-name") {
            let command = format!("{name} {}", tag(text, "command-args").unwrap_or_default());
            let content = ContentBlock::text(command.trim());
            if name == "/model" {
                let message_id = prompt.uuid.clone();
                self.switched = Some(ContentChunk { content, message_id, meta: None });
                return;
            }
            return self.gave(Some(content), prompt);
        }
        if let Some(output) = output {
            if !output.is_empty() && output != "(no content)" {
                self.queue.tell(output.to_owned(), None);
            }
            return;
        }
        if let Some(command) = tag(text, "bash-input") {
            return self.gave(Some(ContentBlock::text(format!("! {command}"))), prompt);
        }
        if text.starts_with("<bash-stdout>") {
            let output = [tag(text, "bash-stdout"), tag(text, "bash-stderr")];
            let output: Vec<_> = output.into_iter().flatten().filter(|output| !output.is_empty()).collect();
            return self.queue.tell(fenced("console", &output.join("\n")), None);
        }
        if let Some(resource) = resource(text) {
            return self.gave(Some(resource), prompt);
        }
        let text = without_reminders(text);
        if !text.trim().is_empty() && !text.starts_with("[Request interrupted by user") {
            self.gave(Some(ContentBlock::text(text)), prompt);
        }
    }

    /// Nobody but the user can have said it.
    pub(super) fn show_switch(&mut self) {
        if let Some(chunk) = self.switched.take() {
            self.queue.push(SessionUpdate::UserMessageChunk(chunk));
        }
    }

    /// A piece of a prompt.
    fn gave(&mut self, content: Option<ContentBlock>, prompt: &Prompt) {
        if let Some(content) = content {
            let message_id = prompt.uuid.clone();
            self.queue.push(SessionUpdate::UserMessageChunk(ContentChunk {
                content,
                message_id,
                meta: None,
            }));
        }
    }

    /// The CLI has told the model that a task in the background is over.
    fn notified(&mut self, text: &str) {
        let Some(id) = tag(text, "tool-use-id") else { return };
        let words = tag(text, "result").or_else(|| tag(text, "summary"));
        self.end_task(&Task {
            id: tag(text, "task-id").unwrap_or_default().into(),
            tool_use_id: Some(id.into()),
            kind: None,
            subagent_type: None,
            description: String::new(),
            prompt: None,
            is_background: true,
            status: TaskStatus::from(tag(text, "status").unwrap_or_default()),
            progress: None,
            last_tool_name: None,
            usage: None,
            summary: words.map(str::to_owned),
            output_file: None,
            error: None,
        });
    }
}

/// What is between a tag and its end.
fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.trim())
}

/// A resource that a prompt carried along.
fn resource(text: &str) -> Option<ContentBlock> {
    let rest = text.trim_start().strip_prefix("<context ref=\"")?;
    let (uri, rest) = rest.split_once("\">")?;
    let (content, _) = rest.rsplit_once("</context>")?;
    let content = content.strip_prefix('\n').unwrap_or(content);
    let content = content.strip_suffix('\n').unwrap_or(content);
    let resource =
        ResourceContents { uri: uri.into(), mime_type: None, text: Some(content.into()), blob: None };
    Some(ContentBlock::Resource(EmbeddedResource { resource }))
}
