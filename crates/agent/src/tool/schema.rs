//! JSON schemas: made from types, and held against what the CLI and the API take.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// What the API refuses at the root of a tool's schema.
const COMBINATIONS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// The schema of what a type can be read from.
pub(super) fn of_input<T: JsonSchema>() -> Schema {
    root::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what a type is written as.
pub(super) fn of_output<T: JsonSchema>() -> Schema {
    root::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn root<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // MCP means draft 2020-12 anyway, and the name of a Rust type tells the model nothing: neither is worth its tokens.
    schema.remove("$schema");
    schema.remove("title");
    schema
}

/// Only the schema of an object will do: with any other one in its list of tools the CLI drops the tool, or all tools
/// of the server, without a word.
pub(super) fn check(schema: &Schema, whose: &str) -> Result<(), String> {
    if let Some(found) = COMBINATIONS.into_iter().find(|&key| schema.get(key).is_some()) {
        return Err(format!(
            "the schema of {whose} has `{found}` at its root, which the API does not take; use a struct, and \
             make what can be one of several a field of it"
        ));
    }
    match schema.get("type") {
        Some(kind) if kind == "object" => Ok(()),
        Some(kind) => {
            Err(format!("the schema of {whose} must be an object's, but its `type` is {kind}; {HOW}"))
        }
        None => Err(format!("the schema of {whose} must be an object's, but it has no `type`; {HOW}")),
    }
}

const HOW: &str = "use a struct with named fields, or a map with text keys";
