//! The input half: reads the host's lines, answers its requests, routes its answers, queues its messages.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::hook::Hooks;
use crate::mcp::Server;
use crate::play::Outcome;
use crate::player::{Answer, Player, Prompt, State, resolve_model, timestamp};
use crate::task::Job;

impl Player<'_> {
    /// Reads until the input ends, or the process does.
    pub(crate) async fn read(&self, reader: impl AsyncRead + Send + Unpin) -> Result<(), Outcome> {
        let mut reader = BufReader::with_capacity(64 * 1024, reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = tokio::select! {
                biased;
                () = self.until(|state| state.stops_reading.then_some(())) => std::future::pending().await,
                read = reader.read_until(b'\n', &mut line) => read,
            };
            if matches!(read, Ok(0) | Err(_)) {
                self.change(|state| state.is_closed = true);
                return Ok(());
            }
            // Blank lines and a byte order mark mean nothing.
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            if !text.is_empty() {
                self.take_line(text).await?;
            }
        }
    }

    async fn take_line(&self, line: &[u8]) -> Result<(), Outcome> {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let is_bad = frame.is_null() || frame["type"] == "control_request" && !frame["request"].is_object();
        if is_bad {
            let (kind, length) = (frame["type"].as_str().unwrap_or("unknown"), line.len());
            let complaint =
                format!("Error parsing streaming input line (type={kind}, {length} chars): SyntaxError");
            return Err(self.reject(&complaint).await);
        }
        let sent = match frame["type"].as_str() {
            Some("user") => return self.take_message(frame).await,
            Some("control_request") => return self.take_request(&frame).await,
            Some("control_response") => self.take_response(frame).await,
            // Everything else is passed over, as the real CLI does.
            _ => Ok(()),
        };
        sent.map_err(|_| Outcome::exit(1))
    }

    async fn reject(&self, complaint: &str) -> Outcome {
        let _ = self.complain(complaint).await;
        Outcome::exit(1)
    }

    async fn take_message(&self, mut frame: Value) -> Result<(), Outcome> {
        if frame["message"]["role"] != "user" {
            let role = frame["message"]["role"].as_str().unwrap_or("undefined");
            return Err(self.reject(&format!("Error: Expected message role 'user', got '{role}'")).await);
        }
        let uuid = frame["uuid"].as_str().map(ToOwned::to_owned);
        let prompt = Prompt {
            content: frame["message"]["content"].take(),
            uuid: uuid.clone(),
            is_note: frame["shouldQuery"] == false,
            ..Prompt::default()
        };
        let was_idle = {
            let state = self.state();
            !state.is_running && state.queue.is_empty()
        };
        let told = async {
            if was_idle {
                self.tell_state("running").await?;
            }
            self.tell_lifecycle(uuid.as_slice(), "queued").await
        };
        told.await.map_err(|_| Outcome::exit(1))?;
        let is_urgent = frame["priority"] == "now";
        self.change(|state| {
            state.is_preempted |= is_urgent && state.is_running;
            state.queue.push_back(prompt);
        });
        if was_idle {
            // The turn begins before the next line is read: what follows is queued, not part of this prompt.
            self.until(|state| (state.is_running || state.queue.is_empty()).then_some(())).await;
        }
        Ok(())
    }

    async fn take_response(&self, mut frame: Value) -> std::io::Result<()> {
        // A host that wants its messages back gets its answers back as well.
        if self.launch.replays() {
            self.send(&frame).await?;
        }
        let response = &mut frame["response"];
        let Some(id) = response["request_id"].as_str().map(ToOwned::to_owned) else { return Ok(()) };
        let answer = if response["subtype"] == "error" {
            Answer::Error(response["error"].as_str().unwrap_or("unknown error").to_owned())
        } else {
            Answer::Success(response["response"].take())
        };
        self.change(|state| {
            // A late or unknown answer is nobody's.
            let Some(pending) = state.pending.get_mut(&id) else { return };
            if let Answer::Success(body) = &answer {
                state.answer = body.clone();
            }
            pending.answer.get_or_insert(answer);
        });
        Ok(())
    }

    pub(crate) async fn take_request(&self, frame: &Value) -> Result<(), Outcome> {
        let (id, request) = (&frame["request_id"], &frame["request"]);
        let subtype = request["subtype"].as_str().unwrap_or_default();
        self.change(|state| *state.seen.entry(subtype.to_owned()).or_default() += 1);
        let scenario = self.scenario;
        if scenario.ignore.iter().any(|ignored| ignored == subtype) {
            return Ok(());
        }
        let answered = if let Some(error) = scenario.errors.get(subtype) {
            let error = error.as_str().map_or_else(|| error.to_string(), ToOwned::to_owned);
            self.refuse(id, &error, None).await
        } else if let Some(body) = scenario.answers.get(subtype) {
            self.answer(id, Some(body.clone())).await
        } else {
            match subtype {
                "end_session" => {
                    let _ = self.answer(id, None).await;
                    return Err(Outcome::exit(0));
                }
                "initialize" => self.initialize(id, request).await,
                "interrupt" => self.interrupt(id, request["cancel_queued"] == true).await,
                "set_permission_mode" => self.set_mode(id, request).await,
                "set_model" => self.set_model(id, &request["model"]).await,
                "apply_flag_settings" => self.apply_settings(id, &request["settings"]).await,
                "cancel_async_message" => self.cancel_message(id, &request["message_uuid"]).await,
                "mcp_set_servers" => self.set_servers(id, &request["servers"]).await,
                "rename_session" => self.rename(id, &request["title"]).await,
                "side_question" => self.answer_aside(id).await,
                "stop_task" => self.stop_task(id, &request["task_id"]).await,
                _ => match self.body_of(subtype, request) {
                    Some(Ok(body)) => self.answer(id, body).await,
                    Some(Err(error)) => self.refuse(id, &error, None).await,
                    None => {
                        let error = format!("Unsupported control request subtype: {subtype}");
                        self.refuse(id, &error, Some("unsupported_request")).await
                    }
                },
            }
        };
        answered.map_err(|_| Outcome::exit(1))
    }

    async fn answer(&self, id: &Value, body: Option<Value>) -> std::io::Result<()> {
        let mut response = json!({ "subtype": "success", "request_id": id });
        if let Some(body) = body {
            response["response"] = body;
        }
        self.send(&json!({ "type": "control_response", "response": response })).await
    }

    async fn refuse(&self, id: &Value, error: &str, code: Option<&str>) -> std::io::Result<()> {
        let mut response = json!({ "subtype": "error", "request_id": id, "error": error });
        if let Some(code) = code {
            response["error_code"] = code.into();
        }
        self.send(&json!({ "type": "control_response", "response": response })).await
    }

    async fn initialize(&self, id: &Value, request: &Value) -> std::io::Result<()> {
        let hooks: Option<Hooks> = serde_json::from_value(request["hooks"].clone()).ok();
        let servers = request["sdkMcpServers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let has_servers = self.change(|state| {
            state.hooks = hooks.unwrap_or_default();
            state.servers.extend(servers.map(|name| (name.to_owned(), Server::default())));
            state.forwards_subagents |= request["forwardSubagentText"] == true;
            state.schema |= request["jsonSchema"].is_object();
            !state.servers.is_empty()
        });
        if has_servers {
            // The handshake comes before the answer, and its own answers come through this reader.
            self.change(|state| state.jobs.push_back(Job::Initialize { id: id.clone() }));
            return Ok(());
        }
        self.answer_initialize(id).await
    }

    async fn interrupt(&self, id: &Value, cancels_queue: bool) -> std::io::Result<()> {
        let (queued, pending, is_running) = self.change(|state| {
            let queued: Vec<String> = state.queue.iter().filter_map(|prompt| prompt.uuid.clone()).collect();
            if cancels_queue {
                state.queue.retain(|prompt| prompt.origin.is_some());
            }
            let pending =
                state.pending.iter().filter(|(_, pending)| pending.in_turn).map(|(id, _)| id.clone());
            (queued, pending.collect::<Vec<_>>(), state.is_running)
        });
        let body = if cancels_queue {
            self.tell_lifecycle(&queued, "cancelled").await?;
            json!({ "still_queued": [], "cancelled": queued })
        } else {
            json!({ "still_queued": queued })
        };
        let pending = if is_running { pending } else { Vec::new() };
        for id in &pending {
            self.send(&json!({ "type": "control_cancel_request", "request_id": id })).await?;
        }
        self.answer(id, Some(body)).await?;
        // Only now does the turn learn of it, so that the answer comes first.
        self.change(|state| {
            state.pending.retain(|id, _| !pending.contains(id));
            state.is_interrupted |= state.is_running;
        });
        Ok(())
    }

    async fn set_mode(&self, id: &Value, request: &Value) -> std::io::Result<()> {
        const MODES: [&str; 6] = ["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"];
        let mode = match request["mode"].as_str() {
            Some("manual") => "default",
            Some(mode) if MODES.contains(&mode) => mode,
            _ => {
                let error = format!("Invalid permission mode: {}", request["mode"]);
                return self.refuse(id, &error, Some("invalid_mode")).await;
            }
        };
        let may_bypass = self.launch.flag("--dangerously-skip-permissions")
            || self.launch.flag("--allow-dangerously-skip-permissions")
            || self.launch.value("--permission-mode") == Some("bypassPermissions");
        if mode == "bypassPermissions" && !may_bypass {
            let error = "Cannot set permission mode to bypassPermissions because the session was not launched with \
                         --dangerously-skip-permissions";
            return self.refuse(id, error, Some("bypass_not_launched")).await;
        }
        self.answer(id, Some(json!({ "mode": mode }))).await?;
        self.switch_mode(mode).await
    }

    /// Changes the permission mode and says so.
    pub(crate) async fn switch_mode(&self, mode: &str) -> std::io::Result<()> {
        self.change(|state| mode.clone_into(&mut state.mode));
        self.system("status", json!({ "status": null, "permissionMode": mode })).await
    }

    async fn set_model(&self, id: &Value, model: &Value) -> std::io::Result<()> {
        let Some(name) = model.as_str().or(if model.is_null() { Some("default") } else { None }) else {
            return self.refuse(id, "set_model: model must be a string", Some("invalid_request")).await;
        };
        let model = self.switch_model(name).await?;
        self.answer(id, Some(json!({ "model": model }))).await
    }

    async fn switch_model(&self, name: &str) -> std::io::Result<String> {
        let model = resolve_model(name);
        self.change(|state| state.model.clone_from(&model));
        let shown = if model == name { model.clone() } else { format!("{name} ({model})") };
        self.say_locally(&format!("Set model to `{shown}`")).await?;
        Ok(model)
    }

    /// What a local command printed.
    pub(crate) async fn say_locally(&self, text: &str) -> std::io::Result<()> {
        let content = format!("<local-command-stdout>{text}</local-command-stdout>");
        let frame = json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "parent_tool_use_id": null,
            "timestamp": timestamp(),
            "isReplay": true,
        });
        self.send(&self.sign(frame)).await
    }

    async fn apply_settings(&self, id: &Value, settings: &Value) -> std::io::Result<()> {
        if let Some(model) = settings["model"].as_str() {
            self.switch_model(model).await?;
        }
        self.answer(id, None).await
    }

    async fn cancel_message(&self, id: &Value, uuid: &Value) -> std::io::Result<()> {
        let cancelled = self.change(|state: &mut State| {
            let at = state
                .queue
                .iter()
                .position(|prompt| prompt.uuid.as_deref().is_some_and(|own| *uuid == own))?;
            state.queue.remove(at)
        });
        let uuids: Vec<String> = cancelled.and_then(|prompt| prompt.uuid).into_iter().collect();
        self.tell_lifecycle(&uuids, "cancelled").await?;
        self.answer(id, Some(json!({ "cancelled": !uuids.is_empty() }))).await
    }

    async fn set_servers(&self, id: &Value, servers: &Value) -> std::io::Result<()> {
        let Some(servers) = servers.as_object() else {
            return self
                .refuse(id, "mcp_set_servers: servers must be an object", Some("invalid_request"))
                .await;
        };
        let is_ours = |name: &String| servers.get(name).is_some_and(|server| server["type"] == "sdk");
        let (added, removed) = self.change(|state| {
            let removed: Vec<String> = state.servers.keys().filter(|name| !is_ours(name)).cloned().collect();
            state.servers.retain(|name, _| is_ours(name));
            let added: Vec<String> = servers
                .keys()
                .filter(|name| is_ours(name) && !state.servers.contains_key(*name))
                .cloned()
                .collect();
            state.servers.extend(added.iter().map(|name| (name.clone(), Server::default())));
            if !added.is_empty() {
                state.jobs.push_back(Job::Connect);
            }
            (added, removed)
        });
        self.answer(id, Some(json!({ "added": added, "removed": removed, "errors": {} }))).await
    }

    async fn rename(&self, id: &Value, title: &Value) -> std::io::Result<()> {
        let Some(title) = title.as_str() else {
            return self.refuse(id, "rename_session: title must be a string", Some("invalid_request")).await;
        };
        self.system("session_title_changed", json!({ "title": title })).await?;
        self.answer(id, None).await
    }

    async fn answer_aside(&self, id: &Value) -> std::io::Result<()> {
        self.system("control_request_progress", json!({ "request_id": id, "status": "started" })).await?;
        self.answer(id, Some(json!({ "response": "A scripted answer.", "synthetic": false }))).await
    }

    async fn stop_task(&self, id: &Value, task: &Value) -> std::io::Result<()> {
        if let Some(task) = task.as_str() {
            self.change(|state| state.stopped.push(task.to_owned()));
        }
        self.answer(id, Some(json!({}))).await
    }
}
