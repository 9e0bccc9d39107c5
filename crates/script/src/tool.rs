//! Tool uses: announced, decided, run, and their results.

use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use crate::mcp::split_name;
use crate::permission::{Decision, REJECTED, display_name};
use crate::player::{Answer, Stop, lay, new_id};
use crate::script::{Elicitation, ToolUse};
use crate::template;
use crate::turn::Turn;

/// A tool use that was announced.
struct Use<'u> {
    tool: &'u ToolUse,
    id: String,
    input: Value,
}

/// What came of a tool use.
pub(crate) struct Outcome {
    pub(crate) content: Value,
    pub(crate) is_error: Option<bool>,
    /// `tool_use_result`.
    pub(crate) result: Value,
}

impl Outcome {
    pub(crate) fn text(content: impl Into<String>, result: Value) -> Self {
        Self { content: content.into().into(), is_error: None, result }
    }

    fn failure(message: &str) -> Self {
        Self { content: message.into(), is_error: Some(true), result: format!("Error: {message}").into() }
    }
}

/// A use with its end.
struct Ended {
    outcome: Outcome,
    /// For `tool_result_meta`.
    meta: Value,
    is_denied: bool,
    ends_turn: bool,
    /// The mode to switch to before the result is shown.
    mode: Option<String>,
}

impl Turn<'_, '_> {
    /// The tool uses of one message, and their results.
    pub(crate) async fn use_tools(&mut self, tools: &[ToolUse], parallel: bool) -> Result<(), Stop> {
        let mut uses = Vec::new();
        for tool in tools {
            let id = tool.id.clone().unwrap_or_else(|| new_id("toolu_", 20));
            let input = template::fill_value(&tool.input, &self.player.scope(&self.scope));
            let fields = match split_name(&tool.name) {
                Some((server, name)) => {
                    let meta = json!({
                        "id": id,
                        "display_name": display_name(&tool.name),
                        "server_display_name": server,
                        "tool_name": name,
                    });
                    json!({ "tool_use_meta": [meta] })
                }
                None => json!({}),
            };
            self.tool_uses += 1;
            self.tell_agent_progress(&tool.name, &input).await?;
            self.use_tool(&id, &tool.name, &input, fields).await?;
            uses.push(Use { tool, id, input });
        }
        // Tools begin while the message still ends: a host may be asked before it sees `message_stop`.
        let mut last_event = self.finish_message("tool_use").await?;
        let mut calls = Vec::new();
        let mut stop = None;
        let groups = if parallel { vec![uses.as_slice()] } else { uses.chunks(1).collect() };
        for group in groups {
            let ends = match (&stop, self.check_budget()) {
                (None, Ok(())) => self.run_uses(group, last_event.take()).await?,
                // A budget that is spent leaves the tools announced and not run.
                (None, Err(spent)) => {
                    self.run_uses(&[], last_event.take()).await?;
                    return Err(spent);
                }
                // Once the turn is over, the uses that are left are rejected unasked.
                (Some(_), _) => group.iter().map(|each| Ok(rejected(&each.id))).collect(),
            };
            for (each, end) in group.iter().zip(ends) {
                self.show_end(each, end, &mut calls, &mut stop).await?;
            }
        }
        if let Some(stop) = stop {
            return Err(stop);
        }
        if !self.end.contains_key("structured_output") {
            let id = new_id("hook-", 32);
            self.fire("PostToolBatch", None, Some(&id), json!({ "tool_calls": calls })).await?;
            return Ok(());
        }
        Err(Stop::Ended)
    }

    /// Runs uses at the same time, and sends the last event of their message meanwhile.
    async fn run_uses(
        &self,
        uses: &[Use<'_>],
        last_event: Option<Value>,
    ) -> Result<Vec<Result<Ended, Stop>>, Stop> {
        let send = async {
            match &last_event {
                Some(event) => self.player.send(event).await,
                None => Ok(()),
            }
        };
        let (ends, sent) = tokio::join!(biased; join_all(uses.iter().map(|each| self.run_use(each))), send);
        sent?;
        Ok(ends)
    }

    async fn run_use(&self, each: &Use<'_>) -> Result<Ended, Stop> {
        let (tool, id) = (each.tool, each.id.as_str());
        let decided = match self.decide(tool, id, &each.input).await {
            // A question that was open when the interrupt came counts as refused.
            Err(Stop::Interrupted { .. }) => Ok(Decision::Interrupt),
            decided => decided,
        };
        let (input, decision, mode) = match decided? {
            Decision::Allow { input, decision, mode } => (input, decision, mode),
            Decision::Deny { message, kind, decision } => {
                return Ok(Ended {
                    outcome: Outcome::failure(&message),
                    meta: json!({ "id": id, "non_execution_kind": kind, "permission_decision": decision }),
                    is_denied: true,
                    ends_turn: false,
                    mode: None,
                });
            }
            Decision::TimedOut => {
                let message =
                    "PreToolUse hook did not respond before its timeout. The tool call was not executed.";
                let meta = Value::Null;
                return Ok(Ended {
                    outcome: Outcome::failure(message),
                    meta,
                    is_denied: false,
                    ends_turn: false,
                    mode: None,
                });
            }
            Decision::Interrupt => return Ok(Ended { is_denied: true, ..rejected(id) }),
        };
        // What goes on in the background lasts there.
        if !self.is_backgrounded(tool, &input) {
            self.pause(tool.lasts, true).await?;
        }
        let outcome = self.perform(tool, id, &input).await?;
        let mut fields = json!({ "tool_name": tool.name, "tool_input": input, "tool_use_id": id });
        let event = if outcome.is_error == Some(true) {
            lay(&mut fields, json!({ "error": outcome.content, "is_interrupt": false }));
            "PostToolUseFailure"
        } else {
            lay(&mut fields, json!({ "tool_response": outcome.result, "duration_ms": 1 }));
            "PostToolUse"
        };
        self.fire(event, Some(&tool.name), Some(id), fields).await?;
        let mode = match tool.name.as_str() {
            "ExitPlanMode" => Some(mode.unwrap_or_else(|| "default".to_owned())),
            "EnterPlanMode" => Some("plan".to_owned()),
            _ => None,
        };
        let meta = json!({ "id": id, "permission_decision": decision });
        Ok(Ended { outcome, meta, is_denied: false, ends_turn: false, mode })
    }

    /// Shows how a use ended. One that an interrupt cut short is shown as rejected, and ends the turn.
    async fn show_end(
        &mut self,
        each: &Use<'_>,
        end: Result<Ended, Stop>,
        calls: &mut Vec<Value>,
        stop: &mut Option<Stop>,
    ) -> Result<(), Stop> {
        let end = match end {
            Ok(end) => end,
            Err(Stop::Interrupted { .. }) => rejected(&each.id),
            Err(other) => return Err(other),
        };
        let name = &each.tool.name;
        if end.is_denied {
            self.denials.push(json!({ "tool_name": name, "tool_use_id": each.id, "tool_input": each.input }));
        }
        if let Some(mode) = &end.mode {
            self.player.switch_mode(mode).await?;
        }
        let outcome = end.outcome;
        calls.push(json!({
            "tool_name": name,
            "tool_input": each.input,
            "tool_use_id": each.id,
            "tool_response": outcome.content,
        }));
        let mut block = json!({ "type": "tool_result", "tool_use_id": each.id, "content": outcome.content });
        if let Some(is_error) = outcome.is_error {
            block["is_error"] = is_error.into();
        }
        let mut fields = json!({});
        if !end.meta.is_null() {
            fields["tool_result_meta"] = json!([end.meta]);
        }
        // Results inside a subagent come without the structured half.
        if self.agent.is_none() {
            lay(&mut fields, json!({ "tool_use_result": outcome.result }));
        }
        self.show_user(json!([block]), fields).await?;
        if name == "StructuredOutput" && outcome.is_error != Some(true) {
            self.end.insert("structured_output".to_owned(), each.input.clone());
        }
        if end.ends_turn {
            *stop = Some(Stop::Interrupted { tool: true });
        }
        Ok(())
    }

    /// Runs a tool that may run.
    async fn perform(&self, tool: &ToolUse, id: &str, input: &Value) -> Result<Outcome, Stop> {
        if let Some(error) = &tool.error {
            return Ok(Outcome::failure(&self.fill_for(error, input)));
        }
        if let Some(question) = &tool.elicit {
            let server = split_name(&tool.name).map_or("scripted", |(server, _)| server);
            let answer = self.elicit(question, server).await?;
            if tool.output.is_none() {
                let text = format!("elicited: {answer}");
                return Ok(blocks(json!([{ "type": "text", "text": text }])));
            }
        }
        if tool.output.is_none() {
            if let Some(called) = self.player.call_tool(&tool.name, input, id).await? {
                return Ok(match called {
                    Ok(reply) => of_reply(&reply),
                    Err(error) => Outcome::failure(&error),
                });
            }
            if split_name(&tool.name).is_some() {
                return Ok(Outcome::failure(&format!("No such tool available: {}", tool.name)));
            }
        }
        let output = tool.output.as_ref().map(|output| {
            let scope = self.scope_for(input);
            template::fill_value(output, &scope)
        });
        let mut outcome = match tool.name.as_str() {
            "Task" | "Agent" => self.run_agent(tool, id, input).await?,
            "Bash" if input["run_in_background"] == true => self.run_in_background(tool, id, input).await?,
            _ => default_outcome(&tool.name, input, output),
        };
        if let Some(result) = &tool.result {
            outcome.result = template::fill_value(result, &self.scope_for(input));
        }
        Ok(outcome)
    }

    fn scope_for(&self, input: &Value) -> Map<String, Value> {
        let mut scope = self.player.scope(&self.scope);
        scope.insert("input".to_owned(), input.clone());
        scope
    }

    fn fill_for(&self, text: &str, input: &Value) -> String {
        template::fill(text, &self.scope_for(input))
    }

    /// Asks the host a question of an MCP server. Gives the answer's body.
    pub(crate) async fn elicit(&self, question: &Elicitation, server: &str) -> Result<Value, Stop> {
        let mut request = json!({
            "subtype": "elicitation",
            "mcp_server_name": question.server.as_deref().unwrap_or(server),
            "message": self.player.fill(&question.message, &self.scope),
        });
        match &question.url {
            Some(url) => lay(
                &mut request,
                json!({ "mode": "url", "url": url, "elicitation_id": new_id("elicit_", 20) }),
            ),
            None => {
                let order: Vec<&String> =
                    question.schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
                let fields =
                    json!({ "mode": "form", "requested_schema": question.schema, "property_order": order });
                lay(&mut request, fields);
            }
        }
        let answer = match self.player.ask(request, self.is_main()).await? {
            Answer::Success(body) => body,
            Answer::Error(_) | Answer::Closed => json!({ "action": "cancel" }),
        };
        self.player.change(|state| state.answer = answer.clone());
        Ok(answer)
    }
}

fn rejected(id: &str) -> Ended {
    Ended {
        outcome: Outcome {
            content: REJECTED.into(),
            is_error: Some(true),
            result: "User rejected tool use".into(),
        },
        meta: json!({ "id": id, "non_execution_kind": "user-rejected" }),
        is_denied: false,
        ends_turn: true,
        mode: None,
    }
}

/// Content blocks as a result.
fn blocks(content: Value) -> Outcome {
    Outcome { result: content.clone(), content, is_error: None }
}

/// What an MCP server replied.
fn of_reply(reply: &Value) -> Outcome {
    let content = reply["content"].clone();
    if reply["isError"] == true {
        let text = content[0]["text"].as_str().unwrap_or("the tool failed").to_owned();
        return Outcome {
            content: text.clone().into(),
            is_error: Some(true),
            result: format!("Error: {text}").into(),
        };
    }
    match reply.get("structuredContent") {
        Some(structured) => {
            let result = json!({ "content": content, "structuredContent": structured });
            Outcome { content, is_error: None, result }
        }
        None => blocks(content),
    }
}

/// What a built-in tool says when it worked.
fn default_outcome(name: &str, input: &Value, output: Option<Value>) -> Outcome {
    let path = || input["file_path"].as_str().unwrap_or_default();
    match (name, output) {
        (_, Some(Value::Array(content))) => blocks(Value::Array(content)),
        ("Bash", output) => {
            let text = output.map_or_else(String::new, |output| plain(&output));
            let is_empty = text.is_empty();
            let result = json!({
                "stdout": text,
                "stderr": "",
                "interrupted": false,
                "isImage": false,
                "noOutputExpected": is_empty,
            });
            let content = if is_empty { "(Bash completed with no output)".to_owned() } else { text };
            Outcome { content: content.into(), is_error: Some(false), result }
        }
        ("Read", output) => {
            let text = output.map_or_else(String::new, |output| plain(&output));
            let numbered: Vec<String> =
                text.split('\n').enumerate().map(|(n, line)| format!("{}\t{line}", n + 1)).collect();
            let lines = numbered.len();
            let file = json!({
                "filePath": path(),
                "content": text,
                "numLines": lines,
                "startLine": 1,
                "totalLines": lines,
            });
            Outcome::text(numbered.join("\n"), json!({ "type": "text", "file": file }))
        }
        (_, Some(output)) => Outcome::text(plain(&output), output),
        ("Write", None) => {
            let result = json!({
                "type": "create",
                "filePath": path(),
                "content": input["content"],
                "structuredPatch": [],
                "originalFile": null,
                "userModified": false,
            });
            Outcome::text(format!("File created successfully at: {}", path()), result)
        }
        ("Edit", None) => {
            let result = json!({
                "filePath": path(),
                "oldString": input["old_string"],
                "newString": input["new_string"],
                "originalFile": null,
                "structuredPatch": [],
                "userModified": false,
                "replaceAll": input["replace_all"] == true,
            });
            Outcome::text(format!("The file {} has been updated successfully.", path()), result)
        }
        ("AskUserQuestion", None) => {
            let answers = input["answers"].as_object().into_iter().flatten();
            let answers: Vec<String> =
                answers.map(|(question, answer)| format!("\"{question}\"=\"{}\"", plain(answer))).collect();
            let text = format!(
                "Your questions have been answered: {}. You can now continue with these answers in mind.",
                answers.join(", ")
            );
            let result = json!({
                "questions": input["questions"],
                "answers": input.get("answers").cloned().unwrap_or_else(|| json!({})),
            });
            Outcome::text(text, result)
        }
        ("ExitPlanMode", None) => {
            let plan = input["plan"].as_str();
            let text = match plan {
                Some(plan) => format!(
                    "User has approved your plan. You can now start coding.\n\n## Approved Plan:\n{plan}"
                ),
                None => "User has approved exiting plan mode. You can now proceed.".to_owned(),
            };
            Outcome::text(text, json!({ "plan": plan, "isAgent": false }))
        }
        ("EnterPlanMode", None) => {
            let text = "Entered plan mode. You should now explore and design an approach.";
            Outcome::text(text, json!({ "message": text }))
        }
        ("StructuredOutput", None) => {
            let text = "Structured output provided successfully";
            Outcome::text(text, text.into())
        }
        (_, None) => Outcome::text("Done.", "Done.".into()),
    }
}

/// A value as plain text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
