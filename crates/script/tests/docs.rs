//! Every script that is shown works, and the format page leaves nothing out.

mod host;

use std::path::{Path, PathBuf};

use host::Host;
use oarlock_script::{Launch, Script};
use serde_json::json;

fn page(path: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).expect("a page");
    (path, text)
}

/// The TOML blocks of the pages, and the files in `examples`.
fn shown() -> Vec<(String, Script)> {
    let mut scripts = Vec::new();
    for page_path in ["README.md", "../../docs/script.md"] {
        let (path, text) = page(page_path);
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for (n, block) in blocks.enumerate() {
            let script =
                Script::parse(block).unwrap_or_else(|error| panic!("{} {n}: {error}", path.display()));
            scripts.push((format!("{page_path} {n}"), script));
        }
    }
    for entry in
        std::fs::read_dir(page("examples/text.toml").0.parent().expect("examples")).expect("examples")
    {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let script = Script::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            scripts.push((path.display().to_string(), script));
        }
    }
    scripts
}

#[tokio::test]
async fn every_script_that_is_shown_plays_to_its_end() {
    let scripts = shown();
    assert!(scripts.len() >= 32, "{}", scripts.len());
    for (name, script) in scripts {
        // What a script waits for does not come any more once the input has ended, so each of them ends.
        let mut host = Host::start(script, Launch::default());
        host.initialize(json!({})).await;
        host.prompt("hello").await;
        host.close_input();
        while host.next().await.is_some() {}
        assert!(host.seen.iter().any(|frame| frame["type"] == "result"), "{name}");
        assert!(host.end().await.0.code < 2, "{name}");
    }
}

#[test]
fn the_format_page_names_every_field() {
    let (_, format) = page("README.md");
    for context in ["[[turn]]\nsteps = [{ no_such = 1 }]", "[[turn]]\nno_such = 1", "no_such = 1"] {
        let error = Script::parse(context).expect_err("an unknown field").to_string();
        let fields =
            error.split("expected one of ").nth(1).expect("the fields").split(';').next().unwrap_or_default();
        for field in fields.split('`').skip(1).step_by(2) {
            let is_named =
                [format!("`{field}`"), format!("`{field} = "), format!("{field} = "), format!("[{field}]")];
            assert!(
                is_named.iter().any(|name| format.contains(name)) || format.contains(&format!("[[{field}]]")),
                "{field}"
            );
        }
    }
}
