//! A stdio MCP server whose one tool asks the user something: `ask` elicits a colour and says what came back.

use std::io::{BufRead, Lines, StdinLock, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub(crate) fn main() -> Result<ExitCode> {
    let mut lines = std::io::stdin().lock().lines();
    while let Some(message) = read(&mut lines)? {
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "elicit", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [
                {"name": "ask", "description": "Asks for a colour", "inputSchema": {"type": "object"}},
            ]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": elicit(&mut lines)?}]}),
            _ => json!({}),
        };
        // Notifications have no id and get no answer.
        if let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) {
            write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn elicit(lines: &mut Lines<StdinLock<'_>>) -> Result<String> {
    let schema = json!({
        "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
    });
    let params = json!({"message": "Which colour?", "requestedSchema": schema});
    write(&json!({"jsonrpc": "2.0", "id": "elicit-1", "method": "elicitation/create", "params": params}))?;
    loop {
        let message = read(lines)?.context("the input ended before the answer")?;
        if message["id"] == "elicit-1" {
            let answer = message.get("result").or_else(|| message.get("error"));
            return Ok(format!("answer: {}", answer.unwrap_or(&Value::Null)));
        }
    }
}

fn read(lines: &mut Lines<StdinLock<'_>>) -> Result<Option<Value>> {
    Ok(lines.next().transpose()?.map(|line| serde_json::from_str(&line)).transpose()?)
}

fn write(message: &Value) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    Ok(stdout.flush()?)
}
