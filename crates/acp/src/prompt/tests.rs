use oarlock_agent::stream::Content;
use oarlock_proto::acp::ContentBlock;
use oarlock_proto::jsonrpc::INVALID_PARAMS;
use serde_json::{Value, json};

use super::{content, decode, words};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn blocks(prompt: Value) -> Vec<ContentBlock> {
    serde_json::from_value(prompt).expect("content blocks")
}

/// The content as the CLI is sent it.
fn sent(prompt: Value) -> Value {
    let content = content(blocks(prompt)).expect("a prompt that can be sent");
    serde_json::to_value(&content).expect("plain data")
}

fn refusal(prompt: Value) -> String {
    let error = content(blocks(prompt)).expect_err("a prompt that is refused");
    assert_eq!(error.code, i64::from(INVALID_PARAMS));
    error.message.to_string()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn link(uri: &str, name: &str) -> Value {
    json!({ "type": "resource_link", "uri": uri, "name": name })
}

fn image() -> Value {
    json!({ "type": "image", "mimeType": "image/png", "data": PNG })
}

fn blob(uri: &str, mime_type: &str, blob: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "blob": blob } })
}

#[test]
fn acp_prompt_06_text_and_links_are_one_text_in_order() {
    assert_eq!(sent(json!([text("hello")])), "hello");
    assert_eq!(sent(json!([text("one"), text("two\n"), text("three")])), "one\ntwo\nthree");
    assert_eq!(
        sent(json!([text("look at "), link("https://x.org/a", "a"), text(" please")])),
        "look at [@a](https://x.org/a) please"
    );
    assert_eq!(
        sent(json!([text("both"), link("x:/a", "a"), link("x:/b", "b"), text("now")])),
        "both [@a](x:/a) [@b](x:/b) now"
    );
    assert_eq!(
        sent(json!([text("see"), link("zed:///x/y%20z", ""), text(", ok")])),
        "see [@y z](zed:///x/y%20z), ok"
    );
}

#[test]
fn acp_prompt_06_files_that_are_here_are_mentioned() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a b.txt");
    std::fs::write(&file, "x").expect("written");
    let plain = folder.path().join("a.txt");
    std::fs::write(&plain, "x").expect("written");
    let at = folder.path().display();
    let uri = |name: &str| format!("file://{at}/{name}");
    assert_eq!(sent(json!([text("see"), link(&uri("a%20b.txt"), "a")])), format!("see @\"{at}/a b.txt\""));
    assert_eq!(sent(json!([link(&uri("a.txt#L3:9"), "a"), text("!")])), format!("@{at}/a.txt#L3-9 !"));
    assert_eq!(sent(json!([link(&uri("a.txt?symbol=f#L3"), "a")])), format!("@{at}/a.txt#L3-3"));
    assert_eq!(
        sent(json!([link(&uri("none.txt"), "none.txt")])),
        format!("[@none.txt]({})", uri("none.txt"))
    );
    assert_eq!(sent(json!([link(&uri(""), "folder")])), format!("[@folder]({})", uri("")));
}

#[test]
fn acp_prompt_06_embedded_text_comes_before_what_is_said() {
    let resource =
        json!({ "type": "resource", "resource": { "uri": "file:///w/a\".rs", "text": "see @b.rs" } });
    assert_eq!(
        sent(json!([text("explain "), resource, text(" to me")])),
        json!([
            text("<context ref=\"file:///w/a%22.rs\">\nsee @b.rs\n</context>"),
            text("explain [@a\".rs](file:///w/a\".rs) to me"),
        ])
    );
}

#[test]
fn slash_commands_stay_the_beginning_of_the_last_text() {
    let resource = json!({ "type": "resource", "resource": { "uri": "x:/a", "text": "A" } });
    let sent = sent(json!([text("/review"), resource, image()]));
    let last = sent.as_array().and_then(|blocks| blocks.last()).expect("a block");
    assert_eq!(last["text"], "/review [@a](x:/a)");
    assert_eq!(sent[0]["type"], "image");
}

#[test]
fn prompts_of_mcp_servers_are_spelled_as_the_cli_does() {
    assert_eq!(sent(json!([text("/mcp:github:review 12 now")])), "/github:review (MCP) 12 now");
    assert_eq!(sent(json!([text("/mcp:github:review")])), "/github:review (MCP)");
    assert_eq!(sent(json!([text("/mcp:github:review\nline")])), "/github:review (MCP)\nline");
    for other in ["/mcp", "/mcp: x", "/mcp:github", "/mcp::x", "say /mcp:a:b"] {
        assert_eq!(sent(json!([text(other)])), other);
    }
}

#[test]
fn acp_prompt_06_pictures_come_first_and_are_named_where_they_were() {
    let picture =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } });
    assert_eq!(sent(json!([text("what is this?"), image()])), json!([picture, text("what is this?")]));
    assert_eq!(sent(json!([image(), text("?")])), json!([picture, text("?")]));
    assert_eq!(sent(json!([image()])), json!([picture]));
    assert_eq!(
        sent(json!([text("this"), image(), text("or that"), image(), text("?")])),
        json!([picture, picture, text("this [Image #1]\nor that [Image #2]\n?")])
    );
    // The label may be wrong or missing; the data may be a whole data URL.
    let data = format!("data:image/jpeg;base64,{PNG}");
    assert_eq!(sent(json!([{ "type": "image", "mimeType": "image/jpeg", "data": data }])), json!([picture]));
}

#[test]
fn acp_prompt_06_a_picture_by_its_address() {
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "", "uri": "https://x.org/a.png" });
    assert_eq!(
        sent(json!([image])),
        json!([{ "type": "image", "source": { "type": "url", "url": "https://x.org/a.png" } }])
    );
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "", "uri": "file:///none/a.png" });
    assert_eq!(sent(json!([image])), "[@a.png](file:///none/a.png)");
}

#[test]
fn acp_prompt_06_blobs_by_their_type() {
    assert_eq!(
        sent(json!([blob("x:/a.csv", "text/csv; charset=utf-8", "YSxi")])),
        json!([text("<context ref=\"x:/a.csv\">\na,b\n</context>"), text("[@a.csv](x:/a.csv)")])
    );
    let pdf = sent(json!([blob("x:/a.pdf", "application/pdf", "JVBERi0xLjQK")]));
    assert_eq!(pdf[0]["type"], "document");
    assert_eq!(pdf[0]["source"]["media_type"], "application/pdf");
    assert_eq!(sent(json!([blob("x:/a.png", "image/png", PNG)]))[0]["type"], "image");
    assert_eq!(
        sent(json!([blob("x:/a.zip", "application/zip", "UEsDBAo=")])),
        "[@a.zip](x:/a.zip) (not included: application/zip)"
    );
}

#[test]
fn acp_prompt_06_what_cannot_be_sent_is_refused() {
    assert!(refusal(json!([{ "type": "audio", "mimeType": "audio/wav", "data": "AAAA" }])).contains("audio"));
    assert!(refusal(json!([{ "type": "hologram" }])).contains("does not know"));
    assert!(refusal(json!([])).contains("nothing"));
    assert!(refusal(json!([text(" \n")])).contains("nothing"));
    assert!(
        refusal(json!([{ "type": "image", "mimeType": "image/bmp", "data": "Qk0=" }])).contains("image/bmp")
    );
    assert!(
        refusal(json!([{ "type": "image", "mimeType": "image/png", "data": "iVBOR!" }])).contains("base64")
    );
    assert!(refusal(json!([{ "type": "image" }])).contains("neither"));
    assert!(refusal(json!([{ "type": "resource", "resource": { "uri": "x:/a" } }])).contains("empty"));
}

#[test]
fn the_words_are_what_was_said() {
    let resource = json!({ "type": "resource", "resource": { "uri": "x:/a", "text": "A" } });
    let content = content(blocks(json!([image(), resource, text("why?")]))).expect("a prompt");
    assert_eq!(words(&content), "[@a](x:/a) why?");
    assert_eq!(words(&Content::from("plain")), "plain");
}

#[test]
fn base64_is_read() {
    for (data, bytes) in
        [("", ""), ("Zg==", "f"), ("Zg", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9v\r\nYg==", "foob")]
    {
        assert_eq!(decode(data).as_deref(), Some(bytes.as_bytes()), "{data}");
    }
    for data in ["Z", "Zg==Zg", "Zm9v====", "Zm 9v", "Zm9v-_"] {
        assert_eq!(decode(data), None, "{data}");
    }
}
