//! What is measured, and in which order: every round visits every server, so that whatever else the machine
//! does meets all of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::time::timeout;

use crate::client::Client;
use crate::server::{FOR_BENCH, Kind, Server};

/// Rounds of each load; the median of them counts.
pub(crate) const ROUNDS: usize = 25;
/// Rounds at the start that do not count: caches fill, allocators grow.
const WARM_UP: usize = 3;
const CALLS: usize = 2_000;
const WINDOW: usize = 64;
const LARGE: usize = 10 << 20;
const IDLE_CLIENTS: usize = 1_000;
const STARTS: usize = 20;
/// Clients that each change of the selection goes to, and changes in a round.
const LISTENERS: usize = 200;
const CHANGES: usize = 5;

/// A server that needs longer for a round hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stands for the answer of a server that is not there.
const SMALL_REPLY: &str = r#"{"content":[{"type":"text","text":"{\"success\":true,\"folders\":[{\"name\":\"w\",\"path\":\"/w\"}]}"}]}"#;

/// CPU of the server and wall time per call, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// Resident memory of one server, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Just started.
    pub(crate) idle: u64,
    /// After the large messages, with no client left.
    pub(crate) after: u64,
    /// Growth by each ready client that does nothing.
    pub(crate) per_client: u64,
}

/// All that was measured; arrays are in the order of [`Kind::ALL`].
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) rounds: usize,
    pub(crate) one_by_one: [Cost; 3],
    pub(crate) bursts: [Cost; 3],
    pub(crate) large: [Cost; 3],
    /// CPU of the server per `selection_changed` to one client, in microseconds.
    pub(crate) notification: [f64; 3],
    pub(crate) memory: [Memory; 3],
    /// Start of our process to its lock file, in milliseconds.
    pub(crate) start: f64,
}

#[derive(Clone, Copy)]
enum Load {
    OneByOne,
    Bursts,
    Large,
}

/// Measures everything. With `calibrate` a second floor stands in our place: the ratios should be 1, and how
/// far they are from it is the noise of the machine.
pub(crate) async fn run(rounds: usize, calibrate: bool) -> Result<Figures> {
    let bench =
        Bench { calibrate, reply: if calibrate { SMALL_REPLY.to_owned() } else { our_reply().await? } };
    let contents = source_text(LARGE)?;

    println!("start to lock file, {STARTS} times");
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(bench.spawn(Kind::Ours)?.start.as_secs_f64() * 1e3);
    }

    let servers = [bench.spawn(Kind::Ours)?, bench.spawn(Kind::Floor)?, bench.spawn(Kind::Rmcp)?];
    println!("small calls, one at a time");
    let one_by_one = interleave(&servers, Load::OneByOne, rounds, &contents).await?;
    println!("small calls, {WINDOW} in flight");
    let bursts = interleave(&servers, Load::Bursts, rounds, &contents).await?;
    println!("openDiff of 10 MiB");
    let large = interleave(&servers, Load::Large, rounds.max(15), &contents).await?;
    println!("selection_changed");
    let notification = bench.notification(&servers, rounds.min(10)).await?;
    drop(servers);

    println!("memory");
    let mut memory = Vec::new();
    for kind in Kind::ALL {
        memory.push(bench.memory_of(kind, &contents).await.with_context(|| format!("memory of {kind}"))?);
    }
    let memory = memory.try_into().ok().context("three servers")?;
    Ok(Figures { rounds, one_by_one, bursts, large, notification, memory, start: median(&mut starts) })
}

/// What our server answers to the small call: the other two answer the same.
async fn our_reply() -> Result<String> {
    let server = Server::ours(FOR_BENCH)?;
    let mut client = Client::ready(&server).await?;
    let call = client.small_call();
    client.send(call).await?;
    let answer: serde_json::Value = serde_json::from_str(&client.answer().await?)?;
    Ok(answer["result"].to_string())
}

/// Text with the line lengths, indents and quotes of source code, as a JSON string.
fn source_text(size: usize) -> Result<String> {
    let line = "    let answer = client.call(\"getWorkspaceFolders\", arguments)?; // naïve\n";
    serde_json::to_string(&line.repeat(size / line.len() + 1)).context("text is JSON")
}

async fn interleave(servers: &[Server; 3], load: Load, rounds: usize, contents: &str) -> Result<[Cost; 3]> {
    let mut clients = Vec::new();
    for server in servers {
        clients.push(Client::ready(server).await?);
    }
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for round in 0..WARM_UP + rounds {
        for ((server, client), costs) in servers.iter().zip(&mut clients).zip(&mut costs) {
            let cost =
                timeout(PATIENCE, visit(server, client, load, contents)).await.context("no answer")??;
            if round >= WARM_UP {
                costs.push(cost);
            }
        }
    }
    for client in clients {
        client.close().await?;
    }
    Ok(costs.map(|costs| Cost {
        cpu: median(&mut costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>()),
        wall: median(&mut costs.iter().map(|cost| cost.wall).collect::<Vec<_>>()),
    }))
}

async fn visit(server: &Server, client: &mut Client, load: Load, contents: &str) -> Result<Cost> {
    let large = matches!(load, Load::Large).then(|| client.open_diff(contents));
    let cpu = server.cpu()?;
    let start = Instant::now();
    let calls = match (load, large) {
        (Load::Large, Some(request)) => {
            client.send(request).await?;
            client.answer().await?;
            1
        }
        (Load::OneByOne, _) => {
            client.call_one_by_one(CALLS).await?;
            CALLS
        }
        _ => {
            let calls = CALLS * 3 / WINDOW * WINDOW;
            client.call_in_bursts(calls, WINDOW).await?;
            calls
        }
    };
    let wall = start.elapsed();
    settle(Duration::from_millis(20)).await;
    let cpu = server.cpu()? - cpu;
    Ok(Cost { cpu: cpu as f64 / 1e3 / calls as f64, wall: wall.as_secs_f64() * 1e6 / calls as f64 })
}

/// What a server does after its last answer (free the message, go to sleep) is its cost too, and nothing
/// tells when it is over.
async fn settle(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The three servers of one run.
struct Bench {
    calibrate: bool,
    /// What the peers answer to every call.
    reply: String,
}

impl Bench {
    fn spawn(&self, kind: Kind) -> Result<Server> {
        match kind {
            Kind::Ours if self.calibrate => Server::peer(Kind::Floor, &self.reply),
            Kind::Ours => Server::ours(FOR_BENCH),
            Kind::Floor | Kind::Rmcp => Server::peer(kind, &self.reply),
        }
    }

    /// Each change goes to all clients; ours is made by `oarlock ide select`. The debounce sets the pace of
    /// ours, so only CPU can be compared.
    async fn notification(&self, servers: &[Server; 3], rounds: usize) -> Result<[f64; 3]> {
        let mut listeners: [Vec<Client>; 3] = Default::default();
        for (server, listeners) in servers.iter().zip(&mut listeners) {
            std::fs::write(server.workspace().join("a.rs"), "fn main() {}\n".repeat(10_000))?;
            for _ in 0..LISTENERS {
                listeners.push(Client::ready(server).await?);
            }
        }
        // Our greeting to new clients, after half a second, is not part of it.
        settle(Duration::from_secs(1)).await;
        let mut costs: [Vec<f64>; 3] = Default::default();
        for round in 0..WARM_UP + rounds {
            for ((kind, server), (listeners, costs)) in
                Kind::ALL.iter().zip(servers).zip(listeners.iter_mut().zip(&mut costs))
            {
                let cpu = server.cpu()?;
                for line in round * CHANGES + 1..=(round + 1) * CHANGES {
                    if *kind == Kind::Ours && !self.calibrate {
                        server.tell(&["ide", "select", &format!("a.rs:{}", line + 1)])?;
                    } else {
                        listeners[0].request(crate::socket::SELECT, &json!({"line": line})).await?;
                    }
                    // The first of the peers' clients may have read its own while it waited for the answer.
                    for listener in &mut listeners[1..] {
                        timeout(PATIENCE, listener.selection_on(line))
                            .await
                            .with_context(|| format!("{kind} sent no selection_changed"))??;
                    }
                }
                settle(Duration::from_millis(20)).await;
                if round >= WARM_UP {
                    costs.push((server.cpu()? - cpu) as f64 / 1e3 / (LISTENERS * CHANGES) as f64);
                }
            }
        }
        Ok(costs.map(|mut costs| median(&mut costs)))
    }

    async fn memory_of(&self, kind: Kind, contents: &str) -> Result<Memory> {
        let server = self.spawn(kind)?;
        settle(Duration::from_millis(500)).await;
        let idle = server.resident()?;
        let mut client = Client::ready(&server).await?;
        for _ in 0..15 {
            let request = client.open_diff(contents);
            client.send(request).await?;
            client.answer().await?;
        }
        client.close().await?;
        settle(Duration::from_secs(1)).await;
        let after = server.resident()?;
        drop(server);

        let server = self.spawn(kind)?;
        let mut clients = vec![Client::ready(&server).await?];
        settle(Duration::from_millis(500)).await;
        let before = server.resident()?;
        for _ in 0..IDLE_CLIENTS {
            clients.push(Client::ready(&server).await?);
        }
        // Our server greets a client half a second after it is ready; that must be over.
        settle(Duration::from_secs(2)).await;
        let per_client = server.resident()?.saturating_sub(before) / IDLE_CLIENTS as u64;
        Ok(Memory { idle, after, per_client })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
