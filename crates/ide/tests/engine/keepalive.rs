//! Finding out that a client is dead, without killing one that lives.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use oarlock_ide::Keepalive;
use serde_json::json;

use crate::support::{Call, Rig, TEXT, diff, frame};

const QUICK: Keepalive =
    Keepalive { every: Duration::from_millis(100), dead_after: Duration::from_millis(100) };

async fn rig() -> Rig {
    Rig::with(|options| options.keepalive = Some(QUICK)).await
}

#[tokio::test]
async fn pings_come_after_initialized_and_not_before() {
    let rig = rig().await;
    let mut client = rig.client().await;
    client.request("initialize", json!({})).await;
    client.request("tools/list", json!({})).await;
    assert_eq!(client.notifications("ping", Duration::from_millis(400)).await.len(), 0);
    client.notify("notifications/initialized", json!(null)).await;
    let start = Instant::now();
    client.notification("ping").await;
    assert!(start.elapsed() >= Duration::from_millis(90), "{:?}", start.elapsed());
    assert!(client.heard.last().unwrap().contains(r#""id":"#), "a ping is a request");
}

#[tokio::test]
async fn a_client_that_answers_is_pinged_again_and_again_and_lives() {
    let rig = rig().await;
    let mut client = rig.cli().await;
    let pings = client.notifications("ping", Duration::from_millis(900)).await.len();
    assert!((4..=9).contains(&pings), "{pings}");
    client.settle_accounts().await;
}

#[tokio::test]
async fn a_refusal_is_a_sign_of_life() {
    let rig = rig().await;
    let mut client = rig.mcp().await;
    client.answers_pings = false;
    for _ in 0..4 {
        let ping = client.receive().await;
        assert_eq!(ping["method"], "ping");
        let error = json!({"code": -32601, "message": "Method not found"});
        client.send(&json!({"jsonrpc": "2.0", "id": ping["id"], "error": error})).await;
    }
    client.settle_accounts().await;
}

#[tokio::test]
async fn ide_net_07_a_silent_client_is_dropped_and_freed() {
    // Silence under the default settings is noticed within 30 s.
    let Keepalive { every, dead_after } = Keepalive::default();
    assert_eq!((every, dead_after), (Duration::from_secs(5), Duration::from_secs(3)));
    assert!(every + 3 * (every + dead_after) < Duration::from_secs(30), "also while a diff waits");

    let rig = rig().await;
    let mut other = rig.cli().await;
    let mut client = rig.mcp().await;
    client.answers_pings = false;
    let start = Instant::now();
    let others_life = async {
        other.notifications("ping", Duration::from_millis(800)).await;
    };
    let ((code, reason), ()) = tokio::join!(async { client.closed().await.unwrap() }, others_life);
    assert_eq!(code, 1001);
    assert!(reason.contains("sign of life"), "{reason}");
    assert!(start.elapsed() < Duration::from_secs(3));
    let gone = rig.events.wait("client_gone", 1).await;
    assert_eq!(gone["client"], 2);
    assert_eq!(rig.server.ide().clients().len(), 1);
    other.ping().await;
}

#[tokio::test]
async fn any_byte_is_a_sign_of_life() {
    let rig = rig().await;
    let mut client = rig.mcp().await;
    client.answers_pings = false;
    // A message that arrives byte by byte: not one frame is complete in all that time.
    let slow = frame(true, TEXT, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let (all_but_one, last) = slow.split_at(20);
    for byte in all_but_one {
        client.socket.write(&[*byte]).await;
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    assert!(rig.events.named("client_gone").is_empty(), "it lived for 0.8 s on single bytes");
    client.socket.write(last).await;
    client.answer(&json!(1)).await;
    assert!(client.heard.iter().filter(|text| text.contains(r#""method":"ping""#)).count() >= 3);
}

#[tokio::test]
async fn ide_net_07_while_a_diff_waits_death_needs_three_misses() {
    let rig = rig().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
    let _shown = rig.editor.shown().await;
    client.answers_pings = false;
    // Only what the client says counts, so it may go on reading.
    assert!(client.closed().await.is_some());
    let pings = client.heard.iter().filter(|text| text.contains(r#""method":"ping""#)).count();
    assert!(pings >= 3, "one miss would have been enough without a diff: {pings}");
    rig.events.wait("client_gone", 1).await;
    rig.editor.called(&Call::CloseDiff("tab".into())).await;
    let decided = rig.events.wait("diff_decided", 1).await;
    assert_eq!(decided["decision"], "failed");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
}

#[tokio::test]
async fn without_keepalive_nobody_is_asked() {
    let rig = Rig::with(|options| options.keepalive = None).await;
    let mut client = rig.cli().await;
    assert_eq!(client.notifications("ping", Duration::from_millis(300)).await.len(), 0);
}
