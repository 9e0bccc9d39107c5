//! What a recording must keep, whatever it is about. Each law is a function from the lines to its complaints.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use serde_json::Value;

use super::schema::Schemas;
use super::{Abilities, Line};

/// What is known of a run besides its lines.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// What the client could do.
    pub abilities: Abilities,
    /// What must never be seen.
    pub secrets: &'a [String],
    /// What came on stderr.
    pub stderr: &'a str,
    /// Whether the run has work that goes on after its turn: then updates may come between turns, and calls may
    /// outlive them.
    pub background: bool,
    /// Whether the agent was cut off: then requests and calls may be left open.
    pub cut_off: bool,
}

/// All complaints about a run.
pub fn check(lines: &[Line], facts: &Facts<'_>, schemas: &Schemas) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for line in received(lines) {
        if !line.message.is_object() || line.message["jsonrpc"] != "2.0" {
            complaints.push(format!("stdout has a line that is no JSON-RPC: {line:?}"));
        }
    }
    complaints.extend(published(lines, schemas)?);
    complaints.extend(answers(lines, facts));
    complaints.extend(calls(lines, facts));
    complaints.extend(quiet_between_turns(lines, facts));
    complaints.extend(modes(lines));
    complaints.extend(plans(lines));
    complaints.extend(usage(lines));
    complaints.extend(abilities(lines, facts.abilities));
    complaints.extend(secrets(lines, facts));
    Ok(complaints)
}

fn received(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| !line.sent)
}

fn method(line: &Line) -> Option<&str> {
    line.message["method"].as_str()
}

fn is_request(line: &Line) -> bool {
    line.message.get("method").is_some() && line.message.get("id").is_some()
}

fn is_answer(line: &Line) -> bool {
    line.message.get("method").is_none() && line.message.get("id").is_some()
}

/// The updates of all sessions: the session, and the update.
fn updates(lines: &[Line]) -> impl Iterator<Item = (&str, &Value)> {
    received(lines).filter_map(update)
}

fn update(line: &Line) -> Option<(&str, &Value)> {
    let params = &line.message["params"];
    (method(line) == Some("session/update"))
        .then(|| (params["sessionId"].as_str().unwrap_or_default(), &params["update"]))
}

fn kind(update: &Value) -> &str {
    update["sessionUpdate"].as_str().unwrap_or_default()
}

/// Every line is valid against the published schemas.
fn published(lines: &[Line], schemas: &Schemas) -> Result<Vec<String>> {
    let mut methods: HashMap<String, &str> = HashMap::new();
    let mut complaints = Vec::new();
    for line in lines {
        if line.sent {
            if let (true, Some(method)) = (is_request(line), method(line)) {
                methods.insert(line.message["id"].to_string(), method);
            }
            continue;
        }
        let asked = methods.get(&line.message["id"].to_string()).copied();
        let Some(method) = method(line).or(asked) else { continue };
        for complaint in schemas.complaints(&line.message, method)? {
            complaints.push(format!("against the schema: {complaint}\n    {line:?}"));
        }
    }
    Ok(complaints)
}

/// Each request has exactly one answer, with the same id, and nothing else is answered.
fn answers(lines: &[Line], facts: &Facts<'_>) -> Vec<String> {
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut complaints = Vec::new();
    for line in lines {
        let id = line.message["id"].to_string();
        if line.sent && is_request(line) {
            *open.entry(id).or_default() += 1;
        } else if !line.sent && is_answer(line) && !line.message["id"].is_null() {
            match open.get_mut(&id) {
                Some(count @ 1..) => *count -= 1,
                _ => complaints.push(format!("an answer to nothing, or a second one: {line:?}")),
            }
        }
        if !line.sent
            && is_answer(line)
            && line.message.get("result").is_some() == line.message.get("error").is_some()
        {
            complaints.push(format!("an answer has a result or an error, one of both: {line:?}"));
        }
    }
    if !facts.cut_off {
        let unanswered = open.into_iter().filter(|(_, count)| *count > 0);
        complaints.extend(unanswered.map(|(id, _)| format!("the request {id} was never answered")));
    }
    complaints
}

/// A call is told of before anything is said or asked about it; its status moves forward; it ends with its turn.
fn calls(lines: &[Line], facts: &Facts<'_>) -> Vec<String> {
    const ORDER: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
    let rank = |status: &str| ORDER.iter().position(|known| *known == status).map(|at| at.min(2));
    let mut known: HashMap<(String, String), &str> = HashMap::new();
    let mut prompts: HashMap<String, String> = HashMap::new();
    let mut complaints = Vec::new();
    for line in lines {
        if line.sent && method(line) == Some("session/prompt") {
            let session = line.message["params"]["sessionId"].as_str().unwrap_or_default();
            prompts.insert(line.message["id"].to_string(), session.to_owned());
        }
        // A session that is loaded again shows its calls again.
        if line.sent && method(line) == Some("session/load") {
            let session = line.message["params"]["sessionId"].as_str().unwrap_or_default();
            known.retain(|(of, _), _| of != session);
        }
        if !line.sent && is_answer(line) && !facts.background {
            let Some(session) = prompts.remove(&line.message["id"].to_string()) else { continue };
            if prompts.values().any(|other| *other == session) {
                continue;
            }
            let open = known.iter().filter(|((of, _), status)| *of == session && rank(status) != Some(2));
            complaints
                .extend(open.map(|((_, id), status)| format!("at the turn's end {id} was still {status}")));
        }
        if !line.sent && method(line) == Some("session/request_permission") {
            let params = &line.message["params"];
            let session = params["sessionId"].as_str().unwrap_or_default();
            let id = params["toolCall"]["toolCallId"].as_str().unwrap_or_default();
            if !known.contains_key(&(session.to_owned(), id.to_owned())) {
                complaints.push(format!("permission is asked for {id}, of which nothing was said: {line:?}"));
            }
        }
        let Some((session, update)) = (!line.sent).then(|| self::update(line)).flatten() else { continue };
        let is_first = match kind(update) {
            "tool_call" => true,
            "tool_call_update" => false,
            _ => continue,
        };
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let key = (session.to_owned(), id.to_owned());
        match (is_first, known.contains_key(&key)) {
            (true, true) => complaints.push(format!("a second tool_call for {id}: {line:?}")),
            (false, false) => {
                complaints.push(format!("an update of {id}, of which nothing was said: {line:?}"))
            }
            _ => {}
        }
        let before = known.get(&key).copied().unwrap_or("pending");
        let after = update["status"].as_str().unwrap_or(before);
        if rank(after) < rank(before) || (rank(before) == Some(2) && before != after) {
            complaints.push(format!("{id} went from {before} to {after}: {line:?}"));
        }
        known.insert(key, after);
        complaints.extend(paths(update).map(|why| format!("{why}: {line:?}")));
    }
    complaints
}

/// Paths are absolute, and lines count from 1.
fn paths(update: &Value) -> impl Iterator<Item = String> {
    let all = |name: &str| update[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let diffs = all("content").iter().filter(|block| block["type"] == "diff");
    let places = all("locations").iter().chain(diffs);
    places.filter_map(|place| {
        let path = place["path"].as_str().unwrap_or_default();
        if !path.starts_with('/') {
            return Some(format!("the path {path:?} is not absolute"));
        }
        (place["line"] == 0).then(|| format!("line 0 of {path}"))
    })
}

/// After its answer a prompt has no more to show, until the next one.
fn quiet_between_turns(lines: &[Line], facts: &Facts<'_>) -> Vec<String> {
    const OF_A_TURN: [&str; 5] =
        ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];
    if facts.background {
        return Vec::new();
    }
    let mut open: HashMap<String, String> = HashMap::new();
    let mut over: HashSet<String> = HashSet::new();
    let mut complaints = Vec::new();
    for line in lines {
        let id = line.message["id"].to_string();
        let session = line.message["params"]["sessionId"].as_str().unwrap_or_default();
        match (line.sent, method(line)) {
            (true, Some("session/prompt")) => {
                open.insert(id, session.to_owned());
                over.remove(session);
            }
            (true, Some("session/load" | "_session/steering")) => drop(over.remove(session)),
            (false, None) => {
                if let Some(session) = open.remove(&id)
                    && !open.values().any(|other| *other == session)
                {
                    over.insert(session);
                }
            }
            _ => {}
        }
        if let Some((session, update)) = update(line)
            && !line.sent
            && over.contains(session)
            && OF_A_TURN.contains(&kind(update))
        {
            complaints.push(format!("an update after the turn's answer: {line:?}"));
        }
    }
    complaints
}

/// The mode in `modes` and the one among the options agree, whenever the agent has said both.
fn modes(lines: &[Line]) -> Vec<String> {
    let mut asked: HashMap<String, &Value> = HashMap::new();
    let mut current: HashMap<String, (Value, Value)> = HashMap::new();
    let mut complaints = Vec::new();
    let in_options = |options: &Value| {
        let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
        options.iter().find(|option| option["id"] == "mode").map(|option| option["currentValue"].clone())
    };
    for line in lines {
        if line.sent {
            if is_request(line) {
                asked.insert(line.message["id"].to_string(), &line.message);
            }
            continue;
        }
        if is_answer(line) {
            let Some(request) = asked.remove(&line.message["id"].to_string()) else { continue };
            let result = &line.message["result"];
            let session = result["sessionId"].as_str().or(request["params"]["sessionId"].as_str());
            let Some(session) = session else { continue };
            if let (Some(in_options), mode @ Value::String(_)) =
                (in_options(&result["configOptions"]), &result["modes"]["currentModeId"])
            {
                if in_options != *mode {
                    complaints.push(format!("modes says {mode}, the option {in_options}: {line:?}"));
                }
                let listed = result["modes"]["availableModes"].as_array();
                if !listed.into_iter().flatten().any(|listed| listed["id"] == *mode) {
                    complaints.push(format!("the mode {mode} is not among those offered: {line:?}"));
                }
                current.insert(session.to_owned(), (mode.clone(), in_options));
            }
        }
        if let Some((session, update)) = update(line)
            && let Some((mode, option)) = current.get_mut(session)
        {
            match kind(update) {
                "current_mode_update" => *mode = update["currentModeId"].clone(),
                "config_option_update" => {
                    *option = in_options(&update["configOptions"]).unwrap_or_else(|| option.clone());
                }
                // The two updates of one change may follow each other; anything else finds them in step.
                _ if mode != option => {
                    complaints.push(format!("the mode is {mode}, the option {option}: before {line:?}"));
                    *option = mode.clone();
                }
                _ => {}
            }
        }
    }
    for (session, (mode, option)) in current {
        if mode != option && !lines.iter().any(|line| line.sent && is_choice(line, &session)) {
            complaints.push(format!("at the end the mode is {mode}, the option {option}"));
        }
    }
    complaints
}

/// A client that chooses knows what it chose, so the agent need not tell it both ways.
fn is_choice(line: &Line, session: &str) -> bool {
    matches!(method(line), Some("session/set_mode" | "session/set_config_option"))
        && line.message["params"]["sessionId"] == session
}

/// No plan equals the one before it.
fn plans(lines: &[Line]) -> Vec<String> {
    let mut last: HashMap<&str, &Value> = HashMap::new();
    let mut complaints = Vec::new();
    for (session, update) in updates(lines).filter(|(_, update)| kind(update) == "plan") {
        if last.insert(session, &update["entries"]) == Some(&update["entries"]) {
            complaints.push(format!("the same plan twice in a row: {update}"));
        }
    }
    complaints
}

/// The same cost is not told twice when nothing was said in between.
fn usage(lines: &[Line]) -> Vec<String> {
    let mut last: HashMap<&str, &Value> = HashMap::new();
    let mut complaints = Vec::new();
    for line in lines {
        // A prompt begins a turn, and an answer may end one.
        if line.sent || is_answer(line) {
            last.clear();
        }
        let Some((session, update)) = update(line) else { continue };
        match kind(update) {
            // A message that was late for one turn begins another, and the prompt is answered after both.
            "agent_message_chunk" => drop(last.remove(session)),
            "usage_update"
                if last.insert(session, update) == Some(update) && update.get("cost").is_some() =>
            {
                complaints.push(format!("the same cost told twice: {update}"));
            }
            _ => {}
        }
    }
    complaints
}

/// Nothing is used that the client has not declared.
fn abilities(lines: &[Line], abilities: Abilities) -> Vec<String> {
    let needs = |line: &Line| -> Option<&'static [&'static str]> {
        let params = &line.message["params"];
        Some(match method(line)? {
            "fs/read_text_file" => &["fs", "readTextFile"],
            "fs/write_text_file" => &["fs", "writeTextFile"],
            "elicitation/create" if params["mode"] == "url" => &["elicitation", "url"],
            "elicitation/create" => &["elicitation", "form"],
            "elicitation/complete" => &["elicitation", "url"],
            name if name.starts_with("terminal/") => &["terminal"],
            "session/update" => match kind(&params["update"]) {
                "notice" => &["session", "notices"],
                "compaction_update" | "compaction_summary_chunk" => &["session", "compaction"],
                "plan_update" | "plan_removed" => &["plan"],
                "subagent_update" | "session_message" | "session_message_chunk" => &["subagents"],
                "tool_call" | "tool_call_update"
                    if ["terminal_info", "terminal_output", "terminal_exit"]
                        .iter()
                        .any(|key| params["update"]["_meta"].get(key).is_some()) =>
                {
                    &["_meta", "terminal_output"]
                }
                _ => return None,
            },
            _ => return None,
        })
    };
    let mut complaints = Vec::new();
    for line in received(lines) {
        if let Some(path) = needs(line).filter(|path| !abilities.has(path)) {
            complaints.push(format!("the client has no {}: {line:?}", path.join(".")));
        }
        let options =
            [&line.message["result"]["configOptions"], &line.message["params"]["update"]["configOptions"]];
        let is_boolean = |options: &&Value| {
            options.as_array().is_some_and(|options| options.iter().any(|option| option["type"] == "boolean"))
        };
        if options.iter().any(is_boolean) && !abilities.has(&["session", "configOptions", "boolean"]) {
            complaints.push(format!("the client has no boolean options: {line:?}"));
        }
        let methods = line.message["result"]["authMethods"].as_array();
        if methods.into_iter().flatten().any(|method| method["type"] == "terminal")
            && !abilities.has(&["auth", "terminal"])
        {
            complaints.push(format!("the client has no auth.terminal: {line:?}"));
        }
    }
    complaints
}

/// No planted secret comes out.
fn secrets(lines: &[Line], facts: &Facts<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for secret in facts.secrets {
        let found = received(lines).find(|line| line.message.to_string().contains(secret.as_str()));
        complaints.extend(found.map(|line| format!("a secret is in a line: {line:?}")));
        if facts.stderr.contains(secret.as_str()) {
            complaints.push("a secret is on stderr".to_owned());
        }
    }
    complaints
}

#[cfg(test)]
#[path = "laws/tests.rs"]
mod tests;
