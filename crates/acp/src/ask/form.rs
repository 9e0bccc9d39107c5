//! An MCP server asks the user: by a form, or by an address to open.
//!
//! A form's fields are texts, numbers, switches, and choices. What a server asks for besides is left out when it is not
//! required; when it is, the question cannot be put, and is cancelled.

use oarlock_agent::stream::reply::{Elicitation as Reply, ElicitationAction};
use oarlock_agent::stream::{Elicitation, Json};
use oarlock_proto::acp::{CompleteElicitation, CreateElicitation, ElicitationMode, ElicitationResponse};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::context::{Asker, Context};

/// An MCP server asks the user.
pub(crate) async fn elicitation(asker: &Asker, request: Elicitation) -> Reply {
    let cancelled = no_elicitation();
    let server = request.display_name.as_ref().unwrap_or(&request.mcp_server_name);
    let Some(mode) = mode(asker, &request) else {
        tracing::warn!(server, "a question of an MCP server cannot be shown by this client");
        return cancelled;
    };
    let question = CreateElicitation {
        session_id: asker.session_id.to_string(),
        tool_call_id: None,
        // The user must see who asks.
        message: format!("{server}: {}", request.message),
        mode,
    };
    match asker.ask("elicitation/create", &question).await {
        Ok(ElicitationResponse::Accept { content }) => Reply {
            action: ElicitationAction::Accept,
            content: match question.mode {
                ElicitationMode::Form { .. } => Json::write(&content.unwrap_or_default()).ok(),
                ElicitationMode::Url { .. } => None,
            },
            ..Default::default()
        },
        Ok(ElicitationResponse::Decline) => {
            Reply { action: ElicitationAction::Decline, ..Default::default() }
        }
        Ok(_) => cancelled,
        Err(error) => {
            tracing::warn!(server, %error, "a question of an MCP server was not answered");
            cancelled
        }
    }
}

/// The answer to a server whose question is not answered.
pub(crate) fn no_elicitation() -> Reply {
    Reply { action: ElicitationAction::Cancel, ..Default::default() }
}

/// The server has what it wanted from an address: the client may close what it shows.
pub(crate) fn elicitation_complete(context: &Context, elicitation_id: String) {
    if context.client.opens_urls() {
        context.peer.notify("elicitation/complete", &CompleteElicitation { elicitation_id });
    }
}

/// How the question is put; `None` when it cannot be.
fn mode(asker: &Asker, request: &Elicitation) -> Option<ElicitationMode> {
    if request.mode.as_deref() == Some("url") {
        let url =
            request.url.clone().filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
        let elicitation_id =
            request.elicitation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        return asker.client().opens_urls().then_some(ElicitationMode::Url { elicitation_id, url });
    }
    if !asker.client().shows_forms() {
        return None;
    }
    let schema = request.requested_schema.clone().unwrap_or_default();
    let requested_schema = flatten(&schema, request.property_order.as_deref().unwrap_or_default())?;
    Some(ElicitationMode::Form { requested_schema })
}

/// A server's schema, as far as it is read.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Schema {
    title: Option<String>,
    description: Option<String>,
    properties: Fields,
    required: Vec<String>,
}

/// Fields in the order in which they were written, which is that of the form.
#[derive(Default)]
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> serde::de::Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the fields of a form")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, field) in &self.0 {
            map.serialize_entry(name, field)?;
        }
        map.end()
    }
}

/// A server's schema as the protocol has it: flat, in the order that the server wants.
pub(super) fn flatten(schema: &Json, order: &[String]) -> Option<Json> {
    #[derive(Serialize)]
    struct Form<'a> {
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        properties: &'a Fields,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        required: &'a [String],
    }

    let asked: Schema = if schema.is_null() { Schema::default() } else { schema.read().ok()? };
    let mut fields = Vec::new();
    for (name, field) in asked.properties.0 {
        match flat(&field) {
            Some(flat) => fields.push((name, flat)),
            None if asked.required.contains(&name) => return None,
            None => tracing::warn!(name, "a field of an MCP server's form is left out"),
        }
    }
    fields.sort_by_key(|(name, _)| order.iter().position(|other| other == name).unwrap_or(usize::MAX));
    let properties = Fields(fields);
    let form = Form {
        r#type: "object",
        title: asked.title.as_deref(),
        description: asked.description.as_deref(),
        properties: &properties,
        required: &asked.required,
    };
    Json::write(&form).ok()
}

/// One field; `None` when the protocol has none like it.
fn flat(field: &Value) -> Option<Value> {
    let field = field.as_object()?;
    let choices = choices(field);
    let kind = match field.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null")?,
        _ if choices.is_some() => "string",
        _ => return None,
    };
    let mut flat = Map::from_iter([("type".to_owned(), json!(kind))]);
    let mut copy = |names: &[&str], fits: fn(&Value) -> bool| {
        for name in names {
            if let Some(value) = field.get(*name).filter(|value| fits(value)) {
                flat.insert((*name).to_owned(), value.clone());
            }
        }
    };
    copy(&["title", "description"], Value::is_string);
    match kind {
        "string" => {
            copy(&["minLength", "maxLength"], |value| {
                value.as_u64().is_some_and(|n| u32::try_from(n).is_ok())
            });
            copy(&["pattern", "default"], Value::is_string);
            copy(&["format"], |value| matches!(value.as_str(), Some("email" | "uri" | "date" | "date-time")));
            if let Some((key, choices)) = choices {
                flat.insert(key.into(), choices);
            }
        }
        "number" => copy(&["minimum", "maximum", "default"], Value::is_number),
        "integer" => copy(&["minimum", "maximum", "default"], Value::is_i64),
        "boolean" => copy(&["default"], Value::is_boolean),
        "array" => {
            copy(&["minItems", "maxItems"], Value::is_u64);
            copy(&["default"], |value| {
                value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
            });
            let items = self::choices(field.get("items")?.as_object()?)?;
            let items = match items {
                ("enum", choices) => json!({ "type": "string", "enum": choices }),
                (_, choices) => json!({ "anyOf": choices }),
            };
            flat.insert("items".into(), items);
        }
        _ => return None,
    }
    Some(flat.into())
}

/// The choices of a field: as plain texts (`enum`), or with titles (`oneOf`).
fn choices(field: &Map<String, Value>) -> Option<(&'static str, Value)> {
    if let Some(titled) = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array) {
        let choices: Option<Vec<Value>> = titled.iter().map(titled_choice).collect();
        return choices.map(|choices| ("oneOf", choices.into()));
    }
    let values = field.get("enum")?.as_array()?;
    let values: Vec<&str> = values.iter().map(Value::as_str).collect::<Option<_>>()?;
    let Some(names) = field.get("enumNames").and_then(Value::as_array) else {
        return Some(("enum", json!(values)));
    };
    let titled = values.iter().enumerate().map(|(at, value)| {
        let title = names.get(at).and_then(Value::as_str).unwrap_or(value);
        json!({ "const": value, "title": title })
    });
    Some(("oneOf", titled.collect()))
}

fn titled_choice(choice: &Value) -> Option<Value> {
    let value = choice.get("const")?.as_str()?;
    let title = choice.get("title").and_then(Value::as_str).unwrap_or(value);
    let mut titled = json!({ "const": value, "title": title });
    if let Some(description) = choice.get("description").filter(|text| text.is_string()) {
        titled["description"] = description.clone();
    }
    Some(titled)
}
