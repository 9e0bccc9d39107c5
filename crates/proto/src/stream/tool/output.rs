//! What comes out of the built-in tools.

use std::collections::BTreeMap;

use serde_json::Number;

use super::input::{Finding, Question, Todo, TodoStatus};
use super::tools;
use crate::stream::macros::{record, tagged};
use crate::stream::{ContentBlock, Json, Usage};

tools! {
    /// The output of a tool as data (`tool_use_result`, `tool_response`), typed by the tool's name.
    ///
    /// ```
    /// use oarlock_proto::stream::{Json, ToolOutput};
    /// use serde_json::json;
    ///
    /// let value = Json::from(json!({"stdout": "a\n", "stderr": "", "interrupted": false, "isImage": false}));
    /// let ToolOutput::Bash(output) = ToolOutput::of("Bash", &value) else { panic!("known") };
    /// assert_eq!(output.stdout, "a\n");
    /// let failed = ToolOutput::of("Bash", &Json::from(json!("Error: Exit code 1")));
    /// assert_eq!(failed, ToolOutput::Text("Error: Exit code 1".into()));
    /// ```
    pub enum ToolOutput {
        /// What was read.
        "Read" => Read(ReadOutput),
        /// What was replaced.
        "Edit" | "MultiEdit" => Edit(Box<EditOutput>),
        /// What was written.
        "Write" => Write(Box<WriteOutput>),
        /// What was changed.
        "NotebookEdit" => NotebookEdit(Box<NotebookEditOutput>),
        /// What the command wrote.
        "Bash" => Bash(Box<BashOutput>),
        /// What was ended.
        "TaskStop" | "KillShell" | "KillBash" => TaskStop(TaskStopOutput),
        /// What was found.
        "Grep" => Grep(Box<GrepOutput>),
        /// What was found.
        "Glob" => Glob(GlobOutput),
        /// What the subagent did, or that it was started.
        "Agent" | "Task" => Agent(AgentOutput),
        /// The list before and after.
        "TodoWrite" => TodoWrite(TodoWriteOutput),
        /// The new task.
        "TaskCreate" => TaskCreate(TaskCreateOutput),
        /// The task.
        "TaskGet" => TaskGet(TaskGetOutput),
        /// What was changed.
        "TaskUpdate" => TaskUpdate(TaskUpdateOutput),
        /// The tasks.
        "TaskList" => TaskList(TaskListOutput),
        /// The page.
        "WebFetch" => WebFetch(WebFetchOutput),
        /// The hits.
        "WebSearch" => WebSearch(WebSearchOutput),
        /// The answers.
        "AskUserQuestion" => AskUserQuestion(AskUserQuestionOutput),
        /// The model plans.
        "EnterPlanMode" => EnterPlanMode(MessageOutput),
        /// The plan.
        "ExitPlanMode" => ExitPlanMode(ExitPlanModeOutput),
        /// The worktree.
        "EnterWorktree" => EnterWorktree(EnterWorktreeOutput),
        /// The worktree that was left.
        "ExitWorktree" => ExitWorktree(Box<ExitWorktreeOutput>),
        /// What watches.
        "Monitor" => Monitor(MonitorOutput),
        /// What was started.
        "Workflow" => Workflow(Box<WorkflowOutput>),
        /// The prompt that comes back.
        "CronCreate" => CronCreate(CronCreateOutput),
        /// The one that is gone.
        "CronDelete" => CronDelete(CronDeleteOutput),
        /// All of them.
        "CronList" => CronList(CronListOutput),
        /// When it wakes up.
        "ScheduleWakeup" => ScheduleWakeup(ScheduleWakeupOutput),
        /// What was reported.
        "ReportFindings" => ReportFindings(ReportFindingsOutput),
        /// The resource.
        "ReadMcpResourceTool" | "ReadMcpResource" => ReadMcpResource(ReadMcpResourceOutput),
        /// Was it told?
        "PushNotification" => PushNotification(PushNotificationOutput),
    }
    {
        /// An MCP tool's answer.
        Mcp(McpOutput),
        /// A failure, or what else a tool says in words.
        Text(String),
    }
}

impl ToolOutput {
    /// Reads the output of a tool. What does not fit is [`Other`](Self::Other).
    #[must_use]
    pub fn of(tool: &str, output: &Json) -> Self {
        if let Some(text) = output.as_string() {
            return Self::Text(text);
        }
        let mcp = super::mcp_tool_name(tool).and_then(|_| output.read().ok()).map(Self::Mcp);
        mcp.or_else(|| Self::known(tool, output))
            .unwrap_or_else(|| Self::Other { tool: tool.into(), value: output.clone() })
    }
}

tagged! {
    /// What was read.
    pub enum ReadOutput by "type" {
        /// Text.
        "text" => Text(ReadText),
        /// A picture.
        "image" => Image(ReadImage),
        /// A notebook.
        "notebook" => Notebook(ReadNotebook),
        /// A PDF.
        "pdf" => Pdf(ReadPdf),
        /// Pages of a PDF.
        "parts" => Parts(ReadParts),
    }
}

tagged! {
    /// What the subagent did, or that it was started.
    pub enum AgentOutput by "status" {
        /// It is done.
        "completed" => Completed(Box<AgentCompleted>),
        /// It runs in the background.
        "async_launched" => AsyncLaunched(Box<AgentLaunched>),
        /// It runs elsewhere.
        "remote_launched" => RemoteLaunched(Box<AgentLaunched>),
    }
}

record! {
    /// Text of a file.
    pub struct ReadText { file: TextFile }

    /// Lines of a text file.
    pub struct TextFile {
        file_path = "filePath": String,
        content: String,
        num_lines = "numLines": Option<u64>,
        start_line = "startLine": Option<u64>,
        total_lines = "totalLines": Option<u64>,
        truncated_by_token_cap = "truncatedByTokenCap": Option<bool>,
    }

    /// A picture.
    pub struct ReadImage { file: ImageFile }

    /// A picture's bytes.
    pub struct ImageFile {
        base64: String,
        media_type = "type": String,
        original_size = "originalSize": Option<u64>,
        dimensions: Option<Json>,
    }

    /// A notebook.
    pub struct ReadNotebook { file: NotebookFile }

    /// A notebook's cells.
    pub struct NotebookFile {
        file_path = "filePath": String,
        cells: Vec<Json>,
    }

    /// A PDF.
    pub struct ReadPdf { file: PdfFile }

    /// A PDF's bytes.
    pub struct PdfFile {
        file_path = "filePath": String,
        base64: String,
        original_size = "originalSize": Option<u64>,
    }

    /// Pages of a PDF.
    pub struct ReadParts {
        file: PartsFile,
        first_page = "firstPage": Option<u64>,
        pages: Option<Vec<Json>>,
    }

    /// Where the pages are.
    pub struct PartsFile {
        file_path = "filePath": String,
        original_size = "originalSize": Option<u64>,
        count: Option<u64>,
        output_dir = "outputDir": Option<String>,
    }

    /// What was replaced.
    pub struct EditOutput {
        file_path = "filePath": String,
        old_string = "oldString": Option<String>,
        new_string = "newString": Option<String>,
        original_file = "originalFile": Option<String>,
        structured_patch = "structuredPatch": Option<Vec<Hunk>>,
        user_modified = "userModified": Option<bool>,
        replace_all = "replaceAll": Option<bool>,
        git_diff = "gitDiff": Option<Json>,
        staged: Option<bool>,
    }

    /// What was written.
    pub struct WriteOutput {
        /// `create` or `update`.
        kind = "type": String,
        file_path = "filePath": String,
        content: String,
        structured_patch = "structuredPatch": Option<Vec<Hunk>>,
        original_file = "originalFile": Option<String>,
        user_modified = "userModified": Option<bool>,
        git_diff = "gitDiff": Option<Json>,
        staged: Option<bool>,
    }

    /// Lines that have changed.
    pub struct Hunk {
        old_start = "oldStart": u64,
        old_lines = "oldLines": u64,
        new_start = "newStart": u64,
        new_lines = "newLines": u64,
        /// Each begins with a blank, `+` or `-`.
        lines: Vec<String>,
    }

    /// What was changed in a notebook.
    pub struct NotebookEditOutput {
        notebook_path: String,
        new_source: Option<String>,
        old_source: Option<String>,
        cell_id: Option<String>,
        cell_type: Option<String>,
        language: Option<String>,
        edit_mode: Option<String>,
        error: Option<String>,
        original_file: Option<String>,
        updated_file: Option<String>,
    }

    /// What the command wrote.
    pub struct BashOutput {
        stdout: String,
        stderr: String,
        interrupted: Option<bool>,
        is_image = "isImage": Option<bool>,
        no_output_expected = "noOutputExpected": Option<bool>,
        background_task_id = "backgroundTaskId": Option<String>,
        backgrounded_by_user = "backgroundedByUser": Option<bool>,
        timed_out_after_ms = "timedOutAfterMs": Option<Number>,
        dangerously_disable_sandbox = "dangerouslyDisableSandbox": Option<bool>,
        return_code_interpretation = "returnCodeInterpretation": Option<String>,
        structured_content = "structuredContent": Option<Vec<Json>>,
        raw_output_path = "rawOutputPath": Option<String>,
        /// The whole output, when it is too long.
        persisted_output_path = "persistedOutputPath": Option<String>,
        persisted_output_size = "persistedOutputSize": Option<u64>,
        git_operation = "gitOperation": Option<Json>,
    }

    /// What was ended.
    pub struct TaskStopOutput {
        message: String,
        task_id: Option<String>,
        task_type: Option<String>,
        command: Option<String>,
    }

    /// What was found by content.
    pub struct GrepOutput {
        mode: Option<String>,
        num_files = "numFiles": Option<u64>,
        filenames: Option<Vec<String>>,
        content: Option<String>,
        num_lines = "numLines": Option<u64>,
        num_matches = "numMatches": Option<u64>,
        total_files = "totalFiles": Option<u64>,
        total_lines = "totalLines": Option<u64>,
        applied_limit = "appliedLimit": Option<u64>,
        applied_offset = "appliedOffset": Option<u64>,
        timed_out = "timedOut": Option<bool>,
    }

    /// What was found by name.
    pub struct GlobOutput {
        filenames: Vec<String>,
        num_files = "numFiles": Option<u64>,
        truncated: Option<bool>,
        duration_ms = "durationMs": Option<Number>,
        total_matches = "totalMatches": Option<u64>,
        count_is_complete = "countIsComplete": Option<bool>,
        timed_out = "timedOut": Option<bool>,
    }

    /// What the subagent did.
    pub struct AgentCompleted {
        agent_id = "agentId": String,
        agent_type = "agentType": Option<String>,
        prompt: Option<String>,
        content: Vec<ContentBlock>,
        resolved_model = "resolvedModel": Option<String>,
        models_used = "modelsUsed": Option<Vec<String>>,
        total_tool_use_count = "totalToolUseCount": Option<u64>,
        total_duration_ms = "totalDurationMs": Option<Number>,
        total_tokens = "totalTokens": Option<u64>,
        usage: Option<Usage>,
        tools_used = "toolsUsed": Option<Vec<String>>,
        tool_stats = "toolStats": Option<BTreeMap<String, u64>>,
        worktree_path = "worktreePath": Option<String>,
        worktree_branch = "worktreeBranch": Option<String>,
    }

    /// A subagent was started.
    pub struct AgentLaunched {
        agent_id = "agentId": Option<String>,
        task_id = "taskId": Option<String>,
        is_async = "isAsync": Option<bool>,
        description: Option<String>,
        prompt: Option<String>,
        resolved_model = "resolvedModel": Option<String>,
        models_used = "modelsUsed": Option<Vec<String>>,
        output_file = "outputFile": Option<String>,
        can_read_output_file = "canReadOutputFile": Option<bool>,
        can_continue_agent = "canContinueAgent": Option<bool>,
        session_url = "sessionUrl": Option<String>,
    }

    /// The list before and after.
    pub struct TodoWriteOutput {
        old_todos = "oldTodos": Vec<Todo>,
        new_todos = "newTodos": Vec<Todo>,
    }

    /// The new task.
    pub struct TaskCreateOutput { task: TaskItem }

    /// The task, if there is one.
    pub struct TaskGetOutput { task: Option<TaskItem> }

    /// The tasks.
    pub struct TaskListOutput { tasks: Vec<TaskItem> }

    /// A task on the list.
    pub struct TaskItem {
        id: String,
        subject: String,
        description: Option<String>,
        status: Option<TodoStatus>,
        owner: Option<String>,
        blocks: Option<Vec<String>>,
        blocked_by = "blockedBy": Option<Vec<String>>,
    }

    /// What was changed in a task.
    pub struct TaskUpdateOutput {
        success: bool,
        task_id = "taskId": String,
        updated_fields = "updatedFields": Vec<String>,
        error: Option<String>,
        status_change = "statusChange": Option<Json>,
    }

    /// A page of the web.
    pub struct WebFetchOutput {
        url: String,
        code: Option<u64>,
        code_text = "codeText": Option<String>,
        bytes: Option<u64>,
        result: String,
        duration_ms = "durationMs": Option<Number>,
    }

    /// The hits of a search.
    pub struct WebSearchOutput {
        query: String,
        /// Lists of hits, and words about them.
        results: Vec<Json>,
        duration_seconds = "durationSeconds": Option<Number>,
        search_count = "searchCount": Option<u64>,
    }

    /// What the user answered.
    pub struct AskUserQuestionOutput {
        questions: Vec<Question>,
        answers: BTreeMap<String, String>,
        response: Option<String>,
        annotations: Option<Json>,
        afk_timeout_ms = "afkTimeoutMs": Option<Number>,
    }

    /// Words.
    pub struct MessageOutput { message: String }

    /// The plan.
    pub struct ExitPlanModeOutput {
        plan: Option<String>,
        is_agent = "isAgent": Option<bool>,
        file_path = "filePath": Option<String>,
        has_task_tool = "hasTaskTool": Option<bool>,
        plan_was_edited = "planWasEdited": Option<bool>,
        awaiting_leader_approval = "awaitingLeaderApproval": Option<bool>,
        request_id = "requestId": Option<String>,
    }

    /// The worktree.
    pub struct EnterWorktreeOutput {
        worktree_path = "worktreePath": String,
        worktree_branch = "worktreeBranch": Option<String>,
        message: Option<String>,
    }

    /// The worktree that was left.
    pub struct ExitWorktreeOutput {
        action: String,
        original_cwd = "originalCwd": Option<String>,
        worktree_path = "worktreePath": Option<String>,
        worktree_branch = "worktreeBranch": Option<String>,
        tmux_session_name = "tmuxSessionName": Option<String>,
        discarded_files = "discardedFiles": Option<u64>,
        discarded_commits = "discardedCommits": Option<u64>,
        message: Option<String>,
    }

    /// What watches.
    pub struct MonitorOutput {
        task_id = "taskId": String,
        timeout_ms = "timeoutMs": Option<Number>,
        persistent: Option<bool>,
    }

    /// The workflow that was started.
    pub struct WorkflowOutput {
        status: String,
        task_id = "taskId": String,
        task_type = "taskType": Option<String>,
        workflow_name = "workflowName": Option<String>,
        run_id = "runId": Option<String>,
        summary: Option<String>,
        transcript_dir = "transcriptDir": Option<String>,
        script_path = "scriptPath": Option<String>,
        session_url = "sessionUrl": Option<String>,
        warning: Option<String>,
        error: Option<String>,
    }

    /// A prompt that comes back at set times.
    pub struct CronCreateOutput {
        id: String,
        human_schedule = "humanSchedule": Option<String>,
        recurring: Option<bool>,
        durable: Option<bool>,
        next_fire_at = "nextFireAt": Option<Number>,
    }

    /// The one that is gone.
    pub struct CronDeleteOutput { id: String }

    /// All of them.
    pub struct CronListOutput { jobs: Vec<CronJob> }

    /// One of them.
    pub struct CronJob {
        id: String,
        cron: String,
        human_schedule = "humanSchedule": Option<String>,
        prompt: String,
        recurring: Option<bool>,
        durable: Option<bool>,
        next_fire_at = "nextFireAt": Option<Number>,
    }

    /// When it wakes up.
    pub struct ScheduleWakeupOutput {
        scheduled_for = "scheduledFor": Option<Number>,
        clamped_delay_seconds = "clampedDelaySeconds": Option<Number>,
        was_clamped = "wasClamped": Option<bool>,
        stopped: Option<bool>,
        cancelled_wakeups = "cancelledWakeups": Option<u64>,
    }

    /// What was reported.
    pub struct ReportFindingsOutput {
        count: u64,
        level: Option<String>,
        findings: Vec<Finding>,
    }

    /// An MCP resource.
    pub struct ReadMcpResourceOutput {
        contents: Vec<Json>,
        error: Option<String>,
    }

    /// Was it told?
    pub struct PushNotificationOutput {
        message: String,
        push_sent = "pushSent": Option<bool>,
        local_sent = "localSent": Option<bool>,
        disabled_reason = "disabledReason": Option<String>,
        sent_at = "sentAt": Option<String>,
    }

    /// An MCP tool's answer.
    pub struct McpOutput {
        content: Json,
        structured_content = "structuredContent": Option<Json>,
        is_error = "isError": Option<bool>,
    }
}
