//! `${…}` in the texts of a script.

use serde_json::{Map, Value};

/// Fills in every `${name}` and `${name.of.a.field}` that `scope` knows. What it does not know stays as it is, so that
/// a shell's own `${HOME}` needs no escape.
pub(crate) fn fill(text: &str, scope: &Map<String, Value>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let known = from.find('}').and_then(|end| Some((look_up(&from[2..end], scope)?, end + 1)));
        let (value, end) = known.unwrap_or_else(|| ("${".to_owned(), 2));
        filled.push_str(&value);
        rest = &from[end..];
    }
    filled.push_str(rest);
    filled
}

/// Fills in all strings inside a value.
pub(crate) fn fill_value(value: &Value, scope: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => fill(text, scope).into(),
        Value::Array(items) => items.iter().map(|item| fill_value(item, scope)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), fill_value(field, scope)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn look_up(path: &str, scope: &Map<String, Value>) -> Option<String> {
    let mut parts = path.split('.');
    let mut value = scope.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(part)?,
        };
    }
    Some(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fills_in_what_it_knows_and_leaves_the_rest() {
        let scope = json!({ "prompt": "hi", "input": { "list": [1, { "x": "y" }] } });
        let scope = scope.as_object().expect("an object");
        assert_eq!(fill("<${prompt}> ${input.list.1.x}", scope), "<hi> y");
        assert_eq!(fill("${input.list}", scope), r#"[1,{"x":"y"}]"#);
        assert_eq!(fill("${HOME} $x ${ ${prompt", scope), "${HOME} $x ${ ${prompt");
    }
}
