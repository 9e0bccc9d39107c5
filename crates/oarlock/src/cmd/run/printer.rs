//! Writing to stdout and stderr in one order, on a thread of its own: a reader that stands still must not keep Ctrl-C
//! waiting.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, oneshot};

/// As many pieces may wait to be written; then those who write wait.
const WAITING: usize = 64;

enum Job {
    /// To stdout, as it is.
    Raw(String),
    /// To stdout, with styles where they can be seen.
    Out(String),
    /// To stderr, with styles where they can be seen.
    Err(String),
    /// To stderr, as it is: for what moves the cursor.
    Cursor(String),
    /// All before this is written.
    Done(oneshot::Sender<()>),
}

/// Takes what is to be written.
#[derive(Clone)]
pub(super) struct Printer {
    jobs: mpsc::Sender<Job>,
    failed: Arc<OnceLock<io::ErrorKind>>,
}

impl Printer {
    pub(super) fn start() -> Self {
        let (jobs, queue) = mpsc::channel(WAITING);
        let failed = Arc::new(OnceLock::new());
        let failure = failed.clone();
        std::thread::spawn(move || {
            if let Err(error) = write_all(queue) {
                let _ = failure.set(error.kind());
            }
        });
        Self { jobs, failed }
    }

    /// Bytes for a program.
    pub(super) async fn raw(&self, text: String) -> io::Result<()> {
        self.put(Job::Raw(text)).await
    }

    /// A part of the answer, for people.
    pub(super) async fn out(&self, text: String) -> io::Result<()> {
        self.put(Job::Out(text)).await
    }

    /// Something beside the answer, for people.
    pub(super) async fn err(&self, text: String) -> io::Result<()> {
        self.put(Job::Err(text)).await
    }

    /// Something that moves the cursor.
    pub(super) async fn cursor(&self, text: String) -> io::Result<()> {
        self.put(Job::Cursor(text)).await
    }

    /// Waits until all is written.
    pub(super) async fn flush(&self) -> io::Result<()> {
        let (done, is_done) = oneshot::channel();
        self.put(Job::Done(done)).await?;
        is_done.await.map_err(|_| self.failure())
    }

    async fn put(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).await.map_err(|_| self.failure())
    }

    fn failure(&self) -> io::Error {
        let kind = self.failed.get().copied().unwrap_or(io::ErrorKind::BrokenPipe);
        io::Error::new(kind, format!("failed to write the answer to stdout: {kind}"))
    }
}

fn write_all(mut queue: mpsc::Receiver<Job>) -> io::Result<()> {
    let (mut out, mut err) = (anstream::stdout(), anstream::stderr());
    while let Some(job) = queue.blocking_recv() {
        match job {
            Job::Raw(text) => {
                let mut raw = io::stdout().lock();
                raw.write_all(text.as_bytes())?;
                raw.flush()?;
            }
            Job::Out(text) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            // Nobody needs to see what goes to stderr for the work to go on.
            Job::Err(text) => {
                let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
            }
            Job::Cursor(text) => {
                let _ = io::stderr().write_all(text.as_bytes());
            }
            Job::Done(done) => {
                let _ = done.send(());
            }
        }
    }
    Ok(())
}
