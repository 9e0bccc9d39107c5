//! How to show a tool call: its kind, a title, the files it touches, what it changes in them.
//!
//! ```
//! use oarlock_agent::reduce::{ToolCall, view};
//! use oarlock_agent::stream::Json;
//! use serde_json::json;
//!
//! let input = json!({"file_path": "/w/src/main.rs", "old_string": "1", "new_string": "2"});
//! let call = ToolCall { name: "Edit".into(), input: Json::from(input), ..ToolCall::default() };
//! assert_eq!(view::kind(&call.name), view::ToolKind::Edit);
//! assert_eq!(view::title(&call, Some("/w")), "Edit src/main.rs");
//! assert_eq!(view::locations(&call)[0].path, "/w/src/main.rs");
//! assert_eq!(view::proposed(&call)[0].new_text, "2");
//! ```

mod diff;

pub use diff::*;

use super::{ToolCall, ToolResult};
use crate::stream::{AgentOutput, GrepInput, ReadOutput, ToolInput, ToolOutput, mcp_tool_name};

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads.
    Read,
    /// Changes or makes files.
    Edit,
    /// Takes files away.
    Delete,
    /// Moves files.
    Move,
    /// Searches.
    Search,
    /// Runs commands.
    Execute,
    /// Thinks, or lets others do so.
    Think,
    /// Gets something from elsewhere.
    Fetch,
    /// Changes the permission mode.
    SwitchMode,
    /// Something else.
    Other,
}

impl ToolKind {
    /// Its name, as the Agent Client Protocol has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }
}

/// What a tool does, by its name. An MCP tool may say more about itself elsewhere.
#[must_use]
pub fn kind(tool: &str) -> ToolKind {
    match tool {
        "Read" | "NotebookRead" | "BashOutput" | "TaskOutput" | "ReadMcpResourceTool" | "ReadMcpResource" => {
            ToolKind::Read
        }
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Glob" | "Grep" | "LS" | "ToolSearch" | "ListMcpResourcesTool" | "ListMcpResources" => {
            ToolKind::Search
        }
        "Bash" | "PowerShell" | "KillShell" | "KillBash" | "TaskStop" | "Monitor" => ToolKind::Execute,
        "Agent" | "Task" | "Workflow" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet"
        | "TaskList" | "ReportFindings" => ToolKind::Think,
        "WebFetch" | "WebSearch" | "web_search" | "web_fetch" => ToolKind::Fetch,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// A line that says what the call is about. Paths in `cwd` are shown from there.
#[must_use]
pub fn title(call: &ToolCall, cwd: Option<&str>) -> String {
    let path = |path: &str| short(path, cwd).to_owned();
    match call.typed_input() {
        ToolInput::Bash(input) => first_line(&input.command),
        ToolInput::Read(input) => {
            let lines = match (input.offset, input.limit) {
                (None, None) => String::new(),
                (from, None) => format!(" (from line {})", from.unwrap_or(1)),
                (from, Some(limit)) => {
                    let from = from.unwrap_or(1).max(1);
                    format!(" ({from} - {})", from.saturating_add(limit).saturating_sub(1))
                }
            };
            format!("Read {}{lines}", path(&input.file_path))
        }
        ToolInput::Edit(input) => format!("Edit {}", path(&input.file_path)),
        ToolInput::MultiEdit(input) => format!("Edit {}", path(&input.file_path)),
        ToolInput::Write(input) => format!("Write {}", path(&input.file_path)),
        ToolInput::NotebookEdit(input) => format!("Edit {}", path(&input.notebook_path)),
        ToolInput::Glob(input) => match &input.path {
            Some(folder) => format!("Find {} in {}", input.pattern, path(folder)),
            None => format!("Find {}", input.pattern),
        },
        ToolInput::Grep(input) => grep_title(&input, cwd),
        ToolInput::WebFetch(input) => format!("Fetch {}", input.url),
        ToolInput::WebSearch(input) => format!("Search \"{}\"", input.query),
        ToolInput::Agent(input) => input.description,
        ToolInput::TodoWrite(_) => "Update the list of things to do".into(),
        ToolInput::TaskCreate(input) => format!("Add to the list: {}", input.subject),
        ToolInput::TaskUpdate(_) | ToolInput::TaskGet(_) | ToolInput::TaskList(_) => {
            "Update the list of things to do".into()
        }
        ToolInput::EnterPlanMode(_) => "Plan first".into(),
        ToolInput::ExitPlanMode(_) => "Approve the plan".into(),
        ToolInput::AskUserQuestion(input) => {
            input.questions.first().map_or_else(|| call.name.clone(), |question| question.question.clone())
        }
        ToolInput::Skill(input) => format!("Use the skill {}", input.skill.unwrap_or_default()),
        ToolInput::ReportFindings(input) => format!("Report {} findings", input.findings.len()),
        ToolInput::TaskStop(input) => {
            format!("Stop {}", input.task_id.or(input.shell_id).unwrap_or_default())
        }
        ToolInput::TaskOutput(input) => {
            format!("Read the output of {}", input.task_id.or(input.bash_id).unwrap_or_default())
        }
        ToolInput::Monitor(input) => input.description,
        ToolInput::Mcp { server, tool, .. } => {
            let meta = call.meta.as_ref();
            let server = meta.and_then(|meta| meta.server_display_name.clone()).unwrap_or(server);
            let tool = meta.and_then(|meta| meta.display_name.clone()).unwrap_or(tool);
            format!("{server}: {tool}")
        }
        _ => call.name.clone(),
    }
}

fn grep_title(input: &GrepInput, cwd: Option<&str>) -> String {
    let mut title = String::from("grep");
    for (flag, is_set) in [("-i", input.ignore_case), ("-n", input.line_numbers), ("-U", input.multiline)] {
        if is_set == Some(true) {
            title += " ";
            title += flag;
        }
    }
    if let Some(glob) = &input.glob {
        title += &format!(" --include={glob}");
    }
    title += &format!(" \"{}\"", input.pattern);
    if let Some(path) = &input.path {
        title += " ";
        title += short(path, cwd);
    }
    title
}

fn first_line(text: &str) -> String {
    match text.trim().split_once('\n') {
        Some((line, _)) => format!("{} …", line.trim_end()),
        None => text.trim().into(),
    }
}

fn short<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let inside = cwd.filter(|cwd| !cwd.is_empty()).and_then(|cwd| path.strip_prefix(cwd));
    match inside.map(|rest| (rest, rest.trim_start_matches(['/', '\\']))) {
        // `/w` is no part of `/web/x`.
        Some((rest, name)) if rest.len() > name.len() && !name.is_empty() => name,
        _ => path,
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u64>,
}

/// The files that a call is about.
#[must_use]
pub fn locations(call: &ToolCall) -> Vec<Location> {
    let (path, line) = match call.typed_input() {
        ToolInput::Read(input) => (input.file_path, input.offset.map(|line| line.max(1))),
        ToolInput::Edit(input) => (input.file_path, None),
        ToolInput::MultiEdit(input) => (input.file_path, None),
        ToolInput::Write(input) => (input.file_path, None),
        ToolInput::NotebookEdit(input) => (input.notebook_path, None),
        ToolInput::Glob(input) if input.path.is_some() => (input.path.unwrap_or_default(), None),
        ToolInput::Grep(input) if input.path.is_some() => (input.path.unwrap_or_default(), None),
        ToolInput::ReportFindings(input) => {
            let places = input.findings.into_iter();
            return places.map(|finding| Location { path: finding.file, line: finding.line }).collect();
        }
        _ => return Vec::new(),
    };
    vec![Location { path, line }]
}

/// What a tool's answer says to people: what a file holds without line numbers, what a command wrote without the model's
/// wrapping.
#[must_use]
pub fn output_text(call: &ToolCall, result: &ToolResult) -> String {
    match result.typed_output(&call.name) {
        Some(ToolOutput::Bash(output)) if output.is_image != Some(true) => {
            let mut text = output.stdout.clone();
            if !output.stderr.is_empty() {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text += &output.stderr;
            }
            text
        }
        Some(ToolOutput::Read(ReadOutput::Text(read))) => read.file.content,
        Some(ToolOutput::WebFetch(output)) => output.result,
        Some(ToolOutput::Grep(output)) => match (&output.content, &output.filenames) {
            (Some(content), _) if !content.is_empty() => content.clone(),
            (_, Some(names)) => names.join("\n"),
            _ => result.text(),
        },
        Some(ToolOutput::Glob(output)) => output.filenames.join("\n"),
        _ => without_tags(&result.text()).into(),
    }
}

/// The file that a background command or subagent writes to, when its result tells. It can be read while the task runs.
#[must_use]
pub fn output_file(tool: &str, result: &ToolResult) -> Option<String> {
    match result.typed_output(tool)? {
        ToolOutput::Agent(AgentOutput::AsyncLaunched(launched)) => launched.output_file,
        ToolOutput::Bash(output) => {
            output.background_task_id?;
            // The data does not have it; the words that the model reads do.
            let text = result.text();
            let (_, rest) = text.split_once("Output is being written to: ")?;
            let (file, _) =
                rest.split_once(". You will").or_else(|| rest.split_once('\n')).unwrap_or((rest, ""));
            Some(file.trim().to_owned())
        }
        _ => None,
    }
}

/// The model reads refusals in tags that are not for people.
fn without_tags(text: &str) -> &str {
    let inner =
        text.trim().strip_prefix("<tool_use_error>").and_then(|text| text.strip_suffix("</tool_use_error>"));
    inner.unwrap_or(text)
}

/// Is it a tool of an MCP server?
#[must_use]
pub fn is_mcp(tool: &str) -> bool {
    mcp_tool_name(tool).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::stream::{ContentBlock, Json, ToolResultBlock, ToolUseMeta};

    fn call(name: &str, input: Value) -> ToolCall {
        ToolCall { name: name.into(), input: Json::from(input), ..ToolCall::default() }
    }

    #[test]
    fn titles_say_what_a_call_is_about() {
        for (name, input, want) in [
            ("Bash", json!({"command": "ls -l"}), "ls -l"),
            ("Bash", json!({"command": "set -e\nmake\n"}), "set -e …"),
            ("Read", json!({"file_path": "/w/a.rs"}), "Read a.rs"),
            ("Read", json!({"file_path": "/web/a.rs"}), "Read /web/a.rs"),
            ("Read", json!({"file_path": "/w"}), "Read /w"),
            ("Read", json!({"file_path": "/w/a.rs", "offset": 10, "limit": 5}), "Read a.rs (10 - 14)"),
            ("Read", json!({"file_path": "/w/a.rs", "limit": 5}), "Read a.rs (1 - 5)"),
            ("Read", json!({"file_path": "/w/a.rs", "offset": 3}), "Read a.rs (from line 3)"),
            ("Write", json!({"file_path": "/w/b/c", "content": ""}), "Write b/c"),
            ("Glob", json!({"pattern": "*.rs"}), "Find *.rs"),
            ("Glob", json!({"pattern": "*.rs", "path": "/w/src"}), "Find *.rs in src"),
            (
                "Grep",
                json!({"pattern": "fn", "-i": true, "glob": "*.rs", "path": "/w/src"}),
                "grep -i --include=*.rs \"fn\" src",
            ),
            ("WebSearch", json!({"query": "rust"}), "Search \"rust\""),
            ("Task", json!({"description": "look", "prompt": "p"}), "look"),
            ("mcp__calc__add", json!({}), "calc: add"),
            ("Brand New", json!({}), "Brand New"),
            ("Bash", json!({"command": 5}), "Bash"),
        ] {
            assert_eq!(title(&call(name, input), Some("/w")), want);
        }
        let mut named = call("mcp__calc__add", json!({}));
        named.meta = Some(ToolUseMeta {
            display_name: Some("Add".into()),
            server_display_name: Some("Calculator".into()),
            ..ToolUseMeta::default()
        });
        assert_eq!(title(&named, None), "Calculator: Add");
    }

    #[test]
    fn every_known_tool_has_a_kind() {
        assert_eq!(kind("Bash").as_str(), "execute");
        assert_eq!(kind("NotebookEdit").as_str(), "edit");
        assert_eq!(kind("ExitPlanMode").as_str(), "switch_mode");
        let other: Vec<_> = ToolInput::TOOLS.iter().filter(|tool| kind(tool) == ToolKind::Other).collect();
        let other: Vec<_> = other.into_iter().copied().collect();
        assert_eq!(
            other,
            [
                "AskUserQuestion",
                "EnterWorktree",
                "ExitWorktree",
                "Skill",
                "CronCreate",
                "CronDelete",
                "CronList",
                "ScheduleWakeup",
                "PushNotification"
            ]
        );
    }

    #[test]
    fn locations_have_lines_where_the_input_has() {
        let read = call("Read", json!({"file_path": "/w/a", "offset": 0}));
        assert_eq!(locations(&read), [Location { path: "/w/a".into(), line: Some(1) }]);
        assert_eq!(locations(&call("Glob", json!({"pattern": "*"}))), []);
        let report =
            json!({"findings": [{"file": "a", "line": 3, "summary": "s"}, {"file": "b", "summary": "s"}]});
        let lines: Vec<_> =
            locations(&call("ReportFindings", report)).into_iter().map(|place| place.line).collect();
        assert_eq!(lines, [Some(3), None]);
    }

    #[test]
    fn output_is_what_people_read() {
        let text = |name: &str, content: &str, output: Option<Value>| {
            let block = ToolResultBlock { content: Some(content.into()), ..ToolResultBlock::default() };
            let result = ToolResult {
                block: ContentBlock::ToolResult(block),
                output: output.map(Json::from),
                ..ToolResult::default()
            };
            output_text(&call(name, json!({})), &result)
        };
        let read = json!({"type": "text", "file": {"filePath": "/w/a", "content": "one\n"}});
        assert_eq!(text("Read", "1\tone\n2\t", Some(read)), "one\n");
        let bash = json!({"stdout": "out", "stderr": "err"});
        assert_eq!(text("Bash", "out\nerr", Some(bash)), "out\nerr");
        assert_eq!(text("Edit", "<tool_use_error>no such text</tool_use_error>", None), "no such text");
        assert_eq!(text("mcp__a__b", "plain", None), "plain");
    }

    #[test]
    fn a_background_commands_output_can_be_found() {
        let words = "Command running in background with ID: b1. Output is being written to: /tmp/x/b1.output. You will be notified.";
        let file = |tool: &str, output: Value| {
            let block = ToolResultBlock { content: Some(words.into()), ..ToolResultBlock::default() };
            let block = ContentBlock::ToolResult(block);
            output_file(
                tool,
                &ToolResult { block, output: Some(Json::from(output)), ..ToolResult::default() },
            )
        };
        let bash = json!({"stdout": "", "stderr": "", "backgroundTaskId": "b1"});
        assert_eq!(file("Bash", bash).as_deref(), Some("/tmp/x/b1.output"));
        assert_eq!(file("Bash", json!({"stdout": "", "stderr": ""})), None, "it ran in the foreground");
        let agent = json!({"status": "async_launched", "outputFile": "/tmp/x/a1.output"});
        assert_eq!(file("Task", agent).as_deref(), Some("/tmp/x/a1.output"));
    }
}
