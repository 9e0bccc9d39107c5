//! Where transcripts can be kept besides the CLI's own files.
