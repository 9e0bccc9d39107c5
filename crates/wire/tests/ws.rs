//! WebSocket frames between our two ends, over an in-memory pipe.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::future::poll_fn;

use oarlock_wire::frame::{DialError, Ws, WsOptions};
use oarlock_wire::http::{self, Head, Refusal};
use oarlock_wire::{Close, Frames, ReadError};
use proptest::prelude::*;
use tokio::io::DuplexStream;

async fn pair(options: WsOptions) -> (Ws<DuplexStream>, Ws<DuplexStream>) {
    // A pipe much smaller than a large message, so that every write is a partial one.
    let (client, mut server) = tokio::io::duplex(5000);
    let accept = async {
        let head = Head::read(&mut server).await.unwrap().unwrap();
        let key = http::accept_key(&head).unwrap();
        http::write_upgrade(&mut server, &key, Some("mcp")).await.unwrap();
        Ws::server(server, head.rest, options).await
    };
    let dial = Ws::dial(client, "ws://127.0.0.1/", "mcp", &[("x-test", "1")], options);
    let (server, client) = tokio::join!(accept, dial);
    (server, client.unwrap())
}

async fn send(frames: &mut impl Frames, text: &str) {
    poll_fn(|cx| frames.poll_ready(cx)).await.unwrap();
    frames.start_send(text.to_owned()).unwrap();
    poll_fn(|cx| frames.poll_flush(cx)).await.unwrap();
}

async fn receive<F: Frames>(frames: &mut F) -> Option<Result<F::Text, ReadError>> {
    poll_fn(|cx| frames.poll_next(cx)).await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Also those that go out in several frames, whose borders fall inside characters.
    #[test]
    fn what_is_sent_arrives(texts in proptest::collection::vec(("[aé𝒳\n]{0,20}", 0usize..12_000), 1..6)) {
        let texts: Vec<String> = texts.into_iter().map(|(text, times)| text.repeat(times)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut server, mut client) = pair(WsOptions::default()).await;
            let out = async { for text in &texts { send(&mut server, text).await } };
            let back = async {
                for text in &texts {
                    let got = receive(&mut client).await.unwrap().unwrap();
                    assert!(got.as_str() == text, "{} bytes became {}", text.len(), got.as_str().len());
                }
            };
            tokio::join!(out, back);
            let heard = client.heard();
            assert!(heard >= texts.iter().map(|text| text.len() as u64).sum());
        });
    }
}

#[tokio::test]
async fn a_message_over_the_limit_is_told_from_a_broken_connection() {
    let (mut server, mut client) = pair(WsOptions { max_message: 1000 }).await;
    let text = "x".repeat(1001);
    let (read, ()) = tokio::join!(receive(&mut server), send(&mut client, &text));
    assert!(matches!(read, Some(Err(ReadError::TooLarge { limit: 1000 }))));
}

#[tokio::test]
async fn a_goodbye_ends_the_other_side_and_a_cut_is_a_loss() {
    let (mut server, mut client) = pair(WsOptions::default()).await;
    let reason = "é".repeat(100);
    tokio::join!(server.close(Close::new(1001, reason)), async {
        assert!(receive(&mut client).await.is_none());
        // The goodbye is answered; dropping lets the server's side go at once.
        drop(client);
    });
    let (mut server, client) = pair(WsOptions::default()).await;
    drop(client);
    assert!(matches!(receive(&mut server).await, Some(Err(ReadError::Io(_)))));
}

#[tokio::test]
async fn a_refusal_reaches_the_one_who_dialled() {
    let (client, mut server) = tokio::io::duplex(5000);
    let refuse = async {
        Head::read(&mut server).await.unwrap().unwrap();
        http::write_refusal(&mut server, &Refusal::new(401, "no token")).await
    };
    let dial = async {
        match Ws::dial(client, "ws://127.0.0.1/", "mcp", &[], WsOptions::default()).await {
            Err(DialError::Refused { status, .. }) => status,
            _ => 0,
        }
    };
    let (_, status) = tokio::join!(refuse, dial);
    assert_eq!(status, 401);
}
