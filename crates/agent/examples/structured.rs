//! An answer that is a value: the model is held to the schema of a type.

#![allow(clippy::print_stdout)]

use oarlock_agent::{Error, ask};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
struct Person {
    /// The first name, in small letters.
    name: String,
    /// In years.
    age: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let person: Person = ask("Make up a person.").output().await?;
    println!("{} is {}", person.name, person.age);
    Ok(())
}
