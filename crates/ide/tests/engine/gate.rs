//! Who gets in, who does not, and what each limit does.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use oarlock_proto::ide::Dialect;
use serde_json::{Value, json};

use crate::support::{
    ACCEPT, BINARY, CLOSE, CONTINUE, Client, Mood, PING, PONG, Response, Rig, Socket, TEXT, Upgrade, diff,
    error_code, eventually, frame, selection, text,
};

async fn ask(rig: &Rig, request: &Upgrade) -> Response {
    Socket::connect(rig.port()).await.upgrade(request).await
}

#[track_caller]
fn assert_refused(response: &Response, status: u16, word: &str) {
    assert_eq!(response.status, status, "{response:?}");
    assert!(response.body.contains(word), "{word}: {response:?}");
    assert!(response.body.len() < 300 && response.body.ends_with('\n'), "short, and a line: {response:?}");
    assert_eq!(response.header("Content-Length"), Some(response.body.len().to_string().as_str()));
}

#[tokio::test]
async fn ide_net_01_only_loopback_is_listened_on() {
    let rig = Rig::start().await;
    let wanted = format!(":{:04X}", rig.port());
    let mut addresses = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            // 0A is the state LISTEN.
            if words[3] == "0A" && words[1].ends_with(&wanted) {
                addresses.push(words[1].trim_end_matches(&wanted).to_owned());
            }
        }
    }
    assert_eq!(addresses, ["0100007F"]);
}

#[tokio::test]
async fn ide_net_02_both_paths_are_served() {
    let rig = Rig::start().await;
    for path in ["/", "/mcp", "/?a=b"] {
        assert_eq!(ask(&rig, &rig.handshake().path(path)).await.status, 101, "{path}");
    }
}

#[tokio::test]
async fn ide_net_03_mcp_is_answered_when_offered() {
    let rig = Rig::start().await;
    for offer in ["mcp", "mcp, other", "other,mcp", " other ,  mcp "] {
        let answer = ask(&rig, &rig.handshake().with("Sec-WebSocket-Protocol", offer)).await;
        assert_eq!((answer.status, answer.header("Sec-WebSocket-Protocol")), (101, Some("mcp")), "{offer}");
        assert_eq!(answer.header("Sec-WebSocket-Accept"), Some(ACCEPT));
    }
    let in_two_lines = rig.handshake().with("Sec-WebSocket-Protocol", "other");
    let answer = ask(&rig, &in_two_lines.and("Sec-WebSocket-Protocol", "mcp")).await;
    assert_eq!((answer.status, answer.header("Sec-WebSocket-Protocol")), (101, Some("mcp")));
}

#[tokio::test]
async fn ide_net_03_no_offer_is_tolerated_and_nothing_is_answered_to_it() {
    let rig = Rig::start().await;
    let answer = ask(&rig, &rig.handshake().without("Sec-WebSocket-Protocol")).await;
    assert_eq!((answer.status, answer.header("Sec-WebSocket-Protocol")), (101, None));
}

#[tokio::test]
async fn ide_net_03_only_other_subprotocols_are_refused() {
    let rig = Rig::start().await;
    for offer in ["chat", "chat, mcp2", "MCP"] {
        let answer = ask(&rig, &rig.handshake().with("Sec-WebSocket-Protocol", offer)).await;
        assert_refused(&answer, 400, "mcp");
    }
}

#[tokio::test]
async fn ide_net_04_an_offer_of_compression_is_survived() {
    let rig = Rig::start().await;
    let mut socket = Socket::connect(rig.port()).await;
    let answer = socket.upgrade(&rig.handshake()).await;
    // The parser of the test's frames refuses a compressed one.
    assert_eq!((answer.status, answer.header("Sec-WebSocket-Extensions")), (101, None));
    socket.send_text(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#).await;
    assert_eq!(socket.message().await.unwrap(), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
}

#[tokio::test]
async fn ide_auth_01_the_right_token_opens() {
    let rig = Rig::start().await;
    let handshake = rig.handshake();
    assert_eq!(ask(&rig, &handshake).await.status, 101);
    let token = rig.token();
    let handshake = handshake.without("X-Claude-Code-Ide-Authorization");
    let handshake = handshake.and("x-claude-code-ide-authorization", &token);
    assert_eq!(ask(&rig, &handshake).await.status, 101, "a header's name has no case");
}

#[tokio::test]
async fn ide_auth_02_a_missing_or_wrong_token_is_refused_before_the_upgrade() {
    let rig = Rig::start().await;
    let name = "X-Claude-Code-Ide-Authorization";
    let token = rig.token();
    assert_refused(&ask(&rig, &rig.handshake().without(name)).await, 401, "token");
    let wrong = [
        String::new(),
        token[1..].to_owned(),
        format!("{token}x"),
        token.to_lowercase(),
        rig.control_token(),
    ];
    for wrong in wrong {
        let answer = ask(&rig, &rig.handshake().with(name, &wrong)).await;
        assert_refused(&answer, 401, "lock file");
        assert!(!answer.body.contains(&token) && !answer.head.contains(&token));
    }
    let as_control = rig.handshake().without(name).and("X-Oarlock-Control", &token);
    assert_refused(&ask(&rig, &as_control).await, 401, "token");
    assert_eq!(rig.events.all(), Vec::<Value>::new(), "nobody was let in");
}

#[tokio::test]
async fn ide_auth_02_jetbrains_upgrades_and_closes_with_1008() {
    let rig = Rig::speaking(Dialect::Jetbrains).await;
    let mut socket = Socket::connect(rig.port()).await;
    let answer = socket.upgrade(&rig.handshake().with("X-Claude-Code-Ide-Authorization", "no")).await;
    assert_eq!(answer.status, 101);
    // Whatever a stranger says first, no result comes back.
    socket.send_text(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#).await;
    let first = socket.frame().await.unwrap();
    assert_eq!(first.close(), (1008, "Invalid or missing authentication token".into()));
    assert_eq!(socket.frame().await, None);
    assert_eq!(rig.events.all(), Vec::<Value>::new());
    rig.mcp().await.ping().await;
}

#[tokio::test]
async fn ide_auth_03_any_origin_is_refused() {
    let rig = Rig::start().await;
    for origin in ["https://evil.example", "http://127.0.0.1", "null", "", "vscode-webview://x"] {
        assert_refused(&ask(&rig, &rig.handshake().and("Origin", origin)).await, 403, "Origin");
    }
}

#[tokio::test]
async fn ide_auth_04_a_host_that_is_not_loopback_is_refused() {
    let rig = Rig::start().await;
    let port = rig.port();
    for host in ["127.0.0.1", "LOCALHOST", &format!("localhost:{port}"), "[::1]:1", "127.1.2.3:9"] {
        assert_eq!(ask(&rig, &rig.handshake().with("Host", host)).await.status, 101, "{host}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1.evil.example",
        "",
        "0.0.0.0",
        "localhost:99999",
        "user@localhost",
        "[::1",
        "::1",
        "0x7f000001",
        "localhost localhost",
        "localhost,evil.example",
    ] {
        assert_refused(&ask(&rig, &rig.handshake().with("Host", host)).await, 403, "Host");
    }
    assert_refused(&ask(&rig, &rig.handshake().without("Host")).await, 403, "Host");
    let twice = rig.handshake().and("Host", &format!("127.0.0.1:{port}"));
    assert_refused(&ask(&rig, &twice).await, 403, "Host");
    let absolute = rig.handshake().path("http://127.0.0.1/").with("Host", "evil.example");
    assert_refused(&ask(&rig, &absolute).await, 403, "Host");
}

#[tokio::test]
async fn ide_auth_04_a_host_that_was_allowed_is_let_in() {
    let rig = Rig::with(|options| options.allow_hosts = vec!["box.local".into()]).await;
    assert_eq!(ask(&rig, &rig.handshake().with("Host", "Box.Local:77")).await.status, 101);
    assert_eq!(ask(&rig, &rig.handshake().with("Host", "other.local")).await.status, 403);
}

#[tokio::test]
async fn ide_net_08_the_checks_run_in_their_order() {
    let rig = Rig::with(|options| options.limits.clients = 1).await;
    let _the_only_one = rig.client().await;
    let mut request = rig.handshake().path("/nowhere");
    for (name, value) in [
        ("Host", "evil.example"),
        ("Origin", "https://evil.example"),
        ("Sec-WebSocket-Protocol", "chat"),
        ("X-Claude-Code-Ide-Authorization", "no"),
    ] {
        request = request.with(name, value);
    }
    assert_refused(&ask(&rig, &request).await, 403, "Host");
    request = request.with("Host", "localhost");
    assert_refused(&ask(&rig, &request).await, 403, "Origin");
    request = request.without("Origin");
    assert_refused(&ask(&rig, &request).await, 404, "no such path");
    request = request.path("/mcp");
    assert_refused(&ask(&rig, &request).await, 400, "subprotocol");
    request = request.with("Sec-WebSocket-Protocol", "mcp");
    assert_refused(&ask(&rig, &request).await, 401, "token");
    request = request.with("X-Claude-Code-Ide-Authorization", &rig.token());
    assert_refused(&ask(&rig, &request).await, 503, "too many clients");
}

#[tokio::test]
async fn ide_net_08_plain_http_gets_a_short_helpful_answer() {
    let rig = Rig::start().await;
    let port = rig.port();
    for (request, status, word) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 426, "WebSocket"),
        ("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", 404, "/mcp"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 426, "WebSocket"),
        ("HELLO\r\n\r\n", 400, "HTTP"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400, "HTTP"),
    ] {
        let mut socket = Socket::connect(port).await;
        socket.write(request.as_bytes()).await;
        assert_refused(&socket.response().await, status, word);
    }
    for (name, value, status) in [
        ("Sec-WebSocket-Version", "8", 426),
        ("Upgrade", "h2c", 426),
        ("Connection", "close", 426),
        ("Sec-WebSocket-Key", "", 400),
    ] {
        assert_refused(&ask(&rig, &rig.handshake().with(name, value)).await, status, "oarlock");
    }
    let post = Upgrade { line: "POST / HTTP/1.1".into(), ..rig.handshake() };
    assert_refused(&ask(&rig, &post).await, 405, "GET");
    let mut endless = Socket::connect(port).await;
    endless.write(format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(17 * 1024)).as_bytes()).await;
    assert_refused(&endless.response().await, 431, "head");
    rig.mcp().await.ping().await;
}

#[tokio::test]
async fn ide_net_09_one_client_too_many_is_refused_and_a_free_place_is_taken_again() {
    let rig = Rig::with(|options| options.limits.clients = 2).await;
    let mut first = rig.mcp().await;
    let mut second = rig.mcp().await;
    assert_refused(&ask(&rig, &rig.handshake()).await, 503, "limit 2");
    second.ping().await;
    first.socket.send(CLOSE, &1000_u16.to_be_bytes()).await;
    rig.events.wait("client_gone", 1).await;
    let mut status = 503;
    for _ in 0..100 {
        status = ask(&rig, &rig.handshake()).await.status;
        if status == 101 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status, 101);
    second.ping().await;
}

#[tokio::test]
async fn ide_net_09_a_slow_handshake_is_ended_with_408() {
    let rig = Rig::with(|options| options.limits.handshake = Duration::from_millis(150)).await;
    let mut other = rig.mcp().await;
    let mut silent = Socket::connect(rig.port()).await;
    let mut half = Socket::connect(rig.port()).await;
    half.write(b"GET / HTTP/1.1\r\nHost: 127").await;
    assert_refused(&silent.response().await, 408, "0.15 s");
    assert_refused(&half.response().await, 408, "0.15 s");
    other.ping().await;
}

#[tokio::test]
async fn ide_net_09_strangers_who_never_finish_their_handshake_keep_nobody_out() {
    let rig = Rig::start().await;
    let mut strangers = Vec::new();
    for _ in 0..150 {
        strangers.push(Socket::connect(rig.port()).await);
    }
    let start = std::time::Instant::now();
    rig.mcp().await.ping().await;
    // The CLI gives up a handshake after 10 s; this must not take anything like it.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn ide_net_09_a_message_that_is_too_large_closes_only_its_client() {
    let rig = Rig::with(|options| options.limits.message = 100_000).await;
    let mut other = rig.cli().await;
    let mut client = rig.cli().await;
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y".repeat(90_000)}}))
        .await;
    client.ping().await;
    client.socket.send(TEXT, &vec![b' '; 100_001]).await;
    let (code, reason) = client.closed().await.unwrap();
    assert_eq!(code, 1009);
    assert!(reason.contains("100000"), "says the limit: {reason}");
    rig.events.wait("client_gone", 1).await;
    other.ping().await;
    let mut in_parts = rig.cli().await;
    in_parts.socket.write(&frame(false, TEXT, &[b' '; 30_000])).await;
    for _ in 0..3 {
        in_parts.socket.try_write(&frame(false, CONTINUE, &[b' '; 30_000])).await;
    }
    assert_eq!(in_parts.closed().await.unwrap().0, 1009);
    other.ping().await;
}

#[tokio::test]
async fn ide_net_09_one_request_too_many_is_refused_with_an_error() {
    let rig = Rig::with(|options| options.limits.pending = 3).await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    let mut waiting = Vec::new();
    for tab in ["1", "2", "3"] {
        waiting.push(client.ask_tool("openDiff", diff(&file, "y\n", tab)).await);
    }
    let refused = client.call("openDiff", diff(&file, "y\n", "4")).await;
    assert_eq!(error_code(&refused), -32000);
    assert!(refused["error"]["message"].as_str().unwrap().contains("limit 3"), "{refused}");
    let mut other = rig.cli().await;
    other.ping().await;
    for _ in 0..3 {
        rig.editor.shown().await.reject();
    }
    for id in waiting {
        assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED");
    }
    client.settle_accounts().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ide_net_09_a_slow_reader_is_closed_and_the_others_live() {
    let rig = Rig::with(|options| {
        options.limits.queued = 2 << 20;
        options.debounce = Duration::ZERO;
    })
    .await;
    let file = rig.home.file("a.py", "x\n");
    let slow = rig.cli().await;
    let mut other = rig.cli().await;
    let mut sent = 0;
    while rig.events.named("client_gone").is_empty() {
        sent += 1;
        assert!(sent < 200, "never closed");
        rig.editor.ide().selection_changed(selection(&file, &format!("{sent}{}", "x".repeat(500_000))));
        other.notification("selection_changed").await;
    }
    let gone = rig.events.wait("client_gone", 1).await;
    assert!(gone["client"] == 1 && gone["reason"].as_str().unwrap().contains("slow"), "{gone}");
    other.ping().await;
    drop(slow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_asks_and_never_reads_is_not_given_more() {
    const ASKED: usize = 20_000;
    let rig = Rig::with(|options| options.limits.queued = 1 << 20).await;
    let file = rig.home.file("a.py", "x\n");
    rig.editor.scene().selection = Some(selection(&file, &"x".repeat(20_000)));
    let mut other = rig.cli().await;
    let mut greedy = rig.client().await;
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getCurrentSelection"}}"#;
    greedy.socket.write_for(&frame(true, TEXT, call).repeat(ASKED), Duration::from_secs(1)).await;
    // 400 MB would be due. What is made of them fits into the queue and the kernel's buffers.
    let mut answered = usize::MAX;
    while answered != rig.events.named("tool_call").len() {
        answered = rig.events.named("tool_call").len();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!((1..ASKED / 4).contains(&answered), "{answered} of {ASKED} were answered to nobody");
    other.ping().await;
}

#[tokio::test]
async fn ide_net_05_a_client_killed_within_a_frame_harms_no_other() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let (mut one, mut two, mut three) = (rig.cli().await, rig.cli().await, rig.cli().await);
    let waiting = one.ask_tool("openDiff", diff(&file, "y\n", "one")).await;
    let shown = rig.editor.shown().await;
    let whole = frame(true, TEXT, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    three.socket.write(&whole[..whole.len() / 2]).await;
    three.socket.cut();
    assert_eq!(rig.events.wait("client_gone", 1).await["client"], 3);
    two.ping().await;
    shown.accept();
    assert_eq!(crate::support::texts(&one.answer(&waiting).await), ["FILE_SAVED", "y\n"]);
    one.settle_accounts().await;
    two.settle_accounts().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ide_net_06_ten_megabytes_go_each_way_while_others_are_served() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut big = rig.cli().await;
    let mut other = rig.cli().await;
    let contents = "é\n\"\\\t".repeat(10 * 1024 * 1024 / 6);
    let arguments = diff(&file, &contents, "big");
    let pings = tokio::spawn(async move {
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let start = std::time::Instant::now();
            other.ping().await;
            slowest = slowest.max(start.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        slowest
    });
    let id = big.ask_tool("openDiff", arguments).await;
    let shown = rig.editor.shown().await;
    assert_eq!(*shown.request.new_contents, *contents);
    shown.accept();
    let answer = big.answer(&id).await;
    assert!(crate::support::texts(&answer) == ["FILE_SAVED", &contents], "not the same text");
    // On a quiet machine this is below 100 ms; the tests beside this one are allowed to disturb it.
    let slowest = pings.await.unwrap();
    assert!(slowest < Duration::from_secs(2), "a ping took {slowest:?}");
}

#[tokio::test]
async fn frames_of_every_kind_are_understood() {
    let rig = Rig::start().await;
    let mut client = rig.client().await;
    let socket = &mut client.socket;
    socket.send(PING, b"are you there").await;
    let pong = socket.frame().await.unwrap();
    assert_eq!((pong.opcode, pong.payload.as_slice()), (PONG, b"are you there".as_slice()));
    // One message in three frames, with a ping between them, byte by byte.
    let mut bytes = frame(false, TEXT, br#"{"jsonrpc":"2.0","#);
    bytes.extend(frame(false, CONTINUE, br#""id":"in parts","#));
    bytes.extend(frame(true, PING, b""));
    bytes.extend(frame(true, CONTINUE, br#""method":"ping"}"#));
    for byte in bytes {
        socket.write(&[byte]).await;
    }
    assert_eq!(socket.frame().await.unwrap().opcode, PONG);
    assert_eq!(socket.message().await.unwrap(), r#"{"jsonrpc":"2.0","id":"in parts","result":{}}"#);
    socket.send(BINARY, br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(socket.message().await.unwrap(), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    socket.send(BINARY, b"\xff\xfe").await;
    let refused: Value = serde_json::from_str(&socket.message().await.unwrap()).unwrap();
    assert_eq!((&refused["id"], error_code(&refused)), (&Value::Null, -32700));
    socket.send(CLOSE, &1000_u16.to_be_bytes()).await;
    assert_eq!(socket.frame().await.unwrap().close().0, 1000);
    assert_eq!(socket.frame().await, None);
    rig.events.wait("client_gone", 1).await;
}

#[tokio::test]
async fn a_message_sent_with_the_handshake_is_not_lost() {
    let rig = Rig::start().await;
    let mut socket = Socket::connect(rig.port()).await;
    let mut bytes = rig.handshake().text().into_bytes();
    bytes.extend(frame(true, TEXT, br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#));
    socket.write(&bytes).await;
    assert_eq!(socket.response().await.status, 101);
    assert_eq!(socket.message().await.unwrap(), r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
}

#[tokio::test]
async fn garbage_after_the_upgrade_ends_only_its_own_connection() {
    let rig = Rig::start().await;
    let mut other = rig.cli().await;
    let unmasked = b"\x81\x02{}";
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n".repeat(10);
    let not_utf8 = frame(true, TEXT, b"{\"id\":\"\xff\"}");
    for garbage in [unmasked.as_slice(), &[0xff; 200], &http, &[0; 200], &not_utf8] {
        let mut client = rig.client().await;
        client.socket.write(garbage).await;
        if let Some((code, _)) = client.closed().await {
            assert!([1002, 1007, 1009].contains(&code), "{code} for {garbage:?}");
        }
        other.ping().await;
    }
    eventually("all but one to be gone", || rig.server.ide().clients().len() == 1).await;
}

/// The token is looked for in everything that can be seen without reading the private files.
#[tokio::test]
async fn ide_auth_05_no_token_in_any_frame_answer_event_or_log() {
    #[derive(Clone, Default)]
    struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);

    let rig = Rig::start().await;
    let (token, control) = (rig.token(), rig.control_token());
    let mut seen = Vec::new();
    let wrong = format!("{token}x");
    for request in [
        rig.handshake().path(&format!("/{token}")),
        rig.handshake().with("Host", &token),
        rig.handshake().with("X-Claude-Code-Ide-Authorization", &wrong),
        rig.handshake()
            .without("X-Claude-Code-Ide-Authorization")
            .and("X-Oarlock-Control", &format!("{control}x")),
    ] {
        let answer = ask(&rig, &request).await;
        seen.push(format!("{answer:?}"));
    }
    rig.editor.set("documents", Mood::Failing);
    let mut client = rig.cli().await;
    for (method, params) in [
        ("tools/list", Value::Null),
        ("nope", Value::Null),
        ("tools/call", json!({"name": "getOpenEditors"})),
    ] {
        client.request(method, params).await;
    }
    client.socket.send_text("{").await;
    client.ping().await;
    let mut commands: Client = rig.control().await;
    commands.request("oarlock/watch", Value::Null).await;
    commands.request("oarlock/nope", Value::Null).await;
    client.call("getWorkspaceFolders", json!({})).await;
    commands.notification("oarlock/event").await;
    seen.append(&mut client.heard);
    seen.append(&mut commands.heard);
    seen.extend(rig.events.all().iter().map(Value::to_string));
    rig.stop().await;
    drop(guard);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("connection refused"), "the log is seen at all: {log}");
    seen.push(log);
    for text in &seen {
        assert!(!text.contains(&token) && !text.contains(&control), "{text}");
    }
}
