//! The sessions of this directory, newest first, from the CLI's own files.

#![allow(clippy::print_stdout)]

use oarlock_agent::Error;
use oarlock_agent::history::{Filter, Library};

fn main() -> Result<(), Error> {
    for session in Library::new()?.list(&Filter::project("."))?.take(20) {
        println!("{}  {}", session.id, session.title);
    }
    Ok(())
}
