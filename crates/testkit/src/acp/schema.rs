//! The published JSON schemas of the protocol, and whether a message of an agent's keeps to them.
//!
//! What version 1 has is held to the stable schema. Only what it has not (drafts such as `session/fork` and
//! `plan_update`) is held to the unstable one. Extensions, whose names begin with `_`, are free.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use jsonschema::Validator;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::install::{self, Availability};

/// The version of `@agentclientprotocol/sdk`, which brings them.
pub const VERSION: &str = "2.4.0";

const PACKAGE: &str = "@agentclientprotocol/sdk";

/// Where they lie under `target`.
#[must_use]
pub fn folder(target: &Path) -> PathBuf {
    target.join(format!("acp-schema-{VERSION}"))
}

/// Brings the schemas from npm, unless they are there. Needs the network, so it comes before
/// [`cage::enter`](crate::cage::enter).
pub fn obtain(target: &Path) -> Result<Availability<()>> {
    let folder = folder(target);
    if !folder.exists()
        && let Err(why) = install::require(&[&["npm", "--version"]], &["npm"])
    {
        return Ok(Availability::Missing(why));
    }
    let lock = folder.with_added_extension("lock");
    install::once("the ACP schemas", &lock, || folder.exists(), || download(target, &folder))?;
    Ok(Availability::Ready(()))
}

/// Downloads beside the final place and moves the result there in one step.
fn download(target: &Path, folder: &Path) -> Result<()> {
    let scratch = TempDir::with_prefix_in(".unpack-", target)?;
    let package = install::npm_pack(&format!("{PACKAGE}@{VERSION}"), scratch.path())?;
    let schemas = package.join("schema/v1");
    ensure!(schemas.join("schema.json").is_file(), "the package has no schema/v1/schema.json");
    fs::rename(&schemas, folder).context("failed to move the schemas into place")
}

/// One schema document.
struct Document {
    definitions: Value,
    /// Definitions by what they are of: the method, and `Request`, `Response` or `Notification`.
    names: HashMap<(String, &'static str), String>,
    /// Compiled ones, by name.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// Both schemas. A definition is compiled when it is first needed, once for a process that shares this.
pub struct Schemas {
    stable: Document,
    unstable: Document,
}

impl Schemas {
    /// Reads them from where [`obtain`] has put them.
    pub fn read(target: &Path) -> Result<Self> {
        let document = |name: &str| {
            let path = folder(target).join(name);
            let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            Document::new(&serde_json::from_slice(&bytes)?)
        };
        Ok(Self { stable: document("schema.json")?, unstable: document("schema.unstable.json")? })
    }

    /// What is wrong with a message of an agent's; `method` is that of the request if it is an answer.
    pub fn complaints(&self, message: &Value, method: &str) -> Result<Vec<String>> {
        if method.starts_with('_') {
            return Ok(Vec::new());
        }
        if let Some(error) = message.get("error") {
            return self.stable.complaints("Error", error);
        }
        let (role, body) = match (message.get("method"), message.get("id")) {
            (None, _) => ("Response", &message["result"]),
            (Some(_), Some(_)) => ("Request", &message["params"]),
            (Some(_), None) => ("Notification", &message["params"]),
        };
        let draft =
            body["update"]["sessionUpdate"].as_str().is_some_and(|kind| !self.stable.has_update(kind));
        for document in [&self.stable, &self.unstable] {
            if draft && std::ptr::eq(document, &self.stable) {
                continue;
            }
            if let Some(name) = document.names.get(&(method.to_owned(), role)) {
                return document.complaints(name, body);
            }
        }
        Ok(vec![format!("no schema has a {role} of {method}")])
    }
}

impl Document {
    fn new(document: &Value) -> Result<Self> {
        let definitions = document["$defs"].clone();
        let mut names = HashMap::new();
        for (name, definition) in definitions.as_object().context("a schema without definitions")? {
            let Some(method) = definition["x-method"].as_str() else { continue };
            for role in ["Request", "Response", "Notification"] {
                if name.ends_with(role) {
                    names.insert((method.to_owned(), role), name.clone());
                }
            }
        }
        Ok(Self { definitions, names, validators: Mutex::default() })
    }

    fn has_update(&self, kind: &str) -> bool {
        let kinds = self.definitions["SessionUpdate"]["oneOf"].as_array();
        kinds.into_iter().flatten().any(|one| one["properties"]["sessionUpdate"]["const"] == kind)
    }

    fn complaints(&self, name: &str, value: &Value) -> Result<Vec<String>> {
        let validator = self.validator(name)?;
        Ok(validator
            .iter_errors(value)
            .map(|error| format!("{name}{}: {error}", error.instance_path()))
            .collect())
    }

    fn validator(&self, name: &str) -> Result<Arc<Validator>> {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = validators.get(name) {
            return Ok(Arc::clone(validator));
        }
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("#/$defs/{name}"),
            "$defs": self.definitions,
        });
        let validator = jsonschema::validator_for(&schema);
        let validator = validator.map_err(|error| anyhow::anyhow!("the schema of {name}: {error}"))?;
        let validator = Arc::new(validator);
        validators.insert(name.to_owned(), Arc::clone(&validator));
        Ok(validator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Schemas {
        let update = |kinds: &[&str]| {
            let one = |kind: &&str| json!({"type": "object", "properties": {"sessionUpdate": {"const": kind}}, "required": ["sessionUpdate"]});
            json!({"$defs": {
                "SessionUpdate": {"oneOf": kinds.iter().map(one).collect::<Vec<_>>()},
                "SessionNotification": {
                    "x-method": "session/update", "required": ["update"],
                    "properties": {"update": {"$ref": "#/$defs/SessionUpdate"}},
                },
                "PromptResponse": {"x-method": "session/prompt", "required": ["stopReason"]},
                "Error": {"required": ["code"]},
            }})
        };
        Schemas {
            stable: Document::new(&update(&["plan"])).unwrap(),
            unstable: Document::new(&update(&["plan", "plan_update"])).unwrap(),
        }
    }

    #[test]
    fn a_message_is_held_to_the_definition_of_its_method_and_role() {
        let schemas = schemas();
        let well = |message: Value, method: &str| schemas.complaints(&message, method).unwrap().is_empty();
        let update =
            |kind: &str| json!({"method": "session/update", "params": {"update": {"sessionUpdate": kind}}});
        assert!(well(update("plan"), "session/update"));
        assert!(well(update("plan_update"), "session/update"));
        assert!(!well(update("nonsense"), "session/update"));
        assert!(well(json!({"id": 1, "result": {"stopReason": "x"}}), "session/prompt"));
        assert!(!well(json!({"id": 1, "result": {}}), "session/prompt"));
        assert!(!well(json!({"id": 1, "error": {}}), "session/prompt"));
        assert!(!well(json!({"id": 1, "method": "no/such", "params": {}}), "no/such"));
        assert!(well(json!({"method": "_own", "params": 5}), "_own"));
    }
}
