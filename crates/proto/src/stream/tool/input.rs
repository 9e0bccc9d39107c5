//! What goes into the built-in tools.

use std::collections::BTreeMap;

use serde_json::Number;

use super::tools;
use crate::stream::macros::{record, word};
use crate::stream::{Json, PermissionMode};

tools! {
    /// The input of a tool, typed by the tool's name.
    ///
    /// ```
    /// use oarlock_proto::stream::{Json, ToolInput};
    /// use serde_json::json;
    ///
    /// match ToolInput::of("Bash", &Json::from(json!({"command": "ls"}))) {
    ///     ToolInput::Bash(input) => assert_eq!(input.command, "ls"),
    ///     other => panic!("{other:?}"),
    /// }
    /// // An input that the tool itself would refuse is not made to fit.
    /// assert!(matches!(ToolInput::of("Bash", &Json::from(json!({"command": 5}))), ToolInput::Other { .. }));
    /// ```
    pub enum ToolInput {
        /// Reads a file.
        "Read" => Read(ReadInput),
        /// Replaces text in a file.
        "Edit" => Edit(EditInput),
        /// Replaces several texts in a file.
        "MultiEdit" => MultiEdit(MultiEditInput),
        /// Writes a file.
        "Write" => Write(WriteInput),
        /// Changes a cell of a notebook.
        "NotebookEdit" => NotebookEdit(NotebookEditInput),
        /// Runs a command.
        "Bash" => Bash(BashInput),
        /// Reads what a background command has written.
        "BashOutput" | "TaskOutput" => TaskOutput(TaskOutputInput),
        /// Ends a background command or task.
        "TaskStop" | "KillShell" | "KillBash" => TaskStop(TaskStopInput),
        /// Finds files by content.
        "Grep" => Grep(GrepInput),
        /// Finds files by name.
        "Glob" => Glob(GlobInput),
        /// Starts a subagent.
        "Agent" | "Task" => Agent(Box<AgentInput>),
        /// Writes the list of things to do.
        "TodoWrite" => TodoWrite(TodoWriteInput),
        /// Puts a task on the list.
        "TaskCreate" => TaskCreate(TaskCreateInput),
        /// Reads a task.
        "TaskGet" => TaskGet(TaskGetInput),
        /// Changes a task.
        "TaskUpdate" => TaskUpdate(Box<TaskUpdateInput>),
        /// Lists the tasks.
        "TaskList" => TaskList(EmptyInput),
        /// Reads a page of the web.
        "WebFetch" => WebFetch(WebFetchInput),
        /// Searches the web.
        "WebSearch" => WebSearch(WebSearchInput),
        /// Asks the user.
        "AskUserQuestion" => AskUserQuestion(AskUserQuestionInput),
        /// Begins to plan.
        "EnterPlanMode" => EnterPlanMode(EmptyInput),
        /// Shows the plan, wants to begin.
        "ExitPlanMode" => ExitPlanMode(ExitPlanModeInput),
        /// Goes into a worktree.
        "EnterWorktree" => EnterWorktree(EnterWorktreeInput),
        /// Leaves it.
        "ExitWorktree" => ExitWorktree(ExitWorktreeInput),
        /// Uses a skill.
        "Skill" => Skill(SkillInput),
        /// Finds tools.
        "ToolSearch" => ToolSearch(ToolSearchInput),
        /// Watches a command or a socket.
        "Monitor" => Monitor(MonitorInput),
        /// Runs a workflow.
        "Workflow" => Workflow(Box<WorkflowInput>),
        /// A prompt that comes back at set times.
        "CronCreate" => CronCreate(CronCreateInput),
        /// No more of it.
        "CronDelete" => CronDelete(CronDeleteInput),
        /// All of them.
        "CronList" => CronList(EmptyInput),
        /// Wakes up later.
        "ScheduleWakeup" => ScheduleWakeup(ScheduleWakeupInput),
        /// Reports what a review found.
        "ReportFindings" => ReportFindings(ReportFindingsInput),
        /// Lists an MCP server's resources.
        "ListMcpResourcesTool" | "ListMcpResources" => ListMcpResources(ListMcpResourcesInput),
        /// Reads an MCP resource.
        "ReadMcpResourceTool" | "ReadMcpResource" => ReadMcpResource(ReadMcpResourceInput),
        /// Tells the user something.
        "PushNotification" => PushNotification(PushNotificationInput),
    }
    {
        /// An MCP tool: its arguments.
        Mcp {
            /// The server.
            server: String,
            /// The tool.
            tool: String,
            /// The arguments.
            arguments: Json,
        },
        /// The answer to a JSON schema.
        StructuredOutput(Json),
    }
}

impl ToolInput {
    /// Reads the input of a tool. What does not fit is [`Other`](Self::Other).
    #[must_use]
    pub fn of(tool: &str, input: &Json) -> Self {
        if tool == "StructuredOutput" {
            return Self::StructuredOutput(input.clone());
        }
        if let Some((server, tool)) = super::mcp_tool_name(tool) {
            return Self::Mcp { server: server.into(), tool: tool.into(), arguments: input.clone() };
        }
        Self::known(tool, input).unwrap_or_else(|| Self::Other { tool: tool.into(), value: input.clone() })
    }
}

record! {
    /// Nothing.
    pub struct EmptyInput {}

    /// Reads a file.
    pub struct ReadInput {
        file_path: String,
        /// The first line.
        offset: Option<u64>,
        /// How many lines.
        limit: Option<u64>,
        /// Of a PDF, `1-5`.
        pages: Option<String>,
        allow_large: Option<bool>,
    }

    /// Replaces text in a file.
    pub struct EditInput {
        file_path: String,
        /// Empty makes a new file.
        old_string: String,
        new_string: String,
        replace_all: Option<bool>,
    }

    /// Replaces several texts in a file (older CLIs).
    pub struct MultiEditInput {
        file_path: String,
        edits: Vec<EditStep>,
    }

    /// One of them.
    pub struct EditStep {
        old_string: String,
        new_string: String,
        replace_all: Option<bool>,
    }

    /// Writes a file.
    pub struct WriteInput {
        file_path: String,
        content: String,
    }

    /// Changes a cell of a notebook.
    pub struct NotebookEditInput {
        notebook_path: String,
        cell_id: Option<String>,
        new_source: String,
        cell_type: Option<String>,
        /// `replace`, `insert` or `delete`.
        edit_mode: Option<String>,
    }

    /// Runs a command.
    pub struct BashInput {
        command: String,
        /// Milliseconds.
        timeout: Option<Number>,
        description: Option<String>,
        run_in_background: Option<bool>,
        dangerously_disable_sandbox = "dangerouslyDisableSandbox": Option<bool>,
    }

    /// Reads what a background command has written.
    pub struct TaskOutputInput {
        task_id: Option<String>,
        bash_id: Option<String>,
        filter: Option<String>,
        block: Option<bool>,
        timeout: Option<Number>,
    }

    /// Ends a background command or task.
    pub struct TaskStopInput {
        task_id: Option<String>,
        /// Its name in older CLIs.
        shell_id: Option<String>,
    }

    /// Finds files by content.
    pub struct GrepInput {
        pattern: String,
        path: Option<String>,
        glob: Option<String>,
        output_mode: Option<String>,
        before = "-B": Option<u64>,
        after = "-A": Option<u64>,
        around = "-C": Option<u64>,
        context: Option<u64>,
        line_numbers = "-n": Option<bool>,
        ignore_case = "-i": Option<bool>,
        only_matching = "-o": Option<bool>,
        file_type = "type": Option<String>,
        head_limit: Option<u64>,
        offset: Option<u64>,
        multiline: Option<bool>,
    }

    /// Finds files by name.
    pub struct GlobInput {
        pattern: String,
        path: Option<String>,
    }

    /// Starts a subagent. From 2.1.325 on it runs in the background unless told otherwise.
    pub struct AgentInput {
        description: String,
        prompt: String,
        subagent_type: Option<String>,
        model: Option<String>,
        effort: Option<String>,
        run_in_background: Option<bool>,
        name: Option<String>,
        team_name: Option<String>,
        mode: Option<PermissionMode>,
        isolation: Option<String>,
    }

    /// Writes the list of things to do.
    pub struct TodoWriteInput {
        todos: Vec<Todo>,
    }

    /// A thing to do.
    pub struct Todo {
        content: String,
        status: TodoStatus,
        active_form = "activeForm": Option<String>,
    }

    /// Puts a task on the list.
    pub struct TaskCreateInput {
        subject: String,
        description: String,
        active_form = "activeForm": Option<String>,
        metadata: Option<Json>,
    }

    /// Reads a task.
    pub struct TaskGetInput {
        task_id = "taskId": String,
    }

    /// Changes a task.
    pub struct TaskUpdateInput {
        task_id = "taskId": String,
        subject: Option<String>,
        description: Option<String>,
        active_form = "activeForm": Option<String>,
        status: Option<TodoStatus>,
        add_blocks = "addBlocks": Option<Vec<String>>,
        add_blocked_by = "addBlockedBy": Option<Vec<String>>,
        owner: Option<String>,
        metadata: Option<Json>,
    }

    /// Reads a page of the web.
    pub struct WebFetchInput {
        url: String,
        prompt: String,
        offset: Option<u64>,
    }

    /// Searches the web.
    pub struct WebSearchInput {
        query: String,
        allowed_domains: Option<Vec<String>>,
        blocked_domains: Option<Vec<String>>,
    }

    /// Asks the user. A host allows the tool with the `answers` filled in.
    pub struct AskUserQuestionInput {
        questions: Vec<Question>,
        /// By the question's text: the option's label, or free text.
        answers: Option<BTreeMap<String, String>>,
        annotations: Option<Json>,
        metadata: Option<Json>,
    }

    /// A question.
    pub struct Question {
        question: String,
        header: Option<String>,
        options: Vec<QuestionOption>,
        multi_select = "multiSelect": Option<bool>,
    }

    /// A possible answer.
    pub struct QuestionOption {
        label: String,
        description: Option<String>,
        preview: Option<String>,
    }

    /// Shows the plan, wants to begin.
    pub struct ExitPlanModeInput {
        /// The CLI fills it in from the plan's file.
        plan: Option<String>,
        plan_file_path = "planFilePath": Option<String>,
        allowed_prompts = "allowedPrompts": Option<Vec<AllowedPrompt>>,
    }

    /// A command that the plan needs.
    pub struct AllowedPrompt {
        tool: String,
        prompt: String,
    }

    /// Goes into a worktree.
    pub struct EnterWorktreeInput {
        name: Option<String>,
        path: Option<String>,
    }

    /// Leaves it.
    pub struct ExitWorktreeInput {
        /// `keep` or `remove`.
        action: String,
        discard_changes: Option<bool>,
    }

    /// Uses a skill.
    pub struct SkillInput {
        skill: Option<String>,
        args: Option<String>,
    }

    /// Finds tools.
    pub struct ToolSearchInput {
        query: String,
        max_results: Option<u64>,
    }

    /// Watches a command or a socket.
    pub struct MonitorInput {
        description: String,
        timeout_ms: Option<Number>,
        command: Option<String>,
        ws: Option<Json>,
    }

    /// Runs a workflow.
    pub struct WorkflowInput {
        script: Option<String>,
        name: Option<String>,
        description: Option<String>,
        title: Option<String>,
        args: Option<Json>,
        script_path = "scriptPath": Option<String>,
        resume_from_run_id = "resumeFromRunId": Option<String>,
    }

    /// A prompt that comes back at set times.
    pub struct CronCreateInput {
        cron: String,
        prompt: String,
        recurring: Option<bool>,
        durable: Option<bool>,
    }

    /// No more of it.
    pub struct CronDeleteInput {
        id: String,
    }

    /// Wakes up later.
    pub struct ScheduleWakeupInput {
        delay_seconds = "delaySeconds": Option<Number>,
        reason: Option<String>,
        prompt: Option<String>,
        stop: Option<bool>,
        noop: Option<bool>,
    }

    /// Reports what a review found.
    pub struct ReportFindingsInput {
        level: Option<String>,
        findings: Vec<Finding>,
    }

    /// One thing that a review found.
    pub struct Finding {
        file: String,
        line: Option<u64>,
        summary: String,
        short_summary: Option<String>,
        failure_scenario: Option<String>,
        category: Option<String>,
        verdict: Option<String>,
        outcome: Option<String>,
    }

    /// Lists an MCP server's resources; none is all servers.
    pub struct ListMcpResourcesInput {
        server: Option<String>,
    }

    /// Reads an MCP resource.
    pub struct ReadMcpResourceInput {
        server: String,
        uri: String,
    }

    /// Tells the user something.
    pub struct PushNotificationInput {
        message: String,
        status: Option<String>,
    }
}

word! {
    /// How far a thing to do is.
    pub enum TodoStatus {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// No longer wanted.
        Deleted = "deleted",
    }
}
