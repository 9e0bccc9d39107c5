//! Passing messages on between two framings, unread.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::frame::{Close, Frames, ReadError};

/// How long one side's last messages may take to arrive once the other has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Passes messages on in both directions until one side ends; then the other is told, and its last messages still
/// arrive. One message at most waits in each direction, so a slow reader slows its writer and nothing piles up.
///
/// # Errors
/// When a side breaks.
pub async fn relay(mut left: impl Frames, mut right: impl Frames) -> Result<(), ReadError> {
    let (left_ended, outcome) = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll_pass(&mut left, &mut right, cx) {
            return Poll::Ready((true, ended));
        }
        poll_pass(&mut right, &mut left, cx).map(|ended| (false, ended))
    })
    .await;
    let close = Close::new(1000, "the other side ended");
    if left_ended {
        last_words(&mut right, &mut left, &close).await;
    } else {
        last_words(&mut left, &mut right, &close).await;
    }
    left.close(close.clone()).await;
    right.close(close).await;
    outcome
}

async fn last_words(from: &mut impl Frames, to: &mut impl Frames, close: &Close) {
    from.start_close(close);
    let words = poll_fn(|cx| {
        let _ = from.poll_flush(cx);
        poll_pass(from, to, cx)
    });
    let _ = tokio::time::timeout(LAST_WORDS, words).await;
}

/// Ready when `from` has ended or something broke.
fn poll_pass(
    from: &mut impl Frames,
    to: &mut impl Frames,
    cx: &mut Context<'_>,
) -> Poll<Result<(), ReadError>> {
    loop {
        // A message is only taken when it can be passed on.
        match to.poll_ready(cx) {
            Poll::Ready(ready) => ready?,
            Poll::Pending => return Poll::Pending,
        }
        let Poll::Ready(next) = from.poll_next(cx) else {
            ready!(to.poll_flush(cx))?;
            return Poll::Pending;
        };
        match next {
            Some(Ok(text)) => to.start_send(text.as_ref().to_owned())?,
            Some(Err(error @ (ReadError::Skipped { .. } | ReadError::NotText))) => {
                tracing::warn!(%error, "a message is not passed on");
            }
            Some(Err(error)) => return Poll::Ready(Err(error)),
            None => {
                ready!(to.poll_flush(cx))?;
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            other => io::Error::other(other),
        }
    }
}
