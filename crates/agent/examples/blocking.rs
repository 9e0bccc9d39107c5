//! Without async.

#![allow(clippy::print_stdout)]

use oarlock_agent::{Error, Options, blocking};

fn main() -> Result<(), Error> {
    let (session, mut events) = blocking::connect(Options::new())?;
    session.send("Hello!")?;
    let result = events.turn(|message| println!("{}", message.tag()))?;
    println!("{}", result.and_then(|result| result.result).unwrap_or_default());
    session.close()?;
    Ok(())
}
