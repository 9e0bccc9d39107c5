//! Plays a plan with our SDK, as the drivers of the official ones do.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

pub(crate) fn main(_plan: Option<OsString>) -> Result<ExitCode> {
    bail!("our SDK is being written")
}
