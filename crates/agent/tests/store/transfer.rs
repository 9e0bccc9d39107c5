//! Between the CLI's files and stores.

use std::fs;
use std::path::PathBuf;

use oarlock_agent::Error;
use oarlock_agent::history::{Filter, Fork, Library, Transcript};
use oarlock_agent::store::{
    Existing, Key, MemoryStore, Store, fork, import, list, load_all, materialise, open, rename, tag,
};
use serde_json::{Value, json};

const ID: &str = "00000000-0000-4000-8000-000000000001";

struct Desk {
    _dir: tempfile::TempDir,
    library: Library,
    folder: PathBuf,
}

fn desk() -> Desk {
    let dir = tempfile::tempdir().unwrap();
    let library = Library::at(dir.path().join("config"));
    let folder = library.projects_dir().join("-w");
    Desk { _dir: dir, library, folder }
}

fn write(desk: &Desk, rest: &str, records: &[Value]) -> PathBuf {
    let path = desk.folder.join(rest);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, records.iter().map(|record| format!("{record}\n")).collect::<String>()).unwrap();
    path
}

fn said(uuid: &str, parent: Option<&str>) -> Value {
    json!({ "parentUuid": parent, "isSidechain": false, "type": "user", "uuid": uuid,
        "message": { "role": "user", "content": uuid } })
}

fn full() -> (Desk, Transcript) {
    let desk = desk();
    let mut records = vec![said("a", None), said("b", Some("a"))];
    records.push(json!({ "type": "api-request-blob", "message": "the system prompt" }));
    records.push(json!({ "type": "custom-title", "customTitle": "T" }));
    write(&desk, &format!("{ID}.jsonl"), &records);
    write(&desk, &format!("{ID}/subagents/agent-1.jsonl"), &[said("x", None)]);
    write(
        &desk,
        &format!("{ID}/subagents/agent-1.meta.json"),
        &[json!({ "agentType": "Explore", "toolUseId": "t" })],
    );
    write(&desk, &format!("{ID}/subagents/runs/r/agent-2.jsonl"), &[said("y", None)]);
    let transcript = desk.library.open(ID, None).unwrap();
    (desk, transcript)
}

fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.messages().unwrap().map(|record| record.unwrap().text()).collect()
}

#[tokio::test]
async fn a_session_goes_into_a_store_and_comes_back() {
    let (_desk, transcript) = full();
    let store = MemoryStore::new();
    import(&transcript, &store).await.unwrap();
    let key = Key::new("-w", ID);
    let stored = load_all(&store, &key).await.unwrap().unwrap();
    assert_eq!(stored.len(), 3, "what was sent to the API is left out");
    import(&transcript, &store).await.unwrap();
    let again = load_all(&store, &key).await.unwrap().unwrap();
    assert_eq!(
        again.iter().filter(|entry| entry.value()["uuid"] != Value::Null).count(),
        2,
        "no message twice"
    );
    assert_eq!(list(&store, "-w").await.unwrap()[0].title, "T");

    let other = desk();
    let back = materialise(&store, &key, &other.library, Existing::Keep).await.unwrap().unwrap();
    assert_eq!(texts(&back), ["a", "b"]);
    assert_eq!(back.path(), other.folder.join(format!("{ID}.jsonl")));
    assert_eq!(back.summary().unwrap().title, "T");
    let subagents = back.subagents().unwrap();
    assert_eq!(subagents.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(subagents[0].agent_type.as_deref(), Some("Explore"));
    let meta = fs::read_to_string(subagents[0].path.with_extension("meta.json")).unwrap();
    assert!(!meta.contains("agent_metadata"), "{meta}");
    assert!(!fs::read_to_string(&subagents[0].path).unwrap().contains("agent_metadata"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(back.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(other.library.list(&Filter::default()).unwrap().count(), 1);
    let names = fs::read_dir(&other.folder).unwrap().count();
    assert_eq!(names, 2, "nothing else is left in the folder");
}

#[tokio::test]
async fn what_a_store_does_not_have_makes_no_files() {
    let other = desk();
    let store = MemoryStore::new();
    let none = materialise(&store, &Key::new("-w", ID), &other.library, Existing::Keep).await.unwrap();
    assert!(none.is_none() && !other.folder.exists());
    let bad = materialise(&store, &Key::new("-w", "no-id"), &other.library, Existing::Keep).await;
    assert!(matches!(bad, Err(Error::NoSessionId { .. })));
    let bad = materialise(&store, &Key::new("..", ID), &other.library, Existing::Keep).await;
    assert!(matches!(bad, Err(Error::Store { .. })));
}

#[tokio::test]
async fn the_cli_s_own_file_is_replaced_only_when_asked() {
    let (desk, transcript) = full();
    let store = MemoryStore::new();
    let key = Key::new("-w", ID);
    store.append(&key, &[said("elsewhere", None).into()]).await.unwrap();
    let kept = materialise(&store, &key, &desk.library, Existing::Keep).await.unwrap().unwrap();
    assert_eq!(texts(&kept), ["a", "b"]);
    #[cfg(target_os = "linux")]
    {
        let notes = desk.library.config_dir().join("sessions");
        fs::create_dir_all(&notes).unwrap();
        let me = std::process::id();
        let note = notes.join(format!("{me}.json"));
        fs::write(&note, format!(r#"{{"pid":{me},"sessionId":"{ID}"}}"#)).unwrap();
        let open = materialise(&store, &key, &desk.library, Existing::Replace).await;
        assert!(matches!(open, Err(Error::SessionOpen { .. })), "a running session is not pulled away");
        fs::remove_file(note).unwrap();
    }
    materialise(&store, &key, &desk.library, Existing::Replace).await.unwrap().unwrap();
    assert_eq!(texts(&transcript), ["elsewhere"]);
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_written_through_a_link_that_leads_out() {
    let (_full, transcript) = full();
    let store = MemoryStore::new();
    import(&transcript, &store).await.unwrap();
    let key = Key::new("-w", ID);
    let outside = tempfile::tempdir().unwrap();
    for link in ["-w".to_owned(), format!("-w/{ID}")] {
        let other = desk();
        let link = other.library.projects_dir().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        let outcome = materialise(&store, &key, &other.library, Existing::Keep).await;
        assert!(matches!(outcome, Err(Error::Outside { .. })), "{outcome:?}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_session_of_a_store_is_read_renamed_tagged_and_forked() {
    let (_desk, transcript) = full();
    let store = MemoryStore::new();
    import(&transcript, &store).await.unwrap();
    let key = Key::new("-w", ID);
    rename(&store, &key, " New ").await.unwrap();
    tag(&store, &key, Some("t")).await.unwrap();
    assert!(matches!(rename(&store, &key, "").await, Err(Error::Blank { .. })));
    let summary = list(&store, "-w").await.unwrap().remove(0);
    assert_eq!((summary.title.as_str(), summary.tag.as_deref()), ("New", Some("t")));
    let opened = open(&store, &key).await.unwrap().unwrap();
    assert_eq!(texts(&opened), ["a", "b"]);
    assert_eq!(opened.summary().unwrap().tag.as_deref(), Some("t"), "also as files");
    let path = opened.path().to_owned();
    drop(opened);
    assert!(!path.exists());

    let copy = fork(&store, &key, &Fork::new()).await.unwrap();
    assert_ne!(copy.session, ID);
    let titles: Vec<_> = list(&store, "-w").await.unwrap().into_iter().map(|one| one.title).collect();
    assert_eq!(titles, ["New (fork)", "New"]);
    assert_eq!(texts(&open(&store, &copy).await.unwrap().unwrap()), ["a", "b"]);
    tag(&store, &key, None).await.unwrap();
    assert_eq!(list(&store, "-w").await.unwrap().iter().filter(|one| one.tag.is_some()).count(), 0);
    let none = Key::new("-w", "00000000-0000-4000-8000-00000000000f");
    assert!(matches!(fork(&store, &none, &Fork::new()).await, Err(Error::NoSession { .. })));
    assert!(open(&store, &none).await.unwrap().is_none());
}
