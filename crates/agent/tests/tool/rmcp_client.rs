//! Another implementation of MCP as the client: what we understand of the protocol is not only our own idea of it.

use std::sync::Arc;

use oarlock_agent::stream::Json;
use oarlock_agent::tool::{Client, Image, NoArgs, Server, Structured, Tool, ToolCx, ToolServer};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::json;
use tokio::sync::mpsc;

use crate::host::within;
use crate::{Point, calc};

/// A client that keeps what it is notified of.
struct Listener(mpsc::Sender<String>);

impl rmcp::ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self
            .0
            .send(format!("progress {} of {:?}: {:?}", params.progress, params.total, params.message))
            .await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.0.send("tools changed".to_owned()).await;
    }
}

/// rmcp's client, joined to a server as the core would do it.
async fn connect(server: impl Server) -> (RunningService<RoleClient, Listener>, mpsc::Receiver<String>) {
    let server = Arc::new(server);
    let (to_client, from_server) = mpsc::channel::<RxJsonRpcMessage<RoleClient>>(16);
    let answers = to_client.clone();
    let client = Client::new(move |message: Json| {
        let to_client = to_client.clone();
        async move {
            to_client.send(message.read().unwrap()).await.unwrap();
            Ok(())
        }
    });
    let sink = futures_util::sink::unfold(server, move |server, message: TxJsonRpcMessage<RoleClient>| {
        let answer = server.message(Json::write(&message).unwrap(), client.clone());
        let answers = answers.clone();
        tokio::spawn(async move {
            if let Some(answer) = answer.await {
                // What rmcp cannot read would be our mistake. A client that has left needs no answer.
                let _ = answers.send(answer.read().unwrap()).await;
            }
        });
        async move { Ok::<_, std::io::Error>(server) }
    });
    let stream = futures_util::stream::unfold(from_server, async |mut messages| {
        Some((messages.recv().await?, messages))
    });
    let (heard, listening) = mpsc::channel(16);
    let service = Listener(heard).serve((Box::pin(sink), Box::pin(stream)));
    (within("the handshake", service).await.unwrap(), listening)
}

#[tokio::test]
async fn rmcps_client_initialises_lists_and_calls() {
    let (client, _) = connect(calc().instructions("Add with it.")).await;
    let server = serde_json::to_value(&*client.peer_info().unwrap()).unwrap();
    assert_eq!(server["serverInfo"]["name"], "calc", "{server}");
    assert_eq!(server["instructions"], "Add with it.");
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].name, "add");
    assert_eq!(tools[0].input_schema["required"], json!(["a", "b"]));

    let arguments = json!({"a": 2, "b": 3}).as_object().unwrap().clone();
    let call = CallToolRequestParams::new("add").with_arguments(arguments);
    let result = within("the call", client.call_tool(call)).await.unwrap();
    assert_eq!(serde_json::to_value(result).unwrap()["content"][0]["text"], "5");
    let wrong = within("the call", client.call_tool(CallToolRequestParams::new("add"))).await.unwrap();
    assert_eq!(wrong.is_error, Some(true));
    let unknown = within("the call", client.call_tool(CallToolRequestParams::new("mul"))).await;
    assert!(unknown.unwrap_err().to_string().contains("unknown tool: mul"));
}

#[tokio::test]
async fn rmcps_client_reads_hints_data_and_pictures() {
    let server = ToolServer::new("s")
        .tool(Tool::new("where", async || Structured(Point { x: 1, y: 2 })).read_only(true).title("Where"))
        .tool(Tool::new("plot", async || Image::png(b"foo")));
    let (client, _) = connect(server).await;
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].title.as_deref(), Some("Where"));
    assert_eq!(tools[0].annotations.as_ref().unwrap().read_only_hint, Some(true));
    assert!(tools[0].output_schema.is_some() && tools[1].output_schema.is_none());
    let result = within("the call", client.call_tool(CallToolRequestParams::new("where"))).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({"x": 1, "y": 2})));
    let result = within("the call", client.call_tool(CallToolRequestParams::new("plot"))).await.unwrap();
    let image = result.content[0].as_image().unwrap();
    assert_eq!((image.data.as_str(), image.mime_type.as_str()), ("Zm9v", "image/png"));
}

#[tokio::test]
async fn rmcps_client_hears_progress_and_changes() {
    let server = ToolServer::new("s").tool(Tool::new("work", |_: NoArgs, cx: ToolCx| async move {
        cx.progress(1.0, Some(2.0), "half").await;
    }));
    let (client, mut heard) = connect(server.clone()).await;
    // rmcp's client gives every request a progress token.
    within("the call", client.call_tool(CallToolRequestParams::new("work"))).await.unwrap();
    assert_eq!(
        within("the progress", heard.recv()).await.unwrap(),
        "progress 1 of Some(2.0): Some(\"half\")"
    );
    server.add(Tool::new("more", async || ())).await.unwrap();
    assert_eq!(within("the news", heard.recv()).await.unwrap(), "tools changed");
    assert_eq!(within("the list", client.list_all_tools()).await.unwrap().len(), 2);
}
