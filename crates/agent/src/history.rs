//! The CLI's own transcripts: list, read, search, export, change.
