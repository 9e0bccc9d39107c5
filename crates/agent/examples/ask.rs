//! One question, one answer: `cargo run -p oarlock-agent --example ask -- "Why does the build fail?"`

#![allow(clippy::print_stdout, clippy::print_stderr)]

use oarlock_agent::{Error, ask};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "Say hello.".to_owned());
    match ask(prompt).await {
        Ok(answer) => {
            println!("{}", answer.text());
            println!(
                "cost: ${:.4}",
                answer.result.total_cost_usd.as_ref().and_then(|n| n.as_f64()).unwrap_or(0.0)
            );
        }
        // Errors say what happened and what to do; some are worth a case of their own.
        Err(Error::Login { .. }) => eprintln!("Please run `claude` once and log in."),
        Err(error) => eprintln!("{error}"),
    }
}
