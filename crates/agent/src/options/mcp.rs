//! MCP servers outside this program. (Those inside it are [`tool`](crate::tool) servers.)

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::args::Args;
use super::{Options, refuse};
use crate::Error;
use crate::stream::Json;

/// The options of this file.
#[derive(Clone, Default)]
pub(super) struct Mcp {
    servers: BTreeMap<String, McpServerConfig>,
    files: Vec<PathBuf>,
    strict: bool,
}

/// How an MCP server is reached.
///
/// `Debug` shows neither variables nor headers: they hold keys.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum McpServerConfig {
    /// A program that the CLI starts.
    Stdio(StdioServer),
    /// A server that runs already.
    Remote(RemoteServer),
    /// Any other configuration: a JSON object with `type`.
    Other(Json),
}

/// An MCP server that the CLI starts and talks to by its stdin and stdout.
///
/// ```
/// use oarlock_agent::{Options, options::StdioServer};
///
/// let files = StdioServer::new("npx").args(["-y", "some-server", "."]).env("LOG", "off");
/// let options = Options::new().mcp_server("files", files);
/// ```
#[derive(Clone, PartialEq, Default)]
pub struct StdioServer {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    more: More,
}

/// An MCP server that runs already.
///
/// ```
/// use oarlock_agent::{Options, options::RemoteServer};
///
/// let search = RemoteServer::http("https://example.com/mcp").header("Authorization", "Bearer …");
/// let options = Options::new().mcp_server("search", search);
/// ```
#[derive(Clone, PartialEq)]
pub struct RemoteServer {
    transport: &'static str,
    url: String,
    headers: BTreeMap<String, String>,
    more: More,
}

/// What both kinds have.
#[derive(Clone, PartialEq, Default)]
struct More {
    timeout: Option<Duration>,
    always_load: Option<bool>,
}

impl More {
    fn write(&self, object: &mut Map<String, Value>) {
        if let Some(timeout) = self.timeout {
            object.insert("timeout".into(), u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into());
        }
        if let Some(always) = self.always_load {
            object.insert("alwaysLoad".into(), always.into());
        }
    }
}

impl StdioServer {
    /// A program, on the CLI's PATH or by its path.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// How long one call of a tool may take; the CLI takes a second or more.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.more.timeout = Some(timeout);
        self
    }

    /// Whether the model sees its tools from the start, instead of searching for them.
    #[must_use]
    pub fn always_load(mut self, always: bool) -> Self {
        self.more.always_load = Some(always);
        self
    }
}

impl RemoteServer {
    fn new(transport: &'static str, url: impl Into<String>) -> Self {
        Self { transport, url: url.into(), headers: BTreeMap::new(), more: More::default() }
    }

    /// Over streamable HTTP.
    #[must_use]
    pub fn http(url: impl Into<String>) -> Self {
        Self::new("http", url)
    }

    /// Over server-sent events.
    #[must_use]
    pub fn sse(url: impl Into<String>) -> Self {
        Self::new("sse", url)
    }

    /// Over a WebSocket.
    #[must_use]
    pub fn ws(url: impl Into<String>) -> Self {
        Self::new("ws", url)
    }

    /// A header of every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// How long one call of a tool may take; the CLI takes a second or more.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.more.timeout = Some(timeout);
        self
    }

    /// Whether the model sees its tools from the start, instead of searching for them.
    #[must_use]
    pub fn always_load(mut self, always: bool) -> Self {
        self.more.always_load = Some(always);
        self
    }
}

impl McpServerConfig {
    /// The configuration as the CLI reads it, in a file or in `mcp_set_servers`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let (mut object, more) = match self {
            Self::Other(config) => return config.clone(),
            Self::Stdio(server) => {
                let mut object = Map::new();
                object.insert("type".into(), "stdio".into());
                object.insert("command".into(), server.command.as_str().into());
                if !server.args.is_empty() {
                    object.insert("args".into(), json!(server.args));
                }
                if !server.env.is_empty() {
                    object.insert("env".into(), json!(server.env));
                }
                (object, &server.more)
            }
            Self::Remote(server) => {
                let mut object = Map::new();
                object.insert("type".into(), server.transport.into());
                object.insert("url".into(), server.url.as_str().into());
                if !server.headers.is_empty() {
                    object.insert("headers".into(), json!(server.headers));
                }
                (object, &server.more)
            }
        };
        more.write(&mut object);
        Value::Object(object).into()
    }
}

impl From<StdioServer> for McpServerConfig {
    fn from(server: StdioServer) -> Self {
        Self::Stdio(server)
    }
}

impl From<RemoteServer> for McpServerConfig {
    fn from(server: RemoteServer) -> Self {
        Self::Remote(server)
    }
}

impl From<Json> for McpServerConfig {
    fn from(config: Json) -> Self {
        Self::Other(config)
    }
}

impl From<Value> for McpServerConfig {
    fn from(config: Value) -> Self {
        Self::Other(config.into())
    }
}

impl fmt::Debug for McpServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(server) => server.fmt(f),
            Self::Remote(server) => server.fmt(f),
            Self::Other(_) => f.write_str("Other(…)"),
        }
    }
}

impl fmt::Debug for StdioServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may hold keys as well as variables do.
        let env: Vec<&String> = self.env.keys().collect();
        f.debug_struct("StdioServer")
            .field("command", &self.command)
            .field("env", &env)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("RemoteServer")
            .field("transport", &self.transport)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// An MCP server for this session: `mcp__NAME__TOOL` are its tools (`--mcp-config` with a private file, because
    /// there may be keys in it).
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, server: impl Into<McpServerConfig>) -> Self {
        self.mcp.servers.insert(name.into(), server.into());
        self
    }

    /// A file with MCP servers, `{"mcpServers": {…}}` (`--mcp-config`). It may be said more than once.
    #[must_use]
    pub fn mcp_config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.mcp.files.push(path.into());
        self
    }

    /// Whether only the MCP servers of these options count, and none of the user's or the project's
    /// (`--strict-mcp-config`).
    #[must_use]
    pub fn strict_mcp_config(mut self, strict: bool) -> Self {
        self.mcp.strict = strict;
        self
    }

    /// How long an MCP server may take to come up (variable `MCP_TIMEOUT`). The first turn waits for it.
    #[must_use]
    pub fn mcp_timeout(self, timeout: Duration) -> Self {
        self.env("MCP_TIMEOUT", timeout.as_millis().to_string())
    }

    /// How long a call of an MCP tool may take (variable `MCP_TOOL_TIMEOUT`).
    #[must_use]
    pub fn mcp_tool_timeout(self, timeout: Duration) -> Self {
        self.env("MCP_TOOL_TIMEOUT", timeout.as_millis().to_string())
    }
}

impl Mcp {
    /// Is there a server of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    pub(super) fn arguments(&self, args: &mut Args) -> Result<(), Error> {
        if !self.servers.is_empty() {
            let mut servers = BTreeMap::new();
            for (name, server) in &self.servers {
                let config = server.to_json();
                if name.is_empty() || !config.is_object() {
                    return refuse("mcp_server", format!("{name:?} needs a name and a JSON object"));
                }
                servers.insert(name, config);
            }
            match serde_json::to_string(&BTreeMap::from([("mcpServers", servers)])) {
                Ok(text) => args.file("--mcp-config", "mcp.json", text),
                Err(error) => return refuse("mcp_server", error.to_string()),
            }
        }
        for path in &self.files {
            args.path("--mcp-config", path)?;
        }
        args.switch("--strict-mcp-config", self.strict);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_the_cli_reads_them() {
        let stdio = StdioServer::new("npx").args(["-y"]).env("K", "V").timeout(Duration::from_secs(5));
        let remote = |server: RemoteServer| McpServerConfig::from(server).to_json().value();
        assert_eq!(
            McpServerConfig::from(stdio).to_json().value(),
            json!({"type": "stdio", "command": "npx", "args": ["-y"], "env": {"K": "V"}, "timeout": 5000})
        );
        assert_eq!(
            remote(RemoteServer::http("u").header("A", "b").always_load(true)),
            json!({"type": "http", "url": "u", "headers": {"A": "b"}, "alwaysLoad": true})
        );
        assert_eq!(remote(RemoteServer::sse("u")), json!({"type": "sse", "url": "u"}));
        assert_eq!(remote(RemoteServer::ws("u")), json!({"type": "ws", "url": "u"}));
    }
}
