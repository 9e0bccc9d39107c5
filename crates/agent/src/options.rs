//! Everything that a session can be started with.

/// Everything that a session can be started with.
#[derive(Clone, Default)]
pub struct Options {}
