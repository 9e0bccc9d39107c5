//! A server of tools.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use oarlock_proto::jsonrpc::{self, ErrorObject, Id, Message};
use oarlock_proto::mcp::{self, CancelledParams, Implementation, InitializeParams};
use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{CallParams, ToolCx};
use super::client::{Client, Connection, json};
use super::function::{Tool, check_name};
use super::output::ToolError;
use super::{BoxFuture, Server};
use crate::Error;
use crate::stream::Json;

/// How long the whole name of a tool (`mcp__SERVER__TOOL`) may be.
const LONGEST_NAME: usize = 128;

/// An MCP server made of [`Tool`]s. See the [module](super) for an example.
///
/// A clone is a handle to the same server: keep one to [`add`](Self::add) and [`remove`](Self::remove) tools while
/// sessions run.
#[derive(Clone)]
pub struct ToolServer(Arc<Inner>);

struct Inner {
    name: String,
    state: RwLock<State>,
    /// The sessions that have shaken hands.
    sessions: Mutex<Vec<Weak<Connection>>>,
}

struct State {
    version: String,
    instructions: Option<String>,
    tools: Vec<Arc<Tool>>,
}

impl ToolServer {
    /// A server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        let state =
            State { version: env!("CARGO_PKG_VERSION").to_owned(), instructions: None, tools: Vec::new() };
        Self(Arc::new(Inner { name: name.into(), state: RwLock::new(state), sessions: Mutex::default() }))
    }

    /// Says which version it is; this crate's unless told.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        self.change(|state| state.version = version.into());
        self
    }

    /// Tells the model how to use its tools; the CLI puts the text into the prompt.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.change(|state| state.instructions = Some(instructions.into()));
        self
    }

    /// Adds a tool. Whether it can be used is found out when a session starts, or by [`check`](Server::check).
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.change(|state| state.tools.push(Arc::new(tool)));
        self
    }

    /// The names of its tools, in order.
    #[must_use]
    pub fn tools(&self) -> Vec<String> {
        self.read(|state| state.tools.iter().map(|tool| tool.name().to_owned()).collect())
    }

    /// Adds a tool, or puts it in the place of the one with its name, and tells every session.
    ///
    /// A CLI without the capability `sdk_mcp_tools_list_changed` (2.1.197) does not ask for the new list.
    ///
    /// # Errors
    /// When the CLI or the API could not take it, as [`check`](Server::check) says.
    pub async fn add(&self, tool: Tool) -> Result<(), Error> {
        self.check_tool(&tool)?;
        self.change(|state| {
            let tool = Arc::new(tool);
            match state.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => *known = tool,
                None => state.tools.push(tool),
            }
        });
        self.tell_sessions().await;
        Ok(())
    }

    /// Takes a tool away and tells every session; calls that are running go on. Was there one?
    pub async fn remove(&self, name: &str) -> bool {
        let removed = self.change(|state| {
            let before = state.tools.len();
            state.tools.retain(|tool| tool.name != name);
            state.tools.len() < before
        });
        if removed {
            self.tell_sessions().await;
        }
        removed
    }

    async fn tell_sessions(&self) {
        let sessions: Vec<Client> = self.sessions().iter().filter_map(Client::upgrade).collect();
        for session in sessions {
            // One that is just ending need not know.
            if let Err(error) = session.tools_changed().await {
                tracing::debug!(%error, server = self.0.name, "a session was not told of the new tools");
            }
        }
    }

    fn initialize(&self, params: Option<&RawValue>, client: &Client) -> Result<impl Serialize, ErrorObject> {
        #[derive(Serialize)]
        struct Result<'a> {
            #[serde(flatten)]
            result: mcp::InitializeResult<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            instructions: Option<String>,
        }
        // Whoever did not ask is told here: the CLI marks the server as failed, and says why.
        self.check().map_err(|error| ErrorObject::internal(error.to_string()))?;
        let mut sessions = self.sessions();
        // A second handshake of a session is no second session.
        sessions.retain(|session| session.strong_count() > 0 && !session.ptr_eq(&client.downgrade()));
        sessions.push(client.downgrade());
        drop(sessions);
        let asked: InitializeParams = read(params).unwrap_or_default();
        Ok(self.read(|state| Result {
            result: mcp::InitializeResult {
                protocol_version: mcp::negotiate(&asked.protocol_version),
                capabilities: mcp::ServerCapabilities::default(),
                server_info: Implementation { name: self.0.name.clone(), version: state.version.clone() },
            },
            instructions: state.instructions.clone(),
        }))
    }

    fn list(&self, id: &Id) -> String {
        let tools = self.read(|state| state.tools.clone());
        #[derive(Serialize)]
        struct List<T> {
            tools: Vec<T>,
        }
        jsonrpc::write_result(id, &List { tools: tools.iter().map(|tool| tool.entry()).collect() })
    }

    fn call(&self, id: Id, params: Option<&RawValue>, client: Client) -> BoxFuture<Option<Json>> {
        let CallParams { name, arguments, meta } = match read(params) {
            Ok(params) => params,
            Err(why) => return answer(jsonrpc::write_error(&id, &ErrorObject::invalid_params(why))),
        };
        let Some(tool) = self.read(|state| state.tools.iter().find(|tool| tool.name == name).cloned()) else {
            let error = ErrorObject::invalid_params(format!("unknown tool: {name}"));
            return answer(jsonrpc::write_error(&id, &error));
        };
        // Before the future exists, so that a cancellation that comes next finds the call.
        let running = client.begin(id.clone());
        let cx = ToolCx::new(client, running.token.clone(), meta);
        Box::pin(async move {
            let outcome = tool.call(arguments, cx).await.or_else(ToolError::into_answer);
            drop(running);
            Some(json(match outcome {
                Ok(output) => jsonrpc::write_result(&id, &output),
                Err(error) => jsonrpc::write_error(&id, &error),
            }))
        })
    }

    fn check_tool(&self, tool: &Tool) -> Result<(), Error> {
        let whole = "mcp__".len() + self.0.name.len() + "__".len() + tool.name.len();
        let fits = if whole > LONGEST_NAME {
            Err(format!("with its server's its name has {whole} characters; {LONGEST_NAME} are the most"))
        } else {
            tool.check()
        };
        fits.map_err(|why| unfit(format!("tool `{}` of the server `{}`: {why}", tool.name, self.0.name)))
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.0.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Connection>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server for ToolServer {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn message(&self, message: Json, client: Client) -> BoxFuture<Option<Json>> {
        let (id, method, params) = match jsonrpc::read(message.text()) {
            Ok(Message::Request { id, method, params }) => (id, method, params),
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(params) = params
                    && let Ok(CancelledParams { request_id }) = serde_json::from_str(params.get())
                {
                    client.cancel(request_id);
                }
                return Box::pin(std::future::ready(None));
            }
            // We ask the CLI nothing.
            Ok(Message::Response { .. }) => return Box::pin(std::future::ready(None)),
            Err(malformed) => return answer(jsonrpc::write_error(&malformed.id, &malformed.error)),
        };
        match &*method {
            "initialize" => answer(match self.initialize(params, &client) {
                Ok(result) => jsonrpc::write_result(&id, &result),
                Err(error) => jsonrpc::write_error(&id, &error),
            }),
            "ping" => answer(jsonrpc::write_result(&id, &serde_json::Map::new())),
            "tools/list" => answer(self.list(&id)),
            "tools/call" => self.call(id, params, client),
            other => answer(jsonrpc::write_error(&id, &ErrorObject::method_not_found(other))),
        }
    }

    fn check(&self) -> Result<(), Error> {
        check_name(&self.0.name).map_err(|why| unfit(format!("server: {why}")))?;
        let tools = self.read(|state| state.tools.clone());
        for (index, tool) in tools.iter().enumerate() {
            self.check_tool(tool)?;
            if tools[..index].iter().any(|other| other.name == tool.name) {
                return Err(unfit(format!("server `{}`: it has two tools `{}`", self.0.name, tool.name)));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("name", &self.0.name).field("tools", &self.tools()).finish()
    }
}

/// Reads a request's parameters, or says which field does not fit and why.
fn read<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T, String> {
    let text = params.map_or("{}", RawValue::get);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| mcp::explain(&error))
}

fn answer(text: String) -> BoxFuture<Option<Json>> {
    Box::pin(std::future::ready(Some(json(text))))
}

fn unfit(reason: String) -> Error {
    Error::Option { option: "tool_server", reason }
}
