//! The ways in which a call can end, and calls beside each other.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oarlock_agent::stream::Json;
use oarlock_agent::tool::{NoArgs, Server as _, Tool, ToolCx, ToolServer};
use serde_json::json;
use tokio::sync::{Barrier, Notify};

use crate::host::{Host, OnDrop, within};

#[tokio::test]
async fn a_panic_is_an_answer_and_the_tool_lives_on() {
    let calls = AtomicUsize::new(0);
    // One panic before the future exists, one inside it.
    let tool = Tool::new("shaky", move |_: NoArgs| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        assert!(call != 0, "early {call}");
        async move {
            tokio::task::yield_now().await;
            if call == 1 {
                panic!("late");
            }
            call
        }
    })
    .serial();
    let raw = Tool::raw("raw", json!({"type": "object"}), |_: Json, _: ToolCx| {
        assert_eq!(1, 2, "raw");
        pending::<()>()
    });
    let host = Host::new(ToolServer::new("s").tool(tool).tool(raw));
    assert!(
        host.error_text("raw", json!({})).await.contains("panicked: assertion `left == right` failed: raw")
    );
    assert_eq!(host.error_text("shaky", json!({})).await, "the tool `shaky` panicked: early 0");
    assert_eq!(host.error_text("shaky", json!({})).await, "the tool `shaky` panicked: late");
    assert_eq!(host.call("shaky", json!({})).await["content"][0]["text"], "2");
}

/// What a tool that waits for ever tells about itself.
#[derive(Clone, Default)]
struct Watch {
    begun: Arc<Notify>,
    dropped: Arc<Notify>,
    fired: Arc<Notify>,
}

impl Watch {
    fn tool(&self) -> Tool {
        let watch = self.clone();
        Tool::new("wait", move |_: NoArgs, cx: ToolCx| {
            let (guard, fired, begun) =
                (OnDrop::new(&watch.dropped), Arc::clone(&watch.fired), Arc::clone(&watch.begun));
            async move {
                let _guard = guard;
                let token = cx.cancellation();
                tokio::spawn(async move {
                    token.cancelled().await;
                    fired.notify_one();
                });
                begun.notify_one();
                pending::<()>().await;
            }
        })
    }

    fn server(&self) -> ToolServer {
        ToolServer::new("s").tool(self.tool())
    }

    async fn begun(&self) {
        within("the call", self.begun.notified()).await;
    }

    async fn is_over(&self) {
        within("the drop", self.dropped.notified()).await;
        within("the token", self.fired.notified()).await;
    }
}

fn running<S>(host: &Host<S>) -> String {
    format!("{:?}", host.client)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_stopped_and_the_model_is_told() {
    let watch = Watch::default();
    let host = Host::new(ToolServer::new("s").tool(watch.tool().timeout(Duration::from_secs(5))));
    let text = host.error_text("wait", json!({})).await;
    assert_eq!(text, "the tool `wait` took longer than 5s and was stopped");
    watch.is_over().await;
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_answered_and_forgotten() {
    let watch = Watch::default();
    let host = Host::new(watch.server());
    let (call, id) = host.start("wait", json!({}));
    watch.begun().await;
    assert!(running(&host).contains("calls: 1"));
    host.tell("notifications/cancelled", json!({"requestId": id + 100})).await;
    assert!(!call.is_finished());
    host.tell("notifications/cancelled", json!({"requestId": id, "reason": "AbortError"})).await;
    let answer = within("the answer", call).await.unwrap().unwrap();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["content"][0]["text"], "the tool `wait` was cancelled");
    watch.is_over().await;
    assert!(running(&host).contains("calls: 0"));
}

#[tokio::test]
async fn a_cancellation_right_behind_its_call_is_not_lost() {
    let host = Host::new(Watch::default().server());
    // The call's future is not polled before the cancellation is there.
    let request = json!({"id": 7, "method": "tools/call", "params": {"name": "wait"}});
    let call = host.server.message(request.into(), host.client.clone());
    host.tell("notifications/cancelled", json!({"requestId": 7})).await;
    assert!(within("the answer", call).await.unwrap().text().contains("was cancelled"));
}

#[tokio::test]
async fn dropping_the_answer_drops_the_call() {
    let watch = Watch::default();
    let host = Host::new(watch.server());
    let (call, _) = host.start("wait", json!({}));
    watch.begun().await;
    call.abort();
    watch.is_over().await;
    assert!(running(&host).contains("calls: 0"));
}

#[tokio::test]
async fn a_cancellation_in_one_session_leaves_the_others_alone() {
    let watch = Watch::default();
    let server = watch.server();
    let (one, other) = (Host::new(server.clone()), Host::new(server));
    let (first, first_id) = one.start("wait", json!({}));
    watch.begun().await;
    let (second, second_id) = other.start("wait", json!({}));
    watch.begun().await;
    assert_eq!(first_id, second_id);
    one.tell("notifications/cancelled", json!({"requestId": first_id})).await;
    within("the first answer", first).await.unwrap();
    assert!(!second.is_finished() && running(&other).contains("calls: 1"));
}

#[tokio::test]
async fn after_a_second_handshake_a_cancellation_means_the_newest_call_with_its_id() {
    let watch = Watch::default();
    let host = Host::new(watch.server());
    let request = json!({"id": 2, "method": "tools/call", "params": {"name": "wait"}});
    let mut calls = Vec::new();
    for _ in 0..2 {
        calls.push(tokio::spawn(host.server.message(request.clone().into(), host.client.clone())));
        watch.begun().await;
    }
    for _ in 0..2 {
        host.tell("notifications/cancelled", json!({"requestId": 2})).await;
        within("the newest answer", calls.pop().unwrap()).await.unwrap();
        assert!(calls.iter().all(|older| !older.is_finished()));
    }
}

#[tokio::test(start_paused = true)]
async fn with_grace_a_tool_can_tidy_up_but_not_for_ever() {
    let tidy = Tool::new("tidy", |_: NoArgs, cx: ToolCx| async move {
        cx.cancelled().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        "rolled back"
    })
    .grace(Duration::from_secs(2));
    let stubborn = Tool::new("stubborn", async || pending::<()>().await).grace(Duration::from_secs(2));
    let host = Host::new(ToolServer::new("s").tool(tidy).tool(stubborn));
    for (name, text) in [("tidy", "rolled back"), ("stubborn", "the tool `stubborn` was cancelled")] {
        let (call, id) = host.start(name, json!({}));
        host.tell("notifications/cancelled", json!({"requestId": id})).await;
        let answer = within("the answer", call).await.unwrap().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], text);
    }
}

#[tokio::test]
async fn calls_run_at_the_same_time() {
    let meet = Arc::new(Barrier::new(8));
    let tool = Tool::new("meet", move || {
        let meet = Arc::clone(&meet);
        async move { meet.wait().await.is_leader() }
    });
    let host = Host::new(ToolServer::new("s").tool(tool));
    // None of them can end before all have begun.
    let calls = futures_util::future::join_all((0..8).map(|_| host.call("meet", json!({}))));
    let answers = within("eight calls", calls).await;
    assert_eq!(answers.iter().filter(|answer| answer["content"][0]["text"] == "true").count(), 1);
}

#[tokio::test]
async fn calls_of_a_serial_tool_wait_for_each_other() {
    async fn most_inside(make: impl FnOnce(Tool) -> Tool) -> usize {
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let tool = Tool::new("one", move || {
            let (inside, most) = (Arc::clone(&inside), Arc::clone(&seen));
            async move {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        });
        let host = Host::new(ToolServer::new("s").tool(make(tool)));
        futures_util::future::join_all((0..8).map(|_| host.call("one", json!({})))).await;
        most.load(Ordering::SeqCst)
    }
    assert_eq!(most_inside(Tool::serial).await, 1);
    assert_eq!(most_inside(|tool| tool).await, 8);
}
