//! What the CLI asks of the program: permissions, hooks, in-process tools, elicitations, dialogs.
//!
//! Each question runs in a task of its own and is answered exactly once, also when the callback panics, takes too long or
//! is not there. A withdrawn one is dropped.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::dialog::Question;
use crate::hook::{HookCall, Registered};
use crate::permission::{Decision, PermissionRequest};
use crate::stream::hook::{HookMatcher, HookOutput};
use crate::stream::{
    ControlRequest, ControlResponse, Elicitation, Initialize, Json, Message, Request, RequestUserDialog,
    reply,
};
use crate::tool::{BoxFuture, Client, Server};

/// The body of an answer, or why there is none.
type Reply = Result<Json, String>;
type Callback<A, R> = Arc<dyn Fn(A) -> BoxFuture<R> + Send + Sync>;

/// Sends a message to the CLI in the name of one of the program's MCP servers.
pub(crate) type SendFromServer =
    Arc<dyn Fn(String, Json) -> BoxFuture<Result<(), crate::Error>> + Send + Sync>;

/// What a program has asked to be called for.
#[derive(Clone, Default)]
pub(crate) struct Callbacks {
    pub(crate) can_use_tool: Option<Callback<PermissionRequest, Decision>>,
    pub(crate) permission_timeout: Option<Duration>,
    pub(crate) hooks: Vec<Registered>,
    pub(crate) servers: Vec<Arc<dyn Server>>,
    pub(crate) elicitation: Option<Callback<Question<Elicitation>, reply::Elicitation>>,
    pub(crate) dialog: Option<Callback<Question<RequestUserDialog>, Reply>>,
    pub(crate) other: Option<Callback<Question<Request>, Option<Reply>>>,
}

impl Callbacks {
    /// Tells the CLI what there is.
    pub(crate) fn announce(&self, initialize: &mut Initialize) {
        if !self.hooks.is_empty() {
            let mut hooks: BTreeMap<String, Vec<HookMatcher>> = BTreeMap::new();
            for (index, Registered { hook, .. }) in self.hooks.iter().enumerate() {
                hooks.entry(hook.event.clone()).or_default().push(HookMatcher {
                    matcher: hook.matcher.clone(),
                    hook_callback_ids: vec![format!("hook_{index}")],
                    // A little more than ours, so that our answer is the one that counts.
                    timeout: hook.timeout.map(|limit| (limit.as_secs() + 5).into()),
                    on_failure: Some(if hook.blocks_on_failure() { "block" } else { "continue" }.into()),
                    ..Default::default()
                });
            }
            initialize.hooks = Some(hooks);
        }
        if !self.servers.is_empty() {
            let names = self.servers.iter().map(|server| server.name().to_owned());
            initialize.sdk_mcp_servers.get_or_insert_default().extend(names);
        }
    }
}

/// More questions at once than any CLI has; the rest is refused, so that a broken one cannot fill our memory.
const AT_ONCE: usize = 1000;

/// The questions that are open.
pub(crate) struct Calls {
    callbacks: Callbacks,
    tasks: JoinSet<Json>,
    open: HashMap<String, Open>,
    ids: HashMap<Id, String>,
    /// The CLI, as each of the program's MCP servers sees it.
    clients: Vec<Client>,
}

struct Open {
    task: AbortHandle,
    withdrawn: CancellationToken,
    /// The answer when the callback panics.
    fallback: Fallback,
}

/// What is answered in a callback's place.
#[derive(Clone)]
enum Fallback {
    Answer(Json),
    Error,
}

impl Calls {
    pub(crate) fn new(callbacks: Callbacks, send: SendFromServer) -> Self {
        let clients = callbacks.servers.iter().map(|server| {
            let (send, name) = (send.clone(), server.name().to_owned());
            Client::new(move |message| send(name.clone(), message))
        });
        let clients = clients.collect();
        Self { callbacks, tasks: JoinSet::new(), open: HashMap::new(), ids: HashMap::new(), clients }
    }

    /// How many run.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Takes a question. Some answers are there at once.
    pub(crate) fn take(
        &mut self,
        ControlRequest { request_id, request, .. }: ControlRequest,
    ) -> Option<String> {
        if self.tasks.len() >= AT_ONCE {
            return Some(refuse(&request_id, "too many questions are open"));
        }
        // An answer must be about what was asked last under its id.
        self.withdraw(&request_id);
        let withdrawn = CancellationToken::new();
        let mut fallback = Fallback::Error;
        let id = request_id.clone();
        let work: BoxFuture<Json> = match request {
            Request::CanUseTool(ask) => {
                let Some(decide) = self.callbacks.can_use_tool.clone() else {
                    return Some(refuse(&request_id, "this program does not decide about tools"));
                };
                fallback =
                    Fallback::Answer(body(&Decision::deny("the program's permission callback failed")));
                let limit = self.callbacks.permission_timeout;
                let input = ask.input.clone();
                let ask = PermissionRequest::new(id.clone(), *ask).withdrawn_by(withdrawn.clone());
                Box::pin(async move {
                    let decision = within(limit, decide(ask)).await;
                    let late = || Decision::deny("the program did not decide about this tool in time");
                    let mut decision = decision.unwrap_or_else(late);
                    if let Decision::Allow(allow) = &mut decision {
                        // 2.1.197 insists on an input.
                        allow.updated_input.get_or_insert(input);
                    }
                    success(&id, &decision)
                })
            }
            Request::HookCallback(hook) => {
                let index =
                    hook.callback_id.strip_prefix("hook_").and_then(|index| index.parse::<usize>().ok());
                let Some(registered) = index.and_then(|index| self.callbacks.hooks.get(index)).cloned()
                else {
                    return Some(refuse(&request_id, &format!("there is no hook {}", hook.callback_id)));
                };
                let event = hook.input.event.clone();
                let blocks = registered.hook.blocks_on_failure();
                let instead = move |reason: &str| match blocks {
                    true => crate::hook::deny(&event, reason.into()),
                    false => HookOutput::default(),
                };
                fallback = Fallback::Answer(body(&instead("the program's hook failed")));
                let call = HookCall {
                    input: hook.input,
                    tool_use_id: hook.tool_use_id,
                    withdrawn: withdrawn.clone(),
                };
                Box::pin(async move {
                    let output = within(registered.hook.timeout, (registered.callback)(call)).await;
                    success(&id, &output.unwrap_or_else(|| instead("the program's hook took too long")))
                })
            }
            Request::McpMessage(message) => {
                let mut servers = self.callbacks.servers.iter().zip(&self.clients);
                let Some((server, client)) = servers.find(|(server, _)| server.name() == message.server_name)
                else {
                    return Some(refuse(
                        &request_id,
                        &format!("there is no MCP server {}", message.server_name),
                    ));
                };
                // Called here and not in the task, so that a server hears messages in their order.
                let message = || server.message(message.message, client.clone());
                let Ok(work) = catch_unwind(AssertUnwindSafe(message)) else {
                    return Some(refuse(&request_id, "the program's MCP server failed"));
                };
                Box::pin(async move {
                    // A notification wants an answer too, or the CLI waits.
                    let none = || json!({"jsonrpc": "2.0", "result": {}, "id": 0}).into();
                    let answer = work.await.unwrap_or_else(none);
                    success(&id, &reply::McpMessage { mcp_response: answer, ..Default::default() })
                })
            }
            Request::Elicitation(ask) => match self.callbacks.elicitation.clone() {
                Some(elicit) => {
                    fallback = Fallback::Answer(body(&decline()));
                    let ask = Question::new(id.clone(), *ask).withdrawn_by(withdrawn.clone());
                    Box::pin(async move { success(&id, &elicit(ask).await) })
                }
                None => return Some(line(success(&request_id, &decline()))),
            },
            Request::RequestUserDialog(ask) if self.callbacks.dialog.is_some() => {
                let Some(show) = self.callbacks.dialog.clone() else { unreachable!("there is one") };
                let ask = Question::new(id.clone(), ask).withdrawn_by(withdrawn.clone());
                Box::pin(async move { answer(&id, show(ask).await) })
            }
            other => {
                let tag = other.tag().to_owned();
                let unknown = format!("this program does not answer {tag}");
                let Some(callback) = self.callbacks.other.clone() else {
                    return Some(refuse(&request_id, &unknown));
                };
                let ask = Question::new(id.clone(), other).withdrawn_by(withdrawn.clone());
                Box::pin(async move { answer(&id, callback(ask).await.unwrap_or(Err(unknown))) })
            }
        };
        let task = self.tasks.spawn(work);
        self.ids.insert(task.id(), request_id.clone());
        self.open.insert(request_id, Open { task, withdrawn, fallback });
        None
    }

    /// The CLI no longer wants an answer.
    pub(crate) fn withdraw(&mut self, request_id: &str) {
        if let Some(open) = self.open.remove(request_id) {
            open.withdrawn.cancel();
            open.task.abort();
        }
    }

    /// The next answer. `None` when nothing runs. A withdrawn question has an empty one.
    pub(crate) async fn next(&mut self) -> Option<Option<String>> {
        let done = self.tasks.join_next_with_id().await?;
        Some(self.settle(done))
    }

    fn settle(&mut self, done: Result<(Id, Json), JoinError>) -> Option<String> {
        let (id, answer) = match done {
            Ok((id, answer)) => (id, Ok(answer)),
            Err(error) => (error.id(), Err(error)),
        };
        let request_id = self.ids.remove(&id)?;
        // A withdrawn question may have been asked anew under the same id: that one is still open.
        self.open.get(&request_id).filter(|open| open.task.id() == id)?;
        let open = self.open.remove(&request_id)?;
        Some(match answer {
            Ok(answer) => line(answer),
            Err(error) => {
                tracing::warn!(request = %request_id, panicked = error.is_panic(), "a callback failed");
                match open.fallback {
                    Fallback::Answer(body) => {
                        line(envelope(&ControlResponse::success(request_id, Some(body))))
                    }
                    Fallback::Error => refuse(&request_id, "the program's callback failed"),
                }
            }
        })
    }

    /// The session is over.
    pub(crate) fn abort(&mut self) {
        for open in self.open.values() {
            open.withdrawn.cancel();
        }
        self.open.clear();
        self.tasks.abort_all();
        self.clients.clear();
    }
}

async fn within<T>(limit: Option<Duration>, work: BoxFuture<T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

/// Nobody is there to be asked.
fn decline() -> reply::Elicitation {
    reply::Elicitation { action: reply::ElicitationAction::Decline, ..Default::default() }
}

fn body<T: serde::Serialize>(value: &T) -> Json {
    Json::write(value).unwrap_or_default()
}

fn success<T: serde::Serialize>(request_id: &str, value: &T) -> Json {
    envelope(&ControlResponse::success(request_id, Some(body(value))))
}

fn answer(request_id: &str, result: Reply) -> Json {
    envelope(&match result {
        Ok(body) => ControlResponse::success(request_id, Some(body)),
        Err(error) => ControlResponse::error(request_id, error),
    })
}

fn envelope(response: &ControlResponse) -> Json {
    body(&Message::ControlResponse(response.clone()))
}

fn refuse(request_id: &str, error: &str) -> String {
    line(envelope(&ControlResponse::error(request_id, error)))
}

fn line(json: Json) -> String {
    json.text().to_owned()
}
