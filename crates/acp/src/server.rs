//! The agent: which method is which.

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use oarlock_agent::history::Library;
use oarlock_proto::acp::{
    AgentAuthCapabilities, AgentCapabilities, AuthenticateRequest, CancelRequest, Empty, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, McpCapabilities, NOT_FOUND,
    PromptCapabilities, PromptRequest, RewindRequest, SessionCapabilities, SessionRef,
    SetConfigOptionRequest, SetModeRequest, SetTitleRequest, SetTitleResponse, SetupRequest, VERSION,
};
use oarlock_proto::jsonrpc::{self, ErrorObject};
use oarlock_proto::mcp;
use oarlock_proto::stream::Json;
use oarlock_wire::{Close, Connection, Ended, Frames, Limits, Peer, Responder, Service, Tasks};
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::Context;
use crate::history::Mark;
use crate::session::{Begin, Command, Handle, Past};
use crate::{Settings, auth, fault, history, prompt};

/// Serves a client until one side is done, or until `stop`. All that was started for it is gone when this returns.
pub async fn serve(frames: impl Frames, settings: Settings, stop: impl Future<Output = ()>) -> Ended {
    let limits = Limits { code: jsonrpc::INTERNAL_ERROR, ..Limits::default() };
    let connection = Connection::new(frames, limits);
    let sessions = TaskTracker::new();
    let server = Server {
        settings: Arc::new(settings),
        peer: connection.peer(),
        context: None,
        sessions: HashMap::new(),
        closing: HashMap::new(),
        tasks: sessions.clone(),
    };
    let peer = connection.peer();
    let mut running = pin!(connection.run(server));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = stop => {
            peer.close(Close::going_away());
            running.await
        }
    };
    // Every session has lost its handle by now, and takes its CLI down.
    sessions.close();
    sessions.wait().await;
    ended
}

struct Server {
    settings: Arc<Settings>,
    peer: Peer,
    /// There after `initialize`.
    context: Option<Arc<Context>>,
    sessions: HashMap<String, Handle>,
    /// Sessions that were closed, and are not over yet.
    closing: HashMap<String, CancellationToken>,
    /// Joined before the agent ends.
    tasks: TaskTracker,
}

/// What a method does with its parameters; an error is the answer.
type Done = Result<(), ErrorObject>;

/// Reads parameters; what is wrong is told with the field's name.
fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let mut deserializer = serde_json::Deserializer::from_str(params.map_or("{}", RawValue::get));
    serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| ErrorObject::invalid_params(mcp::explain(&error)))
}

impl Service for Server {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder, tasks: &mut Tasks) {
        // `dispatch` may keep the responder; what it gives back is answered here.
        let mut open = Some(responder);
        if let Err(error) = self.dispatch(method, params, &mut open, tasks)
            && let Some(responder) = open.take()
        {
            responder.error(&error);
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, _: &mut Tasks) {
        match method {
            "session/cancel" => {
                if let Ok(SessionRef { session_id }) = read(params) {
                    self.tell(&session_id, Command::Cancel);
                }
            }
            "$/cancel_request" => {
                if let Ok(CancelRequest { request_id }) = read(params) {
                    for session in self.sessions.values() {
                        let _ = session.tell(Command::CancelRequest(request_id.text().into()));
                    }
                }
            }
            _ => tracing::debug!(method, "a notification that is not known"),
        }
    }

    fn closed(&mut self, ended: &Ended) {
        tracing::info!(%ended, "the client is gone");
        self.sessions.clear();
    }
}

impl Server {
    fn dispatch(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        open: &mut Option<Responder>,
        tasks: &mut Tasks,
    ) -> Done {
        if method == "initialize" {
            return self.initialize(read(params)?, open);
        }
        let Some(context) = self.context.clone() else {
            let why = format!("{method} before initialize; send initialize first");
            return Err(ErrorObject::new(jsonrpc::INVALID_REQUEST, why));
        };
        self.sessions.retain(|_, session| !session.is_over());
        self.closing.retain(|_, over| !over.is_cancelled());
        match method {
            "authenticate" => {
                let AuthenticateRequest { method_id } = read(params)?;
                auth::authenticate(&context, &method_id)?;
                reply(open, &Empty {});
            }
            "logout" => {
                if let Some(responder) = open.take() {
                    tasks.add(async move {
                        match auth::logout(&context).await {
                            Ok(()) => responder.reply(&Empty {}),
                            Err(error) => responder.error(&error),
                        }
                    });
                }
            }
            "session/new" => self.begin(&context, Begin::New, read(params)?, open, tasks)?,
            "session/load" => self.begin(&context, Begin::Load, read(params)?, open, tasks)?,
            "session/resume" => self.begin(&context, Begin::Resume, read(params)?, open, tasks)?,
            "session/fork" => self.fork(&context, read(params)?, open, tasks)?,
            "session/list" => {
                let request: ListSessionsRequest = read(params)?;
                let marks = self.sessions.values().map(Handle::mark).collect();
                if let Some(responder) = open.take() {
                    tasks.add(async move {
                        match history::list(context, request, marks).await {
                            Ok(page) => responder.reply(&page),
                            Err(error) => responder.error(&error),
                        }
                    });
                }
            }
            "session/close" => {
                let SessionRef { session_id } = read(params)?;
                // One that is not open is closed already, if there is such a session at all.
                match self.sessions.remove(&session_id) {
                    Some(session) => drop(self.closing.insert(session_id, session.close(open.take()))),
                    None => history::open(&context, &session_id, None).map(|_| reply(open, &Empty {}))?,
                }
            }
            "session/delete" => {
                let SessionRef { session_id } = read(params)?;
                if let Some(session) = self.sessions.remove(&session_id) {
                    self.closing.insert(session_id.clone(), session.close(None));
                }
                // A CLI that has yet to go could write the transcript anew.
                let over = self.closing.get(&session_id).cloned();
                if let Some(responder) = open.take() {
                    tasks.add(async move {
                        if let Some(over) = over {
                            over.cancelled().await;
                        }
                        match history::delete(&context, &session_id) {
                            Ok(()) => responder.reply(&Empty {}),
                            Err(error) => responder.error(&error),
                        }
                    });
                }
            }
            "session/prompt" => {
                let PromptRequest { session_id, prompt, meta: _ } = read(params)?;
                let session = self.session(&session_id)?;
                let content = prompt::content(prompt)?;
                session.send(open, |responder| Command::Prompt { content, responder })?;
            }
            "session/set_mode" => {
                let SetModeRequest { session_id, mode_id } = read(params)?;
                let value = Json::from(json!(mode_id));
                let choose =
                    |responder| Command::Choose { id: "mode".into(), value, whole: false, responder };
                self.session(&session_id)?.send(open, choose)?;
            }
            "session/set_config_option" => {
                let SetConfigOptionRequest { session_id, config_id, value } = read(params)?;
                let choose = |responder| Command::Choose { id: config_id, value, whole: true, responder };
                self.session(&session_id)?.send(open, choose)?;
            }
            "session/set_title" | "_session/rename" => {
                let request: SetTitleRequest = read(params)?;
                // A session that has said nothing yet has no transcript to write a title to.
                let is_open = self.sessions.contains_key(&request.session_id);
                let title = match history::rename(&context, &request) {
                    Ok(title) => title,
                    Err(error) if is_open && error.code == i64::from(NOT_FOUND) => request.title.clone(),
                    Err(error) => return Err(error),
                };
                self.tell(&request.session_id, Command::Titled(title.clone()));
                reply(open, &SetTitleResponse { title });
            }
            "_session/rewind" => {
                let RewindRequest { session_id, message_id } = read(params)?;
                let rewind = |responder| Command::Rewind { message_id, responder };
                self.session(&session_id)?.send(open, rewind)?;
            }
            "_session/steering" => {
                let request: PromptRequest = read(params)?;
                let asks_first = request.meta.as_ref().and_then(|meta| meta.get("steering"));
                let asks_first = asks_first.and_then(|meta| meta.get("idleBehavior"));
                let asks_first = asks_first.is_some_and(|behavior| behavior == "promptRequired");
                let session = self.session(&request.session_id)?;
                let content = prompt::content(request.prompt)?;
                session.send(open, |responder| Command::Steer { content, asks_first, responder })?;
            }
            _ => return Err(ErrorObject::method_not_found(method)),
        }
        Ok(())
    }

    fn initialize(&mut self, request: InitializeRequest, open: &mut Option<Responder>) -> Done {
        let client = Arc::new(request.client_capabilities);
        let response = InitializeResponse {
            // Only this version is spoken, so it is also the answer to one that is not known.
            protocol_version: VERSION,
            agent_capabilities: capabilities(),
            auth_methods: auth::methods(&client, &self.settings),
            agent_info: Implementation {
                name: "oarlock".into(),
                title: Some("Claude Code (Oarlock)".into()),
                version: env!("CARGO_PKG_VERSION").into(),
            },
        };
        // A client that says it twice means the second; sessions that run keep what they were told.
        self.context = Some(Arc::new(Context {
            settings: self.settings.clone(),
            peer: self.peer.clone(),
            client,
            client_info: request.client_info,
            library: Library::new().ok(),
        }));
        reply(open, &response);
        Ok(())
    }

    fn session(&self, id: &str) -> Result<&Handle, ErrorObject> {
        self.sessions.get(id).ok_or_else(|| fault::no_session(id))
    }

    fn tell(&self, id: &str, command: Command) {
        if let Some(session) = self.sessions.get(id) {
            let _ = session.tell(command);
        }
    }

    fn begin(
        &mut self,
        context: &Arc<Context>,
        begin: Begin,
        request: SetupRequest,
        open: &mut Option<Responder>,
        tasks: &mut Tasks,
    ) -> Done {
        check_places(&request)?;
        let id = match (begin, &request.session_id) {
            (Begin::New, _) => uuid::Uuid::new_v4().to_string(),
            (_, Some(id)) => id.clone(),
            (_, None) => return Err(ErrorObject::invalid_params("sessionId: missing field")),
        };
        if let Some(session) = self.sessions.get(&id) {
            return session.send(open, |responder| Command::Again { begin, request, responder });
        }
        let transcript = match begin {
            Begin::New => None,
            _ => Some(history::open(context, &id, Some(&request.cwd))?),
        };
        self.start(context, id, begin, request, std::future::ready(Ok(transcript)).boxed(), open, tasks);
        Ok(())
    }

    fn fork(
        &mut self,
        context: &Arc<Context>,
        request: SetupRequest,
        open: &mut Option<Responder>,
        tasks: &mut Tasks,
    ) -> Done {
        check_places(&request)?;
        let Some(of) = &request.session_id else {
            return Err(ErrorObject::invalid_params("sessionId: missing field"));
        };
        // One that is open may be ahead of its transcript, and in another one than it began with.
        let of = self.sessions.get(of).map_or_else(|| Mark::of(of), Handle::mark);
        let at = request.meta.as_ref().and_then(|meta| meta.get("messageId")?.as_str()).map(str::to_owned);
        let id = uuid::Uuid::new_v4().to_string();
        let copy = history::fork(context.clone(), of, request.cwd.clone(), at, id.clone());
        self.start(context, id, Begin::Fork, request, copy.map(|copy| copy.map(Some)).boxed(), open, tasks);
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "all that a session begins with")]
    fn start(
        &mut self,
        context: &Arc<Context>,
        id: String,
        begin: Begin,
        request: SetupRequest,
        past: Past,
        open: &mut Option<Responder>,
        tasks: &mut Tasks,
    ) {
        let Some(responder) = open.take() else { return };
        let before = self.closing.remove(&id);
        let (context, tracker) = (context.clone(), &self.tasks);
        let handle = Handle::start(context, id.clone(), begin, request, past, before, responder, tracker);
        // When the client says no more, what it has asked is still answered.
        tasks.add(handle.over().cancelled_owned());
        self.sessions.insert(id, handle);
    }
}

/// Where a session is to be must be clear, whoever starts us where.
fn check_places(SetupRequest { cwd, additional_directories, .. }: &SetupRequest) -> Done {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(ErrorObject::invalid_params(format!("cwd: `{cwd}` is not an absolute path")));
    }
    if !path.is_dir() {
        return Err(ErrorObject::invalid_params(format!("cwd: there is no directory `{cwd}`")));
    }
    if let Some(path) = additional_directories.iter().find(|path| !Path::new(path).is_absolute()) {
        let why = format!("additionalDirectories: `{path}` is not an absolute path");
        return Err(ErrorObject::invalid_params(why));
    }
    Ok(())
}

fn reply(open: &mut Option<Responder>, result: &impl serde::Serialize) {
    if let Some(responder) = open.take() {
        responder.reply(result);
    }
}

fn capabilities() -> AgentCapabilities {
    let is_there = Some(Empty {});
    let meta = json!({ "claudeCode": { "promptQueueing": true, "rewind": true }, "steering": { "supported": true } });
    AgentCapabilities {
        load_session: true,
        prompt_capabilities: PromptCapabilities { image: true, audio: false, embedded_context: true },
        mcp_capabilities: McpCapabilities { http: true, sse: true },
        session_capabilities: SessionCapabilities {
            list: is_there,
            delete: is_there,
            additional_directories: is_there,
            resume: is_there,
            close: is_there,
            fork: is_there,
            title: is_there,
        },
        auth: AgentAuthCapabilities { logout: is_there },
        meta: meta.as_object().cloned(),
    }
}
