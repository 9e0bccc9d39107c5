//! Any rmcp service as a server.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::FutureExt as _;
use oarlock_proto::jsonrpc::{self, ErrorObject, INVALID_REQUEST, Message};
use rmcp::model::{ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::service::{
    NotificationContext, RequestContext, RoleServer, RxJsonRpcMessage, Service, ServiceExt as _, ServiceRole,
    TxJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::{Client, Connection, json};
use super::{BoxFuture, Server};
use crate::Error;
use crate::stream::Json;

/// How many messages may wait for the service. When it is full, the next one waits with the CLI's request.
const QUEUE: usize = 64;

/// Any [`rmcp`] service (whatever implements its `ServerHandler`) as a server inside this program, with tools, resources
/// and prompts.
///
/// ```
/// use oarlock_agent::tool::RmcpServer;
///
/// struct Nothing;
/// impl rmcp::ServerHandler for Nothing {}
///
/// let server = RmcpServer::new("nothing", Nothing);
/// ```
///
/// The service is shared by all sessions and, should the CLI shake hands twice, by all connections of one.
pub struct RmcpServer<S> {
    name: String,
    service: Arc<S>,
}

impl<S: Service<RoleServer>> RmcpServer<S> {
    /// A server with this name.
    pub fn new(name: impl Into<String>, service: S) -> Self {
        Self { name: name.into(), service: Arc::new(service) }
    }
}

impl<S: Service<RoleServer>> Server for RmcpServer<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn message(&self, message: Json, client: Client) -> BoxFuture<Option<Json>> {
        let inbound: RxJsonRpcMessage<RoleServer> = match message.read() {
            Ok(inbound) => inbound,
            Err(error) => return Box::pin(std::future::ready(refuse(&message, &error))),
        };
        let begins = matches!(&inbound, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_)));
        let run = if begins {
            // The one before lives on for as long as one of its requests is open.
            let run = Run::start(Arc::clone(&self.service), client.downgrade());
            Some(Arc::clone(client.run().insert(run)))
        } else {
            client.run().clone()
        };
        let asked = match &inbound {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        match (run, asked) {
            (Some(run), Some(id)) => run.ask(id, inbound),
            (Some(run), None) => run.tell(inbound),
            (None, None) => Box::pin(std::future::ready(None)),
            (None, Some(id)) => {
                let error = ErrorObject::new(INVALID_REQUEST, "`initialize` must come first");
                Box::pin(std::future::ready(Some(failure(&id, &error))))
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        super::function::check_name(&self.name)
            .map_err(|why| Error::Option { option: "tool_server", reason: format!("server: {why}") })
    }
}

impl<S> fmt::Debug for RmcpServer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RmcpServer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer to a message that rmcp cannot read.
fn refuse(message: &Json, why: &serde_json::Error) -> Option<Json> {
    match jsonrpc::read(message.text()) {
        Ok(Message::Request { id, .. }) => {
            Some(json(jsonrpc::write_error(&id, &ErrorObject::invalid_params(why.to_string()))))
        }
        Ok(_) => None,
        Err(malformed) => Some(json(jsonrpc::write_error(&malformed.id, &malformed.error))),
    }
}

fn failure(id: &RequestId, error: &ErrorObject) -> Json {
    Json::from(json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The service, running for one handshake of one session. When the last one that holds it lets go, it ends.
pub(super) struct Run {
    to_service: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Waiting>,
    _end: DropGuard,
}

/// The requests whose answers are awaited.
#[derive(Default)]
struct Waiting(Mutex<HashMap<RequestId, oneshot::Sender<Json>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Json>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn start<S: Service<RoleServer>>(service: Arc<S>, client: Weak<Connection>) -> Arc<Self> {
        let (to_service, from_cli) = mpsc::channel(QUEUE);
        let waiting = Arc::new(Waiting::default());
        let end = CancellationToken::new();
        let bridge = Bridge { from_cli, waiting: Arc::clone(&waiting), client };
        let shared = Shared { service, end: end.clone() };
        let run = Self { to_service, waiting: Arc::clone(&waiting), _end: end.clone().drop_guard() };
        // The run owns the task: when it is dropped, `end` fires, and both the handshake and the service stop.
        tokio::spawn(async move {
            match shared.serve_with_ct(bridge, end).await {
                Ok(service) => drop(service.waiting().await),
                Err(error) => tracing::debug!(%error, "an rmcp service did not start"),
            }
            // Nobody else will answer them.
            waiting.lock().clear();
        });
        Arc::new(run)
    }

    /// Hands a request over and waits for its answer.
    fn ask(self: Arc<Self>, id: RequestId, message: RxJsonRpcMessage<RoleServer>) -> BoxFuture<Option<Json>> {
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(id.clone(), sender);
        let asked = Asked { run: self, id };
        let unsent = asked.run.offer(message);
        Box::pin(async move {
            if let Some(message) = unsent
                && asked.run.to_service.send(message).await.is_err()
            {
                asked.run.waiting.lock().remove(&asked.id);
            }
            Some(answer.await.unwrap_or_else(|_| {
                failure(
                    &asked.id,
                    &ErrorObject::internal("the request was cancelled, or the server has ended"),
                )
            }))
        })
    }

    /// Hands over what needs no answer.
    fn tell(self: Arc<Self>, message: RxJsonRpcMessage<RoleServer>) -> BoxFuture<Option<Json>> {
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // rmcp keeps back the answer to what was cancelled, so nobody must wait for it.
            self.waiting.lock().remove(id);
        }
        let unsent = self.offer(message);
        Box::pin(async move {
            if let Some(message) = unsent {
                // A service that has ended need not know.
                let _ = self.to_service.send(message).await;
            }
            None
        })
    }

    /// Hands a message over at once, so that messages stay in order. What does not fit comes back.
    fn offer(&self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        match self.to_service.try_send(message) {
            Ok(()) => None,
            Err(TrySendError::Full(message) | TrySendError::Closed(message)) => Some(message),
        }
    }
}

/// A request that is open. Dropping it before there is an answer tells the service that none is wanted.
struct Asked {
    run: Arc<Run>,
    id: RequestId,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.run.waiting.lock().remove(&self.id).is_none() {
            return;
        }
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": self.id},
        });
        if let Ok(message) = serde_json::from_value(cancelled) {
            // With a full queue the service works in vain, and its answer is dropped.
            let _ = self.run.to_service.try_send(message);
        }
    }
}

/// The way between the service and the CLI.
struct Bridge {
    from_cli: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Waiting>,
    client: Weak<Connection>,
}

impl Transport<RoleServer> for Bridge {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let answered = id.and_then(|id| self.waiting.lock().remove(&id));
        let client = self.client.clone();
        async move {
            let json = Json::write(&message).unwrap_or_default();
            match (answered, &message) {
                // Whoever no longer waits has cancelled.
                (Some(sender), _) => drop(sender.send(json)),
                (None, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {}
                (None, _) => {
                    if let Some(client) = Client::upgrade(&client) {
                        client.send(json).await?;
                    }
                }
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.from_cli.recv().await
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.from_cli.close();
        Ok(())
    }
}

/// The service of one run: it ends with the run, and a panic in it is an answer.
struct Shared<S> {
    service: Arc<S>,
    end: CancellationToken,
}

impl<S: Service<RoleServer>> Shared<S> {
    async fn guard<T>(&self, work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
        // rmcp starts a task for each request. Left to itself, it would outlive the session, and die of a panic in silence.
        tokio::select! {
            biased;
            outcome = AssertUnwindSafe(work).catch_unwind() => {
                outcome.unwrap_or_else(|_| Err(ErrorData::internal_error("the server panicked", None)))
            }
            () = self.end.cancelled() => Err(ErrorData::internal_error("the session is over", None)),
        }
    }
}

impl<S: Service<RoleServer>> Service<RoleServer> for Shared<S> {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<<RoleServer as ServiceRole>::Resp, ErrorData> {
        self.guard(self.service.handle_request(request, context)).await
    }

    async fn handle_notification(
        &self,
        notification: <RoleServer as ServiceRole>::PeerNot,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.guard(self.service.handle_notification(notification, context)).await
    }

    fn get_info(&self) -> <RoleServer as ServiceRole>::Info {
        self.service.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.service.supported_protocol_versions()
    }
}
