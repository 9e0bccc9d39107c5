//! Steering: a turn is interrupted, and the session goes on.

#![allow(clippy::print_stdout)]

use oarlock_agent::stream::{Event, Message};
use oarlock_agent::{Error, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (session, mut events) = Options::new().include_partial_messages(true).connect().await?;
    session.send("Tell me a very long story.").await?;
    while let Some(message) = events.next().await {
        match message? {
            // As soon as it begins we have heard enough.
            Message::StreamEvent(stream) if matches!(stream.event, Event::ContentBlockDelta(_)) => {
                let receipt = session.interrupt().await?;
                println!("interrupted; still queued: {}", receipt.still_queued.len());
                break;
            }
            _ => {}
        }
    }
    let result = events.turn(|_| {}).await?;
    println!(
        "the turn ended: {}",
        result.map_or("the stream ended".to_owned(), |result| result.subtype.to_string())
    );

    session.send("Then just say goodbye.").await?;
    let result = events.turn(|_| {}).await?;
    println!("{}", result.and_then(|result| result.result).unwrap_or_default());
    session.close().await?;
    Ok(())
}
