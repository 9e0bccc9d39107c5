//! What a call shows when its input is whole: a title, places, content.

use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::{Finding, Question, ToolInput};
use oarlock_proto::acp::{ToolCall, ToolCallContent, ToolCallLocation};

use super::{Screen, command, diff};

impl Screen {
    /// What a call shows. What is in its title or content is not repeated as raw input.
    pub(super) fn face(&self, call: &reduce::ToolCall) -> ToolCall {
        let input = call.typed_input();
        let text = |text: String| Some(vec![ToolCallContent::text(text)]);
        let (mut line, mut raw_input) = (None, None);
        let content = match input {
            ToolInput::Bash(input) => match command::terminal(&self.client, call) {
                Some(terminal) => Some(vec![terminal]),
                None => input.description.filter(|words| !words.is_empty()).and_then(text),
            },
            ToolInput::Edit(_)
            | ToolInput::MultiEdit(_)
            | ToolInput::Write(_)
            | ToolInput::NotebookEdit(_) => {
                let change = diff::proposed(call, &self.cwd, self.pass);
                line = change.line;
                Some(change.content)
            }
            ToolInput::Agent(input) => text(input.prompt),
            ToolInput::WebFetch(input) => text(input.prompt),
            ToolInput::ExitPlanMode(input) => input.plan.filter(|plan| !plan.is_empty()).and_then(text),
            ToolInput::AskUserQuestion(input) => text(questions(&input.questions)),
            ToolInput::ReportFindings(input) => text(findings(&input.findings)),
            ToolInput::Monitor(input) => {
                input.command.map(|command| command::console(&command)).map(|it| vec![it])
            }
            ToolInput::Read(_)
            | ToolInput::Glob(_)
            | ToolInput::Grep(_)
            | ToolInput::WebSearch(_)
            | ToolInput::EnterPlanMode(_)
            | ToolInput::TaskStop(_)
            | ToolInput::TaskOutput(_) => None,
            ToolInput::Skill(ref input) if input.args.is_none() => None,
            _ => {
                raw_input = Some(call.input.clone()).filter(|input| !matches!(input.text(), "null" | "{}"));
                None
            }
        };
        let locations = self.locations(call, line);
        ToolCall {
            tool_call_id: call.id.clone(),
            title: Some(self.title(call)),
            content: content.filter(|content| !is_empty(content)),
            locations: Some(locations).filter(|locations| !locations.is_empty()),
            raw_input,
            ..ToolCall::default()
        }
    }

    fn title(&self, call: &reduce::ToolCall) -> String {
        let title = match call.typed_input() {
            // A client shows it as the terminal's headline, or asks whether it may run: nothing of it may be missing.
            ToolInput::Bash(input) => input.command.trim().to_owned(),
            _ => view::title(call, Some(&self.cwd)),
        };
        if title.trim().is_empty() { call.name.clone() } else { title }
    }

    /// The files that a call is about.
    pub(super) fn locations(&self, call: &reduce::ToolCall, line: Option<u64>) -> Vec<ToolCallLocation> {
        let places = view::locations(call).into_iter();
        places
            .filter(|place| !place.path.is_empty())
            .map(|place| ToolCallLocation {
                path: absolute(&place.path, &self.cwd),
                line: place.line.or(line).filter(|line| *line > 0),
            })
            .collect()
    }
}

fn is_empty(content: &[ToolCallContent]) -> bool {
    content.is_empty() || content == [ToolCallContent::text("")]
}

/// A path of the protocol's: they are all absolute.
pub(super) fn absolute(path: &str, cwd: &str) -> String {
    let is_absolute =
        path.starts_with(['/', '\\']) || path.as_bytes().get(1) == Some(&b':') || cwd.is_empty();
    if is_absolute { path.to_owned() } else { format!("{}/{path}", cwd.trim_end_matches('/')) }
}

fn questions(questions: &[Question]) -> String {
    let mut text = String::new();
    for question in questions {
        if questions.len() > 1 {
            text += &format!("**{}**\n", question.question);
        }
        for option in &question.options {
            text += &format!("- {}", option.label);
            if let Some(description) = option.description.as_ref().filter(|words| !words.is_empty()) {
                text += &format!(": {description}");
            }
            text.push('\n');
        }
    }
    text
}

fn findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
        text += &format!("- `{}{line}` {}\n", finding.file, finding.summary);
        if let Some(scenario) = &finding.failure_scenario {
            text += &format!("  {scenario}\n");
        }
    }
    text
}
