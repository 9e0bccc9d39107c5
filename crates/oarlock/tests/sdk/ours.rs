//! Plays a plan with our SDK, as the drivers of the official ones do.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{Stream, StreamExt};
use oarlock_agent::hook::{Hook, HookCall};
use oarlock_agent::options::{McpServerConfig, Thinking};
use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::hook::HookEvent;
use oarlock_agent::stream::{Content, Json, Message};
use oarlock_agent::tool::schemars::{self, JsonSchema};
use oarlock_agent::tool::{Tool, ToolServer};
use oarlock_agent::{Error, Options, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::plan::{self, Answer, Entry, Plan, Rule, Step};
use crate::summary::Summary;

/// `… ours-driver PLAN.json`.
pub(crate) fn main(plan: Option<OsString>) -> Result<ExitCode> {
    let path = plan.context("no plan was named")?;
    let plan: Arc<Plan> = Arc::new(serde_json::from_slice(&std::fs::read(path)?)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (mut summaries, mut previous) = (Vec::new(), None);
        for number in 0..plan.sessions.len() {
            let play = Arc::new(Play::new(Arc::clone(&plan), number, previous.clone()));
            let summary = play.run().await?;
            previous = summary["session"].as_str().map(str::to_owned).or(previous);
            summaries.push(summary);
        }
        println!("{}", json!({"summary": summaries}));
        Ok(ExitCode::SUCCESS)
    })
}

/// One session of the plan and what it has delivered so far.
struct Play {
    plan: Arc<Plan>,
    number: usize,
    previous: Option<String>,
    summary: Mutex<Summary>,
    /// Whether the stream has ended; wakes whoever waits for a mark at every change of the summary.
    ended: watch::Sender<bool>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[schemars(crate = "schemars")]
struct Add {
    a: i64,
    b: i64,
}

impl Play {
    fn new(plan: Arc<Plan>, number: usize, previous: Option<String>) -> Self {
        Self { plan, number, previous, summary: Mutex::default(), ended: watch::Sender::new(false) }
    }

    fn session(&self) -> &plan::Session {
        &self.plan.sessions[self.number]
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>) -> Result<Value> {
        let limit = Duration::from_secs(self.plan.limit);
        let played = match self.session().entry {
            Entry::Dialogue => tokio::time::timeout(limit, Arc::clone(&self).dialogue()).await,
            Entry::Query => tokio::time::timeout(limit, Arc::clone(&self).one_shot()).await,
        };
        if let Err(error) = played.context("the time limit is over").flatten() {
            let message = format!("{error:#}");
            self.summary().error.get_or_insert_with(|| json!({"kind": "Driver", "message": message}));
        }
        Ok(serde_json::to_value(&*self.summary())?)
    }

    async fn dialogue(self: Arc<Self>) -> Result<()> {
        let (session, events) = self.options().connect().await?;
        let reader = tokio::spawn(Arc::clone(&self).read(events));
        let outcome = self.take_steps(&self.session().steps, &session).await;
        session.close().await?;
        reader.await?;
        outcome
    }

    async fn one_shot(self: Arc<Self>) -> Result<()> {
        let [Step::Send(Value::String(prompt)), steps @ ..] = self.session().steps.as_slice() else {
            bail!("a query begins with its text");
        };
        let stream = oarlock_agent::ask(prompt.as_str()).options(self.options()).stream().await?;
        let session = stream.session().clone();
        let reader = tokio::spawn(Arc::clone(&self).read(stream));
        self.take_steps(steps, &session).await?;
        self.summary().stuck = Some("the end of the query".to_owned());
        reader.await?;
        self.summary().stuck = None;
        Ok(())
    }

    async fn read(self: Arc<Self>, mut messages: impl Stream<Item = Result<Message, Error>> + Unpin) {
        while let Some(message) = messages.next().await {
            self.change(|summary| match message {
                Ok(message) => summary.take(&message),
                Err(error) => summary.error = Some(json!({"kind": "Error", "message": error.to_string()})),
            });
        }
        self.ended.send_replace(true);
    }

    async fn take_steps(&self, steps: &[Step], session: &Session) -> Result<()> {
        for (number, step) in steps.iter().enumerate() {
            self.summary().stuck = Some(format!("step {number}: {}", serde_json::to_string(step)?));
            self.take_step(step, session).await?;
        }
        self.summary().stuck = None;
        Ok(())
    }

    async fn take_step(&self, step: &Step, session: &Session) -> Result<()> {
        match step {
            Step::Send(content) => {
                let content: Content = serde_json::from_value(content.clone())?;
                session.send(content).await?;
            }
            Step::Wait(mark, count) => self.reach(mark, *count).await?,
            Step::Signal(name) => println!("{}", json!({"signal": name})),
            Step::Interrupt => drop(session.interrupt().await?),
            Step::Settle => drop(session.mcp_status().await?),
        }
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Summary)) {
        change(&mut self.summary());
        self.ended.send_modify(|_| {});
    }

    async fn reach(&self, mark: &str, count: usize) -> Result<()> {
        let mut changes = self.ended.subscribe();
        while self.summary().marks.get(mark).copied().unwrap_or_default() < count {
            ensure!(!*changes.borrow_and_update(), "the stream ended before {mark} {count}");
            changes.changed().await?;
        }
        Ok(())
    }

    fn options(self: &Arc<Self>) -> Options {
        let session = self.session();
        let given = &session.options;
        let mut options = Options::new()
            .program(&self.plan.cli)
            .cwd(&self.plan.cwd)
            .setting_sources(Vec::<&str>::new())
            .on_stderr(|text| eprint!("{text}"))
            .include_partial_messages(given.partial)
            .forward_subagent_text(given.forward_subagent_text)
            .allowed_tools(&given.allowed_tools)
            .fork_session(given.fork);
        if let Some(model) = &given.model {
            options = options.model(model);
        }
        if let Some(mode) = &given.permission_mode {
            options = options.permission_mode(mode.as_str());
        }
        if let Some(turns) = given.max_turns {
            options = options.max_turns(turns);
        }
        if let Some(budget) = given.thinking {
            options = options.thinking(Thinking::enabled(budget));
        }
        if let Some(schema) = &given.schema {
            options = options.output_schema(schema.clone());
        }
        for (name, server) in &given.mcp_servers {
            options = options.mcp_server(name, McpServerConfig::Other(Json::from(server.clone())));
        }
        if let (true, Some(previous)) = (given.resume, &self.previous) {
            options = options.resume(previous);
        }
        self.callbacks(options)
    }

    fn callbacks(self: &Arc<Self>, mut options: Options) -> Options {
        let session = self.session();
        if session.options.calculator {
            options = options.tool_server(self.calculator());
        }
        if !session.permissions.is_empty() {
            let play = Arc::clone(self);
            options = options.can_use_tool(move |request| Arc::clone(&play).decide(request));
        }
        for hook in &session.hooks {
            let on = Hook::on(&hook.event);
            let on = hook.matcher.iter().fold(on, |on, matcher| on.matching(matcher));
            let (play, answer) = (Arc::clone(self), hook.answer.clone());
            options = options.hook(on, move |call| {
                play.change(|summary| {
                    summary.hooks.push(json!({"event": call.event.tag(), "tool": tool_of(&call)}));
                    summary.mark("hook");
                });
                let answer = serde_json::from_value(answer.clone());
                async move { answer.unwrap_or_default() }
            });
        }
        if let Some(answer) = &session.elicitation {
            let (play, answer) = (Arc::clone(self), answer.clone());
            options = options.on_elicitation(move |request| {
                play.change(|summary| {
                    let server = &request.mcp_server_name;
                    summary.elicitations.push(json!({"server": server, "message": request.message}));
                });
                let answer = serde_json::from_value(answer.clone());
                async move { answer.unwrap_or_default() }
            });
        }
        options
    }

    async fn decide(self: Arc<Self>, request: PermissionRequest) -> Decision {
        let suggestions = request.permission_suggestions.iter().flatten();
        let ask = json!({
            "tool": request.tool_name,
            "input": request.input,
            "suggestions": suggestions.map(|update| update.tag()).collect::<Vec<_>>(),
            "in_subagent": request.agent_id.is_some(),
        });
        self.change(|summary| {
            summary.asks.push(ask);
            summary.mark("ask");
        });
        let fits = |rule: &&Rule| rule.tool.as_ref().is_none_or(|tool| *tool == request.tool_name);
        let Some(rule) = self.session().permissions.iter().find(fits) else { return request.deny("no rule") };
        match rule.answer {
            Answer::Never => {
                // In a task of its own, because this one is dropped when the question is withdrawn.
                let (play, withdrawn) = (Arc::clone(&self), request.withdrawn().clone());
                tokio::spawn(async move {
                    withdrawn.cancelled().await;
                    play.change(|summary| {
                        summary.withdrawn += 1;
                        summary.mark("withdrawn");
                    });
                });
                std::future::pending::<()>().await;
            }
            _ => drop(self.reach("ask", rule.together.unwrap_or_default()).await),
        }
        match (rule.answer, rule.interrupt) {
            (Answer::Allow, _) if rule.always => request.allow_always(),
            (Answer::Allow, _) => {
                let mut input = request.input.value();
                if let Value::Object(fields) = &mut input {
                    fields.extend(rule.input.clone());
                }
                request.allow_with(input)
            }
            (_, false) => request.deny(rule.message.as_deref().unwrap_or("no rule")),
            (_, true) => request.deny_and_interrupt(rule.message.as_deref().unwrap_or("no rule")),
        }
    }

    fn calculator(self: &Arc<Self>) -> ToolServer {
        let (adding, failing) = (Arc::clone(self), Arc::clone(self));
        let add = Tool::new("add", move |numbers: Add| {
            adding.change(|summary| summary.calls.push(json!({"tool": "add", "input": numbers})));
            async move { format!("the sum is {}", numbers.a + numbers.b) }
        });
        let fail = Tool::new("fail", move || {
            failing.change(|summary| summary.calls.push(json!({"tool": "fail", "input": {}})));
            async { Err::<String, _>("this tool always fails") }
        });
        ToolServer::new("calc")
            .tool(add.description("Adds two numbers"))
            .tool(fail.description("Always fails"))
    }
}

/// The tool that a hook is about.
fn tool_of(call: &HookCall) -> Option<&str> {
    match &call.event {
        HookEvent::PreToolUse(event) => Some(&event.tool_name),
        HookEvent::PostToolUse(event) => Some(&event.tool_name),
        _ => None,
    }
}
