//! A program in a pseudo terminal: type into it, press keys, wait for what its screen shows.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

const ROWS: u16 = 50;
const COLUMNS: u16 = 140;
/// When text that does not show up counts as dropped.
const RETYPE: Duration = Duration::from_secs(5);

/// What to start in a terminal.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

impl Launch {
    /// Starts `program` in `directory`, with this environment and no other variable.
    pub fn new(
        program: impl Into<PathBuf>,
        directory: impl Into<PathBuf>,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        Self { program: program.into(), arguments: vec![], environment, directory: directory.into() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds or replaces a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it.
    pub fn start(&self) -> Result<Tui> {
        Tui::start(self)
    }

    /// The directory it starts in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Key {
    Enter,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    /// Control with a letter.
    Control(char),
    /// A key that types a character.
    Character(char),
}

impl Key {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Enter => b"\r".to_vec(),
            Self::Escape => b"\x1b".to_vec(),
            Self::Tab => b"\t".to_vec(),
            Self::Backspace => b"\x7f".to_vec(),
            Self::Up => b"\x1b[A".to_vec(),
            Self::Down => b"\x1b[B".to_vec(),
            Self::Right => b"\x1b[C".to_vec(),
            Self::Left => b"\x1b[D".to_vec(),
            Self::Character(character) => character.to_string().into_bytes(),
            Self::Control(letter) => vec![u8::try_from(letter).unwrap_or(b'@') & 0x1f],
        }
    }
}

/// A program running in a pseudo terminal. Its whole process group is killed when this is dropped.
pub struct Tui {
    display: Arc<Mutex<vt100::Parser<Replies>>>,
    changes: watch::Receiver<Change>,
    input: SyncSender<Vec<u8>>,
    child: Box<dyn Child + Send + Sync>,
    group: Option<Pid>,
    // Closing the master hangs the terminal up, so it lives as long as the program. The lock only makes it shareable.
    _master: Mutex<Box<dyn MasterPty + Send>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Change {
    number: u64,
    ended: bool,
}

impl Tui {
    fn start(launch: &Launch) -> Result<Self> {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).context("failed to open a pseudo terminal")?;
        let mut command = CommandBuilder::new(&launch.program);
        command.args(&launch.arguments);
        command.env_clear();
        for (name, value) in &launch.environment {
            command.env(name, value);
        }
        command.cwd(&launch.directory);
        let child = pair
            .slave
            .spawn_command(command)
            .with_context(|| format!("failed to start {}", launch.program.display()))?;
        drop(pair.slave);
        // The child leads its own session, so its pid names the group.
        let group = child.process_id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));

        // 64 writes are far more than any test has under way; when full, the typing test waits.
        let (input, queue) = sync_channel(64);
        let rows = NonZeroU16::new(ROWS).context("no rows")?;
        let columns = NonZeroU16::new(COLUMNS).context("no columns")?;
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, Replies { input: input.clone() });
        let display = Arc::new(Mutex::new(parser));
        let (changed, changes) = watch::channel(Change::default());
        let writer = pair.master.take_writer().context("failed to write to the terminal")?;
        let reader = pair.master.try_clone_reader().context("failed to read from the terminal")?;
        let seen = Arc::clone(&display);
        std::thread::spawn(move || write_all(queue, writer));
        std::thread::spawn(move || read_all(reader, &seen, &changed));
        Ok(Self { display, changes, input, child, group, _master: Mutex::new(pair.master) })
    }

    /// The program's process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.process_id()
    }

    /// What the screen shows now, without trailing blanks and empty last lines.
    #[must_use]
    pub fn screen(&self) -> String {
        let parser = lock(&self.display);
        let (_, columns) = parser.screen().size();
        let rows: Vec<String> =
            parser.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Types characters, as a person would.
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.send(text.as_bytes().to_vec())
    }

    /// Presses a key.
    pub fn press(&self, key: Key) -> Result<()> {
        self.send(key.bytes())
    }

    fn send(&self, bytes: Vec<u8>) -> Result<()> {
        self.input.send(bytes).map_err(|_| self.failure("the terminal takes no more input"))
    }

    /// Types a prompt, waits until the screen shows its end, and submits it. Return straight after the text would be
    /// taken for a line feed of a pasted block. A program that has just closed a dialogue may drop what is typed;
    /// then the line is cleared and typed again.
    pub async fn submit(&self, prompt: &str, within: Duration) -> Result<()> {
        let blankless = |text: &str| text.split_whitespace().collect::<String>();
        let typed = blankless(prompt);
        let tail = &typed[typed.char_indices().rev().nth(15).map_or(0, |(index, _)| index)..];
        let limit = tokio::time::Instant::now() + within;
        loop {
            self.type_text(prompt)?;
            let left = limit.saturating_duration_since(tokio::time::Instant::now()).min(RETYPE);
            let what = format!("the prompt {prompt:?} to be typed");
            match self.wait_until(&what, left, |screen| blankless(screen).contains(tail)).await {
                Ok(_) => return self.press(Key::Enter),
                Err(error) if tokio::time::Instant::now() >= limit => return Err(error),
                Err(_) => self.press(Key::Control('u'))?,
            }
        }
    }

    /// Waits until the screen shows `text`.
    pub async fn wait_for_text(&self, text: &str, within: Duration) -> Result<String> {
        self.wait_until(&format!("{text:?} on the screen"), within, |screen| screen.contains(text)).await
    }

    /// Waits until the screen no longer shows `text`.
    pub async fn wait_for_no_text(&self, text: &str, within: Duration) -> Result<String> {
        self.wait_until(&format!("no {text:?} on the screen"), within, |screen| !screen.contains(text)).await
    }

    /// Waits until `wanted` holds for the screen, looking again at each output, and returns that screen.
    pub async fn wait_until(
        &self,
        what: &str,
        within: Duration,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> Result<String> {
        let mut changes = self.changes.clone();
        let limit = tokio::time::Instant::now() + within;
        loop {
            let ended = changes.borrow_and_update().ended;
            let screen = self.screen();
            if wanted(&screen) {
                return Ok(screen);
            }
            if ended {
                return Err(self.failure(&format!("{what}: the program has ended")));
            }
            if !matches!(tokio::time::timeout_at(limit, changes.changed()).await, Ok(Ok(()))) {
                return Err(self.failure(&format!("{what}: not within {within:?}")));
            }
        }
    }

    /// Waits until the program has ended and closed its terminal.
    pub async fn wait_for_end(&self, within: Duration) -> Result<()> {
        let mut changes = self.changes.clone();
        let ended = tokio::time::timeout(within, changes.wait_for(|change| change.ended)).await;
        match ended {
            Ok(_) => Ok(()),
            Err(_) => Err(self.failure(&format!("the program did not end within {within:?}"))),
        }
    }

    /// An error that shows the screen.
    #[must_use]
    pub fn failure(&self, what: &str) -> anyhow::Error {
        anyhow!("{what}; the screen was:\n{}", self.framed())
    }

    /// The screen with a frame, for failure messages.
    #[must_use]
    pub fn framed(&self) -> String {
        let rule = "─".repeat(usize::from(COLUMNS));
        format!("{rule}\n{}\n{rule}", self.screen())
    }
}

impl std::fmt::Debug for Tui {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tui").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // An error means that nobody is left, which is what was wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Answers the questions that programs ask their terminal, as an ordinary terminal does. The queue may be full only
/// if the program reads nothing; then an answer is of no use either.
struct Replies {
    input: SyncSender<Vec<u8>>,
}

impl vt100::Callbacks for Replies {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        kind: char,
    ) {
        let parameter = parameters.first().and_then(|p| p.first()).copied().unwrap_or(0);
        let answer = match (first, kind, parameter) {
            (None, 'c', 0) => "\x1b[?62;22c".to_owned(),
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            _ => return,
        };
        let _ = self.input.try_send(answer.into_bytes());
    }
}

fn read_all(
    mut reader: Box<dyn Read + Send>,
    display: &Mutex<vt100::Parser<Replies>>,
    changed: &watch::Sender<Change>,
) {
    let mut buffer = [0; 8192];
    // Linux reports the end of a terminal as an error, so both mean the end.
    while let Ok(length @ 1..) = reader.read(&mut buffer) {
        lock(display).process(&buffer[..length]);
        changed.send_modify(|change| change.number += 1);
    }
    changed.send_modify(|change| change.ended = true);
}

fn write_all(queue: Receiver<Vec<u8>>, mut writer: Box<dyn Write + Send>) {
    for bytes in queue {
        if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Tui {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Launch::new("/bin/sh", "/", vec![("PATH".into(), path)]).args(["-c", script]).start().unwrap()
    }

    #[tokio::test]
    async fn typed_text_reaches_the_program_and_its_output_the_screen() {
        let tui = shell("read line; printf 'got \\033[1m%s\\033[0m\\n' \"$line\"; read line");
        tui.type_text("hello").unwrap();
        tui.press(Key::Enter).unwrap();
        tui.wait_for_text("got hello", SOON).await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_wait_shows_the_screen() {
        let tui = shell("echo only this; read line");
        tui.wait_for_text("only this", SOON).await.unwrap();
        let error =
            tui.wait_for_text("something else", Duration::from_millis(1)).await.unwrap_err().to_string();
        assert!(error.contains("something else") && error.contains("only this"), "{error}");
        tui.press(Key::Enter).unwrap();
        tui.wait_for_end(SOON).await.unwrap();
        let error = tui.wait_for_text("something else", SOON).await.unwrap_err().to_string();
        assert!(error.contains("has ended"), "{error}");
    }

    #[tokio::test]
    async fn the_terminal_says_where_its_cursor_is() {
        let tui = shell(
            "stty -icanon -echo; printf 'ab\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; read line",
        );
        tui.wait_for_text("1   ;   3   R", SOON).await.unwrap();
    }

    #[tokio::test]
    async fn dropping_kills_the_whole_group() {
        let tui = shell("sleep 1000 & echo child $!; wait");
        let screen =
            tui.wait_until("the child's pid", SOON, |screen| screen.contains("child ")).await.unwrap();
        let pid: i32 = screen.trim().strip_prefix("child ").unwrap().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        let watched = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        drop(tui);
        // A pidfd becomes readable when its process ends.
        let mut polled = [rustix::event::PollFd::new(&watched, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut polled, Some(&limit)).unwrap(), 1);
    }
}
