//! Who may use a tool: hooks, rules, the mode, the host.

use serde_json::{Value, json};

use crate::hook::{Event, Verdict};
use crate::mcp::split_name;
use crate::player::{Answer, Stop, lay};
use crate::script::ToolUse;
use crate::turn::Turn;

/// What the model hears of a use that the user stopped.
pub(crate) const REJECTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the \
     new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

/// What was decided about a tool use.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It runs, with this input. `decision` is what `tool_result_meta` tells.
    Allow { input: Value, decision: Value, mode: Option<String> },
    /// It does not run, and the model hears why.
    Deny { message: String, kind: &'static str, decision: Value },
    /// A hook did not answer in time, so it does not run.
    TimedOut,
    /// It does not run, and the turn ends.
    Interrupt,
}

impl Turn<'_, '_> {
    /// Decides about one use: hooks first, then rules and the mode, then the host.
    pub(crate) async fn decide(&self, tool: &ToolUse, id: &str, input: &Value) -> Result<Decision, Stop> {
        let mut input = input.clone();
        let mut asks = tool.ask.unwrap_or_else(|| self.asks(&tool.name, &input));
        let mut decision = json!({ "decision": "accept", "source": "config" });
        if self.player.launch.allows(&tool.name) {
            decision["reason_type"] = "rule".into();
        }
        let fields = json!({ "tool_name": tool.name, "tool_input": input, "tool_use_id": id });
        for verdict in self.fire("PreToolUse", Some(&tool.name), Some(id), fields).await? {
            let by_hook =
                |decision: &str| json!({ "decision": decision, "source": "hook", "reason_type": "hook" });
            let deny = |why: &str| {
                let message = format!("PreToolUse:{} hook error: {why}", tool.name);
                Decision::Deny { message, kind: "permission-rule", decision: by_hook("reject") }
            };
            match verdict {
                Verdict::Failed { blocks: true } => {
                    return Ok(deny("[callback]: failed; blocking because onFailure is \"block\""));
                }
                Verdict::Failed { blocks: false } => {}
                Verdict::TimedOut => return Ok(Decision::TimedOut),
                ref verdict @ Verdict::Output(ref output) => {
                    if let Some(reason) = verdict.block_reason() {
                        return Ok(deny(reason));
                    }
                    let Some(specific) = output.get("hookSpecificOutput") else { continue };
                    if let Some(updated) = specific.get("updatedInput").filter(|updated| updated.is_object())
                    {
                        input = updated.clone();
                    }
                    let reason = specific["permissionDecisionReason"].as_str().unwrap_or("denied");
                    match specific["permissionDecision"].as_str() {
                        Some("deny") => return Ok(deny(reason)),
                        Some("allow") => (asks, decision) = (false, by_hook("accept")),
                        Some("ask") => asks = true,
                        _ => {}
                    }
                }
            }
        }
        if !asks {
            return Ok(Decision::Allow { input, decision, mode: None });
        }
        let may_ask = self.player.launch.asks() && self.player.state().mode != "dontAsk";
        if may_ask { self.ask_host(tool, id, input).await } else { self.deny_unasked(tool, id).await }
    }

    /// Whether the real CLI would ask about this use.
    fn asks(&self, tool: &str, input: &Value) -> bool {
        let state = self.player.state();
        match tool {
            // A person has to answer these, whatever the mode.
            "AskUserQuestion" | "ExitPlanMode" => return true,
            _ if state.mode == "bypassPermissions" || self.player.launch.allows(tool) => return false,
            _ if state.allowed.iter().any(|rule| rule.covers(tool, input)) => return false,
            _ => {}
        }
        match tool {
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => state.mode != "acceptEdits",
            "Read" | "Glob" | "Grep" | "LS" => {
                let path = input["file_path"].as_str().or_else(|| input["path"].as_str()).unwrap_or_default();
                path.starts_with('/') && !path.starts_with(&self.player.launch.directory())
            }
            "Bash" => !is_harmless(input["command"].as_str().unwrap_or_default()),
            _ => tool.starts_with("mcp__") || matches!(tool, "WebFetch" | "WebSearch" | "Monitor"),
        }
    }

    async fn ask_host(&self, tool: &ToolUse, id: &str, input: Value) -> Result<Decision, Stop> {
        let player = self.player;
        let mut request = self.permission_request(&tool.name, id, &input);
        lay(&mut request, Value::Object(tool.request.clone()));
        player.state().questions += 1;
        player.tell_state("requires_action").await?;
        let fields = json!({
            "tool_name": tool.name,
            "tool_input": input,
            "permission_suggestions": request["permission_suggestions"],
        });
        // The hook is told at the same time as the host is asked; it has no say here.
        let (answer, told) = tokio::join!(
            player.ask(request, self.is_main()),
            self.fire("PermissionRequest", Some(&tool.name), Some(id), fields),
        );
        let is_last = {
            let mut state = player.state();
            state.questions -= 1;
            state.questions == 0
        };
        told?;
        let answer = answer?;
        if is_last {
            player.tell_state("running").await?;
        }
        let failed = |message: String| Decision::Deny {
            message,
            kind: "permission-rule",
            decision: json!({ "decision": "reject", "source": "config", "reason_type": "other" }),
        };
        let body = match answer {
            Answer::Success(body) => body,
            Answer::Error(error) => {
                return Ok(failed(format!("Tool permission request failed: Error: {error}")));
            }
            Answer::Closed => {
                let why = "Tool permission stream closed before response received";
                return Ok(failed(format!("Tool permission request failed: Error: {why}")));
            }
        };
        match (body["behavior"].as_str(), body["message"].as_str()) {
            (Some("allow"), _) => {
                let updates = body["updatedPermissions"].as_array().cloned().unwrap_or_default();
                let mode = self.apply_updates(&updates, &tool.name).await?;
                let source = if updates.is_empty() { "user_temporary" } else { "user_permanent" };
                let input =
                    body.get("updatedInput").filter(|updated| updated.is_object()).cloned().unwrap_or(input);
                Ok(Decision::Allow {
                    input,
                    decision: json!({ "decision": "accept", "source": source }),
                    mode,
                })
            }
            (Some("deny"), _) if body["interrupt"] == true => Ok(Decision::Interrupt),
            (Some("deny"), Some(message)) => Ok(Decision::Deny {
                message: message.to_owned(),
                kind: "permission-rule",
                decision: json!({ "decision": "reject", "source": "user_reject" }),
            }),
            _ => Ok(failed(
                "The canUseTool callback returned an invalid permission result. Expected {behavior: 'allow', \
                 updatedInput?: object} or {behavior: 'deny', message: string}."
                    .to_owned(),
            )),
        }
    }

    /// Applies what the host wants to keep. A new mode after ExitPlanMode is given back: it comes with the tool's result.
    async fn apply_updates(&self, updates: &[Value], tool: &str) -> Result<Option<String>, Stop> {
        let mut mode = None;
        for update in updates {
            match update["type"].as_str() {
                Some("setMode") => mode = update["mode"].as_str().map(ToOwned::to_owned),
                Some("addRules" | "replaceRules") if update["behavior"] == "allow" => {
                    let rules = update["rules"].as_array().into_iter().flatten().filter_map(Rule::read);
                    self.player.change(|state| state.allowed.extend(rules));
                }
                _ => {}
            }
        }
        if tool != "ExitPlanMode"
            && let Some(mode) = mode.take()
        {
            self.player.switch_mode(&mode).await?;
        }
        Ok(mode)
    }

    /// Nobody can be asked.
    async fn deny_unasked(&self, tool: &ToolUse, id: &str) -> Result<Decision, Stop> {
        let message =
            format!("Claude requested permissions to use {}, but you haven't granted it yet.", tool.name);
        let mut fields = json!({ "tool_name": tool.name, "tool_use_id": id, "message": message });
        if self.player.state().mode == "dontAsk" {
            fields["decision_reason_type"] = "mode".into();
        }
        self.player.system("permission_denied", fields).await?;
        let decision = json!({ "decision": "reject", "source": "config" });
        Ok(Decision::Deny { message, kind: "user-rejected", decision })
    }

    fn permission_request(&self, tool: &str, id: &str, input: &Value) -> Value {
        let directory = self.player.launch.directory();
        let mut request = json!({
            "subtype": "can_use_tool",
            "tool_name": tool,
            "display_name": display_name(tool),
            "input": input,
            "tool_use_id": id,
        });
        let session = |mut update: Value| {
            update["destination"] = "session".into();
            update
        };
        let add_rule = |rule: Value, destination: &str| json!({ "type": "addRules", "rules": [rule], "behavior": "allow", "destination": destination });
        let path = input["file_path"].as_str().or_else(|| input["path"].as_str()).unwrap_or_default();
        let fields = match tool {
            "AskUserQuestion" | "ExitPlanMode" => json!({ "requires_user_interaction": true }),
            "Bash" => {
                let command = input["command"].as_str().unwrap_or_default();
                json!({
                    "description": input["description"],
                    "permission_suggestions": [
                        add_rule(json!({ "toolName": "Bash", "ruleContent": format!("{command} *") }), "localSettings"),
                    ],
                })
            }
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
                let shown = path.strip_prefix(&directory).map_or(path, |rest| rest.trim_start_matches('/'));
                let mode = session(json!({ "type": "setMode", "mode": "acceptEdits" }));
                json!({ "description": shown, "permission_suggestions": [mode], "server_policy_ask_only": true })
            }
            "Read" | "Glob" | "Grep" | "LS" => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                json!({
                    "description": path,
                    "permission_suggestions": [
                        add_rule(json!({ "toolName": "Read", "ruleContent": format!("/{folder}/**") }), "session"),
                    ],
                    "decision_reason": "Path is outside allowed working directories",
                    "decision_reason_type": "workingDir",
                    "server_policy_ask_only": true,
                })
            }
            _ => {
                json!({ "permission_suggestions": [add_rule(json!({ "toolName": tool }), "localSettings")] })
            }
        };
        lay(&mut request, fields);
        if let Some((server, _)) = split_name(tool) {
            let source = if self.player.state().servers.contains_key(server) { "sdk" } else { "dynamic" };
            let server = json!({ "name": server, "source": source });
            lay(&mut request, json!({ "mcp_server": server, "server_policy_ask_only": true }));
        }
        if let Some(agent) = &self.agent {
            request["agent_id"] = agent.task_id.clone().into();
        }
        request
    }

    /// Fires a hook event of this turn.
    pub(crate) async fn fire(
        &self,
        name: &str,
        subject: Option<&str>,
        tool_use_id: Option<&str>,
        mut fields: Value,
    ) -> Result<Vec<Verdict>, Stop> {
        if let Some(agent) = &self.agent {
            lay(&mut fields, json!({ "agent_id": agent.task_id, "agent_type": agent.kind }));
        }
        let event = Event { name, subject, tool_use_id, prompt_id: &self.prompt_id, fields };
        self.player.fire(event, self.is_main()).await
    }
}

/// A rule that the host gave along with an answer.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    tool: String,
    content: Option<String>,
}

impl Rule {
    fn read(rule: &Value) -> Option<Self> {
        let tool = rule["toolName"].as_str()?.to_owned();
        Some(Self { tool, content: rule["ruleContent"].as_str().map(ToOwned::to_owned) })
    }

    fn covers(&self, tool: &str, input: &Value) -> bool {
        let subject = input["command"].as_str().or_else(|| input["file_path"].as_str()).unwrap_or_default();
        let is_covered = |content: &String| match content.split_once('*') {
            Some((start, _)) => subject.starts_with(start.trim_end()),
            None => subject == content,
        };
        self.tool == tool && self.content.as_ref().is_none_or(is_covered)
    }
}

/// Commands that only look, which the real CLI runs without asking.
fn is_harmless(command: &str) -> bool {
    const LOOKING: [&str; 8] = ["ls", "pwd", "echo", "cat", "head", "tail", "wc", "whoami"];
    let is_plain = !command.contains(['>', '$', '`', '&', '|', '(']);
    is_plain
        && command
            .split(';')
            .all(|part| part.split_whitespace().next().is_some_and(|word| LOOKING.contains(&word)))
}

/// A tool's name for people: that of an MCP tool without its server.
pub(crate) fn display_name(tool: &str) -> String {
    let Some((_, name)) = split_name(tool) else { return tool.to_owned() };
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looking_is_harmless() {
        assert!(is_harmless("ls; pwd"));
        assert!(is_harmless("echo hello"));
        assert!(!is_harmless("echo x > f"));
        assert!(!is_harmless("mkdir d"));
        assert!(!is_harmless(""));
    }

    #[test]
    fn a_rule_covers_its_tool_and_its_content() {
        let rule = Rule::read(&json!({ "toolName": "Bash", "ruleContent": "mkdir *" })).expect("a rule");
        assert!(rule.covers("Bash", &json!({ "command": "mkdir d2" })));
        assert!(!rule.covers("Bash", &json!({ "command": "rm d2" })));
        assert!(!rule.covers("Write", &json!({ "command": "mkdir d2" })));
    }

    #[test]
    fn mcp_tools_have_a_readable_name() {
        assert_eq!(display_name("mcp__calc__add_two"), "Add Two");
        assert_eq!(display_name("Bash"), "Bash");
    }
}
