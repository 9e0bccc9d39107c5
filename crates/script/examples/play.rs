//! Plays a script without the rest of oarlock: `cargo run --example play -- FILE [claude's arguments]`.

use oarlock_script::{Launch, Script, play};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let script = Script::read(args.next().ok_or("which script?")?)?;
    let launch = Launch::new(args).inherit_env();
    let outcome = play(&script, &launch, tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr()).await;
    std::process::exit(outcome.code)
}
