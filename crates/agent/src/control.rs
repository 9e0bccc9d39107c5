//! What a running session can be asked to do. One method for each control request; [`Session::request`] is for the rest.
//!
//! Every method has a time-out, and all work while a turn runs. A CLI that does not know a request says so
//! ([`Error::Unsupported`]); nothing is guessed from version numbers.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::stream::{
    ApplyFlagSettings, BackgroundTasks, CancelAsyncMessage, FileSuggestions, GenerateSessionTitle,
    GetContextUsage, GetUsage, Interrupt, Json, McpCall, McpReadResource, McpSetServers, McpStatus,
    McpToggle, NoParams, PermissionMode, ReadFile, RegisterRepoRoot, ReloadPlugins, RenameSession, Request,
    RewindConversation, RewindFiles, SeedReadState, ServerRef, SetColor, SetCwd, SetMaxThinkingTokens,
    SetModel, SetPermissionMode, SideQuestion, TaskRef, UpdateSettings, reply,
};
use crate::{Error, Session};

/// Methods without a body in the answer.
macro_rules! orders {
    ($( $(#[$meta:meta])* $name:ident ( $( $arg:ident : $ty:ty ),* ) => $request:expr; )*) => { $(
        $(#[$meta])*
        ///
        /// # Errors
        /// When the CLI refuses, does not answer in time, or is gone.
        pub async fn $name(&self, $( $arg: $ty ),*) -> Result<(), Error> {
            self.request($request).await.map(drop)
        }
    )* };
}

/// Methods whose answer has a type.
macro_rules! questions {
    ($( $(#[$meta:meta])* $name:ident ( $( $arg:ident : $ty:ty ),* ) -> $reply:ty => $request:expr; )*) => { $(
        $(#[$meta])*
        ///
        /// # Errors
        /// When the CLI refuses, does not answer in time, or is gone.
        pub async fn $name(&self, $( $arg: $ty ),*) -> Result<$reply, Error> {
            self.question($request).await
        }
    )* };
}

/// The rest of a record.
fn rest<T: Default>() -> T {
    T::default()
}

impl Session {
    /// A request whose answer has a type. An answer without a body is the empty one.
    async fn question<T: DeserializeOwned + Default>(&self, request: Request) -> Result<T, Error> {
        let subtype = request.tag().to_owned();
        let answer = self.request(request).await?;
        if answer.is_null() {
            return Ok(T::default());
        }
        answer.read().map_err(|error| Error::Refused { subtype, reason: error.to_string(), code: None })
    }

    questions! {
        /// Stops the turn. Queued messages run next; the receipt names them, from a CLI that gives one.
        interrupt() -> reply::Interrupt => Request::Interrupt(rest());
        /// Stops the turn and forgets the queued messages, from a CLI that can (`interrupt_cancel_queued_v1`).
        interrupt_all() -> reply::Interrupt => Request::Interrupt(Interrupt { cancel_queued: Some(true), ..rest() });
        /// The settings in force, and where they are from.
        settings() -> reply::GetSettings => Request::GetSettings(NoParams::default());
        /// What fills the context.
        context_usage() -> reply::GetContextUsage => Request::GetContextUsage(GetContextUsage::default());
        /// The cost, in words.
        session_cost() -> reply::GetSessionCost => Request::GetSessionCost(NoParams::default());
        /// The cost and the limits.
        usage() -> reply::GetUsage => Request::GetUsage(GetUsage::default());
        /// The CLI's version.
        binary_version() -> reply::GetBinaryVersion => Request::GetBinaryVersion(NoParams::default());
        /// The hooks there are.
        hooks_listing() -> reply::GetHooksListing => Request::GetHooksListing(NoParams::default());
        /// What a task has written.
        task_output(task_id: &str) -> reply::GetTaskOutput
            => Request::GetTaskOutput(TaskRef { task_id: task_id.into(), ..rest() });
        /// The permission rules there are.
        permission_rules() -> reply::ListPermissionRules => Request::ListPermissionRules(NoParams::default());
        /// The MCP servers and how they are.
        mcp_status() -> reply::McpStatus => Request::McpStatus(McpStatus::default());
        /// Other MCP servers in place of all that were set at run time, those inside this program included.
        set_mcp_servers(servers: BTreeMap<String, Json>) -> reply::McpSetServers
            => Request::McpSetServers(McpSetServers { servers, ..rest() });
        /// Calls an MCP tool (`mcp__SERVER__TOOL`) outside of the conversation.
        call_mcp_tool(tool: &str, arguments: Json) -> reply::McpCall
            => Request::McpCall(Box::new(McpCall { tool: tool.into(), arguments: Some(arguments), ..rest() }));
        /// Reads a resource of an MCP server.
        read_mcp_resource(server: &str, uri: &str) -> reply::McpReadResource
            => Request::McpReadResource(McpReadResource { server_name: server.into(), uri: uri.into(), ..rest() });
        /// Puts files back to where they were at a message; needs the option `file_checkpointing`.
        rewind_files(user_message_id: &str) -> reply::RewindFiles
            => Request::RewindFiles(RewindFiles { user_message_id: user_message_id.into(), ..rest() });
        /// What [`rewind_files`](Self::rewind_files) would do.
        rewind_files_dry_run(user_message_id: &str) -> reply::RewindFiles => Request::RewindFiles(RewindFiles {
            user_message_id: user_message_id.into(), dry_run: Some(true), ..rest()
        });
        /// Goes back in the conversation to a message of the user's.
        rewind_conversation(message_uuid: &str) -> reply::RewindConversation
            => Request::RewindConversation(RewindConversation { target_message_uuid: message_uuid.into(), ..rest() });
        /// Forgets a message that is still queued.
        cancel_message(message_uuid: &str) -> reply::CancelAsyncMessage
            => Request::CancelAsyncMessage(CancelAsyncMessage { message_uuid: message_uuid.into(), ..rest() });
        /// Reads a file of the workspace.
        read_file(path: &str) -> reply::ReadFile => Request::ReadFile(ReadFile { path: path.into(), ..rest() });
        /// Files for a text that somebody types.
        file_suggestions(query: &str) -> reply::FileSuggestions
            => Request::FileSuggestions(FileSuggestions { query: query.into(), ..rest() });
        /// Reads the plugins again.
        reload_plugins() -> reply::ReloadPlugins => Request::ReloadPlugins(ReloadPlugins::default());
        /// Reads the skills again.
        reload_skills() -> reply::ReloadSkills => Request::ReloadSkills(NoParams::default());
        /// Reads the output styles again.
        reload_output_styles() -> reply::ReloadOutputStyles => Request::ReloadOutputStyles(NoParams::default());
        /// Makes up a title for the session, and keeps it if asked to.
        generate_title(description: &str, persist: bool) -> reply::GenerateSessionTitle
            => Request::GenerateSessionTitle(GenerateSessionTitle {
                description: description.into(), persist: Some(persist), ..rest()
            });
        /// Asks the model something beside the conversation.
        side_question(question: &str) -> reply::SideQuestion
            => Request::SideQuestion(SideQuestion { question: question.into(), ..rest() });
        /// The models there are; older CLIs list them in [`info`](Self::info) only.
        models() -> Json => Request::ListModels(NoParams::default());
        /// The state of the CLI, as `/status` shows it.
        status() -> Json => Request::GetStatus(NoParams::default());
        /// The plan, if there is one.
        plan() -> Json => Request::GetPlan(NoParams::default());
        /// What has changed in the workspace.
        workspace_diff() -> Json => Request::GetWorkspaceDiff(NoParams::default());
        /// The conversation as a text.
        export_conversation() -> Json => Request::ExportConversation(NoParams::default());
    }

    orders! {
        /// Another permission mode. What is in force is in [`state`](Session::state): the CLI has the last word.
        set_permission_mode(mode: PermissionMode)
            => Request::SetPermissionMode(SetPermissionMode { mode, ..rest() });
        /// Another model; none is the default.
        set_model(model: Option<&str>)
            => Request::SetModel(SetModel { model: model.map(Into::into), ..rest() });
        /// How much the model may think; none is the default, 0 is not at all.
        set_max_thinking_tokens(tokens: Option<u64>)
            => Request::SetMaxThinkingTokens(SetMaxThinkingTokens { max_thinking_tokens: tokens, ..rest() });
        /// Settings for this session.
        apply_settings(settings: Json)
            => Request::ApplyFlagSettings(ApplyFlagSettings { settings, ..rest() });
        /// Settings to keep, in the source named (`userSettings`, `localSettings`, …).
        update_settings(source: &str, settings: Json)
            => Request::UpdateSettings(UpdateSettings { source: source.into(), settings, ..rest() });
        /// Connects an MCP server again.
        reconnect_mcp_server(name: &str)
            => Request::McpReconnect(ServerRef { server_name: name.into(), ..rest() });
        /// Switches an MCP server on or off.
        toggle_mcp_server(name: &str, enabled: bool)
            => Request::McpToggle(McpToggle { server_name: name.into(), enabled, ..rest() });
        /// Ends a task.
        stop_task(task_id: &str) => Request::StopTask(TaskRef { task_id: task_id.into(), ..rest() });
        /// Lets running commands go on in the background: the one of this call, or all.
        background_tasks(tool_use_id: Option<&str>)
            => Request::BackgroundTasks(BackgroundTasks { tool_use_id: tool_use_id.map(Into::into), ..rest() });
        /// Tells the CLI that the model knows a file as it was then (milliseconds since 1970).
        seed_read_state(path: &str, mtime_ms: u64)
            => Request::SeedReadState(SeedReadState { path: path.into(), mtime: Some(mtime_ms.into()), ..rest() });
        /// One more repository, below the working directory.
        register_repo_root(directory: &str)
            => Request::RegisterRepoRoot(RegisterRepoRoot { directory: directory.into(), ..rest() });
        /// Another working directory.
        set_cwd(path: &str) => Request::SetCwd(SetCwd { path: path.into(), ..rest() });
        /// Another title.
        rename(title: &str) => Request::RenameSession(RenameSession { title: title.into(), ..rest() });
        /// Another colour.
        set_color(color: &str) => Request::SetColor(SetColor { color: color.into(), ..rest() });
        /// The CLI ends by itself after this.
        end_session() => Request::EndSession(NoParams::default());
    }
}
