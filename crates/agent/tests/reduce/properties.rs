//! Whatever order the messages come in, as far as the CLI may choose it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use oarlock_agent::reduce::{Event, Phase};
use oarlock_agent::stream::{ContentBlock, Message};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::model::{Said, Saying, Script, Spoken, any_session};
use crate::replay::{Line, Replay, files, lines, read};

fn replay(spoken: &[Spoken], partial: bool) -> Replay {
    let mut replay = Replay::default();
    for line in spoken {
        match line {
            Spoken::Cli(message) if partial || message["type"] != "stream_event" => {
                replay.hear(read(message))
            }
            Spoken::Cli(_) => {}
            Spoken::Answered(request_id) => replay.reducer.answered(request_id),
        }
    }
    replay
}

/// What [`oarlock_agent::reduce`] promises about the order of events.
fn assert_promises(events: &[Event]) -> Result<(), TestCaseError> {
    let (mut in_turn, mut said) = (false, BTreeMap::<_, String>::new());
    let (mut made, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        let main = event.parent_tool_use_id().is_none();
        match event {
            Event::TurnStarted => prop_assert!(!std::mem::replace(&mut in_turn, true)),
            Event::TurnEnded(_) => prop_assert!(std::mem::replace(&mut in_turn, false)),
            Event::Text { message, block, text } | Event::Thinking { message, block, text } => {
                prop_assert!(in_turn || !main);
                said.entry((message.id.clone(), *block)).or_default().push_str(text);
            }
            Event::BlockFinished { message, block, content, .. } => {
                prop_assert!(in_turn || !main);
                let whole = match &**content {
                    ContentBlock::Text(text) => &text.text,
                    ContentBlock::Thinking(thinking) => &thinking.thinking,
                    other => return Err(TestCaseError::fail(format!("{other:?}"))),
                };
                prop_assert_eq!(&said.remove(&(message.id.clone(), *block)).unwrap_or_default(), whole);
            }
            Event::BlockAbandoned { .. } => return Err(TestCaseError::fail("nothing broke")),
            Event::ToolCall(call) => {
                made.insert(call.id.clone());
            }
            Event::Permission(permission) => prop_assert!(made.contains(&permission.call.id)),
            Event::ToolResult { call, result } => {
                prop_assert!(call.is_some(), "{}", result.id);
                prop_assert!(made.contains(&result.id) && ended.insert(result.id.clone()));
            }
            Event::ToolCancelled(call) => return Err(TestCaseError::fail(call.id.clone())),
            _ => {}
        }
    }
    prop_assert!(!in_turn && said.is_empty());
    prop_assert_eq!(made, ended);
    Ok(())
}

/// All text that the model says in the main conversation.
fn spoken(session: &[Vec<Said>]) -> Vec<String> {
    let blocks = session.iter().flatten().flat_map(|said| &said.blocks);
    let texts = blocks.filter_map(|saying| match saying {
        Saying::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// Every message of the recordings.
static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let folders =
        ["tests/fixtures/stream", "../proto/tests/fixtures/stream", "../proto/tests/fixtures/oddities"];
    let lines = folders.iter().flat_map(|folder| files(folder)).flat_map(|file| lines(&file));
    lines
        .filter_map(|line| match line {
            Line::Cli(message) | Line::Host(message) => Some(message),
            Line::Bad => None,
        })
        .collect()
});

/// The same message with ids that many others have too.
fn confuse(value: &mut Value, ids: &mut impl Iterator<Item = usize>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let is_id = key == "id" || key.ends_with("_id") || key == "uuid";
                if is_id && value.is_string() {
                    *value = json!(format!("id{}", ids.next().unwrap_or_default() % 3));
                } else {
                    confuse(value, ids);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| confuse(value, ids)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_allowed_order_gives_the_same_conversation(
        session in any_session(),
        choices in vec(any::<usize>(), 1..200),
        chunk in 1..9usize,
    ) {
        let script = Script::of(&session, chunk);
        let want = replay(&script.order(&[]), true);
        let texts: Vec<_> = want.conversation.turns.iter().map(|turn| turn.text()).filter(|text| !text.is_empty()).collect();
        prop_assert_eq!(texts.join("\n\n"), spoken(&session).join("\n\n"));
        for partial in [true, false] {
            let got = replay(&script.order(&choices), partial);
            assert_promises(&got.events)?;
            prop_assert_eq!(&got.conversation, &want.conversation);
            prop_assert_eq!(got.shown_by_main(), spoken(&session).concat());
            let state = got.reducer.state();
            prop_assert_eq!(state.phase(), Phase::Idle);
            prop_assert!(state.calls.is_empty() && state.tasks.is_empty() && state.questions.is_empty());
        }
    }

    #[test]
    fn what_is_over_is_forgotten(session in any_session(), choices in vec(any::<usize>(), 1..50)) {
        let once = Script::of(&session, 4);
        let many: Vec<_> = session.iter().cycle().take(session.len() * 12).cloned().collect();
        let many = Script::of(&many, 4);
        let size = |script: &Script| {
            let mut replay = replay(&script.order(&choices), true);
            // What background tasks leave is cleared with the next turn.
            replay.hear(read(&json!({"type": "result", "subtype": "success"})));
            format!("{:?}", replay.reducer).len()
        };
        // Numbers grow by some digits.
        prop_assert!(size(&many) <= size(&once) + 60, "{} > {}", size(&many), size(&once));
    }

    #[test]
    fn a_turn_that_is_cut_anywhere_leaves_nothing_open(
        session in any_session(),
        choices in vec(any::<usize>(), 1..50),
        cut in any::<Index>(),
    ) {
        let lines = Script::of(&session, 4).order(&choices);
        let mut cut = replay(&lines[..cut.index(lines.len())], true);
        let tasks = cut.reducer.state().tasks.len();
        cut.hear(read(&json!({"type": "user", "message": {"role": "user",
            "content": [{"type": "text", "text": "[Request interrupted by user]"}]}})));
        cut.hear(read(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true})));
        let state = cut.reducer.state();
        if tasks == 0 {
            prop_assert_eq!(state.phase(), Phase::Idle);
            prop_assert!(state.calls.is_empty() && state.questions.is_empty());
        }
        for open in state.calls.values() {
            let parent = open.call.parent_tool_use_id.as_ref();
            prop_assert!(state.tasks.values().any(|task| task.tool_use_id.as_ref() == parent));
        }
        let closed: Vec<_> = cut.reducer.close().collect();
        cut.events.extend(closed);
        let state = cut.reducer.state();
        prop_assert!(state.calls.is_empty() && state.tasks.is_empty() && state.questions.is_empty());
        let announced = cut.events.iter().filter_map(|event| match event {
            Event::ToolAnnounced(call) | Event::ToolCall(call) => Some(&call.id),
            _ => None,
        });
        let ended = cut.events.iter().filter_map(|event| match event {
            Event::ToolResult { result, .. } => Some(&result.id),
            Event::ToolCancelled(call) => Some(&call.id),
            _ => None,
        });
        let ended: Vec<_> = ended.collect();
        prop_assert_eq!(announced.collect::<BTreeSet<_>>(), ended.iter().copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(ended.len(), ended.iter().collect::<BTreeSet<_>>().len(), "once each");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Messages of all sessions in any order, many of them about the same few ids.
    #[test]
    fn no_messages_are_fatal(
        messages in vec(select(&**MESSAGES), 1..60),
        ids in vec(any::<usize>(), 1..100),
        confused in any::<bool>(),
    ) {
        let (mut replay, mut ids) = (Replay::default(), ids.into_iter().cycle());
        for message in messages {
            let mut value = serde_json::to_value(&message).expect("plain data");
            if confused {
                confuse(&mut value, &mut ids);
            }
            replay.hear(read(&value));
        }
        let last: Vec<_> = replay.reducer.close().collect();
        replay.events.extend(last);
        let count = |wanted: fn(&Event) -> bool| replay.events.iter().filter(|event| wanted(event)).count();
        prop_assert_eq!(
            count(|event| matches!(event, Event::TurnStarted)),
            count(|event| matches!(event, Event::TurnEnded(_)))
        );
        let state = replay.reducer.state();
        prop_assert!(state.calls.is_empty() && state.tasks.is_empty() && state.questions.is_empty());
    }
}

#[test]
fn an_event_is_small() {
    // Every delta is one, so it should be cheap to move.
    assert!(size_of::<Event>() <= 64, "{}", size_of::<Event>());
}
