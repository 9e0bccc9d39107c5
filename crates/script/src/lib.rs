//! A scripted stand-in for the Claude Code CLI in stream-json mode.
