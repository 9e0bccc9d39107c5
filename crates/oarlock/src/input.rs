//! Reading a terminal in a way that can be stopped.

use std::io::{self, IsTerminal as _, PipeReader};
use std::time::Duration;

/// What was typed.
pub(crate) enum Line {
    /// A line with its end; without one it was cut off and counts for nothing.
    Text(String),
    /// There will be no more.
    End,
    /// Nobody waits for it any more.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there a line cannot be stopped while it is waited for"))]
    Stopped,
}

/// Where a person types: stdin, or the terminal of this process when stdin is something else.
pub(crate) struct Keyboard {
    /// Not stdin.
    #[cfg(unix)]
    terminal: Option<std::fs::File>,
}

#[cfg(unix)]
impl Keyboard {
    /// Stdin, which must be a terminal.
    pub(crate) fn stdin() -> Self {
        Self { terminal: None }
    }

    /// Where the person types, if there is one.
    pub(crate) fn find() -> Option<Self> {
        if io::stdin().is_terminal() {
            return Some(Self::stdin());
        }
        std::fs::File::open("/dev/tty").ok().map(|terminal| Self { terminal: Some(terminal) })
    }

    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd as _;
        self.terminal.as_ref().map_or_else(|| rustix::stdio::stdin(), |terminal| terminal.as_fd())
    }

    /// Throws away what was typed before the question.
    pub(crate) fn forget(&self) -> io::Result<()> {
        Ok(rustix::termios::tcflush(self.fd(), rustix::termios::QueueSelector::IFlush)?)
    }

    /// One line, unless nobody waits for it any more.
    pub(crate) fn line(&self, stopped: &PipeReader) -> io::Result<Line> {
        use rustix::event::{PollFd, PollFlags, poll};
        let keys = self.fd();
        loop {
            let mut fds = [PollFd::new(&keys, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !fds[1].revents().is_empty() {
                return Ok(Line::Stopped);
            }
            // A terminal gives one line a read; one that is cut off here has no line end, and counts for nothing.
            let mut line = [0; 4096];
            let length = rustix::io::read(keys, &mut line)?;
            let text = String::from_utf8_lossy(&line[..length]).into_owned();
            return Ok(if length > 0 { Line::Text(text) } else { Line::End });
        }
    }
}

/// Waits for a while, or until nobody waits for an answer any more.
#[cfg(unix)]
pub(crate) fn is_stopped(stopped: &PipeReader, within: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let within = Timespec::try_from(within).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    match poll(&mut fds, Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
impl Keyboard {
    /// Stdin, which must be a terminal.
    pub(crate) fn stdin() -> Self {
        Self {}
    }

    /// Where the person types, if there is one.
    pub(crate) fn find() -> Option<Self> {
        io::stdin().is_terminal().then(Self::stdin)
    }

    /// Throws away what was typed before the question.
    pub(crate) fn forget(&self) -> io::Result<()> {
        Ok(())
    }

    /// One line.
    pub(crate) fn line(&self, _stopped: &PipeReader) -> io::Result<Line> {
        let mut line = String::new();
        let length = io::stdin().read_line(&mut line)?;
        Ok(if length > 0 { Line::Text(line) } else { Line::End })
    }
}

/// Waits for a while.
#[cfg(not(unix))]
pub(crate) fn is_stopped(_stopped: &PipeReader, within: Duration) -> io::Result<bool> {
    std::thread::sleep(within);
    Ok(false)
}
