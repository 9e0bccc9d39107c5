//! What the CLI answers to the requests of the host when the script says nothing else: the shapes of the real one, with
//! little in them.

use serde_json::{Value, json};

use crate::player::{Player, lay, timestamp};

/// What `init.capabilities` lists.
const CAPABILITIES: [&str; 6] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "msg_lifecycle_v1",
    "request_marker_lists_v1",
    "ask_user_question_unanswered_v1",
    "sdk_mcp_tools_list_changed",
];

const TOOLS: [&str; 22] = [
    "Task",
    "AskUserQuestion",
    "Bash",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "ListAgents",
    "Monitor",
    "NotebookEdit",
    "Read",
    "SendMessage",
    "Skill",
    "TaskStop",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

const AGENTS: [&str; 4] = ["claude", "Explore", "general-purpose", "Plan"];
const COMMANDS: [&str; 5] = ["clear", "compact", "context", "init", "usage"];
const OUTPUT_STYLES: [&str; 3] = ["default", "Explanatory", "Learning"];

impl Player<'_> {
    /// The body of the answer to `initialize`.
    fn initialize_body(&self) -> Value {
        let command = |name: &&str| json!({ "name": name, "description": format!("The scripted /{name}"), "argumentHint": "", "builtin": true });
        let commands: Vec<Value> = if self.launch.flag("--disable-slash-commands") {
            Vec::new()
        } else {
            COMMANDS.iter().map(command).collect()
        };
        let agent =
            |name: &&str| json!({ "name": name, "description": format!("The scripted agent {name}") });
        let (mode, has_hooks) = {
            let state = self.state();
            (state.mode.clone(), !state.hooks.is_empty())
        };
        let mut body = json!({
            "commands": commands,
            "agents": AGENTS.iter().map(agent).collect::<Vec<_>>(),
            "output_style": "default",
            "available_output_styles": OUTPUT_STYLES,
            "user_output_styles_dir": "/dev/null",
            "models": models(),
            "account": { "tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY", "apiProvider": "firstParty" },
            "pid": std::process::id(),
            "claude_code_version": self.scenario.version,
            "current_permission_mode": mode,
            "hook_on_failure_supported": true,
            "other_hook_ask_outranks_host": true,
            "feedback_mode": { "kind": "disabled" },
            "analytics_disabled": true,
            "remote_control_auto_enable": false,
            "remote_control_auto_connect_default": false,
            "remote_control_available": false,
            "remote_control_auto_on_by_default": false,
            "ide_rc_auto_enable_gate": false,
            "fast_mode_state": "off",
            "fast_mode_disabled_reason": "sdk_opt_in_required",
            "session_state": if self.state().is_running { "running" } else { "idle" },
            "capabilities": ["ui_surface_v1"],
        });
        if has_hooks {
            body["hooks_applied"] = true.into();
        }
        lay(&mut body, Value::Object(self.scenario.initialize.clone()));
        body
    }

    /// Answers `initialize`.
    pub(crate) async fn answer_initialize(&self, id: &Value) -> std::io::Result<()> {
        let response = json!({
            "subtype": "success",
            "request_id": id,
            "response": self.initialize_body(),
            "pending_permission_requests": [],
            "pending_user_dialog_requests": [],
        });
        self.send(&json!({ "type": "control_response", "response": response })).await
    }

    /// `system/init`, which opens every turn.
    pub(crate) fn init_frame(&self, uuids: &[String]) -> Value {
        let mut tools: Vec<String> = TOOLS.iter().map(ToString::to_string).collect();
        tools.extend(self.server_tools());
        let (session_id, model, mode, schema) = {
            let state = self.state();
            (state.session_id.clone(), state.model.clone(), state.mode.clone(), state.schema)
        };
        if schema {
            tools.push("StructuredOutput".to_owned());
        }
        let directory = self.launch.directory();
        let has_commands = !self.launch.flag("--disable-slash-commands");
        let mut frame = json!({
            "type": "system",
            "subtype": "init",
            "cwd": directory,
            "session_id": session_id,
            "tools": tools,
            "mcp_servers": self.listed_servers(),
            "model": model,
            "permissionMode": mode,
            "slash_commands": if has_commands { COMMANDS.as_slice() } else { &[] },
            "terminal_slash_commands": [],
            "apiKeySource": "ANTHROPIC_API_KEY",
            "claude_code_version": self.scenario.version,
            "output_style": "default",
            "agents": AGENTS,
            "skills": [],
            "plugins": [],
            "capabilities": CAPABILITIES,
            "analytics_disabled": true,
            "product_feedback_disabled": true,
            "memory_paths": {},
            "original_cwd": directory,
            "additional_directories": [],
            "messaging_socket_path": "/dev/null",
            "fast_mode_state": "off",
            "fast_mode_disabled_reason": "sdk_opt_in_required",
            "per_turn_effort_active": true,
            "ultrathink_available": false,
            "ultrathink_typed_raises": false,
            "view_mode": "default",
        });
        if !uuids.is_empty() {
            frame["user_message_uuids"] = json!(uuids);
        }
        lay(&mut frame, Value::Object(self.scenario.init.clone()));
        self.sign(frame)
    }

    /// Requests whose answer changes nothing. `None` for those that do not exist.
    pub(crate) fn body_of(&self, subtype: &str, request: &Value) -> Option<Result<Option<Value>, String>> {
        let body = match subtype {
            "set_max_thinking_tokens"
            | "message_rated"
            | "submit_feedback"
            | "seed_read_state"
            | "mcp_message"
            | "set_has_subscribers"
            | "set_proactivity_level"
            | "set_prompt_suggestions_paused"
            | "update_settings" => None,
            "background_tasks" => Some(json!({})),
            "get_context_usage" => Some(self.context_usage()),
            "get_session_cost" => {
                Some(json!({ "text": format!("Total cost: ${:.4}", self.state().totals.cost()) }))
            }
            "get_usage" => Some(self.session_usage()),
            "get_settings" => {
                let model = self.state().model.clone();
                Some(
                    json!({ "effective": {}, "sources": [], "applied": { "model": model, "effort": "medium" } }),
                )
            }
            "get_binary_version" => {
                Some(json!({ "version": self.scenario.version, "buildTime": timestamp() }))
            }
            "mcp_status" => Some(self.server_status()),
            "mcp_reconnect" | "mcp_toggle" => {
                let name = request["serverName"].as_str().unwrap_or_default();
                if !self.state().servers.contains_key(name) {
                    return Some(Err(format!("Server not found: {name}")));
                }
                None
            }
            "rewind_files" => return Some(Err("File rewinding is not enabled.".to_owned())),
            "rewind_conversation" => Some(json!({ "rewound": false, "reason": "target_not_found" })),
            "read_file" => return Some(self.read_file(request).map(Some)),
            "file_suggestions" => Some(json!({ "suggestions": [] })),
            "reload_plugins" | "reload_skills" => {
                Some(json!({ "commands": [], "agents": [], "plugins": [], "skills": [] }))
            }
            "generate_session_title" => Some(json!({ "title": "A scripted session" })),
            "list_models" => Some(json!({ "models": models() })),
            "list_permission_rules" => Some(json!({ "state": { "rules": [] } })),
            "get_hooks_listing" => Some(json!({ "events": [] })),
            "get_task_output" => Some(json!({ "output": "", "total_bytes": 0, "truncated": false })),
            "get_plan" => Some(json!({ "plan": null })),
            "get_status" => Some(json!({ "version": self.scenario.version })),
            "export_conversation" => Some(json!({ "content": "" })),
            _ => return None,
        };
        Some(Ok(body))
    }

    fn context_usage(&self) -> Value {
        let category = |name: &str, tokens: u64, kind: &str| {
            let id = name.to_lowercase().replace(' ', "_");
            json!({ "id": id, "name": name, "tokens": tokens, "color": "inactive", "kind": kind })
        };
        json!({
            "categories": [
                category("System prompt", 336, "used"),
                category("System tools", 42, "used"),
                category("Free space", 999_622, "free"),
            ],
            "totalTokens": 378,
            "maxTokens": 1_000_000,
            "rawMaxTokens": 1_000_000,
            "autocompactSource": "model-default",
            "percentage": 0,
            "gridRows": [],
            "model": self.state().model.clone(),
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "autoCompactThreshold": 967_000,
            "isAutoCompactEnabled": true,
            "mcpInstructions": [],
            "messageBreakdown": {
                "toolCallTokens": 0,
                "toolResultTokens": 0,
                "attachmentTokens": 0,
                "assistantMessageTokens": 0,
                "userMessageTokens": 0,
                "redirectedContextTokens": 0,
                "unattributedTokens": 0,
                "toolCallsByType": [],
                "attachmentsByType": [],
            },
            "apiUsage": null,
        })
    }

    fn session_usage(&self) -> Value {
        let state = self.state();
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!({
            "session": {
                "total_cost_usd": state.totals.cost(),
                "total_api_duration_ms": state.totals.api_ms,
                "total_duration_ms": elapsed,
                "total_lines_added": 0,
                "total_lines_removed": 0,
                "model_usage": state.totals.by_model(),
            },
            "subscription_type": null,
            "rate_limits_available": false,
            "rate_limits": null,
            "behaviors": null,
        })
    }

    /// The one request that looks at the disk, and only below the working directory.
    fn read_file(&self, request: &Value) -> Result<Value, String> {
        let path = request["path"].as_str().unwrap_or_default();
        let denied = || format!("read denied: {path}");
        let directory = std::path::PathBuf::from(self.launch.directory());
        let full = directory.join(path).canonicalize().map_err(|_| denied())?;
        if !directory.canonicalize().is_ok_and(|directory| full.starts_with(directory)) {
            return Err(denied());
        }
        let bytes = std::fs::read(&full).map_err(|_| denied())?;
        let text = String::from_utf8_lossy(&bytes);
        let is_lossy = matches!(text, std::borrow::Cow::Owned(_));
        Ok(json!({ "contents": text, "absPath": full, "lossy": is_lossy, "requested_path": path }))
    }
}

fn models() -> Value {
    let model = |value: &str, resolved: &str, name: &str| {
        json!({
            "value": value,
            "resolvedModel": resolved,
            "displayName": name,
            "description": format!("{name}, as scripted"),
            "supportsEffort": true,
            "supportedEffortLevels": ["low", "medium", "high", "xhigh", "max"],
            "supportsAdaptiveThinking": true,
            "supportsFastMode": true,
            "supportsAutoMode": true,
            "supportsThinkingOff": false,
        })
    };
    json!([
        model("default", "claude-opus-5-5", "Default (recommended)"),
        model("sonnet", "claude-sonnet-5-5", "Sonnet"),
        model("haiku", "claude-haiku-5-5", "Haiku"),
    ])
}
