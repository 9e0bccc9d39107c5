//! Subagents and background tasks, and everything else that runs beside the turns.

use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value, json};

use crate::play::Outcome as Exit;
use crate::player::{Player, Prompt, Stop, lay, new_id, resolve_model};
use crate::script::{Step, ToolUse};
use crate::tool::Outcome;
use crate::turn::Turn;

/// Who speaks, when it is not the main thread.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) tool_use_id: String,
    pub(crate) task_id: String,
    pub(crate) run_id: String,
    pub(crate) kind: String,
    pub(crate) description: String,
    pub(crate) model: String,
    pub(crate) is_background: bool,
}

/// What runs beside the turns.
#[derive(Debug)]
pub(crate) enum Job {
    /// The handshake with in-process servers, then the answer to `initialize`.
    Initialize { id: Value },
    /// The handshake with servers that came later.
    Connect,
    /// A background command or subagent.
    Task(Box<Task>),
}

/// A background task.
#[derive(Debug)]
pub(crate) struct Task {
    agent: Agent,
    is_agent: bool,
    lasts: Duration,
    steps: Vec<Step>,
    then: Option<Vec<Step>>,
    scope: Map<String, Value>,
}

impl Player<'_> {
    /// Runs jobs for ever; ends only with the process.
    pub(crate) async fn run_tasks(&self) -> Exit {
        type Running<'r> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 'r>>;
        let mut running: FuturesUnordered<Running<'_>> = FuturesUnordered::new();
        loop {
            let next = self.until(|state| {
                let job = state.jobs.pop_front()?;
                state.running_jobs += 1;
                Some(job)
            });
            tokio::select! {
                biased;
                job = next => running.push(Box::pin(self.run_job(job))),
                Some(done) = running.next() => {
                    self.change(|state| state.running_jobs -= 1);
                    if let Err(Stop::Exit(outcome)) = done {
                        return outcome;
                    }
                }
            }
        }
    }

    async fn run_job(&self, job: Job) -> Result<(), Stop> {
        match job {
            Job::Initialize { id } => {
                self.greet_servers().await?;
                Ok(self.answer_initialize(&id).await?)
            }
            Job::Connect => self.connect_servers().await,
            Job::Task(task) => self.run_task(*task).await,
        }
    }

    async fn run_task(&self, task: Task) -> Result<(), Stop> {
        let Task { agent, is_agent, lasts, steps, then, scope } = task;
        let task_id = agent.task_id.clone();
        let mut turn = Turn::of_agent(self, agent.clone(), scope);
        let work = async {
            tokio::time::sleep(lasts).await;
            if is_agent {
                turn.begin_agent().await?;
            }
            turn.run(&steps).await?;
            if is_agent { turn.end_agent().await } else { Ok(()) }
        };
        let stopped = self.until(|state| state.stopped.contains(&task_id).then_some(()));
        let is_stopped = tokio::select! {
            biased;
            () = stopped => true,
            done = work => match done {
                Err(Stop::Exit(outcome)) => return Err(Stop::Exit(outcome)),
                _ => false,
            },
        };
        let summary = if is_agent && !turn.text.is_empty() {
            turn.text.clone()
        } else if is_agent {
            agent.description.clone()
        } else {
            format!("Background command \"{}\" completed (exit code 0)", agent.description)
        };
        let (status, told) = if is_stopped { ("killed", "stopped") } else { ("completed", "completed") };
        if is_agent {
            self.change(|state| state.totals.agents.end(is_stopped));
        }
        self.end_task(&agent, status, told, &summary, &self.output_file(&agent)).await?;
        if !is_stopped {
            let origin =
                json!({ "kind": "task-notification", "producer": "session-task", "runId": agent.run_id });
            let prompt =
                Prompt { origin: Some(origin), steps: Some(then.unwrap_or_default()), ..Prompt::default() };
            self.change(|state| state.queue.push_back(prompt));
        }
        Ok(())
    }

    fn output_file(&self, agent: &Agent) -> String {
        format!("{}/{}.output", std::env::temp_dir().display(), agent.task_id)
    }

    async fn begin_task(&self, agent: &Agent, fields: Value) -> Result<(), Stop> {
        let kind = fields["task_type"].clone();
        let mut entry = json!({
            "task_id": agent.task_id,
            "run_id": agent.run_id,
            "task_type": kind,
            "description": agent.description,
        });
        if !agent.kind.is_empty() {
            entry["subagent_type"] = agent.kind.clone().into();
        }
        if agent.is_background {
            let tasks = self.change(|state| {
                state.tasks.push(entry.clone());
                state.tasks.clone()
            });
            self.system("background_tasks_changed", json!({ "tasks": tasks })).await?;
        }
        lay(&mut entry, json!({ "tool_use_id": agent.tool_use_id, "is_backgrounded": agent.is_background }));
        lay(&mut entry, fields);
        Ok(self.system("task_started", entry).await?)
    }

    async fn end_task(
        &self,
        agent: &Agent,
        status: &str,
        told: &str,
        summary: &str,
        file: &str,
    ) -> Result<(), Stop> {
        let now = jiff::Timestamp::now().as_millisecond();
        let (task_id, run_id) = (&agent.task_id, &agent.run_id);
        let patch = json!({ "status": status, "end_time": now });
        self.system("task_updated", json!({ "task_id": task_id, "run_id": run_id, "patch": patch })).await?;
        let fields = json!({
            "task_id": task_id,
            "run_id": run_id,
            "tool_use_id": agent.tool_use_id,
            "status": told,
            "output_file": file,
            "summary": summary,
        });
        self.system("task_notification", fields).await?;
        if agent.is_background {
            let tasks = self.change(|state| {
                state.tasks.retain(|task| task["task_id"] != agent.task_id);
                state.tasks.clone()
            });
            self.system("background_tasks_changed", json!({ "tasks": tasks })).await?;
        }
        Ok(())
    }
}

impl Turn<'_, '_> {
    /// Fields that say who speaks.
    pub(crate) fn agent_fields(&self) -> Value {
        match &self.agent {
            None => json!({ "parent_tool_use_id": null }),
            Some(agent) => json!({
                "parent_tool_use_id": agent.tool_use_id,
                "agent_id": agent.task_id,
                "subagent_type": agent.kind,
                "task_description": agent.description,
            }),
        }
    }

    /// Whether a use goes on while the turn does. Subagents do unless told otherwise, as in the real CLI.
    pub(crate) fn is_backgrounded(&self, tool: &ToolUse, input: &Value) -> bool {
        match tool.name.as_str() {
            "Task" | "Agent" => input["run_in_background"] != false,
            _ => input["run_in_background"] == true,
        }
    }

    fn new_agent(&self, tool: &ToolUse, id: &str, input: &Value, prefix: &str) -> Agent {
        let is_agent = prefix == "a";
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        Agent {
            tool_use_id: id.to_owned(),
            task_id: new_id(prefix, if is_agent { 16 } else { 8 }),
            run_id: new_id("", 9) + "-" + &new_id("", 8),
            kind: match input["subagent_type"].as_str() {
                Some(kind) => kind.to_owned(),
                None if is_agent => "general-purpose".to_owned(),
                None => String::new(),
            },
            description: text("description"),
            model: input["model"].as_str().map_or_else(|| self.player.state().model.clone(), resolve_model),
            is_background: self.is_backgrounded(tool, input),
        }
    }

    fn launch(&self, agent: Agent, tool: &ToolUse, is_agent: bool) {
        let task = Task {
            agent,
            is_agent,
            lasts: tool.lasts,
            steps: tool.steps.clone(),
            then: tool.then.clone(),
            scope: self.scope.clone(),
        };
        self.player.change(|state| state.jobs.push_back(Job::Task(Box::new(task))));
    }

    /// A shell command that goes on by itself.
    pub(crate) async fn run_in_background(
        &self,
        tool: &ToolUse,
        id: &str,
        input: &Value,
    ) -> Result<Outcome, Stop> {
        let agent = self.new_agent(tool, id, input, "b");
        self.player.begin_task(&agent, json!({ "task_type": "local_bash" })).await?;
        let text = format!(
            "Command running in background with ID: {}. Output is being written to: {}. \
             You will be notified when it completes.",
            agent.task_id,
            self.player.output_file(&agent)
        );
        let result = json!({
            "stdout": "",
            "stderr": "",
            "interrupted": false,
            "isImage": false,
            "noOutputExpected": false,
            "backgroundTaskId": agent.task_id,
        });
        self.launch(agent, tool, false);
        Ok(Outcome { content: text.into(), is_error: Some(false), result })
    }

    /// A subagent: its own steps, here or in the background.
    pub(crate) async fn run_agent(&self, tool: &ToolUse, id: &str, input: &Value) -> Result<Outcome, Stop> {
        let player = self.player;
        let agent = self.new_agent(tool, id, input, "a");
        let requested = input["run_in_background"].as_bool();
        player.change(|state| state.totals.agents.spawn(&agent.kind, requested, agent.is_background));
        let fields = json!({ "task_type": "local_agent", "spawn_depth": 1, "prompt": input["prompt"] });
        player.begin_task(&agent, fields).await?;
        if agent.is_background {
            let text = format!("Async agent launched successfully.\nagentId: {}", agent.task_id);
            let result = json!({
                "isAsync": true,
                "status": "async_launched",
                "agentId": agent.task_id,
                "description": agent.description,
                "resolvedModel": agent.model,
                "prompt": input["prompt"],
                "outputFile": player.output_file(&agent),
                "canReadOutputFile": true,
                "canContinueAgent": true,
            });
            self.launch(agent, tool, true);
            return Ok(Outcome {
                content: json!([{ "type": "text", "text": text }]),
                is_error: None,
                result,
            });
        }
        let mut turn = Turn::of_agent(player, agent.clone(), self.scope.clone());
        turn.begin_agent().await?;
        turn.show_user(json!([{ "type": "text", "text": input["prompt"] }]), json!({})).await?;
        turn.run(&tool.steps).await?;
        turn.end_agent().await?;
        player.change(|state| state.totals.agents.end(false));
        player.end_task(&agent, "completed", "completed", &turn.text, &player.output_file(&agent)).await?;
        let said = json!([{ "type": "text", "text": turn.text }]);
        let total = turn.tokens.input + turn.tokens.output;
        let result = json!({
            "status": "completed",
            "prompt": input["prompt"],
            "agentId": agent.task_id,
            "agentType": agent.kind,
            "content": said,
            "resolvedModel": agent.model,
            "totalDurationMs": 1,
            "totalTokens": total,
            "totalToolUseCount": turn.tool_uses,
        });
        let note = format!("agentId: {} (use SendMessage to continue this agent)", agent.task_id);
        let content = json!([{ "type": "text", "text": turn.text }, { "type": "text", "text": note }]);
        Ok(Outcome { content, is_error: None, result })
    }

    async fn begin_agent(&self) -> Result<(), Stop> {
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        self.fire("SubagentStart", kind, None, json!({})).await.map(drop)
    }

    async fn end_agent(&mut self) -> Result<(), Stop> {
        self.close_message("end_turn").await?;
        let fields = json!({
            "stop_hook_active": false,
            "last_assistant_message": self.text,
            "background_tasks": self.player.state().tasks,
            "session_crons": [],
        });
        let kind = self.agent.as_ref().map(|agent| agent.kind.as_str());
        self.fire("SubagentStop", kind, None, fields).await.map(drop)
    }

    /// Tells what a subagent is about to do.
    pub(crate) async fn tell_agent_progress(&self, tool: &str, input: &Value) -> Result<(), Stop> {
        let Some(agent) = &self.agent else { return Ok(()) };
        let what = input["description"].as_str().unwrap_or(tool);
        let usage = json!({
            "total_tokens": self.tokens.input + self.tokens.output,
            "tool_uses": self.tool_uses,
            "duration_ms": 1,
        });
        let fields = json!({
            "task_id": agent.task_id,
            "run_id": agent.run_id,
            "tool_use_id": agent.tool_use_id,
            "description": format!("Running {what}"),
            "subagent_type": agent.kind,
            "usage": usage,
            "last_tool_name": tool,
        });
        Ok(self.player.system("task_progress", fields).await?)
    }
}
