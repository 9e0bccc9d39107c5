//! rmcp services as servers.

use std::future::pending;
use std::sync::Arc;

use oarlock_agent::tool::{RmcpServer, Server as _};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::host::{Host, OnDrop, within};

/// A service with a tool that answers, one that panics, one that notifies, and one that waits for ever.
#[derive(Clone, Default)]
struct Service {
    begun: Arc<Notify>,
    dropped: Arc<Notify>,
    cancelled: Arc<Notify>,
}

impl rmcp::ServerHandler for Service {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("inner", "9"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("answer", "Answers.", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, ErrorData> {
        match &*request.name {
            "answer" => Ok(CallToolResult::success(vec![ContentBlock::text("42")]).into()),
            "panic" => panic!("no"),
            "notify" => {
                context.peer.notify_tool_list_changed().await.unwrap();
                Ok(CallToolResult::success(vec![]).into())
            }
            "wait" => {
                let _guard = OnDrop::new(&self.dropped);
                let cancelled = Arc::clone(&self.cancelled);
                tokio::spawn(async move {
                    context.ct.cancelled().await;
                    cancelled.notify_one();
                });
                self.begun.notify_one();
                pending().await
            }
            other => Err(ErrorData::invalid_params(format!("unknown tool: {other}"), None)),
        }
    }
}

async fn greeted(service: &Service) -> Host<RmcpServer<Service>> {
    let host = Host::new(RmcpServer::new("inner", service.clone()));
    greet(&host).await;
    host
}

async fn greet(host: &Host<RmcpServer<Service>>) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2"},
    });
    let hello = host.ask("initialize", params).await;
    assert_eq!(host.tell("notifications/initialized", Value::Null).await, None);
    hello
}

#[tokio::test]
async fn a_service_is_initialised_listed_and_called_twice_over() {
    let host = Host::new(RmcpServer::new("inner", Service::default()));
    assert_eq!(host.server.name(), "inner");
    assert!(host.server.check().is_ok());
    for _ in 0..2 {
        let hello = greet(&host).await;
        assert_eq!(hello["result"]["serverInfo"], json!({"name": "inner", "version": "9"}));
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
        let list = host.ask("tools/list", Value::Null).await;
        assert_eq!(list["result"]["tools"][0]["name"], "answer");
        assert_eq!(host.call("answer", json!({})).await["content"][0]["text"], "42");
    }
}

#[tokio::test]
async fn errors_panics_and_nonsense_are_answered() {
    let host = Host::new(RmcpServer::new("inner", Service::default()));
    let early = host.ask("tools/list", Value::Null).await;
    assert_eq!(early["error"], json!({"code": -32600, "message": "`initialize` must come first"}));
    assert_eq!(host.tell("notifications/initialized", Value::Null).await, None);
    greet(&host).await;
    assert_eq!(
        host.ask("tools/call", json!({"name": "panic"})).await["error"]["message"],
        "the server panicked"
    );
    assert_eq!(host.ask("tools/call", json!({"name": "x"})).await["error"]["message"], "unknown tool: x");
    assert_eq!(host.ask("no/such", json!({})).await["error"]["code"], -32601);
    assert_eq!(host.message(json!([])).await.unwrap()["error"]["code"], -32600);
    assert_eq!(host.call("answer", json!({})).await["content"][0]["text"], "42");
    assert!(RmcpServer::new("two words", Service::default()).check().is_err());
}

#[tokio::test]
async fn a_service_that_refuses_to_begin_leaves_nobody_waiting() {
    struct Shy(Arc<Notify>);
    impl rmcp::ServerHandler for Shy {
        async fn initialize(
            &self,
            _: InitializeRequestParams,
            _: RequestContext<RoleServer>,
        ) -> Result<InitializeResult, ErrorData> {
            self.0.notified().await;
            Err(ErrorData::internal_error("not today", None))
        }
    }
    let go = Arc::new(Notify::new());
    let host = Host::new(RmcpServer::new("shy", Shy(Arc::clone(&go))));
    // The call is queued while the service still thinks about the handshake.
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "2"}});
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params});
    let hello = tokio::spawn(host.server.message(hello.into(), host.client.clone()));
    let (call, _) = host.start("answer", json!({}));
    go.notify_one();
    let refused = within("the refusal", hello).await.unwrap().unwrap().value();
    assert_eq!(refused["error"]["message"], "not today", "{refused}");
    let unheard = within("an answer", call).await.unwrap().unwrap();
    assert_eq!(unheard["error"]["code"], -32603, "{unheard}");
    assert_eq!(host.ask("tools/list", Value::Null).await["error"]["code"], -32603);
}

#[tokio::test]
async fn what_a_service_says_by_itself_goes_to_the_cli() {
    let host = greeted(&Service::default()).await;
    host.call("notify", json!({})).await;
    assert_eq!(host.sent()[0]["method"], "notifications/tools/list_changed");
    // And what the CLI answers goes to the service: one that it did not ask for is ignored.
    assert_eq!(host.message(json!({"jsonrpc": "2.0", "id": 0, "result": {}})).await, None);
}

#[tokio::test]
async fn a_cancelled_call_is_answered_and_its_token_fires() {
    let service = Service::default();
    let host = greeted(&service).await;
    let (call, id) = host.start("wait", json!({}));
    within("the call", service.begun.notified()).await;
    host.tell("notifications/cancelled", json!({"requestId": id})).await;
    let answer = within("the answer", call).await.unwrap().unwrap();
    assert_eq!(answer["id"], id);
    assert!(answer["error"]["message"].as_str().unwrap().contains("cancelled"), "{answer}");
    within("the token", service.cancelled.notified()).await;
}

#[tokio::test]
async fn dropping_the_answer_cancels_the_call() {
    let service = Service::default();
    let host = greeted(&service).await;
    let (call, _) = host.start("wait", json!({}));
    within("the call", service.begun.notified()).await;
    call.abort();
    within("the token", service.cancelled.notified()).await;
    assert_eq!(host.call("answer", json!({})).await["content"][0]["text"], "42");
}

#[tokio::test]
async fn a_call_outlives_a_second_handshake_and_nothing_outlives_the_session() {
    let service = Service::default();
    let host = greeted(&service).await;
    let (call, id) = host.start("wait", json!({}));
    within("the call", service.begun.notified()).await;
    greet(&host).await;
    // Its id comes again, and belongs to another call now.
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "answer"}});
    let answer = host.message(request).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "42", "{answer}");
    assert!(!call.is_finished());

    // The session ends: the core drops its client and every answer that is open.
    let tasks = tokio::runtime::Handle::current().metrics();
    assert!(tasks.num_alive_tasks() > 0);
    call.abort();
    drop(host);
    within("the drop", service.dropped.notified()).await;
    within("the end of all tasks", async {
        while tasks.num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
