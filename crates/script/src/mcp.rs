//! The host's in-process MCP servers: handshake, list and call through `mcp_message`.

use serde_json::{Value, json};

use crate::player::{Answer, Player, Stop, lay};

/// A server that lives in the host.
#[derive(Debug, Default, Clone)]
pub(crate) struct Server {
    status: Status,
    info: Value,
    tools: Vec<Value>,
    next_id: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Status {
    #[default]
    Pending,
    /// Hello was said and not answered yet.
    Greeting,
    Greeted,
    /// Somebody asks for its tools.
    Listing,
    Connected,
    Failed,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Pending | Self::Greeting | Self::Greeted | Self::Listing => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

impl Player<'_> {
    /// Says hello to every server that does not know us yet. The real CLI does this before it answers `initialize`.
    pub(crate) async fn greet_servers(&self) -> Result<(), Stop> {
        for name in self.claim_servers(Status::Pending, Status::Greeting) {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {
                    "name": "claude-code",
                    "title": "Claude Code",
                    "description": "Anthropic's agentic coding tool",
                    "websiteUrl": "https://claude.com/claude-code",
                    "version": self.scenario.version,
                },
            });
            let reply = self.call_server(&name, "initialize", Some(params)).await?;
            self.change(|state| {
                let Some(server) = state.servers.get_mut(&name) else { return };
                match reply {
                    Ok(reply) => {
                        server.info = reply["serverInfo"].clone();
                        server.status = Status::Greeted;
                    }
                    Err(_) => server.status = Status::Failed,
                }
            });
        }
        Ok(())
    }

    /// Finishes the handshake and asks for the tools. The first turn waits for this.
    pub(crate) async fn connect_servers(&self) -> Result<(), Stop> {
        self.greet_servers().await?;
        self.until_none_is(Status::Greeting).await;
        for name in self.claim_servers(Status::Greeted, Status::Listing) {
            let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            self.ask(json!({ "subtype": "mcp_message", "server_name": name, "message": message }), false)
                .await?;
            let reply = self.call_server(&name, "tools/list", None).await?;
            self.change(|state| {
                let Some(server) = state.servers.get_mut(&name) else { return };
                server.status = if reply.is_ok() { Status::Connected } else { Status::Failed };
                let tools = reply.ok().and_then(|reply| reply["tools"].as_array().cloned());
                server.tools = tools.unwrap_or_default();
            });
        }
        self.until_none_is(Status::Listing).await;
        Ok(())
    }

    /// Waits for a handshake that somebody else has begun.
    async fn until_none_is(&self, status: Status) {
        self.until(|state| {
            let is_under_way = state.servers.values().any(|server| server.status == status);
            (!is_under_way || state.is_interrupted || state.is_closed).then_some(())
        })
        .await;
    }

    /// The servers in one status, which are moved on to the next, so that nobody else takes them up.
    fn claim_servers(&self, from: Status, to: Status) -> Vec<String> {
        self.change(|state| {
            let mut claimed = Vec::new();
            for (name, server) in state.servers.iter_mut().filter(|(_, server)| server.status == from) {
                server.status = to;
                claimed.push(name.clone());
            }
            claimed
        })
    }

    /// Calls a tool of an in-process server. `None` if there is no such server.
    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
        tool_use_id: &str,
    ) -> Result<Option<Result<Value, String>>, Stop> {
        let Some((server, tool)) = split_name(name) else { return Ok(None) };
        let progress = match self.state().servers.get(server) {
            Some(server) if server.status == Status::Connected => server.next_id,
            _ => return Ok(None),
        };
        let meta = json!({ "claudecode/toolUseId": tool_use_id, "progressToken": progress });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.call_server(server, "tools/call", Some(params)).await.map(Some)
    }

    async fn call_server(
        &self,
        server: &str,
        method: &str,
        params: Option<Value>,
    ) -> Result<Result<Value, String>, Stop> {
        let id = self.change(|state| {
            let server = state.servers.entry(server.to_owned()).or_default();
            server.next_id += 1;
            server.next_id - 1
        });
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if let Some(params) = params {
            lay(&mut message, json!({ "params": params }));
        }
        let request = json!({ "subtype": "mcp_message", "server_name": server, "message": message });
        // An interrupt withdraws a call, but no handshake: the server is there for the next turn too.
        let in_turn = method == "tools/call";
        Ok(match self.ask(request, in_turn).await? {
            Answer::Success(mut body) => {
                let mut reply = body["mcp_response"].take();
                match reply.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("unknown error").to_owned()),
                    None => Ok(reply["result"].take()),
                }
            }
            Answer::Error(error) => Err(error),
            Answer::Closed => Err("the stream was closed".to_owned()),
        })
    }

    /// The servers as `system/init` lists them.
    pub(crate) fn listed_servers(&self) -> Vec<Value> {
        let state = self.state();
        let listed = |(name, server): (&String, &Server)| json!({ "name": name, "status": server.status.name(), "source": "sdk" });
        state.servers.iter().map(listed).collect()
    }

    /// Full names of all tools of the servers.
    pub(crate) fn server_tools(&self) -> Vec<String> {
        let state = self.state();
        let of = |(name, server): (&String, &Server)| {
            let tools = server.tools.iter().filter_map(|tool| tool["name"].as_str());
            tools.map(|tool| format!("mcp__{name}__{tool}")).collect::<Vec<_>>()
        };
        state.servers.iter().flat_map(of).collect()
    }

    /// The body of an answer to `mcp_status`.
    pub(crate) fn server_status(&self) -> Value {
        let state = self.state();
        let status = |(name, server): (&String, &Server)| {
            let tools = server.tools.iter().map(|tool| {
                let hints = tool.get("annotations").and_then(Value::as_object);
                let short = |name: &str| name.trim_end_matches("Hint").to_owned();
                let hints = hints.into_iter().flatten().map(|(name, hint)| (short(name), hint.clone()));
                json!({ "name": tool["name"], "annotations": Value::Object(hints.collect()) })
            });
            json!({
                "name": name,
                "status": server.status.name(),
                "serverInfo": server.info,
                "transport": "sdk",
                "scope": "dynamic",
                "source": "sdk",
                "tools": tools.collect::<Vec<_>>(),
            })
        };
        json!({ "mcpServers": state.servers.iter().map(status).collect::<Vec<_>>() })
    }
}

/// `mcp__server__tool`.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}
