//! The IDE side of Claude Code's IDE integration, for any editor.

pub mod consent;
pub mod discover;
pub mod error;
pub mod lock;
pub mod paths;
mod private;
pub mod process;
pub mod state;
pub mod token;

pub use error::{Error, Result};
