//! Handshake, list, errors of the protocol, and what is refused before it begins.

use oarlock_agent::stream::Json;
use oarlock_agent::tool::schemars::JsonSchema;
use oarlock_agent::tool::{Server as _, Structured, Tool, ToolCx, ToolServer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::Host;
use crate::{Add, Point, calc};

#[tokio::test]
async fn the_handshake_tells_name_version_instructions_and_capabilities() {
    let host = Host::new(calc().instructions("Add with it."));
    let hello = host.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})).await;
    assert_eq!(
        hello["result"],
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "calc", "version": "1.2.3"},
            "instructions": "Add with it.",
        })
    );
    let unknown = host.ask("initialize", json!({"protocolVersion": "2099-01-01"})).await;
    assert_eq!(unknown["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(host.tell("notifications/initialized", Value::Null).await, None);
    assert_eq!(host.ask("ping", Value::Null).await["result"], json!({}));
}

#[tokio::test]
async fn a_second_handshake_with_the_same_ids_is_served_like_the_first() {
    let host = Host::new(calc());
    let mut rounds = Vec::new();
    for _ in 0..2 {
        let mut answers = Vec::new();
        for (id, method, params) in [
            (0, "initialize", json!({"protocolVersion": "2025-11-25"})),
            (1, "tools/list", Value::Null),
            (2, "tools/call", json!({"name": "add", "arguments": {"a": 2, "b": 3}})),
        ] {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            answers.push(host.message(request).await.unwrap());
        }
        rounds.push(answers);
    }
    assert_eq!(rounds[0], rounds[1]);
    assert_eq!(rounds[1][2]["result"]["content"][0]["text"], "5");
    assert_eq!(rounds[1][2]["id"], 2);
    // One session that shook hands twice is told once.
    host.server.remove("add").await;
    assert_eq!(host.sent().len(), 1);
}

#[tokio::test]
async fn the_list_has_schemas_that_accept_what_fits_and_refuse_what_does_not() {
    let host = Host::new(calc());
    let list = host.ask("tools/list", json!({})).await;
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["name"], "add");
    assert_eq!(tool["description"], "Add two numbers.");
    let schema = &tool["inputSchema"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["a"]["description"], "The first one.");
    assert_eq!(schema["required"], json!(["a", "b"]));
    assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{schema}");

    assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
    let validator = jsonschema::draft202012::new(schema).unwrap();
    for (args, fits) in [
        (json!({"a": 1, "b": 2}), true),
        (json!({"a": 1, "b": 2, "style": "words", "points": [{"x": 1, "y": 2}]}), true),
        (json!({"a": 1}), false),
        (json!({"a": "1", "b": 2}), false),
        (json!({"a": 1, "b": 2, "style": "loud"}), false),
        (json!({"a": 1, "b": 2, "points": [{"x": 1}]}), false),
    ] {
        // The schema and the function's own reading must agree.
        assert_eq!(validator.is_valid(&args), fits, "{args}");
        let answer = host.call("add", args.clone()).await;
        assert_eq!(answer["isError"].as_bool().unwrap_or_default(), !fits, "{args}: {answer}");
    }
}

#[tokio::test]
async fn hints_title_and_remarks_are_in_the_list_and_only_if_given() {
    let tool = Tool::new("wipe", async || ())
        .title("Wipe it")
        .read_only(false)
        .destructive(true)
        .idempotent(true)
        .open_world(false)
        .always_load()
        .max_result_chars(1000)
        .meta("mine", json!({"x": 1}));
    let host = Host::new(ToolServer::new("s").tool(tool).tool(Tool::new("bare", async || ())));
    let list = host.ask("tools/list", Value::Null).await;
    assert_eq!(
        list["result"]["tools"],
        json!([
            {
                "name": "wipe", "title": "Wipe it", "description": "",
                "inputSchema": {"type": "object"},
                "annotations": {
                    "title": "Wipe it", "readOnlyHint": false, "destructiveHint": true,
                    "idempotentHint": true, "openWorldHint": false,
                },
                "_meta": {
                    "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": 1000, "mine": {"x": 1},
                },
            },
            {"name": "bare", "description": "", "inputSchema": {"type": "object"}},
        ])
    );
}

#[tokio::test]
async fn unknown_tools_methods_and_messages_get_json_rpc_errors() {
    let host = Host::new(calc());
    let tool = host.ask("tools/call", json!({"name": "mul"})).await;
    assert_eq!(tool["error"], json!({"code": -32602, "message": "unknown tool: mul"}));
    assert_eq!(host.ask("tools/call", json!({"name": 7})).await["error"]["code"], -32602);
    assert_eq!(host.ask("tools/call", Value::Null).await["error"]["message"], "missing field `name`");
    assert_eq!(host.ask("resources/list", Value::Null).await["error"]["code"], -32601);
    assert_eq!(host.message(json!({"jsonrpc": "1.0", "id": 3, "method": "ping"})).await.unwrap()["id"], 3);
    assert_eq!(host.message(json!([])).await.unwrap()["error"]["code"], -32600);
    assert_eq!(host.message(json!({"jsonrpc": "2.0", "id": 9, "result": {}})).await, None);
    assert_eq!(host.tell("notifications/whatever", json!([])).await, None);
}

#[tokio::test]
async fn tools_come_and_go_while_sessions_run() {
    let server = calc();
    let [host, other, idle] = std::array::from_fn(|_| Host::new(server.clone()));
    host.ask("initialize", json!({})).await;
    other.ask("initialize", json!({})).await;
    server.add(Tool::new("mul", async |args: Add| args.a * args.b)).await.unwrap();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(host.sent(), std::slice::from_ref(&changed));
    assert_eq!(idle.sent(), Vec::<Value>::new(), "who has not shaken hands knows no list that could change");
    assert_eq!(server.tools(), ["add", "mul"]);
    assert_eq!(host.call("mul", json!({"a": 3, "b": 4})).await["content"][0]["text"], "12");

    // The same name again is another tool in its place.
    server.add(Tool::new("add", async || "replaced")).await.unwrap();
    assert_eq!(server.tools(), ["add", "mul"]);
    assert_eq!(host.call("add", json!({})).await["content"][0]["text"], "replaced");

    assert!(server.remove("mul").await && !server.remove("mul").await);
    assert_eq!(host.ask("tools/call", json!({"name": "mul"})).await["error"]["code"], -32602);
    assert_eq!(host.sent(), vec![changed; 3]);
    assert_eq!(other.sent(), host.sent());
}

#[tokio::test]
async fn what_the_cli_or_the_api_would_not_take_is_refused_before_a_session_starts() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Flat {
        #[serde(flatten)]
        shape: Shape,
    }
    let why = |tool: Tool| ToolServer::new("s").tool(tool).check().unwrap_err().to_string();
    for (tool, reason) in [
        (Tool::new("draw", async |_: Shape| ()), "`oneOf` at its root"),
        (Tool::new("draw", async |_: Flat| ()), "`oneOf` at its root"),
        (Tool::new("draw", async |_: Vec<u8>| ()), "its `type` is \"array\""),
        (Tool::new("draw", async |_: Option<Point>| ()), "`anyOf` at its root"),
        (Tool::new("draw", async || Structured(vec![1])), "the schema of its answer must be an object's"),
        (Tool::raw("draw", json!({}), async |_: Json, _: ToolCx| ()), "it has no `type`"),
        (Tool::raw("draw", json!("object"), async |_: Json, _: ToolCx| ()), "it has no `type`"),
        (Tool::new("draw it", async || ()), "\"draw it\" cannot be a name"),
        (Tool::new("", async || ()), "\"\" cannot be a name"),
        (Tool::new("x".repeat(128), async || ()), "128 are the most"),
    ] {
        let why = why(tool);
        assert!(why.starts_with("the option tool_server cannot be used: tool `"), "{why}");
        assert!(why.contains(reason), "{why}");
    }
    assert!(ToolServer::new("my server").check().unwrap_err().to_string().contains("my server"));
    let twice = calc().tool(Tool::new("add", async || ()));
    assert!(twice.check().unwrap_err().to_string().contains("two tools `add`"));

    // A core that did not ask leaves the CLI with a server that says why it failed.
    let host = Host::new(twice);
    let refused = host.ask("initialize", json!({})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("two tools `add`"), "{refused}");
    let live = calc();
    assert!(live.add(Tool::new("draw", async |_: Vec<u8>| ())).await.is_err());
    assert_eq!(live.tools(), ["add"]);
    assert!(live.check().is_ok());
}
