//! A native program that plays the CLI: it answers control requests, copies a recording to stdout after the user's
//! message, and stays until stdin ends. It costs next to nothing, so that a run shows the client.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Names the recording, for the program that is started as the CLI.
pub(crate) const RECORDING: &str = "OARLOCK_BENCH_RECORDING";

pub(crate) fn play(recording: &Path) -> Result<()> {
    let replays = std::env::args().any(|argument| argument == "--replay-user-messages");
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let mut message: Value = serde_json::from_str(&line?).context("a client wrote what is no JSON")?;
        match message["type"].as_str() {
            Some("control_request") => {
                let answer = json!({"type": "control_response", "response": {
                    "subtype": "success",
                    "request_id": message["request_id"],
                    "response": {"commands": [], "agents": [], "models": [], "account": {},
                        "output_style": "default", "available_output_styles": []},
                }});
                writeln!(out, "{answer}")?;
                out.flush()?;
            }
            Some("user") => {
                if replays {
                    message["isReplay"] = true.into();
                    writeln!(out, "{message}")?;
                    out.flush()?;
                }
                copy(recording)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn copy(recording: &Path) -> Result<()> {
    let mut file = File::open(recording)?;
    // Past the line buffer of `Stdout`: one write is one system call.
    let mut out = File::from(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..read])?;
    }
}
