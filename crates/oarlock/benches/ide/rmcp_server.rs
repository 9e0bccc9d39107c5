//! An rmcp server over the same socket code, with the same tools and replies of the same size.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification, CustomRequest,
    CustomResult, ServerCapabilities, ServerConfig, ServerNotification,
};
use rmcp::service::{NotificationContext, RequestContext, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::socket::{self, Select, Socket};

pub(crate) async fn serve(lock_dir: &Path, reply: &str) -> Result<()> {
    let reply: Value = serde_json::from_str(reply).context("--serve rmcp: the reply is not JSON")?;
    let text: Arc<str> = reply["content"][0]["text"].as_str().context("the reply has no text")?.into();
    let clients = Arc::default();
    let listener = socket::listen(lock_dir).await?;
    loop {
        let stream = socket::accept(&listener).await?;
        let tools = Tools { text: Arc::clone(&text), clients: Arc::clone(&clients) };
        tokio::spawn(async move {
            let (sink, stream) = socket::upgrade(stream).await?.split();
            let link = Link { sink: Arc::new(Mutex::new(sink)), stream };
            rmcp::serve_server(tools, link).await?.waiting().await?;
            anyhow::Ok(())
        });
    }
}

struct Tools {
    text: Arc<str>,
    clients: Arc<Mutex<Vec<Peer<RoleServer>>>>,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "getWorkspaceFolders" | "openDiff" => {
                Ok(CallToolResult::success(vec![ContentBlock::text(&*self.text)]).into())
            }
            name => Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.clients.lock().await.push(context.peer);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let wrong = |what: &str| ErrorData::invalid_params(what.to_owned(), None);
        let asked = request.params.map(serde_json::from_value::<Select>);
        let (socket::SELECT, Some(Ok(Select { line }))) = (&*request.method, asked) else {
            return Err(wrong("known is only bench/select"));
        };
        let selection: Value = serde_json::from_str(&socket::selection(line)).map_err(|_| wrong("line"))?;
        for client in &*self.clients.lock().await {
            let changed = CustomNotification::new("selection_changed", Some(selection.clone()));
            // One that has left is passed over.
            let _ = client.send_notification(ServerNotification::CustomNotification(changed)).await;
        }
        Ok(CustomResult::new(Value::Null))
    }
}

/// rmcp's transport over one WebSocket.
struct Link {
    sink: Arc<Mutex<SplitSink<Socket, Message>>>,
    stream: SplitStream<Socket>,
}

impl Transport<RoleServer> for Link {
    type Error = tungstenite::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sink = Arc::clone(&self.sink);
        async move {
            let text = serde_json::to_string(&item).map_err(|error| Self::Error::Io(error.into()))?;
            sink.lock().await.send(Message::text(text)).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Message::Text(text) = self.stream.next().await?.ok()? {
                return serde_json::from_str(&text).ok();
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.sink.lock().await.close().await
    }
}
