//! An engine on a socket, announced by a lock file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use oarlock_proto::ide::Dialect;
use oarlock_proto::mcp::Implementation;
use oarlock_wire::frame::{Lines, WsOptions};
use oarlock_wire::http::Head;
use oarlock_wire::listen::{self, Accepted, Gate};
use oarlock_wire::{Close, Connection, Ended};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::consent::{Consent, Rules};
use crate::discover::Environment;
use crate::editor::{Cancelled, Editor};
use crate::engine::{DiagnosticsTimes, Engine, Settings};
use crate::event::Observer;
use crate::handle::Ide;
use crate::keepalive::Keepalive;
use crate::lock::{self, Lock, LockFile};
use crate::session::{Role, Session};
use crate::state::{self, Engines, Record};
use crate::token::Token;
use crate::{Error, Result, control};

/// The header in which a client sends the token of the lock file.
pub const TOKEN_HEADER: &str = "x-claude-code-ide-authorization";

/// How long a stop may take: answers and views get two seconds, a goodbye one.
const STOPPING: Duration = Duration::from_secs(4);

/// How a server is set up. `Options { workspace: vec![dir], ..Options::default() }` is enough.
pub struct Options {
    /// The name that the CLI shows.
    pub name: String,
    /// The folders of the workspace; at least one.
    pub workspace: Vec<PathBuf>,
    /// A fixed port; otherwise any free one.
    pub port: Option<u16>,
    /// The address to listen on. Anything but loopback lets other machines try the token.
    pub listen: IpAddr,
    /// Host names that clients may use besides the loopback ones.
    pub allow_hosts: Vec<String>,
    /// Whose words the tools use.
    pub dialect: Dialect,
    /// Where the lock file goes; otherwise where the CLI looks.
    pub lock_dir: Option<PathBuf>,
    /// Where the engine's records go; otherwise the user's state directory.
    pub state_dir: Option<PathBuf>,
    /// Bounds.
    pub limits: Limits,
    /// When clients are asked for a sign of life; `None` for never.
    pub keepalive: Option<Keepalive>,
    /// How long selections are gathered before one is sent.
    pub debounce: Duration,
    /// How long after `ide_connected` a client is first told of the selection.
    pub settle: Duration,
    /// How long `getDiagnostics` may take.
    pub diagnostics: DiagnosticsTimes,
    /// Let `writeFile` of the dialect `vault` write without a review.
    pub allow_write: bool,
    /// What may leave. `None` for the default rules.
    pub consent: Option<Consent>,
    /// Told about everything that happens.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "Oarlock".into(),
            workspace: Vec::new(),
            port: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            allow_hosts: Vec::new(),
            dialect: Dialect::default(),
            lock_dir: None,
            state_dir: None,
            limits: Limits::default(),
            keepalive: Some(Keepalive::default()),
            debounce: Duration::from_millis(50),
            settle: Duration::from_millis(500),
            diagnostics: DiagnosticsTimes::default(),
            allow_write: false,
            consent: None,
            observer: None,
        }
    }
}

/// Bounds, each with a clear refusal and no effect on other clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a handshake may take.
    pub handshake: Duration,
    /// The largest message, in bytes.
    pub message: usize,
    /// Clients at once.
    pub clients: usize,
    /// Requests of one client that may wait for an answer.
    pub pending: usize,
    /// Bytes that may wait for a slow reader.
    pub queued: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            message: 64 << 20,
            clients: 64,
            pending: 1024,
            queued: 64 << 20,
        }
    }
}

/// A running engine. Dropping it stops it at once; [`stop`](Server::stop) says goodbye to its clients first.
pub struct Server {
    engine: Arc<Engine>,
    address: IpAddr,
    port: u16,
    control: Token,
    stop: Cancelled,
    /// Accepts clients and owns their tasks.
    accepting: JoinHandle<()>,
    helpers: [JoinHandle<()>; 2],
    // Fields are dropped in order: the lock goes before the record, so nobody finds an engine that is no more.
    lock: Lock,
    _record: Arc<Record>,
}

impl Server {
    /// Listens, then writes the lock file. When this returns, a CLI can connect.
    ///
    /// # Errors
    /// When a folder cannot be used, the port is taken, or the lock file cannot be written.
    pub async fn start(editor: Arc<dyn Editor>, options: Options) -> Result<Self> {
        let environment = Environment::from_process();
        let folders = lock::canonical_folders(&options.workspace)?;
        let lock_dir = lock::lock_dir(options.lock_dir.as_deref(), &environment)?;
        let state_dir = match &options.state_dir {
            Some(dir) => dir.clone(),
            None => state::engines_dir(&environment)?,
        };
        let engines = Engines::open(state_dir)?;
        lock::sweep(&lock_dir);

        let resumed = engines.resume(&folders, SystemTime::now());
        let address = options.listen;
        let (listener, token) = listen(address, options.port, resumed).await?;
        let port = listener.local_addr().map_err(|cause| Error::Listen { address, port: 0, cause })?.port();
        let control = Token::random()?;
        let lock_path = lock_dir.join(format!("{port}.lock"));

        let (name, limits) = (options.name.clone(), options.limits);
        let (dialect, hosts) = (options.dialect, options.allow_hosts.clone());
        let gate = gate(&limits, dialect, hosts, token.clone(), control.clone());
        let own = [&*lock_dir, engines.dir()];
        let engine = engine(editor, options, folders.clone(), &own)?;

        let record = Arc::new(engines.record(state::Engine {
            workspace: folders.clone(),
            address,
            port,
            token: token.clone(),
            control: control.clone(),
            lock: lock_path,
        })?);
        // The socket listens, so whoever sees the file can connect; the kernel holds them until the task below runs.
        let lock = Lock::create(&lock_dir, port, &LockFile::new(&name, &folders, token))?;
        let stop = Cancelled::new();
        let accepting = listen::accept(listener, Arc::new(gate), stop.clone(), serve(&engine, limits));
        let accepting = tokio::spawn(accepting);
        let follow = {
            let engine = engine.clone();
            async move { engine.share.follow(&engine.clients, engine.settings.debounce).await }
        };
        let helpers = [tokio::spawn(follow), tokio::spawn(keep_record(Arc::downgrade(&record)))];
        Ok(Self { engine, address, port, control, stop, accepting, helpers, lock, _record: record })
    }

    /// The handle for the editor.
    #[must_use]
    pub fn ide(&self) -> Ide {
        Ide::new(&self.engine)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where to connect to it from this machine.
    #[must_use]
    pub fn socket(&self) -> SocketAddr {
        let everywhere = self.address.is_unspecified();
        SocketAddr::new(if everywhere { Ipv4Addr::LOCALHOST.into() } else { self.address }, self.port)
    }

    /// The lock file.
    #[must_use]
    pub fn lock_path(&self) -> &Path {
        self.lock.path()
    }

    /// The token for our own commands, which is also in the engine's record.
    #[must_use]
    pub fn control_token(&self) -> &Token {
        &self.control
    }

    /// The canonical folders of the workspace.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.engine.folders
    }

    /// Stops: no new client finds it, open diffs become errors, clients are told, everything is freed.
    pub async fn stop(mut self) {
        if let Err(error) = self.lock.withdraw() {
            tracing::warn!(%error, "failed to remove the lock file");
        }
        // Nobody comes in any more, so that whoever reconnects finds the next engine.
        self.stop.cancel();
        self.engine.diffs.fail_all("the editor is shutting down");
        self.engine.clients.close_all(&Close::going_away());
        let _ = tokio::time::timeout(STOPPING, &mut self.accepting).await;
        for helper in &mut self.helpers {
            helper.abort();
            let _ = helper.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        self.helpers.iter().for_each(JoinHandle::abort);
    }
}

fn engine(
    editor: Arc<dyn Editor>,
    options: Options,
    folders: Vec<PathBuf>,
    own: &[&Path],
) -> Result<Arc<Engine>> {
    let mut consent = match options.consent {
        Some(consent) => consent,
        None => Consent::new(&folders, &Rules::default())?,
    };
    own.iter().for_each(|directory| consent.keep_back(directory));
    let settings = Settings {
        info: Implementation { name: "oarlock".into(), version: env!("CARGO_PKG_VERSION").into() },
        dialect: options.dialect,
        keepalive: options.keepalive,
        debounce: options.debounce,
        settle: options.settle,
        diagnostics: options.diagnostics,
        allow_write: options.allow_write,
    };
    let engine = Arc::new(Engine::new(editor, settings, folders, consent, options.observer)?);
    engine.editor.attach(Ide::new(&engine));
    Ok(engine)
}

/// Serves one client over lines, without a socket and without a lock file: a stdio MCP server. Gives back how the
/// conversation ended.
///
/// # Errors
/// When a folder cannot be used.
pub async fn serve_lines(
    editor: Arc<dyn Editor>,
    options: Options,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin,
) -> Result<Ended> {
    let folders = lock::canonical_folders(&options.workspace)?;
    let limits = options.limits;
    // The client is our parent or child: its end closes the pipe, so it needs no sign of life.
    let engine = engine(editor, Options { keepalive: None, ..options }, folders, &[])?;
    let frames = Lines::new(reader, writer, limits.message);
    let connection = Connection::new(frames, wire_limits(limits));
    let session = Session::new(engine.clone(), Role::Client, connection.peer());
    tokio::select! {
        ended = connection.run(session) => Ok(ended),
        () = engine.share.follow(&engine.clients, engine.settings.debounce) => Err(Error::Stopped),
    }
}

fn wire_limits(limits: Limits) -> oarlock_wire::Limits {
    oarlock_wire::Limits { pending: limits.pending, queued: limits.queued, ..oarlock_wire::Limits::default() }
}

/// Takes over the port and token of an engine that ended a moment ago, so that its clients find this one.
async fn listen(
    address: IpAddr,
    port: Option<u16>,
    resumed: Option<state::Resumed>,
) -> Result<(TcpListener, Token)> {
    if let Some(state::Resumed { port: old, token }) = resumed
        && port.is_none_or(|port| port == old)
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(address, old)).await
    {
        return Ok((listener, token));
    }
    let port = port.unwrap_or(0);
    let listener = TcpListener::bind(SocketAddr::new(address, port)).await;
    let listener = listener.map_err(|cause| Error::Listen { address, port, cause })?;
    Ok((listener, Token::random()?))
}

fn gate(limits: &Limits, dialect: Dialect, hosts: Vec<String>, token: Token, control: Token) -> Gate<Role> {
    let authorise = move |head: &Head| {
        if head.first(control::HEADER).is_some_and(|given| control.matches(given)) {
            return Some(Role::Control);
        }
        head.first(TOKEN_HEADER).filter(|given| token.matches(given)).map(|_| Role::Client)
    };
    Gate {
        hosts,
        paths: vec!["/".into(), "/mcp".into()],
        subprotocol: "mcp".into(),
        authorise: Box::new(authorise),
        late_refusal: (dialect == Dialect::Jetbrains)
            .then(|| Close::new(1008, "Invalid or missing authentication token")),
        handshake: limits.handshake,
        connections: limits.clients,
        // A full house must not keep our own commands out: they may be what empties it.
        counts: |role| *role == Role::Client,
        options: WsOptions { max_message: limits.message },
    }
}

fn serve(
    engine: &Arc<Engine>,
    limits: Limits,
) -> impl Fn(Accepted<Role>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Clone + Send + use<> {
    let engine = engine.clone();
    let limits = wire_limits(limits);
    move |accepted| {
        let engine = engine.clone();
        Box::pin(async move {
            let _place = accepted.place;
            let connection = Connection::new(accepted.frames, limits);
            let session = Session::new(engine, accepted.grant, connection.peer());
            let ended = connection.run(session).await;
            tracing::debug!(%ended, "connection ended");
        })
    }
}

/// After a crash the record's age is all that tells when the engine ended.
async fn keep_record(record: Weak<Record>) {
    loop {
        tokio::time::sleep(state::TOUCH_INTERVAL).await;
        let Some(record) = record.upgrade() else { return };
        if let Err(error) = record.touch() {
            tracing::warn!(%error, "failed to refresh this engine's record");
        }
    }
}
