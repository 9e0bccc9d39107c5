//! A host that calls servers as the core does: one client a session, every message in its own task.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarlock_agent::stream::Json;
use oarlock_agent::tool::{Client, Server};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) struct Host<S> {
    pub(crate) server: S,
    pub(crate) client: Client,
    sent: Arc<Mutex<Vec<Value>>>,
    next: AtomicU64,
}

impl<S: Server> Host<S> {
    pub(crate) fn new(server: S) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        let client = Client::new(move |message: Json| {
            kept.lock().unwrap().push(message.value());
            async { Ok(()) }
        });
        Self { server, client, sent, next: AtomicU64::new(0) }
    }

    /// What the server sent on its own.
    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().unwrap().clone()
    }

    pub(crate) async fn raw(&self, message: Json) -> Option<Value> {
        // What is called here, in order, is only the making of the future: so does the core.
        let answer = tokio::spawn(self.server.message(message, self.client.clone()));
        within("an answer", answer).await.unwrap().map(|answer| answer.value())
    }

    pub(crate) async fn message(&self, message: Value) -> Option<Value> {
        self.raw(message.into()).await
    }

    pub(crate) async fn tell(&self, method: &str, params: Value) -> Option<Value> {
        self.message(json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.message(request).await.unwrap();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["jsonrpc"], "2.0");
        answer
    }

    /// The result of a call.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The text of a call that must fail.
    pub(crate) async fn error_text(&self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments).await;
        assert_eq!(answer["isError"], true, "{answer}");
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Begins a call and gives its id.
    pub(crate) fn start(&self, name: &str, arguments: Value) -> (JoinHandle<Option<Value>>, u64) {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let params = json!({"name": name, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let answer = self.server.message(request.into(), self.client.clone());
        (tokio::spawn(async move { answer.await.map(|answer| answer.value()) }), id)
    }
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("{what} did not come in {limit:?}"))
}

/// Tells when it is dropped.
pub(crate) struct OnDrop(Arc<Notify>);

impl OnDrop {
    pub(crate) fn new(notify: &Arc<Notify>) -> Self {
        Self(Arc::clone(notify))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
