//! The plain methods of the dialect `vault`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use oarlock_proto::ide::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Call, Client, Mood, Rig, document, error_code};

async fn vault() -> (Rig, Client) {
    let rig = Rig::speaking(Dialect::Vault).await;
    let client = rig.mcp().await;
    (rig, client)
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn read_file_gives_the_text_with_or_without_a_leading_slash() {
    let (rig, mut client) = vault().await;
    let contents = "\u{feff}é\r\n𝒳";
    rig.home.file("sub dir/a.md", contents);
    for path in ["sub dir/a.md", "/sub dir/a.md", "./sub dir/a.md"] {
        assert_eq!(client.request("readFile", json!({ "path": path })).await["result"], contents, "{path}");
    }
}

#[tokio::test]
async fn read_file_of_a_missing_file_says_so() {
    let (_rig, mut client) = vault().await;
    let answer = client.request("readFile", json!({ "path": "none.md" })).await;
    assert!(message(&answer).starts_with("failed to read file"), "{answer}");
    assert_eq!(error_code(&answer), -32603);
}

#[tokio::test]
async fn read_file_keeps_to_text_and_to_its_limit() {
    let (rig, mut client) = vault().await;
    std::fs::write(rig.home.workspace.join("binary"), b"\xff\xfe\0").unwrap();
    rig.home.file("large.md", &"x".repeat(1024 * 1024 + 1));
    rig.home.file("just.md", &"x".repeat(1024 * 1024));
    assert_eq!(error_code(&client.request("readFile", json!({ "path": "binary" })).await), -32603);
    let large = client.request("readFile", json!({ "path": "large.md" })).await;
    assert!(message(&large).contains("1048576"), "says the limit: {large}");
    let just = client.request("readFile", json!({ "path": "just.md" })).await;
    assert_eq!(just["result"].as_str().unwrap().len(), 1024 * 1024);
}

#[tokio::test]
async fn a_wrong_parameter_is_named() {
    let (_rig, mut client) = vault().await;
    for (method, params, field) in [
        ("readFile", json!({}), "path"),
        ("readFile", json!({ "path": 5 }), "path"),
        ("writeFile", json!({ "path": "a" }), "content"),
        ("writeFile", json!({ "path": "a", "content": 5 }), "content"),
        ("listFiles", json!({ "pattern": 5 }), "pattern"),
        ("listFiles", json!({ "pattern": "{" }), "pattern"),
    ] {
        let answer = client.request(method, params.clone()).await;
        assert_eq!(error_code(&answer), -32602, "{method} {params}");
        assert!(message(&answer).contains(field), "{method} {params} must name `{field}`: {answer}");
    }
    client.settle_accounts().await;
}

#[tokio::test]
async fn write_file_waits_for_the_review() {
    let (rig, mut client) = vault().await;
    let file = rig.home.file("a.md", "old\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let read = || std::fs::read_to_string(&file).unwrap();
    let write = json!({ "path": "a.md", "content": "new\n" });
    let id = client.ask("writeFile", write.clone()).await;
    let shown = rig.editor.shown().await;
    assert_eq!((&shown.request.new_path, &*shown.request.new_contents), (&file, "new\n"));
    client.ping().await;
    assert_eq!(read(), "old\n", "not before the review");
    shown.reject();
    assert!(client.answer(&id).await["error"].is_object());
    assert_eq!(read(), "old\n");

    let id = client.ask("writeFile", write.clone()).await;
    rig.editor.shown().await.close();
    assert!(client.answer(&id).await["error"].is_object());
    let id = client.ask("writeFile", write.clone()).await;
    rig.editor.shown().await.act(crate::support::Act::Panic);
    assert!(client.answer(&id).await["error"].is_object());
    assert_eq!(read(), "old\n");

    let id = client.ask("writeFile", write.clone()).await;
    rig.editor.shown().await.accept_as("mine\n");
    assert_eq!(client.answer(&id).await["result"], json!({ "success": true }));
    assert_eq!(read(), "mine\n", "what the person made of it");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "the mode is kept");

    let id = client.ask("writeFile", json!({ "path": "/new dir/b.md", "content": "b" })).await;
    let _shown = rig.editor.shown().await;
    let pending = rig.server.ide().diffs().remove(0);
    rig.server.ide().accept(&pending.diff, None).unwrap();
    assert_eq!(client.answer(&id).await["result"], json!({ "success": true }));
    assert_eq!(std::fs::read_to_string(rig.home.workspace.join("new dir/b.md")).unwrap(), "b");
    client.settle_accounts().await;
}

#[tokio::test]
async fn write_file_of_a_client_that_is_gone_writes_nothing() {
    let (rig, mut client) = vault().await;
    let file = rig.home.file("a.md", "old\n");
    client.ask("writeFile", json!({ "path": "a.md", "content": "new\n" })).await;
    let shown = rig.editor.shown().await;
    client.socket.cut();
    rig.events.wait("client_gone", 1).await;
    rig.events.wait("diff_decided", 1).await;
    shown.accept();
    let _home = rig.stop().await;
    assert_eq!(std::fs::read_to_string(file).unwrap(), "old\n");
}

#[tokio::test]
async fn write_file_that_is_cancelled_writes_nothing_whatever_is_decided_later() {
    let (rig, mut client) = vault().await;
    let file = rig.home.file("a.md", "old\n");
    let id = client.ask("writeFile", json!({ "path": "a.md", "content": "new\n" })).await;
    let shown = rig.editor.shown().await;
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "user-cancel" })).await;
    client.ping().await;
    shown.accept();
    let answer = client.answer(&id).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "old\n");
}

#[tokio::test]
async fn write_file_looks_at_the_path_again_after_the_review() {
    let (rig, mut client) = vault().await;
    let outside = rig.home.path().join("outside.md");
    std::fs::write(&outside, "outside\n").unwrap();
    let id = client.ask("writeFile", json!({ "path": "a.md", "content": "new\n" })).await;
    let shown = rig.editor.shown().await;
    std::os::unix::fs::symlink(&outside, rig.home.workspace.join("a.md")).unwrap();
    shown.accept();
    assert!(client.answer(&id).await["error"].is_object());
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "outside\n");
}

#[tokio::test]
async fn write_file_may_be_let_through_without_a_review() {
    let rig = Rig::with(|options| {
        options.dialect = Dialect::Vault;
        options.allow_write = true;
    })
    .await;
    let mut client = rig.mcp().await;
    let answer = client.request("writeFile", json!({ "path": "a.md", "content": "\u{feff}a\r\n" })).await;
    assert_eq!(answer["result"], json!({ "success": true }));
    assert_eq!(std::fs::read(rig.home.workspace.join("a.md")).unwrap(), "\u{feff}a\r\n".as_bytes());
    assert_eq!(rig.editor.calls(), []);
}

#[tokio::test]
async fn read_and_write_stay_inside_the_workspace() {
    let rig = Rig::with(|options| {
        options.dialect = Dialect::Vault;
        options.allow_write = true;
    })
    .await;
    let workspace = rig.home.workspace.clone();
    let outside = rig.home.path().join("outside.md");
    std::fs::write(&outside, "outside\n").unwrap();
    rig.home.file("Notes.md", "x\n");
    std::os::unix::fs::symlink(&outside, workspace.join("link.md")).unwrap();
    std::os::unix::fs::symlink(rig.home.path(), workspace.join("way out")).unwrap();
    std::os::unix::fs::symlink(rig.home.path().join("not yet"), workspace.join("dangling.md")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", workspace.join("zero")).unwrap();
    let pipe = rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("pipe"), rustix::fs::Mode::RWXU);
    pipe.unwrap();
    let before = std::fs::read_dir(rig.home.path()).unwrap().count();
    let mut client = rig.mcp().await;
    for path in [
        "",
        "/",
        ".",
        "..",
        "../outside.md",
        "a/../../outside.md",
        "/../outside.md",
        "~/x.md",
        "~root/x.md",
        "/~/x.md",
        "link.md",
        "way out/outside.md",
        "way out/new.md",
        "dangling.md",
        "zero",
        "pipe",
        "a\0b",
        "way out",
    ] {
        for (method, params) in [
            ("readFile", json!({ "path": path })),
            ("writeFile", json!({ "path": path, "content": "broken in" })),
        ] {
            let answer = client.request(method, params).await;
            assert!(answer["error"].is_object(), "{method} {path:?}: {answer}");
        }
    }
    // A leading slash means the workspace here, so this is a file in it, and not the system's.
    let answer = client.request("readFile", json!({ "path": "/etc/hostname" })).await;
    assert!(answer["error"].is_object(), "{answer}");
    let alike = client.request("writeFile", json!({ "path": "NOTES.md", "content": "y" })).await;
    assert_eq!(error_code(&alike), -32602, "{alike}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "outside\n");
    assert_eq!(std::fs::read_dir(rig.home.path()).unwrap().count(), before, "nothing new outside");
    assert!(!rig.home.path().join("not yet").exists());
    client.settle_accounts().await;
}

#[tokio::test]
async fn list_files_takes_a_glob_and_follows_no_link_out() {
    let (rig, mut client) = vault().await;
    for name in ["a.js", "b.md", "sub/c.js", "sub/deep/d.js", ".env", ".git/config"] {
        rig.home.file(name, "x");
    }
    std::os::unix::fs::symlink("/etc", rig.home.workspace.join("etc")).unwrap();
    for (params, wanted) in [
        (Value::Null, json!(["a.js", "b.md", "sub/c.js", "sub/deep/d.js"])),
        (json!({ "pattern": null }), json!(["a.js", "b.md", "sub/c.js", "sub/deep/d.js"])),
        (json!({ "pattern": "*.js" }), json!(["a.js", "sub/c.js", "sub/deep/d.js"])),
        (json!({ "pattern": "sub/*.js" }), json!(["sub/c.js"])),
        (json!({ "pattern": "/sub/**" }), json!(["sub/c.js", "sub/deep/d.js"])),
        (json!({ "pattern": "*.none" }), json!([])),
    ] {
        assert_eq!(client.request("listFiles", params.clone()).await["result"], wanted, "{params}");
    }
}

#[tokio::test]
async fn workspace_info_names_the_folder() {
    let (rig, mut client) = vault().await;
    rig.home.file("a.md", "x");
    rig.home.file("b.md", "x");
    let info = client.request("getWorkspaceInfo", json!({})).await;
    let path = &rig.home.workspace;
    assert_eq!(info["result"], json!({ "name": "w", "path": path, "fileCount": 2, "type": "folder" }));
    std::fs::create_dir(path.join(".obsidian")).unwrap();
    let info = client.request("getWorkspaceInfo", Value::Null).await;
    assert_eq!(info["result"]["type"], "obsidian-vault");
}

#[tokio::test]
async fn open_files_and_the_current_one_are_relative() {
    let (rig, mut client) = vault().await;
    assert_eq!(client.request("getOpenFiles", Value::Null).await["result"], json!([]));
    assert_eq!(client.request("getCurrentFile", Value::Null).await["result"], Value::Null);
    let (a, b) = (rig.home.file("a.md", "x"), rig.home.file("sub/b.md", "x"));
    rig.editor.scene().documents = vec![document(a, false), document(b, true)];
    assert_eq!(client.request("getOpenFiles", json!({})).await["result"], json!(["a.md", "sub/b.md"]));
    let current = client.request("getCurrentFile", json!({})).await;
    assert_eq!(current["result"], json!({ "path": "sub/b.md", "name": "b.md" }));
    for mood in [Mood::Failing, Mood::Panicking] {
        rig.editor.set("documents", mood);
        assert!(client.request("getOpenFiles", json!({})).await["error"].is_object());
        assert!(client.request("getCurrentFile", json!({})).await["error"].is_object());
    }
    assert!(rig.editor.calls().iter().all(|call| *call == Call::Documents));
    client.settle_accounts().await;
}

fn hostile_path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("~".to_owned()),
        Just(String::new()),
        Just("link".to_owned()),
        Just("way out".to_owned()),
        Just("sub".to_owned()),
        "[a-zA-Zé~.]{1,3}",
    ];
    (any::<bool>(), proptest::collection::vec(part, 0..6))
        .prop_map(|(rooted, parts)| format!("{}{}", if rooted { "/" } else { "" }, parts.join("/")))
}

/// Everything below a directory but the workspace, with contents.
fn surroundings(home: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, ..ProptestConfig::default() })]

    #[test]
    fn no_path_at_all_reads_or_writes_outside(paths in proptest::collection::vec(hostile_path(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let rig = Rig::with(|options| {
                options.dialect = Dialect::Vault;
                options.allow_write = true;
            })
            .await;
            let (home, workspace) = (rig.home.path().to_owned(), rig.home.workspace.clone());
            std::fs::write(home.join("secret"), "the secret").unwrap();
            std::fs::create_dir(workspace.join("sub")).unwrap();
            std::os::unix::fs::symlink(home.join("secret"), workspace.join("link")).unwrap();
            std::os::unix::fs::symlink(&home, workspace.join("way out")).unwrap();
            let before = surroundings(&home);
            let mut client = rig.mcp().await;
            for path in &paths {
                client.request("writeFile", json!({ "path": path, "content": "broken in" })).await;
                let read = client.request("readFile", json!({ "path": path })).await;
                assert!(read["result"].is_null() || read["result"] == "broken in", "{path}: {read}");
            }
            assert_eq!(surroundings(&home), before, "{paths:?}");
            assert!(workspace.join("link").is_symlink() && workspace.join("way out").is_symlink());
            client.settle_accounts().await;
        });
    }
}

#[tokio::test]
async fn a_withheld_name_is_withheld_whatever_it_links_to_and_wherever_it_leads() {
    let (rig, mut client) = vault().await;
    rig.home.file("conf/prod.txt", "secret\n");
    for name in [".env", "id_rsa"] {
        std::os::unix::fs::symlink("conf/prod.txt", rig.home.workspace.join(name)).unwrap();
        let answer = client.request("readFile", json!({ "path": name })).await;
        assert!(message(&answer).contains("withheld"), "{answer}");
        let answer = client.request("writeFile", json!({ "path": name, "content": "x" })).await;
        assert!(message(&answer).contains("withheld"), "{answer}");
    }
    assert_eq!(std::fs::read_to_string(rig.home.workspace.join("conf/prod.txt")).unwrap(), "secret\n");
}

#[tokio::test]
async fn write_file_writes_only_what_was_reviewed() {
    let (rig, mut client) = vault().await;
    for folder in ["one", "two"] {
        std::fs::create_dir(rig.home.workspace.join(folder)).unwrap();
    }
    let link = rig.home.workspace.join("link");
    std::os::unix::fs::symlink("one", &link).unwrap();
    let id = client.ask("writeFile", json!({ "path": "link/f", "content": "new\n" })).await;
    let shown = rig.editor.shown().await;
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two", &link).unwrap();
    shown.accept();
    let answer = client.answer(&id).await;
    assert!(message(&answer).contains("nothing was written"), "{answer}");
    assert!(!rig.home.workspace.join("two/f").exists() && !rig.home.workspace.join("one/f").exists());
}
