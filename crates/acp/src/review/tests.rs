use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use oarlock_agent::Options;
use oarlock_agent::history::Record;
use oarlock_agent::permission::Decision;
use oarlock_agent::reduce::{self, view};
use oarlock_agent::stream::{ContentBlock, Json, Message, PermissionMode, ToolResultBlock};
use oarlock_agent::tool::{Client, Server as _};
use oarlock_proto::jsonrpc::ErrorObject;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::rules::{Places, Rules, Verdict};
use super::{Edit, Wishes, always, apply, decide, disguise, hunks, plain_name, replace, server};
use crate::Settings;
use crate::ask::Situation;
use crate::ask::tests::client::FakeClient;
use crate::ask::tests::request;

/// A project, the user's settings, and an editor with files.
struct Desk {
    folder: tempfile::TempDir,
    client: FakeClient,
    buffers: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Desk {
    fn new(project_settings: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("w");
        std::fs::create_dir_all(project.join(".claude")).expect("made");
        std::fs::create_dir_all(project.join("src")).expect("made");
        let settings = project.join(".claude/settings.json");
        std::fs::write(settings, project_settings.to_string()).expect("written");
        let buffers = Arc::new(Mutex::new(BTreeMap::<String, String>::new()));
        let in_editor = buffers.clone();
        let settings = Settings { review_edits: true, ..Settings::default() };
        let client = FakeClient::new(
            json!({ "fs": { "readTextFile": true, "writeTextFile": true } }),
            settings,
            Some(&folder.path().join("config")),
            move |method, params| {
                let mut files = in_editor.lock().expect("not poisoned");
                let path = params["path"].as_str().expect("a path").to_owned();
                match method {
                    "fs/read_text_file" => match files.get(&path) {
                        Some(text) => Ok(json!({ "content": text })),
                        None => Err(ErrorObject::new(-32002, "no such file")),
                    },
                    "fs/write_text_file" if path.ends_with("locked") => Err(ErrorObject::internal("locked")),
                    "fs/write_text_file" => {
                        files.insert(path, params["content"].as_str().expect("text").to_owned());
                        Ok(Value::Null)
                    }
                    method => Err(ErrorObject::internal(method)),
                }
            },
        );
        Self { folder, client, buffers }
    }

    fn cwd(&self) -> PathBuf {
        self.folder.path().join("w")
    }

    fn path(&self, name: &str) -> String {
        self.cwd().join(name).display().to_string()
    }

    fn open(&self, name: &str, text: &str) {
        self.buffers.lock().expect("not poisoned").insert(self.path(name), text.to_owned());
    }

    fn text(&self, name: &str) -> Option<String> {
        self.buffers.lock().expect("not poisoned").get(&self.path(name)).cloned()
    }

    /// Calls a tool as the CLI does.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let disallowed = vec!["Edit(/vendor/**)".to_owned()];
        let server = server(&self.client.asker, &self.cwd().display().to_string(), disallowed);
        server.check().expect("a server that can be used");
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } });
        let answer = server.message(Json::from(message), Client::default()).await.expect("an answer");
        answer.value()["result"].clone()
    }

    fn situation(&self, mode: &str) -> Situation {
        Situation {
            cwd: self.cwd().display().to_string(),
            mode: Some(PermissionMode::from(mode)),
            ..Default::default()
        }
    }

    fn decided(&self, tool: &str, path: &str, mode: &str) -> Option<bool> {
        let request = request(json!({ "tool_name": tool, "input": { "file_path": path } }));
        decide(&self.client.asker, &request, &self.situation(mode))
            .map(|decision| matches!(decision, Decision::Allow(_)))
    }
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[tokio::test]
async fn edits_go_through_the_editor() {
    let mut desk = Desk::new(&json!({}));
    desk.open("a.txt", "one\ntwo\n");
    let path = desk.path("a.txt");
    let result =
        desk.call("Edit", json!({ "file_path": path, "old_string": "two", "new_string": "2" })).await;
    assert_eq!(result["isError"], Value::Null, "{result}");
    assert!(text_of(&result).contains("updated"));
    assert_eq!(desk.text("a.txt").as_deref(), Some("one\n2\n"));
    // Nothing is written past the editor.
    assert!(!Path::new(&path).exists());
    let change = &result["_meta"]["oarlock/change"];
    assert_eq!(change["originalFile"], "one\ntwo\n");
    assert_eq!((&change["oldString"], &change["newString"]), (&json!("two"), &json!("2")));
    // The model reads a sentence, not the file.
    assert_eq!(result.get("structuredContent"), None);
    let asked: Vec<String> = desk.client.asked_all().into_iter().map(|(method, _)| method).collect();
    assert_eq!(asked, ["fs/read_text_file", "fs/write_text_file"]);
}

#[tokio::test]
async fn writes_go_through_the_editor() {
    let desk = Desk::new(&json!({}));
    let path = desk.path("new.txt");
    let result = desk.call("Write", json!({ "file_path": path, "content": "x" })).await;
    assert_eq!(desk.text("new.txt").as_deref(), Some("x"));
    assert_eq!(result["_meta"]["oarlock/change"]["type"], "create");
    let result = desk.call("Write", json!({ "file_path": path, "content": "y" })).await;
    assert_eq!(result["_meta"]["oarlock/change"]["type"], "update");
    assert_eq!(result["_meta"]["oarlock/change"]["originalFile"], "x");
}

#[tokio::test]
async fn what_the_editor_refuses_is_not_done() {
    let desk = Desk::new(&json!({}));
    let result = desk.call("Write", json!({ "file_path": desk.path("locked"), "content": "x" })).await;
    assert_eq!(result["isError"], true);
    assert!(text_of(&result).contains("locked"));
    // A file that is there but that the editor does not show is not taken for a new one.
    std::fs::write(desk.path("other.txt"), "on disk").expect("written");
    let result = desk.call("Write", json!({ "file_path": desk.path("other.txt"), "content": "x" })).await;
    assert_eq!(result["isError"], true);
    assert_eq!(std::fs::read_to_string(desk.path("other.txt")).expect("there"), "on disk");
    for arguments in [
        json!({ "file_path": "a.txt", "content": "x" }),
        json!({ "file_path": desk.path("a.txt") }),
        json!({ "content": "x" }),
    ] {
        assert_eq!(desk.call("Write", arguments).await["isError"], true);
    }
    assert!(desk.buffers.lock().expect("not poisoned").is_empty());
}

#[test]
fn an_edit_must_be_clear() {
    let edit = |old: &str, new: &str, all: bool| Edit {
        file_path: "/a".into(),
        old_string: old.into(),
        new_string: new.into(),
        replace_all: all,
    };
    let cases = [
        (Some("a b"), edit("a", "c", false), Some("c b")),
        (Some("a a"), edit("a", "c", false), None),
        (Some("a a"), edit("a", "c", true), Some("c c")),
        (Some("a"), edit("x", "c", false), None),
        (Some("a"), edit("x", "c", true), None),
        (Some("a"), edit("a", "a", false), None),
        (Some("a"), edit("", "c", false), None),
        (Some(""), edit("", "c", false), Some("c")),
        (None, edit("", "c", false), Some("c")),
        (None, edit("a", "c", false), None),
        (Some("a\r\nb\r\n"), edit("a\nb", "c\nd", false), Some("c\r\nd\r\n")),
        (Some("a\r\nb\r\n"), edit("a\r\nb", "c\nd", false), Some("c\nd\r\n")),
    ];
    for (original, edit, changed) in cases {
        let shown = format!("{original:?} {:?} {:?}", edit.old_string, edit.new_string);
        assert_eq!(replace(original, &edit).ok().as_deref(), changed, "{shown}");
    }
}

#[test]
fn our_tools_are_known_by_their_plain_names() {
    assert_eq!(plain_name("mcp__acp__Edit"), "Edit");
    assert_eq!(plain_name("mcp__acp__Write"), "Write");
    assert_eq!(plain_name("mcp__acp__Other"), "mcp__acp__Other");
    assert_eq!(plain_name("Bash"), "Bash");
}

proptest! {
    /// What is told about a change leads from the old text to the new one.
    #[test]
    fn changes_are_told_whole(old in "([ab]\n|c){0,9}", new in "([ab]\n|c){0,9}") {
        let output = json!({ "filePath": "/a", "originalFile": old, "structuredPatch": hunks(&old, &new) });
        let call = reduce::ToolCall { name: "Edit".into(), ..Default::default() };
        let result = reduce::ToolResult {
            block: ContentBlock::ToolResult(ToolResultBlock::default()),
            output: Some(output.into()),
            ..Default::default()
        };
        let diff = view::applied_whole(&call, &result).expect("a change");
        prop_assert_eq!((diff.old_text, diff.new_text), (Some(old), new));
    }
}

#[test]
fn messages_speak_of_the_built_in_tools() {
    let shown = |message: Value| {
        let mut message: Message = serde_json::from_value(message).expect("a message");
        disguise(&mut message);
        serde_json::to_value(&message).expect("plain data")
    };
    let call = json!({ "type": "tool_use", "id": "t", "name": "mcp__acp__Edit", "input": {} });
    let other = json!({ "type": "tool_use", "id": "t", "name": "mcp__db__Edit", "input": {} });
    let assistant = shown(json!({ "type": "assistant", "message": { "content": [call, other] } }));
    assert_eq!(assistant["message"]["content"][0]["name"], "Edit");
    assert_eq!(assistant["message"]["content"][1]["name"], "mcp__db__Edit");
    let begin = json!({ "type": "content_block_start", "index": 0, "content_block": call });
    let event = shown(json!({ "type": "stream_event", "event": begin }));
    assert_eq!(event["event"]["content_block"]["name"], "Edit");
    let ask = shown(json!({ "type": "control_request", "request_id": "r",
        "request": { "subtype": "can_use_tool", "tool_name": "mcp__acp__Write", "input": {} } }));
    assert_eq!(ask["request"]["tool_name"], "Write");

    let change = json!({ "filePath": "/a", "oldString": "a", "newString": "b", "originalFile": "a" });
    let beside = json!({ "_meta": { "oarlock/change": change } });
    let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "done" }]);
    let live = shown(json!({ "type": "user", "message": { "content": result }, "tool_use_result": beside }));
    assert_eq!(live["tool_use_result"], change);
    let stored = json!({ "type": "user", "uuid": "u", "message": { "content": result },
        "toolUseResult": [{ "type": "text", "text": "done" }], "mcpMeta": beside });
    let mut stored = Record::decode(stored.to_string().as_bytes()).expect("a record").message;
    disguise(&mut stored);
    let Message::User(stored) = stored else { panic!("{stored:?}") };
    assert_eq!(stored.tool_use_result.map(|result| result.value()), Some(change));
    let plain = json!({ "type": "user", "message": { "role": "user", "content": result },
        "parent_tool_use_id": null, "tool_use_result": { "stdout": "oarlock/change" } });
    assert_eq!(shown(plain.clone()), plain);
}

#[tokio::test]
async fn rules_of_the_user_count() {
    let desk = Desk::new(&json!({ "permissions": {
        "allow": ["Edit(/src/**)", "Bash(ls)", "Write(*.md)"],
        "deny": ["Edit(src/secret.rs)", "Edit(*.env)", "Read(src/keys/**)"],
        "ask": ["Edit(/src/gen/**)"],
    } }));
    let at = |name: &str| desk.path(name);
    for (tool, name, decided) in [
        ("mcp__acp__Edit", "src/a.rs", Some(true)),
        ("mcp__acp__Write", "src/deep/a.rs", Some(true)),
        ("mcp__acp__Edit", "src/secret.rs", Some(false)),
        ("mcp__acp__Edit", "src/../src/secret.rs", Some(false)),
        ("mcp__acp__Edit", "src/x/.env", Some(false)),
        ("mcp__acp__Edit", "src/gen/a.rs", None),
        // What may not be read may not be changed.
        ("mcp__acp__Write", "src/keys/a", Some(false)),
        ("mcp__acp__Write", "README.md", Some(true)),
        ("mcp__acp__Edit", "README.md", None),
        ("mcp__acp__Edit", "src/../a.rs", None),
        ("mcp__acp__Edit", "a.rs", None),
        ("mcp__other__Edit", "src/a.rs", None),
    ] {
        assert_eq!(desk.decided(tool, &at(name), "default"), decided, "{tool} {name}");
    }
    // A plan changes nothing, whatever is allowed.
    assert_eq!(desk.decided("mcp__acp__Edit", &at("src/a.rs"), "plan"), None);
    // Modes in which nobody is asked do not lift what is forbidden.
    for name in ["x.env", "vendor/x"] {
        desk.open(name, "a");
        let edit = json!({ "file_path": at(name), "old_string": "a", "new_string": "b" });
        let result = desk.call("Edit", edit).await;
        assert_eq!(result["isError"], true, "{name}");
        assert_eq!(desk.text(name).as_deref(), Some("a"));
    }
}

#[tokio::test]
async fn settings_that_cannot_be_read_allow_nothing() {
    let desk = Desk::new(&json!({ "permissions": { "allow": ["Edit"] } }));
    let (path, local) = (desk.path("src/a.rs"), desk.cwd().join(".claude/settings.local.json"));
    assert_eq!(desk.decided("mcp__acp__Edit", &path, "default"), Some(true));
    std::fs::write(&local, "\u{FEFF}{\"permissions\":{\"deny\":[\"Edit\"]}}").expect("written");
    assert_eq!(desk.decided("mcp__acp__Edit", &path, "default"), Some(false), "a mark is not in the way");
    std::fs::write(&local, "{\"permissions\":{\"deny\":[\"Edit(x)\", 5]}}").expect("written");
    for mode in ["default", "acceptEdits"] {
        assert_eq!(desk.decided("mcp__acp__Edit", &path, mode), None, "it may forbid anything: {mode}");
    }
    let (_, word) =
        apply(Options::new(), &desk.client.asker, &desk.cwd().display().to_string(), &Wishes::default());
    assert!(word.expect("a word").contains("settings.local.json"));
}

#[tokio::test]
async fn tools_that_the_client_takes_away_are_not_there_in_another_form() {
    let desk = Desk::new(&json!({}));
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for (tools, disallowed, gone) in [
        (None, vec![], vec![]),
        (None, words(&["Edit"]), vec!["mcp__acp__Edit"]),
        (None, words(&["Edit(x)"]), vec![]),
        (Some(words(&["Read", "Edit"])), vec![], vec!["mcp__acp__Write"]),
        (Some(vec![]), vec![], vec!["mcp__acp__Edit", "mcp__acp__Write"]),
    ] {
        let wishes = Wishes { tools, disallowed };
        let cwd = desk.cwd().display().to_string();
        let (options, _) = apply(Options::new().program("/bin/true"), &desk.client.asker, &cwd, &wishes);
        let launch = options.launch().expect("a launch").args;
        for (ours, _) in super::TOOLS {
            let is_gone = launch.iter().any(|arg| arg.to_string_lossy().contains(ours));
            assert_eq!(is_gone, gone.contains(&ours), "{ours} {wishes:?}");
        }
    }
}

#[tokio::test]
async fn accept_edits_means_files_of_the_project() {
    let desk = Desk::new(&json!({}));
    let elsewhere = desk.folder.path().join("else.txt").display().to_string();
    std::os::unix::fs::symlink(desk.folder.path(), desk.cwd().join("way-out")).expect("a link");
    std::os::unix::fs::symlink("../not-there-yet", desk.cwd().join("to-nothing")).expect("a link");
    std::os::unix::fs::symlink("to-nothing", desk.cwd().join("to-a-link")).expect("a link");
    for (path, mode, decided) in [
        (desk.path("src/a.rs"), "acceptEdits", Some(true)),
        (desk.path("src/a.rs"), "default", None),
        (desk.path(".git/config"), "acceptEdits", None),
        (desk.path("src/.bashrc"), "acceptEdits", None),
        (desk.path("way-out/else.txt"), "acceptEdits", None),
        (desk.path("to-nothing"), "acceptEdits", None),
        (desk.path("to-a-link"), "acceptEdits", None),
        (desk.path("../else.txt"), "acceptEdits", None),
        (elsewhere, "acceptEdits", None),
    ] {
        assert_eq!(desk.decided("mcp__acp__Edit", &path, mode), decided, "{path} {mode}");
        let request = request(json!({ "tool_name": "mcp__acp__Edit", "input": { "file_path": path } }));
        // "Always" is offered for what it will be enough for.
        let is_offered = always(&desk.client.asker, &request, &desk.situation("default"))
            .is_some_and(|updates| !updates.is_empty());
        assert_eq!(is_offered, desk.decided("mcp__acp__Edit", &path, "acceptEdits") == Some(true), "{path}");
    }
}

#[tokio::test]
async fn rules_that_are_not_understood_ask_and_are_told() {
    let desk = Desk::new(&json!({ "permissions": {
        "allow": ["Edit"], "deny": ["Edit(src/[ab].rs)"], "ask": ["Read(x)"],
    } }));
    assert_eq!(desk.decided("mcp__acp__Edit", &desk.path("src/c.rs"), "acceptEdits"), None);
    let cwd = desk.cwd().display().to_string();
    let (_, word) = apply(Options::new(), &desk.client.asker, &cwd, &Wishes::default());
    assert!(word.expect("a word").contains("Edit(src/[ab].rs)"));
}

#[tokio::test]
async fn acp_init_03_nothing_changes_for_a_client_without_files() {
    let settings = Settings { review_edits: true, ..Settings::default() };
    let client =
        FakeClient::new(json!({ "fs": { "readTextFile": true } }), settings, None, |_, _| Ok(Value::Null));
    let (_, word) = apply(Options::new(), &client.asker, "/w", &Wishes::default());
    assert!(word.expect("a word").contains("not reviewed"));
    let request = request(json!({ "tool_name": "mcp__acp__Edit", "input": { "file_path": "/w/a" } }));
    let situation =
        Situation { cwd: "/w".into(), mode: Some(PermissionMode::AcceptEdits), ..Default::default() };
    // A server of the user's that has the same name is not ours.
    assert_eq!(decide(&client.asker, &request, &situation), None);
    assert_eq!(always(&client.asker, &request, &situation), None);
}

#[test]
fn patterns() {
    let places =
        Places { cwd: Path::new("/nowhere/w"), config_dir: None, home: Some(Path::new("/nowhere/home")) };
    let is_match = |pattern: &str, path: &str| {
        let rules = Rules::of(&[&format!("Edit({pattern})")], places);
        assert!(rules.unread.is_empty(), "{pattern}");
        rules.verdict("Edit", Path::new(path)) != Verdict::Silent
    };
    for (pattern, path, expected) in [
        ("*.rs", "/nowhere/w/a/b.rs", true),
        ("*.rs", "/nowhere/a.rs", false),
        ("src/", "/nowhere/w/src/a/b", true),
        ("src", "/nowhere/w/deep/src/a", true),
        ("/src", "/nowhere/w/deep/src/a", false),
        ("./src/*.rs", "/nowhere/w/src/a.rs", true),
        ("src/*.rs", "/nowhere/w/src/x/a.rs", false),
        ("src/**/a.rs", "/nowhere/w/src/a.rs", true),
        ("src/**/a.rs", "/nowhere/w/src/x/y/a.rs", true),
        ("src/**", "/nowhere/w/src", false),
        ("**", "/elsewhere/a", true),
        ("//elsewhere/**", "/elsewhere/a", true),
        ("//elsewhere/a?c", "/elsewhere/abc", true),
        ("~/.ssh/**", "/nowhere/home/.ssh/key", true),
        ("~/.ssh/**", "/nowhere/w/.ssh/key", false),
        ("a*b*c", "/nowhere/w/axxbyyc", true),
        ("a*b*c", "/nowhere/w/axxbyy", false),
    ] {
        assert_eq!(is_match(pattern, path), expected, "{pattern} {path}");
    }
    for unread in ["!a", "a[bc]", "{a,b}", "a\\*", "../a", "/"] {
        assert_eq!(Rules::of(&[&format!("Edit({unread})")], places).unread.len(), 1, "{unread}");
    }
    assert_eq!(Rules::of(&["Edit(a"], places).unread.len(), 1);
}
