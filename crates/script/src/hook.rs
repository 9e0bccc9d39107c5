//! Hooks that the host registered in `initialize`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::player::{Answer, Player, Stop, lay, new_uuid};

/// The callbacks by event.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hooks(BTreeMap<String, Option<Vec<Matcher>>>);

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Matcher {
    matcher: Option<String>,
    hook_callback_ids: Vec<String>,
    timeout: Option<f64>,
    on_failure: Option<String>,
}

impl Matcher {
    /// Alternatives divided by `|`; `*` and `.*` stand for anything.
    fn matches(&self, subject: Option<&str>) -> bool {
        let (Some(matcher), Some(subject)) = (self.matcher.as_deref(), subject) else { return true };
        matcher.is_empty() || matcher.split('|').any(|pattern| is_like(&pattern.replace(".*", "*"), subject))
    }
}

fn is_like(pattern: &str, subject: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == subject,
        Some((start, rest)) => subject.strip_prefix(start).is_some_and(|left| {
            (0..=left.len()).filter(|&at| left.is_char_boundary(at)).any(|at| is_like(rest, &left[at..]))
        }),
    }
}

impl Hooks {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, event: &str, subject: Option<&str>) -> Vec<Matcher> {
        let matchers = self.0.get(event).into_iter().flatten().flatten();
        matchers.filter(|matcher| matcher.matches(subject)).cloned().collect()
    }
}

/// What a hook event is about.
pub(crate) struct Event<'e> {
    pub(crate) name: &'e str,
    /// What matchers are compared with: a tool's name, mostly.
    pub(crate) subject: Option<&'e str>,
    pub(crate) tool_use_id: Option<&'e str>,
    pub(crate) prompt_id: &'e str,
    pub(crate) fields: Value,
}

/// One callback's answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    Output(Map<String, Value>),
    /// The callback failed. `blocks` if the host registered it to refuse then.
    Failed {
        blocks: bool,
    },
    TimedOut,
}

impl Player<'_> {
    /// Calls every callback that is registered for the event, one after the other.
    pub(crate) async fn fire(&self, event: Event<'_>, in_turn: bool) -> Result<Vec<Verdict>, Stop> {
        let matchers = self.state().hooks.of(event.name, event.subject);
        let mut verdicts = Vec::new();
        for matcher in matchers {
            for callback in &matcher.hook_callback_ids {
                let request = self.hook_request(&event, callback);
                let mut verdict = self.call_back(request, matcher.timeout, in_turn).await?;
                if let Verdict::Failed { blocks } = &mut verdict {
                    *blocks = matcher.on_failure.is_some();
                    let effect = if *blocks {
                        "This failure counts as a block."
                    } else {
                        "Its answer was treated as empty."
                    };
                    let content = format!("{}: Hook callback {callback} failed: {effect}", event.name);
                    let fields =
                        json!({ "content": content, "level": "warning", "tag": "hook_callback_failed" });
                    self.system("informational", fields).await?;
                }
                verdicts.push(verdict);
            }
        }
        Ok(verdicts)
    }

    fn hook_request(&self, event: &Event<'_>, callback: &str) -> Value {
        let state = self.state();
        let directory = self.launch.directory();
        let mut input = json!({
            "session_id": state.session_id,
            "transcript_path": transcript_path(&directory, &state.session_id),
            "cwd": directory,
            "prompt_id": event.prompt_id,
            "permission_mode": state.mode,
            "hook_event_name": event.name,
        });
        if event.name != "UserPromptSubmit" {
            lay(&mut input, json!({ "effort": { "level": "medium" } }));
        }
        lay(&mut input, event.fields.clone());
        let id = event.tool_use_id.map_or_else(new_uuid, ToOwned::to_owned);
        json!({ "subtype": "hook_callback", "callback_id": callback, "input": input, "tool_use_id": id })
    }

    async fn call_back(&self, request: Value, timeout: Option<f64>, in_turn: bool) -> Result<Verdict, Stop> {
        let Some(seconds) = timeout else { return Ok(self.ask(request, in_turn).await?.into()) };
        let id = self.request(request, in_turn).await?;
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        if let Ok(answer) = tokio::time::timeout(time, self.answer_to(&id, in_turn)).await {
            return Ok(answer?.into());
        }
        self.withdraw(&id).await?;
        Ok(Verdict::TimedOut)
    }
}

impl Verdict {
    /// Why the hook blocks, if it does.
    pub(crate) fn block_reason(&self) -> Option<&str> {
        let Self::Output(output) = self else { return None };
        let blocks = output.get("decision").is_some_and(|decision| decision == "block");
        blocks.then(|| output.get("reason").and_then(Value::as_str).unwrap_or("Blocked by hook"))
    }
}

impl From<Answer> for Verdict {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Success(Value::Object(output)) => Self::Output(output),
            Answer::Success(_) => Self::Output(Map::new()),
            Answer::Error(_) | Answer::Closed => Self::Failed { blocks: false },
        }
    }
}

/// Where the real CLI would keep the transcript. The scripted one writes none.
pub(crate) fn transcript_path(directory: &str, session_id: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let folder: String = directory.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{home}/.claude/projects/{folder}/{session_id}.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_knows_alternatives_and_wildcards() {
        let is = |matcher: &str, subject| {
            Matcher { matcher: Some(matcher.to_owned()), ..Matcher::default() }.matches(Some(subject))
        };
        assert!(is("Write|Bash", "Bash"));
        assert!(!is("Write|Bash", "BashOutput"));
        assert!(is("mcp__.*", "mcp__calc__add"));
        assert!(is("*", "anything"));
        assert!(is("", "anything"));
        assert!(!is("mcp__calc__*x", "mcp__calc__add"));
        assert!(Matcher::default().matches(Some("anything")));
    }
}
