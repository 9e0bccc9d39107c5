//! One client's MCP session: every method is handled, or refused, here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::FutureExt;
use oarlock_proto::ide::{Dialect, IdeConnected};
use oarlock_proto::jsonrpc::{ErrorObject, Id};
use oarlock_proto::mcp::{
    self, CallParams, CallResult, InitializeParams, InitializeResult, ServerCapabilities,
};
use oarlock_wire::{Ended, Peer, Responder, Service, Tasks};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::editor::Cancelled;
use crate::engine::Engine;
use crate::event::Event;
use crate::tools::{self, Answer, Call};
use crate::{control, keepalive, process, vault};

/// What a connection's token grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The tools, to whoever read the lock file.
    Client,
    /// The decisions as well, to our own commands. Such a connection is no client: it is not listed or notified.
    Control,
}

pub(crate) struct Session {
    engine: Arc<Engine>,
    role: Role,
    client: u64,
    peer: Peer,
    /// It has seen a list of tools, which may need to be corrected.
    listed: bool,
    running: Running,
}

/// Calls that have not answered yet, so that `notifications/cancelled` finds them.
#[derive(Debug, Clone, Default)]
struct Running(Arc<Mutex<HashMap<Id, Cancelled>>>);

/// A call's place among the running ones; dropping it takes the call out.
pub(crate) struct Registered {
    running: Running,
    id: Id,
    /// Fires when the client says that it wants no answer any more.
    pub(crate) cancelled: Cancelled,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.running.table().remove(&self.id);
    }
}

impl Running {
    fn register(&self, id: &Id, cancelled: Cancelled) -> Registered {
        self.table().insert(id.clone(), cancelled.clone());
        Registered { running: self.clone(), id: id.clone(), cancelled }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Id, Cancelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Session {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder, tasks: &mut Tasks) {
        match method {
            "initialize" => self.initialize(params, responder),
            "ping" => responder.reply(&json!({})),
            "tools/list" => {
                self.listed = true;
                responder.reply(&tools::list(&self.engine, self.offers_diffs()));
            }
            "tools/call" => self.call(params, responder, tasks),
            "resources/list" => responder.reply(&json!({ "resources": [] })),
            "resources/templates/list" => responder.reply(&json!({ "resourceTemplates": [] })),
            "prompts/list" => responder.reply(&json!({ "prompts": [] })),
            _ if self.role == Role::Control && control::knows(method) => {
                control::request(&self.engine, &self.peer, method, params, responder, tasks);
            }
            _ if self.engine.settings.dialect == Dialect::Vault && vault::knows(method) => {
                let registered = self.running.register(responder.id(), Cancelled::new());
                vault::request(&self.engine, self.client, method, params, responder, registered, tasks);
            }
            _ => responder.error(&ErrorObject::method_not_found(method)),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, tasks: &mut Tasks) {
        match method {
            "notifications/initialized" => self.initialized(tasks),
            "ide_connected" => self.ide_connected(params, tasks),
            "notifications/cancelled" => self.cancelled(params),
            _ => tracing::debug!(method, "a notification that means nothing to us"),
        }
    }

    fn large_message(&mut self, bytes: usize) {
        self.engine.emit(&Event::LargeMessage { client: self.client, bytes });
    }

    fn closed(&mut self, ended: &Ended) {
        // Whatever was open is a failure now, never an accept; views close while the tasks get their moment.
        self.engine.diffs.fail_client(self.client, "the client is gone");
        if self.role == Role::Control {
            return;
        }
        self.engine.clients.remove(self.client);
        self.engine.emit(&Event::ClientGone { client: self.client, reason: &ended.to_string() });
    }
}

impl Drop for Session {
    /// The last thing that happens to a connection: its answers and its goodbye are sent.
    fn drop(&mut self) {
        self.engine.clients.leave(self.client);
    }
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>, role: Role, peer: Peer) -> Self {
        let client = engine.clients.enter(peer.clone());
        if role == Role::Client {
            engine.clients.add(client, peer.clone());
            engine.emit(&Event::ClientConnected { client });
        }
        Self { engine, role, client, peer, listed: false, running: Running::default() }
    }

    /// Diffs are offered to CLIs alone: another client would expect the engine to write the file.
    fn offers_diffs(&self) -> bool {
        self.engine.clients.with(self.client, |client| client.is_cli).unwrap_or(self.role == Role::Control)
    }

    fn initialize(&mut self, params: Option<&RawValue>, responder: Responder) {
        let params: InitializeParams = match read(params) {
            Ok(params) => params,
            Err(error) => return responder.error(&error),
        };
        self.engine.clients.with(self.client, |client| {
            client.info.name.clone_from(&params.client_info.name);
            client.info.version = params.client_info.version;
        });
        responder.reply(&InitializeResult {
            protocol_version: mcp::negotiate(&params.protocol_version),
            capabilities: ServerCapabilities::default(),
            server_info: self.engine.settings.info.clone(),
        });
    }

    fn initialized(&mut self, tasks: &mut Tasks) {
        let first = self.engine.clients.with(self.client, |c| !std::mem::replace(&mut c.initialized, true));
        if first != Some(true) {
            return;
        }
        if let Some(settings) = self.engine.settings.keepalive {
            let (engine, client) = (self.engine.clone(), self.client);
            tasks.add_background(keepalive::run(self.peer.clone(), settings, move || {
                engine.diffs.has_client(client)
            }));
        }
    }

    fn ide_connected(&mut self, params: Option<&RawValue>, tasks: &mut Tasks) {
        if self.role == Role::Control {
            return;
        }
        let pid = read::<IdeConnected>(params).ok().and_then(|params| params.pid);
        let cwd = pid.and_then(process::working_directory);
        let known = self.engine.clients.with(self.client, |client| {
            client.info.pid = pid;
            client.info.cwd.clone_from(&cwd);
            let news = !std::mem::replace(&mut client.is_cli, true);
            (news, client.info.name.clone(), client.info.version.clone())
        });
        let Some((news, name, version)) = known else { return };
        let (client, cwd) = (self.client, cwd.as_deref());
        self.engine.emit(&Event::ClientReady { client, pid, cwd, name: &name, version: &version });
        if news && self.listed {
            self.peer.notify(tools::LIST_CHANGED, &());
        }
        let engine = self.engine.clone();
        tasks.add_background(async move {
            // What is sent sooner is lost: the CLI listens only some 50 ms after the list of tools.
            tokio::time::sleep(engine.settings.settle).await;
            engine.share.welcome(&engine.clients, client);
        });
    }

    fn cancelled(&self, params: Option<&RawValue>) {
        let Ok(params) = read::<mcp::CancelledParams<'_>>(params) else { return };
        let table = self.running.table();
        let running = table.iter().find(|(id, _)| id.as_json() == params.request_id.get());
        if let Some((_, cancelled)) = running {
            cancelled.cancel();
        }
    }

    fn call(&self, params: Option<&RawValue>, responder: Responder, tasks: &mut Tasks) {
        let params: CallParams<'_> = match read(params) {
            Ok(params) => params,
            Err(error) => return responder.error(&error),
        };
        let Some(tool) = tools::find(&params.name) else {
            let shown: String = params.name.chars().take(100).collect();
            return responder.error(&ErrorObject::invalid_params(format!("unknown tool: {shown}")));
        };
        let start = Instant::now();
        if tool.for_clis && !self.offers_diffs() {
            let why = format!(
                "{} is only for Claude Code sessions, which announce themselves with `ide_connected`; \
                 other clients would expect this server to write the file, and it never does",
                tool.name
            );
            return self.answer(tool.name, start, responder, &CallResult::error(why));
        }
        let cancelled = Cancelled::new();
        let mut call = Call {
            engine: &self.engine,
            client: self.client,
            tool,
            arguments: params.arguments,
            for_model: params.meta.is_some_and(|meta| meta.tool_use_id.is_some()),
            cancelled: &cancelled,
        };
        match (tool.call)(&mut call) {
            Err(error) => responder.error(&error),
            Ok(Answer::Now(result)) => self.answer(tool.name, start, responder, &result),
            Ok(Answer::Later(work)) => {
                let mut work = std::panic::AssertUnwindSafe(work).catch_unwind();
                // Most editors know the answer at once; then there is nothing to remember or to cancel.
                if let Some(settled) = (&mut work).now_or_never() {
                    let settled = settled.unwrap_or_else(|_| tools::panicked(tool.name).into());
                    self.answer(tool.name, start, responder, &settled.result);
                    if let Some(after) = settled.after {
                        tasks.add(after);
                    }
                    return;
                }
                let registered = self.running.register(responder.id(), cancelled);
                let (engine, client) = (self.engine.clone(), self.client);
                tasks.add(async move {
                    let settled = work.await;
                    drop(registered);
                    let settled = settled.unwrap_or_else(|_| tools::panicked(tool.name).into());
                    answer(&engine, client, tool.name, start, responder, &settled.result);
                    if let Some(after) = settled.after {
                        after.await;
                    }
                });
            }
        }
    }

    fn answer(&self, tool: &str, start: Instant, responder: Responder, result: &CallResult) {
        answer(&self.engine, self.client, tool, start, responder, result);
    }
}

fn answer(
    engine: &Engine,
    client: u64,
    tool: &str,
    start: Instant,
    responder: Responder,
    result: &CallResult,
) {
    responder.reply(result);
    if engine.is_observed() {
        let us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        engine.emit(&Event::ToolCall { client, tool, ok: !result.is_error, us });
    }
}

/// Reads a method's parameters; missing ones are an empty object.
pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    // serde would take a list for a struct, field by field.
    if !text.starts_with('{') {
        return Err(ErrorObject::invalid_params("`params` must be an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        // Slowly, once more, with the name of the field that does not fit.
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let why = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Err(error) => mcp::explain(&error),
            Ok(_) => error.to_string(),
        };
        ErrorObject::invalid_params(why)
    })
}
