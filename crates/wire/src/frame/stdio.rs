//! Standard input and output as the runtime likes them best.
//!
//! Of files and terminals nobody can tell when they are ready, so tokio reads them on threads of their own; a message then
//! changes threads twice. Editors give their agents pipes or sockets, which the runtime can watch itself.

use tokio::io::{AsyncRead, AsyncWrite};

/// Something to read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Something to write to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input. Call it within a runtime, and once.
#[must_use]
pub fn stdin() -> Input {
    #[cfg(unix)]
    if let Some(input) = watched::input() {
        return input;
    }
    Box::new(tokio::io::stdin())
}

/// Standard output. Call it within a runtime, and once.
#[must_use]
pub fn stdout() -> Output {
    #[cfg(unix)]
    if let Some(output) = watched::output() {
        return output;
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod watched {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use tokio::net::unix::pipe;

    use super::{Input, Output};

    /// `None` for what is neither a pipe nor a socket.
    pub(super) fn input() -> Option<Input> {
        let fd = io::stdin().as_fd().try_clone_to_owned().ok()?;
        if let Some(socket) = socket(&fd) {
            return Some(Box::new(socket));
        }
        Some(Box::new(pipe::Receiver::from_owned_fd(fd).ok()?))
    }

    pub(super) fn output() -> Option<Output> {
        let fd = io::stdout().as_fd().try_clone_to_owned().ok()?;
        // Whoever shares it with our log would lose lines of the log: it does not wait for a slow reader.
        if is_same(&fd, &io::stderr()) {
            return None;
        }
        if let Some(socket) = socket(&fd) {
            return Some(Box::new(socket));
        }
        Some(Box::new(pipe::Sender::from_owned_fd(fd).ok()?))
    }

    fn socket(fd: &OwnedFd) -> Option<tokio::net::UnixStream> {
        let socket = UnixStream::from(fd.try_clone().ok()?);
        // What is no Unix socket has no such address.
        socket.local_addr().ok()?;
        socket.set_nonblocking(true).ok()?;
        tokio::net::UnixStream::from_std(socket).ok()
    }

    fn is_same(fd: &OwnedFd, other: &impl AsFd) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let place = |fd: OwnedFd| std::fs::File::from(fd).metadata().map(|meta| (meta.dev(), meta.ino()));
        match (fd.try_clone().and_then(place), other.as_fd().try_clone_to_owned().and_then(place)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn a_socket_is_told_from_what_is_none() {
            let (one, _other) = UnixStream::pair().unwrap();
            assert!(socket(&one.into()).is_some());
            let (reader, _writer) = io::pipe().unwrap();
            assert!(socket(&reader.into()).is_none());
            assert!(socket(&tempfile().into()).is_none());
        }

        #[test]
        fn the_same_place_is_known() {
            let (reader, writer) = io::pipe().unwrap();
            let (_, other) = io::pipe().unwrap();
            let writer = OwnedFd::from(writer);
            assert!(is_same(&writer, &reader) && is_same(&writer, &writer));
            assert!(!is_same(&writer, &other));
        }

        fn tempfile() -> std::fs::File {
            std::fs::File::open(std::env::current_exe().unwrap()).unwrap()
        }
    }
}
