//! Does a store keep the contract? Checks for any [`Store`], to be run by its tests.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use oarlock_agent::store::{MemoryStore, conformance};
//!
//! let report = conformance::check(async || MemoryStore::new()).await;
//! println!("{report}");
//! report.assert();
//! # }
//! ```

use std::fmt;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::{Key, Listed, Store, list, load_all};
use crate::stream::Json;

/// What was checked, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Every check in its order, and what is wrong if it failed.
    pub checks: Vec<(&'static str, Result<(), String>)>,
}

impl Report {
    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.checks.iter().filter_map(|(name, outcome)| Some((*name, outcome.as_ref().err()?.as_str())))
    }

    /// # Panics
    /// When a check failed; the message says which, and why.
    pub fn assert(&self) {
        assert!(self.failures().next().is_none(), "the store breaks the contract:\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Ok(()) => writeln!(f, "ok      {name}")?,
                Err(reason) => writeln!(f, "FAILED  {name}: {reason}")?,
            }
        }
        Ok(())
    }
}

/// Runs all checks. Each gets a store of its own, which must be empty.
pub async fn check<S: Store>(new: impl AsyncFn() -> S) -> Report {
    let mut checks = Vec::new();
    for (name, check) in CHECKS {
        let store = new().await;
        let run = std::panic::AssertUnwindSafe(check(&store)).catch_unwind();
        let outcome = match tokio::time::timeout(Duration::from_secs(60), run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err("it panicked".into()),
            Err(_) => Err("it did not answer for a minute".into()),
        };
        checks.push((*name, outcome));
    }
    Report { checks }
}

type Outcome = Result<(), String>;
type Check = for<'a> fn(&'a dyn Store) -> BoxFuture<'a, Outcome>;

macro_rules! checks {
    ($($name:ident)*) => {
        &[$((stringify!($name), |store| Box::pin($name(store)))),*]
    };
}

const CHECKS: &[(&str, Check)] = checks! {
    what_was_appended_is_loaded_in_order
    what_was_never_appended_is_none
    appends_add_at_the_end
    an_append_of_nothing_does_nothing
    a_record_is_stored_once
    any_value_comes_back_equal
    a_long_transcript_comes_back_piece_by_piece
    projects_do_not_touch_each_other
    sessions_do_not_touch_each_other
    subpaths_do_not_touch_each_other
    names_are_only_names
    keys_that_lead_elsewhere_are_refused
    sessions_are_listed_with_their_times
    subkeys_are_listed
    digests_say_what_the_records_say
    a_deleted_session_is_gone_with_all_of_it
    a_deleted_subpath_leaves_the_rest
    a_deleted_session_can_begin_anew
    appends_at_the_same_time_are_all_there
};

fn entry(value: Value) -> Json {
    value.into()
}

fn numbered(number: u64) -> Json {
    entry(json!({ "type": "x", "uuid": format!("u{number}"), "n": number }))
}

async fn append(store: &dyn Store, key: &Key, entries: &[Json]) -> Outcome {
    store.append(key, entries).await.map_err(|error| format!("append to {key:?}: {error}"))
}

async fn load(store: &dyn Store, key: &Key) -> Result<Option<Vec<Json>>, String> {
    load_all(store, key).await.map_err(|error| format!("load {key:?}: {error}"))
}

async fn delete(store: &dyn Store, key: &Key) -> Outcome {
    store.delete(key).await.map_err(|error| format!("delete {key:?}: {error}"))
}

async fn sessions(store: &dyn Store, project: &str) -> Result<Vec<Listed>, String> {
    let mut listed =
        store.list_sessions(project).await.map_err(|error| format!("list sessions of {project}: {error}"))?;
    listed.sort_by(|a, b| a.session.cmp(&b.session));
    Ok(listed)
}

async fn subkeys(store: &dyn Store, key: &Key) -> Result<Vec<String>, String> {
    let mut subkeys =
        store.list_subkeys(key).await.map_err(|error| format!("list subkeys of {key:?}: {error}"))?;
    subkeys.sort();
    Ok(subkeys)
}

async fn expect(store: &dyn Store, key: &Key, want: Option<&[Json]>) -> Outcome {
    let got = load(store, key).await?;
    same(&format!("{key:?}"), &got.as_deref(), &want)
}

fn same<T: fmt::Debug + PartialEq>(what: &str, got: &T, want: &T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("{what}: expected {want:?}, got {got:?}")) }
}

fn key() -> Key {
    Key::new("project", "session")
}

async fn what_was_appended_is_loaded_in_order(store: &dyn Store) -> Outcome {
    let entries = [numbered(2), numbered(1)];
    append(store, &key(), &entries).await?;
    expect(store, &key(), Some(&entries)).await
}

async fn what_was_never_appended_is_none(store: &dyn Store) -> Outcome {
    expect(store, &key(), None).await?;
    append(store, &key(), &[numbered(1)]).await?;
    expect(store, &key().sub("subagents/agent-1"), None).await?;
    expect(store, &Key::new("project", "other"), None).await?;
    same("subkeys of nothing", &subkeys(store, &Key::new("project", "other")).await?, &Vec::new())?;
    same("sessions of nothing", &sessions(store, "other").await?, &Vec::new())
}

async fn appends_add_at_the_end(store: &dyn Store) -> Outcome {
    append(store, &key(), &[numbered(9)]).await?;
    append(store, &key(), &[numbered(1), numbered(5)]).await?;
    append(store, &key(), &[numbered(2)]).await?;
    expect(store, &key(), Some(&[numbered(9), numbered(1), numbered(5), numbered(2)])).await
}

async fn an_append_of_nothing_does_nothing(store: &dyn Store) -> Outcome {
    append(store, &key(), &[]).await?;
    expect(store, &key(), None).await?;
    same("sessions", &sessions(store, "project").await?, &Vec::new())?;
    append(store, &key(), &[numbered(1)]).await?;
    append(store, &key(), &[]).await?;
    expect(store, &key(), Some(&[numbered(1)])).await
}

async fn a_record_is_stored_once(store: &dyn Store) -> Outcome {
    let title = entry(json!({ "type": "custom-title", "customTitle": "a" }));
    append(store, &key(), &[numbered(1), title.clone(), numbered(1)]).await?;
    append(store, &key(), &[numbered(1), title.clone(), numbered(2)]).await?;
    let want = [numbered(1), title.clone(), title.clone(), numbered(2)];
    expect(store, &key(), Some(&want))
        .await
        .map_err(|error| format!("records with a uuid are stored once, others always: {error}"))?;
    // The same name in another transcript is another record.
    append(store, &key().sub("subagents/agent-1"), &[numbered(1)]).await?;
    expect(store, &key().sub("subagents/agent-1"), Some(&[numbered(1)])).await
}

async fn any_value_comes_back_equal(store: &dyn Store) -> Outcome {
    let long = "0123456789abcdef".repeat(1 << 17);
    let entries = [
        json!({ "type": "x", "text": "é 👍 \u{2028} \u{0} \n \r\n \" \\ ' %_ \u{202e}" }),
        json!({ "type": "x", "nested": { "b": [1, 2.5, -3, null, true, {}], "a": [] }, "empty": "" }),
        json!({ "type": "x", "big": 9_007_199_254_740_993_u64, "small": -9_007_199_254_740_993_i64 }),
        json!({ "type": "x", "uuid": 7, "uuids": "not a name" }),
        json!({ "type": "x", "long": long }),
    ];
    let mut entries: Vec<Json> = entries.into_iter().map(entry).collect();
    // Half a character, and blanks between the parts, as somebody else may have written them.
    for odd in ["{\"type\":\"x\",\"half\":\"\\ud83d\"}", "{\n \"type\" : \"x\",\r\n \"a\" : [ 1 ]\n}"] {
        entries.push(serde_json::from_str(odd).map_err(|error| error.to_string())?);
    }
    append(store, &key(), &entries).await?;
    let got = load(store, &key()).await?.unwrap_or_default();
    same("number of records", &got.len(), &entries.len())?;
    match got.iter().zip(&entries).position(|(got, want)| got != want) {
        None => Ok(()),
        Some(at) => {
            let start = |json: &Json| json.text().chars().take(80).collect::<String>();
            Err(format!("record {at}: expected {}, got {}", start(&entries[at]), start(&got[at])))
        }
    }
}

async fn a_long_transcript_comes_back_piece_by_piece(store: &dyn Store) -> Outcome {
    let all: Vec<Json> = (0..2000).map(numbered).collect();
    for part in all.chunks(300) {
        append(store, &key(), part).await?;
    }
    let (mut got, mut from, mut pieces) = (Vec::new(), 0, 0);
    loop {
        let batch = store.load(&key(), from).await.map_err(|error| format!("load from {from}: {error}"))?;
        let batch = batch.ok_or(format!("there is nothing from {from} on"))?;
        got.extend(batch.entries);
        pieces += 1;
        match batch.next {
            Some(next) if next == from || pieces > 10_000 => return Err("loading never ends".into()),
            Some(next) => from = next,
            None => break,
        }
    }
    if got == all {
        Ok(())
    } else {
        Err(format!("{} of {} records, or in another order", got.len(), all.len()))
    }
}

async fn projects_do_not_touch_each_other(store: &dyn Store) -> Outcome {
    let (a, b) = (Key::new("a", "s"), Key::new("b", "s"));
    append(store, &a, &[numbered(1)]).await?;
    append(store, &b, &[numbered(2)]).await?;
    expect(store, &a, Some(&[numbered(1)])).await?;
    expect(store, &b, Some(&[numbered(2)])).await?;
    delete(store, &a).await?;
    expect(store, &b, Some(&[numbered(2)])).await
}

async fn sessions_do_not_touch_each_other(store: &dyn Store) -> Outcome {
    let (short, long) = (Key::new("p", "s"), Key::new("p", "s2"));
    append(store, &short, &[numbered(1)]).await?;
    append(store, &long, &[numbered(2)]).await?;
    append(store, &long.sub("subagents/agent-1"), &[numbered(3)]).await?;
    same("subkeys of another session", &subkeys(store, &short).await?, &Vec::new())?;
    delete(store, &short).await?;
    expect(store, &long, Some(&[numbered(2)])).await?;
    expect(store, &long.sub("subagents/agent-1"), Some(&[numbered(3)])).await
}

async fn subpaths_do_not_touch_each_other(store: &dyn Store) -> Outcome {
    let (a, b) = (key().sub("subagents/agent-a"), key().sub("subagents/runs/agent-a"));
    append(store, &key(), &[numbered(1)]).await?;
    append(store, &a, &[numbered(2)]).await?;
    append(store, &b, &[numbered(3)]).await?;
    expect(store, &key(), Some(&[numbered(1)])).await?;
    expect(store, &a, Some(&[numbered(2)])).await?;
    expect(store, &b, Some(&[numbered(3)])).await
}

async fn names_are_only_names(store: &dyn Store) -> Outcome {
    // Patterns, quotes and blanks mean nothing in a name.
    let projects = ["-a_b", "-a%b", "-aXb", "it's", "two words", "ünï", "A", "[x]*?"];
    for (number, project) in projects.iter().enumerate() {
        append(store, &Key::new(*project, "s_1"), &[numbered(number as u64)]).await?;
        append(store, &Key::new(*project, "s_1").sub("subagents/agent-%"), &[numbered(99)]).await?;
    }
    delete(store, &Key::new("-a_b", "s_1")).await?;
    delete(store, &Key::new("-a%b", "s%")).await?;
    expect(store, &Key::new("-a_b", "s_1"), None).await?;
    for (number, project) in projects.iter().enumerate().skip(1) {
        expect(store, &Key::new(*project, "s_1"), Some(&[numbered(number as u64)])).await?;
        let names: Vec<String> = sessions(store, project).await?.into_iter().map(|one| one.session).collect();
        same(&format!("sessions of {project}"), &names, &vec!["s_1".to_owned()])?;
    }
    Ok(())
}

async fn keys_that_lead_elsewhere_are_refused(store: &dyn Store) -> Outcome {
    for wrong in
        [Key::new("..", "s"), Key::new("p", "../s"), Key::new("", "s"), key().sub("../x"), key().sub("")]
    {
        if store.append(&wrong, &[numbered(1)]).await.is_ok() {
            return Err(format!("{wrong:?} was taken; `Key::check` tells"));
        }
    }
    append(store, &key(), &[numbered(1)]).await.map_err(|error| format!("after an error: {error}"))
}

async fn sessions_are_listed_with_their_times(store: &dyn Store) -> Outcome {
    // Some file systems know times to the second only.
    let before = SystemTime::now() - Duration::from_secs(2);
    append(store, &Key::new("p", "a"), &[numbered(1)]).await?;
    append(store, &Key::new("p", "b"), &[numbered(1)]).await?;
    append(store, &Key::new("p", "c").sub("subagents/agent-1"), &[numbered(1)]).await?;
    append(store, &Key::new("q", "d"), &[numbered(1)]).await?;
    let listed = sessions(store, "p").await?;
    let names: Vec<&str> = listed.iter().map(|one| one.session.as_str()).collect();
    same("sessions with a main transcript", &names, &vec!["a", "b"])?;
    let after = SystemTime::now() + Duration::from_secs(2);
    let odd = listed.iter().find(|one| one.modified < before || one.modified > after);
    odd.map_or(Ok(()), |odd| Err(format!("{} was not modified at {:?}", odd.session, odd.modified)))?;
    append(store, &Key::new("p", "a"), &[numbered(2)]).await?;
    let again = sessions(store, "p").await?;
    if again[0].modified < listed[0].modified {
        Err("a session got older by an append".into())
    } else {
        Ok(())
    }
}

async fn subkeys_are_listed(store: &dyn Store) -> Outcome {
    append(store, &key(), &[numbered(1)]).await?;
    same("subkeys of a main transcript", &subkeys(store, &key()).await?, &Vec::new())?;
    for subpath in ["subagents/agent-2", "subagents/agent-1", "subagents/runs/r1/agent-3"] {
        append(store, &key().sub(subpath), &[numbered(1)]).await?;
        append(store, &key().sub(subpath), &[numbered(2)]).await?;
    }
    append(store, &Key::new("project", "other").sub("subagents/agent-9"), &[numbered(1)]).await?;
    let want = ["subagents/agent-1", "subagents/agent-2", "subagents/runs/r1/agent-3"].map(str::to_owned);
    same("subkeys", &subkeys(store, &key()).await?, &want.to_vec())
}

async fn digests_say_what_the_records_say(store: &dyn Store) -> Outcome {
    let user = json!({ "type": "user", "uuid": "u", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/w",
        "message": { "role": "user", "content": "the first prompt" } });
    let title = |title: &str| entry(json!({ "type": "custom-title", "customTitle": title }));
    append(store, &key(), &[entry(user), title("one")]).await?;
    append(store, &key(), &[title("two"), entry(json!({ "type": "tag", "tag": "t" }))]).await?;
    append(store, &key().sub("subagents/agent-1"), &[title("a subagent's")]).await?;
    append(store, &Key::new("other", "elsewhere"), &[title("elsewhere")]).await?;
    let listed = list(store, "project").await.map_err(|error| format!("list: {error}"))?;
    let [summary] = listed.as_slice() else { return Err(format!("one session expected, got {listed:?}")) };
    same("title", &summary.title.as_str(), &"two")?;
    same("first prompt", &summary.first_prompt.as_deref(), &Some("the first prompt"))?;
    same("tag", &summary.tag.as_deref(), &Some("t"))?;
    same("directory", &summary.cwd.as_deref(), &Some("/w"))?;
    let digests = store.list_digests("project").await.map_err(|error| format!("list digests: {error}"))?;
    let listed = sessions(store, "project").await?;
    for digest in digests.iter().flatten() {
        if listed.iter().any(|one| one.session == digest.session && one.modified != digest.modified) {
            return Err("digests and sessions are listed with different times".into());
        }
    }
    delete(store, &key()).await?;
    let left = list(store, "project").await.map_err(|error| format!("list: {error}"))?;
    same("sessions after deleting", &left.len(), &0)
}

async fn a_deleted_session_is_gone_with_all_of_it(store: &dyn Store) -> Outcome {
    delete(store, &key()).await.map_err(|error| format!("what is not there: {error}"))?;
    let (sub, other) = (key().sub("subagents/agent-1"), Key::new("project", "other"));
    for key in [&key(), &sub, &other] {
        append(store, key, &[numbered(1)]).await?;
    }
    delete(store, &key()).await?;
    expect(store, &key(), None).await?;
    expect(store, &sub, None).await?;
    same("subkeys", &subkeys(store, &key()).await?, &Vec::new())?;
    expect(store, &other, Some(&[numbered(1)])).await?;
    let names: Vec<String> = sessions(store, "project").await?.into_iter().map(|one| one.session).collect();
    same("sessions", &names, &vec!["other".to_owned()])
}

async fn a_deleted_subpath_leaves_the_rest(store: &dyn Store) -> Outcome {
    let (a, b) = (key().sub("subagents/agent-a"), key().sub("subagents/agent-b"));
    for key in [&key(), &a, &b] {
        append(store, key, &[numbered(1)]).await?;
    }
    delete(store, &a).await?;
    expect(store, &a, None).await?;
    expect(store, &b, Some(&[numbered(1)])).await?;
    expect(store, &key(), Some(&[numbered(1)])).await?;
    same("subkeys", &subkeys(store, &key()).await?, &vec!["subagents/agent-b".to_owned()])
}

async fn a_deleted_session_can_begin_anew(store: &dyn Store) -> Outcome {
    append(store, &key(), &[numbered(1), numbered(2)]).await?;
    delete(store, &key()).await?;
    append(store, &key(), &[numbered(2), numbered(3)]).await?;
    expect(store, &key(), Some(&[numbered(2), numbered(3)]))
        .await
        .map_err(|error| format!("names of deleted records are free again: {error}"))
}

async fn appends_at_the_same_time_are_all_there(store: &dyn Store) -> Outcome {
    let batches: Vec<Vec<Json>> =
        (0..20).map(|batch| (0..10).map(|number| numbered(batch * 100 + number)).collect()).collect();
    let (key, other) = (key(), Key::new("project", "other"));
    let appends = batches.iter().map(|batch| append(store, &key, batch));
    let others = batches.iter().map(|batch| append(store, &other, batch));
    let (here, there) = futures_util::future::join(join_all(appends), join_all(others)).await;
    here.into_iter().chain(there).collect::<Result<Vec<()>, String>>()?;
    for key in [key, other] {
        let got = load(store, &key).await?.unwrap_or_default();
        same("number of records", &got.len(), &200)?;
        if !got.chunks(10).all(|piece| batches.iter().any(|batch| batch == piece)) {
            return Err("records of two appends are mixed".into());
        }
    }
    Ok(())
}
