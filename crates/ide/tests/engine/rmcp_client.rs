//! Another implementation of MCP as the client: what we understand of the protocol is not only our own idea of it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures_util::{SinkExt as _, StreamExt as _, future};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ClientRequest, PingRequest, ServerResult};
use rmcp::service::{RoleClient, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use crate::support::{Rig, within};

/// rmcp's client over tokio-tungstenite.
async fn connect(rig: &Rig) -> RunningService<RoleClient, ()> {
    let mut request = format!("ws://127.0.0.1:{}/mcp", rig.port()).into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("Sec-WebSocket-Protocol", "mcp".parse().unwrap());
    headers.insert("X-Claude-Code-Ide-Authorization", rig.token().parse().unwrap());
    let stream = TcpStream::connect(("127.0.0.1", rig.port())).await.unwrap();
    let (socket, answer) =
        within("the upgrade", tokio_tungstenite::client_async(request, stream)).await.unwrap();
    assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], "mcp");
    let (sink, stream) = socket.split();
    let sink = sink.with(|message: TxJsonRpcMessage<RoleClient>| {
        future::ready(Ok::<_, WsError>(Message::text(serde_json::to_string(&message).unwrap())))
    });
    let stream = stream.filter_map(|message| {
        let text = message.ok().and_then(|message| message.into_text().ok()).filter(|text| !text.is_empty());
        // What rmcp cannot read would be our mistake.
        future::ready(text.map(|text| serde_json::from_str::<RxJsonRpcMessage<RoleClient>>(&text).unwrap()))
    });
    within("the handshake", ().serve((Box::pin(sink), Box::pin(stream)))).await.unwrap()
}

#[tokio::test]
async fn rmcps_client_initialises_lists_calls_and_pings() {
    let rig = Rig::start().await;
    let client = connect(&rig).await;
    let server = client.peer_info().unwrap();
    let told = serde_json::to_value(&*server).unwrap();
    assert_eq!(told["serverInfo"]["name"], "oarlock", "{told}");
    assert_eq!(told["capabilities"]["tools"]["listChanged"], true);

    let tools = within("the list", client.list_all_tools()).await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert!(names.contains(&"getWorkspaceFolders") && !names.contains(&"openDiff"), "{names:?}");

    let call = CallToolRequestParams::new("getWorkspaceFolders");
    let result = within("the call", client.call_tool(call)).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["rootPath"], json!(rig.home.workspace));

    let ping = ClientRequest::PingRequest(PingRequest::default());
    let pong = within("the ping", client.send_request(ping)).await.unwrap();
    assert!(matches!(pong, ServerResult::EmptyResult(_)), "{pong:?}");
    within("the goodbye", client.cancel()).await.unwrap();
    rig.events.wait("client_gone", 1).await;
}

#[tokio::test]
async fn rmcps_client_reads_errors_and_answers_our_pings() {
    let rig = Rig::with(|options| {
        options.keepalive = Some(oarlock_ide::Keepalive {
            every: std::time::Duration::from_millis(50),
            dead_after: std::time::Duration::from_millis(500),
        });
    })
    .await;
    let client = connect(&rig).await;
    let missing = within("the call", client.call_tool(CallToolRequestParams::new("openFile"))).await;
    assert!(missing.unwrap_err().to_string().contains("filePath"));
    let refused = within("the call", client.call_tool(CallToolRequestParams::new("openDiff"))).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    // Dozens of pings later it is still there.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let tools = within("the list", client.list_all_tools()).await;
    assert!(tools.is_ok() && rig.events.named("client_gone").is_empty());
}
