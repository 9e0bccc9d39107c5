//! Warm start: a pool has a CLI ready before it is needed.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use oarlock_agent::{Error, Options, Pool};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let pool = Pool::new(Options::new(), 1);
    for _ in 0..2 {
        let (session, mut events) = pool.take().await?;
        let begin = Instant::now();
        session.send("Hello!").await?;
        let first = events.next().await.transpose()?;
        println!(
            "first frame ({}) after {:?}",
            first.as_ref().map_or("none", |first| first.tag()),
            begin.elapsed()
        );
        let result = events.turn(|_| {}).await?;
        println!("{}", result.and_then(|result| result.result).unwrap_or_default());
        session.close().await?;
    }
    Ok(())
}
