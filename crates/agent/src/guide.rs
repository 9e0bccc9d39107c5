//! The guide: what the parts are, and how they are used.
//!
//! | chapter | about |
//! |---|---|
//! | [concepts] | sessions, messages, turns, events, and when a session ends |
//! | [permissions] | deciding about tools, questions of the model, plans |
//! | [hooks] | being told what happens, and stepping in |
//! | [tools] | tools inside the program |
//! | [sessions] | transcripts, resuming, stores |
//! | [errors] | what can go wrong, and what to do |
//! | [testing] | testing a program without an account |
//! | [migration] | from the Python and TypeScript SDKs |
//!
//! The `examples` folder of the crate has a program for each; they run against a scripted CLI in the tests.

pub mod concepts {
    //! Sessions, messages, turns, events.
    //!
    //! # One question
    //!
    //! [`ask`](crate::ask()) starts `claude`, asks, waits until all work is done, and gives the last result:
    //!
    //! ```no_run
    //! # async fn example() -> Result<(), oarlock_agent::Error> {
    //! use oarlock_agent::{Options, ask};
    //!
    //! let answer = ask("What does this crate do?").options(Options::new().model("haiku").cwd("/src/project")).await?;
    //! println!("{}", answer.text());
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! [`Ask::output`](crate::Ask::output) gives a value of a type instead, [`Ask::stream`](crate::Ask::stream) the messages.
    //!
    //! # A session
    //!
    //! [`Options::connect`](crate::Options::connect) gives two values. The [`Session`](crate::Session) is a handle: it can be
    //! cloned and shared, and everything that can be asked of a running CLI is a method of it. [`Events`](crate::Events) is the
    //! stream of what the CLI says. One owner reads it, and it may be put down at any `await`, in a `select!` say, without
    //! losing anything.
    //!
    //! ```no_run
    //! # async fn example() -> Result<(), oarlock_agent::Error> {
    //! use oarlock_agent::{Options, stream::Message};
    //!
    //! let (session, mut events) = Options::new().connect().await?;
    //! let id = session.send("Fix the test.").await?;
    //! while let Some(item) = events.next().await {
    //!     match item {
    //!         Ok(Message::Assistant(assistant)) => println!("{:?}", assistant.message.content),
    //!         Ok(Message::Result(result)) => {
    //!             println!("{:?}", result.result);
    //!             break;
    //!         }
    //!         Ok(_) => {}
    //!         Err(error) if error.is_fatal() => return Err(error),
    //!         Err(error) => eprintln!("passed over: {error}"), // one bad line; the stream goes on
    //!     }
    //! }
    //! session.close().await?;
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! # Messages and events
    //!
    //! A [`Message`](crate::stream::Message) is one line of the protocol, typed; what this version does not know is kept as it
    //! is. Messages are close to the wire: text comes twice, in pieces and whole, and a result may belong to any earlier
    //! call. A [`Reducer`](crate::reduce::Reducer) turns them into events to show: each text once, each tool call with its
    //! result, each turn with its own cost.
    //!
    //! # Turns
    //!
    //! A message starts a turn when none runs. One that is sent meanwhile is read by the model in the same turn, if a tool
    //! runs, or else waits; several that wait become one prompt. So results cannot be counted against messages: a
    //! `result` names the messages it answers (`user_message_uuids`) on newer CLIs, and on all of them a message is
    //! replayed under the uuid that [`send`](crate::Session::send) gave when the model gets it. The
    //! [`TurnEnd`](crate::reduce::TurnEnd) of the reducer knows which messages a turn has answered.
    //!
    //! The CLI also starts turns by itself, when a background task has ended; those results have an `origin`.
    //!
    //! # When a session ends
    //!
    //! - [`close`](crate::Session::close): the input is closed. A CLI that does not end within the grace is terminated, then
    //!   killed with everything it has started.
    //! - [`finish`](crate::Session::finish), or dropping all handles: the program has no more to say. The input is closed when no
    //!   turn, background task or callback runs and none is owed, so that questions of background work still get answers. The
    //!   stream ends after that.
    //! - Dropping handles and stream: killed at once. Nothing outlives the program, however it ends.
    //!
    //! # Slow readers
    //!
    //! What is not read waits in memory, up to [`Buffer::memory`](crate::Buffer). A reader that is slow holds the CLI back; one
    //! that has stopped does not: answers and questions must get through, so the rest waits in a file without a name.
    //!
    //! # Warm starts
    //!
    //! A CLI takes most of a second to start. A [`Pool`](crate::Pool) has some ready, and the first frame comes in tens of
    //! milliseconds.
}

pub mod permissions {
    //! Deciding about tools.
    //!
    //! The CLI settles most calls by its mode, its rules and its hooks. What they leave open comes to
    //! [`can_use_tool`](crate::Options::can_use_tool):
    //!
    //! ```
    //! use oarlock_agent::{Options, permission::PermissionRequest, stream::ToolInput};
    //!
    //! let options = Options::new().can_use_tool(|request: PermissionRequest| async move {
    //!     match request.tool() {
    //!         ToolInput::Bash(bash) if bash.command.starts_with("git ") => request.allow_always(),
    //!         ToolInput::Write(_) => request.deny_and_interrupt("nothing is written here"),
    //!         _ => request.deny("ask a person first"),
    //!     }
    //! });
    //! ```
    //!
    //! - [`allow_with`](crate::permission::PermissionRequest::allow_with) changes the input. It takes the place of the whole.
    //! - [`allow_always`](crate::permission::PermissionRequest::allow_always) adds the rule that the CLI suggests, so that the next
    //!   such call is not asked about.
    //! - Several requests may be open at once, and each runs in a task of its own. One that is withdrawn is dropped.
    //! - A callback that panics or takes too long is a no.
    //! - **What the options allow is never asked about**: a tool in `allowed_tools` runs without a question.
    //!
    //! # Questions and plans
    //!
    //! When the model asks the user (`AskUserQuestion`), that is a request too:
    //! [`questions`](crate::permission::PermissionRequest::questions) has them, and
    //! [`answer`](crate::permission::PermissionRequest::answer) answers. When it wants to leave plan mode (`ExitPlanMode`),
    //! [`plan`](crate::permission::PermissionRequest::plan) has the plan, and
    //! [`approve_plan`](crate::permission::PermissionRequest::approve_plan) says in which mode work goes on.
    //!
    //! MCP servers ask by [`on_elicitation`](crate::Options::on_elicitation): the [`Question`](crate::Question) has
    //! `accept`, `decline` and `cancel`.
    //!
    //! # For user interfaces
    //!
    //! The stream carries each question in its place among the messages (`control_request`), so that an interface can show the
    //! text before it first. The callback gives the same
    //! [`request_id`](crate::permission::PermissionRequest::request_id).
}

pub mod hooks {
    //! Being told what happens, and stepping in.
    //!
    //! A [`Hook`](crate::hook::Hook) names an event and, for tools, which ones; the callback returns a
    //! [`HookOutput`](crate::stream::hook::HookOutput). The default is no opinion.
    //!
    //! ```
    //! use std::time::Duration;
    //! use oarlock_agent::{Options, hook::{Hook, OnFailure}, stream::hook::{HookEvent, HookOutput}};
    //!
    //! let options = Options::new()
    //!     .hook(Hook::on("PreToolUse").matching("Write|Edit"), |call| async move {
    //!         match &call.event {
    //!             HookEvent::PreToolUse(event) if event.tool_input.text().contains(".env") => call.deny("secrets"),
    //!             _ => HookOutput::default(),
    //!         }
    //!     })
    //!     .hook(
    //!         Hook::on("PostToolUse").timeout(Duration::from_secs(5)).on_failure(OnFailure::Continue),
    //!         |call| async move {
    //!             println!("{}", call.event.tag());
    //!             HookOutput::default()
    //!         },
    //!     );
    //! ```
    //!
    //! All events are typed ([`HookEvent`](crate::stream::hook::HookEvent)); one that a newer CLI adds arrives as `Unknown` with
    //! its JSON. A callback that panics or takes too long blocks what it watches over, unless it was told to
    //! [continue](crate::hook::OnFailure::Continue): a guard that fails must not wave things through. Older CLIs run the
    //! tool when a hook fails, so the refusal is sent by this crate and does not depend on them. A hook on what has happened, or
    //! on the end of a turn, blocks nothing when it fails: the turn would never end.
    //!
    //! Which hooks are called is up to the CLI: `SessionStart` and `Setup` do not reach callbacks, and `SessionEnd` comes when
    //! the input is closed already.
}

pub mod tools {
    //! Tools inside the program.
    //!
    //! See [`tool`](crate::tool) for all of it. In short:
    //!
    //! ```
    //! use oarlock_agent::{Options, tool::{Tool, ToolServer}};
    //!
    //! #[derive(serde::Deserialize, schemars::JsonSchema)]
    //! struct Search {
    //!     /// Words that must all occur.
    //!     words: Vec<String>,
    //! }
    //!
    //! let notes = ToolServer::new("notes").tool(
    //!     Tool::new("search", |args: Search| async move { format!("nothing about {}", args.words.join(" ")) })
    //!         .description("Search the notes.")
    //!         .read_only(true),
    //! );
    //! let options = Options::new().tool_server(notes).allowed_tools(["mcp__notes__search"]);
    //! ```
    //!
    //! The model's call runs the function in this process; the schema comes from the type of its argument. MCP servers that are
    //! programs of their own are named by [`mcp_server`](crate::Options::mcp_server).
}

pub mod sessions {
    //! Transcripts, resuming, stores.
    //!
    //! The CLI writes each session to a file. [`history`](crate::history) reads them without the CLI: lists, reads, searches,
    //! exports, renames, tags, forks, deletes.
    //!
    //! ```no_run
    //! # async fn example() -> Result<(), oarlock_agent::Error> {
    //! use oarlock_agent::{Options, ask, history::{Filter, Library}};
    //!
    //! let library = Library::new()?;
    //! if let Some(last) = library.list(&Filter::project("."))?.next() {
    //!     // Goes on where it ended; `fork_session(true)` would leave the old one as it is.
    //!     let answer = ask("And now?").options(Options::new().resume(&last.id)).await?;
    //!     println!("{}", answer.text());
    //! }
    //! # Ok(())
    //! # }
    //! ```
    //!
    //! A resumed session does not print its past; read it from the transcript. 2.1.197 finds a session only from the directory
    //! it was made in.
    //!
    //! # Stores
    //!
    //! A [`Store`](crate::store::Store) keeps transcripts elsewhere: in other files, in memory, in SQLite (feature `sqlite`), or
    //! wherever you implement it. With the option [`store`](crate::Options::store) a session is copied to it as it goes on, and
    //! resumed from it where the CLI does not have it. The tests that a store must pass are public:
    //! [`store::conformance`](crate::store::conformance).
}

pub mod errors {
    //! What can go wrong, and what to do.
    //!
    //! All functions return [`Error`](crate::Error), whose text says what failed and what to do about it.
    //!
    //! | error | when | what to do |
    //! |---|---|---|
    //! | [`ProgramNotFound`](crate::Error::ProgramNotFound), [`NoProgram`](crate::Error::NoProgram) | there is no `claude` | install it, or name it by [`program`](crate::Options::program) or `CLAUDE_CODE_EXECUTABLE` |
    //! | [`NoDirectory`](crate::Error::NoDirectory), [`Option`](crate::Error::Option) | an option is wrong | correct it |
    //! | [`TooOld`](crate::Error::TooOld), [`Unsupported`](crate::Error::Unsupported) | this CLI does not know it | update the CLI, or do without |
    //! | [`NotStarted`](crate::Error::NotStarted) | nothing to resume, say | the reason is in the CLI's words |
    //! | [`Exited`](crate::Error::Exited) | the CLI died | the [`Exit`](crate::Exit) has the status and the end of stderr |
    //! | [`NoAnswer`](crate::Error::NoAnswer) | a request timed out | when it is `silent` the CLI hangs: close the session |
    //! | [`Refused`](crate::Error::Refused) | the CLI said no | the reason is in its words |
    //! | [`Login`](crate::Error::Login) | no login, or a bad key | run `claude` and log in |
    //! | [`Api`](crate::Error::Api) | the API failed after all retries | the HTTP status tells |
    //! | [`Turn`](crate::Error::Turn) | interrupted, too many turns, over budget | the result is in it |
    //! | [`Output`](crate::Error::Output) | the answer is not of the type | the text is in it |
    //! | [`Line`](crate::Error::Line), [`LineTooLong`](crate::Error::LineTooLong) | one line could not be read | nothing: the stream goes on |
    //!
    //! Only [`ask`](crate::ask()) turns a failed turn into an error. In a session a failed turn is a `result` with `is_error`, as
    //! the CLI says it, and the session goes on.
    //!
    //! The CLI writes program text to stderr at times. [`Exit::explanation`](crate::Exit::explanation) is what can be shown to
    //! people; [`Exit::stderr`](crate::Exit::stderr) is for logs.
}

pub mod testing {
    //! Testing a program without an account.
    //!
    //! `oarlock script FILE --as PATH` writes a program that plays a scenario as if it were `claude`. Name it by
    //! `CLAUDE_CODE_EXECUTABLE`, or by [`program`](crate::Options::program):
    //!
    //! ```toml
    //! [[turn]]
    //! steps = [
    //!   { text = "I will write the file." },
    //!   { tool = "Write", input = { file_path = "a.txt", content = "alpha\n" } },
    //!   { text = "Written." },
    //! ]
    //! ```
    //!
    //! Permissions, hooks and tools inside the program are asked as the real CLI asks them. The crate `oarlock-script` plays
    //! the same scripts inside a test, over pipes: [`connect_over`](crate::Options::connect_over).
}

pub mod migration {
    //! From the Python and TypeScript SDKs.
    //!
    //! | Python | TypeScript | here |
    //! |---|---|---|
    //! | `query(prompt)` | `query({prompt})` | [`ask(prompt).stream()`](crate::Ask::stream); [`ask(prompt).await`](crate::ask()) for the answer alone |
    //! | `ClaudeSDKClient` | `query` with a stream of prompts | [`Options::connect`](crate::Options::connect) |
    //! | `client.query(text)` | `streamInput` | [`Session::send`](crate::Session::send) |
    //! | `receive_messages()` | `for await` | [`Events`](crate::Events) |
    //! | `receive_response()` | | [`Events::turn`](crate::Events::turn) |
    //! | `ClaudeAgentOptions(…)` | `options: {…}` | [`Options`](crate::Options), one method for each |
    //! | `cli_path` | `pathToClaudeCodeExecutable` | [`program`](crate::Options::program) |
    //! | `env` (merged) | `env` (replaces) | [`env`](crate::Options::env) merges, [`env_clear`](crate::Options::env_clear) replaces |
    //! | `system_prompt` | `systemPrompt` | [`system_prompt`](crate::Options::system_prompt) |
    //! | `include_partial_messages` | `includePartialMessages` | [`include_partial_messages`](crate::Options::include_partial_messages) |
    //! | `output_format` json_schema | `outputFormat` | [`Ask::output`](crate::Ask::output), [`output_schema`](crate::Options::output_schema) |
    //! | `can_use_tool(name, input, ctx)` | `canUseTool` | [`can_use_tool`](crate::Options::can_use_tool) |
    //! | `PermissionResultAllow`/`Deny` | `{behavior}` | [`request.allow()`](crate::permission::PermissionRequest::allow), [`deny`](crate::permission::PermissionRequest::deny) |
    //! | `HookMatcher(matcher, hooks)` | `hooks: {Event: […]}` | [`hook`](crate::Options::hook) |
    //! | `@tool`, `create_sdk_mcp_server` | `tool`, `createSdkMcpServer` | [`Tool`](crate::tool::Tool), [`ToolServer`](crate::tool::ToolServer) |
    //! | | `onElicitation` | [`on_elicitation`](crate::Options::on_elicitation) |
    //! | `client.interrupt()` | `q.interrupt()` | [`Session::interrupt`](crate::Session::interrupt), with the receipt |
    //! | `set_model`, `set_permission_mode` | `setModel`, `setPermissionMode` | [`set_model`](crate::Session::set_model), [`set_permission_mode`](crate::Session::set_permission_mode) |
    //! | `get_mcp_status` | `mcpServerStatus` | [`mcp_status`](crate::Session::mcp_status) |
    //! | `get_context_usage` | `getContextUsage` | [`context_usage`](crate::Session::context_usage) |
    //! | `rewind_files` | `rewindFiles` | [`rewind_files`](crate::Session::rewind_files) |
    //! | `get_server_info` | `initializationResult` | [`Session::info`](crate::Session::info), typed |
    //! | | `startup()`, `prewarm()` | [`Pool`](crate::Pool) |
    //! | | `AbortController` | drop, [`kill`](crate::Session::kill), [`interrupt`](crate::Session::interrupt) |
    //! | `Transport` | `spawnClaudeCodeProcess` | [`connect_over`](crate::Options::connect_over), [`spawn_with`](crate::Options::spawn_with) |
    //! | `list_sessions`, `get_session_messages` | `listSessions`, `getSessionMessages` | [`Library`](crate::history::Library) |
    //! | `SessionStore` | `SessionStore` | [`Store`](crate::store::Store) |
    //! | `ResultError` | exception | [`Error::Turn`](crate::Error::Turn), [`Error::Api`](crate::Error::Api), [`Error::Login`](crate::Error::Login) |
    //! | `CLINotFoundError` | exception | [`Error::ProgramNotFound`](crate::Error::ProgramNotFound) |
    //! | `max_buffer_size` (1 MiB ends the session) | none | [`line_limit`](crate::Options::line_limit) (64 MiB; a longer line is passed over) |
    //!
    //! What is different:
    //!
    //! - Messages of a kind that is not known arrive (`Message::Unknown`); nothing is dropped in silence, and nothing ends the
    //!   stream but the CLI's end.
    //! - A failed turn is an error only for [`ask`](crate::ask()).
    //! - The input is not closed at the first result: background work keeps it open.
    //! - Without [`system_prompt`](crate::Options::system_prompt) the model has Claude Code's own; the official SDKs begin with an
    //!   empty one (`system_prompt("")`).
    //! - Settings are read as the CLI reads them by itself, unless [`setting_sources`](crate::Options::setting_sources) says
    //!   otherwise.
}
