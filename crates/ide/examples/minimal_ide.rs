//! The smallest IDE that the real CLI accepts: it shows every proposed change and asks on the terminal.
//!
//! `cargo run -p oarlock-ide --example minimal_ide`, then `claude --ide --permission-mode default` in the same directory.
#![allow(clippy::print_stdout, reason = "the terminal is this editor's screen")]

use std::io::Write as _;
use std::sync::Arc;

use oarlock_ide::editor::{Abilities, Cancelled, DiffOutcome, Editor, OpenDiff, Reply};
use oarlock_ide::{Options, Server};

struct Terminal;

impl Editor for Terminal {
    fn abilities(&self) -> Abilities {
        Abilities { open_diff: true, ..Abilities::default() }
    }

    fn open_diff(&self, request: OpenDiff, _cancelled: Cancelled) -> Reply<'_, DiffOutcome> {
        Box::pin(async move {
            // Reading a line blocks, so it happens on a thread of its own.
            let asked = tokio::task::spawn_blocking(move || {
                print!("--- {}\n{}\n--- accept? [y/N] ", request.new_path.display(), request.new_contents);
                let mut answer = String::new();
                let read = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
                match read {
                    Ok(_) if answer.trim() == "y" => DiffOutcome::Accepted { contents: request.new_contents },
                    _ => DiffOutcome::Rejected,
                }
            });
            Ok(asked.await.unwrap_or(DiffOutcome::Rejected))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = vec![std::env::current_dir()?];
    let options = Options { name: "Minimal IDE".into(), workspace, ..Options::default() };
    let server = Server::start(Arc::new(Terminal), options).await?;
    println!("ready: {}", server.lock_path().display());
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    // A question that is still open reads the terminal on its own thread; nobody waits for its answer.
    std::process::exit(0)
}
