//! A client on the Rust SDK: plays the plan in its argument, and prints what came of it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, LoadSessionRequest, NewSessionRequest,
    PermissionOptionKind, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
    TextContent,
};
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What the client has heard.
#[derive(Default)]
struct Heard {
    text: Mutex<String>,
    asked: Mutex<u32>,
    spoke: Notify,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan: Value = serde_json::from_str(&std::env::args().nth(1).expect("a plan"))?;
    let word = |name: &str| plan[name].as_str().map(str::to_owned);
    let agent = AcpAgent::new(AcpAgentConfig::new(word("agent").expect("an agent")).arg("acp"));
    let cwd = PathBuf::from(word("cwd").expect("a directory"));
    let prompt = word("prompt").expect("a prompt");
    let (session, cancels) = (word("session"), plan["scenario"] == "cancel");
    let heard = Arc::new(Heard::default());
    let (on_update, on_ask, at_end) = (Arc::clone(&heard), Arc::clone(&heard), Arc::clone(&heard));

    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                if let SessionUpdate::AgentMessageChunk(chunk) = notification.update
                    && let ContentBlock::Text(words) = chunk.content
                {
                    on_update.text.lock().unwrap().push_str(&words.text);
                    on_update.spoke.notify_one();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                *on_ask.asked.lock().unwrap() += 1;
                let once = request.options.iter().find(|option| option.kind == PermissionOptionKind::AllowOnce);
                let outcome = match once {
                    Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                        option.option_id.clone(),
                    )),
                    None => RequestPermissionOutcome::Cancelled,
                };
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, |connection: ConnectionTo<Agent>| async move {
            connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let id = match session {
                Some(session) => {
                    let id = SessionId::new(session);
                    let load = LoadSessionRequest::new(id.clone(), cwd);
                    connection.send_request(load).block_task().await?;
                    id
                }
                None => connection.send_request(NewSessionRequest::new(cwd)).block_task().await?.session_id,
            };
            let words = vec![ContentBlock::Text(TextContent::new(prompt))];
            let turn = connection.send_request(PromptRequest::new(id.clone(), words)).block_task();
            let cancel = async {
                if cancels {
                    heard.spoke.notified().await;
                    connection.send_notification(CancelNotification::new(id.clone()))?;
                }
                Ok::<_, agent_client_protocol::Error>(())
            };
            let (turn, cancel) = tokio::join!(turn, cancel);
            cancel?;
            let said = json!({
                "text": *at_end.text.lock().unwrap(), "stop": turn?.stop_reason, "asked": *at_end.asked.lock().unwrap(),
            });
            println!("{said}");
            Ok(())
        })
        .await?;
    Ok(())
}
