//! Each tool's words in each dialect, and which files a tool may touch.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use oarlock_ide::editor::{Document, OpenFile, Opened, Select};
use oarlock_proto::ide::Dialect;
use serde_json::{Value, json};

use crate::support::{
    Call, Client, Rig, diff, document, error_code, is_tool_error, range, selection, text, texts,
};

fn parsed(answer: &Value) -> Value {
    serde_json::from_str(text(answer)).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

async fn speaking(dialect: Dialect) -> (Rig, Client) {
    let rig = Rig::speaking(dialect).await;
    let client = rig.cli().await;
    (rig, client)
}

#[tokio::test]
async fn every_dialect_answers_open_diff_with_the_same_words() {
    for dialect in Dialect::ALL {
        let (rig, mut client) = speaking(dialect).await;
        let file = rig.home.file("a.py", "x\n");
        let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        rig.editor.shown().await.accept();
        assert_eq!(texts(&client.answer(&id).await), ["FILE_SAVED", "y\n"]);
        let id = client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        rig.editor.shown().await.close();
        assert_eq!(text(&client.answer(&id).await), "DIFF_REJECTED", "{dialect:?}");
    }
}

#[tokio::test]
async fn close_tab_in_each_dialect() {
    for (dialect, closed, not_found) in [
        (Dialect::Vscode, "TAB_CLOSED", "TAB_CLOSED"),
        (Dialect::Jetbrains, "OK", "Tab not found"),
        (Dialect::Vault, "TAB_CLOSED", "TAB_CLOSED"),
    ] {
        let (rig, mut client) = speaking(dialect).await;
        let file = rig.home.file("a.py", "x\n");
        client.ask_tool("openDiff", diff(&file, "y\n", "tab")).await;
        let _shown = rig.editor.shown().await;
        for (tab, found, answer) in
            [("tab", true, closed), ("/w/ordinary.py", true, closed), ("nothing", false, not_found)]
        {
            rig.editor.scene().found = found;
            assert_eq!(
                text(&client.call("close_tab", json!({ "tab_name": tab })).await),
                answer,
                "{dialect:?} {tab}"
            );
        }
        assert!(rig.editor.calls().contains(&Call::CloseTab("/w/ordinary.py".into())));
        assert!(!rig.editor.calls().contains(&Call::CloseTab("tab".into())), "a diff is not an ordinary tab");
        assert_eq!(text(&client.call("closeAllDiffTabs", json!({})).await), "CLOSED_0_DIFF_TABS");
    }
}

#[tokio::test]
async fn open_file_in_each_dialect() {
    for dialect in Dialect::ALL {
        let (rig, mut client) = speaking(dialect).await;
        let file = rig.home.file("a.py", "one\ntwo\nthree\n");
        let front = client.call("openFile", json!({ "filePath": file })).await;
        let back = client.call("openFile", json!({ "filePath": file, "makeFrontmost": false })).await;
        let missing = client.call("openFile", json!({ "filePath": rig.home.workspace.join("none") })).await;
        let why = is_tool_error(&missing).unwrap();
        if dialect == Dialect::Jetbrains {
            assert_eq!((text(&front), text(&back)), ("OK", "OK"));
            assert_eq!(why, "Project is closed or directory not found");
        } else {
            assert_eq!(text(&front), format!("Opened file: {}", file.display()));
            let wanted = json!({ "success": true, "filePath": file, "languageId": "rust", "lineCount": 3 });
            assert_eq!(parsed(&back), wanted);
            assert!(why.contains("none"), "{why}");
        }
        let outside = client.call("openFile", json!({ "filePath": "/etc/hostname" })).await;
        assert!(is_tool_error(&outside).is_none(), "any absolute path may be shown: {outside}");
    }
}

#[tokio::test]
async fn open_file_gives_the_editor_all_that_was_asked() {
    let (rig, mut client) = speaking(Dialect::Vscode).await;
    let file = rig.home.file("a.py", "one\ntwo\nthree\n");
    for (arguments, wanted) in [
        (json!({}), OpenFile::new(&file)),
        (
            json!({ "preview": true, "makeFrontmost": false, "startText": null }),
            OpenFile { preview: true, make_frontmost: false, ..OpenFile::new(&file) },
        ),
        (
            json!({ "startText": "one", "endText": "two", "selectToEndOfLine": true }),
            OpenFile {
                select: Select::Text { start: "one".into(), end: Some("two".into()), to_end_of_line: true },
                ..OpenFile::new(&file)
            },
        ),
    ] {
        let mut arguments = arguments;
        arguments["filePath"] = json!(file);
        client.call("openFile", arguments).await;
        assert_eq!(rig.editor.calls().pop(), Some(Call::OpenFile(wanted)));
    }
    rig.editor.scene().opened = Opened { selected: false, ..Opened::default() };
    let answer = client.call("openFile", json!({ "filePath": file, "startText": "nine" })).await;
    assert!(text(&answer).contains("not found"), "{answer}");
}

#[tokio::test]
async fn the_text_patterns_of_open_file_select_text() {
    let text = "fn one() {\n    two();\n}\nfn two() {}\n";
    let find = |start: &str, end: Option<&str>, to_end_of_line| {
        Select::Text { start: start.into(), end: end.map(Into::into), to_end_of_line }.find(text)
    };
    assert_eq!(find("two", None, false), Some(range((1, 4), (1, 7))));
    assert_eq!(find("two", None, true), Some(range((1, 4), (1, 10))));
    assert_eq!(find("one", Some("}"), false), Some(range((0, 3), (2, 1))));
    assert_eq!(find("one", Some("fn"), true), Some(range((0, 3), (3, 11))));
    assert_eq!(find("nine", Some("}"), true), None);
}

#[tokio::test]
async fn open_files_tells_which_were_opened() {
    for dialect in Dialect::ALL {
        let (rig, mut client) = speaking(dialect).await;
        let (a, b) = (rig.home.file("a.py", ""), rig.home.file("b.py", ""));
        let none = rig.home.workspace.join("none.py");
        let answer = client.call("open_files", json!({ "file_paths": [a, none, b] })).await;
        assert_eq!(parsed(&answer), json!({ "opened_files": [a, b] }), "{dialect:?}");
        let empty = client.call("open_files", json!({ "file_paths": [] })).await;
        assert_eq!(parsed(&empty), json!({ "opened_files": [] }));
    }
}

#[tokio::test]
async fn selections_have_the_shape_of_the_first_seed() {
    let (rig, mut client) = speaking(Dialect::Vscode).await;
    let nothing = client.call("getCurrentSelection", json!({})).await;
    assert_eq!(parsed(&nothing), json!({ "success": false, "message": "No active editor found" }));
    let nothing = client.call("getLatestSelection", json!({})).await;
    assert_eq!(parsed(&nothing)["success"], false);
    let file = rig.home.file("a.py", "x = 1\n");
    rig.editor.scene().selection = Some(selection(&file, "x = 1"));
    rig.editor.ide().selection_changed(selection(&file, "x"));
    let position = |character| json!({ "line": 0, "character": character });
    for (tool, selected, end) in [("getCurrentSelection", "x = 1", 5), ("getLatestSelection", "x", 1)] {
        let answer = client.call(tool, json!({})).await;
        let wanted = json!({
            "success": true, "text": selected, "filePath": file,
            "fileUrl": format!("file://{}", file.display()),
            "selection": { "start": position(0), "end": position(end), "isEmpty": false },
        });
        assert_eq!(parsed(&answer), wanted);
    }
}

#[tokio::test]
async fn documents_are_listed_in_both_shapes() {
    let (rig, mut client) = speaking(Dialect::Vscode).await;
    let (a, b) = (rig.home.file("é a.py", ""), rig.home.file("b.py", ""));
    let untitled =
        Document { is_untitled: true, is_dirty: true, ..document(PathBuf::from("Untitled-1"), false) };
    rig.editor.scene().documents =
        vec![document(&a, true), Document { is_dirty: true, ..document(&b, false) }, untitled];
    let tabs = parsed(&client.call("getOpenEditors", json!({})).await);
    assert_eq!(
        tabs[0],
        json!({
            "uri": format!("file://{}", a.display()), "isActive": true, "label": "é a.py", "languageId": "python",
            "isDirty": false, "isUntitled": false,
        })
    );
    assert_eq!((&tabs[1]["isDirty"], &tabs[1]["isActive"]), (&json!(true), &json!(false)));
    assert_eq!((&tabs[2]["uri"], &tabs[2]["isUntitled"]), (&json!("untitled:Untitled-1"), &json!(true)));
    let paths = client.call("get_all_opened_file_paths", json!({})).await;
    assert_eq!(text(&paths), format!("{}\n{}", a.display(), b.display()));
    let dirty = parsed(&client.call("checkDocumentDirty", json!({ "filePath": b })).await);
    assert_eq!(dirty, json!({ "success": true, "filePath": b, "isDirty": true, "isUntitled": false }));
    let closed = parsed(&client.call("checkDocumentDirty", json!({ "filePath": "/w/none.py" })).await);
    assert_eq!(closed, json!({ "success": false, "message": "Document not open: /w/none.py" }));
}

#[tokio::test]
async fn workspace_folders_are_the_canonical_ones() {
    let rig = Rig::with(|options| {
        let second = options.workspace[0].join("second");
        std::fs::create_dir(&second).unwrap();
        options.workspace.push(second.join("../second"));
    })
    .await;
    let mut client = rig.mcp().await;
    let folders = [rig.home.workspace.clone(), rig.home.workspace.join("second")];
    let answer = parsed(&client.call("getWorkspaceFolders", json!({})).await);
    assert_eq!(answer, json!({ "success": true, "folders": folders, "rootPath": folders[0] }));
}

#[tokio::test]
async fn execute_code_gives_text_and_images_as_they_are() {
    let (_rig, mut client) = speaking(Dialect::Vscode).await;
    let answer = client.call("executeCode", json!({ "code": "print(1)" })).await;
    let image = json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
    assert_eq!(answer["result"], json!({ "content": [{ "type": "text", "text": "1\n" }, image] }));
}

#[tokio::test]
async fn save_document_and_reformat_file_in_their_words() {
    for dialect in Dialect::ALL {
        let (rig, mut client) = speaking(dialect).await;
        let file = rig.home.file("a.py", "x\n");
        let saved = parsed(&client.call("saveDocument", json!({ "filePath": file })).await);
        assert_eq!(
            saved,
            json!({ "success": true, "filePath": file, "saved": true, "message": "Document saved" })
        );
        assert_eq!(text(&client.call("reformat_file", json!({ "file_path": file })).await), "OK");
        let missing =
            client.call("reformat_file", json!({ "file_path": rig.home.workspace.join("none") })).await;
        assert_eq!(is_tool_error(&missing), Some("File not found"));
        rig.editor.scene().found = false;
        let not_open = parsed(&client.call("saveDocument", json!({ "filePath": file })).await);
        assert_eq!((&not_open["success"], &not_open["saved"]), (&json!(false), &json!(false)));
        assert!(not_open["message"].as_str().unwrap().contains("a.py"));
    }
}

/// Paths that a client must not be able to reach, each with the reason.
fn forbidden(rig: &Rig) -> Vec<PathBuf> {
    let (workspace, outside) = (&rig.home.workspace, rig.home.path().join("outside.py"));
    std::fs::write(&outside, "outside\n").unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("link.py")).unwrap();
    std::os::unix::fs::symlink(rig.home.path(), workspace.join("way out")).unwrap();
    std::os::unix::fs::symlink(rig.home.path().join("not yet"), workspace.join("dangling.py")).unwrap();
    std::os::unix::fs::symlink("/dev/null", workspace.join("null")).unwrap();
    let pipe = rustix::fs::mkfifoat(rustix::fs::CWD, workspace.join("pipe"), rustix::fs::Mode::RWXU);
    pipe.unwrap();
    vec![
        outside,
        "/etc/passwd".into(),
        "/dev/null".into(),
        workspace.join("../outside.py"),
        workspace.join("sub/../../outside.py"),
        workspace.join("link.py"),
        workspace.join("way out/outside.py"),
        workspace.join("way out/new.py"),
        workspace.join("dangling.py"),
        workspace.join("null"),
        workspace.join("pipe"),
        workspace.clone(),
        PathBuf::from(format!("{}-sibling/x.py", workspace.display())),
    ]
}

#[tokio::test]
async fn save_document_and_reformat_file_stay_inside_the_workspace() {
    let (rig, mut client) = speaking(Dialect::Vscode).await;
    rig.home.file("sub/a.py", "x\n");
    for path in forbidden(&rig) {
        for (tool, field) in [("saveDocument", "filePath"), ("reformat_file", "file_path")] {
            let answer = client.call(tool, json!({ field: path })).await;
            assert!(is_tool_error(&answer).is_some(), "{tool} {}: {answer}", path.display());
        }
    }
    for path in ["~/a.py", "a.py", "", "sub/a.py", "/w/\0"] {
        for (tool, field) in [("saveDocument", "filePath"), ("reformat_file", "file_path")] {
            assert_eq!(error_code(&client.call(tool, json!({ field: path })).await), -32602, "{tool} {path}");
        }
    }
    // An existing name in another spelling is not written to.
    let alike = rig.home.workspace.join("SUB/A.py");
    assert!(is_tool_error(&client.call("saveDocument", json!({ "filePath": alike })).await).is_some());
    assert_eq!(rig.editor.calls(), [], "the editor was never asked");
    client.settle_accounts().await;
}

#[tokio::test]
async fn the_methods_of_vault_do_not_exist_in_other_dialects() {
    for dialect in [Dialect::Vscode, Dialect::Jetbrains] {
        let (rig, mut client) = speaking(dialect).await;
        rig.home.file("a.py", "x\n");
        for (method, _) in oarlock_ide::vault::METHODS {
            let answer =
                client.request(method, json!({ "path": "a.py", "content": "y", "pattern": "*" })).await;
            assert_eq!(error_code(&answer), -32601, "{method}");
        }
        assert_eq!(std::fs::read_to_string(rig.home.workspace.join("a.py")).unwrap(), "x\n");
    }
}

#[tokio::test]
async fn the_table_says_what_each_tool_answers_in_each_dialect() {
    for tool in oarlock_ide::tools::TABLE {
        for dialect in Dialect::ALL {
            assert!(!(tool.replies)(dialect).is_empty(), "{} {dialect:?}", tool.name);
        }
    }
}
