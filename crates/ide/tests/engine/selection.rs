//! What clients are told of the selection, when, and what they are never told.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::{Duration, Instant};

use oarlock_ide::Options;
use oarlock_ide::consent::{Consent, Rules};
use oarlock_ide::editor::Selection;
use oarlock_proto::pos;
use serde_json::{Value, json};

use crate::support::{Client, Rig, range, selection, text};

const MOMENT: Duration = Duration::from_millis(150);

fn cleared() -> Value {
    let zero = json!({ "line": 0, "character": 0 });
    json!({ "selection": { "start": zero, "end": zero, "isEmpty": true }, "text": "" })
}

fn ignoring(rig: &Rig, rule: &str) -> Consent {
    let rules = Rules { user: vec![rule.to_owned()], ..Rules::default() };
    Consent::new(std::slice::from_ref(&rig.home.workspace), &rules).unwrap()
}

async fn changed(client: &mut Client) -> Value {
    client.notification("selection_changed").await
}

#[tokio::test]
async fn ide_sel_01_every_message_is_complete_and_without_null() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x = 1\n");
    let mut client = rig.cli().await;
    let position = json!({
        "type": "object", "required": ["line", "character"],
        "properties": { "line": { "type": "integer", "minimum": 0 }, "character": { "type": "integer", "minimum": 0 } },
    });
    let schema = json!({
        "type": "object", "required": ["selection", "text"],
        "properties": {
            "selection": {
                "type": "object", "required": ["start", "end"],
                "properties": { "start": position, "end": position, "isEmpty": { "type": "boolean" } },
            },
            "text": { "type": "string" },
            "filePath": { "type": "string", "minLength": 1 },
            "fileUrl": { "type": "string", "minLength": 1 },
        },
    });
    let ide = rig.editor.ide();
    let cursor = Selection { path: file.clone(), range: range((3, 2), (3, 2)), text: String::new() };
    let untitled = Selection { path: "Untitled-1".into(), range: range((0, 0), (0, 1)), text: "x".into() };
    let acts: [&dyn Fn(); 5] = [
        &|| ide.selection_changed(selection(&file, "x = 1")),
        &|| ide.selection_changed(cursor.clone()),
        &|| ide.selection_changed(untitled.clone()),
        &|| ide.selection_cleared(),
        &|| ide.selection_changed(selection(&file, "")),
    ];
    for act in acts {
        act();
        let params = changed(&mut client).await;
        jsonschema::validate(&schema, &params).unwrap_or_else(|error| panic!("{error}: {params}"));
        assert!(!params.to_string().contains("null"), "{params}");
    }
}

#[tokio::test]
async fn ide_sel_02_text_and_range_are_the_documents_own() {
    let rig = Rig::start().await;
    let file = rig.home.file("é #1%.py", "old\n");
    let mut client = rig.cli().await;
    // The document has changes that are not saved; what it shows counts.
    let document = "aé𝒳b\nzwei\n";
    let range = pos::find(document, "𝒳b", Some("zw"), false).unwrap();
    let selected = Selection { path: file.clone(), range, text: pos::slice(document, range).to_owned() };
    rig.editor.ide().selection_changed(selected);
    let params = changed(&mut client).await;
    assert_eq!(params["text"], "𝒳b\nzw");
    assert_eq!(params["selection"]["start"], json!({ "line": 0, "character": 2 }));
    assert_eq!(params["selection"]["end"], json!({ "line": 1, "character": 2 }));
    assert_eq!(params["filePath"], json!(file));
    assert_eq!(params["fileUrl"], format!("file://{}", file.display()));
}

#[tokio::test]
async fn ide_sel_03_the_selection_is_sent_half_a_second_after_each_connect() {
    let rig = Rig::with(|options| options.settle = Options::default().settle).await;
    let file = rig.home.file("a.py", "x\n");
    rig.editor.ide().selection_changed(selection(&file, "x"));
    for _ in 0..2 {
        let mut client = rig.mcp().await;
        client.notify("ide_connected", json!({ "pid": 1 })).await;
        let start = Instant::now();
        client.request("tools/list", Value::Null).await;
        // A move within that time is not told either: the CLI would not hear it.
        rig.editor.ide().selection_changed(selection(&file, "y"));
        rig.editor.ide().selection_changed(selection(&file, "x"));
        let params = changed(&mut client).await;
        let took = start.elapsed();
        assert!((Duration::from_millis(300)..Duration::from_secs(2)).contains(&took), "{took:?}");
        assert_eq!(params["text"], "x");
        assert!(client.notifications("selection_changed", MOMENT).await.is_empty(), "once");
    }
}

#[tokio::test]
async fn ide_sel_03_a_client_that_is_no_cli_is_told_nothing() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.mcp().await;
    rig.editor.ide().selection_changed(selection(&file, "x"));
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty());
}

#[tokio::test]
async fn ide_sel_03_nothing_selected_is_nothing_to_say() {
    let rig = Rig::start().await;
    let mut client = rig.cli().await;
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty());
}

#[tokio::test]
async fn ide_sel_04_a_thousand_moves_make_at_most_twenty_messages_a_second() {
    let rig = Rig::with(|options| options.debounce = Options::default().debounce).await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    let start = Instant::now();
    for at in 0..1000 {
        rig.editor.ide().selection_changed(selection(&file, &format!("move {at}")));
        if at % 10 == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let took = start.elapsed();
    let told = client.notifications("selection_changed", Duration::from_millis(300)).await;
    let allowed = (took.as_secs_f64() * 20.0).ceil() as usize + 1;
    assert!(told.len() <= allowed, "{} in {took:?}", told.len());
    assert!(told.len() >= 5, "and not only one at the end: {}", told.len());
    assert_eq!(told.last().unwrap()["text"], "move 999", "the last one counts");
}

#[tokio::test]
async fn ide_sel_04_equal_ones_are_not_repeated() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    rig.editor.ide().selection_changed(selection(&file, "x"));
    changed(&mut client).await;
    for _ in 0..3 {
        rig.editor.ide().selection_changed(selection(&file, "x"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty());
    let moved = Selection { range: range((7, 0), (7, 1)), ..selection(&file, "x") };
    rig.editor.ide().selection_changed(moved);
    assert_eq!(
        changed(&mut client).await["selection"]["start"]["line"],
        7,
        "the same text elsewhere is told"
    );
}

#[tokio::test]
async fn ide_sel_05_closing_the_file_clears_it() {
    let rig = Rig::start().await;
    let (a, b) = (rig.home.file("a.py", "x\n"), rig.home.file("b.py", "x\n"));
    let mut client = rig.cli().await;
    rig.editor.ide().selection_changed(selection(&a, "x"));
    changed(&mut client).await;
    rig.editor.ide().file_closed(&b);
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty(), "another file");
    rig.editor.ide().file_closed(&a);
    assert_eq!(changed(&mut client).await, cleared());
    let latest = client.call("getLatestSelection", json!({})).await;
    assert!(text(&latest).contains(r#""success":false"#), "{latest}");
    rig.editor.ide().selection_changed(selection(&a, "x"));
    changed(&mut client).await;
    rig.editor.ide().selection_cleared();
    assert_eq!(changed(&mut client).await, cleared());
    let latest = client.call("getLatestSelection", json!({})).await;
    assert!(text(&latest).contains(r#""text":"x""#), "the file is still open: {latest}");
}

#[tokio::test]
async fn a_pause_clears_and_a_resume_tells_again() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "secret words\n");
    rig.editor.scene().selection = Some(selection(&file, "secret words"));
    let mut client = rig.cli().await;
    rig.editor.ide().selection_changed(selection(&file, "secret words"));
    changed(&mut client).await;
    let heard = client.heard.len();
    rig.server.ide().pause(true);
    assert_eq!(changed(&mut client).await, cleared());
    assert!(rig.server.ide().is_paused());
    rig.editor.ide().selection_changed(selection(&file, "more secret words"));
    assert!(rig.editor.ide().mention(&file, None, None).is_err());
    for tool in ["getCurrentSelection", "getLatestSelection"] {
        let answer = client.call(tool, json!({})).await;
        assert!(text(&answer).contains(r#""success":false"#), "{answer}");
    }
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty());
    assert!(!client.heard[heard..].iter().any(|text| text.contains("secret") || text.contains("a.py")));
    rig.server.ide().pause(false);
    assert_eq!(changed(&mut client).await["text"], "more secret words");
    let paused: Vec<Value> = rig.events.named("paused").iter().map(|event| event["paused"].clone()).collect();
    assert_eq!(paused, [json!(true), json!(false)]);
}

#[tokio::test]
async fn a_file_that_is_newly_ignored_is_taken_back() {
    let rig = Rig::start().await;
    let file = rig.home.file("diary.md", "dear diary\n");
    let mut client = rig.cli().await;
    rig.editor.ide().selection_changed(selection(&file, "dear diary"));
    changed(&mut client).await;
    let heard = client.heard.len();
    rig.editor.ide().set_consent(ignoring(&rig, "diary.md"));
    assert_eq!(changed(&mut client).await, cleared());
    let latest = client.call("getLatestSelection", json!({})).await;
    assert!(text(&latest).contains(r#""success":false"#), "{latest}");
    let mut later = rig.cli().await;
    assert!(
        !later.notifications("selection_changed", MOMENT).await.iter().any(|params| *params != cleared())
    );
    assert!(!client.heard[heard..].iter().any(|text| text.contains("diary")));
}

#[tokio::test]
async fn a_pause_survives_new_rules() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let mut client = rig.cli().await;
    rig.server.ide().pause(true);
    rig.editor.ide().set_consent(ignoring(&rig, "other"));
    rig.editor.ide().selection_changed(selection(&file, "x"));
    assert!(client.notifications("selection_changed", MOMENT).await.is_empty());
}

#[tokio::test]
async fn ide_sel_06_nothing_of_an_ignored_file_leaves_by_any_way() {
    let rig = Rig::with(|options| options.dialect = oarlock_proto::ide::Dialect::Vault).await;
    let link = rig.home.workspace.join("notes.txt");
    let secrets = [
        rig.home.file(".env", "hush=1\n"),
        rig.home.file(".env.local", "hush=1\n"),
        rig.home.file("keys/server.pem", "hush\n"),
        rig.home.file("id_ed25519", "hush\n"),
        rig.home.file(".git/config", "hush\n"),
    ];
    std::os::unix::fs::symlink(&secrets[0], &link).unwrap();
    let mut client = rig.cli().await;
    for path in secrets.iter().map(std::path::PathBuf::as_path).chain([link.as_path()]) {
        let heard = client.heard.len();
        let selected = selection(path, "hush=1");
        {
            let mut scene = rig.editor.scene();
            scene.selection = Some(selected.clone());
            scene.documents = vec![crate::support::document(path, true)];
        }
        rig.editor.ide().selection_changed(selected);
        assert!(rig.editor.ide().mention(path, Some((0, 0)), None).is_err(), "{}", path.display());
        for tool in ["getCurrentSelection", "getLatestSelection"] {
            let answer = client.call(tool, json!({})).await;
            assert!(text(&answer).contains(r#""success":false"#), "{answer}");
        }
        let name = path.strip_prefix(&rig.home.workspace).unwrap();
        assert!(client.request("readFile", json!({ "path": name })).await["error"].is_object());
        assert_eq!(client.request("getCurrentFile", Value::Null).await["result"], Value::Null);
        let listed = client.request("listFiles", json!({})).await["result"].to_string();
        assert!(!listed.contains(name.to_str().unwrap()), "{listed}");
        let told = client.notifications("selection_changed", Duration::from_millis(40)).await;
        assert!(told.is_empty(), "{told:?}");
        let mut newcomer = rig.cli().await;
        newcomer.ping().await;
        for text in client.heard[heard..].iter().chain(&newcomer.heard) {
            assert!(!text.contains("hush"), "{text}");
        }
        assert!(!newcomer.heard.iter().any(|text| text.contains("filePath")));
    }
}

#[tokio::test]
async fn ide_sel_06_an_ignored_file_clears_the_selection_before_it() {
    let rig = Rig::start().await;
    let (file, secret) = (rig.home.file("a.py", "x\n"), rig.home.file(".env", "hush\n"));
    let mut client = rig.cli().await;
    rig.editor.ide().selection_changed(selection(&file, "x"));
    changed(&mut client).await;
    rig.editor.ide().selection_changed(selection(&secret, "hush"));
    assert_eq!(changed(&mut client).await, cleared());
    rig.editor.ide().selection_changed(selection(&file, "x"));
    assert_eq!(changed(&mut client).await["text"], "x");
}

#[tokio::test]
async fn a_text_that_is_too_large_is_cut_at_a_character() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let rules = Rules { limit: 10, ..Rules::default() };
    rig.editor.ide().set_consent(Consent::new(std::slice::from_ref(&rig.home.workspace), &rules).unwrap());
    let mut client = rig.cli().await;
    let long = selection(&file, "123456789é and more");
    rig.editor.scene().selection = Some(long.clone());
    rig.editor.ide().selection_changed(long);
    let params = changed(&mut client).await;
    assert_eq!(params["text"], "123456789");
    assert_eq!(params["selection"]["end"]["character"], 19, "the range is still the person's");
    for tool in ["getCurrentSelection", "getLatestSelection"] {
        let answer = client.call(tool, json!({})).await;
        assert!(text(&answer).contains(r#""text":"123456789""#), "{answer}");
    }
}

#[tokio::test]
async fn ide_men_01_lines_are_zero_based_and_both_or_none() {
    let rig = Rig::start().await;
    let file = rig.home.file("sub dir/a.py", "x\n");
    let mut client = rig.cli().await;
    let ide = rig.editor.ide();
    for (lines, wanted) in [
        (None, json!({ "filePath": file })),
        (Some((0, 0)), json!({ "filePath": file, "lineStart": 0, "lineEnd": 0 })),
        (Some((1, 2)), json!({ "filePath": file, "lineStart": 1, "lineEnd": 2 })),
    ] {
        assert_eq!(ide.mention(&file, lines, None).unwrap().clients, 1);
        assert_eq!(client.notification("at_mentioned").await, wanted);
    }
}

#[tokio::test]
async fn mentions_wait_for_the_first_client_that_is_ready() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let ide = rig.editor.ide();
    assert_eq!(ide.mention(&file, Some((0, 1)), None).unwrap().clients, 0);
    assert_eq!(ide.mention(&file, None, None).unwrap().clients, 0);
    let mut other = rig.mcp().await;
    let mut client = rig.cli().await;
    assert_eq!(client.notification("at_mentioned").await["lineEnd"], 1, "in their order");
    assert_eq!(client.notification("at_mentioned").await, json!({ "filePath": file }));
    let mut later = rig.cli().await;
    assert!(later.notifications("at_mentioned", MOMENT).await.is_empty(), "and only once");
    assert!(other.notifications("at_mentioned", Duration::from_millis(10)).await.is_empty());
}

#[tokio::test]
async fn a_mention_that_waited_is_held_to_the_rules_of_the_moment_it_leaves() {
    let rig = Rig::start().await;
    let (file, diary) = (rig.home.file("a.py", "x\n"), rig.home.file("diary.md", "x\n"));
    let ide = rig.editor.ide();
    ide.mention(&diary, None, None).unwrap();
    ide.mention(&file, None, None).unwrap();
    ide.set_consent(ignoring(&rig, "diary.md"));
    let mut client = rig.cli().await;
    let told = client.notifications("at_mentioned", MOMENT).await;
    assert_eq!(told, [json!({ "filePath": file })]);
    drop(client);
    rig.events.wait("client_gone", 1).await;
    ide.mention(&file, None, None).unwrap();
    ide.pause(true);
    let mut client = rig.cli().await;
    assert!(client.notifications("at_mentioned", MOMENT).await.is_empty(), "paused in the meantime");
    ide.pause(false);
    assert_eq!(client.notification("at_mentioned").await, json!({ "filePath": file }), "but not forgotten");
}

#[tokio::test]
async fn ide_sel_06_a_file_that_git_newly_ignores_is_taken_back() {
    let rig = Rig::start().await;
    let file = rig.home.file("notes.txt", "secret\n");
    let rules = Rules { git_ignored: true, ..Rules::default() };
    let ide = rig.editor.ide();
    ide.set_consent(Consent::new(std::slice::from_ref(&rig.home.workspace), &rules).unwrap());
    std::fs::create_dir(rig.home.workspace.join(".git")).unwrap();
    let mut client = rig.cli().await;
    let selection = Selection { path: file, range: pos::Range::default(), text: "secret".into() };
    ide.selection_changed(selection);
    assert_eq!(client.notification("selection_changed").await["text"], "secret");
    rig.home.file(".gitignore", "notes.txt\n");
    let cleared = client.notification("selection_changed").await;
    assert!(cleared.get("filePath").is_none() && cleared["text"] == "", "{cleared}");
}

#[tokio::test]
async fn a_mention_goes_to_all_or_to_the_one_that_was_chosen() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let (mut one, mut two) = (rig.cli_with_pid(1).await, rig.cli_with_pid(2).await);
    let ide = rig.editor.ide();
    assert_eq!(ide.mention(&file, None, None).unwrap().clients, 2);
    one.notification("at_mentioned").await;
    two.notification("at_mentioned").await;
    assert_eq!(ide.mention(&file, None, Some(2)).unwrap().clients, 1);
    two.notification("at_mentioned").await;
    assert!(one.notifications("at_mentioned", MOMENT).await.is_empty());
    let error = ide.mention(&file, None, Some(3)).unwrap_err().to_string();
    assert!(error.contains('3') && error.contains("[1, 2]"), "says who is there: {error}");
}

#[tokio::test]
async fn a_mention_for_one_client_waits_for_that_client() {
    let rig = Rig::with(|options| options.settle = Duration::from_millis(300)).await;
    let file = rig.home.file("a.py", "x\n");
    let mut chosen = rig.mcp().await;
    chosen.notify("ide_connected", json!({ "pid": 2 })).await;
    chosen.ping().await;
    assert_eq!(rig.editor.ide().mention(&file, None, Some(2)).unwrap().clients, 0, "not ready yet");
    chosen.notification("at_mentioned").await;
    let mut other = rig.cli_with_pid(1).await;
    assert!(other.notifications("at_mentioned", MOMENT).await.is_empty());
}

#[tokio::test]
async fn every_cli_is_told_and_one_that_leaves_disturbs_nobody() {
    let rig = Rig::start().await;
    let file = rig.home.file("a.py", "x\n");
    let (mut one, two) = (rig.cli().await, rig.cli().await);
    two.socket.cut();
    rig.editor.ide().selection_changed(selection(&file, "x"));
    assert_eq!(changed(&mut one).await["text"], "x");
    rig.events.wait("client_gone", 1).await;
    rig.editor.ide().selection_changed(selection(&file, "y"));
    assert_eq!(changed(&mut one).await["text"], "y");
}

#[tokio::test]
async fn a_handle_of_a_stopped_engine_does_nothing() {
    let rig = Rig::start().await;
    let editor = rig.editor.clone();
    rig.stop().await;
    let ide = editor.ide();
    ide.selection_changed(selection(Path::new("/w/a"), "x"));
    ide.pause(true);
    ide.abilities_changed();
    assert!(ide.mention(Path::new("/w/a"), None, None).is_err());
    assert!(ide.accept("1", None).is_err());
    assert!(ide.clients().is_empty() && ide.diffs().is_empty() && !ide.is_paused());
}
