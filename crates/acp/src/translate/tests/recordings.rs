//! Recordings of both CLIs: the rules hold in all of them, and a transcript shows what the session showed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_agent::history::Library;
use oarlock_agent::reduce::{Event, Reducer};
use oarlock_agent::stream::{Message, decode};
use oarlock_proto::acp::ClientCapabilities;
use serde_json::Value;

use super::fold::Picture;
use super::{bare, full, values, zed};
use crate::history::Replay;
use crate::translate::{Pass, Screen};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// What a client sees of a recording: live, with an update for each message.
fn live(file: &Path, client: Arc<ClientCapabilities>) -> (Picture, Vec<Value>) {
    let (mut reducer, mut screen) = (Reducer::default(), Screen::new(client, "/w".into(), Pass::Live));
    let (mut picture, mut all) = (Picture::default(), Vec::new());
    let mut show = |screen: &mut Screen, events: Vec<Event>| {
        events.into_iter().for_each(|event| screen.show(event));
        for update in values(&screen.take()) {
            picture.apply(&update);
            all.push(update);
        }
    };
    for line in fs::read_to_string(file).expect("a recording").lines() {
        if let Some(host) = line.strip_prefix("> ") {
            if let Ok(Message::User(user)) = decode(host.as_bytes())
                && let Some(uuid) = &user.uuid
            {
                reducer.sent(uuid);
            }
        } else if let Ok(message) = decode(line.as_bytes()) {
            let events = reducer.apply(message).collect();
            show(&mut screen, events);
        }
    }
    let events = reducer.close().collect();
    show(&mut screen, events);
    (picture, all)
}

#[test]
fn acp_tool_01_02_03_the_rules_hold_in_every_recording() {
    let folder = "../agent/tests/fixtures/stream";
    for file in files(folder).into_iter().chain(streams()) {
        for client in [zed(), bare(), full()] {
            let (picture, _) = live(&file, client);
            assert_eq!(picture.open(), [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn acp_init_03_a_bare_client_gets_nothing_it_did_not_ask_for() {
    for file in files("../agent/tests/fixtures/stream").into_iter().chain(streams()) {
        let (_, updates) = live(&file, bare());
        for update in updates {
            let kind = update["sessionUpdate"].as_str().expect("a kind");
            assert!(!["notice", "compaction_update", "plan_update"].contains(&kind), "{update}");
            assert!(!update.to_string().contains("terminal"), "{update}");
            assert!(!update.to_string().contains("doesn't want to proceed"), "{update}");
        }
    }
}

fn sessions() -> Vec<PathBuf> {
    let files = files("tests/fixtures/sessions").into_iter();
    files.filter(|file| file.to_string_lossy().ends_with(".transcript.jsonl")).collect()
}

fn streams() -> impl Iterator<Item = PathBuf> {
    sessions().into_iter().map(|file| file.to_string_lossy().replace(".transcript.", ".stream.").into())
}

/// What a client sees of a transcript.
fn replay(file: &Path, client: Arc<ClientCapabilities>) -> (Picture, Vec<Value>) {
    let home = tempfile::tempdir().expect("a folder");
    let id = "11111111-2222-4333-8444-555555555555";
    let project = home.path().join("projects/-w");
    let folder = project.join(id).join("subagents");
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(file, project.join(format!("{id}.jsonl"))).expect("a copy");
    let subagents = file.to_string_lossy().replace(".transcript.jsonl", ".subagents");
    for entry in fs::read_dir(subagents).expect("subagents") {
        let entry = entry.expect("entry");
        fs::copy(entry.path(), folder.join(entry.file_name())).expect("a copy");
    }
    let transcript = Library::at(home.path()).open(id, None).expect("a transcript");
    let screen = Screen::new(client, "/w".into(), Pass::Replay);
    let replay = Replay::new(&transcript, screen).expect("a replay");
    let updates: Vec<_> = replay.flat_map(|updates| values(&updates)).collect();
    (Picture::of(&updates), updates)
}

#[test]
fn acp_load_02_a_replay_ends_in_the_picture_that_was_live() {
    for file in sessions() {
        let stream = file.to_string_lossy().replace(".transcript.", ".stream.");
        for client in [zed(), bare(), full()] {
            let (then, _) = live(Path::new(&stream), client.clone());
            let (now, _) = replay(&file, client);
            let (then, now) = (then.of_the_model(), now.of_the_model());
            assert_eq!(then.items, now.items, "{}", file.display());
            for (id, call) in &then.calls {
                assert_eq!(Some(call), now.calls.get(id), "{} {id}", file.display());
            }
            assert_eq!(then, now, "{}", file.display());
            assert!(then.calls.len() > 8 && then.items.len() > 15, "the recording is worth the while");
        }
    }
}

#[test]
fn a_replay_shows_what_the_user_said_and_no_more() {
    for file in sessions() {
        let (picture, updates) = replay(&file, bare());
        let said: Vec<_> = (updates.iter())
            .filter(|update| update["sessionUpdate"] == "user_message_chunk")
            .map(|update| {
                let text = update["content"]["text"].as_str().expect("text");
                text.split(" @@").next().unwrap_or_default().to_owned()
            })
            .collect();
        let want = [
            "files",
            "agents",
            "background",
            "background agent",
            "/context",
            "/nosuchcommand",
            "stop",
            "fails",
            "long",
            "/compact",
            "after",
        ];
        // The older CLI has no message for a command that it does not know, and joins prompts that wait.
        let want: Vec<_> = want.into_iter().filter(|word| said.iter().any(|said| said == word)).collect();
        assert_eq!(said, want, "{}", file.display());
        assert!(want.len() >= 9, "{want:?}");
        assert!(picture.said().contains("API Error: 400"), "an error is shown in a replay");
        assert!(picture.open().is_empty());
        assert!(updates.iter().all(|update| !update.to_string().contains("task-notification")));
    }
}

#[test]
fn acp_prompt_02_an_error_of_the_api_is_not_shown_live() {
    for file in streams() {
        let (picture, _) = live(&file, bare());
        assert!(!picture.said().contains("API Error: 400"), "{}", file.display());
    }
}
