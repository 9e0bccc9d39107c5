//! `oarlock config`, and what a command makes of a wrong configuration.

mod home;

use home::Home;
use serde_json::json;

#[test]
fn path_prints_the_users_file() {
    let home = Home::new();
    let ran = home.run(&["config", "path"]);
    assert_eq!(ran.stdout.trim_end(), home.at("config/oarlock/config.toml").to_str().unwrap());
    let ran = home.command(&["config", "path"]).env_remove("XDG_CONFIG_HOME").output().unwrap();
    let path = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(path.trim_end(), home.at(".config/oarlock/config.toml").to_str().unwrap());
}

#[test]
fn each_value_says_where_it_came_from() {
    let home = Home::new();
    let user = home.write("config/oarlock/config.toml", "[ide]\ndebounce_ms = 10\nkeepalive = 2.5\n");
    let project = home.write("w/.oarlock.toml", "[ide]\nname = 'Desk'\n[share]\nignore = ['secret/']\n");
    let output = home.command(&["config", "--json"]).env("OARLOCK_IDE_PORT", "4711").output().unwrap();
    let shown = home::Ran::from(output).json();
    let keys = &shown["keys"];
    assert_eq!(keys["ide.dialect"]["value"], "vscode");
    assert_eq!(keys["ide.dialect"]["origin"], json!({ "kind": "default" }));
    assert_eq!(keys["ide.keepalive"]["value"], 2.5);
    assert_eq!(keys["ide.keepalive"]["origin"], json!({ "kind": "user", "file": user, "line": 3 }));
    assert_eq!(keys["ide.name"]["value"], "Desk");
    assert_eq!(keys["ide.name"]["origin"], json!({ "kind": "project", "file": project, "line": 2 }));
    assert_eq!(keys["ide.port"]["value"], 4711);
    let variable = json!({ "kind": "environment", "variable": "OARLOCK_IDE_PORT" });
    assert_eq!(keys["ide.port"]["origin"], variable);
    assert_eq!(keys["share.ignore"]["value"], json!([]));
    assert_eq!(keys["share.ignore"]["added_by_projects"][0]["value"], json!(["secret/"]));

    let text = home.run(&["config"]).stdout;
    assert!(text.contains(&format!("user file {}:2", user.display())), "{text}");
    assert!(text.contains(&format!("project file {}:4", project.display())), "{text}");
}

#[test]
fn the_workspace_flag_chooses_the_project_file() {
    let home = Home::new();
    home.write("other/.oarlock.toml", "[ide]\nname = 'Other'\n");
    let other = home.at("other");
    let shown = home.run(&["config", "--json", "--workspace", other.to_str().unwrap()]).json();
    assert_eq!(shown["keys"]["ide.name"]["value"], "Other");
}

#[test]
fn what_a_project_may_not_set_is_shown_with_the_reason() {
    let home = Home::new();
    home.write("w/.oarlock.toml", "[ide]\non_diff = 'accept'\n[claude]\nprogram = '/tmp/evil'\n");
    let ran = home.run(&["config"]);
    assert_eq!(ran.code, Some(0));
    for part in
        [".oarlock.toml:2: `ide.on_diff` does not count", "`claude.program`", "config/oarlock/config.toml"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let shown = home.run(&["config", "--json"]).json();
    assert_eq!(shown["keys"]["ide.on_diff"]["value"], "ask");
    assert_eq!(shown["ignored"].as_array().unwrap().len(), 2);
}

#[test]
fn a_wrong_type_ends_with_code_2_and_says_where() {
    let home = Home::new();
    home.write("config/oarlock/config.toml", "[ide]\nport = 'four'\n");
    for args in [&["config"][..], &["claude", "--dry-run"]] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains("config.toml:2: `ide.port` is wrong: expected a port"), "{}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
}

#[test]
fn completions_and_manual_pages_are_made_from_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = home.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("claude"), "{shell}");
        assert!(!ran.stdout.contains("reference"), "{shell} completes a hidden command");
    }
    let ran = home.run(&["man", home.at("man").to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for page in ["oarlock.1", "oarlock-claude.1", "oarlock-config-path.1", "oarlock-ide-list.1"] {
        let text = std::fs::read_to_string(home.at("man").join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    for (page, sections) in
        [("oarlock.1", vec!["\"EXIT STATUS\""]), ("oarlock-run.1", vec!["\"EXIT STATUS\"", "EXAMPLES"])]
    {
        let text = std::fs::read_to_string(home.at("man").join(page)).unwrap();
        for section in sections {
            assert!(text.contains(&format!("\n.SH {section}\n.nf\n")), "{page} has no {section}");
        }
        assert!(!text.contains(".SH EXTRA") && text.contains("\n.fi\n.SH VERSION"), "{page}");
    }
    assert_eq!(home.run(&["man", "/dev/null/x"]).code, Some(1));
}

#[test]
fn the_built_in_ignore_rules_are_shown() {
    let home = Home::new();
    let shown = home.run(&["config"]).stdout;
    assert!(
        shown.contains("built in") && shown.contains("\".env*\"") && shown.contains("id_ed25519*"),
        "{shown}"
    );
    let ignore = &home.run(&["config", "--json"]).json()["keys"]["share.ignore"];
    assert!(
        ignore["built_in"].as_array().is_some_and(|rules| rules.iter().any(|rule| rule == ".git")),
        "{ignore}"
    );
}
