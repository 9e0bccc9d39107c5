//! The soak: for minutes, many clients treat one server badly, in every way we know. Afterwards it must be as
//! it was: the memory of its floor, the same descriptors, and a clean end.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::client::{Client, upgrade_request};
use crate::server::Server;

/// Clients at once; below the limit of the server, so that a refusal is a fault.
const WORKERS: usize = 24;
/// A pause after each act keeps the ports of closed connections, which rest for a minute, from running out.
const PAUSE: Duration = Duration::from_millis(120);
/// No act may hang longer than this.
const PATIENCE: Duration = Duration::from_secs(20);
/// How far above its floor the memory may end.
const GROWTH: u64 = 2_000_000;

/// What a client can do to a server.
#[derive(Clone, Copy, Debug)]
enum Act {
    Polite,
    WrongToken,
    HalfAHead,
    KilledMidFrame,
    HalfClosed,
    Flood,
    Junk,
    SlowReader,
    AbandonedDiff,
    LargeDiff,
}

const ACTS: [Act; 10] = [
    Act::Polite,
    Act::WrongToken,
    Act::HalfAHead,
    Act::KilledMidFrame,
    Act::HalfClosed,
    Act::Flood,
    Act::Junk,
    Act::SlowReader,
    Act::AbandonedDiff,
    Act::LargeDiff,
];

/// Runs for `time`; `true` when the server is healthy to the end.
pub(crate) async fn run(time: Duration) -> Result<bool> {
    let mut server = Server::ours(&["--on-diff", "ask"])?;
    // The floor is that of a server that has seen everything once: code pages are in, the allocator has grown.
    // It also looks once for rivals after its start, and must be done with that.
    sleep(Duration::from_millis(500)).await;
    let descriptors = server.descriptors()?;
    for act in ACTS {
        perform(act, &server).await.with_context(|| format!("{act:?}, on a fresh server"))?;
        let left = Instant::now();
        while server.descriptors()? != descriptors {
            ensure!(left.elapsed() < PATIENCE, "{act:?}: the server holds the connection for {PATIENCE:?}");
            sleep(Duration::from_millis(1)).await;
        }
        println!("{act:?}: let go after {:?}", left.elapsed());
    }
    let floor = server.resident()?;
    println!("floor: {} kB resident, {descriptors} descriptors", floor / 1000);

    let end = Instant::now() + time;
    let (done, slowest) = (Cell::new(0_usize), Cell::new(Duration::ZERO));
    let workers = (0..WORKERS).map(|worker| work(worker, &server, end, &done));
    let (workers, watch) =
        tokio::join!(futures_util::future::join_all(workers), watch(&server, end, &done, &slowest));
    let mut faults: Vec<String> = workers.into_iter().flatten().collect();
    faults.extend(watch.err().map(|error| format!("the well-behaved client: {error:#}")));

    let alive = server.is_alive()?;
    if alive {
        // Whoever was cut off is noticed in the server's own time.
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline
            && (server.resident()? > floor + GROWTH || server.descriptors()? != descriptors)
        {
            sleep(Duration::from_millis(100)).await;
        }
    }
    let mut healthy = faults.is_empty();
    for fault in &faults {
        println!("FAIL  {fault}");
    }
    let mut judge = |good: bool, what: String| {
        println!("{}  {what}", if good { "PASS" } else { "FAIL" });
        healthy &= good;
    };
    judge(done.get() > 0, format!("{} acts, slowest ping between them {:?}", done.get(), slowest.get()));
    judge(alive, "the server lives".to_owned());
    if alive {
        let (resident, open) = (server.resident()?, server.descriptors()?);
        judge(
            resident <= floor + GROWTH,
            format!("{} kB resident, floor {} kB", resident / 1000, floor / 1000),
        );
        judge(open == descriptors, format!("{open} descriptors, {descriptors} before"));
        let status = server.terminate(Duration::from_secs(10))?;
        judge(status.is_some(), format!("ended by SIGTERM: {status:?}"));
        judge(!server.lock.exists(), "no lock file left".to_owned());
    }
    Ok(healthy)
}

/// Acts until `end`, a different one each time; returns what went wrong.
async fn work(worker: usize, server: &Server, end: Instant, done: &Cell<usize>) -> Option<String> {
    for turn in worker.. {
        if Instant::now() >= end {
            break;
        }
        let act = ACTS[turn % ACTS.len()];
        match timeout(PATIENCE, perform(act, server)).await {
            Ok(Ok(())) => done.set(done.get() + 1),
            Ok(Err(error)) => return Some(format!("{act:?}: {error:#}")),
            Err(_) => return Some(format!("{act:?}: hung for {PATIENCE:?}")),
        }
        sleep(PAUSE).await;
    }
    None
}

/// A client that behaves, all the time: the others must not be felt.
async fn watch(server: &Server, end: Instant, done: &Cell<usize>, slowest: &Cell<Duration>) -> Result<()> {
    let mut client = Client::ready(server).await?;
    let start = Instant::now();
    let mut told = start;
    while Instant::now() < end {
        let asked = Instant::now();
        timeout(Duration::from_secs(5), client.request("ping", &json!({})))
            .await
            .context("no pong in 5 s")??;
        slowest.set(slowest.get().max(asked.elapsed()));
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            println!(
                "{:>4} s: {} acts, {} kB",
                start.elapsed().as_secs(),
                done.get(),
                server.resident()? / 1000
            );
        }
        sleep(Duration::from_millis(100)).await;
    }
    client.close().await
}

async fn perform(act: Act, server: &Server) -> Result<()> {
    match act {
        Act::Polite => {
            let mut client = Client::ready(server).await?;
            client.call_one_by_one(20).await?;
            client.close().await
        }
        Act::WrongToken => {
            let mut request = upgrade_request(server)?;
            request.headers_mut().remove("X-Claude-Code-Ide-Authorization");
            let stream = connect(server).await?;
            let refused = tokio_tungstenite::client_async(request, stream).await.is_err();
            ensure!(refused, "a client without the token got in");
            Ok(())
        }
        Act::HalfAHead => {
            let mut stream = connect(server).await?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgr").await?;
            cut(&stream)
        }
        Act::KilledMidFrame => {
            let mut stream = Client::ready(server).await?.into_stream();
            // The header of a masked text frame of one megabyte, and then far less than that.
            let mut frame = vec![0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3, 4];
            frame.resize(5_000, b'x');
            stream.write_all(&frame).await?;
            cut(&stream)
        }
        Act::HalfClosed => {
            let mut client = Client::ready(server).await?;
            let call = client.small_call();
            client.send(call).await?;
            let mut stream = client.into_stream();
            stream.shutdown().await?;
            // A reset instead of an end is fine too: the server must let go, that is all.
            let _ = stream.read_to_end(&mut Vec::new()).await;
            Ok(())
        }
        Act::Flood => {
            let mut client = Client::ready(server).await?;
            client.call_in_bursts(64 * 20, 64).await?;
            client.close().await
        }
        Act::Junk => {
            let mut client = Client::ready(server).await?;
            for junk in [
                "",
                "nonsense",
                "[]",
                "{\"id\":",
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no/such\"}",
                "\u{0}",
            ] {
                client.send(junk.to_owned()).await?;
            }
            // Errors come first; the pong after them shows that the connection lives.
            client.send(json!({"jsonrpc": "2.0", "id": "alive", "method": "ping"}).to_string()).await?;
            while !client.text().await?.contains("alive") {}
            client.close().await
        }
        Act::SlowReader => {
            let mut client = Client::ready(server).await?;
            let ask = async {
                for _ in 0..3_000 {
                    let id = client.id();
                    client
                        .send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string())
                        .await?;
                }
                anyhow::Ok(())
            };
            // Never reading, it gets stuck when the buffers are full, or is closed; both are right.
            let _ = timeout(Duration::from_millis(500), ask).await;
            cut(&client.into_stream())
        }
        Act::AbandonedDiff => {
            let mut client = Client::ready(server).await?;
            let request = client.open_diff("\"fn main() {}\\n\"");
            client.send(request).await?;
            client.request("ping", &json!({})).await?;
            cut(&client.into_stream())
        }
        Act::LargeDiff => {
            let mut client = Client::ready(server).await?;
            let request = client.open_diff(&format!("\"{}\"", "x".repeat(1 << 20)));
            client.send(request).await?;
            client.request("ping", &json!({})).await?;
            client.close().await
        }
    }
}

async fn connect(server: &Server) -> Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", server.port)).await.context("failed to connect")
}

/// Makes the coming drop a reset, as when a process is killed with unread data.
fn cut(stream: &TcpStream) -> Result<()> {
    stream.set_zero_linger().context("failed to set the linger time")
}
