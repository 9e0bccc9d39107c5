//! `oarlock serve`: a directory becomes an IDE.

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use oarlock_ide::discover::{Connects, Environment, discover};
use oarlock_ide::headless::{HeadlessEditor, OnDiff};
use oarlock_ide::{Event, Observer, Server};
use oarlock_proto::ide::Dialect;
use serde_json::json;
use tokio::sync::oneshot;

use crate::config::{Config, DiffPolicy, Millis, Seconds};
use crate::exit::Failure;
use crate::memory::Trim;
use crate::output::{DIM, GOOD, STRONG, json_line, say, visible, warn};
use crate::review::TerminalReviewer;

/// Turn a directory into an IDE that Claude Code connects to
///
/// Without a terminal, `--on-diff ask` lets every diff wait for `oarlock ide accept` or `oarlock ide reject`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A folder of the workspace; may be given several times [default: this directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
    /// The name that Claude Code shows
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: Option<String>,
    /// A fixed port [default: any free one]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; anything but loopback lets other machines try the token
    #[arg(long, value_name = "ADDR")]
    listen: Option<IpAddr>,
    /// A host name that clients may use besides the loopback ones; may be given several times
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    allow_host: Vec<String>,
    /// Whose reply texts and shapes to use [default: vscode, which Claude Code understands]
    #[arg(long, value_enum)]
    dialect: Option<DialectName>,
    /// What to do with a proposed change [default: ask]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_diff: Option<DiffPolicy>,
    /// Let `writeFile` of the dialect `vault` write without a review
    #[arg(long)]
    allow_write: bool,
    /// Where the lock file goes [default: where Claude Code looks]
    #[arg(long, value_name = "DIR")]
    lock_dir: Option<PathBuf>,
    /// Seconds between signs of life asked of a client; 0 for never [default: 5]
    #[arg(long, value_name = "SECONDS")]
    keepalive: Option<f64>,
    /// How many clients at once [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: Option<u32>,
    /// Milliseconds that selections are gathered before one is sent [default: 50]
    #[arg(long, value_name = "MS")]
    debounce: Option<u64>,
    /// Print one JSON object a line: `ready` first, then everything that happens
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DialectName {
    Vscode,
    Jetbrains,
    Vault,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Vscode => Self::Vscode,
            DialectName::Jetbrains => Self::Jetbrains,
            DialectName::Vault => Self::Vault,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        super::block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !self.json;
        let json = self.json;
        let workspace =
            if self.workspace.is_empty() { vec![std::env::current_dir()?] } else { self.workspace.clone() };
        let config = self.configure(Config::load(&workspace)?)?;
        let reviewer = Arc::new(TerminalReviewer::default());
        let screen = reviewer.screen();
        let on_diff = match config.ide_on_diff.value {
            DiffPolicy::Ask if at_terminal => OnDiff::Ask(reviewer),
            _ => config.on_diff_without_terminal(),
        };
        let editor = HeadlessEditor::new(on_diff).with_formatter(config.ide_formatter.value.clone());
        let mut options = config.options(workspace)?;
        let trim = Trim::new();
        let (events, written) = events(if json { as_json } else { for_people }, screen);
        options.observer = Some(trimming(&trim, events));
        if !options.listen.is_loopback() {
            warn(&format!(
                "listening on {}: every machine that reaches it can try the token, which travels unencrypted",
                options.listen
            ));
        }
        if options.listen != Ipv4Addr::LOCALHOST && !options.listen.is_unspecified() {
            let address = options.listen;
            warn(&format!(
                "Claude Code connects to 127.0.0.1; set CLAUDE_CODE_IDE_HOST_OVERRIDE={address} for it"
            ));
        }
        // Before the lock file exists: from then on every way out must remove it.
        let stop = stop_signal()?;
        let server = Server::start(Arc::new(editor), options).await?;
        announce(&server, json)?;
        tokio::task::spawn_blocking({
            let folder = server.folders()[0].clone();
            move || warn_of_rivals(&folder)
        });
        tokio::select! {
            () = stop => {}
            never = trim.run() => match never {},
        }
        server.stop().await;
        // The last events get a moment to be read.
        let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
        Ok(())
    }

    /// Flags count more than the configuration.
    fn configure(self, mut config: Config) -> anyhow::Result<Config> {
        config.ide_name.override_with(self.name);
        config.ide_port.override_with(self.port.map(Some));
        config.ide_listen.override_with(self.listen);
        config.ide_allow_hosts.override_with(Some(self.allow_host).filter(|hosts| !hosts.is_empty()));
        config.ide_dialect.override_with(self.dialect.map(Into::into));
        config.ide_on_diff.override_with(self.on_diff);
        config.ide_allow_write.override_with(self.allow_write.then_some(true));
        config.ide_lock_dir.override_with(self.lock_dir.map(Some));
        config.ide_max_clients.override_with(self.max_clients.map(|n| n as usize));
        config.ide_debounce_ms.override_with(self.debounce.map(|ms| Millis(Duration::from_millis(ms))));
        let keepalive = self.keepalive.map(Duration::try_from_secs_f64).transpose();
        let keepalive = keepalive.map_err(|error| Failure::usage(format!("--keepalive: {error}")))?;
        config.ide_keepalive.override_with(keepalive.map(Seconds));
        Ok(config)
    }
}

/// A host without a port: the port of a request is not looked at.
fn host_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty() && !text.contains(|c: char| c == '/' || c == '@' || c.is_whitespace());
    let port = text.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':'));
    if plain && !port { Ok(text.to_owned()) } else { Err("a host name without a port is wanted".into()) }
}

fn announce(server: &Server, json: bool) -> anyhow::Result<()> {
    let (port, lock, folders) = (server.port(), server.lock_path(), server.folders());
    if json {
        let pid = std::process::id();
        return json_line(
            &json!({ "event": "ready", "port": port, "lock": lock, "pid": pid, "workspace": folders }),
        );
    }
    let shown: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    say!("{GOOD}{} is an IDE now{GOOD:#} (port {port})\n", shown.join(", "))?;
    say!(
        "  connect Claude Code, in that directory   {STRONG}claude --ide --permission-mode default{STRONG:#}"
    )?;
    say!("  or from anywhere                         {STRONG}oarlock claude --engine {port}{STRONG:#}")?;
    say!("  share a selection                        {STRONG}oarlock ide select FILE:LINE-LINE{STRONG:#}")?;
    say!("  stop                                     {STRONG}Ctrl-C{STRONG:#}\n")
}

/// Resolves when the process is asked to end.
#[cfg(unix)]
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Resolves when the process is asked to end.
#[cfg(not(unix))]
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// An observer that also has memory given back after a large message or a diff.
fn trimming(trim: &Trim, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Arc<dyn Observer> {
    let soon = trim.soon();
    Arc::new(move |event: &Event<'_>| {
        if let Event::LargeMessage { .. } | Event::DiffDecided { .. } = event {
            soon();
        }
        observer(event);
    })
}

/// Events as lines, written by a thread of their own: a reader of stdout that stands still must not stop the engine. When
/// 4096 lines wait, events are dropped, and the next line that gets through says how many.
fn events(
    describe: fn(&Event<'_>) -> Option<String>,
    screen: Arc<Mutex<()>>,
) -> (impl Fn(&Event<'_>) + Send + Sync, oneshot::Receiver<()>) {
    let (sender, lines) = sync_channel::<String>(4096);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        for line in lines {
            let _screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            if crate::output::line(&line).is_err() {
                break;
            }
        }
        let _ = done.send(());
    });
    let dropped = AtomicU64::new(0);
    let observer = move |event: &Event<'_>| {
        let Some(line) = describe(event) else { return };
        let missed = dropped.swap(0, Ordering::Relaxed);
        let note = json!({ "event": "dropped", "count": missed }).to_string();
        let lost = if missed > 0 && !send(&sender, note) { missed } else { 0 };
        let lost = if send(&sender, line) { lost } else { lost + 1 };
        dropped.fetch_add(lost, Ordering::Relaxed);
    };
    (observer, written)
}

fn send(sender: &SyncSender<String>, line: String) -> bool {
    !matches!(sender.try_send(line), Err(TrySendError::Full(_)))
}

fn as_json(event: &Event<'_>) -> Option<String> {
    serde_json::to_string(event).ok()
}

/// The calm log: sessions and diffs, not every call.
fn for_people(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::ClientReady { client, pid, cwd, name, version } => {
            let pid = pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
            let cwd = cwd.map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
            let whence = visible(&format!("{name} {version}{pid}{cwd}"));
            format!("{GOOD}client {client} is ready{GOOD:#} {whence}")
        }
        Event::ClientConnected { client } => format!("{DIM}client {client} connected{DIM:#}"),
        Event::ClientGone { client, reason } => {
            format!("{DIM}client {client} gone: {}{DIM:#}", visible(reason))
        }
        Event::DiffOpened { diff, path, .. } => {
            let path = visible(&path.display().to_string());
            format!("diff {STRONG}{diff}{STRONG:#} {path} {DIM}(oarlock ide accept|reject {diff}){DIM:#}")
        }
        Event::DiffDecided { diff, decision, by, why } => {
            let why = why.map(|why| format!(": {}", visible(why))).unwrap_or_default();
            format!("diff {STRONG}{diff}{STRONG:#} {decision} by the {by}{why}")
        }
        Event::Paused { paused: true } => "sharing is paused".to_owned(),
        Event::Paused { paused: false } => "sharing goes on".to_owned(),
        _ => return None,
    })
}

/// Two IDEs for one directory: `claude --ide` then takes neither, and says nothing.
fn warn_of_rivals(folder: &Path) {
    let verdict = discover(&Environment::from_process(), folder).verdict.ide_flag;
    if verdict.connects == Connects::No {
        warn(&format!("`claude --ide` will not connect here: {}", visible(&verdict.text)));
    }
}
