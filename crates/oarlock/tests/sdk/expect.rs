//! Patterns: what a summary must look like, written as JSON.
//!
//! An object fits when each of its fields does (other fields do not matter), a list when it has the same length and
//! each element fits, null also when the field is absent. A string `~text` fits every string that contains `text`.
//! `{"$order": [..]}` fits a list in which these come in this order, whatever is between; `{"$none": pattern}` one
//! in which nothing fits the pattern; `{"$some": [..]}` one in which something fits each; `{}` any list.

use serde_json::Value;

/// Every place at which `found` is not as `wanted`.
pub(crate) fn differences(wanted: &Value, found: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare(wanted, found, "", &mut differences);
    differences
}

fn fits(wanted: &Value, found: &Value) -> bool {
    differences(wanted, found).is_empty()
}

fn compare(wanted: &Value, found: &Value, at: &str, differences: &mut Vec<String>) {
    let mut differ = |what: String| differences.push(format!("{at}: {what}"));
    match (wanted, found) {
        (Value::Object(fields), Value::Array(list)) if fields.keys().all(|name| name.starts_with('$')) => {
            for (name, pattern) in fields {
                if let Some(what) = in_list(name, pattern, list) {
                    differ(what);
                }
            }
        }
        (Value::Object(fields), Value::Object(there)) => {
            for (name, pattern) in fields {
                let value = there.get(name).unwrap_or(&Value::Null);
                compare(pattern, value, &format!("{at}/{name}"), differences);
            }
        }
        (Value::Array(patterns), Value::Array(list)) if patterns.len() == list.len() => {
            for (number, (pattern, value)) in patterns.iter().zip(list).enumerate() {
                compare(pattern, value, &format!("{at}/{number}"), differences);
            }
        }
        (Value::String(text), Value::String(there)) if text.starts_with('~') => {
            if !there.contains(&text[1..]) {
                differ(format!("{there:?} does not contain {:?}", &text[1..]));
            }
        }
        _ if wanted == found => {}
        _ => differ(format!("wanted {wanted}, found {found}")),
    }
}

fn in_list(name: &str, pattern: &Value, list: &[Value]) -> Option<String> {
    let patterns = pattern.as_array().map(Vec::as_slice).unwrap_or_default();
    match name {
        "$order" => {
            let mut rest = list.iter();
            let lost = patterns.iter().find(|pattern| !rest.any(|value| fits(pattern, value)));
            lost.map(|pattern| format!("{pattern} does not come, in the order {}", Value::from(patterns)))
        }
        "$some" => patterns
            .iter()
            .find(|pattern| !list.iter().any(|value| fits(pattern, value)))
            .map(|pattern| format!("nothing is {pattern}")),
        "$none" => list.iter().find(|value| fits(pattern, value)).map(|value| format!("there is {value}")),
        _ => Some(format!("{name} is no pattern")),
    }
}

/// Puts the fields of `patch` in the place of those in `expectation`, deeply.
pub(crate) fn merge(expectation: &mut Value, patch: Value) {
    match (expectation, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (place, patch) => *place = patch,
    }
}

/// The patterns are data, so they are tried here; this runs with the scenarios.
pub(crate) fn the_patterns_can_fail() -> anyhow::Result<()> {
    use serde_json::json;
    let found = json!({"a": [{"b": 1, "c": "see you later"}, {"b": 2}], "n": null});
    let good = [
        json!({"a": [{"b": 1}, {"b": 2}]}),
        json!({"n": null, "absent": null}),
        json!({"a": {"$order": [{"b": 1}, {"b": 2}]}}),
        json!({"a": {"$some": [{"b": 2}, {"c": "~you"}]}}),
        json!({"a": {"$none": {"b": 3}}}),
    ];
    let bad = [
        json!({"a": [{"b": 1}]}),
        json!({"a": [{"b": 2}, {"b": 2}]}),
        json!({"n": 1}),
        json!({"absent": 1}),
        json!({"a": {"$order": [{"b": 2}, {"b": 1}]}}),
        json!({"a": {"$some": [{"c": "~him"}]}}),
        json!({"a": {"$none": {"b": 2}}}),
        json!({"a": {"$nome": []}}),
        json!({"a": []}),
        json!([]),
    ];
    for pattern in good {
        anyhow::ensure!(fits(&pattern, &found), "{pattern} must fit");
    }
    for pattern in bad {
        anyhow::ensure!(!fits(&pattern, &found), "{pattern} must not fit");
    }
    Ok(())
}
