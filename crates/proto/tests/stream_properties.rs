//! Whatever is added to a message, and wherever, comes out again.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use oarlock_proto::stream::decode;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value};

static MESSAGES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    ["cli-2.1.197", "cli-2.1.325", "declared"]
        .iter()
        .flat_map(|name| {
            let file =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/stream/{name}.jsonl"));
            let text = fs::read_to_string(file).expect("fixture");
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<_>>()
        })
        .collect()
});

/// Any JSON value, with strings that need escapes and numbers of all kinds.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // serde_json may read a long decimal fraction as its neighbour, so only exact ones.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 16.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every value in a tree that passes a test, in order.
fn places(value: &mut Value, wanted: fn(&Value) -> bool, change: &mut dyn FnMut(&mut Value)) {
    if wanted(value) {
        change(value);
    }
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| places(value, wanted, change)),
        Value::Array(list) => list.iter_mut().for_each(|value| places(value, wanted, change)),
        _ => {}
    }
}

/// Changes one of the values that pass a test.
fn change_one(message: &mut Value, which: Index, wanted: fn(&Value) -> bool, change: impl Fn(&mut Value)) {
    let mut count = 0;
    places(message, wanted, &mut |_| count += 1);
    if count == 0 {
        return;
    }
    let (chosen, mut at) = (which.index(count), 0);
    places(message, wanted, &mut |value| {
        if at == chosen {
            change(value);
        }
        at += 1;
    });
}

fn assert_kept(message: &Value) -> Result<(), TestCaseError> {
    let read = decode(message.to_string().as_bytes());
    let read = read.map_err(|bad| TestCaseError::fail(bad.to_string()))?;
    prop_assert_eq!(&serde_json::to_value(&read).expect("written"), message);
    let text = serde_json::to_string(&read).expect("written");
    prop_assert_eq!(&serde_json::from_str::<Value>(&text).expect("JSON"), message);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_unknown_field_anywhere_is_kept(
        mut message in select(&**MESSAGES),
        added in prop::collection::vec((any::<Index>(), any::<String>(), any_value()), 1..5),
    ) {
        for (which, name, value) in added {
            change_one(&mut message, which, Value::is_object, |object| {
                object.as_object_mut().expect("object").entry(format!("new {name}")).or_insert_with(|| value.clone());
            });
        }
        assert_kept(&message)?;
    }

    #[test]
    fn another_value_anywhere_is_kept(
        mut message in select(&**MESSAGES),
        changed in prop::collection::vec((any::<Index>(), any_value()), 1..4),
    ) {
        for (which, value) in changed {
            change_one(&mut message, which, |_| true, |place| *place = value.clone());
        }
        prop_assume!(message.is_object());
        assert_kept(&message)?;
    }

    #[test]
    fn a_field_that_is_missing_anywhere_stays_missing(
        mut message in select(&**MESSAGES),
        removed in prop::collection::vec((any::<Index>(), any::<Index>()), 1..4),
    ) {
        for (which, field) in removed {
            change_one(&mut message, which, Value::is_object, |object| {
                let map: &mut Map<_, _> = object.as_object_mut().expect("object");
                if let Some(name) = map.keys().nth(field.index(map.len().max(1))).cloned() {
                    map.remove(&name);
                }
            });
        }
        assert_kept(&message)?;
    }

    #[test]
    fn no_bytes_are_fatal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(bad) = decode(&bytes) {
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(text.contains(&bad.text));
        }
    }

    #[test]
    fn a_message_cut_anywhere_is_a_bad_line_with_its_text(message in select(&**MESSAGES), cut in any::<Index>()) {
        let line = message.to_string();
        let cut = &line.as_bytes()[..cut.index(line.len())];
        let bad = decode(cut).expect_err("no message");
        let text = String::from_utf8_lossy(cut);
        prop_assert_eq!(bad.text, text.trim_matches([' ', '\t', '\r', '\n']));
    }
}
