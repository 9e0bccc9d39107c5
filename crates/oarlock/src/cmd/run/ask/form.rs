//! Questions of MCP servers (elicitations): a form by its schema, or an address to visit.

use oarlock_agent::stream::reply::{self, ElicitationAction};
use oarlock_agent::stream::{Elicitation, Json};
use serde_json::{Map, Value};

use super::{Person, Spoken, elicited};
use crate::output::{DIM, STRONG, WARN, visible};

/// Shows who asks what, and lets the person answer or decline.
pub(super) fn ask(request: &Elicitation, person: &mut impl Person) -> Spoken<reply::Elicitation> {
    let server = request.display_name.as_deref().unwrap_or(&request.mcp_server_name);
    person.print(&format!("{STRONG}The MCP server {} asks:{STRONG:#}\n", visible(server)))?;
    for line in request.title.iter().flat_map(|title| title.lines()).chain(request.message.lines()) {
        person.print(&format!("  {}\n", visible(line)))?;
    }
    let is_url = request.mode.as_deref() == Some("url");
    if is_url {
        let url = request.url.as_deref().unwrap_or_default();
        person.print(&format!("  {DIM}open this address, if you trust it:{DIM:#} {}\n", visible(url)))?;
    }
    let question = if is_url { "done? y(es) or n(o):" } else { "answer? y(es) or n(o):" };
    loop {
        let line = person.ask(&format!("{STRONG}{question}{STRONG:#} "))?;
        match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => break,
            "n" | "no" => return Ok(elicited(ElicitationAction::Decline)),
            _ => {}
        }
    }
    if is_url {
        return Ok(elicited(ElicitationAction::Accept));
    }
    let mut content = Map::new();
    for field in fields(request) {
        if let Some(value) = fill(&field, person)? {
            content.insert(field.name, value);
        }
    }
    let content = Some(Json::from(Value::Object(content)));
    Ok(reply::Elicitation { content, ..elicited(ElicitationAction::Accept) })
}

fn fill(field: &Field, person: &mut impl Person) -> Spoken<Option<Value>> {
    person.print(&field.describe())?;
    loop {
        let line = person.ask(&format!("{STRONG}{}:{STRONG:#} ", visible(&field.title)))?;
        match field.read(&line) {
            Ok(value) => return Ok(value),
            Err(why) => person.print(&format!("  {WARN}{}{WARN:#}\n", visible(&why)))?,
        }
    }
}

/// A field of the form.
struct Field {
    name: String,
    title: String,
    about: Option<String>,
    is_required: bool,
    default: Option<Value>,
    kind: Kind,
}

enum Kind {
    Text {
        format: Option<String>,
        length: (Option<u64>, Option<u64>),
    },
    Number {
        is_integer: bool,
        range: (Option<f64>, Option<f64>),
    },
    YesNo,
    /// Values with their labels; of which several may be chosen.
    Choice {
        options: Vec<(Value, String)>,
        several: bool,
    },
}

fn fields(request: &Elicitation) -> Vec<Field> {
    let schema = request.requested_schema.as_ref().map(Json::value).unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ordered = request.property_order.iter().flatten().filter(|name| properties.contains_key(*name));
    let mut names: Vec<&String> = ordered.collect();
    for name in properties.keys() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let field = |name: &String| {
        let property = &properties[name];
        Field {
            name: name.clone(),
            title: property["title"].as_str().unwrap_or(name).to_owned(),
            about: property["description"].as_str().map(str::to_owned),
            is_required: required.contains(&name.as_str()),
            default: property.get("default").filter(|default| !default.is_null()).cloned(),
            kind: Kind::of(property),
        }
    };
    names.into_iter().map(field).collect()
}

impl Kind {
    fn of(property: &Value) -> Self {
        if property["type"] == "array" {
            return Self::Choice { options: options(&property["items"]), several: true };
        }
        let options = options(property);
        if !options.is_empty() {
            return Self::Choice { options, several: false };
        }
        match property["type"].as_str() {
            Some("boolean") => Self::YesNo,
            Some(kind @ ("integer" | "number")) => Self::Number {
                is_integer: kind == "integer",
                range: (property["minimum"].as_f64(), property["maximum"].as_f64()),
            },
            _ => Self::Text {
                format: property["format"].as_str().map(str::to_owned),
                length: (property["minLength"].as_u64(), property["maxLength"].as_u64()),
            },
        }
    }
}

/// The values that a schema allows: `enum` with `enumNames`, or `oneOf` and `anyOf` with titles.
fn options(schema: &Value) -> Vec<(Value, String)> {
    let label = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = schema["enum"].as_array() {
        let named = |(index, value): (usize, &Value)| {
            let name = schema["enumNames"][index].as_str().map_or_else(|| label(value), str::to_owned);
            (value.clone(), name)
        };
        return values.iter().enumerate().map(named).collect();
    }
    let listed = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    let constants = listed.into_iter().flatten().filter_map(|option| {
        let value = option.get("const")?;
        Some((value.clone(), option["title"].as_str().map_or_else(|| label(value), str::to_owned)))
    });
    constants.collect()
}

impl Field {
    fn describe(&self) -> String {
        let mut text = String::new();
        if let Some(about) = &self.about {
            text.push_str(&format!("  {}\n", visible(about)));
        }
        if let Kind::Choice { options, several } = &self.kind {
            for (index, (_, label)) in options.iter().enumerate() {
                text.push_str(&format!("  {}  {}\n", index + 1, visible(label)));
            }
            if *several {
                text.push_str(&format!("  {DIM}several numbers may be given{DIM:#}\n"));
            }
        }
        if let Kind::YesNo = self.kind {
            text.push_str(&format!("  {DIM}y or n{DIM:#}\n"));
        }
        match &self.default {
            Some(default) => {
                text.push_str(&format!(
                    "  {DIM}an empty line means {}{DIM:#}\n",
                    visible(&default.to_string())
                ));
            }
            None if !self.is_required => {
                text.push_str(&format!("  {DIM}an empty line leaves it out{DIM:#}\n"));
            }
            None => {}
        }
        text
    }

    /// The value of a line; none when it is left out.
    fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required => Err("an answer is needed here".to_owned()),
                None => Ok(None),
            };
        }
        match &self.kind {
            Kind::Text { format, length } => text(line, format.as_deref(), *length),
            Kind::Number { is_integer, range } => number(line, *is_integer, *range),
            Kind::YesNo => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("y or n is needed here".to_owned()),
            },
            Kind::Choice { options, several } => choice(line, options, *several),
        }
        .map(Some)
    }
}

fn text(line: &str, format: Option<&str>, (min, max): (Option<u64>, Option<u64>)) -> Result<Value, String> {
    let length = line.chars().count() as u64;
    if let Some(min) = min.filter(|min| length < *min) {
        return Err(format!("at least {min} characters are needed"));
    }
    if let Some(max) = max.filter(|max| length > *max) {
        return Err(format!("at most {max} characters are allowed"));
    }
    let digits = |text: &str, places: usize| text.len() == places && text.chars().all(|c| c.is_ascii_digit());
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
    };
    let fits = match format {
        Some("email") => {
            line.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        }
        Some("uri") => {
            line.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
        }
        Some("date") => is_date(line),
        Some("date-time") => {
            line.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && !time.is_empty())
        }
        _ => true,
    };
    match format {
        Some(format) if !fits => Err(format!("that is no {format}")),
        _ => Ok(line.into()),
    }
}

fn number(line: &str, is_integer: bool, (min, max): (Option<f64>, Option<f64>)) -> Result<Value, String> {
    let value: Value = if is_integer {
        line.parse::<i64>().map_err(|_| "a whole number is needed here".to_owned())?.into()
    } else {
        let number = line.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| "a number is needed here".to_owned())?.into()
    };
    let size = value.as_f64().unwrap_or_default();
    match (min.filter(|min| size < *min), max.filter(|max| size > *max)) {
        (Some(min), _) => Err(format!("it must be at least {min}")),
        (_, Some(max)) => Err(format!("it must be at most {max}")),
        _ => Ok(value),
    }
}

fn choice(line: &str, options: &[(Value, String)], several: bool) -> Result<Value, String> {
    let find = |part: &str| {
        let by_number = part.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
        let named = || options.iter().find(|(_, label)| label.eq_ignore_ascii_case(part));
        by_number
            .or_else(named)
            .map(|(value, _)| value.clone())
            .ok_or_else(|| format!("{part} is none of them"))
    };
    if !several {
        return find(line);
    }
    let separators: &[char] = if line.contains(',') { &[','] } else { &[' '] };
    line.split(separators).map(str::trim).filter(|part| !part.is_empty()).map(find).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::scripted::Scripted;
    use super::*;

    fn answered(request: Value, lines: &[&'static str]) -> (Value, String) {
        let request: Elicitation = serde_json::from_value(request).unwrap();
        let mut person = Scripted::saying(lines.iter().copied());
        let answer = ask(&request, &mut person).unwrap();
        (serde_json::to_value(answer).unwrap(), person.plain())
    }

    #[test]
    fn a_form_is_asked_field_by_field_until_each_fits() {
        let schema = json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "title": "Your name\u{1b}", "minLength": 2, "maxLength": 5},
            "age": {"type": "integer", "minimum": 18, "description": "in years"},
            "mail": {"type": "string", "format": "email"},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"], "default": "s"},
            "colours": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "b"}]}},
            "sure": {"type": "boolean"},
            "rate": {"type": "number", "maximum": 1},
        }});
        let request = json!({"subtype": "elicitation", "mcp_server_name": "shop", "message": "Who are\nyou?",
            "mode": "form", "requested_schema": schema,
            "property_order": ["name", "age", "mail", "size", "colours", "sure", "rate"]});
        let lines = [
            "maybe", "y", "", "x", "toolong", "Ann", "many", "17", "18", "ann", "a@b", "3", "", "red, 2",
            "perhaps", "n", "2", "0.5",
        ];
        let (answer, shown) = answered(request, &lines);
        assert_eq!(
            answer,
            json!({"action": "accept", "content": {
                "name": "Ann", "age": 18, "mail": "a@b", "size": "s", "colours": ["r", "b"], "sure": false, "rate": 0.5}})
        );
        for part in [
            "The MCP server shop asks:\n  Who are\n  you?\n",
            "Your name\\u{1b}:",
            "an answer is needed here",
            "at least 2 characters",
            "at most 5 characters",
            "a whole number is needed",
            "at least 18",
            "that is no email",
            "3 is none of them",
            "an empty line means \"s\"",
            "y or n is needed here",
            "at most 1",
        ] {
            assert!(shown.contains(part), "{part:?} in {shown}");
        }
    }

    #[test]
    fn what_may_be_left_out_is_left_out() {
        let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}});
        let request = json!({"mcp_server_name": "s", "message": "m", "requested_schema": schema});
        assert_eq!(answered(request.clone(), &["y", ""]).0, json!({"action": "accept", "content": {}}));
        assert_eq!(answered(request, &["n"]).0, json!({"action": "decline"}));
    }

    #[test]
    fn an_address_is_shown_and_has_no_form() {
        let request = json!({"mcp_server_name": "s", "message": "log in", "mode": "url", "url": "https://x.y/\u{202e}"});
        let (answer, shown) = answered(request, &["y"]);
        assert_eq!(answer, json!({"action": "accept"}));
        assert!(shown.contains("https://x.y/\\u{202e}\n"), "{shown}");
    }
}
