//! Recordings replay to the same events, and nothing in them is lost.

use std::collections::BTreeMap;

use oarlock_agent::reduce::{Event, Phase};
use oarlock_agent::stream::{ContentBlock, Delta, Event as ApiEvent, Message};

use crate::outline;
use crate::replay::{Line, Replay, files, lines, name};

const TRACES: &str = "tests/fixtures/stream";
const MESSAGES: &str = "../proto/tests/fixtures/stream";
const ODDITIES: &str = "../proto/tests/fixtures/oddities";

#[test]
fn every_recording_replays_to_the_same_events() {
    for file in files(TRACES) {
        let replay = Replay::of(lines(&file));
        let mut out: Vec<_> = replay.events.iter().map(outline::event).collect();
        out.push(outline::state(replay.reducer.state()));
        out.extend(outline::conversation(&replay.conversation));
        insta::assert_snapshot!(name(&file), out.join("\n"));
    }
}

/// These are no sessions: one message of every kind, of several sessions.
#[test]
fn every_kind_of_message_has_its_events() {
    for file in files(MESSAGES) {
        let replay = Replay::of(lines(&file));
        let out: Vec<_> = replay.events.iter().map(outline::event).collect();
        insta::assert_snapshot!(format!("messages-{}", name(&file)), out.join("\n"));
    }
}

#[test]
fn every_oddity_is_passed_on() {
    for file in files(ODDITIES) {
        let replay = Replay::of(lines(&file));
        let out: Vec<_> = replay.events.iter().map(outline::event).collect();
        insta::assert_snapshot!(format!("oddity-{}", name(&file)), out.join("\n"));
    }
}

/// Says nothing new, by design.
fn is_silent(message: &Message) -> bool {
    match message {
        Message::StreamEvent(stream) => match &stream.event {
            ApiEvent::MessageStart(_)
            | ApiEvent::ContentBlockStart(_)
            | ApiEvent::ContentBlockStop(_)
            | ApiEvent::MessageStop(_) => true,
            ApiEvent::ContentBlockDelta(event) => matches!(event.delta, Delta::Signature(_)),
            _ => false,
        },
        // A mode that is in force already, and the CLI's way to say nothing.
        Message::System(system) => system.tag() == "status",
        Message::Assistant(assistant) => assistant.message.content.iter().all(|block| {
            block.as_text() == Some("(no content)")
                // It was announced by a question with the same input.
                || matches!(block, ContentBlock::ToolUse(_))
        }),
        _ => false,
    }
}

#[test]
fn no_message_is_lost() {
    for folder in [TRACES, MESSAGES, ODDITIES] {
        for file in files(folder) {
            let mut replay = Replay::default();
            for line in lines(&file) {
                match line {
                    Line::Cli(message) => {
                        let (before, silent) = (replay.events.len(), is_silent(&message));
                        let tag = message.tag().to_owned();
                        replay.hear(message);
                        assert!(silent || replay.events.len() > before, "{tag} in {}", file.display());
                    }
                    Line::Host(message) => replay.say(&message),
                    Line::Bad => {}
                }
            }
        }
    }
}

/// What the deltas of a block gave is what its final form has, and only once.
#[test]
fn what_is_said_is_given_once() {
    for folder in [TRACES, ODDITIES] {
        for file in files(folder) {
            let replay = Replay::of(lines(&file));
            let mut said: BTreeMap<(String, u32), String> = BTreeMap::new();
            for event in &replay.events {
                match event {
                    Event::Text { message, block, text } | Event::Thinking { message, block, text } => {
                        said.entry((message.id.clone(), *block)).or_default().push_str(text);
                    }
                    Event::BlockFinished { message, block, content, .. } if outline::is_text(content) => {
                        let whole = match &**content {
                            ContentBlock::Text(text) => &text.text,
                            ContentBlock::Thinking(thinking) => &thinking.thinking,
                            _ => continue,
                        };
                        let said = said.remove(&(message.id.clone(), *block)).unwrap_or_default();
                        assert_eq!(&said, whole, "{}", file.display());
                    }
                    Event::BlockAbandoned { message, block } => {
                        assert!(said.remove(&(message.id.clone(), *block)).is_some(), "{}", file.display());
                    }
                    _ => {}
                }
            }
            assert!(said.is_empty(), "never finished: {said:?} in {}", file.display());
        }
    }
}

#[test]
fn nothing_stays_open() {
    // The recording ends before the background work does, or in a turn.
    let unfinished = ["197-kill9-part1", "197-kill9-part2-resume", "197-interrupt-background-permission"];
    for file in files(TRACES) {
        let replay = Replay::of(lines(&file));
        let state = replay.reducer.state();
        if unfinished.contains(&name(&file).as_str()) {
            continue;
        }
        assert_eq!(state.phase(), Phase::Idle, "{}", file.display());
        let open = (state.calls.len(), state.tasks.len(), state.questions.len(), state.queued.len());
        assert_eq!(open, (0, 0, 0, 0), "{}: {}", file.display(), outline::state(state));
    }
}

/// Leaving the partial messages out changes nothing but what a broken stream lost.
#[test]
fn with_or_without_partial_messages_it_is_the_same_conversation() {
    for file in files(TRACES) {
        let with = Replay::of(lines(&file)).conversation;
        let whole =
            lines(&file).into_iter().filter(|line| !matches!(line, Line::Cli(Message::StreamEvent(_))));
        let without = Replay::of(whole).conversation;
        assert_eq!(outline::conversation(&with), outline::conversation(&without), "{}", file.display());
        assert_eq!(with, without, "{}", file.display());
    }
}

#[test]
fn a_closed_session_has_nothing_open() {
    for file in files(TRACES) {
        // Cut anywhere, as by a kill.
        for cut in [5, 12, 20, 31] {
            let mut replay = Replay::of(lines(&file).into_iter().take(cut));
            let ended = replay.events.iter().filter(|event| matches!(event, Event::TurnEnded(_))).count();
            let started = replay.events.iter().filter(|event| matches!(event, Event::TurnStarted)).count();
            let last: Vec<_> = replay.reducer.close().collect();
            let closed = last.iter().filter(|event| matches!(event, Event::TurnEnded(_))).count();
            assert_eq!(started, ended + closed, "{}", file.display());
            let state = replay.reducer.state();
            assert!(state.calls.is_empty() && state.tasks.is_empty() && state.questions.is_empty());
            assert_eq!(state.phase(), Phase::Idle);
        }
    }
}
