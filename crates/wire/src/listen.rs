//! Accepting WebSockets, after the checks that keep strangers out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{AbortHandle, AbortRegistration, Abortable};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::frame::{Close, Frames, Ws, WsOptions};
use crate::http::{self, Head, Refusal};

/// Handshakes that may be under way at once. One more pushes out the oldest, so that strangers who connect and say
/// nothing keep nobody out.
const HANDSHAKES: usize = 64;

/// Looks for a secret in a request's head: what it grants, or `None`.
pub type Authorise<T> = Box<dyn Fn(&Head) -> Option<T> + Send + Sync>;

/// Who may come in. The checks run in the order of the fields.
pub struct Gate<T> {
    /// Host names that are as good as loopback (`--allow-host`), without port, compared without case.
    pub hosts: Vec<String>,
    /// The paths that are served.
    pub paths: Vec<String>,
    /// The subprotocol that is answered when it is offered.
    pub subprotocol: String,
    /// The check of the secret.
    pub authorise: Authorise<T>,
    /// Refuse a missing or wrong secret by a close after the upgrade instead of 401 before it.
    pub late_refusal: Option<Close>,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How many connections may be open at once.
    pub connections: usize,
    /// Whether a connection with this grant counts among them.
    pub counts: fn(&T) -> bool,
    /// What an accepted WebSocket may do.
    pub options: WsOptions,
}

/// A connection that passed the gate.
pub struct Accepted<T> {
    /// The WebSocket.
    pub frames: Ws<TcpStream>,
    /// What its secret grants.
    pub grant: T,
    /// Frees the place of this connection, if it counts, when it is dropped.
    pub place: Option<Place>,
}

/// A place among the connections that may be open at once.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let free = |n: usize| (n < limit).then_some(n + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        Some(Self(taken.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections until `stop` fires; each that passes the gate is given to `serve`, in a task of its own. After the
/// stop the port is free at once, and the future ends with the last connection. All tasks end when it is dropped.
pub async fn accept<T, S>(
    listener: TcpListener,
    gate: Arc<Gate<T>>,
    stop: CancellationToken,
    serve: impl Fn(Accepted<T>) -> S + Clone + Send + 'static,
) where
    T: Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let taken = Arc::new(AtomicUsize::new(0));
    let handshakes = Arc::new(Handshakes::default());
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, mostly: wait for some to be freed instead of spinning.
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = tasks.join_next() => continue,
            () = stop.cancelled() => break,
        };
        let (gate, taken, serve, handshakes) =
            (gate.clone(), taken.clone(), serve.clone(), handshakes.clone());
        let (id, pushed_out) = handshakes.begin();
        tasks.spawn(async move {
            let admitted = Abortable::new(admit(stream, &gate, &taken), pushed_out).await;
            handshakes.end(id);
            match admitted {
                Ok(Ok(Some(accepted))) => serve(accepted).await,
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a handshake broke off"),
                Err(_) => tracing::debug!("a handshake was pushed out by newer ones"),
            }
        });
    }
    drop(listener);
    handshakes.abort_all();
    while tasks.join_next().await.is_some() {}
}

/// The handshakes that are under way, oldest first.
#[derive(Default)]
struct Handshakes {
    table: Mutex<(u64, BTreeMap<u64, AbortHandle>)>,
}

impl Handshakes {
    fn begin(&self) -> (u64, AbortRegistration) {
        let (handle, registration) = AbortHandle::new_pair();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, under_way) = &mut *table;
        *last += 1;
        under_way.insert(*last, handle);
        if under_way.len() > HANDSHAKES
            && let Some((_, oldest)) = under_way.pop_first()
        {
            oldest.abort();
        }
        (*last, registration)
    }

    fn abort_all(&self) {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.1.values().for_each(AbortHandle::abort);
    }

    fn end(&self, id: u64) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&id);
    }
}

async fn admit<T>(
    mut stream: TcpStream,
    gate: &Gate<T>,
    taken: &Arc<AtomicUsize>,
) -> io::Result<Option<Accepted<T>>> {
    // Answers are small and waited for: without this each would wait for the other side's delayed acknowledgement.
    stream.set_nodelay(true)?;
    let local = stream.local_addr()?;
    let deadline = tokio::time::Instant::now() + gate.handshake;
    let refusal = match tokio::time::timeout_at(deadline, Head::read(&mut stream)).await {
        Ok(head) => match head? {
            Ok(head) => match check(gate, &head, local, taken) {
                Ok(passed) => return upgrade(stream, head, gate, passed, deadline).await,
                Err(refusal) => refusal,
            },
            Err(refusal) => refusal,
        },
        Err(_) => Refusal::new(408, format!("no complete request within {} s", gate.handshake.as_secs_f32())),
    };
    tracing::debug!(status = refusal.status, reason = refusal.message, "connection refused");
    let _ = tokio::time::timeout(Duration::from_secs(1), http::write_refusal(&mut stream, &refusal)).await;
    Ok(None)
}

struct Passed<T> {
    accept_key: String,
    subprotocol: bool,
    grant: Option<T>,
    place: Option<Place>,
}

/// The checks, in order: host, origin, path, upgrade, subprotocol, secret, room.
fn check<T>(
    gate: &Gate<T>,
    head: &Head,
    local: SocketAddr,
    taken: &Arc<AtomicUsize>,
) -> Result<Passed<T>, Refusal> {
    let mut hosts = head.all("host");
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host,
        _ => return Err(Refusal::new(403, "exactly one Host header is wanted")),
    };
    if !is_allowed_host(host, &gate.hosts) {
        // A web page that made its name point at this machine (DNS rebinding) is stopped here.
        let hint = format!("the Host header does not name this machine; use 127.0.0.1:{}", local.port());
        return Err(Refusal::new(403, hint));
    }
    if head.first("origin").is_some() {
        return Err(Refusal::new(403, "requests from web pages (with an Origin header) are refused"));
    }
    if !gate.paths.contains(&head.path) {
        return Err(Refusal::new(
            404,
            format!("no such path; the server is at {}", gate.paths.join(" and ")),
        ));
    }
    let accept_key = http::accept_key(head)?;
    let offered = head.words("sec-websocket-protocol").next().is_some();
    let subprotocol = head.words("sec-websocket-protocol").any(|name| name == gate.subprotocol);
    if offered && !subprotocol {
        let wanted = format!("only the subprotocol `{}` is spoken", gate.subprotocol);
        return Err(Refusal::new(400, wanted));
    }
    let grant = (gate.authorise)(head);
    if grant.is_none() && gate.late_refusal.is_none() {
        return Err(Refusal::new(401, "the token is missing or wrong; read it from the lock file"));
    }
    let place = if grant.as_ref().is_some_and(gate.counts) {
        let full = || format!("too many clients (limit {}); raise --max-clients", gate.connections);
        Some(Place::take(taken, gate.connections).ok_or_else(|| Refusal::new(503, full()))?)
    } else {
        None
    };
    Ok(Passed { accept_key, subprotocol, grant, place })
}

async fn upgrade<T>(
    mut stream: TcpStream,
    head: Head,
    gate: &Gate<T>,
    passed: Passed<T>,
    deadline: tokio::time::Instant,
) -> io::Result<Option<Accepted<T>>> {
    let subprotocol = passed.subprotocol.then_some(gate.subprotocol.as_str());
    let answer = http::write_upgrade(&mut stream, &passed.accept_key, subprotocol);
    tokio::time::timeout_at(deadline, answer).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let mut frames = Ws::server(stream, head.rest, gate.options).await;
    match (passed.grant, &gate.late_refusal) {
        (Some(grant), _) => Ok(Some(Accepted { frames, grant, place: passed.place })),
        (None, refusal) => {
            if let Some(refusal) = refusal {
                frames.close(refusal.clone()).await;
            }
            Ok(None)
        }
    }
}

/// Loopback by address or name, with or without a port, in any case; or one of the names that were allowed.
fn is_allowed_host(value: &[u8], allowed: &[String]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let (host, port) = if let Some(rest) = value.strip_prefix('[') {
        let Some((host, port)) = rest.split_once(']') else { return false };
        (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some("0")))
    } else {
        match value.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (value, Some("0")),
        }
    };
    if port.is_none_or(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    let loopback = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    // A bare `::1` without brackets is not a valid Host value, and split_once(':') above never leaves one.
    loopback
        || host.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ide_auth_04_only_loopback_hosts_are_let_in() {
        for good in [
            "127.0.0.1",
            "127.0.0.1:80",
            "127.9.9.9:1",
            "LocalHost",
            "localhost:65535",
            "[::1]",
            "[::1]:8080",
        ] {
            assert!(is_allowed_host(good.as_bytes(), &[]), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:1",
            "10.0.0.1",
            "[::2]:1",
            "::1",
            "localhost:",
            "localhost:x",
            "localhost:1:2",
            "0.0.0.0",
            "[::1",
            "[::1]x",
            "localhost@evil",
            "2130706433",
        ] {
            assert!(!is_allowed_host(bad.as_bytes(), &[]), "{bad}");
        }
        assert!(is_allowed_host(b"Box.local:123", &["box.local".into()]));
    }
}
