//! `oarlock serve`: a directory becomes an IDE.

use std::io::IsTerminal as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use clap::ValueEnum;
use oarlock_ide::headless::{HeadlessEditor, OnDiff};
use oarlock_ide::{Event, Observer, Server};
use oarlock_proto::ide::Dialect;
use serde_json::json;
use tokio::sync::oneshot;

use crate::config::{Config, DiffPolicy, Millis, Seconds};
use crate::exit::Failure;
use crate::memory::Trim;
use crate::output::{DIM, GOOD, STRONG, json_line, say, warn};
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
    #[arg(long)]
    name: Option<String>,
    /// A fixed port [default: any free one]
    #[arg(long)]
    port: Option<u16>,
    /// The address to listen on; anything but loopback lets other machines try the token
    #[arg(long, value_name = "ADDR")]
    listen: Option<IpAddr>,
    /// A host name that clients may use besides the loopback ones; may be given several times
    #[arg(long, value_name = "NAME")]
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
    #[arg(long, value_name = "N")]
    max_clients: Option<usize>,
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
        super::runtime()?.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !self.json;
        let json = self.json;
        let workspace =
            if self.workspace.is_empty() { vec![std::env::current_dir()?] } else { self.workspace.clone() };
        let config = self.configure(Config::load(&workspace[0])?)?;
        let on_diff = match config.ide_on_diff.value {
            DiffPolicy::Ask if at_terminal => OnDiff::Ask(Arc::new(TerminalReviewer::default())),
            _ => config.on_diff_without_terminal(),
        };
        let editor = HeadlessEditor::new(on_diff).with_formatter(config.ide_formatter.value.clone());
        let mut options = config.options(workspace)?;
        let trim = Trim::new();
        let mut written = None;
        options.observer = Some(if json {
            let (observer, done) = json_events();
            written = Some(done);
            trimming(&trim, observer)
        } else {
            trimming(&trim, print_event)
        });
        if !options.listen.is_loopback() {
            warn(&format!(
                "listening on {}: every machine that reaches it can try the token, which travels unencrypted",
                options.listen
            ));
        }
        // Before the lock file exists: from then on every way out must remove it.
        let stop = stop_signal()?;
        let server = Server::start(Arc::new(editor), options).await?;
        announce(&server, json)?;
        tokio::select! {
            () = stop => {}
            () = trim.run() => {}
        }
        server.stop().await;
        if let Some(written) = written {
            // The last events get a moment to be read.
            let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
        }
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
        config.ide_max_clients.override_with(self.max_clients);
        config.ide_debounce_ms.override_with(self.debounce.map(|ms| Millis(Duration::from_millis(ms))));
        let keepalive = self.keepalive.map(Duration::try_from_secs_f64).transpose();
        let keepalive = keepalive.map_err(|error| Failure::usage(format!("--keepalive: {error}")))?;
        config.ide_keepalive.override_with(keepalive.map(Seconds));
        Ok(config)
    }
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

/// Events as JSON lines, written by a thread of their own: a reader of stdout that stands still must not stop the
/// engine. When 4096 lines wait, events are dropped, and the next line that gets through says how many.
fn json_events() -> (impl Fn(&Event<'_>) + Send + Sync, oneshot::Receiver<()>) {
    let (sender, lines) = sync_channel::<String>(4096);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        for line in lines {
            if crate::output::raw_line(&line).is_err() {
                break;
            }
        }
        let _ = done.send(());
    });
    let dropped = AtomicU64::new(0);
    let observer = move |event: &Event<'_>| {
        let missed = dropped.swap(0, Ordering::Relaxed);
        if missed > 0 && !send(&sender, &json!({ "event": "dropped", "count": missed })) {
            dropped.fetch_add(missed, Ordering::Relaxed);
        }
        if !send(&sender, event) {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    };
    (observer, written)
}

fn send(sender: &SyncSender<String>, event: &impl serde::Serialize) -> bool {
    let Ok(line) = serde_json::to_string(event) else { return true };
    !matches!(sender.try_send(line), Err(TrySendError::Full(_)))
}

/// The calm log: sessions and diffs, not every call.
fn print_event(event: &Event<'_>) {
    let text = match event {
        Event::ClientReady { client, pid, cwd, name, version } => {
            let pid = pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
            let cwd = cwd.map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
            format!("{GOOD}session {client} connected{GOOD:#} {name} {version}{pid}{cwd}")
        }
        Event::ClientGone { client, reason } => format!("{DIM}session {client} gone: {reason}{DIM:#}"),
        Event::DiffOpened { diff, path, .. } => {
            format!(
                "diff {STRONG}{diff}{STRONG:#} {} {DIM}(oarlock ide accept|reject {diff}){DIM:#}",
                path.display()
            )
        }
        Event::DiffDecided { diff, decision, by } => {
            format!("diff {STRONG}{diff}{STRONG:#} {decision} by {by}")
        }
        Event::Paused { paused: true } => "sharing is paused".to_owned(),
        Event::Paused { paused: false } => "sharing goes on".to_owned(),
        _ => return,
    };
    // Nobody may read it any more; that is no reason to stop.
    let _ = crate::output::line(&text);
}
