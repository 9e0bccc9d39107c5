//! What a call shows when it is over.

use std::borrow::Cow;

use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::{
    self, AgentOutput, AskUserQuestionOutput, Content, ReadOutput, Source, ToolInput, ToolOutput,
    WebSearchOutput,
};
use oarlock_proto::acp::{self, ContentBlock, ImageContent, ResourceLink, ToolCallContent};
use serde_json::{Value, json};

use super::call::{Call, End, fingerprint};
use super::queue::claude_code;
use super::{Screen, diff};

impl Screen {
    /// What a tool that has done its work shows.
    pub(super) fn success(&self, call: &Call, result: &reduce::ToolResult) -> End {
        let tool = &call.tool;
        let content = match tool.name.as_str() {
            "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => {
                let Some(change) = diff::applied(tool, result, &self.cwd, self.pass) else {
                    return End::default();
                };
                if fingerprint(&Some(&change.content)) == call.content {
                    return End::default();
                }
                let locations = change.line.map(|_| self.locations(tool, change.line));
                return End { content: Some(change.content), locations, ..End::default() };
            }
            "EnterPlanMode" | "Skill" | "ReportFindings" => Vec::new(),
            _ => content(tool, result),
        };
        let content = Some(content).filter(|content| !content.is_empty());
        // What was shown already is not shown again.
        let content = content.filter(|content| fingerprint(&Some(content)) != call.content);
        End { content, ..End::default() }
    }

    /// What a tool that failed, or was refused, shows.
    pub(super) fn failure(&self, call: &Call, result: &reduce::ToolResult) -> End {
        // A transcript does not know what was on the disk then: both passes end with what the input says.
        let mut content = diff::snippets(&call.tool, &self.cwd);
        let locations = (!content.is_empty()).then(|| self.locations(&call.tool, None));
        if let ToolInput::ExitPlanMode(input) = call.tool.typed_input() {
            // A plan that is refused is still the one to talk about.
            content.extend(input.plan.map(ToolCallContent::text));
        }
        let text = result.text();
        let words = refusal(&text);
        match &words {
            Some(words) => content.push(ToolCallContent::text(words.clone())),
            None => {
                let text = view::output_text(&call.tool, result);
                let text = without_reminders(&text);
                if !text.trim().is_empty() {
                    content.push(ToolCallContent::text(fenced("", &text)));
                }
            }
        }
        let kind = result.meta.as_ref().and_then(|meta| meta.non_execution_kind.clone());
        let meta = kind.map(|kind| claude_code(json!({ "nonExecutionKind": kind })));
        let content = Some(content).filter(|content| !content.is_empty());
        End { failed: true, content, locations, meta }
    }
}

/// What a tool's answer is for people.
fn content(tool: &reduce::ToolCall, result: &reduce::ToolResult) -> Vec<ToolCallContent> {
    let text = |text: &str| vec![ToolCallContent::text(text)];
    match result.typed_output(&tool.name) {
        Some(ToolOutput::Read(ReadOutput::Text(read))) => {
            vec![ToolCallContent::text(fenced("", &read.file.content))]
        }
        Some(ToolOutput::Agent(AgentOutput::Completed(done))) => blocks(&done.content),
        Some(ToolOutput::AskUserQuestion(output)) => text(&answers(&output)),
        Some(ToolOutput::WebSearch(output)) => text(&hits(&output)),
        Some(ToolOutput::WebFetch(output)) => text(&output.result),
        Some(ToolOutput::ExitPlanMode(output)) => {
            output.plan.filter(|plan| !plan.is_empty()).map(|plan| text(&plan)).unwrap_or_default()
        }
        _ if matches!(tool.name.as_str(), "Glob" | "Grep" | "ExitPlanMode" | "AskUserQuestion") => {
            let words = view::output_text(tool, result);
            let words = without_reminders(&words);
            if tool.name == "ExitPlanMode" || words.trim().is_empty() {
                return Vec::new();
            }
            text(&fenced("", &words))
        }
        _ => {
            let block = match &result.block {
                stream::ContentBlock::ToolResult(block) | stream::ContentBlock::McpToolResult(block) => block,
                stream::ContentBlock::WebSearchToolResult(block) => {
                    return text(hits_in(&block.content.value()).trim_end());
                }
                _ => return Vec::new(),
            };
            match &block.content {
                Some(Content::Text(words)) if tool.name == "Read" => text(&fenced("", &unnumbered(words))),
                Some(Content::Text(words)) => {
                    let words = without_reminders(words);
                    if words.trim().is_empty() { Vec::new() } else { text(&words) }
                }
                Some(content) => blocks(content.blocks()),
                None => Vec::new(),
            }
        }
    }
}

/// The blocks of a result that people can look at.
fn blocks(blocks: &[stream::ContentBlock]) -> Vec<ToolCallContent> {
    blocks
        .iter()
        .filter_map(block)
        .map(|content| ToolCallContent::Content(acp::Content { content }))
        .collect()
}

fn block(block: &stream::ContentBlock) -> Option<ContentBlock> {
    match block {
        stream::ContentBlock::Text(block) => {
            let text = without_reminders(&block.text);
            // How to go on with a subagent is the model's business.
            let is_frame = text.starts_with("agentId: ") || text.starts_with("<usage>");
            (!is_frame && !text.trim().is_empty()).then(|| ContentBlock::text(text))
        }
        stream::ContentBlock::Image(block) => image(&block.source),
        stream::ContentBlock::ResourceLink(link) => Some(ContentBlock::ResourceLink(ResourceLink {
            uri: link.uri.clone(),
            name: link.name.clone(),
            title: link.title.clone(),
            description: link.description.clone(),
            mime_type: link.mime_type.clone(),
            size: link.size,
        })),
        _ => None,
    }
}

/// A picture.
pub(super) fn image(source: &Source) -> Option<ContentBlock> {
    let image = match source {
        Source::Base64(source) => {
            ImageContent { data: source.data.clone(), mime_type: source.media_type.clone(), uri: None }
        }
        Source::Url(source) => {
            ImageContent { data: String::new(), mime_type: "image/*".into(), uri: Some(source.url.clone()) }
        }
        _ => return None,
    };
    Some(ContentBlock::Image(image))
}

/// The pictures of a result.
pub(super) fn images(result: &reduce::ToolResult) -> Vec<ToolCallContent> {
    let stream::ContentBlock::ToolResult(block) = &result.block else { return Vec::new() };
    let pictures = block.content.iter().flat_map(Content::blocks).filter_map(|block| match block {
        stream::ContentBlock::Image(block) => image(&block.source),
        _ => None,
    });
    pictures.map(|content| ToolCallContent::Content(acp::Content { content })).collect()
}

/// Why a call was not made, when the user did not want it. The CLI's words are for the model.
pub(super) fn refusal(text: &str) -> Option<String> {
    let text = text.trim();
    if text.starts_with("[Request interrupted by user") {
        return Some("Interrupted.".into());
    }
    let is_refusal = text.starts_with("The user doesn't want to proceed with this tool use")
        || text.starts_with("The user doesn't want to take this action right now");
    if !is_refusal {
        return None;
    }
    // What the user said about it comes last.
    let said = text.split_once("the user said:").map(|(_, said)| said.trim()).filter(|said| !said.is_empty());
    Some(
        said.map_or_else(
            || "Rejected by the user.".to_owned(),
            |said| format!("Rejected by the user: {said}"),
        ),
    )
}

/// Text that is shown as it is written. The fence is longer than any in the text.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// The text without what the CLI tells the model besides.
pub(super) fn without_reminders(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    if !text.contains(OPEN) {
        return Cow::Borrowed(text);
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((_, after)) = after.split_once(CLOSE) else { break };
        kept.push_str(before.trim_end_matches('\n'));
        rest = after;
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// What a file holds, from the numbered lines that the model reads.
fn unnumbered(text: &str) -> String {
    let text = without_reminders(text);
    let number = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit());
        let has_number = rest.len() < line.trim_start().len();
        rest.strip_prefix(['\t', '→']).filter(|_| has_number).map(str::to_owned)
    };
    let lines: Option<Vec<_>> = text.lines().map(number).collect();
    lines.map_or_else(|| text.clone().into_owned(), |lines| lines.join("\n"))
}

fn answers(output: &AskUserQuestionOutput) -> String {
    let mut text = String::new();
    for (question, answer) in &output.answers {
        text += &format!("**{question}** {answer}\n\n");
    }
    if let Some(response) = &output.response {
        text += response;
    }
    text.trim_end().to_owned()
}

fn hits(output: &WebSearchOutput) -> String {
    let mut text = String::new();
    for result in &output.results {
        let value = result.value();
        if let Some(words) = value.as_str() {
            text += words;
            text += "\n\n";
        }
        text += &hits_in(&value["content"]);
    }
    text.trim_end().to_owned()
}

fn hits_in(list: &Value) -> String {
    let word = |hit: &Value, key: &str| hit[key].as_str().unwrap_or_default().to_owned();
    let hits = list.as_array().into_iter().flatten();
    hits.map(|hit| format!("- {} ({})\n", word(hit, "title"), word(hit, "url"))).collect()
}
