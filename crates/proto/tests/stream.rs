//! Every message of the recordings and of the oddities: read, written, compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use oarlock_proto::stream::hook::HookEvent;
use oarlock_proto::stream::{
    BadLineReason, Content, ContentBlock, Delta, Event, Message, Request, System, ToolInput, ToolOutput,
    Unknown, decode, reply,
};
use serde_json::{Value, json};

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Lines as the wire has them: ended by a line feed and by nothing else.
fn lines(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).expect("fixture");
    let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    assert_eq!(lines.pop().as_deref(), Some(&b""[..]), "{} ends with a line feed", file.display());
    lines
}

fn recorded() -> Vec<Vec<u8>> {
    fixtures("stream").iter().flat_map(|file| lines(file)).collect()
}

fn message(value: &Value) -> Message {
    decode(value.to_string().as_bytes()).expect("an object")
}

fn assert_same(message: &Message, line: &[u8]) {
    let want: Value = serde_json::from_slice(line).expect("JSON");
    assert_eq!(serde_json::to_value(message).expect("written"), want);
    // Text is what goes over the wire, so the detour by text counts too.
    let text = serde_json::to_string(message).expect("written");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), want);
}

#[test]
fn every_recorded_message_is_written_as_it_was_read() {
    for line in recorded() {
        let message = decode(&line).expect("a message");
        assert_same(&message, &line);
        let again = decode(serde_json::to_string(&message).expect("written").as_bytes()).expect("a message");
        assert_eq!(message, again);
    }
}

#[test]
fn the_second_try_reads_what_the_first_reads() {
    for line in recorded() {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(&line) else { panic!("an object") };
        let want = decode(&line).expect("a message");
        // A tag behind other fields, here behind one of the wrong type, takes the slow path.
        let kind = fields.remove("type").expect("type");
        let rest = Value::Object(fields).to_string();
        let rest = rest.strip_prefix('{').expect("object");
        let comma = if rest == "}" { "" } else { "," };
        let line = format!(r#"{{"type":{kind}{comma}{rest}"#);
        let turned = format!(r#"{{"zz":0,"type":{kind}{comma}{rest}"#);
        assert_eq!(decode(line.as_bytes()), Ok(want));
        let mut slow = serde_json::to_value(decode(turned.as_bytes()).expect("a message")).expect("written");
        assert_eq!(slow.as_object_mut().expect("object").remove("zz"), Some(json!(0)));
        assert_eq!(slow, serde_json::from_str::<Value>(&line).expect("JSON"));
    }
}

#[test]
fn everything_in_the_recordings_is_typed() {
    // What the fixtures say on purpose: an unknown request, a model that is a number, an unknown suggestion.
    let on_purpose = ["tag: \"no_such_request\"", "extra: {\"model\": 5}", "tag: \"brandNew\""];
    for line in recorded() {
        let message = decode(&line).expect("a message");
        let shown = format!("{message:?}");
        let untyped = shown.contains("Unknown(") || shown.contains("extra: {\"") || shown.contains("Other(");
        assert!(!untyped || on_purpose.iter().any(|purpose| shown.contains(purpose)), "{shown}");
    }
}

#[test]
fn every_declared_kind_is_in_the_fixtures() {
    let mut kinds: [BTreeSet<String>; 4] = Default::default();
    for line in recorded() {
        let message = decode(&line).expect("a message");
        kinds[0].insert(message.tag().into());
        match message {
            Message::System(system) => {
                kinds[1].insert(system.tag().into());
            }
            Message::ControlRequest(request) => {
                kinds[2].insert(request.request.tag().into());
                if let Request::HookCallback(callback) = request.request {
                    kinds[3].insert(callback.input.event.tag().into());
                }
            }
            _ => {}
        }
    }
    for (seen, all) in kinds.iter().zip([Message::TAGS, System::TAGS, Request::TAGS, HookEvent::TAGS]) {
        let missing: Vec<_> = all.iter().filter(|kind| !seen.contains(**kind)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
    assert_eq!(HookEvent::TAGS.len(), 33);
}

#[test]
fn oddities_lose_nothing() {
    for file in fixtures("oddities") {
        let name = file.file_name().expect("name").to_string_lossy().into_owned();
        let lines = lines(&file);
        let read: Vec<_> = lines.iter().map(|line| decode(line)).collect();
        assert!(
            matches!(read.first(), Some(Ok(Message::System(System::Init(_))))),
            "{name}: the line before"
        );
        assert!(matches!(read.last(), Some(Ok(Message::Result(_)))), "{name}: the line after");
        for (line, read) in lines.iter().zip(&read) {
            match read {
                Ok(message) if !name.contains("lone_surrogate") => assert_same(message, line),
                Ok(_) => {}
                Err(bad) if name.contains("blank") => assert!(bad.is_blank()),
                Err(bad) => {
                    assert!(name.contains("non-JSON"), "{name}: {bad}");
                    assert_eq!(bad.text.as_bytes(), line.trim_ascii());
                }
            }
        }
    }
}

#[test]
fn half_a_character_costs_only_itself() {
    let file = fixtures("oddities")
        .into_iter()
        .find(|file| file.to_string_lossy().contains("lone"))
        .expect("fixture");
    let Ok(Message::Assistant(assistant)) = decode(&lines(&file)[1]) else { panic!("a message") };
    assert_eq!(assistant.message.content[0].as_text(), Some("half \u{fffd} done"));
    assert_eq!(assistant.uuid.as_deref(), Some("22222222-2222-4222-8222-222222222222"));
}

#[test]
fn bytes_around_and_inside_a_line_do_no_harm() {
    let text = |line: &[u8]| match decode(line) {
        Ok(Message::System(System::LocalCommandOutput(output))) => output.content,
        other => panic!("{other:?}"),
    };
    let line = |content: &[u8]| {
        [br#"{"type":"system","subtype":"local_command_output","content":""#, content, br#""}"#].concat()
    };
    assert_eq!(text(&[b"\xef\xbb\xbf", &line(b"a")[..]].concat()), "a", "byte order mark");
    assert_eq!(text(&[b" \t", &line(b"a")[..], b"\r\n"].concat()), "a", "carriage return");
    assert_eq!(text(&line("a\u{2028}b\u{85}".as_bytes())), "a\u{2028}b\u{85}");
    assert_eq!(text(&line(b"a\xff\xfeb")), "a\u{fffd}\u{fffd}b", "not UTF-8");
    assert_eq!(text(&line(b"\\ud83d\\ude00")), "\u{1f600}");
    assert_eq!(text(&line(&[b'x'; 3 << 20])).len(), 3 << 20, "a long line");
}

#[test]
fn a_bad_line_keeps_its_text() {
    for (line, reason) in
        [("", BadLineReason::Blank), (" \t\r\n", BadLineReason::Blank), ("null", BadLineReason::NotAnObject)]
    {
        assert_eq!(decode(line.as_bytes()).expect_err("no message").reason, reason);
    }
    for line in ["42", "[]", "\"a\""] {
        assert_eq!(decode(line.as_bytes()).expect_err("no message").reason, BadLineReason::NotAnObject);
    }
    for line in ["{\"type\":\"user\"", "{} {}", "{\"type\":}", "[debug] x", "\u{0}"] {
        let bad = decode(line.as_bytes()).expect_err("no message");
        assert!(matches!(bad.reason, BadLineReason::NotJson(_)), "{bad}");
        assert_eq!(bad.text, line);
    }
    let long = decode("x".repeat(9000).as_bytes()).expect_err("no message").to_string();
    assert!(long.len() < 300 && long.ends_with('…'), "{long}");
}

#[test]
fn an_object_without_a_kind_is_unknown() {
    for value in
        [json!({}), json!({"type": 5, "a": 1}), json!({"a": {"type": "user"}}), json!({"type": null})]
    {
        let Message::Unknown(Unknown { tag, raw }) = message(&value) else { panic!("{value}") };
        assert_eq!((tag.as_str(), raw.value()), ("", value));
    }
}

#[test]
fn a_value_of_the_wrong_type_costs_only_its_own_field() {
    let value = json!({
        "type": "assistant", "session_id": 7, "uuid": "u", "parent_tool_use_id": null,
        "message": {
            "id": "m", "role": "assistant", "model": ["x"], "usage": "lots", "stop_reason": {"new": 1},
            "content": [{"type": "text", "text": 5}, "bare", {"type": "text", "text": "kept"}, {"no": "type"}, null],
        },
    });
    let message = message(&value);
    assert_eq!(serde_json::to_value(&message).expect("written"), value);
    let Message::Assistant(assistant) = message else { panic!("known") };
    assert_eq!(assistant.uuid.as_deref(), Some("u"));
    assert_eq!(assistant.session_id, None);
    assert_eq!(assistant.extra.get("session_id").expect("kept").value(), 7);
    let api = &assistant.message;
    assert_eq!((api.id.as_str(), api.model.as_str()), ("m", ""));
    assert_eq!(api.extra.get("model").expect("kept").value(), json!(["x"]));
    assert_eq!(api.extra.get("usage").expect("kept").value(), "lots");
    assert!(!api.is_complete());
    assert_eq!(api.content.len(), 5);
    assert_eq!(api.content[0].as_text(), Some(""));
    assert!(matches!(&api.content[1], ContentBlock::Unknown(block) if block.raw.text() == "\"bare\""));
    assert_eq!(api.content[2].as_text(), Some("kept"));
}

#[test]
fn of_a_field_that_is_there_twice_the_last_one_counts() {
    let line = br#"{"type":"stream_event","uuid":"a","uuid":"b",
        "event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x","new":1}},
        "event":{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"y"}}}"#;
    let Ok(Message::StreamEvent(message)) = decode(line) else { panic!("known") };
    assert_eq!(message.uuid.as_deref(), Some("b"));
    let want = json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "y"}});
    assert_eq!(serde_json::to_value(&message.event).expect("written"), want);
}

#[test]
fn every_open_enum_keeps_what_it_does_not_know() {
    let unknown = |value: Value, found: fn(Message) -> Option<String>| {
        let message = message(&value);
        assert_eq!(serde_json::to_value(&message).expect("written"), value);
        assert_eq!(found(message).as_deref(), Some("new"), "{value}");
    };
    unknown(json!({"type": "new", "x": 1}), |message| match message {
        Message::Unknown(unknown) => Some(unknown.tag),
        _ => None,
    });
    unknown(json!({"type": "system", "subtype": "new", "x": [1]}), |message| match message {
        Message::System(System::Unknown(unknown)) => Some(unknown.tag),
        _ => None,
    });
    unknown(json!({"type": "stream_event", "event": {"type": "new", "x": 1}}), |message| match message {
        Message::StreamEvent(event) => Some(event.event.tag().into()),
        _ => None,
    });
    unknown(
        json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "new"}}}),
        |message| match message {
            Message::StreamEvent(event) => event.event.delta().map(|delta| delta.tag().into()),
            _ => None,
        },
    );
    unknown(
        json!({"type": "user", "message": {"role": "new", "content": [{"type": "new", "x": 1}]}}),
        |message| match message {
            Message::User(user) if user.message.role.as_str() == "new" => {
                Some(user.message.content.blocks()[0].tag().into())
            }
            _ => None,
        },
    );
    unknown(
        json!({"type": "control_request", "request_id": "1", "request": {"subtype": "new"}}),
        |message| match message {
            Message::ControlRequest(request) => Some(request.request.tag().into()),
            _ => None,
        },
    );
    unknown(
        json!({"type": "control_response", "response": {"subtype": "new", "request_id": "1"}}),
        |message| match message {
            Message::ControlResponse(response) => Some(response.response.tag().into()),
            _ => None,
        },
    );
    unknown(json!({"type": "result", "subtype": "new", "is_error": true, "num_turns": 0}), |message| {
        match message {
            Message::Result(result) => Some(result.subtype.to_string()),
            _ => None,
        }
    });
    unknown(
        json!({"type": "control_request", "request_id": "1",
            "request": {"subtype": "hook_callback", "callback_id": "c",
                "input": {"session_id": "s", "hook_event_name": "new", "x": 1}}}),
        |message| match message {
            Message::ControlRequest(request) => match request.request {
                Request::HookCallback(callback) => Some(callback.input.event.tag().into()),
                _ => None,
            },
            _ => None,
        },
    );
    unknown(
        json!({"type": "control_request", "request_id": "1",
            "request": {"subtype": "can_use_tool", "tool_name": "T", "input": {}, "tool_use_id": "t",
                "permission_suggestions": [{"type": "new", "x": 1}]}}),
        |message| match message {
            Message::ControlRequest(request) => match request.request {
                Request::CanUseTool(ask) => Some(ask.permission_suggestions?[0].tag().into()),
                _ => None,
            },
            _ => None,
        },
    );
}

#[test]
fn nothing_is_written_in_the_way_it_was_read() {
    for value in [
        json!({"type": "keep_alive"}),
        json!({"type": "system", "subtype": "status", "status": null}),
        json!({"type": "system", "subtype": "status"}),
        json!({"type": "user", "message": {"content": ""}}),
        json!({"type": "user", "message": {"role": "user", "content": null}}),
        json!({"type": "user"}),
        json!({"type": "system", "subtype": "init", "tools": []}),
        json!({"type": "result", "subtype": "success", "total_cost_usd": 0, "duration_ms": 1.5, "num_turns": -1}),
    ] {
        assert_eq!(serde_json::to_value(message(&value)).expect("written"), value);
    }
}

#[test]
fn thinking_is_read_whole() {
    let text: Vec<_> = recorded()
        .iter()
        .filter_map(|line| match decode(line).expect("a message") {
            Message::StreamEvent(event) => match event.event {
                Event::ContentBlockDelta(event) => match event.delta {
                    Delta::Thinking(_) => Some("thinking"),
                    Delta::Signature(_) => Some("signature"),
                    _ => None,
                },
                _ => None,
            },
            Message::System(System::ThinkingTokens(_)) => Some("tokens"),
            Message::Assistant(assistant) => {
                assistant.message.content.first().and_then(|block| match block {
                    ContentBlock::Thinking(block) if block.signature.is_some() => Some("block"),
                    _ => None,
                })
            }
            _ => None,
        })
        .collect();
    for kind in ["thinking", "signature", "tokens", "block"] {
        assert!(text.contains(&kind), "{kind}");
    }
}

#[test]
fn tools_in_the_recordings_are_typed() {
    let (mut names, mut typed) = (std::collections::BTreeMap::new(), BTreeSet::new());
    for line in recorded() {
        match decode(&line).expect("a message") {
            Message::Assistant(assistant) => {
                for call in assistant.message.content.iter().filter_map(ContentBlock::as_tool_use) {
                    names.insert(call.id.clone(), call.name.clone());
                    let input = ToolInput::of(&call.name, &call.input);
                    assert!(!matches!(input, ToolInput::Other { .. }), "{input:?}");
                }
            }
            Message::User(user) => {
                let (Some(output), Content::Blocks(blocks)) = (&user.tool_use_result, &user.message.content)
                else {
                    continue;
                };
                let Some(ContentBlock::ToolResult(result)) = blocks.first() else { continue };
                let Some(name) = names.get(&result.tool_use_id) else { continue };
                let output = ToolOutput::of(name, output);
                if !matches!(output, ToolOutput::Other { .. } | ToolOutput::Text(_)) {
                    assert!(!format!("{output:?}").contains("extra: {\""), "{output:?}");
                    typed.insert(name.clone());
                }
            }
            _ => {}
        }
    }
    for name in ["Bash", "Write"] {
        assert!(typed.contains(name), "{name} in {typed:?}");
    }
}

#[test]
fn the_answer_to_initialize_is_typed() {
    let mut seen = 0;
    for line in recorded() {
        let Ok(Message::ControlResponse(answer)) = decode(&line) else { continue };
        let oarlock_proto::stream::Response::Success(success) = answer.response else { continue };
        let Some(body) = success.response.filter(|body| body.text().contains("\"commands\"")) else {
            continue;
        };
        let reply: reply::Initialize = body.read().expect("typed");
        assert!(reply.is_complete());
        assert_eq!(serde_json::to_value(&reply).expect("written"), body.value());
        seen += 1;
    }
    assert!(seen >= 2);
}
