//! A connection's promises, over in-memory frames.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use oarlock_proto::jsonrpc::ErrorObject;
use oarlock_wire::frame::{Memory, memory};
use oarlock_wire::{Close, Connection, Ended, Frames, Limits, Responder, Service, Tasks};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Answers `echo`, holds `hold` until told, panics on `panic`, forgets `forget`.
struct Echo {
    release: Arc<Notify>,
}

impl Service for Echo {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder, tasks: &mut Tasks) {
        match method {
            "echo" => responder.reply(&params),
            "hold" => {
                let release = self.release.clone();
                tasks.add(async move {
                    release.notified().await;
                    responder.reply(&"released");
                });
            }
            "panic" => panic!("on purpose"),
            "panic later" => tasks.add(async move {
                let _responder = responder;
                tokio::task::yield_now().await;
                panic!("on purpose");
            }),
            "forget" => drop(responder),
            other => responder.error(&ErrorObject::method_not_found(other)),
        }
    }

    fn notification(&mut self, _method: &str, _params: Option<&RawValue>, _tasks: &mut Tasks) {}

    fn closed(&mut self, _ended: &Ended) {
        self.release.notify_waiters();
    }
}

struct Rig {
    client: Memory,
    release: Arc<Notify>,
    peer: oarlock_wire::Peer,
    task: tokio::task::JoinHandle<Ended>,
}

fn rig(limits: Limits) -> Rig {
    let (client, server) = memory(8);
    let release = Arc::new(Notify::new());
    let connection = Connection::new(server, limits);
    let peer = connection.peer();
    let task = tokio::spawn(connection.run(Echo { release: release.clone() }));
    Rig { client, release, peer, task }
}

impl Rig {
    async fn send(&mut self, text: &str) {
        std::future::poll_fn(|cx| self.client.poll_ready(cx)).await.unwrap();
        self.client.start_send(text.to_owned()).unwrap();
    }

    async fn receive(&mut self) -> Value {
        let next = std::future::poll_fn(|cx| self.client.poll_next(cx));
        let text = tokio::time::timeout(Duration::from_secs(5), next).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[tokio::test]
async fn every_request_is_answered_once_whatever_its_service_does() {
    let mut rig = rig(Limits::default());
    for (id, method, code) in
        [(1, "panic", -32603), (2, "panic later", -32603), (3, "forget", -32603), (4, "nope", -32601)]
    {
        rig.send(&json!({"id": id, "method": method}).to_string()).await;
        let answer = rig.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(code)), "{method}");
    }
    rig.send("{bad").await;
    assert_eq!(rig.receive().await["error"]["code"], -32700);
    rig.send(r#"{"id":"x","method":"echo","params":[1]}"#).await;
    assert_eq!(rig.receive().await, json!({"jsonrpc": "2.0", "id": "x", "result": [1]}));
}

#[tokio::test]
async fn a_held_request_holds_no_other() {
    let mut rig = rig(Limits::default());
    rig.send(r#"{"id":1,"method":"hold"}"#).await;
    rig.send(r#"{"id":2,"method":"echo"}"#).await;
    assert_eq!(rig.receive().await["id"], 2);
    rig.release.notify_waiters();
    assert_eq!(rig.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": "released"}));
}

#[tokio::test]
async fn one_request_too_many_is_refused_and_the_others_live() {
    let mut rig = rig(Limits { pending: 2, ..Limits::default() });
    for id in 1..=3 {
        rig.send(&json!({"id": id, "method": "hold"}).to_string()).await;
    }
    let refused = rig.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32000)));
    rig.release.notify_waiters();
    let mut ids = [rig.receive().await["id"].as_u64(), rig.receive().await["id"].as_u64()];
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_closed() {
    let rig = rig(Limits { queued: 1000, ..Limits::default() });
    // Eight messages fit into the memory connection; then the outbox fills.
    let mut sent = 0;
    while rig.peer.notify("n", &"x".repeat(100)) {
        sent += 1;
        tokio::task::yield_now().await;
        assert!(sent < 100, "never closed");
    }
    assert!(matches!(rig.task.await.unwrap(), Ended::ByUs(Close { code: 1008, .. })));
}

#[tokio::test]
async fn closing_lets_held_requests_answer_first() {
    let mut rig = rig(Limits::default());
    rig.send(r#"{"id":1,"method":"hold"}"#).await;
    rig.send(r#"{"id":2,"method":"echo"}"#).await;
    assert_eq!(rig.receive().await["id"], 2);
    rig.peer.close(Close::going_away());
    assert_eq!(rig.receive().await["result"], "released");
    assert!(std::future::poll_fn(|cx| rig.client.poll_next(cx)).await.is_none());
}

#[tokio::test]
async fn our_requests_are_matched_to_their_answers() {
    let mut rig = rig(Limits::default());
    let peer = rig.peer.clone();
    let asked = tokio::spawn(async move { peer.request("ping", &()).await });
    let request = rig.receive().await;
    rig.send(r#"{"id":999,"result":{}}"#).await;
    rig.send(&json!({"id": request["id"], "result": {"a": 1}}).to_string()).await;
    assert_eq!(asked.await.unwrap().unwrap().get(), r#"{"a":1}"#);
    let peer = rig.peer.clone();
    let asked = tokio::spawn(async move { peer.request("ping", &()).await });
    rig.receive().await;
    drop(rig.client);
    assert!(asked.await.unwrap().is_err());
}
