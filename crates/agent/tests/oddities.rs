//! Lines that have broken other clients: each goes through a session whole, and the next one is read.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use oarlock_agent::stream::Message;
use oarlock_agent::{Error, Options};
use serde_json::json;
use support::session;

const ODDITIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tests/fixtures/oddities");

#[tokio::test]
async fn hl_line_03_every_oddity_arrives_and_harms_nothing() {
    let mut files: Vec<_> = std::fs::read_dir(ODDITIES).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 26, "{}", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let (_session, mut events, mut cli) = session(Options::new()).await;
        let feed = async {
            cli.say_raw(&bytes).await;
            if !bytes.ends_with(b"\n") {
                cli.say_raw(b"\n").await;
            }
            cli.say(json!({"type": "result", "subtype": "success", "is_error": false, "result": "the end"}))
                .await;
            // The answer to a question among the oddities is read, or the pipe would fill.
            cli.fall_silent();
        };
        let read = async {
            let (mut seen, mut bad) = (Vec::new(), 0);
            while let Some(item) = events.next().await {
                match item {
                    Ok(message) => seen.push(message),
                    Err(Error::Line(_)) => bad += 1,
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            (seen, bad)
        };
        let ((), (seen, bad)) = tokio::join!(feed, read);
        let Some(Message::Result(end)) = seen.last() else { panic!("{name}: the end is missing: {seen:?}") };
        assert_eq!(end.result.as_deref(), Some("the end"), "{name}");
        // Every line is an item: a message, or an error that has its text. Questions that a program answers are not shown.
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let hidden = |line: &&[u8]| {
            let text = String::from_utf8_lossy(line);
            text.contains("\"control_response\"")
                || text.contains("\"hook_callback\"")
                || text.contains("\"mcp_message\"")
        };
        let shown = lines.filter(|line| !hidden(line)).count();
        assert_eq!(seen.len() - 1 + bad, shown, "{name}");
    }
}

#[tokio::test]
async fn hl_line_03_a_line_of_63_megabytes_arrives_whole() {
    let (_session, mut events, mut cli) = session(Options::new()).await;
    let large = "x".repeat(63 << 20);
    let feed = async {
        cli.say(json!({"type": "user", "message": {"role": "user", "content": large}})).await;
        cli.fall_silent();
    };
    let ((), item) = tokio::join!(feed, events.next());
    let Some(Ok(Message::User(user))) = item else { panic!("it is lost") };
    assert_eq!(user.message.content.text().len(), large.len());
}
