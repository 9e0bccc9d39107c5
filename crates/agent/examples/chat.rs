//! A dialogue: one session, several turns, text as it is written, and what each turn cost.

#![allow(clippy::print_stdout)]

use std::io::Write as _;

use oarlock_agent::reduce::{Event, Reducer};
use oarlock_agent::{Error, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // Text comes as it is written only when it is asked for.
    let (session, mut events) = Options::new().include_partial_messages(true).connect().await?;
    // The reducer turns messages into events that can be shown: each text once, each call with its result.
    let mut reducer = Reducer::default();
    for prompt in ["Hello!", "And once more, please."] {
        println!("> {prompt}");
        session.send(prompt).await?;
        'turn: while let Some(message) = events.next().await {
            for event in reducer.apply(message?) {
                match event {
                    Event::Text { text, .. } => {
                        print!("{text}");
                        let _ = std::io::stdout().flush();
                    }
                    Event::ToolCall(call) => println!("[{}]", call.name),
                    Event::TurnEnded(end) => {
                        println!("\n(${:.4})", end.cost_usd);
                        break 'turn;
                    }
                    _ => {}
                }
            }
        }
    }
    let exit = session.close().await?;
    println!("claude ended: {exit}");
    Ok(())
}
