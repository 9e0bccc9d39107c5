//! From messages to events: a pure reducer.
